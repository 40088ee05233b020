//! What facts would have spared the owner of a log: several ways to plan, replayed on its attempts.
//!
//! The protocol:
//! 1. Events are ordered by time, then by ref. A *decision* is an attempt at a skill that succeeded
//!    or failed. The *history* is a share of the decisions, the oldest ones, and every later
//!    decision of the same instant. All of the history is known.
//! 2. A planner decides on each later attempt, at the time of the attempt. An attempt that it makes
//!    ends as it did in the log. A skipped attempt teaches nothing.
//! 3. A planner learns in one of three ways: never after the history (*frozen*), before the first
//!    attempt of each UTC day (*daily*), after each attempt (*per event*).
//!
//! **Invariants**
//! - A planner sees the outcomes of attempts that it made, and no others.
//! - Counts are exact. No store is written: the state of a planner is the sum behind its facts,
//!   which the same functions compute as in a pass.

mod counts;
mod log;
mod planner;
mod sheet;
mod words;
pub mod worlds;

pub use counts::{Counts, Interval};
pub use log::{DecisionLog, Lines, Part, Source};
pub use planner::{Learning, PlannerKind};
pub use sheet::PROTOCOL;

use counts::{interval, ratio};
use ipse_core::Time;
use log::Decision;
use planner::Planner;

/// The share of the decisions that is history, in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct History(u64);

impl History {
    /// The greatest share: something must be left to decide on.
    pub const MAX: u64 = 99;

    /// A share in percent; `None` above 99.
    pub fn percent(percent: u64) -> Option<Self> {
        (percent <= Self::MAX).then_some(History(percent))
    }

    /// The share in percent.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl Default for History {
    fn default() -> Self {
        History(50)
    }
}

/// The results of one planner.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// How it decides.
    pub kind: PlannerKind,
    /// When it learns.
    pub learning: Learning,
    /// The counts of all decisions.
    pub counts: Counts,
    /// Failures of keys that the planner knew nothing about.
    pub unknown_failures: u64,
    /// Failures avoided of keys that a planner cannot query before they have failed.
    pub hindsight: u64,
    /// The keys with a skipped decision.
    pub keys_skipped: u64,
    /// The interval of the lift, by key.
    pub interval: Option<Interval>,
}

impl Run {
    /// Failures avoided minus successes lost.
    pub fn net(&self) -> i64 {
        self.counts.avoided.cast_signed() - self.counts.lost().cast_signed()
    }
}

/// The evaluation of one log.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluation {
    /// The name of the log.
    pub name: String,
    /// The lines of the log by result.
    pub lines: Lines,
    /// The last instant of the history; `None` if there is none.
    pub until: Option<Time>,
    /// The counts of the history.
    pub history: Part,
    /// The counts of the later decisions, which are those of every planner.
    pub later: Part,
    /// The results: each planner, in each way to learn that makes a difference to it.
    pub runs: Vec<Run>,
}

/// Replays a log. `progress` receives the number of decisions so far, and the total.
pub fn evaluate(
    name: &str,
    log: &DecisionLog,
    history: History,
    progress: &mut dyn FnMut(u64, u64),
) -> Evaluation {
    let split = log.split(history);
    let runs = runs();
    let total = (runs.len() * log.decisions.len()) as u64;
    let mut done = 0;
    let runs = runs.into_iter().map(|(kind, learning)| {
        let run = replay(log, split, kind, learning);
        done += log.decisions.len() as u64;
        progress(done, total);
        run
    });
    let runs = runs.collect();
    let until = split.checked_sub(1).map(|last| log.decisions[last].time);
    let (history, later) = log.parts(split);
    Evaluation { name: name.to_owned(), lines: log.lines, until, history, later, runs }
}

/// All planners with their ways to learn. One that reads no facts has only one.
fn runs() -> Vec<(PlannerKind, Learning)> {
    let ways = |kind: PlannerKind| {
        let ways: &[Learning] =
            if kind.reads_facts() { &Learning::ALL } else { &[Learning::PerEvent] };
        ways.iter().map(move |learning| (kind, *learning))
    };
    PlannerKind::ALL.into_iter().flat_map(ways).collect()
}

/// Lets one planner decide on all attempts after the history.
fn replay(log: &DecisionLog, split: usize, kind: PlannerKind, learning: Learning) -> Run {
    let (history, later) = log.decisions.split_at(split);
    let mut planner = Planner::new(kind, learning, log);
    history.iter().for_each(|decision| planner.learn(decision));
    planner.consolidate();
    let mut keys = vec![Counts::default(); log.keys.len()];
    let (mut unknown_failures, mut hindsight) = (0, 0);
    for decision in later {
        planner.reach(decision.time);
        let skipped = !planner.attempts(decision);
        keys[decision.key] += counted(decision, skipped);
        unknown_failures += u64::from(!decision.worked && !planner.knows(decision));
        hindsight += u64::from(skipped && decision.lost_field);
        if !skipped {
            planner.learn_later(decision);
        }
    }
    let decided: Vec<Counts> = keys.into_iter().filter(|key| key.decisions > 0).collect();
    let mut counts = Counts::default();
    decided.iter().for_each(|key| counts += *key);
    let keys_skipped = decided.iter().filter(|key| key.skipped > 0).count() as u64;
    let interval = interval(&decided);
    Run { kind, learning, counts, unknown_failures, hindsight, keys_skipped, interval }
}

fn counted(decision: &Decision, skipped: bool) -> Counts {
    let failed = !decision.worked;
    Counts {
        decisions: 1,
        failures: u64::from(failed),
        skipped: u64::from(skipped),
        avoided: u64::from(skipped && failed),
    }
}
