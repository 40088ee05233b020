//! The decisions of a log, in order, with the keys and skills that they belong to.
//!
//! **Invariants:** the order of the input lines has no effect. An event counts once. The rule set
//! decides which events are decisions, and of which key.

use super::History;
use crate::real::order;
use ipse_consolidate::days::{Day, day_of};
use ipse_consolidate::{RuleSet, V1};
use ipse_core::{Admitted, Event, EventRef, FactKey, FactKind, Support, Time};
use ipse_door::{Origin, admit};
use std::collections::BTreeMap;

/// The source of an event that names none.
const NO_SOURCE: &str = "import";

/// The number of lines of a log by result; blank lines do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    /// Events.
    pub events: u64,
    /// Lines whose source and id were read before.
    pub repeated: u64,
    /// Lines that the door rejected, and lines that are too long.
    pub refused: u64,
}

/// An attempt that succeeded or failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decision {
    pub(super) time: Time,
    pub(super) event_ref: EventRef,
    /// The place of its key.
    pub(super) key: usize,
    /// The place of its source.
    pub(super) source: usize,
    pub(super) worked: bool,
}

impl Decision {
    pub(super) fn day(&self) -> Day {
        day_of(self.time)
    }

    pub(super) fn support(&self) -> Support {
        Support { time: self.time, event_ref: self.event_ref, worked: self.worked }
    }
}

/// All decisions of a log by time and ref.
pub struct DecisionLog {
    pub(super) lines: Lines,
    pub(super) decisions: Vec<Decision>,
    /// Each key with the place of its skill.
    pub(super) keys: Vec<usize>,
    pub(super) skills: usize,
    pub(super) sources: Vec<String>,
}

/// The places of texts, in the order of their first use.
#[derive(Default)]
struct Places(BTreeMap<String, usize>);

impl Places {
    fn of(&mut self, text: &str) -> usize {
        let next = self.0.len();
        match self.0.get(text) {
            Some(place) => *place,
            None => *self.0.entry(text.to_owned()).or_insert(next),
        }
    }

    fn into_texts(self) -> Vec<String> {
        let mut texts: Vec<(String, usize)> = self.0.into_iter().collect();
        texts.sort_by_key(|(_, place)| *place);
        texts.into_iter().map(|(text, _)| text).collect()
    }
}

impl DecisionLog {
    /// Reads lines. `too_long` lines count as rejected.
    pub fn read(lines: impl IntoIterator<Item = impl AsRef<[u8]>>, too_long: u64) -> Self {
        let mut counted = Lines { refused: too_long, ..Lines::default() };
        let mut events = Vec::new();
        for line in lines {
            if line.as_ref().trim_ascii().is_empty() {
                continue;
            }
            // The salt has no effect on a decision, so it need not be random.
            match admit(line.as_ref(), Origin::Producer, || [0; 16]) {
                Ok(event) => events.push(event),
                Err(_) => counted.refused += 1,
            }
        }
        events.sort_by(order);
        let all = events.len();
        let mut seen = std::collections::BTreeSet::new();
        events.retain(|event| seen.insert(event.event_ref));
        counted.events = events.len() as u64;
        counted.repeated = (all - events.len()) as u64;
        Self::of(counted, &events)
    }

    fn of(lines: Lines, events: &[Admitted]) -> Self {
        let (mut keys, mut skills, mut sources) = <(Places, Places, Places)>::default();
        let mut skill_of = Vec::new();
        let mut decisions = Vec::new();
        for event in events {
            let row = Event::of_row(event.event_ref, event.time, &event.event_type, &event.columns);
            let row = row.expect("BUG: the door made columns that cannot be read");
            let Some((fact, worked)) = decided(&row) else { continue };
            let key = keys.of(fact.text());
            if key == skill_of.len() {
                skill_of.push(skills.of(&fact.parts()[0]));
            }
            let source = sources.of(row.columns.source.unwrap_or(NO_SOURCE));
            let (time, event_ref) = (event.time, event.event_ref);
            decisions.push(Decision { time, event_ref, key, source, worked });
        }
        let (skills, sources) = (skills.0.len(), sources.into_texts());
        DecisionLog { lines, decisions, keys: skill_of, skills, sources }
    }

    /// The number of decisions.
    pub fn decisions(&self) -> usize {
        self.decisions.len()
    }

    /// The number of decisions that are history. Decisions of one instant stay together.
    pub(super) fn split(&self, history: History) -> usize {
        let share = usize::try_from(history.get()).unwrap_or_default();
        let first = (self.decisions.len() * share).div_ceil(100);
        match first.checked_sub(1) {
            Some(last) => {
                let last = self.decisions[last].time;
                self.decisions.partition_point(|decision| decision.time <= last)
            }
            None => 0,
        }
    }
}

/// The key of an event that supports a fact about a skill, and whether it worked.
fn decided(event: &Event<'_>) -> Option<(FactKey, bool)> {
    let fed = V1.contributions(event).ok()?;
    let own =
        fed.into_iter().find(|fed| fed.supports && fed.key.kind() == FactKind::SkillSuccessRate)?;
    Some((own.key, own.tally.successes > 0))
}
