//! The conclusion of an evaluation in a few sentences.
//!
//! **Invariants:** a sentence follows from counts and intervals by the rules below. "Helps" and
//! "harms" require an interval of the lift that excludes 1, based on enough keys. A planner that is
//! better than memory is named.

use super::{Evaluation, Learning, Lines, PlannerKind, Run, ratio};

/// The share of failures that counts as most of them.
const MOST: f64 = 0.5;
/// The share of failures with a lost field that is worth a sentence.
const NOTABLE: f64 = 0.05;
/// The least number of skipped keys for which an interval counts. If fewer keys all point one way,
/// that happens by chance in more than 5 % of cases (2 · 2⁻⁵), and resampling cannot show it.
const FEW_KEYS: u64 = 6;

impl Evaluation {
    /// The conclusion as text.
    pub fn words(&self) -> String {
        let later = &self.later;
        let conclusion = if self.history.decisions + later.decisions == 0 {
            vec![
                "Nothing to decide on: no event of this log is an attempt of a skill that \
                 succeeded or failed."
                    .to_owned(),
            ]
        } else if later.decisions == 0 {
            vec![self.nothing_later()]
        } else if later.failures == 0 {
            vec![self.nothing_failed()]
        } else if later.successes() == 0 {
            vec![format!(
                "This log does not show whether memory helps: all {} later decisions failed, so \
                 skipping at random is as good as any other skipping.",
                later.decisions
            )]
        } else {
            self.verdict()
        };
        let reasons = [self.unknown_keys(), self.lost_fields(), self.left_out()];
        let sentences: Vec<String> =
            conclusion.into_iter().chain(reasons.into_iter().flatten()).collect();
        sentences.join(" ")
    }

    fn nothing_later(&self) -> String {
        let until = self.until.map(|time| time.to_string()).unwrap_or_default();
        format!(
            "Nothing to decide on: no decision of this log is later than {until}, so all {} are \
             history.",
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

    /// The verdict about `v2`, and a planner that is better.
    fn verdict(&self) -> Vec<String> {
        let Some(v2) = self.run(PlannerKind::V2) else { return Vec::new() };
        [Some(self.about_v2(v2)), self.best_of_others(v2)].into_iter().flatten().collect()
    }

    /// A planner that learns after each attempt.
    fn run(&self, kind: PlannerKind) -> Option<&Run> {
        self.runs.iter().find(|run| run.kind == kind && run.learning == Learning::PerEvent)
    }

    fn about_v2(&self, run: &Run) -> String {
        let counts = &run.counts;
        if counts.skipped == 0 {
            return format!(
                "Memory changes nothing here: may_attempt never skips, because no key stays \
                 clearly below one half. All {} failures happen, and nothing is lost.",
                counts.failures
            );
        }
        let verdict = match run.interval.and_then(|interval| interval.ends) {
            _ if run.keys_skipped < FEW_KEYS => format!(
                "Whether memory helps beyond these keys cannot be said: {} of them were skipped, \
                 and an answer needs {FEW_KEYS}.",
                run.keys_skipped
            ),
            Some([low, _]) if low > 1.0 => "Memory helps here.".to_owned(),
            Some([_, high]) if high < 1.0 => {
                "Memory harms here: skipping at random would be better.".to_owned()
            }
            _ => {
                "Memory does not clearly help here: the interval of the lift includes 1.".to_owned()
            }
        };
        format!(
            "{verdict} With the facts of v2 and may_attempt after each attempt, {} of {} failures \
             are avoided and {} of {} successes lost: net {:+}.",
            counts.avoided,
            counts.failures,
            counts.lost(),
            counts.successes(),
            run.net()
        )
    }

    /// A sentence if another planner has a greater net.
    fn best_of_others(&self, v2: &Run) -> Option<String> {
        let others = self.runs.iter().filter(|run| run.learning == Learning::PerEvent);
        let best = others.max_by_key(|run| (run.net(), std::cmp::Reverse(run.kind)))?;
        (best.net() > v2.net()).then(|| {
            let price = match best.counts.lost() > v2.counts.lost() {
                true => format!("; it loses {} successes for it", best.counts.lost()),
                false => String::new(),
            };
            format!("\"{}\" has a greater net here: {:+}{price}.", best.kind.title(), best.net())
        })
    }

    /// A sentence if the history has no fact about most failures.
    fn unknown_keys(&self) -> Option<String> {
        let frozen = self.runs.iter().find(|run| run.learning == Learning::Frozen)?;
        let (unknown, failures) = (frozen.unknown_failures, self.later.failures);
        let some = self.history.decisions > 0;
        (some && ratio(unknown, failures)? >= MOST).then(|| {
            format!(
                "Most failures ({unknown} of {failures}) are on keys that the history has no fact \
                 about: frozen facts cannot foresee them."
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

    /// The lines that are left out, with the reasons.
    fn left_out(&self) -> Option<String> {
        let Lines { refused, conflicts, duplicates, .. } = self.lines;
        let counted = [
            (refused, "rejected by the door"),
            (conflicts, "in conflict with another one of its source and id"),
            (duplicates, "duplicated"),
        ];
        let counted = counted.into_iter().filter(|(n, _)| *n > 0);
        let counted: Vec<String> =
            counted.map(|(n, why)| format!("{} {why}", numbered(n, "line"))).collect();
        (!counted.is_empty()).then(|| format!("Left out: {}.", counted.join(", ")))
    }
}

/// `1 key`, `2 keys`.
pub(super) fn numbered(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
