//! Attacks on the log: entries, events, forgetting, and producers' statements.

use super::{Attack, Case, draft, log, refused};
use crate::forge::{Log, MANIFEST, camera, event, operator, producer_event, robot, signer, week};
use ipse_core::EventRef;
use ipse_door::{Origin, admit, house_event};
use ipse_ledger::dsse::{key_id, sign};

/// A week, then an event with these bytes.
fn with_event(json: &str) -> Case {
    let mut log = week();
    log.push(&admit(json.as_bytes(), Origin::House, || [9; 16]).unwrap());
    Case::of(log.draft().pack())
}

/// A week with an event by ipse at the end, with this id.
fn with_own(event_type: &str, id: &str, data: &str) -> Case {
    let mut log = week();
    log.push(&house_event(event_type, id, crate::forge::time(65), data, [9; 16]));
    Case::of(log.draft().pack())
}

/// A week with a statement by the robot.
fn sent(change: fn(&Log, &mut ipse_ledger::SentStatement)) -> Case {
    let mut log = week();
    let mut sent = log.sent(11..=13);
    change(&log, &mut sent);
    log.statements.push(sign(&sent.statement(), &robot()));
    Case::of(log.draft().pack())
}

/// A week with a line of events changed.
fn line(number: usize, change: fn(&str) -> String) -> Case {
    let mut draft = week().draft();
    draft.events[number - 1] = change(&draft.events[number - 1]);
    Case::of(draft.pack())
}

const OTHER: &str = concat!(
    r#"{"agent_id":"other","#,
    r#""commissioned_at":"2026-05-01T00:00:00Z","#,
    r#""ecm_registry_hash":"2222222222222222222222222222222222222222222222222222222222222222","#,
    r#""embodiment":"e","#,
    r#""operator":"o","#,
    r#""policy_hash":"1111111111111111111111111111111111111111111111111111111111111111","#,
    r#""temperament_hash":"3333333333333333333333333333333333333333333333333333333333333333"}"#,
);

/// An envelope with its own signature and that of another one.
fn with_signatures(envelope: &str, other: &str) -> String {
    let signature = other.split_once("\"signatures\":[").unwrap().1.trim_end_matches("]}");
    envelope.replace("}]}", &format!("}},{signature}]}}"))
}

const OTHER_KEY: &str = "no trusted key of that producer has this id";

