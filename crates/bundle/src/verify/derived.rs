//! Derived data and ipse's own events, computed again and compared: passes, forgetting, intents,
//! and the facts byte for byte.

use super::Check;
use super::ledger::WalkResult;
use crate::name::Name;
use crate::report::counted;
use ipse_audit::{Index, Record, Walk};
use ipse_consolidate::{Groups, RuleSet, Rules};
use ipse_consult::intents::Intents;
use ipse_core::{FactKey, FactKind, Seq, json_parse};
use ipse_ledger::account::PassClaim;
use ipse_ledger::{Bundled, Governance, RulesHistory};
use std::collections::BTreeMap;
use std::io;

/// The longest line of a fact. The rules have no limit, so the size of the member is the limit.
const MAX_LINE: usize = usize::MAX;
/// The maximum nesting of a fact.
const DEPTH: usize = 16;

impl Check<'_, '_> {
    /// Checks forgetting, rules, passes, intents and facts with the rules in the bundle; returns
    /// the claims of the pass records, the rules in force and the acts. If the rules are unknown, the facts
    /// are not checked.
    pub(super) fn derived<R: RuleSet>(
        &mut self,
        under: &R,
        rules: &Result<Rules, String>,
        known: &Index,
        WalkResult { walk, groups }: WalkResult<R::Tally>,
        bundled: &Bundled,
    ) -> io::Result<(Vec<PassClaim>, RulesHistory, Governance)> {
        let message = "every missing event is named by a later forget event, and no other";
        self.conclude("forgetting", walk.forgets.faults(), message.to_string());
        self.rules_in_force(rules, &walk, bundled);
        let passes = self.passes(rules, known, &walk, bundled);
        self.intents(&walk.intents);
        let lost = |checkpoint| walk.forgets.lost(Seq(1)..=checkpoint);
        let limit = match bundled.checkpoint {
            None => return Ok((passes, walk.rules, walk.governance)),
            Some(_) if rules.is_err() => "its rules are unknown",
            Some(checkpoint) if lost(checkpoint) => "events that facts rest on are missing",
            Some(checkpoint) => {
                self.facts(under, groups, checkpoint)?;
                return Ok((passes, walk.rules, walk.governance));
            }
        };
        self.report.limit(Name::Facts, format!("not derived again: {limit}"));
        Ok((passes, walk.rules, walk.governance))
    }

    /// Checks the changes of rules, and that the rule set in the bundle is the one in force.
    fn rules_in_force(&mut self, rules: &Result<Rules, String>, walk: &Walk, bundled: &Bundled) {
        let approvals = walk.approval_faults(&bundled.identity, &self.trust.operators());
        let approvals = approvals.into_iter().map(|(at, what)| (at, what.to_string()));
        let seq = bundled.checkpoint.unwrap_or(bundled.to);
        let in_force = walk.rules.at(seq);
        // The first event says which rules the log begins with, and it may not be here.
        let is_known = bundled.to > Seq(0) || bundled.size == 0;
        let odd = match rules {
            Err(what) => Some(what.clone()),
            Ok(rules) if is_known && rules.hash() != in_force.hash => {
                Some(format!("the rules in force at seq {seq} are others: {}", in_force.version))
            }
            Ok(_) => None,
        };
        let odd = odd.map(|what| (Name::RuleSet.to_string(), what));
        let changes = walk.rules.changes().len() as u64;
        let message = (changes > 0).then(|| {
            let changes = counted(changes, "change");
            format!("{changes} of rules: each is allowed, and its pass follows it")
        });
        self.conclude("rules", approvals.chain(walk.unfinished()).chain(odd), message);
    }

    /// Checks the pass records; returns the claims of those that can be read.
    fn passes(
        &mut self,
        rules: &Result<Rules, String>,
        known: &Index,
        walk: &Walk,
        Bundled { from, checkpoint, .. }: &Bundled,
    ) -> Vec<PassClaim> {
        let passes: Vec<_> = walk.records.iter().filter_map(|it| it.claimed.clone()).collect();
        let last = passes.last().map_or(Seq(0), |claimed| claimed.last);
        let odd = checkpoint.filter(|checkpoint| *checkpoint != last).map(|checkpoint| {
            let why =
                format!("gives checkpoint {checkpoint}, but the last pass ended at seq {last}");
            (Name::SumsSignature.to_string(), why)
        });
        let faults = walk.passes(&known.names, *from).flat_map(|(record, wrong)| {
            wrong.into_iter().map(|what| (record.place(), what.to_string()))
        });
        // Under unknown rules the passes are compared, but nothing vouches for them.
        let message = rules.is_ok().then(|| {
            let count = counted(passes.len() as u64, "pass record");
            format!("{count}: ranges without gap or overlap, counts as in the log")
        });
        self.conclude("passes", faults.chain(odd), message);
        let unknown = |it: &&Record| it.claimed.is_some() && it.lists_idle.is_none();
        let unknown = walk.records.iter().filter(unknown).count() as u64;
        if unknown > 0 {
            let records = counted(unknown, "pass record");
            let what = format!("{records} under rules that this verifier does not know");
            self.report.limit("passes", format!("skipped events not compared: {what}"));
        }
        // The events forgotten before the range are unknown, so the counts are too.
        let before = passes.iter().filter(|claimed| claimed.first < *from).count();
        if before > 0 {
            let what = "counts not compared for passes that began before the range";
            self.report.limit("passes", format!("{what}: {before}"));
        }
        passes
    }

    /// Checks intents and confirmations.
    fn intents(&mut self, intents: &Intents) {
        let (proposed, decided) = intents.counts();
        let message = (proposed + decided > 0).then(|| {
            let (intents, decisions) = (counted(proposed, "intent"), counted(decided, "decision"));
            format!(
                "{intents}, {decisions}: each verdict is the most severe of its gates; each \
                 decision is in time, and the only one about an intent that waited"
            )
        });
        self.conclude("intents", intents.faults().iter().cloned(), message);
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
        let mut expected: BTreeMap<_, _> = facts.iter().map(|fact| (&fact.key, fact)).collect();
        let mut last = None;
        while let Some(line) = lines.next()? {
            let line = line.unwrap_or_default();
            let key = key_of(line);
            let found = key.as_ref().and_then(|key| expected.remove(key));
            let fault = match found {
                _ if key.is_none() => "is not a fact",
                None => "cannot be derived from the log",
                Some(_) if key < last => "is not in the order of facts",
                Some(fact) if fact.snapshot_line().as_bytes() != line => {
                    "differs from the fact that the log gives"
                }
                Some(_) => {
                    last = key;
                    continue;
                }
            };
            let key = key.map(|key| format!(": {}", fact(&key))).unwrap_or_default();
            self.report.fail(format!("facts.jsonl, line {}{key}", lines.number()), fault);
        }
        for key in expected.into_keys() {
            self.report.fail(Name::Facts, format!("the {} is missing", fact(key)));
        }
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
