//! The output of the experiments: verdicts, JSON, and the files of a report.
//!
//! **Invariant:** each comparison is tested with an equal result and with an altered one that
//! differs.
#![allow(missing_docs, clippy::unwrap_used)]

mod laboratory;

use ipse_core::{Identity, hex, sha256};
use ipse_reproduce::V3;
use ipse_reproduce::evaluate::{Evaluation, Lines, Part, Source};
use ipse_reproduce::example::{self, Example, FIGURE, TEXT};
use ipse_reproduce::report::{self, File};
use ipse_reproduce::results::{Experiment, Plan, Results, Verdicts};
use ipse_reproduce::runtime::{Endpoint, Instruments, Point, Runtime};
use ipse_reproduce::sweeps::Sweeps;
use ipse_reproduce::table::{Row, Table, Verdict};
use ipse_reproduce::v1::V1;
use ipse_reproduce::v2::V2;
use ipse_reproduce::v3::{Agents, Control, DECISIONS, SEEDS, THRESHOLD};
use ipse_store::Store;
use laboratory::{lab, vector};
use serde_json::{Value, json};

/// Instruments that must not be read.
struct Unused;

impl Instruments for Unused {
    fn serve(&self, _: &Store, _: &Identity) -> Result<Box<dyn Endpoint>, String> {
        panic!("nothing is served here")
    }

    fn nanos(&self) -> u64 {
        panic!("nothing is timed here")
    }

    fn resident(&self) -> Option<u64> {
        None
    }

    fn peak(&self) -> Option<u64> {
        None
    }

    fn reset_peak(&self) {}
}

fn plan(experiments: &[Experiment], seeds: &[i128], quick: bool) -> Plan {
    let (experiments, seeds) = (experiments.to_vec(), seeds.to_vec());
    let (threshold, decisions) = (THRESHOLD, None);
    Plan { experiments, seeds, controls: Control::ALL.to_vec(), threshold, decisions, quick }
}

fn run(plan: &Plan, logs: &[Source]) -> Results {
    lab(|lab| Results::of(lab, plan, logs, &Unused, &mut |_, _, _| ()).unwrap())
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// Checks that ours contains all wanted values; numbers to the six digits that vectors have at
/// least.
fn agrees(ours: &Value, want: &Value, place: &str) {
    match want {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, want)| agrees(&ours[name], want, &format!("{place}.{name}")));
        }
        Value::Array(items) => {
            assert_eq!(ours.as_array().map(Vec::len), Some(items.len()), "{place}");
            items
                .iter()
                .zip(ours.as_array().unwrap())
                .for_each(|(want, ours)| agrees(ours, want, place));
        }
        Value::Number(want) => {
            let (ours, want) = (ours.as_f64().unwrap_or(f64::NAN), want.as_f64().unwrap());
            assert!((ours - want).abs() <= 1e-6, "{place}: {ours} is not {want}");
        }
        want => assert_eq!(ours, want, "{place}"),
    }
}

#[test]
fn json_of_v3_and_the_sweeps_is_the_replays() {
    let results = run(&plan(&[Experiment::V3, Experiment::Sweeps], &SEEDS, false), &[]);
    let ours = parsed(&results.json());
    let replay = &vector("v3_expected.json")["replay"];
    for control in ["raw", "uniform", "calibrated"] {
        agrees(&ours["v3"][control], &replay[control], control);
    }
    for sweep in ["threshold", "prior", "n"] {
        agrees(&ours["sweeps"][sweep], &replay[sweep], sweep);
    }
    let without = json!({ "att_mean": 1000, "unprod_mean": 498.3, "rate_mean": 0.4983 });
    agrees(&ours["v3"]["no_memory"], &without, "no_memory");
    assert_eq!(ours["v3"]["decisions"], 1000);
    agrees(&ours["v3"]["seeds"], &replay["seeds"], "seeds");
}

/// The rows of tables that compare a value.
fn compared(tables: &[Table]) -> Vec<&Row> {
    let rows = tables.iter().flat_map(|table| &table.rows);
    rows.filter(|row| row.verdict != Verdict::Ours).collect()
}

