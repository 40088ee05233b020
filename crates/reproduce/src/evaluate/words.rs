//! The conclusion of an evaluation in a few sentences.
//!
//! **Invariants:** a sentence follows from counts and intervals by the rules below. "Helps" and
//! "harms" require an interval of the lift that excludes 1, based on enough keys. A planner that is
//! better than memory is named.

use super::{Evaluation, Learning, PlannerKind, Run};
use crate::real::FEW_KEYS;

impl Evaluation {
    /// The conclusion as text.
    pub fn words(&self) -> String {
        let counts = self.decided();
        if counts.decisions == 0 {
            return "Nothing to decide on: no attempt of this log is later than its history."
                .to_owned();
        }
        if counts.failures == 0 {
            return format!("No failure to avoid: all {} decisions succeeded.", counts.decisions);
        }
        let Some(v2) = self.run(PlannerKind::V2) else { return String::new() };
        let mut sentences = vec![self.about_v2(v2)];
        sentences.extend(self.best_of_others(v2));
        let left_out = self.lines.refused + self.lines.repeated;
        if left_out > 0 {
            sentences.push(format!("Left out: {left_out} lines (rejected or repeated)."));
        }
        sentences.join(" ")
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
}
