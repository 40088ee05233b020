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

    /// How many events may have been forgotten, if either side is believed.
    pub(super) fn most(&self) -> u64 {
        self.gone.len().max(self.said.len()) as u64
    }

    /// How many events of a range a pass at a position no longer found.
    pub(super) fn missed(&self, range: RangeInclusive<Seq>, pass: Seq) -> u64 {
        let missed = |(_, (name, counts)): &(&Seq, &(EventRef, bool))| {
            *counts && self.said.get(name).is_some_and(|said| *said < pass)
        };
        self.among(range).filter(missed).count() as u64
    }

    /// Whether content in a range is gone without a word.
    pub(super) fn lost(&self, range: RangeInclusive<Seq>) -> bool {
        self.among(range).any(|(seq, (name, _))| !self.is_said(*seq, name))
    }

    fn among(&self, range: RangeInclusive<Seq>) -> impl Iterator<Item = (&Seq, &(EventRef, bool))> {
        // A range that a damaged record gives may be none.
        let range = Some(range).filter(|range| range.start() <= range.end());
        range.into_iter().flat_map(|range| self.gone.range(range))
    }

    /// Whether a range has forgotten events.
    pub(super) fn any(&self, range: RangeInclusive<Seq>) -> bool {
        self.among(range).next().is_some()
    }

    fn is_said(&self, seq: Seq, name: &EventRef) -> bool {
        self.said.get(name).is_some_and(|said| *said > seq)
    }

    /// Compares what is gone with what is said to be.
    pub(super) fn check(&self, report: &mut Report) {
        for (seq, _) in self.gone.iter().filter(|(seq, (name, _))| !self.is_said(**seq, name)) {
            let message = "its content is gone, and no later forget event names it";
            report.critical(format!("seq {seq}"), message);
        }
        let gone: BTreeSet<&EventRef> = self.gone.values().map(|(name, _)| name).collect();
        for (name, said) in self.said.iter().filter(|(name, _)| !gone.contains(name)) {
            let message = format!("says that {name} is forgotten, and it is not");
            report.critical(format!("forget event at seq {said}"), message);
        }
    }
}
