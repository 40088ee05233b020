//! One pass: fold the events after the checkpoint, publish the changed facts, append the record.
//!
//! **Invariant:** the range of a pass is all positions from the old checkpoint to the last
//! position, so the ranges of one rule set's passes have no gap and no overlap. A range with very
//! many facts is folded in slices. Each slice is published and saved before the next, so the memory
//! of a pass does not grow with the number of facts.

use crate::changes::Changes;
use crate::forget::ForgottenSums;
use crate::hot_sums::HotSums;
use crate::scan::{fold_new, fold_range};
use crate::{Error, Host};
use ipse_consolidate::{RuleSet, Totals};
use ipse_core::event::PASS_RECORD;
use ipse_core::json::{Members, quoted};
use ipse_core::{Admitted, Fact, FactKey, Identity, Seq, hex};
use ipse_door::house_event;
use ipse_ledger::account::{RULES_TRIGGER, Skipped, shortened};
use ipse_store::{Batch, Pass, PassRecord, Progress};
use std::collections::BTreeMap;

/// The reason for a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Trigger {
    /// A handle was opened for writing.
    Startup,
    /// Enough new events, or no event for some time after a new one.
    Threshold,
    /// A user or program requested it.
    Manual,
    /// Events were forgotten.
    Forget,
    /// The rules changed.
    Rules,
}

impl Trigger {
    /// The name in pass records and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Startup => "startup",
            Trigger::Threshold => "threshold",
            Trigger::Manual => "manual",
            Trigger::Forget => "forget",
            Trigger::Rules => RULES_TRIGGER,
        }
    }
}

/// The notification to subscribers after a durable pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassCommitted {
    /// The reason for the pass.
    pub trigger: Trigger,
    /// The version of the applied rules.
    pub rule_version: &'static str,
    /// The first position of the range.
    pub first_seq: Seq,
    /// The last position of the range: the new checkpoint.
    pub last_seq: Seq,
    /// The number of facts that were changed or deleted.
    pub rows_touched: u64,
}

/// The report of a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassReport {
    /// The notification to subscribers.
    pub committed: PassCommitted,
    /// The number of events in the range, without housekeeping.
    pub events_processed: u64,
    /// The number of processed events that feed no fact.
    pub events_skipped: u64,
    /// The skipped events by type and reason.
    pub skipped: Skipped,
    /// The position of the pass record.
    pub record_seq: Seq,
    /// The number of slices.
    pub slices: u64,
    /// The changed facts; `None` if they were too many to keep in memory.
    pub changed: Option<Vec<Fact>>,
    /// The keys of deleted facts: no event supports them any more.
    pub gone: Vec<FactKey>,
}

/// The inputs of a pass besides rules and sums.
pub(crate) struct PassInput<'e> {
    pub(crate) identity: &'e Identity,
    pub(crate) host: &'e mut dyn Host,
    pub(crate) trigger: Trigger,
    /// The stored progress before the pass.
    pub(crate) progress: Progress,
    /// Whether facts of other rules may be deleted: only a change of rules may.
    pub(crate) starts_over: bool,
}

/// Runs a pass inside a batch. Returns `None` and writes nothing if no event is new. The
/// contributions of forgotten events (`taught`) are subtracted first; they are a reason for a pass
/// even without new events.
pub(crate) fn run<R: RuleSet>(
    batch: &mut Batch<'_>,
    rules: &R,
    hot: &mut HotSums<R::Tally>,
    errand: PassInput<'_>,
    taught: Option<&ForgottenSums<R::Tally>>,
) -> Result<Option<PassReport>, Error> {
    let PassInput { identity, host, trigger, progress, starts_over } = errand;
    let pass = batch.pass()?;
    let rule_set = hot.rule_set();
    let checkpoint = begin(&pass, hot, progress, starts_over)?;
    let head = pass.head();
    if let Some(taught) = taught {
        taught.retract(&pass, rules, hot, identity, checkpoint)?;
    }
    // All contributions of forgotten events are in memory, so their facts are published together.
    let limit = if taught.is_some() { usize::MAX } else { hot.limits.slice };
    let Folded { processed, skipped, slices, mut changes } =
        fold(&pass, rules, hot, identity, checkpoint, limit)?;
    if processed == 0 && taught.is_none() && trigger != Trigger::Rules {
        return Ok(None);
    }
    hot.publish(rules, identity, head, &pass, &mut changes)?;
    let tallied = match changes.are_sliced() || hot.is_save_due(head) {
        true => hot.save_all(rules, identity, head, &pass)?,
        false => hot.keep(head),
    };
    hot.evict();
    let rows_touched = changes.rows();
    let (changed, gone) = changes.into_facts();
    let mut report = PassReport {
        committed: PassCommitted {
            trigger,
            rule_version: rules.version(),
            first_seq: checkpoint.next(),
            last_seq: head,
            rows_touched,
        },
        events_processed: processed,
        events_skipped: skipped.values().flat_map(BTreeMap::values).sum(),
        skipped: shortened(skipped),
        record_seq: head.next(),
        slices,
        changed,
        gone,
    };
    let event = record_event(&pass, &report, rule_set, host)?;
    let rule_version = rules.version().to_string();
    let progress = Progress { checkpoint: head, tallied, rule_version, rule_set };
    let record = PassRecord { event: &event, first: checkpoint.next(), progress };
    report.record_seq = pass.commit(&record)?;
    Ok(Some(report))
}

