//! A preview of forgetting: the events that it would erase, and the changes of the facts.
//!
//! **Invariant:** it reads one snapshot of the log and writes nothing.

use crate::{Diff, Error};
use ipse_consolidate::{RuleSet, with_rules};
use ipse_core::EventRef;
use ipse_engine::{SelectedEvents, Selection, rebuild_without, rules_of};
use ipse_store::View;

/// The effect of forgetting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// The events that would be forgotten, in the order of the log.
    pub events: Vec<EventRef>,
    /// The number of selected events that are already forgotten.
    pub already: u64,
    /// The changes of the stored facts, including events that no pass has folded yet.
    pub facts: Diff,
}

/// Computes the effect of forgetting; writes nothing.
pub fn preview(view: View<'_>, which: &Selection) -> Result<Preview, Error> {
    with_rules!(rules_of(view)?, |rules| preview_under(view, rules, which))
}

/// Like [`preview`], with the caller's rules.
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
