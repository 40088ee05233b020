//! A preview of forgetting: which events would go, and how the facts would move.
//!
//! **Invariant:** it reads one moment of the log and writes nothing.

use crate::{Diff, Error};
use ipse_consolidate::{RuleSet, with_rules};
use ipse_core::EventRef;
use ipse_engine::{SelectedEvents, Selection, rebuild_without, rules_of};
use ipse_store::View;

/// What forgetting would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// The events that would be forgotten, in the order of the log.
    pub events: Vec<EventRef>,
    /// Events that had been forgotten before.
    pub already: u64,
    /// How the stored facts would move, events that no pass has folded yet included.
    pub facts: Diff,
}

/// Looks what forgetting would do; writes nothing.
pub fn preview(view: View<'_>, which: &Selection) -> Result<Preview, Error> {
    with_rules!(rules_of(view)?, |rules| preview_under(view, rules, which))
}

/// The same under rules of the caller's choice.
pub fn preview_under<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    which: &Selection,
) -> Result<Preview, Error> {
    let chosen = SelectedEvents::of(view, which)?;
    let mut facts = Diff::default();
    if !chosen.events.is_empty() {
        let without = chosen.events.keys().copied().collect();
        let after = rebuild_without(view, rules, view.head()?, &without)?.facts;
        facts = Diff::between(view.facts()?, after);
    }
    let (events, already) = (chosen.events.into_values().collect(), chosen.already);
    Ok(Preview { events, already, facts })
}
