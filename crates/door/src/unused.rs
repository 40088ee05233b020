//! Members of an attempt that no rule reads although they look as if one should.
//!
//! **Invariants**
//! - The list is advice for the sender. It changes nothing that is stored and refuses nothing.
//! - It is a function of the canonical bytes. An event without such members is not parsed again.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use ipse_core::event::{EXECUTION_RESULT, MAX_DEPTH};
use ipse_core::json::{Object, Value};
use ipse_core::text::printable;
use ipse_core::{Admitted, Outcome, json_parse};

/// Words that senders use in place of an outcome.
const OUTCOMES: [(&[&str], Outcome); 5] = [
    (
        &["ok", "okay", "succeeded", "successful", "passed", "pass", "true", "done"],
        Outcome::Success,
    ),
    (&["failure", "fail", "error", "errored", "timeout", "false", "aborted"], Outcome::Failed),
    (&["rejected", "refused", "forbidden", "blocked"], Outcome::Denied),
    (&["stopped", "preempted"], Outcome::Interrupted),
    (&["cancelled"], Outcome::Canceled),
];
/// Members that senders use in place of those that rules read.
const MEMBERS: [(&[&str], &str); 4] = [
    (&["skill", "skillId", "skill_name", "tool", "tool_name", "action", "capability"], "skill_id"),
    (&["target", "targetClass", "target_type", "object_class"], "target_class"),
    (&["parameters", "param", "args", "arguments"], "params"),
    (&["result", "status", "succeeded", "ok", "is_error"], "outcome"),
];

/// Members that senders use in place of `failure_reason`.
const REASONS: [&str; 5] = ["reason", "error", "error_message", "failureReason", "failure"];

/// A member that no rule reads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unused {
    /// The member, as in `data.params.force_n`, fit to print.
    pub field: String,
    /// The reason, and the correction.
    pub message: String,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.message)
    }
}

/// Different members that are listed at most; more of them are counted.
const MAX_KINDS: usize = 20;

/// Places of a member that are listed; more of them are counted.
const MAX_PLACES: usize = 3;

/// The events that have an unused member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Places {
    /// The number of events.
    pub count: u64,
    /// The places of the first of them, such as lines.
    pub first: Vec<u64>,
}

impl Places {
    fn add(&mut self, place: u64) {
        self.count += 1;
        if self.first.len() < MAX_PLACES {
            self.first.push(place);
        }
    }

    /// The places as text: `3, 4, 7, …`.
    pub fn text(&self) -> String {
        let listed: Vec<String> = self.first.iter().map(ToString::to_string).collect();
        let more = if self.count > self.first.len() as u64 { ", …" } else { "" };
        format!("{}{more}", listed.join(", "))
    }
}

/// The unused members of many events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UnusedMembers {
    kinds: BTreeMap<Unused, Places>,
    /// How many members were not listed.
    pub omitted: u64,
}

impl UnusedMembers {
    /// Adds the unused members of the event at a place, such as a line.
    pub fn add(&mut self, event: &Admitted, place: u64) {
        self.add_all(unused(event), place);
    }

    /// Adds the result of [`unused`] for the event at a place.
    pub fn add_all(&mut self, members: Vec<Unused>, place: u64) {
        for unused in members {
            if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&unused) {
                self.omitted += 1;
                continue;
            }
            self.kinds.entry(unused).or_default().add(place);
        }
    }

    /// Each member with the events that have it, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Unused, &Places)> {
        self.kinds.iter()
    }
}

