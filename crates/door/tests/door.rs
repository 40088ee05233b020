//! The door's contract: every refusal with its field and rule, and what is made of what passes.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_core::{Columns, Micro, Outcome};
use ipse_door::{Origin, Refusal, Rule, admit, columns_of, house_event, read_stored};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn producer(line: &str) -> Result<ipse_core::Admitted, Refusal> {
    admit(line.as_bytes(), Origin::Producer, || [0xab; 16])
}

fn vectors(text: &str) -> impl Iterator<Item = serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn a_stored_event_is_canonical_and_its_writer_may_write_its_type() {
    let stored = |source: &str, kind: &str| {
        let head = r#"{"data":{},"id":"1","time":"2026-05-06T10:00:00Z","#;
        let line = format!(r#"{head}"source":"{source}","type":"{kind}"}}"#);
        admit(line.as_bytes(), Origin::House, || [7; 16]).unwrap()
    };
    for (source, kind, fault) in [
        ("arm", "note", None),
        ("ipse", "forget", None),
        ("ipse", "note", Some("has the source of ipse's own events, but not one of their types")),
        ("arm", "forget", Some("has a type that only ipse may write, but another source")),
    ] {
        let event = stored(source, kind);
        let read = read_stored(event.canonical.as_bytes());
        assert_eq!(read.err().as_deref(), fault, "{kind} of {source}");
    }
    let canonical = stored("arm", "note").canonical;
    let spaced = canonical.replace("\"id\":", "\"id\": ");
    let salt = canonical.find("\"salt\"").unwrap();
    let unsalted = format!("{}{}", &canonical[..salt], &canonical[salt + 42..]);
    for other in [spaced, unsalted] {
        assert_eq!(read_stored(other.as_bytes()).unwrap_err(), "is not in canonical form");
    }
    assert!(read_stored(b"{}").unwrap_err().contains("every event must have it"));
}

#[test]
fn every_refused_line_names_its_field_and_rule() {
    let mut seen = BTreeSet::new();
    for vector in vectors(include_str!("../../../vectors/door/refused.jsonl")) {
        let line = vector["line"].as_str().unwrap();
        let refusal = producer(line).expect_err(line);
        let got = (refusal.field.as_str(), refusal.rule.code());
        let want = (vector["field"].as_str().unwrap(), vector["rule"].as_str().unwrap());
        assert_eq!(got, want, "{}", &line[..line.len().min(200)]);
        assert!(!refusal.message.is_empty());
        seen.insert(refusal.rule.code());
    }
    assert!(producer("\u{0}").is_err());
    assert_eq!(admit(b"\xff", Origin::Producer, || [0; 16]).unwrap_err().rule, Rule::InvalidUtf8);
    // Made elsewhere: before the door, by the store, by the reader of files, and the case above.
    seen.insert("data_and_base64");
    seen.extend(["conflict", "forgotten", "unsigned", "wrong_signature"]);
    seen.extend(["time_ahead", "source_not_allowed"]);
    seen.extend(["truncated", "invalid_utf8"]);
    let all: BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.code()).collect();
    assert_eq!(seen, all, "every rule has a vector");
}

#[test]
fn every_accepted_line_becomes_canonical_and_stays_so() {
    for vector in vectors(include_str!("../../../vectors/door/accepted.jsonl")) {
        let line = vector["line"].as_str().unwrap();
        let once = producer(line).expect(line);
        let again = admit(once.canonical.as_bytes(), Origin::Producer, || unreachable!()).unwrap();
        assert_eq!(once, again);
        let theirs: serde_json::Value = serde_json::from_str(&once.canonical).unwrap();
        let theirs = serde_json_canonicalizer::to_string(&theirs).unwrap();
        assert_eq!(once.canonical, theirs);
        assert_eq!(columns_of(&once.canonical), Some(once.columns));
    }
}

#[test]
fn what_is_made_of_an_event() {
    let line = r#"{"time":"2026-05-06T10:00:00Z","kind":"execution_result","id":"7","zz":1,
        "data":{"success":false,"env":"e","environment":7,"params":{"f":24.70,"bad":"x","":1}}}"#;
    let event = producer(line).unwrap();
    let salt = "ab".repeat(16);
    assert_eq!(
        event.canonical,
        format!(
            "{{\"data\":{{\"env\":\"e\",\"environment\":7,\"params\":{{\"\":1,\"bad\":\"x\",\
             \"f\":24.7}},\"success\":false}},\"id\":\"7\",\"salt\":\"{salt}\",\
             \"source\":\"import\",\"specversion\":\"1.0\",\"time\":\"2026-05-06T10:00:00Z\",\
             \"type\":\"execution_result\",\"zz\":1}}"
        )
    );
    assert_eq!(event.canonical[event.salt_at.clone()], salt);
    assert_eq!(event.digest.0, ipse_core::sha256(&[event.canonical.as_bytes()]));
    assert_eq!(event.event_ref, ipse_core::EventRef::new("import", "7"));
    let columns = Columns::decode(&event.columns).unwrap();
    assert_eq!(columns.outcome, Some(Outcome::Failed));
    assert_eq!(columns.environment, Some("e"));
    assert_eq!(columns.params, [("f", Micro::new(24_700_000).unwrap())]);
}

#[test]
fn equal_content_is_told_whatever_the_salt() {
    let event = |salt: &str, data: &str| {
        let salt = if salt.is_empty() { String::new() } else { format!(",\"salt\":\"{salt}\"") };
        producer(&format!(
            "{{\"id\":\"1\",\"type\":\"n\",\"time\":\"2026-05-06T10:00:00Z\"{salt},\
             \"data\":{data},\"ä\":\"salt\",\"a\":{{\"salt\":1}}}}"
        ))
        .unwrap()
    };
    let stored = event(&"0".repeat(32), "{\"x\":1}");
    assert!(event("", "{\"x\":1.0}").says_the_same_as(&stored.canonical));
    assert!(event(&"F".repeat(32), "{ \"x\":1}").says_the_same_as(&stored.canonical));
    assert!(!event("", "{\"x\":2}").says_the_same_as(&stored.canonical));
    assert!(!event("", "{\"x\":10}").says_the_same_as(&stored.canonical));
}

#[test]
fn the_house_may_use_its_own_types_and_source() {
    let line = r#"{"id":"p","source":"ipse","type":"consolidation_run",
        "time":"2026-05-06T10:00:00Z","data":{}}"#;
    let read = admit(line.as_bytes(), Origin::House, || [0xab; 16]).unwrap();
    assert!(producer(line).is_err());
    let made = house_event("consolidation_run", "p", read.time, "{}", [0xab; 16]);
    assert_eq!(made, read, "made or read, an event of the house is the same");
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(bytes: Vec<u8>) {
        let _ = admit(&bytes, Origin::Producer, || [0; 16]);
    }

    #[test]
    fn a_damaged_event_gets_an_answer(at in 0_usize..120, byte: u8) {
        let mut line = br#"{"id":"1","type":"execution_result","time":"2026-05-06T10:00:00Z","data":
            {"skill_id":"s","params":{"f":1.5},"object":{"a":"b"}}}"#.to_vec();
        line[at] = byte;
        if let Ok(event) = admit(&line, Origin::Producer, || [0; 16]) {
            prop_assert!(Columns::decode(&event.columns).is_some());
            prop_assert_eq!(columns_of(&event.canonical), Some(event.columns));
        }
    }
}
