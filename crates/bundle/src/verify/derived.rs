//! Derived data and ipse's own events, computed again and compared: passes, forgetting, intents,
//! and the facts byte for byte.

use super::Check;
use super::ledger::{EntryIndex, WalkResult};
use crate::name::Name;
use crate::report::counted;
use ipse_audit::Walk;
use ipse_consolidate::{Groups, RuleSet, Rules};
use ipse_consult::intents::Intents;
use ipse_core::{EventRef, FactKey, FactKind, HOUSE_SOURCE, Seq, hex, json_parse};
use ipse_ledger::Bundled;
use ipse_ledger::account::PassClaim;
use std::io;

/// The longest line of a fact. The rules have no limit, so the size of the member is the limit.
const MAX_LINE: usize = usize::MAX;
/// The maximum nesting of a fact.
const DEPTH: usize = 16;

impl Check<'_, '_> {
    /// Checks forgetting, passes, intents and facts with the rules in the bundle; returns the
    /// claims of the pass records. If the rules are unknown, the facts are not checked.
    pub(super) fn derived<R: RuleSet>(
        &mut self,
        under: &R,
        rules: &Result<Rules, String>,
        known: &EntryIndex,
        WalkResult { walk, groups }: WalkResult<R::Tally>,
        bundled: &Bundled,
    ) -> io::Result<Vec<PassClaim>> {
        let began = self.report.fails();
        walk.forgets.faults().into_iter().for_each(|(at, what)| self.report.fail(at, what));
        let message = "every missing event is named by a later forget event, and no other";
        self.holds_since(began, "forgetting", message);
        let passes = self.passes(rules, known, &walk, bundled);
        self.intents(&walk.intents);
        let Some(checkpoint) = bundled.checkpoint else { return Ok(passes) };
        if rules.is_err() {
            self.report.limit(Name::Facts, "not derived again: its rules are unknown");
        } else if walk.forgets.lost(Seq(1)..=checkpoint) {
            let message = "not derived again: events that facts rest on are missing";
            self.report.limit(Name::Facts, message);
        } else {
            self.facts(under, groups, checkpoint)?;
        }
        Ok(passes)
    }

    /// Checks the pass records; returns the claims of those that can be read.
    fn passes(
        &mut self,
        rules: &Result<Rules, String>,
        known: &EntryIndex,
        walk: &Walk,
        Bundled { from, checkpoint, .. }: &Bundled,
    ) -> Vec<PassClaim> {
        let (began, mut from_before_the_range) = (self.report.fails(), 0_u64);
        rules.as_ref().err().into_iter().for_each(|what| self.report.fail(Name::RuleSet, what));
        let newest = walk.records.last().map(|record| record.seq);
        for (record, whole, wrong) in walk.passes(&known.index.names, *from) {
            let mut fail = |message: &str| self.report.fail(record.place(), message);
            let Some(PassClaim { first, last, rule_version, rule_set, .. }) = &record.claimed
            else {
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
            if joined && whole && !record.lists_idle && !walk.forgets.any(*first..=*last) {
                fail("its list of skipped events is not the one that the rules give");
            }
            if let Some(named) = Rules::of_version(rule_version) {
                // The newest pass must name the rule set in the bundle.
                let is_newest = newest == Some(record.seq);
                let expected = rules.as_ref().map(|rules| if is_newest { *rules } else { named });
                if expected.is_ok_and(|rules| hex::encode(&rules.hash()) != *rule_set) {
                    fail("names another rule set than the one in rule-set.json");
                }
            } else {
                fail(&format!("follows rules that this verifier does not know: {rule_version}"));
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