/// The members of an event that feed no fact and probably should.
///
/// ```
/// # use ipse_door::{Origin, admit, unused};
/// let sent = br#"{"id":"1","type":"execution_result","time":"2026-05-06T10:00:00Z",
///     "data":{"skill_id":"grasp","outcome":"failure"}}"#;
/// let event = admit(sent, Origin::Producer, || [7; 16]).unwrap();
/// let message = r#"is "failure", which counts as unknown; did you mean "failed"?"#;
/// assert_eq!(unused(&event)[0].to_string(), format!("`data.outcome` {message}"));
/// ```
pub fn unused(event: &Admitted) -> Vec<Unused> {
    if event.event_type != EXECUTION_RESULT || !is_suspect(&event.canonical) {
        return Vec::new();
    }
    let Ok(Value::Object(members)) = json_parse::parse(event.canonical.as_bytes(), MAX_DEPTH)
    else {
        return Vec::new();
    };
    let none = Object::default();
    let data = members.get("data").and_then(Value::as_object).unwrap_or(&none);
    let mut found = outside(&members);
    found.extend(outcome(data));
    found.extend(MEMBERS.iter().filter_map(|(names, meant)| misnamed(data, names, meant)));
    found.extend(misnamed_reason(data));
    if let Some(params) = data.get("params") {
        found.extend(parameters(params));
    }
    found
}

/// Whether the text may have such a member. Most events have not, and are not parsed again.
fn is_suspect(canonical: &str) -> bool {
    let has = |member: &str| canonical.contains(member);
    let counts = has("\"outcome\":\"success\"") || has("\"outcome\":\"failed\"");
    let says = counts || has("\"success\":true") || has("\"success\":false");
    if !says || !has("\"skill_id\":\"") || !has("\"target_class\":") {
        return true;
    }
    let failed = has("\"outcome\":\"failed\"") || has("\"success\":false");
    if failed && !has("\"failure_reason\":") {
        return true;
    }
    let Some(at) = canonical.find("\"params\":") else { return has("\"arg") || has("\"param") };
    let params = &canonical[at + "\"params\":".len()..];
    let end = params.find('}').unwrap_or(params.len());
    [":\"", ":t", ":f", ":[", ":{", ":n"].iter().any(|value| params[..end].contains(value))
        || !params.starts_with('{')
}

fn found(field: &str, message: String) -> Unused {
    Unused { field: printable(&format!("data.{field}")), message }
}

fn outcome(data: &Object<'_>) -> Option<Unused> {
    match (data.get("outcome"), data.get("success")) {
        (None | Some(Value::Null), None | Some(Value::Null | Value::Bool(_))) => None,
        (None | Some(Value::Null), Some(other)) => {
            let message = match other.as_text() {
                Some("true" | "false") => "is a text and counts nowhere; write it without quotes",
                _ => "is no boolean and counts nowhere; write true or false",
            };
            Some(found("success", message.to_string()))
        }
        (Some(Value::Text(word)), _) => {
            if Outcome::parse(word).is_some() {
                return None;
            }
            let meant = meant(word).map_or_else(
                || format!("the outcomes are {}", Outcome::ALL.map(Outcome::name).join(", ")),
                |outcome| format!("did you mean \"{}\"?", outcome.name()),
            );
            let word = printable(word);
            Some(found("outcome", format!("is \"{word}\", which counts as unknown; {meant}")))
        }
        (Some(_), _) => {
            let message = "is no text and counts as unknown; did you mean `success`?";
            Some(found("outcome", message.to_string()))
        }
    }
}

fn meant(word: &str) -> Option<Outcome> {
    let lower = word.to_ascii_lowercase();
    Outcome::parse(&lower).or_else(|| {
        let known = OUTCOMES.iter().find(|(words, _)| words.contains(&lower.as_str()));
        known.map(|(_, outcome)| *outcome)
    })
}

/// Members of an attempt that stand next to `data` and not in it.
fn outside(members: &Object<'_>) -> Vec<Unused> {
    let names = ["skill_id", "target_class", "outcome", "success", "params"];
    let names = names.into_iter().filter(|name| members.get(name).is_some());
    let message = "is outside of `data` and feeds no fact";
    names.map(|name| Unused { field: name.to_string(), message: message.to_string() }).collect()
}

