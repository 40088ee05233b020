//! What ipse derived from the log and wrote about its own doings, computed again and compared:
//! passes, forgetting, intents, and the facts byte for byte.

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

/// The longest line of a fact: the rules know no limit, so it is that of a member.
const MAX_LINE: usize = usize::MAX;
/// Nesting of a fact at most.
const DEPTH: usize = 16;

impl Check<'_, '_> {
    /// Checks forgetting, passes, intents and facts under the rules in the bundle; returns the
    /// claims of the pass records. If the rules are unknown, everything but the facts is checked.
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
        let message = "what is gone was named by a later forget event, and is gone";
        self.holds_since(began, "forgetting", message);
        let passes = self.passes(rules, known, &walk, bundled);
        self.intents(&walk.intents);
        let Some(checkpoint) = bundled.checkpoint else { return Ok(passes) };
        if rules.is_err() {
            self.report.limit(Name::Facts, "not derived again: its rules are unknown");
        } else if walk.forgets.lost(Seq(1)..=checkpoint) {
            let message = "not derived again: content that facts rest on is gone";
            self.report.limit(Name::Facts, message);
        } else {
            self.facts(under, groups, checkpoint)?;
        }
        Ok(passes)
    }

    /// Checks the pass records; returns what those say that can be read.
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
                false => fail("its range leaves a gap or overlaps the one before it"),
            }
            // What was forgotten before the range is not known, and with it what was counted.
            from_before_the_range += u64::from(joined && first < from);
            if joined && whole && !record.lists_idle && !walk.forgets.any(*first..=*last) {
                fail("lists other events as skipped than the rules skip in its range");
            }
            if let Some(named) = Rules::of_version(rule_version) {
                // The newest pass must name the rule set in the bundle.
                let is_newest = newest == Some(record.seq);
                let expected = rules.as_ref().map(|rules| if is_newest { *rules } else { named });
                if expected.is_ok_and(|rules| hex::encode(&rules.hash()) != *rule_set) {
                    fail("names another rule set than the one in rule-set.json");
                }
            } else {
                fail(&format!("follows rules that this verifier does not have: {rule_version}"));
            }
            let id = format!("pass:{rule_version}:{first}-{last}");
            if record.name != EventRef::new(HOUSE_SOURCE, &id) {
                fail("its id is not pass:<rule version>:<first>-<last>");
            }
        }
        let passes = walk.records.iter().filter_map(|record| record.claimed.clone());
        let passes = passes.collect::<Vec<PassClaim>>();
        let last = passes.last().map_or(Seq(0), |claimed| claimed.last);
        if let Some(checkpoint) = checkpoint.filter(|checkpoint| *checkpoint != last) {
            let message =
                format!("says checkpoint {checkpoint}, and the last pass came to seq {last}");
            self.report.fail(Name::SumsSignature, message);
        }
        let count = counted(passes.len() as u64, "pass record");
        let message = format!("{count}: ranges without gap or overlap, counts as in the log");
        self.holds_since(began, "passes", message);
        if from_before_the_range > 0 {
            let n = from_before_the_range;
            let message = format!("counts not compared, of passes from before the range: {n}");
            self.report.limit("passes", message);
        }
        passes
    }

    /// Checks what intents and confirmations say.
    fn intents(&mut self, intents: &Intents) {
        let began = self.report.fails();
        intents.faults().iter().for_each(|(at, what)| self.report.fail(at, what));
        let (proposed, decided) = intents.counts();
        if proposed + decided > 0 {
            let (intents, decisions) = (counted(proposed, "intent"), counted(decided, "decision"));
            let message = format!(
                "{intents}, {decisions}: verdicts are the gravest of their gates; decisions are in \
                 time, and one about an intent that waited"
            );
            self.holds_since(began, "intents", message);
        }
        if intents.unknown() > 0 {
            let decisions = counted(intents.unknown(), "decision");
            let message =
                format!("{decisions} about intents before the range: not compared with them");
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
                self.report.fail(place, "is no fact");
                continue;
            };
            while let Some((left_out, _)) = expected.next_if(|(next, _)| **next < key) {
                self.report.fail(Name::Facts, missing(left_out));
            }
            let fault = match expected.next_if(|(next, _)| **next == key) {
                Some(expected) if is_it(&expected) => continue,
                Some(_) => "is not what the log gives",
                None => "does not follow from the log",
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
