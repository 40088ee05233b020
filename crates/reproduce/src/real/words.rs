//! The conclusion about a real log in one or two sentences.
//!
//! **Invariants:** a sentence follows from counts and intervals by the rules below, for all six
//! policies together; none is picked because it looks best. "Helps" and "harms" require an interval
//! of the lift that excludes 1, based on enough keys.

use super::figures::ratio;
use super::page::counted;
use super::{Lines, Passes, Real, Run};

/// The share of failures that counts as most of them.
const MOST: f64 = 0.5;
/// The share of failures with a lost field that is worth a sentence.
const NOTABLE: f64 = 0.05;

/// The least number of skipped keys for which an interval counts. If fewer keys all point one way,
/// that happens by chance in more than 5 % of cases (2 · 2⁻⁵), and resampling cannot show it.
pub(crate) const FEW: u64 = 6;

/// The meaning of the interval of a policy's lift.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Verdict {
    /// The interval is above 1.
    Helps,
    /// The interval is below 1.
    Harms,
    /// The interval contains 1.
    Open,
    /// No interval, or too few keys.
    Unknown,
}

impl Verdict {
    fn of(run: &Run) -> Self {
        let believed = run.interval.filter(|_| run.keys_skipped >= FEW);
        match believed.and_then(|interval| interval.ends) {
            Some([low, _]) if low > 1.0 => Verdict::Helps,
            Some([_, high]) if high < 1.0 => Verdict::Harms,
            Some(_) => Verdict::Open,
            None => Verdict::Unknown,
        }
    }
}

const NOTHING_DECIDED: &str = "Nothing to decide on: no event of this log is an attempt of a \
    skill that succeeded or failed.";

impl Real {
    /// The conclusion as text.
    pub fn words(&self) -> String {
        let (later, skipped) = (&self.later, self.runs.iter().any(|run| run.counts.skipped > 0));
        let conclusion = if self.history.decisions == 0 {
            NOTHING_DECIDED.to_owned()
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
        [Some(conclusion), self.unknown_keys(), self.lost_fields(), self.left_out()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The lines that are left out, with the reasons.
    fn left_out(&self) -> Option<String> {
        let Lines { refused, conflicts, duplicates, .. } = self.lines;
        let reported = [
            (refused, "line", "rejected by the door"),
            (conflicts, "line", "in conflict with another one of its source and id"),
            (duplicates, "line", "duplicated"),
        ];
        let reported = reported.into_iter().filter(|(n, ..)| *n > 0);
        let reported: Vec<String> =
            reported.map(|(n, noun, why)| format!("{} {why}", counted(n, noun))).collect();
        (!reported.is_empty()).then(|| format!("Left out: {}.", reported.join(", ")))
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
            "This log does not show whether grounding helps: all {} later decisions failed, so \
             skipping at random is as good as any other skipping.",
            self.later.decisions
        )
    }

    /// The verdict over all policies that skipped anything.
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
            [Verdict::Unknown] => return self.too_few(),
            [Verdict::Helps | Verdict::Harms, ..] => return self.mixed(),
            _ => "Grounding does not help here: the interval of the lift includes 1.",
        }
        .to_owned()
    }

    fn too_few(&self) -> String {
        let most = self.runs.iter().map(|run| run.keys_skipped).max().unwrap_or(0);
        format!(
            "This log does not show whether grounding helps beyond its keys: at most {most} of \
             them were skipped, and an answer needs {FEW}."
        )
    }

    /// Lists the policies that help and those that harm.
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
            named(Verdict::Unknown, "rests on too few keys"),
        ];
        let places: Vec<String> = places.into_iter().flatten().collect();
        format!(
            "Whether grounding helps here depends on passes/retry: the interval of the lift {}.",
            places.join("; it ")
        )
    }

    /// The ranges of failures avoided, successes lost and lift over all policies.
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

    /// A sentence if the history has no fact about most failures.
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

    /// A sentence if failures lack a part of their key.
    fn lost_fields(&self) -> Option<String> {
        let (lost, failures) = (self.later.lost_fields, self.later.failures);
        let hindsight = self.runs.iter().map(|run| run.hindsight).max()?;
        (ratio(lost, failures)? >= NOTABLE).then(|| {
            format!(
                "{lost} of {failures} failures came without a target or environment that every \
                 success of their skill has: no planner can query such a key before it has \
                 failed, and up to {hindsight} of the failures avoided are hindsight of this kind."
            )
        })
    }
}

