//! What ipse wrote about its own doings, held against the log: passes, forgetting, intents.

use super::entries::Known;
use super::events::{Record, Walked};
use super::signed;
use crate::archive::Archive;
use crate::report::{Report, counted};
use ipse_consolidate::{Rules, Skip};
use ipse_consult::intents::Intents;
use ipse_core::{Seq, hex};
use ipse_ledger::Bundled;
use ipse_ledger::account::{Before, Claimed, Skipped, shortened};
use std::collections::BTreeMap;
use std::io;

/// Skipped events by type and reason.
#[derive(Default)]
pub(super) struct Skips(Skipped);

impl Skips {
    pub(super) fn add(&mut self, event_type: &str, skip: Skip) {
        let reasons = self.0.entry(event_type.to_string()).or_default();
        *reasons.entry(skip.code()).or_default() += 1;
    }

    /// Whether a pass record lists these.
    pub(super) fn are(&self, listed: &BTreeMap<String, BTreeMap<String, u64>>) -> bool {
        let own = |(code, n): (&'static str, u64)| (code.to_string(), n);
        let expected = shortened(self.0.clone()).into_iter();
        let expected =
            expected.map(|(name, reasons)| (name, reasons.into_iter().map(own).collect()));
        expected.collect::<BTreeMap<_, BTreeMap<_, _>>>() == *listed
    }
}

/// Checks forgetting and passes; returns the claims of the pass records. `rules` is the rule set in
/// the bundle, if it is known.
pub(super) fn check<T>(
    archive: &Archive<'_>,
    rules: Option<Rules>,
    known: &Known,
    walked: &Walked<T>,
    bundled: &Bundled,
    report: &mut Report,
) -> io::Result<Vec<Claimed>> {
    let before = report.fails();
    for (place, message) in walked.forgets.faults() {
        report.fail(place, message);
    }
    if report.fails() == before {
        report.pass("forgetting", "what is gone was named by a later forget event, and is gone");
    }
    let before = report.fails();
    signed::check_rules(archive, rules, report)?;
    let newest = walked.records.last().map(|record| record.seq);
    let mut earlier = Before::Nothing;
    let mut from_before_the_range = 0_u64;
    for record in &walked.records {
        let Some(claimed) = &record.claimed else {
            report.fail(format!("pass record at seq {}", record.seq), "cannot be read");
            earlier = Before::Unreadable;
            continue;
        };
        if !record.joined {
            let message = "its range leaves a gap or overlaps the one before it";
            report.fail(format!("pass record at seq {}", record.seq), message);
        } else if claimed.first < bundled.from {
            // What was forgotten before the range is not known, and with it what was counted.
            from_before_the_range += 1;
            ranged(record, claimed, &Before::Unreadable, known, walked, report);
        } else {
            ranged(record, claimed, &earlier, known, walked, report);
        }
        signed_by_rules(record, claimed, rules, newest == Some(record.seq), report);
        earlier = Before::Pass(claimed.clone());
    }
    let passes: Vec<Claimed> =
        walked.records.iter().filter_map(|record| record.claimed.clone()).collect();
    reached(&passes, bundled, report);
    if report.fails() == before {
        let passes = counted(passes.len() as u64, "pass record");
        report.pass(
            "passes",
            format!("{passes}: ranges without gap or overlap, counts as in the log"),
        );
    }
    if from_before_the_range > 0 {
        let message = format!(
            "counts not compared, of passes from before the range: {from_before_the_range}"
        );
        report.limit("passes", message);
    }
    Ok(passes)
}

/// Checks what intents and confirmations say.
pub(super) fn check_intents(intents: &Intents, report: &mut Report) {
    for (place, message) in intents.faults() {
        report.fail(place, message);
    }
    let (proposed, decided) = intents.counts();
    if intents.faults().is_empty() && proposed + decided > 0 {
        let (intents, decisions) = (counted(proposed, "intent"), counted(decided, "decision"));
        let message = format!(
            "{intents}, {decisions}: verdicts are the gravest of their gates; decisions are in \
             time, and one about an intent that waited"
        );
        report.pass("intents", message);
    }
    if intents.unknown() > 0 {
        let decisions = counted(intents.unknown(), "decision");
        let message = format!("{decisions} about intents before the range: not compared with them");
        report.limit("intents", message);
    }
}

/// Compares a record with the range that it claims.
fn ranged<T>(
    record: &Record,
    claimed: &Claimed,
    earlier: &Before,
    known: &Known,
    walked: &Walked<T>,
    report: &mut Report,
) {
    let place = format!("pass record at seq {}", record.seq);
    for wrong in claimed.contradictions(earlier, &known.names, &walked.forgets) {
        report.fail(&place, wrong);
    }
    let whole = !matches!(earlier, Before::Unreadable);
    if whole && !record.skips && !walked.forgets.any(claimed.first..=claimed.last) {
        report.fail(place, "lists other events as skipped than the rules skip in its range");
    }
}

/// Compares a record's name and rules. The newest pass must name the rule set in the bundle.
fn signed_by_rules(
    record: &Record,
    claimed: &Claimed,
    rules: Option<Rules>,
    is_newest: bool,
    report: &mut Report,
) {
    let place = format!("pass record at seq {}", record.seq);
    match (Rules::of_version(&claimed.rule_version), rules) {
        (None, _) => {
            let message =
                format!("follows rules that this verifier does not have: {}", claimed.rule_version);
            report.fail(&place, message);
        }
        (Some(named), Some(rules)) => {
            let expected = if is_newest { rules } else { named };
            if claimed.rule_set != hex::encode(&expected.hash()) {
                report.fail(&place, "names another rule set than the one in rule-set.json");
            }
        }
        (Some(_), None) => {}
    }
    if !record.named {
        report.fail(place, "its id is not pass:<rule version>:<first>-<last>");
    }
}

/// Compares the checkpoint with the last pass.
fn reached(passes: &[Claimed], bundled: &Bundled, report: &mut Report) {
    let Some(checkpoint) = bundled.checkpoint else { return };
    let last = passes.last().map_or(Seq(0), |claimed| claimed.last);
    if last != checkpoint {
        let message = format!("says checkpoint {checkpoint}, and the last pass came to seq {last}");
        report.fail("SHA256SUMS.sig", message);
    }
}
