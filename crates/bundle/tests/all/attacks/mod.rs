//! Named attacks: how each is made, and the message that rejects it.
//!
//! Everything below the attack is correct, and signed with the true keys wherever that helps the
//! attacker. So only the intended check can detect it.

mod acts;
mod archives;
mod intents;
mod logs;
mod passes;
mod signatures;

use crate::forge::{Draft, Files, Log, archive, report, reported, trusted, week};
use ipse_bundle::{Verdict, verify};
use std::collections::BTreeSet;

/// The input of a verifier.
pub struct Case {
    pub bytes: Vec<u8>,
    pub trust: String,
    pub anchors: Vec<String>,
}

impl Case {
    pub fn of(bytes: Vec<u8>) -> Self {
        Case { bytes, trust: trusted(), anchors: Vec::new() }
    }

    pub fn anchored(mut self, note: String) -> Self {
        self.anchors.push(note);
        self
    }

    pub fn trusting(mut self, keys: &str) -> Self {
        self.trust = keys.to_string();
        self
    }
}

/// A week with a changed log; everything else is computed from it.
pub fn log(change: fn(&mut Log)) -> Case {
    let mut log = week();
    change(&mut log);
    Case::of(log.draft().pack())
}

/// A week with changed members; the list of hashes is computed from them.
pub fn draft(change: fn(&mut Draft)) -> Case {
    let mut draft = week().draft();
    change(&mut draft);
    Case::of(draft.pack())
}

/// A week with other members before the list of hashes, which is computed from them.
pub fn listed(change: fn(&mut Files)) -> Case {
    let draft = week().draft();
    let mut files = draft.members();
    change(&mut files);
    Case::of(archive(&draft.signed(files)))
}

/// A week with other bytes.
pub fn bytes(change: fn(&mut Vec<u8>)) -> Case {
    let mut bytes = week().draft().pack();
    change(&mut bytes);
    Case::of(bytes)
}

/// One attack: its name, the exit code, and the place and message in the report.
pub struct Attack {
    pub name: &'static str,
    exit: u8,
    place: &'static str,
    words: &'static str,
    make: fn() -> Case,
}

/// An attack that fails verification.
pub const fn refused(
    name: &'static str,
    place: &'static str,
    words: &'static str,
    make: fn() -> Case,
) -> Attack {
    Attack { name, exit: 1, place, words, make }
}

impl Attack {
    /// The keys or anchors are rejected before verification.
    pub const fn at_once(mut self) -> Self {
        self.exit = 2;
        self
    }

    /// It passes verification, and the report mentions it.
    pub const fn in_vain(mut self) -> Self {
        self.exit = 0;
        self
    }

    pub fn try_it(&self) -> Result<(), String> {
        let case = (self.make)();
        let trust = match crate::forge::trust_of(&case.trust) {
            Ok(trust) => trust,
            Err(error) if self.exit == 2 && error.to_string().contains(self.words) => return Ok(()),
            Err(error) => return Err(format!("the keys cannot be read: {error}")),
        };
        let report = verify(&case.bytes, &trust, &case.anchors, &mut |_, _| {}).unwrap();
        let exit = if report.passed() { 0 } else { 1 };
        let verdict = if self.exit == 0 { Verdict::Limit } else { Verdict::Fail };
        let mut lines = report.lines.iter().filter(|line| line.verdict == verdict);
        let fits = |line: &ipse_bundle::Line| {
            line.place.starts_with(self.place) && line.message.contains(self.words)
        };
        // The first failure must be the expected one. Others may follow from it.
        let found = if exit == 0 { lines.any(fits) } else { lines.next().is_some_and(fits) };
        if exit == self.exit && found {
            return Ok(());
        }
        let (want, place, words) = (self.exit, self.place, self.words);
        Err(format!(
            "exit {exit}, not {want}; expected `{place}: {words}` in\n{}",
            reported(&report)
        ))
    }
}

fn all() -> impl Iterator<Item = &'static Attack> {
    let tables = [archives::ATTACKS, signatures::ATTACKS, logs::ATTACKS, passes::ATTACKS];
    tables.into_iter().chain([intents::ATTACKS, acts::ATTACKS]).flatten()
}

#[test]
fn every_named_attack_is_reported_by_its_own_words() {
    let tried = all().map(|attack| (attack.name, attack.try_it()));
    let wrong: Vec<String> =
        tried.filter_map(|(name, tried)| Some(format!("{name}: {}", tried.err()?))).collect();
    assert!(wrong.is_empty(), "{} attacks:\n{}", wrong.len(), wrong.join("\n"));
}

/// The facts are not compared with the facts of other rules.
#[test]
fn unknown_rules_are_one_failure() {
    let mut draft = week().draft();
    draft.rule_set = draft.rule_set.replace("v1", "v9");
    draft.facts = draft.facts.map(|facts| facts.replace("v1", "v9"));
    let report = report(&draft.pack(), &trusted(), &[]);
    let lines = report.lines.iter().filter(|line| line.verdict == Verdict::Fail);
    let places: Vec<&str> = lines.map(|line| line.place.as_str()).collect();
    assert_eq!(places, ["rule-set.json"], "{}", reported(&report));
    let text = reported(&report);
    assert!(text.contains("can derive facts only with v1"), "{text}");
    assert!(text.contains("facts.jsonl: not derived again: its rules are unknown"), "{text}");
}

#[test]
fn there_are_many_attacks_and_no_two_are_one() {
    let names: BTreeSet<&str> = all().map(|attack| attack.name).collect();
    assert_eq!(names.len(), all().count());
    assert!(names.len() >= 200, "{}", names.len());
}
