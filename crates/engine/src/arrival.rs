//! Conversion of events from producers into the form that the door validates.
//!
//! **Invariants**
//! - Nothing here admits an event: the result still has to pass the door.
//! - Only unsigned new events are converted. A signed or stored event keeps its bytes, because its
//!   digest covers them.
//! - An event without `data_base64` is returned unchanged.

use ipse_core::json::{Object, Value, write_text};
use ipse_core::json_parse::{self, ParseError, Rule as JsonRule};
use ipse_door::{MAX_DEPTH, MAX_EVENT_BYTES, Refusal, Rule, Unused};
use ipse_ledger::base64;
use std::borrow::Cow;

/// The member of a CloudEvent in JSON that holds binary data.
const ENCODED: &str = "data_base64";
/// The type whose events feed facts about skills.
const COUNTED: &str = "execution_result";
/// The hint for an event whose type ends in `.execution_result`.
pub const TYPE_HINT: &str = "feeds no fact; did you mean execution_result";

/// Decodes the `data_base64` of an unsigned event into `data`, if it holds a JSON object.
///
/// Other binary data is not changed. An event with a salt is not changed either: it may have been
/// signed or stored before, and is the same event only with the same bytes. An event with both
/// `data` and `data_base64` is rejected, because CloudEvents does not allow it.
///
/// ```
/// # use ipse_engine::decode_data;
/// let sent = br#"{"id":"1","data_base64":"eyJvayI6dHJ1ZX0="}"#;
/// assert_eq!(*decode_data(sent).unwrap(), *br#"{"data":{"ok":true},"id":"1"}"#);
/// ```
pub fn decode_data(event: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
    if event.len() > MAX_EVENT_BYTES || !may_have_encoded(event) {
        return Ok(event.into());
    }
    // The door rejects anything that is not strict JSON, with the reason.
    let Ok(Value::Object(mut members)) = json_parse::parse(event, MAX_DEPTH) else {
        return Ok(event.into());
    };
    let Some(encoded) = members.take(ENCODED) else { return Ok(event.into()) };
    if members.get("data").is_some() {
        let message = "`data` and `data_base64` are two forms of one member: give one of them";
        return Err(Refusal::new(ENCODED, Rule::DataAndBase64, message));
    }
    let decoded = encoded.as_text().and_then(base64::decode);
    match decoded.filter(|_| members.get("salt").is_none()) {
        Some(data) if is_object(&data).is_ok() => Ok(joined(&data, &members).into()),
        _ => Ok(event.into()),
    }
}

/// Builds an event from text attributes and data. Data that is no JSON object is rejected.
pub fn event_of<'a>(
    attributes: impl IntoIterator<Item = (&'a str, &'a str)>,
    data: Option<&[u8]>,
) -> Result<Vec<u8>, Refusal> {
    let mut members = Object::default();
    for (name, value) in attributes {
        members.set(name, Value::Text(value.into()));
    }
    let Some(data) = data else { return Ok(joined(b"", &members)) };
    match is_object(data) {
        Ok(()) => Ok(joined(data, &members)),
        Err(why) => Err(Refusal::new("data", Rule::DataNotObject, &why)),
    }
}

/// Fails with the reason if bytes are not a JSON object. An object that breaks a rule of the door
/// passes here: the door names the rule and the member.
fn is_object(bytes: &[u8]) -> Result<(), String> {
    // The enclosing event is one level.
    match json_parse::parse(bytes, MAX_DEPTH - 1) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err("must be a JSON object".to_string()),
        Err(ParseError {
            rule: JsonRule::Syntax | JsonRule::Utf8 | JsonRule::Trailing,
            at,
            ..
        }) => Err(format!("must be a JSON object; byte {} is no part of one", at + 1)),
        Err(_) if bytes.trim_ascii_start().starts_with(b"{") => Ok(()),
        Err(_) => Err("must be a JSON object".to_string()),
    }
}

/// Joins data and other members into an event. The data comes first and unchanged, so that the door
/// reports an error in it at the same place, before any other error.
fn joined(data: &[u8], members: &Object<'_>) -> Vec<u8> {
    let mut text = String::new();
    for (name, value) in members.iter() {
        text.push(',');
        write_text(name, &mut text);
        text.push(':');
        value.write(&mut text);
    }
    let data = if data.is_empty() { Vec::new() } else { [b",\"data\":", data].concat() };
    let inner = [&data, text.as_bytes()].concat();
    [b"{", inner.get(1..).unwrap_or_default(), b"}"].concat()
}

/// Whether an event may have the member `data_base64`. The name may contain escapes.
fn may_have_encoded(event: &[u8]) -> bool {
    std::str::from_utf8(event).is_ok_and(|text| text.contains(ENCODED) || text.contains("\\u"))
}

/// The hint for an event whose type only resembles one that feeds facts.
///
/// CloudEvents recommends types such as `com.example.execution_result`. Rules compare whole types,
/// so such events feed no fact.
pub fn type_hint(event_type: &str) -> Option<&'static str> {
    let prefix = event_type.strip_suffix(COUNTED)?;
    prefix.ends_with('.').then_some(TYPE_HINT)
}

