//! A real log in order: its events, the decisions among them, and the end of the history.
//!
//! **Invariants:** the order of the input lines does not matter. All events of one instant are on
//! the same side of the split. The rule set defines decisions and their keys, not this module.

use crate::Error;
use crate::lab::Agent;
use ipse_consolidate::{RuleSet, V1};
use ipse_core::fact::ANY;
use ipse_core::{Admitted, Event, FactKey, FactKind, Time};
use ipse_store::Appended;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The share of decisions that are history, as a fraction.
const HISTORY: [usize; 2] = [1, 2];
/// The indices of target and environment in the key of a skill.
const OPTIONAL_PARTS: [usize; 2] = [1, 2];

/// The number of lines of a log by result; blank lines do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lines {
    /// Events of the log.
    pub events: u64,
    /// Duplicates of other lines.
    pub duplicates: u64,
    /// Lines with other content under a source and id that were already read.
    pub conflicts: u64,
    /// Lines that the door rejected.
    pub refused: u64,
}

/// Counts of one side of the split.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// All events, of any type.
    pub events: u64,
    /// Decisions among them.
    pub decisions: u64,
    /// Decisions that failed.
    pub failures: u64,
    /// Distinct keys of the decisions.
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
}

/// An attempt at a skill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Decision {
    pub(super) key: FactKey,
    pub(super) success: bool,
    /// Whether it failed and its key lacks a field that successes have.
    pub(super) lost_field: bool,
}

/// All events by time and ref, each with its decision if it is one.
pub(super) struct Log {
    pub(super) lines: Lines,
    pub(super) events: Vec<Admitted>,
    pub(super) decisions: Vec<Option<Decision>>,
    /// The number of events that are history.
    pub(super) split: usize,
}

impl Log {
    /// Validates lines at the door and appends them to an agent's log, which detects duplicates.
    pub(super) fn read(agent: &mut Agent, lines: &[Vec<u8>]) -> Result<Self, Error> {
        let written = lines.iter().filter(|line| !line.trim_ascii().is_empty());
        let (mut admitted, mut refused) = (Vec::new(), 0);
        for line in written {
            match agent.admit_one(line) {
                Ok(event) => admitted.push(event),
                Err(_) => refused += 1,
            }
        }
        admitted.sort_by(order);
        let appended = agent.live(&admitted)?;
        let mut lines = Lines { refused, ..Lines::default() };
        for one in &appended {
            match one {
                Appended::New(_) => lines.events += 1,
                Appended::Duplicate(_) => lines.duplicates += 1,
                Appended::Ahead(_) => lines.refused += 1,
                Appended::Conflict(_) | Appended::Forgotten(_) | Appended::Unsigned => {
                    lines.conflicts += 1;
                }
            }
        }
        let reported = admitted.into_iter().zip(appended);
        let events = reported.filter(|(_, one)| matches!(one, Appended::New(_)));
        Ok(Log::of(lines, events.map(|(event, _)| event).collect()))
    }

    fn of(lines: Lines, events: Vec<Admitted>) -> Self {
        let mut decisions: Vec<Option<Decision>> = events.iter().map(decision).collect();
        mark_lost_fields(&mut decisions);
        let split = split(&events, &decisions);
        Log { lines, events, decisions, split }
    }

    /// The last instant of the history; `None` if the history is empty.
    pub(super) fn until(&self) -> Option<Time> {
        self.events[..self.split].last().map(|event| event.time)
    }

    /// The counts of the history and of the later part.
    pub(super) fn parts(&self) -> (Part, Part) {
        let (history, later) = self.decisions.split_at(self.split);
        (part(history), part(later))
    }
}

/// Orders by time, then by ref. Events with the same ref are ordered by their content without the
/// salt, because the salt is drawn as lines arrive.
pub(crate) fn order(a: &Admitted, b: &Admitted) -> Ordering {
    let says = |event: &Admitted| {
        let (before, after) = (event.salt_at.start, event.salt_at.end);
        [event.canonical[..before].to_owned(), event.canonical[after..].to_owned()]
    };
    let by_name = (a.time, a.event_ref).cmp(&(b.time, b.event_ref));
    by_name.then_with(|| says(a).cmp(&says(b)))
}

/// The decision of an event, if it supports a fact about a skill.
fn decision(event: &Admitted) -> Option<Decision> {
    let row = Event::of_row(event.event_ref, event.time, &event.event_type, &event.columns);
    let row = row.expect("BUG: the door made columns that cannot be read");
    let fed = V1.contributions(&row).ok()?;
    let about_a_skill = |fact: &FactKey| fact.kind() == FactKind::SkillSuccessRate;
    let own = fed.into_iter().find(|fed| fed.supports && about_a_skill(&fed.key))?;
    Some(Decision { key: own.key, success: own.tally.successes > 0, lost_field: false })
}

/// Marks failures that lack a part of their key that every success of their skill has.
fn mark_lost_fields(decisions: &mut [Option<Decision>]) {
    let mut succeeded = BTreeSet::new();
    let mut without = BTreeSet::new();
    for decision in decisions.iter().flatten().filter(|decision| decision.success) {
        let parts = decision.key.parts();
        let missing = OPTIONAL_PARTS.into_iter().filter(|at| parts[*at] == ANY);
        without.extend(missing.map(|at| (parts[0].clone(), at)));
        succeeded.insert(parts[0].clone());
    }
    for decision in decisions.iter_mut().flatten().filter(|decision| !decision.success) {
        let parts = decision.key.parts();
        let always_there = |at: &usize| !without.contains(&(parts[0].clone(), *at));
        let mut missing = OPTIONAL_PARTS.into_iter().filter(|at| parts[*at] == ANY);
        decision.lost_field = succeeded.contains(&parts[0]) && missing.any(|at| always_there(&at));
    }
}

/// The number of events that are history: the first half of the decisions, rounded up, and
/// everything that is not later than the last of them.
fn split(events: &[Admitted], decisions: &[Option<Decision>]) -> usize {
    let mut decided = events.iter().zip(decisions).filter(|(_, decision)| decision.is_some());
    let [share, whole] = HISTORY;
    let first = (decided.clone().count() * share).div_ceil(whole);
    match first.checked_sub(1).and_then(|last| decided.nth(last)) {
        Some((last, _)) => events.partition_point(|event| event.time <= last.time),
        None => 0,
    }
}

fn part(decisions: &[Option<Decision>]) -> Part {
    let all = || decisions.iter().flatten();
    let count = |of: fn(&Decision) -> bool| all().filter(|decision| of(decision)).count() as u64;
    Part {
        events: decisions.len() as u64,
        decisions: count(|_| true),
        failures: count(|decision| !decision.success),
        keys: all().map(|decision| &decision.key).collect::<BTreeSet<_>>().len() as u64,
        lost_fields: count(|decision| decision.lost_field),
    }
}