#[test]
fn the_paper_is_compared_with_its_own_runs_only() {
    let experiments = [Experiment::V3, Experiment::Sweeps];
    let other = run(&plan(&experiments, &[7, 8, 9], false), &[]);
    assert_eq!(compared(&other.tables()), Vec::<&Row>::new(), "other seeds");
    let table = &other.tables()[0];
    let raw = table.rows.iter().find(|row| row.what == "raw: reduction, mean [interval]").unwrap();
    let [low, high] = other.v3.as_ref().unwrap().controls[1].interval.unwrap();
    assert!(raw.ours.ends_with(&format!("[{low:.2}%, {high:.2}%]")) && low < high, "{raw:?}");
    assert_eq!(raw.paper, "");

    let quick = run(&plan(&[Experiment::V3], &SEEDS, true), &[]);
    let tables = quick.tables();
    let rows: Vec<_> = compared(&tables).into_iter().map(|row| (&*row.what, &*row.ours)).collect();
    let figures = "80.4% [75.2%, 84.9%]";
    let whats = ["raw", "calibrated"].map(|name| format!("{name}: reduction, mean [interval]"));
    assert_eq!(rows, whats.each_ref().map(|what| (what.as_str(), figures)), "a hundred decisions");
    let quick = parsed(&quick.json());
    assert_eq!(quick["v3"]["decisions"], 100);
    assert_eq!(quick["v3"]["no_memory"]["att_mean"], 100);
}

#[test]
fn each_cell_names_its_erratum() {
    let table = lab(|lab| {
        let agents = Agents::live(lab, &SEEDS).unwrap();
        V3::run(&agents, &SEEDS, &Control::ALL, DECISIONS).table()
    });
    let errata = table.rows.iter().filter_map(|row| match row.verdict {
        Verdict::Erratum(number) => Some((row.what.as_str(), number)),
        _ => None,
    });
    let want = [
        ("no_memory: unproductive, mean", 4),
        ("uniform: unproductive, mean", 5),
        ("uniform: rate, mean", 6),
        ("raw: attempts, mean", 1),
        ("raw: unproductive, mean", 2),
        ("raw: rate, mean", 3),
        ("calibrated: attempts, mean", 1),
        ("calibrated: unproductive, mean", 2),
        ("calibrated: rate, mean", 3),
        ("points below the interval", 12),
        ("shrunk rate of glass_cup", 13),
        ("shrunk rate of unknown_object", 24),
    ];
    assert_eq!(errata.collect::<Vec<_>>(), want);
}

#[test]
fn the_first_seed_differs_from_the_least() {
    let mut v3 = lab(|lab| {
        let agents = Agents::live(lab, &SEEDS).unwrap();
        V3::run(&agents, &SEEDS, &[Control::Raw], DECISIONS)
    });
    assert_eq!(different(&v3.table()), Vec::<&str>::new());
    v3.controls[0].runs[4].unproductive = 400;
    let altered = v3.table();
    assert_eq!(different(&altered), ["raw: reduction, mean [interval]", "least of the ten seeds"]);
}

/// The labels of the rows that differ.
fn different(table: &Table) -> Vec<&str> {
    let differ = table.rows.iter().filter(|row| row.verdict == Verdict::Differs);
    differ.map(|row| row.what.as_str()).collect()
}

#[test]
fn what_was_altered_differs() {
    let (v1, v2, examples) = lab(|lab| {
        let examples = [("text", TEXT), ("figure", FIGURE)];
        let examples = examples.map(|(name, week)| Example::live(lab, name, week).unwrap());
        (V1::run(lab).unwrap(), V2::run(lab).unwrap(), examples)
    });
    assert_eq!(different(&v1.table()), Vec::<&str>::new());
    let altered = V1 { idempotent: false, ..v1.clone() };
    assert_eq!(different(&altered.table()), ["snapshot after a second pass"]);
    let altered = V1 { order_free: false, ..v1 };
    assert_eq!(different(&altered.table()), ["snapshot of a shuffled log"]);

    assert_eq!(different(&v2.table()), Vec::<&str>::new());
    let other = Identity([7; 32]);
    let [before, ..] = v2.identities;
    let once = V2 { identities: [before, other, before], ..v2.clone() };
    assert_eq!(different(&once.table()), ["identity after one pass"]);
    let twice = V2 { identities: [before, before, other], ..v2.clone() };
    assert_eq!(different(&twice.table()), ["identity after a second pass"]);
    assert!(v2.unchanged() && !once.unchanged() && !twice.unchanged());
    let deaf = V2 { changed: vec![("ecm_registry_hash", before)], ..v2 };
    assert_eq!(different(&deaf.table()), ["ecm_registry_hash changed"]);

    let [text, figure] = examples;
    assert_eq!(different(&example::table(&[text.clone(), figure.clone()])), Vec::<&str>::new());
    let swapped = example::table(&[figure.clone(), text.clone()]);
    assert_eq!(different(&swapped), ["observations, text", "confidence, text"]);
    let moved = example::table(&[Example { after: other, ..text }, figure]);
    assert_eq!(different(&moved), ["identity after the pass"]);
}

