//! Replays the decisions of a real log with a planner under one policy.
//!
//! **Invariants:** every decision reads the agent's table again. A skipped event never reaches the
//! agent's log. Time is that of the events: a skipped event advances the clock too.

use super::figures::{Counts, Interval, interval};
use super::log::{Decision, Log};
use crate::Error;
use crate::lab::{Agent, Lab};
use crate::scene::Record;
use crate::v3::THRESHOLD;
use ipse_core::{Admitted, FactKey, Time};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::slice;

/// A day, in microseconds.
const DAY: i64 = 86_400_000_000;

/// When passes run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passes {
    /// One pass after the history, and no other.
    Frozen,
    /// Also one pass before the first event of each UTC day.
    Daily,
    /// Also one pass after each event.
    PerEvent,
}

impl Passes {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Passes::Frozen => "frozen",
            Passes::Daily => "daily",
            Passes::PerEvent => "per event",
        }
    }
}

/// When a key with a low success rate is attempted again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Never.
    Never,
    /// If its last attempt is at least 24 hours old.
    AfterADay,
}

impl Retry {
    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Retry::Never => "never",
            Retry::AfterADay => "after a day",
        }
    }
}

/// When passes run, and when the planner retries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// When passes run.
    pub passes: Passes,
    /// When a skipped key is attempted again.
    pub retry: Retry,
}

impl Policy {
    /// All policies; the first one is V3's.
    pub const ALL: [Policy; 6] = [
        Policy { passes: Passes::Frozen, retry: Retry::Never },
        Policy { passes: Passes::Frozen, retry: Retry::AfterADay },
        Policy { passes: Passes::Daily, retry: Retry::Never },
        Policy { passes: Passes::Daily, retry: Retry::AfterADay },
        Policy { passes: Passes::PerEvent, retry: Retry::Never },
        Policy { passes: Passes::PerEvent, retry: Retry::AfterADay },
    ];
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "passes {}, retry {}", self.passes.name(), self.retry.name())
    }
}

/// The results of the later decisions under one policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The policy of this run.
    pub policy: Policy,
    /// The counts of all decisions.
    pub counts: Counts,
    /// Failures of keys without a fact at the time of the decision.
    pub unknown_failures: u64,
    /// Failures avoided of keys that a planner cannot query before they have failed.
    pub hindsight: u64,
    /// Keys with at least one skipped decision.
    pub keys_skipped: u64,
    /// The interval of the lift, by key; `None` with fewer than two keys.
    pub interval: Option<Interval>,
}

/// Replays the history to an agent, then lets its planner decide on the later events. `step`
/// receives the number of events that were just processed.
pub(super) fn replay(
    lab: &Lab<'_>,
    store: &Path,
    log: &Log,
    policy: Policy,
    step: &mut impl FnMut(usize),
) -> Result<Run, Error> {
    let (history, later) = log.events.split_at(log.split);
    let mut life = Life::begin(lab, store, history, policy)?;
    step(history.len());
    let mut planner = Planner::new(policy, log);
    for (event, decision) in later.iter().zip(&log.decisions[log.split..]) {
        life.reach(event.time)?;
        let attempts = |decision| planner.decide(&life.agent, decision, event.time);
        if decision.as_ref().is_none_or(attempts) {
            life.go_on(event)?;
        }
        step(1);
    }
    life.end()?;
    Ok(planner.finish())
}

/// An agent, and when its passes run.
struct Life {
    agent: Agent,
    passes: Passes,
    /// The UTC day, counted from 1970.
    today: Option<i64>,
    /// Events since the last pass. They are appended just before the next pass: until then no fact
    /// can use them, and one transaction is faster than many.
    waiting: Vec<Admitted>,
}

impl Life {
    /// Records the history and runs one pass.
    fn begin(
        lab: &Lab<'_>,
        store: &Path,
        history: &[Admitted],
        policy: Policy,
    ) -> Result<Self, Error> {
        let name = policy.to_string();
        let mut agent = lab.agent(store, &name)?;
        agent.live(history)?;
        agent.consolidate()?;
        if policy.passes == Passes::PerEvent {
            agent = lab.eager_agent(store, &name)?;
        }
        let today = history.last().map(|event| day(event.time));
        Ok(Life { agent, passes: policy.passes, today, waiting: Vec::new() })
    }

    /// Advances the clock to an event, whether or not it is skipped; runs a daily pass if due.
    fn reach(&mut self, now: Time) -> Result<(), Error> {
        let before = self.today.replace(day(now));
        if self.passes == Passes::Daily && before != self.today {
            self.agent.live(&std::mem::take(&mut self.waiting))?;
            self.agent.consolidate()?;
        }
        Ok(())
    }

    /// Records an event that was attempted.
    fn go_on(&mut self, event: &Admitted) -> Result<(), Error> {
        match self.passes {
            // No later pass will read it.
            Passes::Frozen => {}
            Passes::Daily => self.waiting.push(event.clone()),
            Passes::PerEvent => drop(self.agent.live(slice::from_ref(event))?),
        }
        Ok(())
    }

    /// Appends the events that still wait.
    fn end(self) -> Result<(), Error> {
        self.agent.live(&self.waiting).map(drop)
    }
}

/// The UTC day of an instant, counted from 1970.
fn day(time: Time) -> i64 {
    time.micros().div_euclid(DAY)
}

struct Planner<'l> {
    policy: Policy,
    /// The time of the last attempt of each key.
    attempted: BTreeMap<&'l FactKey, Time>,
    keys: BTreeMap<&'l FactKey, Counts>,
    unknown_failures: u64,
    hindsight: u64,
}

impl<'l> Planner<'l> {
    /// A planner that knows the times of the attempts in the history.
    fn new(policy: Policy, log: &'l Log) -> Self {
        let history = log.events.iter().zip(&log.decisions).take(log.split);
        // Events are ordered by time, so the last attempt of a key is kept.
        let attempted =
            history.filter_map(|(event, decision)| Some((&decision.as_ref()?.key, event.time)));
        let attempted = attempted.collect();
        Planner { policy, attempted, keys: BTreeMap::new(), unknown_failures: 0, hindsight: 0 }
    }

    /// Whether the decision is attempted.
    fn decide(&mut self, agent: &Agent, decision: &'l Decision, now: Time) -> bool {
        let known = Record::read(&agent.known(), &decision.key);
        let bad = known.is_some_and(|record| record.rate() < THRESHOLD);
        let skipped = bad && !self.retries(&decision.key, now);
        let failed = !decision.success;
        self.unknown_failures += u64::from(failed && known.is_none());
        self.hindsight += u64::from(skipped && decision.lost_field);
        *self.keys.entry(&decision.key).or_default() += Counts {
            decisions: 1,
            failures: u64::from(failed),
            skipped: u64::from(skipped),
            avoided: u64::from(skipped && failed),
        };
        if !skipped {
            self.attempted.insert(&decision.key, now);
        }
        !skipped
    }

    fn retries(&self, key: &FactKey, now: Time) -> bool {
        let long_ago = |last: &Time| now.micros() - last.micros() >= DAY;
        self.policy.retry == Retry::AfterADay && self.attempted.get(key).is_some_and(long_ago)
    }

    fn finish(self) -> Run {
        let keys: Vec<Counts> = self.keys.into_values().collect();
        let mut counts = Counts::default();
        keys.iter().for_each(|key| counts += *key);
        Run {
            policy: self.policy,
            counts,
            unknown_failures: self.unknown_failures,
            hindsight: self.hindsight,
            keys_skipped: keys.iter().filter(|key| key.skipped > 0).count() as u64,
            interval: interval(&keys),
        }
    }
}
