//! CloudEvents in binary mode: the attributes of one event are headers, its data is the body.
//!
//! **Invariants**
//! - A `ce-` header is never ignored, unless the content type says that the body is the whole event
//!   (`application/cloudevents…`).
//! - An attribute is text, occurs once, and is decoded once. If it cannot be decoded, the request
//!   is rejected.

use crate::body;
use crate::problem::Problem;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use ipse_core::json::quoted;
use ipse_door::{Refusal, printable};
use ipse_engine::event_of;

/// The prefix of headers that are attributes.
const PREFIX: &str = "ce-";
const VERSION: &str = "ce-specversion";
/// The supported version of CloudEvents.
const KNOWN_VERSION: &[u8] = b"1.0";
/// The prefix of the media types of structured mode.
const STRUCTURED: &str = "application/cloudevents";
/// The default type of data. It is not stored.
const JSON: &str = "application/json";
const DATA_TYPE: &str = "datacontenttype";
/// Attributes that binary mode has no header for: they are the body and its content type.
const BODY: [&str; 2] = ["data", DATA_TYPE];

/// The attributes of an event. Names are unique.
pub(crate) struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// Reads the attributes of a request in binary mode. Returns `None` if the request has no `ce-`
    /// header, or if its content type says that the body is the whole event.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let is_structured = body::media_type(headers).starts_with(STRUCTURED);
        if is_structured || !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
            return Ok(None);
        }
        match headers.get(VERSION).map(|version| version.as_bytes()) {
            Some(KNOWN_VERSION) => {}
            Some(other) => {
                let other = printable(&String::from_utf8_lossy(other));
                let detail = format!("ce-specversion is `{other}`; send CloudEvents 1.0");
                return Err(body::unsupported(&detail));
            }
            None => {
                return Err(body::unsupported(
                    "ce- headers without ce-specversion: send `ce-specversion: 1.0` with \
                     all attributes as headers, or the whole event as application/cloudevents+json",
                ));
            }
        }
        Self::read(headers).map(Some)
    }

    fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut all = Vec::new();
        for header in headers.keys() {
            let Some(name) = header.as_str().strip_prefix(PREFIX) else { continue };
            check_name(header.as_str(), name)?;
            all.push((name.to_owned(), attribute(headers, header.as_str())?));
        }
        if headers.contains_key(CONTENT_TYPE) {
            let kind = text(headers, CONTENT_TYPE.as_str())?;
            if body::media_type(headers) != JSON {
                all.push((DATA_TYPE.to_owned(), kind.to_owned()));
            }
        }
        Ok(Attributes(all))
    }

    /// The event with this body as its data. With an empty body the event has no data.
    pub(crate) fn event(&self, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let attributes = self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        event_of(attributes, (!body.is_empty()).then_some(body))
    }
}

/// CloudEvents allows letters and digits in the name of an attribute; header names are lower case.
fn check_name(header: &str, name: &str) -> Result<(), Problem> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if BODY.contains(&name) {
        let detail = "the data is the body, and its type is Content-Type: leave this header out";
        return Err(bad_header(header, detail));
    }
    if name.is_empty() || !name.bytes().all(fits) {
        let detail = "the name of an attribute consists of letters and digits";
        return Err(bad_header(header, detail));
    }
    Ok(())
}

fn bad_header(header: &str, detail: &str) -> Problem {
    let header = printable(header);
    let problem = Problem::bad_request("bad_header", format!("`{header}`: {detail}"));
    problem.with("field", quoted(&header))
}

/// The text of a header that must occur once and be printable ASCII.
fn text<'h>(headers: &'h HeaderMap, header: &str) -> Result<&'h str, Problem> {
    let mut values = headers.get_all(header).iter();
    let value = values.next().map(|value| value.as_bytes()).unwrap_or_default();
    if values.next().is_some() {
        return Err(bad_header(header, "the header is given twice"));
    }
    let printable = |byte: &u8| matches!(byte, b' '..=b'~');
    let text = std::str::from_utf8(value).ok().filter(|_| value.iter().all(printable));
    text.ok_or_else(|| {
        let detail = "a byte is not printable ASCII: percent-encode the UTF-8 of the text";
        bad_header(header, detail)
    })
}

fn attribute(headers: &HeaderMap, header: &str) -> Result<String, Problem> {
    let refuse = |detail: &'static str| bad_header(header, detail);
    let plain = unquoted(text(headers, header)?).map_err(refuse)?;
    percent_decoded(&plain).map_err(refuse)
}

/// Removes the quotes. Senders of this version use none, but the HTTP binding requires receivers to
/// accept those of older versions.
fn unquoted(text: &str) -> Result<String, &'static str> {
    let Some(quoted) = text.strip_prefix('"') else { return Ok(text.to_owned()) };
    let (mut out, mut rest) = (String::new(), quoted.chars());
    loop {
        match rest.next() {
            Some('"') if rest.as_str().is_empty() => return Ok(out),
            Some('\\') => out.extend(rest.next()),
            Some('"') | None => return Err("a quoted text must end with its closing quote"),
            Some(letter) => out.push(letter),
        }
    }
}

