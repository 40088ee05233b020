//! Derived facts: facts whose sums are computed from the whole sums of other facts.
//!
//! **Invariants**
//! - The sum behind a derived fact is the total of [`RuleSet::derived`]
//!   over all other facts. Its last supporting event is the greatest of the facts that it is
//!   derived from. Both are functions of whole sums, so the order of events and the division into
//!   passes have no effect.
//! - Only whole sums may be added here. `derived` is not additive: its values for two parts of a
//!   sum do not add up to its value for the sum.

use crate::{Group, RuleSet, Tally};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use ipse_core::FactKey;

/// The sums behind derived facts, under construction.
pub struct Derived<T>(BTreeMap<FactKey, Group<T>>);

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Derived(BTreeMap::new())
    }
}

impl<T: Tally> Derived<T> {
    /// Adds the contributions of one fact, given its whole sum.
    pub fn add<R: RuleSet<Tally = T>>(&mut self, rules: &R, key: &FactKey, whole: &Group<T>) {
        for (to, tally) in contributions(rules, key, &whole.tally) {
            self.0.entry(to).or_default().merge(&Group { tally, last: whole.last });
        }
    }

    /// Replaces the contributions of one fact whose whole sum has changed.
    pub fn replace<R: RuleSet<Tally = T>>(&mut self, rules: &R, key: &FactKey, had: &T, has: &T) {
        for (to, tally) in contributions(rules, key, had) {
            self.0.entry(to).or_default().tally.add(&tally.negated());
        }
        for (to, tally) in contributions(rules, key, has) {
            self.0.entry(to).or_default().tally.add(&tally);
        }
    }

    /// Removes the sum behind one derived fact and returns it.
    pub fn take(&mut self, key: &FactKey) -> Group<T> {
        self.0.remove(key).unwrap_or_default()
    }

    /// The sums, sorted by kind and key.
    pub fn into_groups(self) -> BTreeMap<FactKey, Group<T>> {
        self.0
    }
}

fn contributions<R: RuleSet>(
    rules: &R,
    key: &FactKey,
    tally: &R::Tally,
) -> Vec<(FactKey, R::Tally)> {
    if rules.derives() { rules.derived(key, tally) } else { Vec::new() }
}