#[test]
fn json_of_the_others_says_what_was_found() {
    let experiments = [Experiment::Example, Experiment::V1, Experiment::V2];
    let results = run(&plan(&experiments, &SEEDS, false), &[]);
    let ours = parsed(&results.json());
    let v1 = json!({
        "events": 1000, "facts": 1, "fact_kind": "skill_success_rate", "n_observations": 1000,
        "successes": 800, "success_rate": 0.8, "evidence": 1000, "idempotent": true,
        "order_invariant": true,
    });
    assert_eq!(ours["v1"], v1);
    let mut v2 = results.v2.clone().unwrap();
    let reported = |v2: &V2| parsed(&v2.json());
    v2.identities = [1, 2, 3].map(|byte| Identity([byte; 32]));
    for (name, identity) in
        ["identity_before", "identity_after_one_pass", "identity_after_two_passes"]
            .iter()
            .zip(v2.identities)
    {
        assert_eq!(reported(&v2)[name], identity.to_string());
    }
    assert_eq!(
        (&reported(&v2)["byte_equal"], &ours["v2"]["byte_equal"]),
        (&json!(false), &json!(true))
    );
    let [text, figure] = [0, 1].map(|at| ours["example"][at].clone());
    for (example, n, confidence, rate) in [(text, 15, 0.8333, 0.8), (figure, 16, 0.8421, 0.75)] {
        let want = json!({
            "n_observations": n, "confidence": confidence, "success_rate": rate,
            "recommended_force_n": 25, "fact_key": "manipulation.grasp + glass_cup + sim_relaxed",
        });
        agrees(&example, &want, "example");
        assert_eq!(example["identity_before"], example["identity_after"]);
    }
    let rows = ours["comparisons"].as_array().unwrap();
    let row = |what: &str| rows.iter().find(|row| row["figure"] == what).unwrap();
    let drawn = json!({
        "table": "worked-example", "figure": "observations, figure", "paper": "15", "ours": "16",
        "verdict": "erratum 8", "figures": 1,
    });
    assert_eq!(row("observations, figure"), &drawn);
    assert_eq!(row("kind of the fact")["verdict"], "equal");
    // Rows of the worked example, V1 and V2.
    let errata = ours["errata"].as_array().unwrap().iter();
    let numbers: Vec<_> = errata.map(|erratum| erratum["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [8, 10, 14, 15, 29]);
}

fn point(keys: u64, facts: u64) -> Point {
    let (pass, query) = (vec![4_000_000; 9], vec![142]);
    let (choice, lookup, http, resident) = (vec![900], vec![60], vec![75_000], None);
    Point { keys, events: 100, pass, facts, grown: 20_480, query, choice, lookup, http, resident }
}

/// V1 with a kind that contains markup, a log with such a name, and timings.
fn odd() -> Results {
    let mut results = run(&plan(&[Experiment::V1, Experiment::V2], &SEEDS, false), &[]);
    results.v1.as_mut().unwrap().kind = "<i>& \"kind\"</i>".to_owned();
    results.runtime = Some(Runtime { points: vec![point(2, 3), point(1000, 90)] });
    let part = Part { decisions: 1, failures: 1, keys: 1, lost_fields: 0 };
    results.evaluations.push(Evaluation {
        name: "<b>log</b>".to_owned(),
        lines: Lines::default(),
        until: None,
        history: part,
        later: part,
        runs: Vec::new(),
    });
    results
}

#[test]
fn differences_are_counted_and_timings_stand_apart() {
    let results = odd();
    // The kind, the facts at one size, and the facts for every size.
    let Verdicts { different, measured, .. } = results.verdicts();
    assert_eq!(different, 3);
    assert!(measured > 5);
    let json = parsed(&results.json());
    assert_eq!(json["timings"], Value::Null);
    let of_points = json["runtime"]["points"][1].as_object().unwrap();
    assert_eq!(of_points.keys().collect::<Vec<_>>(), ["events", "facts", "keys"]);
    let rows = || json["comparisons"].as_array().unwrap().iter();
    let tables = rows().map(|row| &row["table"]);
    assert!(rows().all(|row| row["verdict"] != "measured"));
    assert_eq!(tables.filter(|table| **table == "v1").count(), 8);
    let with = parsed(&results.json_with_timings());
    assert_eq!(with["timings"]["points"][0]["pass_ms"]["median"], 4);
    let timed = with["timings"]["comparisons"].as_array().unwrap();
    assert!(timed.len() == measured && timed.iter().all(|row| row["verdict"] == "measured"));
}

fn find<'f>(files: &'f [File], name: &str) -> &'f File {
    files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn text(file: &File) -> &str {
    str::from_utf8(&file.bytes).unwrap()
}

#[test]
fn sums_are_over_what_no_clock_has_a_part_in() {
    let files = report::files(&odd()).unwrap();
    let stable = [
        "consolidation-pipeline.png",
        "consolidation-pipeline.svg",
        "evaluate-_b_log__b_.csv",
        "hash-inputs.png",
        "hash-inputs.svg",
        "results.json",
        "two-stances.png",
        "two-stances.svg",
        "v1.csv",
        "v2.csv",
    ];
    let line =
        |name: &&str| format!("{}  {name}\n", hex::encode(&sha256(&[&find(&files, name).bytes])));
    let sums = stable.iter().map(line).collect::<String>();
    assert_eq!(text(find(&files, "SHA256SUMS")), sums);
    let others = files.iter().filter(|file| !stable.contains(&&*file.name));
    let want = [
        "g-runtime-keys.csv",
        "g-runtime.csv",
        "report.html",
        "runtime-scaling.png",
        "runtime-scaling.svg",
        "timings.json",
        "SHA256SUMS",
    ];
    assert_eq!(others.map(|file| &*file.name).collect::<Vec<_>>(), want);
}

#[test]
fn cells_are_quoted_and_escaped() {
    let files = report::files(&odd()).unwrap();
    let table = text(find(&files, "v1.csv"));
    assert!(table.starts_with("figure,paper,ours,verdict\r\nfacts after one pass,1,1,equal\r\n"));
    let kind = "\r\nkind of the fact,skill_success_rate,\"<i>& \"\"kind\"\"</i>\",DIFFERS\r\n";
    assert!(table.contains(kind), "{table}");

    let page = text(find(&files, "report.html"));
    assert!(!page.contains("<i>") && !page.contains("<b>log"), "markup of others");
    let kind = "<td>&lt;i&gt;&amp; &quot;kind&quot;&lt;/i&gt;</td><td>DIFFERS</td></tr>";
    let row = page.lines().find(|line| line.ends_with(kind)).unwrap();
    assert!(row.starts_with("<tr class=\"differs\">"), "{row}");
    assert!(page.contains("<caption>&lt;b&gt;log&lt;/b&gt;: 1 decision on 1 key"));
    assert!(page.contains("<li class=\"differs\"><b>3</b> differ</li>"));
    assert!(page.contains("<td><a href=\"#erratum-14\">erratum 14</a></td>"));
    assert!(page.contains("<li id=\"erratum-14\" value=\"14\">"));
    assert!(page.contains("<p class=\"note\">A second pass finds nothing new"));
}

#[test]
fn one_difference_is_one_too_many() {
    let mut results = run(&plan(&[Experiment::V1], &SEEDS, false), &[]);
    let summary = |results: &Results| {
        let files = report::files(results).unwrap();
        let page = text(find(&files, "report.html"));
        let line = page.lines().find(|line| line.ends_with("differ</li>")).unwrap();
        (results.verdicts().different, line.to_owned())
    };
    assert_eq!(summary(&results), (0, "<li class=\"equal\"><b>0</b> differ</li>".to_owned()));
    results.v1.as_mut().unwrap().n = 999;
    assert_eq!(summary(&results), (1, "<li class=\"differs\"><b>1</b> differ</li>".to_owned()));
}

#[test]
fn the_example_is_drawn_as_the_paper_draws_it() {
    let files = report::files(&run(&plan(&[Experiment::Example], &SEEDS, false), &[])).unwrap();
    let drawn = text(find(&files, "worked-example.svg"));
    assert!(drawn.contains("0.8421") && !drawn.contains("0.8333"));
}

/// Every table is in its own section of the page.
#[test]
fn the_page_has_every_table_once() {
    let mut results = odd();
    results.v3 = None;
    results.sweeps = lab(|lab| {
        let agents = Agents::live(lab, &SEEDS[..2]).unwrap();
        Some(Sweeps::run(&agents, &SEEDS[..2]))
    });
    let files = report::files(&results).unwrap();
    let page = text(find(&files, "report.html"));
    let parts: Vec<&str> = page.split("<section id=\"").skip(1).collect();
    let reported: Vec<_> = parts
        .iter()
        .map(|part| (part.split('"').next().unwrap(), part.matches("<caption>").count()))
        .collect();
    let want = [("v1", 1), ("v2", 1), ("d", 3), ("g", 2), ("evaluate", 1), ("errata", 0)];
    assert_eq!(reported, want);
    assert_eq!(page.matches("<caption>").count(), results.sheets().len());
    let table = text(find(&files, "d-threshold.csv"));
    assert_eq!(table.matches(",,\"").count(), 5, "cells with a comma are quoted: {table}");
}

/// A plan runs exactly its experiments, and the given logs.
#[test]
fn a_plan_is_run_and_nothing_else() {
    let lines = vec![b"{".to_vec()];
    let log = Source { name: "log".to_owned(), lines, too_long: 1 };
    let results = run(&plan(&[], &[], false), &[log]);
    let Results { example, v1, v2, v3, sweeps, runtime, evaluations } = results;
    assert!(example.is_none() && v1.is_none() && v2.is_none() && v3.is_none());
    assert!(sweeps.is_none() && runtime.is_none());
    assert_eq!((evaluations[0].lines.refused, evaluations[0].runs.len()), (2, 11));
}
