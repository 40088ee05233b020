//! The planners of an evaluation: what each knows, and when it skips an attempt.
//!
//! **Invariants:** a planner decides on what it learned before, at the time of the attempt. The
//! facts of `v1` and `v2` are computed from their sums as a pass does; only the sums that a
//! decision reads are kept.

use super::log::{Decision, DecisionLog};
use ipse_consolidate::days::{Day, Rate, day_of};
use ipse_consolidate::v2::{Advice, Dated, Verdict};
use ipse_consolidate::{Rules, Tally};
use ipse_core::{Support, Time};
use ipse_plan::{Knowledge, Question, Standing, may_attempt};

const HOUR_MICROS: i64 = 3_600_000_000;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;
/// The failures in a row that open the circuit breaker.
const BREAKING: u32 = 3;

/// How a planner decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PlannerKind {
    /// It makes every attempt.
    Always,
    /// Three failures in a row under a key: it skips for one hour after the last of them.
    Breaker,
    /// It skips a key whose success rate in `v1` is below ½, for ever.
    V1Never,
    /// The same, but it tries again if the last attempt is a day old.
    V1Day,
    /// It asks `may_attempt` with the facts of `v2`.
    V2,
}

impl PlannerKind {
    /// All planners.
    pub const ALL: [PlannerKind; 5] = [
        PlannerKind::Always,
        PlannerKind::Breaker,
        PlannerKind::V1Never,
        PlannerKind::V1Day,
        PlannerKind::V2,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            PlannerKind::Always => "always",
            PlannerKind::Breaker => "breaker",
            PlannerKind::V1Never => "v1_never",
            PlannerKind::V1Day => "v1_day",
            PlannerKind::V2 => "v2",
        }
    }

    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            PlannerKind::Always => "always try",
            PlannerKind::Breaker => "circuit breaker",
            PlannerKind::V1Never => "v1, never again",
            PlannerKind::V1Day => "v1, once a day",
            PlannerKind::V2 => "v2, may_attempt",
        }
    }

    /// Whether it reads facts, so that the time of passes has an effect.
    pub fn reads_facts(self) -> bool {
        matches!(self, PlannerKind::V1Never | PlannerKind::V1Day | PlannerKind::V2)
    }
}

/// When the facts of a planner change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Learning {
    /// Never after the history.
    Frozen,
    /// Before the first attempt of each UTC day.
    Daily,
    /// After each attempt.
    PerEvent,
}

impl Learning {
    /// All of them.
    pub const ALL: [Learning; 3] = [Learning::Frozen, Learning::Daily, Learning::PerEvent];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Learning::Frozen => "frozen",
            Learning::Daily => "daily",
            Learning::PerEvent => "per event",
        }
    }
}

/// What a planner knows about one key.
#[derive(Default)]
struct Known {
    /// The sums behind the fact.
    rate: Rate,
    dated: Dated,
    last: Option<Support>,
    /// The figures of the fact of `v2`, if they are up to date.
    standing: Option<Option<Standing>>,
    /// Failures in a row, and the last time at which there were enough to break.
    in_a_row: u32,
    broken: Option<Time>,
    /// The last attempt, whether or not a fact has it.
    attempted: Option<Time>,
}

/// A planner under way.
pub(super) struct Planner<'l> {
    kind: PlannerKind,
    learning: Learning,
    log: &'l DecisionLog,
    keys: Vec<Known>,
    /// The sums behind the advice on each skill.
    advice: Vec<Advice>,
    /// Attempts that no fact has yet.
    waiting: Vec<Decision>,
    today: Option<Day>,
}

impl<'l> Planner<'l> {
    pub(super) fn new(kind: PlannerKind, learning: Learning, log: &'l DecisionLog) -> Self {
        let keys = log.keys.iter().map(|_| Known::default()).collect();
        let (advice, waiting) = (vec![Advice::default(); log.skills], Vec::new());
        Planner { kind, learning, log, keys, advice, waiting, today: None }
    }

    /// Learns from an attempt that the planner made.
    pub(super) fn learn(&mut self, decision: &Decision) {
        self.remember(decision);
        self.fold(decision);
    }

    /// Ends the history.
    pub(super) fn consolidate(&mut self) {
        self.today = None;
    }

    /// The same after the history: facts follow when the planner learns.
    pub(super) fn learn_later(&mut self, decision: &Decision) {
        self.remember(decision);
        match self.learning {
            Learning::Frozen => {}
            Learning::Daily => self.waiting.push(*decision),
            Learning::PerEvent => self.fold(decision),
        }
    }

    /// Advances the clock; a new day brings a pass, if the planner learns daily.
    pub(super) fn reach(&mut self, now: Time) {
        let before = self.today.replace(day_of(now));
        if self.learning == Learning::Daily && before != self.today {
            let waiting = std::mem::take(&mut self.waiting);
            waiting.iter().for_each(|decision| self.fold(decision));
        }
    }

    /// What a planner remembers by itself, without facts.
    fn remember(&mut self, decision: &Decision) {
        let known = &mut self.keys[decision.key];
        known.attempted = Some(decision.time);
        known.in_a_row = if decision.worked { 0 } else { known.in_a_row + 1 };
        match known.in_a_row {
            0 => known.broken = None,
            BREAKING.. => known.broken = Some(decision.time),
            _ => {}
        }
    }

    /// Adds an attempt to the facts.
    fn fold(&mut self, decision: &Decision) {
        let known = &mut self.keys[decision.key];
        let one = Rate { n: 1, s: i64::from(decision.worked) };
        if self.kind == PlannerKind::V2 {
            let advice = &mut self.advice[self.log.keys[decision.key]];
            advice.add(&Advice::of(known.rate).negated());
            advice.add(&Advice::of(known.rate.plus(one)));
            let source = &self.log.sources[decision.source];
            if !known.dated.sources.contains_key(source) {
                known.dated.sources.insert(source.clone(), Default::default());
            }
            let days = known.dated.sources.get_mut(source).expect("BUG: it was just inserted");
            days.put(decision.day(), &one);
            known.last = known.last.max(Some(decision.support()));
            known.standing = None;
        }
        known.rate = known.rate.plus(one);
    }

    /// Whether the planner has a fact about the key of an attempt, or has made one without facts.
    pub(super) fn knows(&self, decision: &Decision) -> bool {
        self.keys[decision.key].rate.n > 0
    }

    /// Whether the planner makes an attempt.
    pub(super) fn attempts(&mut self, decision: &Decision) -> bool {
        let now = decision.time;
        let known = &self.keys[decision.key];
        let within =
            |time: Option<Time>, span| time.is_some_and(|it| now.micros() - it.micros() < span);
        let low = known.rate.n > 0 && 2 * known.rate.s < known.rate.n;
        match self.kind {
            PlannerKind::Always => true,
            PlannerKind::Breaker => !within(known.broken, HOUR_MICROS),
            PlannerKind::V1Never => !low,
            PlannerKind::V1Day => !(low && within(known.attempted, DAY_MICROS)),
            PlannerKind::V2 => self.may_attempt(decision.key, now),
        }
    }

    fn may_attempt(&mut self, key: usize, now: Time) -> bool {
        let known = &mut self.keys[key];
        let (dated, last) = (&known.dated, known.last);
        let fact =
            *known.standing.get_or_insert_with(|| last.and_then(|last| Standing::of(dated, &last)));
        let verdict: Option<Verdict> =
            self.advice[self.log.keys[key]].judge().map(|(_, verdict)| verdict);
        let known = Knowledge { rules: Rules::V2, fact, verdict };
        may_attempt(&known, &Question::at(now)).attempt()
    }
}
