//! D: how V3's result depends on the threshold, the prior and the number of decisions.

use crate::printed::{Reduction, ours_alone, reduction};
use crate::table::{Row, Table};
use crate::v3::{Agents, Control, SEEDS, Setting, Summary};
use crate::v3_table::summary_json;
use ipse_core::json::Members;

/// One point of a sweep: its name, its setting, and the figures that the paper prints.
struct Point {
    name: String,
    setting: Setting,
    printed: Reduction,
}

/// One sweep with its results.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// The name of its table.
    pub name: &'static str,
    /// The varied setting: the member name in the JSON.
    pub varies: &'static str,
    what: &'static str,
    errata: &'static [u8],
    /// Each point's name, summary and printed figures.
    pub points: Vec<(String, Summary, Reduction)>,
}

/// The three sweeps.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweeps {
    /// The seeds that the agents used.
    pub seeds: Vec<i128>,
    /// The sweeps by threshold, by prior and by number of decisions.
    pub sweeps: [Sweep; 3],
}

const THRESHOLDS: [(f64, Reduction); 5] = [
    (0.3, reduction("-2.6", "-4.7", "+0.4")),
    (0.4, reduction("55.0", "28.3", "73.0")),
    (0.5, reduction("79.82", "78.0", "81.5")),
    (0.6, reduction("79.82", "78.0", "81.5")),
    (0.7, reduction("81.6", "78.8", "88.3")),
];

const PRIORS: [(f64, [&str; 3]); 3] = [
    (0.3, ["79.82", "79.82", "79.82"]),
    (0.5, ["79.82", "79.82", "79.82"]),
    (0.7, ["63.7", "55.0", "-2.6"]),
];
const WEIGHTS: [f64; 3] = [5.0, 10.0, 20.0];

const LENGTHS: [(u32, Reduction); 5] = [
    (100, reduction("80.4", "75.2", "84.9")),
    (500, reduction("79.9", "77.9", "81.9")),
    (1000, reduction("79.82", "78.0", "81.5")),
    (5000, reduction("79.8", "79.4", "80.3")),
    (10_000, reduction("79.9", "79.4", "80.3")),
];

fn thresholds() -> Vec<Point> {
    let point = |(threshold, printed): (f64, Reduction)| {
        let setting = Setting { threshold, ..Setting::of(Control::CALIBRATED) };
        Point { name: threshold.to_string(), setting, printed }
    };
    THRESHOLDS.into_iter().map(point).collect()
}

fn priors() -> Vec<Point> {
    let row = |(mean, means): (f64, [&'static str; 3])| {
        WEIGHTS.into_iter().zip(means).map(move |(weight, printed)| Point {
            name: format!("{mean}/{weight}"),
            setting: Setting::of(Control::Calibrated { mean, weight }),
            printed: Reduction { mean: printed, interval: None },
        })
    };
    PRIORS.into_iter().flat_map(row).collect()
}

fn lengths() -> Vec<Point> {
    let point = |(decisions, printed): (u32, Reduction)| {
        let setting = Setting { decisions, ..Setting::of(Control::CALIBRATED) };
        Point { name: decisions.to_string(), setting, printed }
    };
    LENGTHS.into_iter().map(point).collect()
}

impl Sweeps {
    /// Runs V3's planners under each setting.
    pub fn run(agents: &Agents, seeds: &[i128]) -> Self {
        Self::of(seeds, &|setting| agents.plan(setting))
    }

    /// Runs `plan` under each setting.
    pub fn of(seeds: &[i128], plan: &dyn Fn(Setting) -> Summary) -> Self {
        let all = |points: Vec<Point>| {
            let one = |point: Point| (point.name, plan(point.setting), point.printed);
            points.into_iter().map(one).collect()
        };
        let sweep = |name, varies, what, errata, points| {
            let points = all(points);
            Sweep { name, varies, what, errata, points }
        };
        let sweeps = [
            sweep("d-threshold", "threshold", "attempt threshold", &[22, 23, 24], thresholds()),
            sweep("d-prior", "prior", "prior mean/weight", &[22, 24, 25], priors()),
            sweep("d-n", "n", "decisions", &[32], lengths()),
        ];
        Sweeps { seeds: seeds.to_vec(), sweeps }
    }

    /// The paper's three tables.
    pub fn tables(&self) -> Vec<Table> {
        self.sweeps.iter().map(|sweep| sweep.table(self.seeds == SEEDS)).collect()
    }

    /// The results as JSON.
    pub fn json(&self) -> String {
        let add = |members: Members, sweep: &Sweep| {
            let points = sweep.points.iter().fold(Members::new(), |points, (name, summary, _)| {
                points.raw(name, summary_json(summary))
            });
            members.raw(sweep.varies, points.finish())
        };
        self.sweeps.iter().fold(Members::new(), add).finish()
    }
}

impl Sweep {
    fn table(&self, printed: bool) -> Table {
        let what = self.what;
        let row = |(name, summary, figures): &(String, Summary, Reduction)| -> Row {
            let what = format!("{what} {name}");
            if printed { figures.row(what, summary) } else { ours_alone(what, summary) }
        };
        let title = format!("D: reduction by {what}, calibrated control");
        let rows = self.points.iter().map(row).collect();
        let note =
            "A seed on which nothing is attempted counts as a reduction of 100 %.".to_owned();
        Table { name: self.name, title, rows, note, errata: self.errata, timed: false }
    }
}
