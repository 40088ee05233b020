//! The cost of a pass, as tables next to the paper's figures and as JSON.
//!
//! **Invariants**
//! - Only counts are compared with the paper. Every value that depends on the machine is a
//!   measurement.
//! - The paper's claims about its figures are computed here from ours.
//! - [`Runtime::rows_json`] contains only values that are equal on every machine.

use super::stream::KEYS;
use super::{BUDGET_MS, PAPER, PAPER_FACTS, Point, Runtime, nearest_rank};
use crate::printed::power_of_ten;
use crate::table::{Row, Table, Verdict};
use ipse_core::decimal::quotient;
use ipse_core::json::{Members, list};

/// The sizes of the paper's table.
const PAPER_SIZES: [u64; 4] = [PAPER[0].0, PAPER[1].0, PAPER[2].0, PAPER[3].0];
/// The paper's medians and p90s, in the order of its sizes.
const MEDIANS: [&str; 4] = [PAPER[0].1, PAPER[1].1, PAPER[2].1, PAPER[3].1];
const P90S: [&str; 4] = [PAPER[0].2, PAPER[1].2, PAPER[2].2, PAPER[3].2];
/// The time budget of a planner's loop in the paper, in nanoseconds.
const BUDGET: u64 = BUDGET_MS * 1_000_000;
/// The paper gives SQLite pages 4 KB, so its KB has 1024 bytes. Its MB is taken as 1024 KB.
const KB: u64 = 1024;
const MB: f64 = (KB * KB) as f64;
/// Nanoseconds of a millisecond.
const MILLI: f64 = 1e6;

const NOTE: &str = "The paper measured on another machine, so times, memory and file growth are \
    shown and not compared. A pass is wall time on a copy of the store that had no pass before. \
    It includes the durable commit and is affected by other load on the machine. Median and p90 \
    are nearest ranks of the trials after the first one, which is discarded. A request reads the \
    table of facts in memory that planners use; the paper runs an SQL statement. Memory is that \
    of the whole process, including the experiment: the minimum before a pass and the maximum \
    during one. KB are 1024 bytes, MB 1024 KB. Over HTTP the query for one skill, target and \
    environment goes through the server that planners use, over one persistent connection, with \
    client and server on this machine. The paper does not measure the endpoint and expects it to \
    add 1 to 3 ms.";

const KEYS_NOTE: &str = "Attempts over 1000 keys of skill, target and environment, with \
    parameters and failure reasons. Facts are one success rate for each key that occurred, and \
    one pattern for each skill, target and reason. Otherwise as in the table of the two skills.";

