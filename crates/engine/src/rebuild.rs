//! Rebuilding: all facts anew from the log, compared with the stored ones. It never repairs.

use crate::Error;
use ipse_consolidate::{Groups, RuleSet, Skip, snapshot};
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
    let mut groups = Groups::default();
    let mut events = 0;
    view.each_event(Seq(1)..=up_to, |_, event| {
        let skip = groups.fold(rules, event);
        events += u64::from(skip != Some(Skip::Housekeeping));
        Ok::<_, Error>(())
    })?;
    Ok(Rebuilt { events, facts: groups.publish(rules)? })
}
