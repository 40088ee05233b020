//! The evaluation of logs: the counts of the vectors, digit for digit, and honest words.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

use ipse_reproduce::evaluate::worlds::{Picker, World, worlds};
use ipse_reproduce::evaluate::{DecisionLog, Evaluation, History, Learning, PlannerKind, evaluate};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> DecisionLog {
    let bytes = fs::read(path).unwrap();
    let mut text = Vec::new();
    match path.extension().is_some_and(|it| it == "gz") {
        true => drop(flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut text).unwrap()),
        false => text = bytes,
    }
    DecisionLog::read(text.split(|byte| *byte == b'\n'), 0)
}

fn expected() -> Value {
    let text = fs::read_to_string(root().join("vectors/evaluate/expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The counts per event over the whole log, in the form of the vectors.
fn counts(found: &Evaluation) -> Value {
    let newest = found.runs.iter().filter(|run| run.learning == Learning::PerEvent);
    let named = newest.map(|run| {
        let counts = &run.counts;
        let value = json!({"decisions": counts.decisions, "failures": counts.failures,
            "skipped": counts.skipped, "avoided": counts.avoided, "lost": counts.lost()});
        (run.kind.name().to_owned(), value)
    });
    Value::Object(named.collect())
}

fn whole(path: &Path) -> Evaluation {
    evaluate("log", &read(path), History::percent(0).unwrap(), &mut |_, _| {})
}

#[test]
fn the_made_world_has_the_counts_of_the_vectors() {
    let found = whole(&root().join("vectors/evaluate/world.jsonl.gz"));
    assert_eq!(counts(&found), expected()["world"]);
    let nets = found.runs.iter().filter(|run| run.learning == Learning::PerEvent);
    let nets: Vec<i64> = nets.map(|run| run.net()).collect();
    assert_eq!(nets, [0, 1561, 3442, 3299, 3991]);
    assert!(found.words().starts_with("Memory helps here."), "{}", found.words());
}

/// The file of a log of `../shared/data`, which belongs to others and is not in this repository.
fn real(name: &str) -> Option<PathBuf> {
    let data = root().join("../shared/data");
    let found = fs::read_dir(&data).ok()?.map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap();
        file.starts_with(&format!("{name}.")) && file.contains("jsonl")
    };
    found.into_iter().find(is_it)
}

#[test]
fn public_logs_have_the_counts_of_the_vectors() {
    for name in ["tau_airline", "atomic_probe", "trail_otel"] {
        match real(name) {
            Some(path) => assert_eq!(counts(&whole(&path)), expected()[name], "{name}"),
            None => eprintln!("SKIPPED: {name} is not here (no ../shared/data)"),
        }
    }
}

/// Where v2 advises, it is at least as good as skipping at random.
#[test]
fn v2_does_no_harm_on_public_logs() {
    let Ok(entries) = fs::read_dir(root().join("../shared/data")) else {
        eprintln!("SKIPPED: the public logs are not here (no ../shared/data)");
        return;
    };
    let mut seen = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        if !path.to_str().unwrap().contains(".jsonl") {
            continue;
        }
        let log = read(&path);
        for history in [0, 50] {
            let history = History::percent(history).unwrap();
            let found = evaluate("log", &log, history, &mut |_, _| {});
            for run in found.runs.iter().filter(|run| run.kind == PlannerKind::V2) {
                let lift = run.counts.lift();
                assert!(lift.is_none_or(|lift| lift >= 1.0), "{path:?} {run:?}");
            }
        }
        seen += 1;
    }
    assert!(seen >= 4, "the public logs are there");
}

/// The table of the guide: 20 seeds.
#[test]
fn suggest_is_ahead_in_every_world_where_the_value_matters() {
    let found = worlds(20, &|_, _| {});
    assert_eq!(found.rows.len(), 15);
    for row in found.rows.iter().filter(|row| row.world != World::Flat) {
        let ours = row.of(Picker::Suggest).percent;
        let rivals = [
            Picker::NoMemory,
            Picker::RecommendedV1,
            Picker::RecommendedV2,
            Picker::Thompson(990),
            Picker::Thompson(995),
        ];
        for rival in rivals {
            let theirs = row.of(rival).percent;
            assert!(ours > theirs, "{:?} {}: {ours} {rival:?} {theirs}", row.world, row.per_day);
        }
    }
    let guide = fs::read_to_string(root().join("docs/guide/planning.md")).unwrap();
    for row in found.sheet().rows {
        let line = format!("| {} |", row.join(" | ")).replace(" * |", " \\* |");
        assert!(guide.contains(&line), "the guide has: {line}");
    }
    assert!(guide.contains("The worlds are made."));
}

fn attempt(id: usize, minute: usize, worked: bool) -> String {
    json!({"id": id.to_string(), "source": "arm", "type": "execution_result",
        "time": format!("2026-05-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440, minute / 60 % 24,
            minute % 60),
        "data": {"skill_id": "grasp", "success": worked}})
    .to_string()
}

#[test]
fn the_order_of_lines_and_repetitions_have_no_effect() {
    let lines: Vec<String> = (0..40).map(|n| attempt(n, 7 * n, n % 3 == 0)).collect();
    let ask = |lines: &[String]| {
        evaluate("log", &DecisionLog::read(lines, 0), History::default(), &mut |_, _| {})
    };
    let once = ask(&lines);
    let mut twice: Vec<String> = lines.iter().chain(&lines).rev().cloned().collect();
    twice.push("no event".to_owned());
    let other = ask(&twice);
    assert_eq!(once.runs, other.runs);
    assert_eq!((other.lines.events, other.lines.duplicates, other.lines.refused), (40, 40, 1));
    assert_eq!(once.history.decisions, 20);
    assert!(
        other.words().contains("Left out: 1 line rejected by the door, 40 lines duplicated."),
        "{}",
        other.words()
    );
}

/// With frozen facts nothing is learned after the history; the breaker still learns.
#[test]
fn facts_that_stand_still_do_not_notice_and_the_breaker_does() {
    let lines: Vec<String> = (0..40).map(|n| attempt(n, n, n < 20)).collect();
    let log = DecisionLog::read(&lines, 0);
    let found = evaluate("log", &log, History::default(), &mut |_, _| {});
    let skipped = |kind, learning| {
        let run = found.runs.iter().find(|run| run.kind == kind && run.learning == learning);
        run.unwrap().counts.skipped
    };
    assert_eq!(skipped(PlannerKind::V1Never, Learning::Frozen), 0);
    assert_eq!(skipped(PlannerKind::V1Never, Learning::Daily), 0, "all on one day");
    assert_eq!(skipped(PlannerKind::Breaker, Learning::PerEvent), 17, "three, then an hour");
    assert_eq!(skipped(PlannerKind::V1Never, Learning::PerEvent), 0, "never below one half");
}

#[test]
fn a_log_without_later_decisions_says_so() {
    let nothing = DecisionLog::read(Vec::<Vec<u8>>::new(), 0);
    let found = evaluate("log", &nothing, History::default(), &mut |_, _| {});
    assert!(found.words().starts_with("Nothing to decide on"), "{}", found.words());
    let good: Vec<String> = (0..9).map(|n| attempt(n, n, true)).collect();
    let found = evaluate("log", &DecisionLog::read(&good, 0), History::default(), &mut |_, _| {});
    assert!(found.words().starts_with("No failure to avoid"), "{}", found.words());
    assert_eq!(History::percent(100), None);
}
