//! Derived data and ipse's own events, computed again and compared: passes, forgetting, intents,
//! and the facts byte for byte.

use super::Check;
use super::ledger::{EntryIndex, WalkResult};
use crate::name::Name;
use crate::report::counted;
use ipse_audit::Walk;
use ipse_consolidate::{Groups, RuleSet, Rules};
use ipse_consult::intents::Intents;
use ipse_core::{EventRef, FactKey, FactKind, HOUSE_SOURCE, Seq, json_parse};
use ipse_ledger::account::PassClaim;
use ipse_ledger::{Bundled, RulesHistory};
use std::io;

/// The longest line of a fact. The rules have no limit, so the size of the member is the limit.
const MAX_LINE: usize = usize::MAX;
/// The maximum nesting of a fact.
const DEPTH: usize = 16;

impl Check<'_, '_> {
    /// Checks forgetting, rules, passes, intents and facts with the rules in the bundle; returns
    /// the claims of the pass records and the rules in force. If the rules are unknown, the facts
    /// are not checked.
    pub(super) fn derived<R: RuleSet>(
        &mut self,
        under: &R,
        rules: &Result<Rules, String>,
        known: &EntryIndex,
        WalkResult { walk, groups, .. }: WalkResult<R::Tally>,
        bundled: &Bundled,
    ) -> io::Result<(Vec<PassClaim>, RulesHistory)> {
        let began = self.report.fails();
        walk.forgets.faults().into_iter().for_each(|(at, what)| self.report.fail(at, what));
        let message = "every missing event is named by a later forget event, and no other";
        self.holds_since(began, "forgetting", message);
        self.rules_in_force(rules, &walk, bundled);
        let passes = self.passes(rules, known, &walk, bundled);
        self.intents(&walk.intents);
        let Some(checkpoint) = bundled.checkpoint else { return Ok((passes, walk.rules)) };
        if rules.is_err() {
            self.report.limit(Name::Facts, "not derived again: its rules are unknown");
        } else if walk.forgets.lost(Seq(1)..=checkpoint) {
            let message = "not derived again: events that facts rest on are missing";
            self.report.limit(Name::Facts, message);
        } else {
            self.facts(under, groups, checkpoint)?;
        }
        Ok((passes, walk.rules))
    }

    /// Checks the changes of rules, and that the rule set in the bundle is the one in force.
    fn rules_in_force(&mut self, rules: &Result<Rules, String>, walk: &Walk, bundled: &Bundled) {
        let began = self.report.fails();
        let (identity, operators) = (&bundled.identity, self.trust.operators());
        let faults = walk.approval_faults(identity, &operators);
        faults.into_iter().for_each(|(at, what)| self.report.fail(at, what));
        walk.unfinished().into_iter().for_each(|(at, what)| self.report.fail(at, what));
        let seq = bundled.checkpoint.unwrap_or(bundled.to);
        let in_force = walk.rules.at(seq);
        match rules {
            Err(what) => self.report.fail(Name::RuleSet, what),
            // The first event says which rules the log begins with, and it is not here.
            Ok(_) if bundled.to == Seq(0) && bundled.size > 0 => {}
            Ok(rules) if rules.hash() != in_force.hash => {
                let message =
                    format!("the rules in force at seq {seq} are others: {}", in_force.version);
                self.report.fail(Name::RuleSet, message);
            }
            Ok(_) => {}
        }
        let changes = walk.rules.changes().len() as u64;
        if changes > 0 {
            let changes = counted(changes, "change");
            let message = format!("{changes} of rules: each is allowed, and its pass follows it");
            self.holds_since(began, "rules", message);
        }
    }

