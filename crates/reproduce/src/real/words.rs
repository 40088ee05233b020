//! What a real log answers, in a sentence or two.
//!
//! **Invariants:** a sentence follows from counts and intervals by the rules below, for all six
//! policies together: none is picked because it looks best. "Helps" and "harms" need an interval of
//! the lift that leaves 1 out.

use super::figures::ratio;
use super::{Passes, Real, Run};

/// The share of failures from which on it is said that they are most of them.
const MOST: f64 = 0.5;
/// The share of failures from which on it is worth saying that their keys were lost.
const NOTABLE: f64 = 0.05;

/// What the interval of a policy's lift says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Verdict {
    /// All of it lies above 1.
    Helps,
    /// All of it lies below 1.
    Harms,
    /// 1 lies in it.
    Open,
    /// There is none.
    Unknown,
}

impl Verdict {
    fn of(run: &Run) -> Self {
        match run.interval.and_then(|interval| interval.ends) {
            Some([low, _]) if low > 1.0 => Verdict::Helps,
            Some([_, high]) if high < 1.0 => Verdict::Harms,
            Some(_) => Verdict::Open,
            None => Verdict::Unknown,
        }
    }
}

impl Real {
    /// The conclusion.
    pub fn words(&self) -> String {
        let (later, skipped) = (&self.later, self.runs.iter().any(|run| run.counts.skipped > 0));
        let conclusion = if self.history.decisions == 0 {
            nothing_decided()
        } else if later.decisions == 0 {
            self.nothing_later()
        } else if later.failures == 0 {
            self.nothing_failed()
        } else if !skipped {
            self.nothing_skipped()
        } else if later.successes() == 0 {
            self.nothing_succeeded()
        } else {
            format!("{} {}", self.verdict(), self.ranges())
        };
        [Some(conclusion), self.unknown_keys(), self.lost_fields()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn nothing_later(&self) -> String {
        let until = self.until.map(|time| time.to_string()).unwrap_or_default();
        format!(
            "Nothing to decide on: no decision of this log is later than {until}, \
             so all {} are history.",
            self.history.decisions
        )
    }

    fn nothing_failed(&self) -> String {
        let lost = self.runs.iter().map(|run| run.counts.lost()).max().unwrap_or(0);
        let price = match lost {
            0 => "and none was skipped.".to_owned(),
            lost => format!("and up to {lost} of them were skipped: successes lost for nothing."),
        };
        format!(
            "No failure to avoid: all {} later decisions succeeded, {price}",
            self.later.decisions
        )
    }

    fn nothing_skipped(&self) -> String {
        format!(
            "Grounding changes nothing here: no fact that was consulted has a success rate below \
             one half, so nothing was skipped and all {} failures happened.",
            self.later.failures
        )
    }

    fn nothing_succeeded(&self) -> String {
        format!(
            "Whether grounding helps cannot be said here: all {} later decisions failed, so \
             skipping at random is as good as any skipping.",
            self.later.decisions
        )
    }

    /// What the intervals of all policies that skipped anything say together.
    fn verdict(&self) -> String {
        let runs = self.runs.iter().filter(|run| run.counts.skipped > 0);
        let mut verdicts: Vec<Verdict> = runs.map(Verdict::of).collect();
        verdicts.sort_unstable();
        verdicts.dedup();
        match verdicts[..] {
            [Verdict::Helps] => {
                "Grounding helps here: under every policy that skips anything the interval of the \
                 lift lies above 1."
            }
            [Verdict::Harms] => {
                "Grounding harms here: under every policy that skips anything the interval of the \
                 lift lies below 1, worse than skipping at random."
            }
            [Verdict::Unknown] => {
                "Whether grounding helps cannot be said here: too few keys for an interval of the \
                 lift."
            }
            [Verdict::Helps | Verdict::Harms, ..] => return self.mixed(),
            _ => "Grounding does not help here: the interval of the lift includes 1.",
        }
        .to_owned()
    }

    /// Which policies help, and which harm.
    fn mixed(&self) -> String {
        let named = |verdict: Verdict, place: &str| {
            let runs = self.runs.iter().filter(|run| run.counts.skipped > 0);
            let names: Vec<String> = runs
                .filter(|run| Verdict::of(run) == verdict)
                .map(|run| format!("{}/{}", run.policy.passes.name(), run.policy.retry.name()))
                .collect();
            (!names.is_empty()).then(|| format!("{place} for {}", names.join(", ")))
        };
        let places = [
            named(Verdict::Helps, "lies above 1"),
            named(Verdict::Harms, "lies below 1"),
            named(Verdict::Open, "includes 1"),
            named(Verdict::Unknown, "cannot be given"),
        ];
        let places: Vec<String> = places.into_iter().flatten().collect();
        format!(
            "Whether grounding helps here depends on passes/retry: the interval of the lift {}.",
            places.join("; it ")
        )
    }

    /// The price and the profit over all policies.
    fn ranges(&self) -> String {
        let shares = |part: fn(&Run) -> u64, whole: u64| {
            range(self.runs.iter().filter_map(|run| Some(100.0 * ratio(part(run), whole)?)), 1)
        };
        format!(
            "Over the {} policies {} % of failures are avoided and {} % of successes lost, a lift \
             of {}.",
            self.runs.len(),
            shares(|run| run.counts.avoided, self.later.failures),
            shares(|run| run.counts.lost(), self.later.successes()),
            range(self.runs.iter().filter_map(|run| run.counts.lift()), 2)
        )
    }

    /// Said if the history knows nothing of most failures.
    fn unknown_keys(&self) -> Option<String> {
        let frozen = self.runs.iter().find(|run| run.policy.passes == Passes::Frozen)?;
        let (unknown, failures) = (frozen.unknown_failures, self.later.failures);
        (ratio(unknown, failures)? >= MOST).then(|| {
            format!(
                "Most failures ({unknown} of {failures}) are on keys that the history has no fact \
                 about: it cannot foresee them."
            )
        })
    }

    /// Said if failures lose a part of their key.
    fn lost_fields(&self) -> Option<String> {
        let (lost, failures) = (self.later.lost_fields, self.later.failures);
        let hindsight = self.runs.iter().map(|run| run.hindsight).max()?;
        (ratio(lost, failures)? >= NOTABLE).then(|| {
            format!(
                "{lost} of {failures} failures lack a target or environment that every success of \
                 their skill has: no planner can ask for such a key before it has failed, and up \
                 to {hindsight} of the failures avoided are hindsight of this kind."
            )
        })
    }
}

fn nothing_decided() -> String {
    "Nothing to decide on: no event of this log is an attempt of a skill that succeeded or failed."
        .to_owned()
}

/// The least and the greatest of some figures, or the one that they print as.
fn range(figures: impl Iterator<Item = f64> + Clone, decimals: usize) -> String {
    let print = |figure: f64| format!("{figure:.decimals$}");
    let low = print(figures.clone().fold(f64::INFINITY, f64::min));
    let high = print(figures.fold(f64::NEG_INFINITY, f64::max));
    if low == high { low } else { format!("{low} to {high}") }
}