/// A member under another name, if the one that rules read is absent.
fn misnamed(data: &Object<'_>, names: &[&str], meant: &str) -> Option<Unused> {
    let has_outcome = meant == "outcome" && data.get("success").is_some();
    if data.get(meant).is_some() || has_outcome {
        return None;
    }
    let other = names.iter().copied().find(|name| data.get(name).is_some());
    let meant = if meant == "outcome" { ["outcome", "success"].as_slice() } else { &[meant] };
    let near = || {
        let pairs = data.iter().flat_map(|(name, _)| meant.iter().map(move |it| (name, *it)));
        pairs.into_iter().find(|(name, it)| is_near(name, it))
    };
    let (name, meant) = other.map(|name| (name, meant[0])).or_else(near)?;
    Some(found(name, format!("feeds no fact; did you mean `{meant}`?")))
}

/// The reason of a failed attempt under another name.
fn misnamed_reason(data: &Object<'_>) -> Option<Unused> {
    let outcome = data.get("outcome").and_then(Value::as_text).and_then(Outcome::parse);
    let failed = match outcome {
        Some(outcome) => outcome == Outcome::Failed,
        None => matches!(data.get("success"), Some(Value::Bool(false))),
    };
    if !failed || data.get("failure_reason").is_some() {
        return None;
    }
    let is_text =
        |name: &str| data.get(name).and_then(Value::as_text).is_some_and(|it| !it.is_empty());
    let name = REASONS.into_iter().find(|name| is_text(name))?;
    Some(found(name, String::from("feeds no fact; did you mean `failure_reason`?")))
}

/// Whether one letter was added, dropped or exchanged, or two were swapped.
fn is_near(typed: &str, meant: &str) -> bool {
    let (a, b) = (typed.as_bytes(), meant.as_bytes());
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[start..], &b[start..]);
    let rest = |from: usize, of: &[u8]| of.get(from..).map(<[u8]>::to_vec);
    let swapped = a.len() >= 2 && b.len() >= 2 && (a[0], a[1]) == (b[1], b[0]);
    (!a.is_empty() || !b.is_empty())
        && (rest(1, a) == Some(b.to_vec())
            || rest(1, b) == Some(a.to_vec())
            || (rest(1, a).is_some() && rest(1, a) == rest(1, b))
            || (swapped && rest(2, a) == rest(2, b)))
}

fn parameters(params: &Value<'_>) -> Vec<Unused> {
    let Value::Object(params) = params else {
        return Vec::from([found("params", "is no object and feeds no fact".to_string())]);
    };
    let message = |value: &Value<'_>| match value {
        Value::Number(_) if value.as_micro().is_some() => None,
        Value::Number(_) => Some("is too large or too small a number and feeds no fact"),
        Value::Text(text) if is_number(text) => {
            Some("is a number in quotes and feeds no fact; write it without quotes")
        }
        Value::Text(_) => Some("is a text; facts are learned from numbers only"),
        Value::Bool(_) => Some("is a boolean; facts are learned from numbers only"),
        _ => Some("is no number; facts are learned from numbers only"),
    };
    let each = params.iter().filter_map(|(name, value)| {
        Some(found(&format!("params.{name}"), message(value)?.to_string()))
    });
    each.collect()
}

