//! An evaluation as a table, as JSON and as a figure.
//!
//! **Invariants:** the table rounds for readers, JSON has every count. A figure without a value is
//! `-` in the table and absent in JSON.

use super::log::table_name;
use super::words::numbered;
use super::{Evaluation, Learning, Part, Run, ratio};
use crate::Error;
use crate::figures::{Bars, Figure, bars};
use crate::table::Sheet;
use ipse_core::json::{Members, list};

/// The protocol, as shown with the tables.
pub const PROTOCOL: &str = "A planner decides on each attempt after the history, at the time of \
    the attempt; a skipped attempt teaches nothing. Facts change never after the history (frozen), \
    before the first attempt of each UTC day (daily), or after each attempt (per event). Avoided: \
    skipped attempts that had failed. Lost: skipped attempts that had worked. Net: avoided minus \
    lost. Lift: failures avoided, as a multiple of what skipping as often at random avoids; its \
    interval resamples keys. Gain: percent of failures avoided minus percent of successes lost.";

impl Evaluation {
    /// The table, with a row for each planner and each way to learn.
    pub fn sheet(&self) -> Sheet {
        let later = &self.later;
        Sheet {
            name: table_name(&self.name),
            title: format!(
                "{}: {} on {} after {} of history, {} failed",
                self.name,
                numbered(later.decisions, "decision"),
                numbered(later.keys, "key"),
                self.history.decisions,
                later.failures
            ),
            head: vec![
                "planner",
                "facts",
                "skipped",
                "avoided",
                "lost",
                "net",
                "lift",
                "95 % interval",
                "gain",
            ],
            rows: self.runs.iter().map(row).collect(),
            data: Some((DATA.to_vec(), self.runs.iter().map(data).collect())),
            note: self.words(),
            timed: false,
        }
    }

    /// The evaluation as canonical JSON.
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
            .raw("planners", list(self.runs.iter().map(run_json)))
            .text("words", &self.words())
            .finish()
    }

    /// Failures avoided and successes lost of each planner that learns after each attempt.
    pub fn figure(&self) -> Result<Figure, Error> {
        let later = &self.later;
        let newest = self.runs.iter().filter(|run| run.learning == Learning::PerEvent);
        let percent = |part, whole| 100.0 * ratio(part, whole).unwrap_or_default();
        let rows = newest.map(|run| {
            let avoided = percent(run.counts.avoided, run.counts.failures);
            let lost = percent(run.counts.lost(), run.counts.successes());
            (run.kind.title().to_owned(), vec![avoided, lost])
        });
        bars(&Bars {
            name: "evaluate",
            title: format!("{}: what each planner would have spared", self.name),
            caption: format!(
                "Facts after each attempt; {} decisions, {} failed.",
                later.decisions, later.failures
            ),
            series: vec!["failures avoided, %".to_owned(), "successes lost, %".to_owned()],
            rows: rows.collect(),
        })
    }
}

fn row(run: &Run) -> Vec<String> {
    let counts = &run.counts;
    let figure = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let ends = run.interval.and_then(|interval| interval.ends);
    let share = |part: u64, whole: u64| {
        let share = ratio(part, whole).map(|share| format!(" ({:.1} %)", 100.0 * share));
        format!("{part}{}", share.unwrap_or_default())
    };
    vec![
        run.kind.title().to_owned(),
        if run.kind.reads_facts() { run.learning.name() } else { "-" }.to_owned(),
        share(counts.skipped, counts.decisions),
        share(counts.avoided, counts.failures),
        share(counts.lost(), counts.successes()),
        format!("{:+}", run.net()),
        figure(counts.lift().map(|lift| format!("{lift:.2}"))),
        figure(ends.map(|[low, high]| format!("[{low:.2}, {high:.2}]"))),
        figure(counts.gain().map(|gain| format!("{:+.1}", 100.0 * gain))),
    ]
}

/// The columns of the CSV file.
const DATA: [&str; 14] = [
    "planner",
    "facts",
    "decisions",
    "failures",
    "successes",
    "skipped",
    "avoided",
    "lost",
    "net",
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
    let whole = [
        counts.decisions,
        counts.failures,
        counts.successes(),
        counts.skipped,
        counts.avoided,
        counts.lost(),
    ];
    let mut cells = vec![run.kind.name().to_owned(), run.learning.name().to_owned()];
    cells.extend(whole.map(|count| count.to_string()));
    cells.extend([run.net().to_string(), run.keys_skipped.to_string()]);
    cells.extend([
        figure(counts.lift()),
        figure(ends.map(|[low, _]| low)),
        figure(ends.map(|[_, high]| high)),
        figure(counts.gain().map(|gain| 100.0 * gain)),
    ]);
    cells
}

fn part_json(part: &Part) -> String {
    Members::new()
        .raw("decisions", part.decisions)
        .raw("failures", part.failures)
        .raw("successes", part.successes())
        .raw("keys", part.keys)
        .raw("lost_fields", part.lost_fields)
        .finish()
}

fn run_json(run: &Run) -> String {
    let counts = &run.counts;
    let ends = run.interval.and_then(|interval| interval.ends);
    Members::new()
        .text("planner", run.kind.name())
        .text("facts", run.learning.name())
        .raw("decisions", counts.decisions)
        .raw("failures", counts.failures)
        .raw("successes", counts.successes())
        .raw("skipped", counts.skipped)
        .raw("avoided", counts.avoided)
        .raw("lost", counts.lost())
        .raw("net", run.net())
        .raw("unknown_failures", run.unknown_failures)
        .raw("hindsight", run.hindsight)
        .raw("keys_skipped", run.keys_skipped)
        .optional("lift", counts.lift())
        .optional("gain_pct", counts.gain().map(|gain| 100.0 * gain))
        .optional("lift_ci", ends.map(|[low, high]| format!("[{low},{high}]")))
        .optional("undefined_resamples", run.interval.map(|interval| interval.undefined))
        .finish()
}
