//! The results of V3 as a table and as JSON.

use crate::normal::mean;
use crate::printed::{Reduction, like, ours_alone, reduction};
use crate::scene::Target;
use crate::table::{Row, Table, Verdict};
use crate::v3::{Agents, Control, DECISIONS, Run, SEEDS, Setting, Summary};
use ipse_core::json::{Members, list};

/// The results of V3.
#[derive(Clone, PartialEq, Debug)]
pub struct V3 {
    /// The seeds of the runs.
    pub seeds: Vec<i128>,
    /// The number of decisions for each seed and control.
    pub decisions: u32,
    /// The results of the grounded controls.
    pub controls: Vec<Summary>,
    /// The least and greatest calibrated rate of each target over the seeds.
    pub shrunk: [[f64; 2]; 2],
}

/// A cell of the paper's table: its label, the printed value, and the number of its erratum if it
/// has one.
type Cell = (&'static str, &'static str, Option<u8>);

/// The paper's values of a control: attempts, unproductive ones and their share; and the reduction.
struct Printed {
    cells: [Cell; 3],
    reduction: Reduction,
}

const ATTEMPTS: &str = "attempts, mean";
const UNPRODUCTIVE: &str = "unproductive, mean";
const RATE: &str = "rate, mean";

/// The values that the paper prints for both raw and calibrated.
const GROUNDED: Printed = Printed {
    cells: [
        (ATTEMPTS, "544.4", Some(1)),
        (UNPRODUCTIVE, "109.7", Some(2)),
        (RATE, "0.201", Some(3)),
    ],
    reduction: reduction("79.82", "78.02", "81.49"),
};
const UNIFORM: Printed = Printed {
    cells: [(ATTEMPTS, "1000.0", None), (UNPRODUCTIVE, "510.2", Some(5)), (RATE, "0.510", Some(6))],
    reduction: reduction("-2.6", "-4.7", "+0.4"),
};
const NO_MEMORY: [Cell; 3] =
    [(ATTEMPTS, "1000.0", None), (UNPRODUCTIVE, "497.5", Some(4)), (RATE, "0.498", None)];
/// The reduction of the first seed, which is the least of the ten.
const FIRST_SEED: &str = "74.58%";
/// The decisions of a quick run: as many as in the shortest run of the paper's sweep.
pub(crate) const QUICK: u32 = 100;
const QUICK_PRINTED: Reduction = reduction("80.4", "75.2", "84.9");

impl V3 {
    /// Runs the agents under each control.
    pub fn run(agents: &Agents, seeds: &[i128], controls: &[Control], decisions: u32) -> Self {
        let plan = |control: &Control| agents.plan(Setting { decisions, ..Setting::of(*control) });
        let shrunk = Target::ALL.map(|target| agents.confidence(Control::CALIBRATED, target));
        let controls = controls.iter().map(plan).collect();
        V3 { seeds: seeds.to_vec(), decisions, controls, shrunk }
    }

    /// Whether the paper has this run.
    fn printed(&self) -> bool {
        self.seeds == SEEDS && self.decisions == DECISIONS
    }

    /// The paper's table, and the claims of its text about it.
    pub fn table(&self) -> Table {
        let mut rows = Vec::new();
        if let Some(any) = self.controls.first() {
            rows.extend(self.cells("no_memory", &NO_MEMORY, no_memory(any)));
        }
        for summary in &self.controls {
            rows.extend(self.rows_of(summary));
        }
        if self.printed() {
            rows.extend(self.said());
        }
        let (seeds, decisions) = (seeds_words(self.seeds.len()), self.decisions);
        let title = format!("V3: {decisions} decisions of each control, {seeds}");
        let errata = &[7, 11, 19, 20, 21];
        Table { name: "v3", title, rows, note: self.note(), errata, timed: false }
    }

    fn note(&self) -> String {
        let against = "Reductions are against the no-memory count of the raw run, with 95 % BCa \
                       intervals of 10 000 resamples.";
        let runs = |control: Control| {
            self.controls.iter().find(|summary| summary.setting.control == control)
        };
        let (Some(raw), Some(calibrated)) = (runs(Control::Raw), runs(Control::CALIBRATED)) else {
            return against.to_owned();
        };
        let pairs = raw.runs.iter().zip(&calibrated.runs);
        let alike = match pairs.filter(|(raw, calibrated)| raw != calibrated).count() {
            0 => "Raw and calibrated decide alike on all of them (erratum 7).".to_owned(),
            n => format!("Raw and calibrated decide differently on {}.", seeds_words(n)),
        };
        format!("{against} {alike}")
    }

    fn rows_of(&self, summary: &Summary) -> Vec<Row> {
        let name = summary.setting.control.name();
        let printed = match summary.setting.control {
            Control::Uniform => UNIFORM,
            _ => GROUNDED,
        };
        let mut rows = self.cells(name, &printed.cells, figures(summary));
        let what = format!("{name}: reduction, mean [interval]");
        let quick = self.seeds == SEEDS && self.decisions == QUICK;
        rows.push(match summary.setting.control {
            _ if self.printed() => printed.reduction.row(what, summary),
            Control::Raw | Control::Calibrated { .. } if quick => QUICK_PRINTED.row(what, summary),
            _ => ours_alone(what, summary),
        });
        rows
    }

