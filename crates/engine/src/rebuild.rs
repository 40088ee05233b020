//! Rebuilding: all facts anew from the log, compared with the stored ones. It never repairs.

use crate::Error;
use crate::scan::fold_range;
use ipse_consolidate::{RuleSet, snapshot};
use ipse_core::{Fact, Seq};
use ipse_store::sqlite::View;

/// What a rebuild made, and whether the store says the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    /// Events folded, housekeeping aside.
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

/// `f` over the log up to a position.
pub fn rebuild<R: RuleSet>(view: View<'_>, rules: &R, up_to: Seq) -> Result<Rebuilt, Error> {
    let folded = fold_range(view, rules, Seq(1)..=up_to)?;
    let facts = folded.groups.iter().map(|(key, group)| group.publish(rules, key));
    let facts = facts.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    Ok(Rebuilt { events: folded.events, facts })
}
