//! Entries and statements: each has one form, and any other form is rejected.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_core::{Digest, EventRef, Identity, Seq, Time};
use ipse_ledger::dsse::Statement;
use ipse_ledger::{Bundled, Certificate, Entry, SentStatement, entry_hash};
use proptest::prelude::*;

fn entry() -> Entry {
    Entry {
        seq: Seq(7),
        event_ref: EventRef([0xab; 16]),
        time: Time::parse("2026-05-06T10:00:00.5Z").unwrap(),
        event_type: "a \"b\"".into(),
        digest: Digest([0x0f; 32]),
    }
}

#[test]
fn an_entry_has_one_form() {
    let want = format!(
        "{{\"digest\":\"{}\",\"event_ref\":\"ev_{}\",\"seq\":7,\
         \"time\":\"2026-05-06T10:00:00.500000Z\",\"type\":\"a \\\"b\\\"\"}}",
        "0f".repeat(32),
        "ab".repeat(16)
    );
    assert_eq!(entry().canonical(), want);
    assert_eq!(Entry::parse(want.as_bytes()), Some(entry()));
    assert_eq!(entry().hash(), entry_hash(want.as_bytes()));
    for bad in [
        want.replace("\"seq\":7", "\"seq\":7.0"),
        want.replace("\"seq\":7", "\"seq\":-7"),
        want.replace(".500000Z", ".5Z"),
        want.replace("0f0f", "0F0F"),
        want.replace('{', "{ "),
        want.replace("}", ",\"x\":1}"),
        want.replace("\"seq\":7,", ""),
        want.replace("a \\\"b\\\"", ""),
        want.replace("a \\\"b\\\"", "a\\u0085"),
        want.replace("a \\\"b\\\"", &"t".repeat(257)),
        format!("{want}\n"),
    ] {
        assert_eq!(Entry::parse(bad.as_bytes()), None, "{bad}");
    }
}

#[test]
fn claims_are_read_as_what_they_are_and_as_nothing_else() {
    let certificate = Certificate { manifest: "{\"agent_id\":\"a\"}".into() };
    let sent = SentStatement {
        identity: Identity([1; 32]),
        events: vec![(EventRef([2; 16]), Digest([3; 32]))],
    };
    let bundled = Bundled {
        identity: Identity([1; 32]),
        sums: Digest([4; 32]),
        from: Seq(1),
        to: Seq(9),
        size: 12,
        checkpoint: Some(Seq(8)),
    };
    let part = Bundled { from: Seq(2), checkpoint: None, ..bundled.clone() };
    assert_eq!(Certificate::read(&certificate.statement()), Some(certificate.clone()));
    assert_eq!(SentStatement::read(&sent.statement()), Some(sent.clone()));
    assert_eq!(Bundled::read(&bundled.statement()), Some(bundled.clone()));
    assert_eq!(Bundled::read(&part.statement()), Some(part));
    let statements = [certificate.statement(), sent.statement(), bundled.statement()];
    for statement in &statements {
        let read = [
            Certificate::read(statement).is_some(),
            SentStatement::read(statement).is_some(),
            Bundled::read(statement).is_some(),
        ];
        assert_eq!(read.iter().filter(|read| **read).count(), 1);
        for changed in changed(statement) {
            assert_eq!(Certificate::read(&changed), None);
            assert_eq!(Bundled::read(&changed), None);
            assert!(SentStatement::read(&changed).is_none_or(|read| read != sent), "{changed:?}");
        }
    }
    let many = vec![(EventRef([2; 16]), Digest([3; 32])); SentStatement::MAX_EVENTS + 1];
    let twice = vec![(EventRef([2; 16]), Digest([3; 32])), (EventRef([2; 16]), Digest([4; 32]))];
    for events in [vec![], many, twice] {
        assert_eq!(
            SentStatement::read(&SentStatement { events, ..sent.clone() }.statement()),
            None
        );
    }
}

fn changed(statement: &Statement) -> Vec<Statement> {
    let subject = ("another".to_string(), "0".repeat(64));
    let more = [statement.subjects.as_slice(), std::slice::from_ref(&subject)].concat();
    vec![
        Statement { subjects: more, ..statement.clone() },
        Statement { subjects: vec![subject], ..statement.clone() },
        Statement { predicate_type: "urn:ipse:else".into(), ..statement.clone() },
        Statement { predicate: "{}".into(), ..statement.clone() },
        Statement { predicate: statement.predicate.replace('}', ",\"z\":1}"), ..statement.clone() },
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_an_entry_or_none(bytes: Vec<u8>, text in "\\PC{1,80}") {
        prop_assert!(Entry::parse(&bytes).is_none());
        let entry = Entry { event_type: text, ..entry() };
        let again = Entry::parse(entry.canonical().as_bytes());
        prop_assert_eq!(again, Some(entry));
    }
}
