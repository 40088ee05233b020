//! G with a simulated clock: counts, ranks and output, without real time.
#![allow(missing_docs, clippy::unwrap_used)]

mod laboratory;

use ipse_core::Identity;
use ipse_engine::facts::Filter;
use ipse_reproduce::runtime::{
    Endpoint, Instruments, Point, Runtime, Scale, measure, measure_at, nearest_rank,
};
use ipse_reproduce::table::{Row, Table, Verdict};
use ipse_store::Store;
use laboratory::lab;
use serde_json::Value;
use std::cell::Cell;

/// A clock whose step grows with every reading, and memory that grows with every pass.
#[derive(Default)]
struct Stepping {
    looks: Cell<u64>,
    now: Cell<u64>,
    resets: Cell<u64>,
}

impl Stepping {
    /// Readings come in pairs around the timed work; no other call may come in between.
    fn is_idle(&self) {
        assert!(self.looks.get().is_multiple_of(2), "called while something is timed");
    }
}

/// A server that answers every query with one fact, as the streams have.
struct Answering;

impl Endpoint for Answering {
    fn ask(&mut self, filter: &Filter) -> Result<String, String> {
        assert!(filter.skill.is_some() && filter.target.is_some() && filter.environment.is_some());
        Ok(r#"{"facts":[{}]}"#.to_owned())
    }
}

/// A server without facts.
struct Silent;

impl Endpoint for Silent {
    fn ask(&mut self, _: &Filter) -> Result<String, String> {
        Ok(r#"{"facts":[]}"#.to_owned())
    }
}

impl Instruments for Stepping {
    fn serve(&self, _: &Store, _: &Identity) -> Result<Box<dyn Endpoint>, String> {
        self.is_idle();
        Ok(Box::new(Answering))
    }

    fn nanos(&self) -> u64 {
        self.looks.set(self.looks.get() + 1);
        self.now.set(self.now.get() + self.looks.get());
        self.now.get()
    }

    fn resident(&self) -> Option<u64> {
        self.is_idle();
        Some(1000 + 10 * self.resets.get())
    }

    fn peak(&self) -> Option<u64> {
        self.is_idle();
        Some(1105 + 10 * self.resets.get())
    }

    fn reset_peak(&self) {
        self.is_idle();
        self.resets.set(self.resets.get() + 1);
    }
}

/// A machine that reports the time and nothing else, and its server.
struct Mute {
    clock: Stepping,
    served: fn() -> Box<dyn Endpoint>,
}

impl Mute {
    fn serving(served: fn() -> Box<dyn Endpoint>) -> Self {
        Mute { clock: Stepping::default(), served }
    }
}

impl Instruments for Mute {
    fn serve(&self, _: &Store, _: &Identity) -> Result<Box<dyn Endpoint>, String> {
        Ok((self.served)())
    }

    fn nanos(&self) -> u64 {
        self.clock.nanos()
    }

    fn resident(&self) -> Option<u64> {
        None
    }

    fn peak(&self) -> Option<u64> {
        None
    }

