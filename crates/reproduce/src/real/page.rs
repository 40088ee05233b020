//! What a real log answers, as a table and as JSON.
//!
//! **Invariants:** the table rounds for people; JSON has every count and each figure in the fewest
//! digits that give it back. A figure without a value is `-` in the one and absent in the other.

use super::figures::ratio;
use super::{Interval, Part, Real, Run};
use crate::table::Sheet;
use ipse_core::json::{Members, list};

/// What stands in a cell without a value.
const NONE: &str = "-";

/// The protocol, for readers of the tables.
pub const PROTOCOL: &str = "Events by time; the first half of the decisions and everything not \
    later is history, lived through and consolidated. Each later decision is skipped if the fact \
    under its key has a success rate below one half; unknown keys are attempted. What is skipped \
    is not learned from. Passes: none after the history (frozen), before the first event of each \
    UTC day (daily), after each event (per event). Retry: never, or once 24 hours have gone by \
    since the key was last attempted. Lift: failures avoided, as a multiple of what skipping as \
    many decisions at random avoids; its interval resamples keys. Gain: percent of failures \
    avoided less percent of successes lost, 0 for skipping at random.";

impl Real {
    /// The table: a row for each policy.
    pub fn sheet(&self) -> Sheet {
        let later = &self.later;
        Sheet {
            name: table_name(&self.name),
            title: format!(
                "{}: {} decisions on {} keys after {} of history, {} failed",
                self.name, later.decisions, later.keys, self.history.decisions, later.failures
            ),
            head: vec![
                "passes",
                "retry",
                "skipped",
                "failures avoided",
                "successes lost",
                "lift",
                "95 % interval",
                "gain",
                "keys skipped",
            ],
            rows: self.runs.iter().map(|run| row(run, later)).collect(),
            note: self.words(),
            timed: false,
        }
    }

    /// Everything, as canonical JSON.
    pub fn json(&self) -> String {
        Members::new()
            .text("source", &self.name)
            .raw("events", self.lines.events)
            .raw("duplicates", self.lines.duplicates)
            .raw("conflicts", self.lines.conflicts)
            .raw("refused", self.lines.refused)
            .optional("until", self.until.map(|time| format!("\"{time}\"")))
            .raw("history", part_json(&self.history))
            .raw("later", part_json(&self.later))
            .raw("policies", list(self.runs.iter().map(run_json)))
            .text("words", &self.words())
            .finish()
    }
}

/// The name of a log's table: that of the log, as far as any file system takes it.
pub(super) fn table_name(log: &str) -> String {
    let stem = log.split('.').find(|part| !part.is_empty()).unwrap_or_default();
    let plain = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("real_{}", plain.collect::<String>())
}

fn row(run: &Run, later: &Part) -> Vec<String> {
    let counts = &run.counts;
    let figure = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
    let ends = run.interval.and_then(|interval| interval.ends);
    vec![
        run.policy.passes.name().to_owned(),
        run.policy.retry.name().to_owned(),
        of(counts.skipped, counts.decisions),
        of(counts.avoided, counts.failures),
        of(counts.lost(), counts.successes()),
        figure(counts.lift().map(|lift| format!("{lift:.2}"))),
        figure(ends.map(|[low, high]| format!("[{low:.2}, {high:.2}]"))),
        figure(counts.gain().map(|gain| format!("{:+.1}", 100.0 * gain))),
        format!("{} of {}", run.keys_skipped, later.keys),
    ]
}

/// A part of a whole, with its share.
fn of(part: u64, whole: u64) -> String {
    let share = ratio(part, whole).map(|share| format!(" ({:.1} %)", 100.0 * share));
    format!("{part} of {whole}{}", share.unwrap_or_default())
}

fn part_json(part: &Part) -> String {
    Members::new()
        .raw("events", part.events)
        .raw("decisions", part.decisions)
        .raw("failures", part.failures)
        .raw("successes", part.successes())
        .raw("keys", part.keys)
        .raw("lost_fields", part.lost_fields)
        .finish()
}

fn run_json(run: &Run) -> String {
    let counts = &run.counts;
    let ends = |interval: &Interval| interval.ends.map(|[low, high]| format!("[{low},{high}]"));
    Members::new()
        .text("passes", run.policy.passes.name())
        .text("retry", run.policy.retry.name())
        .raw("decisions", counts.decisions)
        .raw("failures", counts.failures)
        .raw("successes", counts.successes())
        .raw("skipped", counts.skipped)
        .raw("avoided", counts.avoided)
        .raw("lost", counts.lost())
        .raw("unknown_failures", run.unknown_failures)
        .raw("hindsight", run.hindsight)
        .raw("keys_skipped", run.keys_skipped)
        .optional("lift", counts.lift())
        .optional("gain", counts.gain())
        .optional("interval", run.interval.as_ref().and_then(ends))
        .optional("undefined_resamples", run.interval.map(|interval| interval.undefined))
        .finish()
}
