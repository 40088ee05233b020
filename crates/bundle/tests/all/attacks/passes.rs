//! Attacks on passes and facts: false records, and facts that the log does not give.

use super::{Attack, Case, draft, refused};
use crate::forge::{Log, MANIFEST, PassData, salt, time, week};
use ipse_door::house_event;

/// A log with one correct and one false pass record; both are folded.
fn lying(change: fn(&mut PassData)) -> Case {
    let mut log = Log::new(MANIFEST);
    log.events(1..=8);
    log.pass();
    log.events(10..=17);
    log.pass_with(change);
    Case::of(log.draft().pack())
}

/// A log with one pass whose record is changed.
fn written(change: fn(&str) -> String) -> Case {
    let mut log = Log::new(MANIFEST);
    log.events(1..=8);
    let data = log.pass_data();
    log.checkpoint = 8;
    let json = change(&data.json());
    log.push(&house_event("consolidation_run", &data.id, time(9), &json, salt(9)));
    Case::of(log.draft().pack())
}

/// A week with a line of facts changed.
fn fact(number: usize, change: fn(&str) -> String) -> Case {
    let mut draft = week().draft();
    let facts = draft.facts.clone().unwrap();
    let mut lines: Vec<String> = facts.split_inclusive('\n').map(str::to_string).collect();
    lines[number - 1] = change(&lines[number - 1]);
    draft.facts = Some(lines.concat());
    Case::of(draft.pack())
}

const LIE: &str = "pass record at seq 18";

