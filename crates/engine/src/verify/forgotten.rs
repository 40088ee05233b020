//! Forgotten events against the events that say so: nothing is gone without a word, and what is
//! said to be gone is.

use super::Report;
use ipse_core::json::Value;
use ipse_core::{EventRef, Seq, is_housekeeping, json_parse};
use ipse_door::MAX_DEPTH;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What the walk over the log found about forgetting.
#[derive(Default)]
pub(super) struct Forgets {
    /// Events without content by position: their names, and whether passes count such events.
    gone: BTreeMap<Seq, (EventRef, bool)>,
    /// The position of the first `forget` event that names an event.
    said: BTreeMap<EventRef, Seq>,
}

impl Forgets {
    /// Takes down an event without content.
    pub(super) fn gone(&mut self, name: EventRef, seq: Seq, event_type: &str) {
        self.gone.insert(seq, (name, !is_housekeeping(event_type)));
    }

    /// Takes down what a `forget` event says; says whether it can be read.
    pub(super) fn said(&mut self, seq: Seq, payload: &[u8]) -> bool {
        let value = json_parse::parse(payload, MAX_DEPTH).ok();
        let names = value.as_ref().and_then(|value| {
            match value.as_object()?.get("data")?.as_object()?.get("event_refs")? {
                Value::Array(names) => {
                    names.iter().map(|name| EventRef::parse(name.as_text()?)).collect()
                }
                _ => None,
            }
        });
        let names: Option<Vec<EventRef>> = names;
        for name in names.iter().flatten() {
            self.said.entry(*name).or_insert(seq);
        }
        names.is_some()
    }

    /// How many events are forgotten.
    pub(super) fn len(&self) -> u64 {
        self.gone.len() as u64
    }

    /// How many events of a range a pass at a position no longer found.
    pub(super) fn missed(&self, range: RangeInclusive<Seq>, pass: Seq) -> u64 {
        let missed = |(_, (name, counts)): &(&Seq, &(EventRef, bool))| {
            *counts && self.said.get(name).is_some_and(|said| *said < pass)
        };
        match range.start() <= range.end() {
            true => self.gone.range(range).filter(missed).count() as u64,
            false => 0,
        }
    }

    /// Compares what is gone with what is said to be.
    pub(super) fn check(&self, report: &mut Report) {
        for (seq, (name, _)) in &self.gone {
            match self.said.get(name) {
                Some(said) if said > seq => {}
                Some(_) => {
                    report.critical(format!("seq {seq}"), "was forgotten before it was there");
                }
                None => {
                    let message = "its content is gone, and no forget event names it";
                    report.critical(format!("seq {seq}"), message);
                }
            }
        }
        let gone: BTreeSet<&EventRef> = self.gone.values().map(|(name, _)| name).collect();
        for (name, said) in self.said.iter().filter(|(name, _)| !gone.contains(name)) {
            let message = format!("says that {name} is forgotten, and it is not");
            report.critical(format!("forget event at seq {said}"), message);
        }
    }
}