/// Finds the old checkpoint. A change of rules deletes the facts of the old rules first.
fn begin<T: ipse_consolidate::Tally>(
    pass: &Pass<'_>,
    hot: &mut HotSums<T>,
    mut progress: Progress,
    starts_over: bool,
) -> Result<Seq, Error> {
    if progress.rule_set != hot.rule_set() {
        if !starts_over && !progress.rule_version.is_empty() {
            let hash = hex::encode(&progress.rule_set);
            return Err(Error::unknown_rules(&progress.rule_version, hash));
        }
        pass.start_over()?;
        progress = Progress::default();
        hot.cool();
    }
    if progress.checkpoint > pass.head() || progress.tallied > progress.checkpoint {
        return Err(Error::Damaged("checkpoint".into()));
    }
    hot.follow(progress.checkpoint, progress.tallied);
    Ok(progress.checkpoint)
}

/// Catches up to the checkpoint, then folds the new events. All slices but the last are published
/// and saved, so that their sums may be evicted from memory.
fn fold<R: RuleSet>(
    pass: &Pass<'_>,
    rules: &R,
    hot: &mut HotSums<R::Tally>,
    identity: &Identity,
    checkpoint: Seq,
    limit: usize,
) -> Result<Folded, Error> {
    if hot.folded() < checkpoint {
        let behind = hot.folded().next()..=checkpoint;
        fold_range(pass.view(), rules, behind, |key, group| {
            hot.merge(rules, identity, key, group, false);
        })?;
    }
    let mut folded = Folded::default();
    let (mut next, head) = (checkpoint.next(), pass.head());
    while next <= head {
        let merge = |key, group| hot.merge(rules, identity, key, group, true);
        let slice = fold_new(pass, rules, next..=head, limit, merge)?;
        folded.add(slice.totals);
        if slice.last < head {
            folded.changes.keep_ids_only();
            hot.publish(rules, identity, slice.last, pass, &mut folded.changes)?;
            hot.save_all(rules, identity, slice.last, pass)?;
            hot.evict();
        }
        next = slice.last.next();
    }
    Ok(folded)
}

/// The totals of all slices of a pass.
#[derive(Default)]
struct Folded {
    processed: u64,
    skipped: Skipped,
    slices: u64,
    changes: Changes,
}

impl Folded {
    fn add(&mut self, totals: Totals) {
        self.slices += 1;
        self.processed += totals.events;
        for (name, skip, n) in totals.skipped {
            *self.skipped.entry(name).or_default().entry(skip.code()).or_default() += n;
        }
    }
}

fn record_event(
    pass: &Pass<'_>,
    report: &PassReport,
    rule_set: [u8; 32],
    host: &mut dyn Host,
) -> Result<Admitted, Error> {
    let committed = &report.committed;
    let (first, last) = (committed.first_seq, committed.last_seq);
    let (first_ref, last_ref) = (pass.event_ref(first)?, pass.event_ref(last)?);
    // Members are in the order of RFC 8785. Fixed names need no escape.
    let data = format!(
        "{{\"events_processed\":{},\"events_skipped\":{},\
         \"first_processed_event_id\":\"{first_ref}\",\"first_seq\":{first},\
         \"last_processed_event_id\":\"{last_ref}\",\"last_seq\":{last},\
         \"rows_touched\":{},\"rule_set_sha256\":\"{}\",\"rule_version\":{},\
         \"skipped\":{},\"trigger\":\"{}\"}}",
        report.events_processed,
        report.events_skipped,
        committed.rows_touched,
        hex::encode(&rule_set),
        quoted(committed.rule_version),
        skipped_json(&report.skipped),
        committed.trigger.name(),
    );
    let id = format!("pass:{}:{first}-{last}", committed.rule_version);
    Ok(house_event(PASS_RECORD, &id, host.now(), &data, host.salt()))
}

/// Skip counts by type and reason, as JSON for a pass record.
fn skipped_json(skipped: &Skipped) -> String {
    let reasons = |reasons: &BTreeMap<&str, u64>| {
        let add = |members: Members, (code, n): (&&str, &u64)| members.raw(*code, n);
        reasons.iter().fold(Members::new(), add).finish()
    };
    let add = |members: Members, (name, counts)| members.raw(name, reasons(counts));
    skipped.iter().map(|(name, counts)| (name.as_str(), counts)).fold(Members::new(), add).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_consolidate::V1;
    use ipse_door::{Origin, admit};
    use ipse_store::{Location, Store};

    #[test]
    fn all_slices_but_the_last_are_stored_before_the_pass_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let store = Store::create(&Location::file(path)).unwrap();
        let identity = store.register("{\"agent_id\":\"a\"}").unwrap().identity;
        let mut writer = store.writer(&identity).unwrap();
        let mut batch = writer.begin().unwrap();
        for number in 0..20 {
            let event = format!(
                "{{\"id\":\"{number}\",\"source\":\"s\",\"type\":\"execution_result\",\
                 \"time\":\"2026-05-06T10:00:00Z\",\
                 \"data\":{{\"skill_id\":\"k{number}\",\"success\":true}}}}"
            );
            let event = admit(event.as_bytes(), Origin::Producer, || [7; 16]).unwrap();
            batch.append(&event).unwrap();
        }
        let (pass, mut hot) = (batch.pass().unwrap(), HotSums::cold(&V1));
        let folded = fold(&pass, &V1, &mut hot, &identity, Seq(0), 1).unwrap();
        assert_eq!(folded.slices, 20);
        let (facts, sums) = (pass.view().raw_facts().unwrap(), pass.view().raw_tallies().unwrap());
        assert_eq!((facts.len(), sums.len()), (19, 19));
    }
}