/// Advice for the sender of an event that is stored and feeds fewer facts than intended: about its
/// type, and about the members that [`ipse_door::unused`] returns for it.
pub fn hint_of(event_type: &str, members: &[Unused]) -> Option<String> {
    let hints = type_hint(event_type).map(str::to_owned).into_iter();
    let hints: Vec<_> = hints.chain(members.iter().map(ToString::to_string)).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_door::{Origin, admit};

    fn event(members: &str) -> String {
        format!(r#"{{"id":"1","type":"note","time":"2026-05-06T10:00:00Z",{members}}}"#)
    }

    /// The canonical members that the door makes of an event after decoding.
    fn admitted(members: &str) -> Result<String, (String, Rule)> {
        let event = event(members);
        let decoded = decode_data(event.as_bytes());
        let admitted = decoded.and_then(|event| admit(&event, Origin::Producer, || [7; 16]));
        admitted.map(|event| event.canonical).map_err(|refusal| (refusal.field, refusal.rule))
    }

    fn encoded(data: &[u8]) -> String {
        format!(r#""data_base64":"{}""#, base64::encode(data))
    }

    #[test]
    fn an_object_becomes_data_and_anything_else_stays() {
        let plain = admitted(r#""data":{"a":[1,{"b":"\u20ac"}]},"x":2"#).unwrap();
        let data = r#" {"a":[1,{"b":"€"}]} "#;
        assert_eq!(admitted(&format!(r#"{},"x":2"#, encoded(data.as_bytes()))).unwrap(), plain);
        let escaped = encoded(data.as_bytes()).replace('_', "\\u005f");
        assert_eq!(admitted(&format!(r#"{escaped},"x":2"#)).unwrap(), plain, "an escaped name");
        for other in [&b"7"[..], b"[{}]", b"null", b"", b"\xff\x00", b"{\"a\":", b"{} {}"] {
            let kept = encoded(other);
            assert!(admitted(&kept).unwrap().contains(&kept), "{other:?}");
        }
        for kept in [r#""data_base64":7"#, r#""data_base64":"e30""#, r#""data_base64":null"#] {
            assert!(admitted(kept).unwrap().contains(kept), "{kept}");
        }
        let salted = format!(r#"{},"salt":"{}""#, encoded(b"{}"), "0".repeat(32));
        assert!(admitted(&salted).unwrap().contains(&encoded(b"{}")));
    }

    #[test]
    fn an_event_without_the_member_keeps_its_bytes() {
        for same in [
            event(r#""data":{"text":"data_base64"}"#),
            event(r#""data":{"data_base64":"e30="}"#),
            event(r#""x": "\u0020""#),
            "no JSON, data_base64".to_string(),
            format!("{}{}", " ".repeat(MAX_EVENT_BYTES), event(&encoded(b"{}"))),
        ] {
            assert_eq!(*decode_data(same.as_bytes()).unwrap(), *same.as_bytes());
        }
    }

    #[test]
    fn data_that_breaks_a_rule_is_refused_where_it_breaks_it() {
        let deep = format!("{}1{}", "{\"a\":".repeat(32), "}".repeat(32));
        for (data, field, rule) in [
            (r#"{"a":{"b":1,"b":2}}"#, "data.a.b", Rule::DuplicateKey),
            (r#"{"a":1,"a":2},"id":"2"#, "data.a", Rule::DuplicateKey),
            (r#"{"a":9007199254740993}"#, "data.a", Rule::UnsafeInteger),
            (r#"{"a":1e999}"#, "data.a", Rule::NumberOverflow),
            (r#"{"a":"\ud800"}"#, "data.a", Rule::LoneSurrogate),
            (r#"{"a":"\u0000"}"#, "data.a", Rule::Nul),
        ] {
            let want = Err((field.to_string(), rule));
            assert_eq!(admitted(&encoded(data.as_bytes())), want, "{data}");
            let event = event_of([("id", "1")], Some(data.as_bytes())).unwrap();
            let refusal = admit(&event, Origin::Producer, || [7; 16]).unwrap_err();
            assert_eq!((refusal.field.as_str(), refusal.rule), (field, rule), "{data}");
        }
        assert_eq!(admitted(&encoded(deep.as_bytes())).unwrap_err().1, Rule::TooDeep);
    }

    #[test]
    fn both_forms_of_data_are_refused() {
        let twice = Err((ENCODED.to_string(), Rule::DataAndBase64));
        for data in ["{}", "null", "7"] {
            for encoded in [encoded(b"{}"), encoded(b"x"), r#""data_base64":null"#.to_string()] {
                assert_eq!(admitted(&format!(r#""data":{data},{encoded}"#)), twice);
            }
        }
        let salt = format!(r#""data":{{}},{},"salt":"{}""#, encoded(b"{}"), "0".repeat(32));
        assert_eq!(admitted(&salt), twice);
    }

    #[test]
    fn an_event_of_attributes() {
        let made = |data: Option<&[u8]>| event_of([("id", "a\"b"), ("x", "1")], data);
        assert_eq!(made(None).unwrap(), br#"{"id":"a\"b","x":"1"}"#);
        assert_eq!(made(Some(b" {} ")).unwrap(), br#"{"data": {} ,"id":"a\"b","x":"1"}"#);
        for other in [&b"7"[..], b"[]", b"text", b"\xff", b"{} {}", b"{},\"id\":\"2\"", b"{"] {
            assert_eq!(made(Some(other)).unwrap_err().rule, Rule::DataNotObject, "{other:?}");
        }
    }

    #[test]
    fn types_that_are_nearly_counted() {
        for near in ["com.example.execution_result", ".execution_result", "x.execution_result"] {
            assert!(type_hint(near).is_some(), "{near}");
        }
        for other in ["execution_result", "my_execution_result", "x.execution_results", "note"] {
            assert_eq!(type_hint(other), None, "{other}");
        }
    }
}