/// The least and the greatest figure, or one number if both print the same.
fn range(figures: impl Iterator<Item = f64> + Clone, decimals: usize) -> String {
    let print = |figure: f64| format!("{figure:.decimals$}");
    let low = print(figures.clone().fold(f64::INFINITY, f64::min));
    let high = print(figures.fold(f64::NEG_INFINITY, f64::max));
    if low == high { low } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::{Counts, Interval, Lines, Part, Policy};

    /// A result in which every policy skips 10 of 100 decisions and avoids 8 of 20 failures, with
    /// these intervals of the lift.
    fn real(ends: [Option<[f64; 2]>; 6]) -> Real {
        let part = Part { events: 100, decisions: 100, failures: 20, keys: 9, lost_fields: 0 };
        let counts = Counts { decisions: 100, failures: 20, skipped: 10, avoided: 8 };
        let run = |(policy, ends)| Run {
            policy,
            counts,
            unknown_failures: 0,
            hindsight: 0,
            keys_skipped: FEW,
            interval: Some(Interval { ends, undefined: 0 }),
        };
        Real {
            name: "log.jsonl".to_owned(),
            lines: Lines::default(),
            until: None,
            history: part,
            later: part,
            runs: Policy::ALL.into_iter().zip(ends).map(run).collect(),
        }
    }

    const ABOVE: Option<[f64; 2]> = Some([1.5, 3.0]);
    const BELOW: Option<[f64; 2]> = Some([0.5, 0.9]);
    const AROUND: Option<[f64; 2]> = Some([1.0, 3.0]);
    const FIGURES: &str = " Over the 6 policies 40.0 % of failures are avoided and 2.5 % of \
        successes lost, a lift of 4.00.";

    fn check(ends: [Option<[f64; 2]>; 6], verdict: &str) {
        let words = real(ends).words();
        assert_eq!(words.strip_suffix(FIGURES), Some(verdict), "{words}");
    }

    #[test]
    fn a_verdict_needs_all_policies() {
        check(
            [ABOVE; 6],
            "Grounding helps here: under every policy that skips anything the interval of the lift \
             lies above 1.",
        );
        check(
            [BELOW; 6],
            "Grounding harms here: under every policy that skips anything the interval of the lift \
             lies below 1, worse than skipping at random.",
        );
        let open = "Grounding does not help here: the interval of the lift includes 1.";
        check([AROUND; 6], open);
        check([AROUND, None, AROUND, None, AROUND, None], open);
        check(
            [ABOVE, BELOW, AROUND, None, ABOVE, AROUND],
            "Whether grounding helps here depends on passes/retry: the interval of the lift lies \
             above 1 for frozen/never, per event/never; it lies below 1 for frozen/after a day; it \
             includes 1 for daily/never, per event/after a day; it rests on too few keys for \
             daily/after a day.",
        );
    }

    #[test]
    fn few_keys_are_not_believed() {
        let mut few = real([ABOVE; 6]);
        few.runs.iter_mut().for_each(|run| run.keys_skipped = FEW - 1);
        let words = few.words();
        assert!(
            words.starts_with("This log does not show whether grounding helps beyond its keys"),
            "{words}"
        );
        assert!(words.contains("at most 5 of them were skipped"), "{words}");
    }

    #[test]
    fn a_policy_that_skips_nothing_has_no_say() {
        let mut idle = real([ABOVE, None, ABOVE, ABOVE, ABOVE, ABOVE]);
        idle.runs[1].counts = Counts { skipped: 0, avoided: 0, ..idle.runs[1].counts };
        let words = idle.words();
        assert!(words.starts_with("Grounding helps here"), "{words}");
        assert!(words.contains("0.0 to 40.0 % of failures are avoided"), "{words}");
    }

    #[test]
    fn reasons_are_given_from_their_shares_on() {
        let with = |unknown: u64, lost: u64| {
            let mut real = real([ABOVE; 6]);
            real.runs[0].unknown_failures = unknown;
            real.later.lost_fields = lost;
            let words = real.words();
            (
                words.contains("Most failures (10 of 20)"),
                words.contains("1 of 20 failures came without"),
            )
        };
        assert_eq!(with(9, 0), (false, false));
        assert_eq!(with(10, 0), (true, false));
        assert_eq!(with(9, 1), (false, true));
    }
}