pub const ATTACKS: &[Attack] = &[
    refused("entry with another type", "events.jsonl, seq 5", "has another type", || {
        log(|log| log.rows[4].entry.event_type = "note".into())
    }),
    refused("entry with another time", "events.jsonl, seq 5", "has another time", || {
        log(|log| log.rows[4].entry.time = crate::forge::time(6))
    }),
    refused(
        "entry with another digest",
        "events.jsonl, line 4",
        "does not match the digest",
        || log(|log| log.rows[4].entry.digest.0[0] ^= 1),
    ),
    refused("entry with another name", "events.jsonl, line 4", "has no entry", || {
        log(|log| log.rows[4].entry.event_ref = EventRef::new("a", "b"))
    }),
    refused("entries reordered", "entries.jsonl, line 5", "does not follow", || {
        draft(|draft| draft.entries.swap(4, 5))
    }),
    refused("events reordered", "events.jsonl, line 6", "comes after seq", || {
        draft(|draft| draft.events.swap(4, 5))
    }),
    refused("log reordered under a signed head", "entries.jsonl", "their root is not", || {
        let mut other = week();
        other.rows.swap(4, 5);
        for (seq, row) in (1..).zip(&mut other.rows) {
            row.entry.seq = ipse_core::Seq(seq);
        }
        let mut draft = other.draft();
        draft.head = week().note(64);
        Case::of(draft.pack())
    }),
    refused("entry left out", "entries.jsonl, line 5", "does not follow", || {
        draft(|draft| drop(draft.entries.remove(4)))
    }),
    refused("last entry left out", "entries.jsonl", "covers 64, but there are 63", || {
        draft(|draft| drop(draft.entries.pop()))
    }),
    refused("entry with white space", "entries.jsonl, line 1", "not an entry in canonical", || {
        draft(|draft| draft.entries[0] = draft.entries[0].replace(":\"", ": \""))
    }),
    refused("entry with another member", "entries.jsonl, line 1", "not an entry", || {
        draft(|draft| draft.entries[0] = draft.entries[0].replacen('{', "{\"a\":1,", 1))
    }),
    refused("entries with CRLF", "entries.jsonl, line 1", "not an entry", || {
        draft(|draft| draft.entries[0] = draft.entries[0].replace('\n', "\r\n"))
    }),
    refused("entry of great length", "entries.jsonl, line 1", "longer than the limit", || {
        draft(|draft| draft.entries[0] = "x".repeat(100_000) + "\n")
    }),
    refused("replay of an event", "entries.jsonl, line 65", "is a duplicate of seq 1", || {
        log(|log| {
            let _ = log.push(&event(1));
        })
    }),
    refused("event of another log", "events.jsonl, line 4", "has no entry", || {
        draft(|draft| draft.events[3] = event(300).canonical + "\n")
    }),
    refused(
        "same name, other content",
        "events.jsonl, line 1",
        "does not match the digest",
        || draft(|draft| draft.events[0] = draft.events[0].replace("slip 1", "slip 2")),
    ),
    refused("event in other form", "events.jsonl, line 1", "not in canonical form", || {
        line(1, |line| line.replace(":{", ": {"))
    }),
    refused("event without its salt", "events.jsonl, line 1", "not in canonical form", || {
        line(1, |line| {
            let at = line.find("\"salt\"").unwrap();
            let rest = &line[at + "\"salt\":\"0123456789abcdef0123456789abcdef\",".len()..];
            format!("{}{rest}", &line[..at])
        })
    }),
    refused("event with CRLF", "events.jsonl, line 1", "not in canonical form", || {
        line(1, |line| line.replace('\n', "\r\n"))
    }),
    refused("empty line among events", "events.jsonl, line 1", "not valid JSON", || {
        line(1, |line| format!("\n{line}"))
    }),
    refused("name twice in one object", "events.jsonl, line 1", "duplicate_key", || {
        line(1, |line| line.replacen("\"data\"", "\"data\":{},\"data\"", 1))
    }),
    refused("event too large", "events.jsonl, line 1", "longer than the limit", || {
        line(1, |line| line.replace("slip", &"x".repeat(70_000)))
    }),
    refused("events without the last line end", "events.jsonl, line 61", "line feed", || {
        line(61, |line| line.trim_end().to_string())
    }),
    refused(
        "producer with ipse's source",
        "events.jsonl, line 62",
        "but not one of their types",
        || with_event(r#"{"id":"x","source":"ipse","type":"note","time":"2026-05-06T10:00:00Z"}"#),
    ),
    refused("intent written by a producer", "events.jsonl, line 62", "only ipse may write", || {
        with_event(r#"{"id":"x","source":"s","type":"intent","time":"2026-05-06T10:00:00Z"}"#)
    }),
    refused("forget event of a producer", "events.jsonl, line 62", "only ipse may write", || {
        with_event(r#"{"id":"x","source":"s","type":"forget","time":"2026-05-06T10:00:00Z"}"#)
    }),
    refused("pass record of a producer", "events.jsonl, line 62", "only ipse may write", || {
        let event =
            r#"{"id":"x","source":"s","type":"consolidation_run","time":"2026-05-06T10:00:00Z"}"#;
        with_event(event)
    }),
    refused("reserved type of a producer", "events.jsonl, line 62", "only ipse may write", || {
        with_event(r#"{"id":"x","source":"s","type":"ipse.x","time":"2026-05-06T10:00:00Z"}"#)
    }),
    refused("content gone without a word", "seq 5", "no later forget event names it", || {
        log(|log| log.rows[4].event = None)
    }),
    refused("content put back", "forget event at seq 43", "but its content exists", || {
        log(|log| log.rows[2].event = Some(event(3).canonical))
    }),
    refused(
        "forget of an unknown event",
        "forget event at seq 65",
        "but its content exists",
        || {
            log(|log| {
                let _ = log.say_forgotten(&[EventRef::new("a", "b")]);
            })
        },
    ),
    refused("forget of what is there", "forget event at seq 65", "but its content exists", || {
        log(|log| {
            let _ = log.say_forgotten(&[log.name(9)]);
        })
    }),
    refused("forget of a later event", "seq 66", "no later forget event names it", || {
        log(|log| {
            let later = event(200);
            log.say_forgotten(&[later.event_ref]);
            let seq = log.push(&later);
            log.rows[seq as usize - 1].event = None;
        })
    }),
    refused("forget of a pass record", "forget event at seq 65", "but its content exists", || {
        log(|log| {
            let _ = log.say_forgotten(&[log.name(21)]);
        })
    }),
    refused("forgotten pass record", "events.jsonl, seq 21", "cannot be forgotten", || {
        log(|log| log.forget(&[21]))
    }),
    refused("forgotten forget event", "events.jsonl, seq 43", "cannot be forgotten", || {
        log(|log| log.forget(&[43]))
    }),
    refused("forget under another id", "forget event at seq 65", "not forget:65", || {
        with_own("forget", "forget:64", "{\"event_refs\":[]}")
    }),
    refused("forget without names", "forget event at seq 65", "cannot be read", || {
        with_own("forget", "forget:65", "{}")
    }),
    refused("forget after the range left out", "events.jsonl, seq 43", "is missing", || {
        let mut draft = week().draft_of(1, 42, 41);
        draft.events.pop();
        Case::of(draft.pack())
    }),
    refused("event outside of the range", "events.jsonl, seq 44", "outside of the range", || {
        let mut draft = week().draft_of(1, 44, 41);
        draft.to = 42;
        Case::of(draft.pack())
    }),
    refused("event before the range", "events.jsonl, seq 21", "outside of the range", || {
        let mut draft = week().draft_of(21, 44, 0);
        draft.from = 22;
        Case::of(draft.pack())
    }),
    refused(
        "pass record outside named as forgotten",
        "events.jsonl, seq 21",
        "cannot be forgotten",
        || {
            let mut log = week();
            log.say_forgotten(&[log.name(21)]);
            Case::of(log.draft_of(44, 65, 0).pack())
        },
    ),
    refused("statement to another identity", "signatures/000003", "another identity", || {
        sent(|_, sent| sent.identity = crate::forge::identity_of(OTHER))
    }),
    refused("log moved to another identity", "certificate.dsse.json", "another manifest", || {
        let mut draft = week().draft();
        draft.manifest = OTHER.into();
        Case::of(draft.pack())
    }),
    refused("statement over other content", "signatures/000003", "with other content", || {
        sent(|_, sent| sent.events[0].1.0[0] ^= 1)
    }),
    refused(
        "statement twice",
        "signatures/000003",
        "duplicate of signatures/000001.dsse.json",
        || log(|log| log.statements.push(log.statements[0].clone())),
    ),
    refused("statement twice, with a member more", "signatures/000003", "000001.dsse.json", || {
        log(|log| log.statements.push(log.statements[0].replacen('{', "{\"a\":1,", 1)))
    }),
    refused("statement twice, with white space", "signatures/000003", "is a duplicate of", || {
        log(|log| log.statements.push(log.statements[1].replace(':', ": ")))
    }),
    refused("statement twice, signed twice", "signatures/000003", "is a duplicate of", || {
        log(|log| log.statements.push(with_signatures(&log.statements[0], &log.statements[0])))
    }),
    refused("statement of a stranger twice", "signatures/000004", "000003.dsse.json", || {
        log(|log| {
            log.signed_by(&signer("stranger", 66), 1..=2);
            log.statements.push(log.statements[2].replacen('{', "{\"a\":1,", 1));
        })
    }),
    refused("statement again beside a stranger's name", "signatures", "by stranger+", || {
        log(|log| {
            let other = sign(&log.sent(1..=10).statement(), &signer("stranger", 66));
            log.statements.push(with_signatures(&log.statements[0], &other));
        })
    })
    .in_vain(),
    refused("statement by the operator", "signatures/000003", "no producer's key", || {
        log(|log| log.signed_by(&operator(), 1..=2))
    }),
    refused("statement by a stranger", "signatures", "1 statement by stranger+", || {
        log(|log| log.signed_by(&signer("stranger", 66), 1..=2))
    })
    .in_vain(),
    refused("statement by another key of that name", "signatures/000003", OTHER_KEY, || {
        log(|log| log.signed_by(&signer("robot-7", 66), 1..=2))
    }),
    refused("statement with a changed key id", "signatures/000001", OTHER_KEY, || {
        log(|log| {
            let id = key_id(&robot().public());
            log.statements[0] = log.statements[0].replace(&id, "robot-7+00000000");
        })
    }),
    refused("statement with a key id without an id", "signatures/000001", OTHER_KEY, || {
        log(|log| {
            let id = key_id(&robot().public());
            log.statements[0] = log.statements[0].replace(&id, "robot-7");
        })
    }),
    refused("statement beside another key of that name", "signatures/000001", OTHER_KEY, || {
        log(|log| {
            let other = sign(&log.sent(1..=10).statement(), &signer("robot-7", 66));
            log.statements[0] = with_signatures(&log.statements[0], &other);
        })
    }),
    refused("statement about events elsewhere", "signatures/000003", "not in this log", || {
        sent(|_, sent| sent.events[0].0 = EventRef::new("a", "b"))
    }),
    refused(
        "statement about a pass record",
        "signatures/000003",
        "not written by a producer",
        || log(|log| log.signed_by(&robot(), 21..=21)),
    ),
    refused(
        "statement that names an event twice",
        "signatures/000003",
        "not a producer's statement",
        || sent(|_, sent| sent.events.push((sent.events[0].0, ipse_core::Digest([7; 32])))),
    ),
    refused("forget event that names nothing", "forget event at seq 65", "cannot be read", || {
        with_own("forget", "forget:65", "{\"event_refs\":[]}")
    }),
    refused("forget event with a member more", "forget event at seq 65", "cannot be read", || {
        with_own(
            "forget",
            "forget:65",
            "{\"event_refs\":[\"ev_00112233445566778899aabbccddeeff\"],\"x\":1}",
        )
    }),
    refused("forgetting without its pass", "forget event at seq 65", "not followed", || {
        log(|log| {
            log.forget(&[3]);
            log.events(66..=67);
            log.pass();
        })
    }),
    refused(
        "forgetting at the end without a pass",
        "forget event at seq 65",
        "not followed",
        || log(|log| log.forget(&[3])),
    ),
    refused("statement under a trusted id", "signatures/000003", "does not match its key", || {
        log(|log| {
            let mut envelope = sign(&log.sent(1..=2).statement(), &robot());
            let other = sign(&log.sent(1..=3).statement(), &robot());
            let at = envelope.find("\"sig\"").unwrap();
            envelope.truncate(at);
            envelope += &other[other.find("\"sig\"").unwrap()..];
            log.statements.push(envelope);
        })
    }),
    refused(
        "statement that is a certificate",
        "signatures/000003",
        "another predicate type",
        || {
            log(|log| {
                let certificate = ipse_ledger::Certificate { manifest: MANIFEST.into() };
                log.statements.push(sign(&certificate.statement(), &camera()));
            })
        },
    ),
    refused("statement about nothing", "signatures/000003", "not a producer's statement", || {
        sent(|_, sent| sent.events.clear())
    }),
    refused("statement that is no envelope", "signatures/000003", "not a signed envelope", || {
        log(|log| log.statements.push("{}".into()))
    }),
    refused("statement of great length", "signatures/000003", "longer than 1048576", || {
        log(|log| log.statements.push("x".repeat(2_000_000)))
    }),
    refused("type with escape codes", "events.jsonl, line 62", "control characters", || {
        let mut log = week();
        let mut event = producer_event(70, "s", "note", "{}");
        event.canonical = event.canonical.replace("note", "no\\u001bte");
        log.push(&event);
        Case::of(log.draft().pack())
    }),
];
