//! The decisions of a log, in order, with the keys and skills that they belong to.
//!
//! **Invariants:** the order of the input lines has no effect. An event counts once. The rule set
//! decides which events are decisions, and of which key.

use super::History;
use ipse_consolidate::days::{Day, day_of};
use ipse_consolidate::{RuleSet, V1};
use ipse_core::fact::ANY;
use ipse_core::{Admitted, Event, EventRef, FactKey, FactKind, Support, Time};
use ipse_door::{Origin, admit};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The source of an event that names none.
const NO_SOURCE: &str = "import";
/// The indices of target and environment in the key of a skill.
const OPTIONAL_PARTS: [usize; 2] = [1, 2];

/// A log to evaluate.
pub struct Source {
    /// The name of the file, as shown in tables.
    pub name: String,
    /// JSON Lines, one event per line.
    pub lines: Vec<Vec<u8>>,
    /// Lines that are longer than any event may be; they count as rejected.
    pub too_long: u64,
}

impl Source {
    /// The name of its table. Logs of one run need distinct names, because files are named after
    /// them.
    pub fn table_name(&self) -> String {
        table_name(&self.name)
    }
}

/// The name of a log's table: the name of the log, with characters that every file system accepts.
pub(super) fn table_name(log: &str) -> String {
    let stem = log.split('.').find(|part| !part.is_empty()).unwrap_or_default();
    let plain = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("evaluate-{}", plain.collect::<String>())
}

/// The number of lines of a log by result; blank lines do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    /// Events.
    pub events: u64,
    /// Lines that repeat an event.
    pub duplicates: u64,
    /// Lines with other content under the source and id of an event; the earliest event counts.
    pub conflicts: u64,
    /// Lines that the door rejected, and lines that are too long.
    pub refused: u64,
}

/// Counts of one side of the split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// Attempts that succeeded or failed.
    pub decisions: u64,
    /// Those that failed.
    pub failures: u64,
    /// Distinct keys.
    pub keys: u64,
    /// Failures without a target or environment that every success of their skill has. A planner
    /// cannot query their key before they have failed.
    pub lost_fields: u64,
}

impl Part {
    /// Decisions that succeeded.
    pub fn successes(&self) -> u64 {
        self.decisions - self.failures
    }

    fn of(decisions: &[Decision]) -> Self {
        let count = |of: fn(&&Decision) -> bool| decisions.iter().filter(of).count() as u64;
        let keys: BTreeSet<usize> = decisions.iter().map(|decision| decision.key).collect();
        Part {
            decisions: decisions.len() as u64,
            failures: count(|decision| !decision.worked),
            keys: keys.len() as u64,
            lost_fields: count(|decision| decision.lost_field),
        }
    }
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
    /// Whether it failed and its key lacks a field that successes have.
    pub(super) lost_field: bool,
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
        let mut admitted = Vec::new();
        for line in lines {
            if line.as_ref().trim_ascii().is_empty() {
                continue;
            }
            // The salt has no effect on a decision, so it need not be random.
            match admit(line.as_ref(), Origin::Producer, || [0; 16]) {
                Ok(event) => admitted.push(event),
                Err(_) => counted.refused += 1,
            }
        }
        let events = once_each(admitted, &mut counted);
        Self::of(counted, &events)
    }

    fn of(lines: Lines, events: &[Admitted]) -> Self {
        let (mut keys, mut skills, mut sources) = <(Places, Places, Places)>::default();
        let (mut skill_of, mut fact_keys) = (Vec::new(), Vec::new());
        let mut decisions = Vec::new();
        for event in events {
            let row = Event::of_row(event.event_ref, event.time, &event.event_type, &event.columns);
            let row = row.expect("BUG: the door made columns that cannot be read");
            let Some((fact, worked)) = decided(&row) else { continue };
            let key = keys.of(fact.text());
            if key == skill_of.len() {
                skill_of.push(skills.of(&fact.parts()[0]));
                fact_keys.push(fact);
            }
            let source = sources.of(row.columns.source.unwrap_or(NO_SOURCE));
            let (time, event_ref) = (event.time, event.event_ref);
            let lost_field = false;
            decisions.push(Decision { time, event_ref, key, source, worked, lost_field });
        }
        mark_lost_fields(&mut decisions, &fact_keys);
        let (skills, sources) = (skills.0.len(), sources.into_texts());
        DecisionLog { lines, decisions, keys: skill_of, skills, sources }
    }

    /// The number of decisions.
    pub fn decisions(&self) -> usize {
        self.decisions.len()
    }

    /// The counts of the first decisions, and of all later ones.
    pub(super) fn parts(&self, split: usize) -> (Part, Part) {
        let (history, later) = self.decisions.split_at(split);
        (Part::of(history), Part::of(later))
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

/// Sorts events and leaves out repeated ones. Of several events with one source and id the first
/// one counts.
fn once_each(mut events: Vec<Admitted>, counted: &mut Lines) -> Vec<Admitted> {
    events.sort_by(order);
    let mut first: BTreeMap<EventRef, usize> = BTreeMap::new();
    let mut kept: Vec<Admitted> = Vec::new();
    for event in events {
        match first.get(&event.event_ref) {
            None => {
                first.insert(event.event_ref, kept.len());
                kept.push(event);
            }
            Some(place) if content(&kept[*place]) == content(&event) => counted.duplicates += 1,
            Some(_) => counted.conflicts += 1,
        }
    }
    counted.events = kept.len() as u64;
    kept
}

/// Orders by time, then by ref. Events with the same ref are ordered by their content without the
/// salt.
fn order(a: &Admitted, b: &Admitted) -> Ordering {
    let by_name = (a.time, a.event_ref).cmp(&(b.time, b.event_ref));
    by_name.then_with(|| content(a).cmp(&content(b)))
}

/// The content of an event without its salt.
fn content(event: &Admitted) -> [&str; 2] {
    let (before, after) = (event.salt_at.start, event.salt_at.end);
    [&event.canonical[..before], &event.canonical[after..]]
}

/// Marks failures that lack a part of their key that every success of their skill has.
fn mark_lost_fields(decisions: &mut [Decision], keys: &[FactKey]) {
    let mut succeeded = BTreeSet::new();
    let mut without = BTreeSet::new();
    for decision in decisions.iter().filter(|decision| decision.worked) {
        let parts = keys[decision.key].parts();
        let missing = OPTIONAL_PARTS.into_iter().filter(|at| parts[*at] == ANY);
        without.extend(missing.map(|at| (parts[0].clone(), at)));
        succeeded.insert(parts[0].clone());
    }
    for decision in decisions.iter_mut().filter(|decision| !decision.worked) {
        let parts = keys[decision.key].parts();
        let always_there = |at: &usize| !without.contains(&(parts[0].clone(), *at));
        let mut missing = OPTIONAL_PARTS.into_iter().filter(|at| parts[*at] == ANY);
        decision.lost_field = succeeded.contains(&parts[0]) && missing.any(|at| always_there(&at));
    }
}
