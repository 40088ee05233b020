//! The function `f`: events in, facts out.
//!
//! **Invariants**
//! - This crate depends on `ipse-core` and nothing else here. It cannot name a manifest, so it
//!   cannot change one. That missing dependency *is* Lemma 1.
//! - State is a sum in an Abelian group ([`Tally`]), so the order of events and the division into
//!   passes have no effect on a fact, and forgetting is subtraction.
//! - Integers only: there is no float arithmetic, and no clock, position or random number is read.
//!
//! ```compile_fail,E0432
//! use ipse_manifest::Manifest;
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod bulk;
pub mod confidence;
pub mod days;
mod derived;
pub mod distance;
pub mod drift;
mod evidence;
mod feed;
pub mod histogram;
mod publish;
pub mod recommend;
mod rules;
mod samples;
pub mod stretch;
mod symbols;
pub mod tally;
pub mod v1;
pub mod v2;
mod versions;

pub use derived::Derived;
pub use rules::{
    BulkFold, Contribution, EVERY_FACT, LimitError, MAX_OBSERVATIONS, RuleSet, Skip, Totals, Wanted,
};
pub use tally::Tally;
pub use v1::V1;
pub use v2::V2;
pub use versions::Rules;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::{Event, Fact, FactKey, Support};

/// `f`: sum the contributions of each event to each fact, compute the sums of derived facts, then
/// publish every sum.
pub fn f<'a, R: RuleSet>(
    rules: &R,
    events: impl IntoIterator<Item = Event<'a>>,
) -> Result<Vec<Fact>, LimitError> {
    let mut groups = Groups::default();
    for event in events {
        groups.fold(rules, &event);
    }
    groups.publish(rules)
}

/// Canonical bytes of all facts: one line each, sorted by kind and key.
pub fn snapshot<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> String {
    let mut facts: Vec<&Fact> = facts.into_iter().collect();
    facts.sort_by(|a, b| a.key.cmp(&b.key));
    facts.iter().flat_map(|fact| [fact.snapshot_line(), String::from("\n")]).collect()
}

/// Sums under construction, one for each fact key.
#[derive(Clone)]
pub struct Groups<T>(BTreeMap<FactKey, Group<T>>);

/// The sum behind one fact, and the last event that supports it (looked up, never summed).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Group<T> {
    /// The sum of all contributions.
    pub tally: T,
    /// The greatest supporting event so far.
    pub last: Option<Support>,
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Groups(BTreeMap::new())
    }
}

impl<T: Tally> Groups<T> {
    /// Adds the contributions of one event; if there are none, returns the reason.
    pub fn fold<R: RuleSet<Tally = T>>(&mut self, rules: &R, event: &Event<'_>) -> Option<Skip> {
        match rules.contributions(event) {
            Ok(contributions) => {
                for contribution in contributions {
                    let (key, part) = contribution.into_group(event);
                    self.0.entry(key).or_default().merge(&part);
                }
                None
            }
            Err(skip) => Some(skip),
        }
    }

    /// The number of sums.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The sums over these events, sorted by kind and key, without derived facts.
    pub fn into_groups(self) -> Vec<(FactKey, Group<T>)> {
        self.0.into_iter().collect()
    }

    /// The sums behind all facts of a log, derived facts included, sorted by kind and key. All
    /// events of the log must have been folded.
    pub fn into_whole<R: RuleSet<Tally = T>>(mut self, rules: &R) -> Vec<(FactKey, Group<T>)> {
        if rules.derives() {
            let mut derived = Derived::default();
            self.0.iter().for_each(|(key, group)| derived.add(rules, key, group));
            self.0.extend(derived.into_groups());
        }
        self.into_groups()
    }

    /// The facts of a log, sorted by kind and key. All events of the log must have been folded.
    pub fn publish<R: RuleSet<Tally = T>>(self, rules: &R) -> Result<Vec<Fact>, LimitError> {
        let whole = self.into_whole(rules).into_iter();
        whole.filter_map(|(key, group)| group.publish(rules, &key).transpose()).collect()
    }
}

impl<T: Tally> Group<T> {
    /// Adds a sum over other events.
    pub fn merge(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.last = self.last.max(other.last);
    }

    /// The fact of this sum, if it has a supporting event.
    pub fn publish<R: RuleSet<Tally = T>>(
        &self,
        rules: &R,
        key: &FactKey,
    ) -> Result<Option<Fact>, LimitError> {
        let Some(last) = self.last else { return Ok(None) };
        let value = rules.publish(key, &self.tally, &last)?;
        Ok(value.map(|value| Fact { key: key.clone(), last, value }))
    }
}
