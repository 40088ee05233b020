//! Rebuild: compute all facts again from the log, for a comparison with the stored ones. It never
//! repairs.

use crate::Error;
use crate::rules::rules_of;
use crate::scan::fold_without;
use ipse_consolidate::{Derived, RuleSet, snapshot, with_rules};
use ipse_core::{Fact, FactKey, Seq};
use ipse_store::View;
use std::collections::{BTreeMap, BTreeSet};

/// The result of a rebuild.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    /// The number of folded events, without housekeeping.
    pub events: u64,
    /// The facts, sorted by kind and key.
    pub facts: Vec<Fact>,
}

impl Rebuilt {
    /// Whether the stored facts are byte-equal to the rebuilt ones.
    pub fn equals(&self, stored: &[Fact]) -> bool {
        snapshot(&self.facts) == snapshot(stored)
    }
}

impl Rebuilt {
    /// The keys under which the stored facts differ from the rebuilt ones.
    pub fn differences(&self, stored: &[Fact]) -> Vec<FactKey> {
        let by_key = |facts: &[Fact]| -> BTreeMap<FactKey, String> {
            facts.iter().map(|fact| (fact.key.clone(), fact.snapshot_line())).collect()
        };
        let (ours, theirs) = (by_key(&self.facts), by_key(stored));
        let keys: BTreeSet<&FactKey> = ours.keys().chain(theirs.keys()).collect();
        keys.into_iter().filter(|key| ours.get(*key) != theirs.get(*key)).cloned().collect()
    }
}

/// Rebuilds the facts of the log up to a position, under the rules of the log.
pub fn rebuild(view: View<'_>, up_to: Seq) -> Result<Rebuilt, Error> {
    with_rules!(rules_of(view)?, |rules| rebuild_under(view, rules, up_to))
}

/// The same under rules of the caller's choice.
pub fn rebuild_under<R: RuleSet>(view: View<'_>, rules: &R, up_to: Seq) -> Result<Rebuilt, Error> {
    rebuild_without(view, rules, up_to, &BTreeSet::new())
}

/// The same without some events.
pub fn rebuild_without<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    up_to: Seq,
    without: &BTreeSet<Seq>,
) -> Result<Rebuilt, Error> {
    // A position beyond the end means the end.
    let up_to = up_to.min(view.head()?);
    let (mut facts, mut derived) = (Vec::new(), Derived::default());
    let mut refused = None;
    let totals = fold_without(view, rules, Seq(1)..=up_to, without, |key, group| {
        derived.add(rules, &key, &group);
        match group.publish(rules, &key) {
            Ok(fact) => facts.extend(fact),
            Err(limit) => refused = Some(limit),
        }
    })?;
    if let Some(limit) = refused {
        return Err(limit.into());
    }
    let derived = derived.into_groups();
    if !derived.is_empty() {
        for (key, group) in derived {
            facts.extend(group.publish(rules, &key)?);
        }
        facts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    }
    Ok(Rebuilt { events: totals.events, facts })
}
