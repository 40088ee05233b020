//! The results of a real log as a table and as JSON.
//!
//! **Invariants:** the table rounds for readers. JSON has every count and each figure in the fewest
//! digits that restore it. A figure without a value is `-` in the table and absent in JSON.

use super::figures::ratio;
use super::{Interval, Part, Real, Run};
use crate::table::Sheet;
use ipse_core::json::{Members, list};

/// The text of a cell without a value.
const NONE: &str = "-";

/// The protocol, as shown with the tables.
pub const PROTOCOL: &str = "Events are ordered by time. History is the first half of the \
    decisions and everything that is not later; it is recorded and consolidated. A later decision \
    is skipped if the fact of its key has a success rate below one half; unknown keys are \
    attempted. Skipped events are not recorded. Passes: none after the history (frozen), before \
    the first event of each UTC day (daily), after each event (per event). Retry: never, or when \
    the last attempt of the key is at least 24 hours old. Lift: failures avoided, as a multiple \
    of the number that skipping as many decisions at random avoids; its interval resamples keys. \
    Gain: percent of failures avoided minus percent of successes lost, 0 for skipping at random.";

impl Real {
    /// The table, with a row for each policy.
    pub fn sheet(&self) -> Sheet {
        let later = &self.later;
        Sheet {
            name: table_name(&self.name),
            title: format!(
                "{}: {} on {} after {} of history, {} failed",
                self.name,
                counted(later.decisions, "decision"),
                counted(later.keys, "key"),
                self.history.decisions,
                later.failures
            ),
            head: vec![
                "passes",
                "retry",
                "skipped",
                "avoided",
                "lost",
                "lift",
                "95 % interval",
                "gain",
                "keys",
            ],
            rows: self.runs.iter().map(row).collect(),
            data: Some((DATA.to_vec(), self.runs.iter().map(data).collect())),
            note: self.words(),
            timed: false,
        }
    }

    /// All results as canonical JSON.
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

/// The name of a log's table: the name of the log, with characters that every file system accepts.
pub(crate) fn table_name(log: &str) -> String {
    let stem = log.split('.').find(|part| !part.is_empty()).unwrap_or_default();
    let plain = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("real-{}", plain.collect::<String>())
}

fn row(run: &Run) -> Vec<String> {
    let counts = &run.counts;
    let figure = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
    let ends = run.interval.and_then(|interval| interval.ends);
    vec![
        run.policy.passes.name().to_owned(),
        run.policy.retry.name().to_owned(),
        share(counts.skipped, counts.decisions),
        share(counts.avoided, counts.failures),
        share(counts.lost(), counts.successes()),
        figure(counts.lift().map(|lift| format!("{lift:.2}"))),
        figure(ends.map(|[low, high]| format!("[{low:.2}, {high:.2}]"))),
        figure(counts.gain().map(|gain| format!("{:+.1}", 100.0 * gain))),
        run.keys_skipped.to_string(),
    ]
}

/// A count with its share of a total; the title shows the total.
fn share(part: u64, whole: u64) -> String {
    let share = ratio(part, whole).map(|share| format!(" ({:.1} %)", 100.0 * share));
    format!("{part}{}", share.unwrap_or_default())
}

/// The columns of the CSV file.
const DATA: [&str; 13] = [
    "passes",
    "retry",
    "decisions",
    "failures",
    "successes",
    "skipped",
    "avoided",
    "lost",
    "keys_skipped",
    "lift",
    "lift_low",
    "lift_high",
    "gain_pct",
];

fn data(run: &Run) -> Vec<String> {
    let counts = &run.counts;
    let figure = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let ends = run.interval.and_then(|interval| interval.ends);
    vec![
        run.policy.passes.name().to_owned(),
        run.policy.retry.name().to_owned(),
        counts.decisions.to_string(),
        counts.failures.to_string(),
        counts.successes().to_string(),
        counts.skipped.to_string(),
        counts.avoided.to_string(),
        counts.lost().to_string(),
        run.keys_skipped.to_string(),
        figure(counts.lift()),
        figure(ends.map(|[low, _]| low)),
        figure(ends.map(|[_, high]| high)),
        figure(counts.gain().map(percent)),
    ]
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

/// `1 key`, `2 keys`.
pub(super) fn counted(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
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
        .optional("gain_pct", counts.gain().map(percent))
        .optional("lift_ci", run.interval.as_ref().and_then(ends))
        .optional("undefined_resamples", run.interval.map(|interval| interval.undefined))
        .finish()
}
