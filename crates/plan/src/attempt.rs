//! When to skip an attempt, and when to try again.
//!
//! An attempt is skipped only while its fact is clearly below the planner's threshold, failed last,
//! and is not yet due again. Everything else is a reason to try.
//!
//! **Invariant:** without a fact, with advice that misleads, or with a fact from the future, the
//! answer is to try. A wrong answer can therefore not last: a skipped key is due after seven days
//! at the latest.

use ipse_consolidate::Rules;
use ipse_consolidate::confidence::BASE;
use ipse_consolidate::days::Days;
use ipse_consolidate::stretch::{bounds, robust};
use ipse_consolidate::v2::{Dated, Newest, Verdict, retry_after};
use ipse_core::decimal::SCALE;
use ipse_core::json::{Object, Value};
use ipse_core::{Micro, Support, Time};

/// The greatest distance between the last event of a fact and its `retry_after`. A fact that is due
/// later than this from now has an event that is dated in the future.
const LONGEST_WAIT_MICROS: i64 = 7 * 86_400_000_000;

/// A step of a bound, in micro-units: four decimals.
const STEP: i64 = SCALE / 10_000;

/// The success rate below which a planner skips: from 0 to 1, ½ by default.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Threshold(Micro);

impl Threshold {
    /// A threshold in micro-units; `None` unless it is from 0 to 1.
    pub fn new(rate: Micro) -> Option<Self> {
        (0..=SCALE).contains(&rate.get()).then_some(Threshold(rate))
    }

    /// Reads decimal text such as `0.5`.
    pub fn parse(text: &str) -> Option<Self> {
        Micro::from_decimal(text).and_then(Threshold::new)
    }

    /// The rate.
    pub fn get(self) -> Micro {
        self.0
    }
}

impl Default for Threshold {
    fn default() -> Self {
        Threshold(Micro::new(SCALE / 2).unwrap_or_default())
    }
}

/// The figures of a skill fact of `v2` that the rule reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The upper bound of the success rate.
    pub high: Micro,
    /// The upper bound if no source counts for more than the median source; `None` with fewer than
    /// two sources.
    pub robust_high: Option<Micro>,
    /// Whether the last attempt failed.
    pub last_failed: bool,
    /// The time from which a failed attempt is due again.
    pub retry_after: Time,
}

impl Standing {
    /// The figures of a sum: those that its publication has. `None` without an observation.
    pub fn of(sum: &Dated, last: &Support) -> Option<Self> {
        let newest = Newest::of(sum);
        let high = |rate| Micro::new(bounds(rate, BASE).1 * STEP);
        let robust = robust(sum.sources.values().map(Days::all));
        Some(Standing {
            high: high(newest.rate).filter(|_| newest.rate.n > 0)?,
            robust_high: robust.and_then(|robust| high(robust.rate)),
            last_failed: !last.worked,
            retry_after: retry_after(last.time, newest.since),
        })
    }

    /// Reads the figures from the value of a fact; `None` if it is no skill fact of `v2`.
    pub fn read(value: &Object<'_>) -> Option<Self> {
        let high = |object: &Object<'_>| object.get("high").and_then(Value::as_micro);
        let text = |name: &str| value.get(name).and_then(Value::as_text);
        let robust = value.get("robust").and_then(Value::as_object);
        Some(Standing {
            high: high(value)?,
            robust_high: robust.and_then(high),
            last_failed: text("last_outcome")? == "failed",
            retry_after: Time::parse(text("retry_after")?).ok()?,
        })
    }
}

/// What is known about an attempt before it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knowledge {
    /// The rules in force.
    pub rules: Rules,
    /// The fact of the attempt's skill, target and environment.
    pub fact: Option<Standing>,
    /// The verdict about all facts of the skill.
    pub verdict: Option<Verdict>,
}

/// What a planner asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// The time of the attempt.
    pub now: Time,
    /// The rate below which the planner skips.
    pub threshold: Threshold,
    /// Whether no source may count for more than the median source: for producers that are not
    /// trusted.
    pub quorum: bool,
}

impl Question {
    /// A question with the default threshold, over all sources.
    pub fn at(now: Time) -> Self {
        Question { now, threshold: Threshold::default(), quorum: false }
    }
}

/// The answer, by the first reason that holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The log follows `v1`, whose facts do not say when they are due again.
    RulesV1,
    /// Nothing is known about this attempt.
    NoFact,
    /// Facts of this skill predict its outcomes worse than its total does.
    Misleading,
    /// A quorum is asked for, and the fact has fewer than two sources.
    NoRobust,
    /// The rate may be at or above the threshold.
    HighEnough,
    /// The last attempt worked.
    SucceededLast,
    /// The fact rests on an event that is dated in the future.
    FutureFact,
    /// Enough time has passed since the last failure.
    RetryDue,
    /// The rate is below the threshold, the last attempt failed, and it is not due again.
    Skip,
}

impl Reason {
    /// All reasons, in the order in which they are tried.
    pub const ALL: [Reason; 9] = [
        Reason::RulesV1,
        Reason::NoFact,
        Reason::Misleading,
        Reason::NoRobust,
        Reason::HighEnough,
        Reason::SucceededLast,
        Reason::FutureFact,
        Reason::RetryDue,
        Reason::Skip,
    ];

    /// Whether to make the attempt.
    pub fn attempt(self) -> bool {
        self != Reason::Skip
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Reason::RulesV1 => "rules_v1",
            Reason::NoFact => "no_fact",
            Reason::Misleading => "misleading",
            Reason::NoRobust => "no_robust",
            Reason::HighEnough => "high_enough",
            Reason::SucceededLast => "succeeded_last",
            Reason::FutureFact => "future_fact",
            Reason::RetryDue => "retry_due",
            Reason::Skip => "skip",
        }
    }
}

/// Whether to make an attempt, and why.
///
/// ```
/// use ipse_consolidate::Rules;
/// use ipse_core::{Micro, Time};
/// use ipse_plan::{Knowledge, Question, Reason, Standing, may_attempt};
///
/// let time = |text| Time::parse(text).unwrap();
/// let failing = Standing {
///     high: Micro::from_decimal("0.2").unwrap(),
///     robust_high: None,
///     last_failed: true,
///     retry_after: time("2026-05-08T10:00:00Z"),
/// };
/// let known = Knowledge { rules: Rules::V2, fact: Some(failing), verdict: None };
/// let on = |now| may_attempt(&known, &Question::at(time(now)));
/// assert_eq!(on("2026-05-06T10:00:00Z"), Reason::Skip);
/// assert_eq!(on("2026-05-08T10:00:00Z"), Reason::RetryDue);
/// ```
pub fn may_attempt(known: &Knowledge, question: &Question) -> Reason {
    if known.rules == Rules::V1 {
        return Reason::RulesV1;
    }
    let Some(fact) = known.fact else { return Reason::NoFact };
    if known.verdict == Some(Verdict::Misleading) {
        return Reason::Misleading;
    }
    let high = if question.quorum { fact.robust_high } else { Some(fact.high) };
    let Some(high) = high else { return Reason::NoRobust };
    if high >= question.threshold.get() {
        return Reason::HighEnough;
    }
    if !fact.last_failed {
        return Reason::SucceededLast;
    }
    let wait = fact.retry_after.micros() - question.now.micros();
    match wait {
        _ if wait > LONGEST_WAIT_MICROS => Reason::FutureFact,
        1.. => Reason::Skip,
        _ => Reason::RetryDue,
    }
}