    fn reset_peak(&self) {}
}

#[test]
fn a_server_that_answers_with_other_facts_is_an_error() {
    let instruments = Mute::serving(|| Box::new(Silent));
    let measured = lab(|lab| measure_at(lab, &instruments, SMALL, &mut |_, _| {}));
    let error = measured.unwrap_err().to_string();
    assert!(error.contains(r#"unexpected response {"facts":[]}"#), "{error}");
}

const SMALL: Scale<'static> = Scale { sizes: &[100, 400], trials: 3, requests: 25 };

fn small() -> Runtime {
    let instruments = Stepping::default();
    lab(|lab| measure_at(lab, &instruments, SMALL, &mut |_, _| {}).unwrap())
}

fn ascends(values: &[u64]) -> bool {
    values.windows(2).all(|pair| pair[0] <= pair[1])
}

#[test]
fn the_first_trial_is_discarded_and_the_rest_is_in_order() {
    let runtime = small();
    let sizes: Vec<_> = runtime.points.iter().map(|point| (point.keys, point.events)).collect();
    assert_eq!(sizes, [(2, 100), (2, 400), (1000, 100), (1000, 400)]);
    for point in &runtime.points {
        assert_eq!(point.pass.len(), 3);
        for requests in [&point.query, &point.choice, &point.lookup, &point.http] {
            assert_eq!(requests.len(), 25);
            assert!(ascends(requests));
        }
        assert!(ascends(&point.pass));
    }
    // The clock is read before and after each trial, and its steps are 1, 2, 3, …
    assert_eq!(runtime.points[0].pass, [4, 6, 8], "the trial with a step of 2 is not there");
    assert_eq!(runtime.points[0].query[0], 10, "a request is timed singly");
    assert_eq!(runtime.points[0].resident, Some([1010, 1145]), "the least and the most");
}

#[test]
fn facts_follow_the_keys_and_files_do_not_shrink() {
    let runtime = small();
    let facts: Vec<_> = runtime.points.iter().map(|point| point.facts).collect();
    assert_eq!(facts[..2], [2, 2], "two skills, whatever the size");
    assert!(facts[2] > 50 && facts[2] < facts[3], "{facts:?}");
    let rows: Value = serde_json::from_str(&runtime.rows_json().finish()).unwrap();
    let of_rows: Vec<_> = rows["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["facts"].as_u64().unwrap())
        .collect();
    assert_eq!(of_rows, facts);
    assert_eq!(
        runtime.rows_json().finish(),
        small().rows_json().finish(),
        "nothing in it is measured"
    );
    // A short pass may fit into pages that the file has already.
    assert!(runtime.points.iter().any(|point| point.grown > 0));
    for point in runtime.points {
        assert!(point.grown < 10_000_000, "{}", point.grown);
    }
}

#[test]
fn nothing_is_left_in_the_lab() {
    lab(|lab| {
        measure_at(lab, &Stepping::default(), SMALL, &mut |_, _| {}).unwrap();
        let left: Vec<_> = std::fs::read_dir(lab.directory).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn progress_ends_where_it_said() {
    let mut reported = Vec::new();
    let mut progress = |done, of| reported.push((done, of));
    lab(|lab| measure_at(lab, &Stepping::default(), SMALL, &mut progress).unwrap());
    let (done, of) = *reported.last().unwrap();
    assert_eq!(done, of);
    assert!(reported.iter().all(|(done, all)| done <= all && *all == of));
    assert!(ascends(&reported.iter().map(|(done, _)| *done).collect::<Vec<_>>()));
}

#[test]
fn ranks_are_nearest_ones() {
    let nine: Vec<u64> = (1..=9).collect();
    assert_eq!([50, 90, 99, 100].map(|percent| nearest_rank(&nine, percent)), [5, 9, 9, 9]);
    let many: Vec<u64> = (1..=1000).collect();
    assert_eq!([0, 50, 90, 99].map(|percent| nearest_rank(&many, percent)), [1, 500, 900, 990]);
    assert_eq!(nearest_rank::<u64>(&[], 50), 0);
    assert_eq!(nearest_rank(&[7], 1), 7);
}

/// A point whose passes took `milliseconds` each, except the last, which took twice as long.
fn point(keys: u64, events: u64, facts: u64, milliseconds: u64) -> Point {
    let mut pass = vec![milliseconds * 1_000_000; 9];
    pass[8] *= 2;
    Point {
        keys,
        events,
        pass,
        facts,
        grown: 20_480,
        query: vec![142; 1000],
        choice: vec![1_500_000; 1000],
        http: vec![75_000; 1000],
        lookup: vec![60; 1000],
        resident: Some([60 << 20, 75 << 20]),
    }
}

/// The paper's measurements, and a thousand keys.
fn made_up() -> Runtime {
    let times = [(100, 40), (1000, 39), (10_000, 68), (100_000, 309), (1_000_000, 3000)];
    let paper = times.map(|(events, time)| point(2, events, 2, time));
    let ours = times.map(|(events, time)| point(1000, events, events.min(1000), time / 20));
    Runtime { points: paper.into_iter().chain(ours).collect() }
}

fn find<'t>(table: &'t Table, what: &str) -> &'t Row {
    let found = table.rows.iter().find(|row| row.what == what);
    found.unwrap_or_else(|| panic!("no row `{what}` in {:#?}", table.rows))
}

#[test]
fn the_table_of_two_skills_is_beside_the_papers() {
    let tables = made_up().tables();
    let table = &tables[0];
    assert_eq!(table.name, "g-runtime");
    for (what, paper, ours, verdict) in [
        ("pass in ms, median, N = 10²", "39.9", "40.00", Verdict::Measured),
        ("pass in ms, p90, N = 10⁵", "324.5", "618.00", Verdict::Measured),
        ("pass in ms, median, N = 10⁶", "", "3000.00", Verdict::Ours),
        ("facts after the pass, N = 10³", "2", "2", Verdict::Equal),
        ("facts after the pass, N = 10⁶", "", "2", Verdict::Ours),
        ("KB that the pass adds to the file, N = 10³", "24", "20", Verdict::Measured),
        ("query for a kind in ms, p50, N = 10²", "0.003", "0.000142", Verdict::Measured),
        ("query for a kind in ms, p99, N = 10³", "", "0.000142", Verdict::Ours),
        ("memory in MB before the pass, N = 10³", "60", "60.0", Verdict::Measured),
        ("memory in MB at its most, N = 10⁵", "75", "75.0", Verdict::Measured),
        ("lookup by key in ms, p99, N = 10⁶", "", "0.000060", Verdict::Ours),
        ("facts for every N", "2", "2", Verdict::Equal),
        ("largest N whose median pass stays within 200 ms", "10⁴", "10⁴", Verdict::Measured),
    ] {
        let row = find(table, what);
        assert_eq!((&*row.paper, &*row.ours, row.verdict), (paper, ours, verdict), "{what}");
    }
    let growth = find(table, "growth of the median pass, N = 10² to 10⁵");
    assert_eq!(growth.ours, "sub-linear: ×7.7 for ×1000 events");
    let printed = table.rows.iter().filter(|row| !row.paper.is_empty()).count();
    assert_eq!(printed, 4 * 4 + 2 * 4 + 3, "every figure of the paper's, and three claims");
}

#[test]
fn the_table_of_a_thousand_keys_is_ours() {
    let tables = made_up().tables();
    let table = &tables[1];
    assert_eq!(table.name, "g-runtime-keys");
    assert!(table.rows.iter().all(|row| row.paper.is_empty() && row.verdict == Verdict::Ours));
    assert_eq!(find(table, "facts for every N").ours, "100 to 1000");
    assert_eq!(
        find(table, "largest N whose median pass stays within 200 ms").ours,
        "10⁶, the largest measured"
    );
    let growth = find(table, "growth of the median pass, N = 10² to 10⁶");
    assert!(growth.ours.starts_with("sub-linear: ×75.0 "), "{growth:?}");
}

#[test]
fn a_claim_is_computed_and_not_repeated() {
    let claims = |milliseconds: [u64; 2]| {
        let points = [(100, milliseconds[0]), (100_000, milliseconds[1])];
        let points = points.map(|(events, time)| point(2, events, 2, time)).to_vec();
        let table = Runtime { points }.tables().swap_remove(0);
        let ours = |what: &str| find(&table, what).ours.clone();
        let growth = ours("growth of the median pass, N = 10² to 10⁵");
        (growth, ours("largest N whose median pass stays within 200 ms"))
    };
    let reported = |growth: &str, size: &str| (growth.to_owned(), size.to_owned());
    let within = reported("sub-linear: ×200.0 for ×1000 events", "10⁵, the largest measured");
    assert_eq!(claims([1, 200]), within, "the budget itself is within it");
    assert_eq!(claims([1, 1000]), reported("not sub-linear: ×1000.0 for ×1000 events", "10²"));
    assert_eq!(claims([201, 1]).1, "none");
}

#[test]
fn what_a_run_that_died_left_is_taken_away() {
    let scale = Scale { sizes: &[100], trials: 1, requests: 1 };
    lab(|lab| {
        for name in ["g-2", "g-2-copy", "g-1000"] {
            std::fs::write(lab.store(name), "half a page").unwrap();
        }
        measure_at(lab, &Stepping::default(), scale, &mut |_, _| {}).unwrap();
    });
}

#[test]
fn more_facts_than_the_paper_are_a_difference() {
    let mut runtime = made_up();
    runtime.points[1].facts = 3;
    let tables = runtime.tables();
    let differs = tables[0].rows.iter().filter(|row| row.verdict == Verdict::Differs);
    let differs: Vec<_> = differs.map(|row| row.what.as_str()).collect();
    assert_eq!(differs, ["facts after the pass, N = 10³", "facts for every N"]);
}

#[test]
fn json_holds_what_was_measured() {
    let json: Value = serde_json::from_str(&made_up().json().finish()).unwrap();
    let point = &json["points"][3];
    assert_eq!(point["events"], 100_000);
    assert_eq!(point["facts"], 2);
    assert_eq!(point["grown_bytes"], 20_480);
    assert_eq!((&point["pass_ms"]["median"], &point["pass_ms"]["p90"]), (&309.into(), &618.into()));
    assert_eq!(point["pass_ms"]["trials"].as_array().unwrap().len(), 9);
    assert_eq!(point["query_ms"]["p99"], 0.000_142);
    assert_eq!(point["choice_ms"]["p50"], 1.5);
    assert_eq!(point["http_ms"]["p99"], 0.075);
    assert_eq!(point["lookup_ms"]["requests"], 1000);
    assert_eq!(point["resident_bytes"]["peak"], 75 << 20);
    assert_eq!(json["points"].as_array().unwrap().len(), 10);
}

#[test]
fn memory_is_left_out_if_the_machine_does_not_report_it() {
    let instruments = Mute::serving(|| Box::new(Answering));
    let scale = Scale { sizes: &[100], trials: 1, requests: 1 };
    let runtime = lab(|lab| measure_at(lab, &instruments, scale, &mut |_, _| {}).unwrap());
    assert!(runtime.points.iter().all(|point| point.resident.is_none()));
    let tables = runtime.tables();
    assert_eq!(find(&tables[0], "memory in MB before the pass, N = 10²").ours, "not reported");
    let json: Value = serde_json::from_str(&runtime.json().finish()).unwrap();
    assert!(json["points"][0].get("resident_bytes").is_none());
}

#[test]
fn a_quick_measure_has_the_papers_protocol() {
    let runtime = lab(|lab| measure(lab, &Stepping::default(), true, &mut |_, _| {}).unwrap());
    let sizes: Vec<_> = runtime.points.iter().map(|point| point.events).collect();
    assert_eq!(sizes, [100, 1000, 10_000, 100, 1000, 10_000]);
    assert!(runtime.points.iter().all(|point| point.pass.len() == 9 && point.query.len() == 1000));
    let facts: Vec<_> = runtime.points[..3].iter().map(|point| point.facts).collect();
    assert_eq!(facts, [2, 2, 2]);
}
