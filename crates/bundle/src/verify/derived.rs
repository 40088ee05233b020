//! Derived data and ipse's own events, computed again and compared: the checks of every log, and
//! the facts byte for byte.

use super::Check;
use super::ledger::WalkResult;
use crate::name::Name;
use ipse_audit::{self as audit, Context, Index, Walk};
use ipse_consolidate::{Groups, RuleSet, Rules};
use ipse_consult::answer::counted;
use ipse_core::{FactKey, Seq};
use ipse_ledger::account::{Fault, PassClaim};
use ipse_ledger::{Bundled, RulesHistory};
use std::collections::BTreeMap;
use std::io;

/// The longest line of a fact. The rules have no limit, so the size of the member is the limit.
const MAX_LINE: usize = usize::MAX;

impl Check<'_, '_> {
    /// Makes the checks of every log, and compares the facts with the rules in the bundle; returns
    /// the claims of the pass records and the rules in force. If the rules are unknown, the facts
    /// are not checked.
    pub(super) fn derived<R: RuleSet>(
        &mut self,
        under: &R,
        rules: &Result<Rules, String>,
        known: &Index,
        WalkResult { walk, groups }: WalkResult<R::Tally>,
        bundled: &Bundled,
    ) -> io::Result<(Vec<PassClaim>, RulesHistory)> {
        let passes: Vec<_> = walk.records.iter().filter_map(|it| it.claimed.clone()).collect();
        let (names, operators) = (&known.names, &self.trust.operators());
        let context = Context { names, from: bundled.from, identity: &bundled.identity, operators };
        for check in audit::Check::ALL {
            let mut found = check.run(&walk, &context);
            match check {
                audit::Check::Rules => found.faults.extend(rule_set_fault(rules, &walk, bundled)),
                audit::Check::Passes => {
                    found.faults.extend(checkpoint_fault(&passes, bundled));
                    // Nothing vouches for passes under unknown rules.
                    found.holds = found.holds.filter(|_| rules.is_ok());
                }
                _ => {}
            }
            self.report.conclude(check, found);
        }
        if let Some(checkpoint) = bundled.checkpoint {
            let limit = match rules {
                Err(_) => Some("its rules are unknown"),
                Ok(_) if walk.forgets.lost(Seq(1)..=checkpoint) => {
                    Some("events that facts rest on are missing")
                }
                Ok(_) => None,
            };
            match limit {
                Some(why) => self.report.limit(Name::Facts, format!("not derived again: {why}")),
                None => self.facts(under, groups, checkpoint)?,
            }
        }
        Ok((passes, walk.rules))
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
            let key = FactKey::of_line(line);
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
        self.report.holds_since(began, Name::Facts, message);
        Ok(())
    }
}

/// Compares the rule set in the bundle with the one in force.
fn rule_set_fault(rules: &Result<Rules, String>, walk: &Walk, bundled: &Bundled) -> Option<Fault> {
    let seq = bundled.checkpoint.unwrap_or(bundled.to);
    let in_force = walk.rules.at(seq);
    // The first event says which rules the log begins with, and it may not be here.
    let is_known = bundled.to > Seq(0) || bundled.size == 0;
    let fault = match rules {
        Err(what) => what.clone(),
        Ok(rules) if is_known && rules.hash() != in_force.hash => {
            format!("the rules in force at seq {seq} are others: {}", in_force.version)
        }
        Ok(_) => return None,
    };
    Some((Name::RuleSet.to_string(), fault))
}

/// Compares the checkpoint in the operator's statement with the last pass.
fn checkpoint_fault(passes: &[PassClaim], bundled: &Bundled) -> Option<Fault> {
    let last = passes.last().map_or(Seq(0), |claimed| claimed.last);
    let checkpoint = bundled.checkpoint.filter(|checkpoint| *checkpoint != last)?;
    let fault = format!("gives checkpoint {checkpoint}, but the last pass ended at seq {last}");
    Some((Name::SumsSignature.to_string(), fault))
}