fn percent_decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        let [high, low, after @ ..] = more else { return Err(BAD_PERCENT) };
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(BAD_PERCENT) };
        bytes.push(high << 4 | low);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| "the percent-encoded bytes are not UTF-8")
}

const BAD_PERCENT: &str = "two hex digits must follow a percent sign; %25 is the sign itself";

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn headers(all: &[(&str, &[u8])]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in all {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.to_vec().try_into().unwrap());
        }
        map
    }

    /// The event, or the code and detail of the problem; `None` if it is not in binary mode.
    fn read(all: &[(&str, &[u8])], body: &[u8]) -> Option<Result<String, (&'static str, String)>> {
        match Attributes::of(&headers(all)) {
            Ok(attributes) => {
                let event = attributes?.event(body);
                let refused = |refusal: Refusal| (refusal.rule.code(), refusal.message);
                Some(event.map(|event| String::from_utf8(event).unwrap()).map_err(refused))
            }
            Err(problem) => Some(Err((problem.code(), format!("{problem:?}")))),
        }
    }

    fn value_of(value: &[u8]) -> Result<String, (&'static str, String)> {
        read(&[(VERSION, b"1.0"), ("ce-x", value)], b"").unwrap()
    }

    #[test]
    fn attributes_are_decoded_once() {
        for (sent, text) in [
            (&b"plain"[..], "plain"),
            (b"a%20b+c%2Bd", "a b+c+d"),
            (b"Euro %E2%82%ac", "Euro €"),
            (b"100%2525", "100%25"),
            (br#""a \"b\" %41""#, r#"a \"b\" A"#),
            (br#"a "b""#, r#"a \"b\""#),
            (b"", ""),
        ] {
            let want = format!(r#"{{"specversion":"1.0","x":"{text}"}}"#);
            assert_eq!(value_of(sent).unwrap(), want);
        }
        for bad in [
            &b"100%"[..],
            b"%4",
            b"%zz",
            b"%C3",
            b"%ff",
            b"%C0%A0",
            b"\xc3\xa9",
            b"a\tb",
            b"\"",
            b"\"a\"b",
            b"\"a\\\"",
        ] {
            assert_eq!(value_of(bad).unwrap_err().0, "bad_header", "{bad:?}");
        }
    }

    #[test]
    fn the_content_type_decides_and_a_header_is_never_passed_over() {
        let version: (&str, &[u8]) = (VERSION, b"1.0");
        for kind in ["application/cloudevents+json", "Application/CloudEvents-batch+json; a=b"] {
            assert!(read(&[version, ("content-type", kind.as_bytes())], b"{}").is_none());
        }
        assert!(read(&[("content-type", b"application/json")], b"{}").is_none());
        for other in [&[("ce-id", &b"1"[..])][..], &[(VERSION, b"0.3")], &[(VERSION, b"")]] {
            let (code, _) = read(other, b"{}").unwrap().unwrap_err();
            assert_eq!(code, "unsupported_media_type", "{other:?}");
        }
        for (kind, kept) in [
            (&b"application/json"[..], ""),
            (b"Application/JSON ; charset=utf-8", ""),
            (b"application/x-ndjson", r#""datacontenttype":"application/x-ndjson","#),
            (b"text/x; a=\"b\"", r#""datacontenttype":"text/x; a=\"b\"","#),
        ] {
            let event = read(&[version, ("content-type", kind)], b"{}").unwrap().unwrap();
            assert_eq!(event, format!(r#"{{"data":{{}},{kept}"specversion":"1.0"}}"#));
        }
        assert_eq!(read(&[version], b"").unwrap().unwrap(), r#"{"specversion":"1.0"}"#);
        assert_eq!(read(&[version], b" ").unwrap().unwrap_err().0, "data_not_object");
    }

    #[test]
    fn headers_that_are_no_attribute_or_stand_twice_are_refused() {
        let version: (&str, &[u8]) = (VERSION, b"1.0");
        for bad in [
            &[version, version][..],
            &[version, ("ce-id", b"1"), ("CE-Id", b"1")],
            &[version, ("ce-", b"1")],
            &[version, ("ce-my-name", b"1")],
            &[version, ("ce-my_name", b"1")],
            &[version, ("ce-data", b"1")],
            &[version, ("ce-datacontenttype", b"text/plain")],
            &[version, ("content-type", b"a/b"), ("content-type", b"a/c")],
            &[version, ("content-type", b"a/\xff")],
        ] {
            let (code, detail) = read(bad, b"{}").unwrap().unwrap_err();
            assert_eq!(code, "bad_header", "{bad:?}: {detail}");
        }
    }
}
