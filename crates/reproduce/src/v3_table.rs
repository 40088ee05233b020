//! The results of V3 as a table and as JSON.

use crate::clamp::{Clamp, Judged};
use crate::normal::mean;
use crate::printed::{Reduction, like, ours_alone, reduction};
use crate::scene::Target;
use crate::table::{Row, Table, Verdict};
use crate::v3::{Agents, Control, DECISIONS, Run, SEEDS, Setting, Summary, THRESHOLD};
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
    /// The same once more with the gates on, and the verdicts of the gates.
    pub gated: Vec<(Summary, Judged)>,
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
    /// Runs the agents under each control, with the paper's threshold.
    pub fn run(agents: &Agents, seeds: &[i128], controls: &[Control], decisions: u32) -> Self {
        let setting = |control: &Control| Setting { decisions, ..Setting::of(*control) };
        Self::of(agents, seeds, &controls.iter().map(setting).collect::<Vec<_>>())
    }

    /// Runs the agents under each setting, without gates and with them. All settings have the same
    /// number of decisions.
    pub fn of(agents: &Agents, seeds: &[i128], settings: &[Setting]) -> Self {
        let clamp = Clamp::new();
        let control = settings.iter().map(|setting| setting.control).find(is_calibrated);
        let control = control.unwrap_or(Control::CALIBRATED);
        V3 {
            seeds: seeds.to_vec(),
            decisions: settings.first().map_or(DECISIONS, |first| first.decisions),
            controls: settings.iter().map(|setting| agents.plan(*setting)).collect(),
            gated: settings.iter().map(|it| agents.plan_gated(*it, &clamp)).collect(),
            shrunk: Target::ALL.map(|target| agents.confidence(control, target)),
        }
    }

    /// Whether the paper has this run.
    fn printed(&self) -> bool {
        self.is_papers(DECISIONS)
    }

    /// Whether the seeds and all settings are the paper's, with this number of decisions.
    fn is_papers(&self, decisions: u32) -> bool {
        let is_papers = |summary: &Summary| summary.setting.is_papers(decisions);
        self.seeds == SEEDS && self.controls.iter().all(is_papers)
    }

    /// The settings that are not the paper's, as words of a title.
    fn other_settings(&self) -> String {
        let settings = self.controls.iter().map(|summary| &summary.setting);
        let other = settings.filter(|setting| !setting.is_papers(self.decisions));
        let threshold = self.controls.first().map_or(THRESHOLD, |first| first.setting.threshold);
        let words =
            if threshold == THRESHOLD { String::new() } else { format!(", threshold {threshold}") };
        other.fold(words, |words, setting| match setting.control {
            prior @ Control::Calibrated { mean, weight } if prior != Control::CALIBRATED => {
                format!("{words}, prior {mean}/{weight}")
            }
            _ => words,
        })
    }

    /// The reductions with the gates on, which the gates must not move.
    pub fn gates_table(&self) -> Table {
        let mut rows = Vec::new();
        for ((summary, judged), plain) in self.gated.iter().zip(&self.controls) {
            let name = summary.setting.control.name();
            let what = format!("{name}, gates on: reduction, mean [interval]");
            rows.push(match self.printed() {
                true => printed(summary.setting.control).reduction.row(what, summary),
                false => ours_alone(what, summary),
            });
            let moved = summary.runs.iter().zip(&plain.runs).filter(|(on, off)| on != off).count();
            let what = format!("{name}, gates on: runs that the gates changed");
            let verdict = if moved == 0 { Verdict::Ours } else { Verdict::Differs };
            rows.push(Row::with(verdict, what, "", moved.to_string()));
            let Judged { intents, clamped, denied } = judged;
            let verdicts = format!("{intents} intents, {clamped} clamped, {denied} denied");
            let what = format!("{name}, gates on: verdicts");
            rows.push(Row::with(Verdict::Ours, what, "", verdicts));
        }
        let title = "V3 once more with the gates on: the safety clamp is held constant".to_owned();
        let note = "Every attempt of every planner is an intent, judged by the same three files. \
                    They admit it with less force, and its outcome is drawn as before."
            .to_owned();
        Table { name: "v3-gates", title, rows, note, errata: &[11], timed: false }
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
        let other = self.other_settings();
        let title = format!("V3: {decisions} decisions of each control, {seeds}{other}");
        let errata = &[7, 11, 19, 20, 21];
        Table { name: "v3", title, rows, note: self.note(), errata, timed: false }
    }

    fn note(&self) -> String {
        let against = "Reductions are against the no-memory count of the raw run, with 95 % BCa \
                       intervals of 10 000 resamples.";
        let runs = |is_it: &dyn Fn(&Control) -> bool| {
            self.controls.iter().find(|summary| is_it(&summary.setting.control))
        };
        let raw = runs(&|control| *control == Control::Raw);
        let (Some(raw), Some(calibrated)) = (raw, runs(&is_calibrated)) else {
            return against.to_owned();
        };
        let pairs = raw.runs.iter().zip(&calibrated.runs);
        let alike = match pairs.filter(|(raw, calibrated)| raw != calibrated).count() {
            0 if self.is_papers(self.decisions) => {
                "Raw and calibrated decide alike on all of them (erratum 7).".to_owned()
            }
            0 => "Raw and calibrated decide alike on all of them.".to_owned(),
            n => format!("Raw and calibrated decide differently on {}.", seeds_words(n)),
        };
        format!("{against} {alike}")
    }

    fn rows_of(&self, summary: &Summary) -> Vec<Row> {
        let name = summary.setting.control.name();
        let printed = printed(summary.setting.control);
        let mut rows = self.cells(name, &printed.cells, figures(summary));
        let what = format!("{name}: reduction, mean [interval]");
        let quick = self.is_papers(QUICK);
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
        let threshold = self.controls.first().map_or(THRESHOLD, |first| first.setting.threshold);
        let start = Members::new()
            .raw("seeds", seeds)
            .raw("decisions", self.decisions)
            .raw("threshold", threshold)
            .raw("gates", self.gates_json());
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

    /// The results with the gates on as JSON, by control.
    fn gates_json(&self) -> String {
        let add = |members: Members, (summary, judged): &(Summary, Judged)| {
            let Judged { intents, clamped, denied } = judged;
            let control = Members::new()
                .raw("mean_reduction", summary.reduction())
                .raw("intents", intents)
                .raw("clamped", clamped)
                .raw("denied", denied);
            members.raw(summary.setting.control.name(), control.finish())
        };
        self.gated.iter().fold(Members::new(), add).finish()
    }
}

fn is_calibrated(control: &Control) -> bool {
    matches!(control, Control::Calibrated { .. })
}

/// The figures that the paper prints for a control.
fn printed(control: Control) -> Printed {
    match control {
        Control::Uniform => UNIFORM,
        Control::Raw | Control::Calibrated { .. } => GROUNDED,
    }
}

fn seeds_words(count: usize) -> String {
    if count == 1 { "1 seed".to_owned() } else { format!("{count} seeds") }
}

/// A seed as JSON; a string if it is too large for some JSON readers.
pub(crate) fn seed_json(seed: i128) -> String {
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