    /// Checks the pass records; returns the claims of those that can be read.
    fn passes(
        &mut self,
        rules: &Result<Rules, String>,
        known: &EntryIndex,
        walk: &Walk,
        Bundled { from, checkpoint, .. }: &Bundled,
    ) -> Vec<PassClaim> {
        let (mut began, mut from_before_the_range, mut unknown) = (self.report.fails(), 0_u64, 0);
        // Under unknown rules the passes are compared, but nothing vouches for them.
        began -= u64::from(rules.is_err());
        for (record, whole, wrong) in walk.passes(&known.index.names, *from) {
            let mut fail = |message: &str| self.report.fail(record.place(), message);
            let Some(PassClaim { first, last, rule_version, .. }) = &record.claimed else {
                wrong.into_iter().for_each(fail);
                continue;
            };
            // A pass ends right before its record, so the next one begins with that record.
            let joined = *first == Seq(1) || Some(*first) == record.follows;
            match joined {
                true => wrong.into_iter().for_each(&mut fail),
                false => fail("its range leaves a gap or overlaps the previous one"),
            }
            // The events forgotten before the range are unknown, so the counts are too.
            from_before_the_range += u64::from(joined && first < from);
            let known = Rules::of_version(rule_version).is_some();
            unknown += u64::from(!known);
            let compared = joined && whole && known && !walk.forgets.any(*first..=*last);
            if compared && !record.lists_idle {
                fail("its list of skipped events is not the one that the rules give");
            }
            let id = format!("pass:{rule_version}:{first}-{last}");
            if record.name != EventRef::new(HOUSE_SOURCE, &id) {
                fail("its id is not pass:<rule version>:<first>-<last>");
            }
        }
        let passes: Vec<_> = walk.records.iter().filter_map(|it| it.claimed.clone()).collect();
        let last = passes.last().map_or(Seq(0), |claimed| claimed.last);
        if let Some(checkpoint) = checkpoint.filter(|checkpoint| *checkpoint != last) {
            let why =
                format!("gives checkpoint {checkpoint}, but the last pass ended at seq {last}");
            self.report.fail(Name::SumsSignature, why);
        }
        let count = counted(passes.len() as u64, "pass record");
        let message = format!("{count}: ranges without gap or overlap, counts as in the log");
        self.holds_since(began, "passes", message);
        if unknown > 0 {
            let records = counted(unknown, "pass record");
            let what = format!("{records} under rules that this verifier does not know");
            self.report.limit("passes", format!("skipped events not compared: {what}"));
        }
        if from_before_the_range > 0 {
            let what = "counts not compared for passes that began before the range";
            let what = format!("{what}: {from_before_the_range}");
            self.report.limit("passes", what);
        }
        passes
    }

    /// Checks intents and confirmations.
    fn intents(&mut self, intents: &Intents) {
        let began = self.report.fails();
        intents.faults().iter().for_each(|(at, what)| self.report.fail(at, what));
        let (proposed, decided) = intents.counts();
        if proposed + decided > 0 {
            let (intents, decisions) = (counted(proposed, "intent"), counted(decided, "decision"));
            let message = format!(
                "{intents}, {decisions}: each verdict is the most severe of its gates; each \
                 decision is in time, and the only one about an intent that waited"
            );
            self.holds_since(began, "intents", message);
        }
        if intents.unknown() > 0 {
            let decisions = counted(intents.unknown(), "decision");
            let message = format!("{decisions} about intents before the range: not compared");
            self.report.limit("intents", message);
        }
    }

    /// Derives the facts again and compares them byte for byte.
    fn facts<R: RuleSet>(
        &mut self,
        rules: &R,
        groups: Groups<R::Tally>,
        checkpoint: Seq,
    ) -> io::Result<()> {
        let Some(part) = self.archive.part(Name::Facts) else { return Ok(()) };
        let facts = match groups.publish(rules) {
            Ok(facts) => facts,
            Err(limit) => {
                self.report.fail(Name::Facts, limit);
                return Ok(());
            }
        };
        let (began, mut lines) = (self.report.fails(), part.lines(MAX_LINE));
        let fact = |key: &FactKey| format!("{} fact `{}`", key.kind(), key.text());
        let missing = |key: &FactKey| format!("the {} is missing", fact(key));
        let mut expected = facts.iter().map(|fact| (&fact.key, fact.snapshot_line())).peekable();
        for number in 1_u64.. {
            let Some(line) = lines.next()? else { break };
            let line = line.unwrap_or_default();
            let is_it = |(_, expected): &(_, String)| expected.as_bytes() == line;
            if expected.next_if(is_it).is_some() {
                continue;
            }
            let place = format!("facts.jsonl, line {number}");
            let Some(key) = key_of(line) else {
                self.report.fail(place, "is not a fact");
                continue;
            };
            while let Some((left_out, _)) = expected.next_if(|(next, _)| **next < key) {
                self.report.fail(Name::Facts, missing(left_out));
            }
            let fault = match expected.next_if(|(next, _)| **next == key) {
                Some(expected) if is_it(&expected) => continue,
                Some(_) => "differs from the fact that the log gives",
                None => "cannot be derived from the log",
            };
            self.report.fail(format!("{place}: {}", fact(&key)), fault);
        }
        expected.for_each(|(left_out, _)| self.report.fail(Name::Facts, missing(left_out)));
        let facts = counted(facts.len() as u64, "fact");
        let message = format!(
            "{facts} re-derived from the events up to seq {checkpoint}: equal, byte for byte"
        );
        self.holds_since(began, Name::Facts, message);
        Ok(())
    }
}

fn key_of(line: &[u8]) -> Option<FactKey> {
    let value = json_parse::parse(line, DEPTH).ok()?;
    let text = |name: &str| value.as_object()?.get(name)?.as_text();
    let key = text("fact_key")?.to_string();
    Some(FactKey::from_text(FactKind::parse(text("fact_kind")?)?, key))
}