    /// Three rows of a control.
    fn cells(&self, name: &str, cells: &[Cell; 3], ours: [f64; 3]) -> Vec<Row> {
        let row = |((cell, printed, erratum), ours): (&Cell, f64)| {
            let (what, ours) = (format!("{name}: {cell}"), like(printed, ours));
            match erratum {
                _ if !self.printed() => Row::with(Verdict::Ours, what, "", ours),
                None => Row::compared(what, printed, ours),
                Some(number) => Row::with(Verdict::Erratum(*number), what, printed, ours),
            }
        };
        cells.iter().zip(ours).map(row).collect()
    }

    /// The claims of the paper's text about the table.
    fn said(&self) -> Vec<Row> {
        let grounded = |summary: &&Summary| summary.setting.control != Control::Uniform;
        let Some(summary) = self.controls.iter().find(grounded) else { return Vec::new() };
        let percent = |value: f64| format!("{value:.2}%");
        let first = summary.runs[0].reduction();
        let least = summary.runs.iter().map(Run::reduction).fold(f64::INFINITY, f64::min);
        let below = |[low, _]: [f64; 2]| hundredths(low) - hundredths(first);
        let below = summary.interval.map_or(f64::NAN, below);
        let [glass, unknown] = self.shrunk.map(|[low, high]| format!("{low:.2} to {high:.2}"));
        let (seed, erratum) = (self.seeds[0], Verdict::Erratum);
        vec![
            Row::compared(format!("seed {seed} alone"), FIRST_SEED, percent(first)),
            Row::compared("least of the ten seeds", FIRST_SEED, percent(least)),
            Row::with(erratum(12), "points below the interval", "≈ 4", format!("{below:.2}")),
            Row::with(erratum(13), "shrunk rate of glass_cup", "≈ 0.9", glass),
            Row::with(erratum(24), "shrunk rate of unknown_object", "≈ 0.3", unknown),
        ]
    }

    /// All counts of every seed as JSON.
    pub fn json(&self) -> String {
        let seeds = list(self.seeds.iter().map(|seed| seed_json(*seed)));
        let start = Members::new().raw("seeds", seeds).raw("decisions", self.decisions);
        let add = |members: Members, summary: &Summary| {
            members.raw(summary.setting.control.name(), summary_json(summary))
        };
        let nothing = self.controls.first().map(|any| {
            let [attempts, unproductive, rate] = no_memory(any);
            Members::new()
                .raw("att_mean", attempts)
                .raw("unprod_mean", unproductive)
                .raw("rate_mean", rate)
                .finish()
        });
        self.controls.iter().fold(start, add).optional("no_memory", nothing).finish()
    }
}

fn seeds_words(count: usize) -> String {
    if count == 1 { "1 seed".to_owned() } else { format!("{count} seeds") }
}

/// A seed as JSON; a string if it is too large for some JSON readers.
fn seed_json(seed: i128) -> String {
    let safe = seed.unsigned_abs() < 1 << 53;
    if safe { seed.to_string() } else { format!("\"{seed}\"") }
}

/// Rounded as printed, because the text computes from printed values.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The values of a control's cells: attempts, unproductive ones, their share.
fn figures(summary: &Summary) -> [f64; 3] {
    [
        summary.mean(|run| run.attempts as f64),
        summary.mean(|run| run.unproductive as f64),
        summary.mean(Run::rate),
    ]
}

/// The same values for a planner without memory, which attempts everything.
fn no_memory(any: &Summary) -> [f64; 3] {
    let decisions = f64::from(any.setting.decisions);
    let rates: Vec<f64> = any.runs.iter().map(|run| run.no_memory as f64 / decisions).collect();
    [decisions, any.mean(|run| run.no_memory as f64), mean(&rates)]
}

/// The results of one setting as JSON, with the counts of every seed.
pub(crate) fn summary_json(summary: &Summary) -> String {
    let run = |run: &Run| {
        Members::new()
            .raw("seed", seed_json(run.seed))
            .raw("no_memory_unproductive", run.no_memory)
            .raw("attempts", run.attempts)
            .raw("unproductive", run.unproductive)
            .raw("reduction_pct", run.reduction())
            .finish()
    };
    let [attempts, unproductive, rate] = figures(summary);
    let interval = summary.interval.map(|[low, high]| format!("[{low},{high}]"));
    Members::new()
        .raw("mean_reduction", summary.reduction())
        .raw("ci", interval.unwrap_or("null".to_owned()))
        .raw("att_mean", attempts)
        .raw("unprod_mean", unproductive)
        .raw("nm_mean", summary.mean(|run| run.no_memory as f64))
        .raw("rate_mean", rate)
        .raw("per_seed", list(summary.runs.iter().map(run)))
        .finish()
}
