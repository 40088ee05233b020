//! `evaluate` from the command line: tables, JSON, plots, and wrong input.

use crate::store::{CommandResult, binary, ran, vector};
use std::fs;
use std::path::Path;

fn evaluate(directory: &Path, args: &[&str]) -> CommandResult {
    ran(binary().current_dir(directory).arg("evaluate").args(args))
}

fn world() -> String {
    vector("evaluate/world.jsonl.gz").to_str().unwrap().to_owned()
}

#[test]
fn a_log_is_replayed_with_every_planner() {
    let directory = tempfile::tempdir().unwrap();
    let args = [&world(), "--history", "0", "--plots", "plots"];
    let done = evaluate(directory.path(), &args).fine();
    for words in [
        "world: 12472 decisions on 40 keys after 0 of history, 6524 failed",
        "circuit breaker",
        "Memory helps here.",
        "A planner decides on each attempt after the history",
    ] {
        assert!(done.out.contains(words), "{words}: {}", done.out);
    }
    let plot = fs::read_to_string(directory.path().join("plots/evaluate-world.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("successes lost, %"), "{plot}");
    assert!(done.err.contains("plot: plots/evaluate-world.svg"), "{}", done.err);
    assert!(!directory.path().join("ipse.db").exists(), "no store is made");
}

/// The old name gives the same table, with half of the log as history.
#[test]
fn the_older_name_gives_the_same_table() {
    let directory = tempfile::tempdir().unwrap();
    let new = evaluate(directory.path(), &[&world(), "--json"]).fine().json();
    let args = ["reproduce", "real", &world(), "--json"];
    let old = ran(binary().current_dir(directory.path()).args(args)).fine().json();
    assert_eq!(new[0], old["evaluate"][0]);
    let v2 = &new[0]["planners"].as_array().unwrap()[10];
    assert_eq!((&v2["planner"], &v2["facts"]), (&"v2".into(), &"per event".into()));
    assert_eq!(
        v2["skipped"].as_u64(),
        v2["avoided"].as_u64().zip(v2["lost"].as_u64()).map(|(a, b)| a + b)
    );
}

#[test]
fn made_worlds_have_a_table_and_a_plot() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--worlds", "--seeds", "1", "--plots", "."];
    let done = evaluate(directory.path(), &args).fine();
    for words in ["better elsewhere", "Thompson .999", "The worlds are made", "never"] {
        assert!(done.out.contains(words), "{words}: {}", done.out);
    }
    assert!(directory.path().join("evaluate-worlds.svg").exists());
}

#[test]
fn wrong_input_is_an_error_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("empty.jsonl"), "\n\n").unwrap();
    for (args, code, words) in [
        (&[][..], 2, "<LOG>"),
        (&["nowhere.jsonl"], 2, "could not read nowhere.jsonl"),
        (&["."], 2, ". is a directory: give the logs in it by name"),
        (&["empty.jsonl", "--history", "100"], 2, "a whole percentage from 0 to 99"),
        (&["empty.jsonl", "--history=-1"], 2, "a whole percentage"),
        (&["empty.jsonl", "--seeds", "3"], 2, "cannot be used with"),
        (&["--worlds", "empty.jsonl"], 2, "cannot be used with"),
        (&["--worlds", "--seeds", "0"], 2, "from 1 to 1000"),
        (&["empty.jsonl", "--plots", "empty.jsonl"], 2, "could not make empty.jsonl"),
    ] {
        let done = evaluate(directory.path(), args).ended(code, &[words]);
        assert!(done.out.is_empty(), "{args:?}: {}", done.out);
    }
    let nothing = evaluate(directory.path(), &["empty.jsonl"]);
    assert_eq!(nothing.code, 1, "a log without a decision is no success");
    assert!(nothing.out.contains("Nothing to decide on"), "{}", nothing.out);
}