fn is_number(text: &str) -> bool {
    let value = json_parse::parse(text.trim().as_bytes(), 1);
    value.is_ok_and(|value| matches!(value, Value::Number(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Origin, admit};

    fn check(data: &str, want: &[&str]) {
        let event = format!(
            "{{\"id\":\"1\",\"type\":\"execution_result\",\"time\":\"2026-05-06T10:00:00Z\",\
             \"data\":{data}}}"
        );
        let event = admit(event.as_bytes(), Origin::Producer, || [7; 16]).unwrap();
        let got: Vec<_> = unused(&event).iter().map(ToString::to_string).collect();
        assert_eq!(got, want, "{data}");
    }

    #[test]
    fn good_events_have_none() {
        for data in [
            r#"{"skill_id":"a","target_class":"b","success":true,"params":{"f":1,"g":-2.5}}"#,
            r#"{"skill_id":"a","success":false}"#,
            r#"{"skill_id":"a","outcome":"denied"}"#,
            r#"{"skill_id":"a","outcome":null,"success":true,"params":{}}"#,
            r#"{"zone":"dock","success":true,"object":{"mass_g":"heavy"}}"#,
            r#"{"skill_id":"a","target_class":"b","success":true,"error":"none"}"#,
            r#"{"skill_id":"a","outcome":"failed","reason":"x","failure_reason":"slip"}"#,
            r#"{"skill_id":"a","success":false,"error":null,"reason":""}"#,
            "{}",
        ] {
            check(data, &[]);
        }
    }

    #[test]
    fn places_are_counted_and_the_first_ones_listed() {
        let one = || Vec::from([found("x", String::from("y"))]);
        let mut all = UnusedMembers::default();
        (3..5).for_each(|place| all.add_all(one(), place));
        let text = |all: &UnusedMembers| all.iter().next().unwrap().1.text();
        assert_eq!(text(&all), "3, 4");
        (7..20).for_each(|place| all.add_all(one(), place));
        assert_eq!(text(&all), "3, 4, 7, …");
        assert_eq!(all.iter().next().unwrap().1.count, 15);
        for name in 0..MAX_KINDS as u64 {
            all.add_all(Vec::from([found(&format!("m{name}"), String::new())]), 1);
        }
        assert_eq!((all.iter().count(), all.omitted), (MAX_KINDS, 1));
    }

    #[test]
    fn each_mistake_has_its_correction() {
        let failure = "`data.outcome` is \"failure\", which counts as unknown; did you mean \
                       \"failed\"?";
        check(r#"{"skill_id":"a","outcome":"failure"}"#, &[failure]);
        let capital = "`data.outcome` is \"SUCCESS\", which counts as unknown; did you mean \
                       \"success\"?";
        check(r#"{"skill_id":"a","outcome":"SUCCESS"}"#, &[capital]);
        let strange = "`data.outcome` is \"?\", which counts as unknown; the outcomes are success, \
                       failed, denied, interrupted, canceled, unknown";
        check(r#"{"skill_id":"a","outcome":"?"}"#, &[strange]);
        let boolean = "`data.outcome` is no text and counts as unknown; did you mean `success`?";
        check(r#"{"skill_id":"a","outcome":true}"#, &[boolean]);
        let quoted = "`data.success` is a text and counts nowhere; write it without quotes";
        check(r#"{"skill_id":"a","success":"true"}"#, &[quoted]);
        let number = "`data.success` is no boolean and counts nowhere; write true or false";
        check(r#"{"skill_id":"a","success":1}"#, &[number]);
        let skill = "`data.tool` feeds no fact; did you mean `skill_id`?";
        check(r#"{"tool":"a","success":true}"#, &[skill]);
        let typed = "`data.sucess` feeds no fact; did you mean `success`?";
        check(r#"{"skill_id":"a","sucess":true}"#, &[typed]);
        let status = "`data.status` feeds no fact; did you mean `outcome`?";
        check(r#"{"skill_id":"a","status":"ok"}"#, &[status]);
        let arguments = "`data.args` feeds no fact; did you mean `params`?";
        check(r#"{"skill_id":"a","target_class":"b","success":true,"args":{}}"#, &[arguments]);
        let params = [
            "`data.params.a` is a number in quotes and feeds no fact; write it without quotes",
            "`data.params.b` is a text; facts are learned from numbers only",
            "`data.params.c` is a boolean; facts are learned from numbers only",
            "`data.params.d` is no number; facts are learned from numbers only",
            "`data.params.e` is too large or too small a number and feeds no fact",
        ];
        let data = r#""params":{"a":"25","b":"x","c":true,"d":[1],"e":1e300,"f":2}"#;
        let all = format!(r#"{{"skill_id":"a","target_class":"b","success":true,{data}}}"#);
        check(&all, &params);
        let reason = "`data.error` feeds no fact; did you mean `failure_reason`?";
        check(r#"{"skill_id":"a","target_class":"b","success":false,"error":"slip"}"#, &[reason]);
        let list = "`data.params` is no object and feeds no fact";
        let data = r#"{"skill_id":"a","target_class":"b","success":true,"params":[1]}"#;
        check(data, &[list]);
    }
}
