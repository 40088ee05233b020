//! Changes of rules: logs with any sequence of them verify, and false ones are reported.

mod attacks;
mod steps;

use crate::forge::{Log, MANIFEST, report, reported, trusted};
use ipse_bundle::Verdict;
use ipse_ledger::Step;
use ipse_ledger::rules::MAX_DESCRIPTOR_BYTES;
use steps::{FIRST, SECOND, begun, changes, unknown};

/// Verifies a bundle of these positions; returns the report as text.
#[track_caller]
fn good(log: &Log, from: u64, to: u64) -> String {
    let bytes = log.draft_of(from, to, checkpoint(log, to)).pack();
    let report = report(&bytes, &trusted(), &[]);
    assert!(report.passed(), "{from}..{to}:\n{}", reported(&report));
    reported(&report)
}

/// The checkpoint at a position: a pass ends right before its record.
fn checkpoint(log: &Log, to: u64) -> u64 {
    let mut rows = log.rows[..to as usize].iter();
    let record = rows.rfind(|row| row.entry.event_type == "consolidation_run");
    record.map_or(0, |row| row.entry.seq.0 - 1)
}

fn whole(log: &Log) -> String {
    good(log, 1, log.rows.len() as u64)
}

#[track_caller]
fn has(text: &str, wanted: &str) {
    assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
}

#[test]
fn changes_there_and_back_verify() {
    let log = changes();
    let text = whole(&log);
    has(&text, "PASS  rules: 4 changes of rules: each is allowed, and its pass follows it");
    has(&text, "PASS  passes: 7 pass records");
    has(&text, "facts re-derived from the events up to seq 33: equal, byte for byte");
    let facts = log.facts(33);
    assert!(facts.contains(FIRST.version()) && !facts.contains(SECOND.version()), "{facts}");
}

/// Right before a change, at it, at its pass, after it and between changes.
#[test]
fn every_beginning_and_every_end_verifies() {
    let log = changes();
    let end = log.rows.len() as u64;
    for (to, rules) in [(10, FIRST), (11, FIRST), (12, SECOND), (18, SECOND), (19, FIRST)] {
        let draft = log.draft_of(1, to, checkpoint(&log, to));
        assert_eq!(draft.rule_set, rules.descriptor(), "to {to}");
        let lines = draft.facts.unwrap();
        assert!(lines.lines().all(|line| line.contains(rules.version())), "to {to}: {lines}");
    }
    for seq in 0..=end {
        good(&log, 1, seq);
        has(&good(&log, seq + 1, end), "PASS  rules: 4 changes of rules");
    }
    // A range between two changes has all earlier steps and no later one.
    for (from, to, changes) in [(12, 17, "1 change"), (19, 24, "2 changes"), (26, 28, "3 changes")]
    {
        has(&good(&log, from, to), &format!("PASS  rules: {changes} of rules"));
    }
}

#[test]
fn a_log_may_begin_with_other_rules() {
    let log = begun();
    for seq in 0..=log.rows.len() as u64 {
        good(&log, 1, seq);
        good(&log, seq + 1, log.rows.len() as u64);
    }
    let facts = log.facts(checkpoint(&log, 10));
    assert!(!facts.is_empty() && facts.lines().all(|line| line.contains(SECOND.version())));
}

#[test]
fn a_change_before_the_first_event_of_a_producer_verifies() {
    let mut log = Log::new(MANIFEST);
    log.propose(SECOND);
    log.activate(SECOND);
    log.back(FIRST);
    log.events(6..=9);
    log.pass();
    whole(&log);
}

#[test]
fn the_largest_descriptor_and_unknown_rules_may_be_proposed() {
    let file = "x".repeat(MAX_DESCRIPTOR_BYTES);
    let mut log = changes();
    log.step(unknown("v9", &file), Step::Proposed { file: file.clone() });
    log.step(unknown("v9", &file), Step::Withdrawn);
    log.step(unknown("v9", &file), Step::Proposed { file: file.clone() });
    whole(&log);
}

/// Takes a random allowed step: rules, and which steps are open, follow from the log.
fn random_log(seed: u64) -> Log {
    let (mut log, mut state) = (Log::new(MANIFEST), seed | 1);
    let (mut active, mut open) = (vec![FIRST], Vec::new());
    for _ in 0..24 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let now = *active.last().unwrap();
        let other = if now == FIRST { SECOND } else { FIRST };
        let is_open = open.contains(&other);
        match state % 6 {
            0 | 1 if is_open => {
                log.activate(other);
                open.retain(|rules| *rules != other);
                active.push(other);
            }
            0 | 1 => {
                log.propose(other);
                open.push(other);
            }
            2 if is_open => {
                log.withdraw(other);
                open.retain(|rules| *rules != other);
            }
            3 if active.len() > 1 => {
                active.pop();
                log.back(*active.last().unwrap());
            }
            4 if !log.rows.is_empty() => {
                log.pass();
            }
            _ => log.events(log.next_seq()..=log.next_seq() + 1),
        }
    }
    log
}

#[test]
fn any_sequence_of_changes_verifies() {
    let mut most = 0;
    for seed in 1..=40_u64 {
        let log = random_log(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        whole(&log);
        most = most.max(log.rules.len());
    }
    assert!(most >= 6, "{most}");
}

#[test]
fn every_attack_on_rules_is_reported_at_its_place() {
    let wrong: Vec<String> = attacks::ATTACKS
        .iter()
        .filter_map(|attack| Some(format!("{}: {}", attack.name, attack.try_it().err()?)))
        .collect();
    assert!(wrong.is_empty(), "{} attacks:\n{}", wrong.len(), wrong.join("\n"));
    let names: std::collections::BTreeSet<&str> =
        attacks::ATTACKS.iter().map(|attack| attack.name).collect();
    assert_eq!(names.len(), attacks::ATTACKS.len());
    assert!(names.len() >= 40, "{}", names.len());
}

/// One false step is one failure: the checks that depend on it are skipped.
#[test]
fn a_false_approval_is_one_failure() {
    let mut log = changes();
    log.approve_again(11, &crate::forge::robot(), |_| {});
    let report = report(&log.draft().pack(), &trusted(), &[]);
    let lines = report.lines.iter().filter(|line| line.verdict == Verdict::Fail);
    let places: Vec<&str> = lines.map(|line| line.place.as_str()).collect();
    assert_eq!(places, ["rules event at seq 11"], "{}", reported(&report));
}