/// One row of the paper's table, or one of ours.
struct Metric {
    what: &'static str,
    /// The paper's values at its four sizes; empty where it prints none.
    paper: [&'static str; 4],
    ours: fn(&Point) -> String,
    /// Whether the value depends on the machine.
    measured: bool,
}

const fn metric(
    what: &'static str,
    paper: [&'static str; 4],
    ours: fn(&Point) -> String,
) -> Metric {
    Metric { what, paper, ours, measured: true }
}

const PASS: &str = "pass in ms, median";
const FACTS: &str = "facts after the pass";
const GROWN: &str = "KB that the pass adds to the file";

/// The rows of the paper's table, in its order.
const METRICS: [Metric; 8] = [
    metric(PASS, MEDIANS, |point| pass_ms(&point.pass, 50)),
    metric("pass in ms, p90", P90S, |point| pass_ms(&point.pass, 90)),
    Metric { measured: false, ..metric(FACTS, [PAPER_FACTS; 4], |point| point.facts.to_string()) },
    metric(GROWN, ["20", "24", "20", "20"], |point| quotient(point.grown.into(), KB.into(), 1)),
    metric("query for a kind in ms, p50", ["0.003", "", "", "0.002"], |point| {
        request_ms(&point.query, 50)
    }),
    metric("query for a kind in ms, p99", ["0.004", "", "", "0.004"], |point| {
        request_ms(&point.query, 99)
    }),
    metric("memory in MB before the pass", ["", "60", "", "60"], |point| memory(point, 0)),
    metric("memory in MB at its most", ["", "60", "", "75"], |point| memory(point, 1)),
];

const NOT_PRINTED: [&str; 4] = [""; 4];

/// Requests that the paper does not measure. Their cost depends on the facts and not on the events,
/// so only the largest size is shown.
const REQUESTS: [Metric; 6] = [
    metric("query by skill, target, environment in ms, p50", NOT_PRINTED, |point| {
        request_ms(&point.choice, 50)
    }),
    metric("query by skill, target, environment in ms, p99", NOT_PRINTED, |point| {
        request_ms(&point.choice, 99)
    }),
    metric("lookup by key in ms, p50", NOT_PRINTED, |point| request_ms(&point.lookup, 50)),
    metric("lookup by key in ms, p99", NOT_PRINTED, |point| request_ms(&point.lookup, 99)),
    metric("query over HTTP in ms, p50", NOT_PRINTED, |point| request_ms(&point.http, 50)),
    metric("query over HTTP in ms, p99", NOT_PRINTED, |point| request_ms(&point.http, 99)),
];

impl Runtime {
    /// The paper's table, and the same table for a thousand keys.
    pub fn tables(&self) -> Vec<Table> {
        let [paper, ours] = KEYS.map(|keys| {
            let points = self.points.iter().filter(|point| point.keys == keys);
            points.collect::<Vec<_>>()
        });
        vec![
            Table {
                name: "g-runtime",
                title: "G: cost of a pass, two skills".to_owned(),
                rows: rows(&paper, true),
                note: NOTE.to_owned(),
                errata: &[26, 27, 28],
                timed: true,
            },
            Table {
                name: "g-runtime-keys",
                title: "G: cost of a pass, 1000 keys".to_owned(),
                rows: rows(&ours, false),
                note: KEYS_NOTE.to_owned(),
                errata: &[],
                timed: true,
            },
        ]
    }

    /// All measurements as JSON.
    pub fn json(&self) -> Members {
        self.points_json(|point| {
            counts(point)
                .raw("grown_bytes", point.grown)
                .raw("pass_ms", pass_json(&point.pass))
                .raw("query_ms", requests_json(&point.query))
                .raw("choice_ms", requests_json(&point.choice))
                .raw("lookup_ms", requests_json(&point.lookup))
                .raw("http_ms", requests_json(&point.http))
                .optional("resident_bytes", point.resident.map(resident_json))
        })
    }

    /// The values that are equal on every machine: events, keys and facts.
    pub fn rows_json(&self) -> Members {
        self.points_json(counts)
    }

    fn points_json(&self, one: impl Fn(&Point) -> Members) -> Members {
        let points = self.points.iter().map(|point| one(point).finish());
        Members::new().raw("points", list(points))
    }
}

fn counts(point: &Point) -> Members {
    Members::new().raw("keys", point.keys).raw("events", point.events).raw("facts", point.facts)
}

fn exact_ms(nanos: u64) -> String {
    quotient(nanos.into(), 1_000_000, 6)
}

fn pass_json(ascending: &[u64]) -> String {
    Members::new()
        .raw("median", exact_ms(nearest_rank(ascending, 50)))
        .raw("p90", exact_ms(nearest_rank(ascending, 90)))
        .raw("trials", list(ascending.iter().copied().map(exact_ms)))
        .finish()
}

fn requests_json(ascending: &[u64]) -> String {
    Members::new()
        .raw("p50", exact_ms(nearest_rank(ascending, 50)))
        .raw("p99", exact_ms(nearest_rank(ascending, 99)))
        .raw("requests", ascending.len())
        .finish()
}

fn resident_json([before, peak]: [u64; 2]) -> String {
    Members::new().raw("before", before).raw("peak", peak).finish()
}

fn pass_ms(ascending: &[u64], percent: usize) -> String {
    format!("{:.2}", nearest_rank(ascending, percent) as f64 / MILLI)
}

fn request_ms(ascending: &[u64], percent: usize) -> String {
    format!("{:.6}", nearest_rank(ascending, percent) as f64 / MILLI)
}

fn memory(point: &Point, which: usize) -> String {
    let reported = point.resident.map(|resident| format!("{:.1}", resident[which] as f64 / MB));
    reported.unwrap_or_else(|| "not reported".to_owned())
}

/// All rows of a table; `paper` is true for the table that the paper has.
fn rows(points: &[&Point], paper: bool) -> Vec<Row> {
    let every = METRICS.iter().flat_map(|metric| points.iter().map(move |point| (metric, *point)));
    let mut rows: Vec<Row> = every.map(|(metric, point)| row(metric, point, paper)).collect();
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        rows.extend(REQUESTS.iter().map(|metric| row(metric, last, paper)));
        rows.extend(claims(points, first, last, paper));
    }
    rows
}

fn row(metric: &Metric, point: &Point, paper: bool) -> Row {
    let place = PAPER_SIZES.iter().position(|size| *size == point.events && paper);
    let printed = place.map_or("", |place| metric.paper[place]);
    let what = format!("{}, N = {}", metric.what, power(point.events));
    against(what, printed, (metric.ours)(point), metric.measured)
}

/// Our value next to the paper's, if the paper has one.
fn against(what: String, printed: &str, ours: String, measured: bool) -> Row {
    match printed {
        "" => Row::with(Verdict::Ours, what, "", ours),
        _ if measured => Row::with(Verdict::Measured, what, printed, ours),
        _ => Row::compared(what, printed, ours),
    }
}

/// The paper's claims about its figures, checked on ours.
fn claims(points: &[&Point], first: &Point, last: &Point, paper: bool) -> [Row; 3] {
    let printed = |text: &'static str| if paper { text } else { "" };
    // The paper's claim covers its own sizes; ours include larger ones.
    let end = points.iter().rev().find(|point| !paper || point.events <= PAPER_SIZES[3]);
    let end = end.copied().unwrap_or(last);
    let (from, to) = (power(first.events), power(end.events));
    [
        against(
            format!("growth of the median pass, N = {from} to {to}"),
            printed("sub-linear"),
            growth(first, end),
            true,
        ),
        against("facts for every N".to_owned(), printed(PAPER_FACTS), constant(points), false),
        against(
            "largest N whose median pass stays within 200 ms".to_owned(),
            printed("10⁴"),
            within_budget(points, last),
            true,
        ),
    ]
}

/// The growth of the median pass with the number of events.
fn growth(first: &Point, last: &Point) -> String {
    let median = |point: &Point| nearest_rank(&point.pass, 50).max(1);
    let longer = median(last) as f64 / median(first) as f64;
    let more = last.events as f64 / first.events as f64;
    let word = if longer < more { "sub-linear" } else { "not sub-linear" };
    format!("{word}: ×{longer:.1} for ×{more:.0} events")
}

/// The number of facts if it is constant, else its range.
fn constant(points: &[&Point]) -> String {
    let facts = || points.iter().map(|point| point.facts);
    match (facts().min().unwrap_or(0), facts().max().unwrap_or(0)) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// The largest size up to which every median pass stays within the budget.
fn within_budget(points: &[&Point], last: &Point) -> String {
    let within = |point: &&&Point| nearest_rank(&point.pass, 50) <= BUDGET;
    match points.iter().take_while(within).last() {
        None => "none".to_owned(),
        Some(point) if point.events == last.events => {
            format!("{}, the largest measured", power(point.events))
        }
        Some(point) => power(point.events),
    }
}

/// A power of ten in superscript notation; any other number in digits.
fn power(number: u64) -> String {
    match number.checked_ilog10() {
        Some(exponent @ 2..) if number == 10_u64.pow(exponent) => {
            power_of_ten(exponent.cast_signed())
        }
        _ => number.to_string(),
    }
}