pub const ATTACKS: &[Attack] = &[
    refused("pass that begins later", LIE, "leaves a gap or overlaps", || {
        lying(|data| {
            data.first = 11;
            data.id = "pass:v1:11-17".into();
        })
    }),
    refused("pass that begins later, before the range", LIE, "leaves a gap or overlaps", || {
        let mut log = Log::new(MANIFEST);
        log.events(1..=8);
        log.pass();
        log.events(10..=17);
        log.pass_with(|data| {
            data.first = 11;
            data.id = "pass:v1:11-17".into();
        });
        Case::of(log.draft_of(12, 18, 0).pack())
    }),
    refused("pass that overlaps", LIE, "leaves a gap or overlaps", || {
        lying(|data| {
            data.first = 5;
            data.id = "pass:v1:5-17".into();
        })
    }),
    refused("pass that ends earlier", LIE, "does not end directly before it", || {
        lying(|data| {
            data.last = 16;
            data.id = "pass:v1:9-16".into();
        })
    }),
    refused("pass that ends later", LIE, "does not end directly before it", || {
        lying(|data| {
            data.last = 18;
            data.id = "pass:v1:9-18".into();
        })
    }),
    refused("pass that counts more", LIE, "its number of events is not", || {
        lying(|data| data.processed += 1)
    }),
    refused("pass that counts fewer", LIE, "its number of events is not", || {
        lying(|data| data.processed -= 1)
    }),
    refused("pass that says it skipped more", LIE, "its number of skipped events", || {
        lying(|data| data.skipped_sum += 1)
    }),
    refused("pass that skips more than there is", LIE, "its number of skipped events", || {
        lying(|data| {
            data.skipped_sum = 99;
            data.skipped.insert("x".into(), [("no_object", 97)].into());
        })
    }),
    refused("pass that skips another type", LIE, "its list of skipped events", || {
        lying(|data| {
            let reasons = data.skipped.remove("note").unwrap();
            data.skipped.insert("incident".into(), reasons);
        })
    }),
    refused("pass that skips for another reason", LIE, "its list of skipped events", || {
        lying(|data| {
            let n = data.skipped["note"]["no_object"];
            data.skipped.insert("note".into(), [("no_zone", n)].into());
        })
    }),
    refused("pass that skips nothing", LIE, "its list of skipped events", || {
        lying(|data| {
            data.skipped.clear();
            data.skipped_sum = 0;
        })
    }),
    refused("pass that hides a type among others", LIE, "its list of skipped events", || {
        lying(|data| {
            let reasons = data.skipped.remove("note").unwrap();
            data.skipped.insert("ipse.other".into(), reasons);
        })
    }),
    refused("pass of another rule version", LIE, "rules that were not in force", || {
        lying(|data| {
            data.rule_version = "v2".into();
            data.id = "pass:v2:9-17".into();
        })
    }),
    refused("pass of another rule set", LIE, "rules that were not in force", || {
        lying(|data| data.rule_set = "0".repeat(64))
    }),
    refused("pass that names another first event", LIE, "its first and last events", || {
        lying(|data| data.first_ref = data.last_ref)
    }),
    refused("pass that names another last event", LIE, "its first and last events", || {
        lying(|data| data.last_ref = data.first_ref)
    }),
    refused("pass under another id", LIE, "its id is not pass:", || {
        lying(|data| data.id = "pass:v1:9-16".into())
    }),
    refused("pass that cannot be read", "pass record at seq 65", "cannot be read", || {
        let mut log = week();
        log.push(&house_event(
            "consolidation_run",
            "pass:v1:63-64",
            crate::forge::time(65),
            "{\"first_seq\":63}",
            [9; 16],
        ));
        Case::of(log.draft().pack())
    }),
    refused("first pass that begins later", "pass record at seq 9", "leaves a gap", || {
        let mut log = Log::new(MANIFEST);
        log.events(1..=8);
        log.checkpoint = 2;
        log.pass();
        Case::of(log.draft().pack())
    }),
    refused("pass from before the first event", LIE, "leaves a gap or overlaps", || {
        lying(|data| {
            data.first = 0;
            data.id = "pass:v1:0-17".into();
        })
    }),
    refused("pass record with a member more", "pass record at seq 9", "cannot be read", || {
        written(|json| json.replace("\"trigger\":", "\"time\":1,\"trigger\":"))
    }),
    refused("pass for no reason", "pass record at seq 9", "cannot be read", || {
        written(|json| json.replace("\"manual\"", "\"whim\""))
    }),
    refused("pass that touched fewer than none", "pass record at seq 9", "cannot be read", || {
        written(|json| json.replace("\"rows_touched\":1", "\"rows_touched\":-1"))
    }),
    refused(
        "pass that counts what was forgotten",
        "pass record at seq 43",
        "its number of events is not",
        || {
            let mut log = Log::new(MANIFEST);
            log.events(1..=41);
            log.forget(&[3, 7]);
            log.pass_with(|data| data.processed += 1);
            Case::of(log.draft().pack())
        },
    ),
    refused("another rule set", "rule-set.json", "an unknown rule set", || {
        draft(|draft| draft.rule_set = draft.rule_set.replace("v1", "v2"))
    }),
    refused("rule set with a line end", "rule-set.json", "an unknown rule set", || {
        draft(|draft| draft.rule_set += "\n")
    }),
    refused(
        "fact with dropped evidence",
        "facts.jsonl, line 2: object",
        "differs from the fact",
        || fact(2, |line| line.replacen("\"n\":", "\"n\":1", 1)),
    ),
    refused(
        "fact with another value",
        "facts.jsonl, line 4: zone_risk",
        "differs from the fact",
        || fact(4, |line| line.replacen("\"confidence\":0", "\"confidence\":1", 1)),
    ),
    refused(
        "fact with another time",
        "facts.jsonl, line 1: inter",
        "differs from the fact",
        || fact(1, |line| line.replacen("\"last_updated\":\"2026", "\"last_updated\":\"2027", 1)),
    ),
    refused("fact with white space", "facts.jsonl, line 1: inter", "differs from the fact", || {
        fact(1, |line| line.replacen(":{", ": {", 1))
    }),
    refused(
        "fact left out",
        "facts.jsonl",
        "object_property fact `cup + mass_g` is missing",
        || fact(2, |_| String::new()),
    ),
    refused("last fact left out", "facts.jsonl", "zone_risk fact `dock` is missing", || {
        fact(4, |_| String::new())
    }),
    refused(
        "fact without evidence",
        "facts.jsonl, line 5: zone_risk fact `roof`",
        "cannot be derived",
        || fact(4, |line| format!("{line}{}", line.replacen("dock", "roof", 1))),
    ),
    refused("extra fact among others", "facts.jsonl, line 2: object", "cannot be derived", || {
        fact(1, |line| {
            let extra = r#"{"fact_key":"a + b","fact_kind":"object_property","value":{}}"#;
            format!("{line}{extra}\n")
        })
    }),
    refused("fact twice", "facts.jsonl, line 2: inter", "cannot be derived", || {
        fact(1, |line| line.repeat(2))
    }),
    refused(
        "facts in another order",
        "facts.jsonl, line 2: inter",
        "in the order of facts",
        || {
            let mut draft = week().draft();
            let facts = draft.facts.take().unwrap();
            let mut lines: Vec<&str> = facts.split_inclusive('\n').collect();
            lines.swap(0, 1);
            draft.facts = Some(lines.concat());
            Case::of(draft.pack())
        },
    ),
    refused("line that is no fact", "facts.jsonl, line 1", "is not a fact", || {
        fact(1, |line| format!("x\n{line}"))
    }),
    refused("facts without the last line end", "facts.jsonl, line 4", "is not a fact", || {
        fact(4, |line| line.trim_end().to_string())
    }),
    refused("facts of what was forgotten", "facts.jsonl", "differs from the fact", || {
        let mut draft = week().draft();
        let mut log = week();
        log.rows[2].event = Some(crate::forge::event(3).canonical);
        draft.facts = Some(log.facts(62));
        Case::of(draft.pack())
    }),
    refused("facts of a later position", "facts.jsonl", "differs from the fact", || {
        let mut draft = week().draft_of(1, 42, 41);
        draft.facts = Some(week().facts(62));
        Case::of(draft.pack())
    }),
];
