//! `import` of several files, dry runs, and the summary of members that feed no fact.

use super::store::{Store, attempt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// An attempt with other data in place of its success.
fn with(id: &str, data: &str) -> String {
    attempt(id, true).replace("\"success\":true", data)
}

fn count(json: &Value) -> [u64; 4] {
    ["appended", "duplicates", "conflicts", "refused"].map(|name| json[name].as_u64().unwrap())
}

/// Every file below a directory with its bytes.
fn bytes_below(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(bytes_below(&entry.path())),
            false => {
                let name = entry.path().to_str().unwrap().to_owned();
                all.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    all
}

#[test]
fn members_that_feed_no_fact_are_counted_with_their_first_lines() {
    let store = Store::new();
    let mut lines = attempt("good", true);
    for id in ["2", "3", "4", "5"] {
        lines += &with(id, "\"outcome\":\"failure\"");
    }
    lines += &attempt("6", true).replace("\"skill_id\"", "\"skill\"");
    lines += &with("7", "\"success\":true,\"params\":{\"force_n\":\"25\",\"wet\":true}");
    let ran = store.import(&*lines).fine();
    for hint in [
        "`data.outcome` is \"failure\", which counts as unknown; did you mean \"failed\"? \
         (4 events: lines 2, 3, 4, …)",
        "`data.skill` feeds no fact; did you mean `skill_id`? (1 event: line 6)",
        "`data.params.force_n` is a number in quotes and feeds no fact; write it without quotes \
         (1 event: line 7)",
        "`data.params.wet` is a boolean; facts are learned from numbers only (1 event: line 7)",
    ] {
        assert!(ran.err.contains(&format!("hint: {hint}\n")), "{hint}\n{}", ran.err);
    }
    let unused = ran.json()["unused"].clone();
    let lines: Vec<&Value> = unused.as_array().unwrap().iter().map(|it| &it["lines"]).collect();
    assert_eq!(lines, [&json!([2, 3, 4]), &json!([7]), &json!([7]), &json!([6])], "{unused}");
}

#[test]
fn several_files_are_one_import_with_one_pass() {
    let store = Store::new();
    let one = store.write("one.jsonl", attempt("1", true) + &attempt("2", true));
    let bad = format!("{}no event\n{}", attempt("2", false), attempt("3", true));
    let two = store.write("two.jsonl", bad + &with("4", "\"outcome\":\"error\""));
    let none = store.write("none.jsonl", "");
    let args = ["import", &one, &two, &none];
    let ran = store.run(&args).ended(1, &["two.jsonl, line 1", "two.jsonl, line 2"]);
    for line in [
        "one.jsonl: 2 appended, 0 duplicates, 0 conflicts, 0 refused",
        "two.jsonl: 2 appended, 0 duplicates, 1 conflict, 1 refused",
        "3 files: 4 appended, 0 duplicates, 1 conflict, 1 refused",
        "one pass over 4 events",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    let hint = "(1 event: first in ";
    assert!(ran.err.contains(hint) && ran.err.contains("two.jsonl, line 4)"), "{}", ran.err);
    assert!(ran.err.contains("none.jsonl holds no event"), "{}", ran.err);
    let passes = store.run(&["passes", "--json"]).fine().out;
    assert_eq!(passes.matches("\"seq\":").count(), 1, "{passes}");
    let again = store.run(&[&args[..], &["--json"]].concat()).ended(1, &[]).json();
    assert_eq!(count(&again), [0, 4, 1, 1]);
    let files = again["files"].as_array().unwrap();
    assert_eq!(files.iter().map(count).collect::<Vec<_>>(), [[0, 2, 0, 0], [0, 2, 1, 1], [0; 4]]);
    let refusals = again["refusals"].as_array().unwrap();
    assert!(refusals.iter().all(|it| it["file"] == two.as_str()), "{again}");
    assert_eq!(again["unused"][0]["file"], two.as_str());
}

#[test]
fn a_wrong_file_among_several_stores_nothing() {
    let store = Store::new();
    let good = store.write("good.jsonl", attempt("1", true));
    let table = store.write("table.csv", "id,time\n1,2\n");
    store.run(&["import", &good, &table]).ended(2, &["table.csv", "nothing was stored"]);
    store.run(&["import", &good, "missing.jsonl"]).ended(2, &["missing.jsonl"]);
    assert_eq!(store.run(&["identity", "--json"]).fine().json()["events"], 0);
}

/// A dry run counts as the import itself does, and changes no byte of the store or of its keys.
#[test]
fn a_dry_run_counts_as_the_import_does_and_writes_nothing() {
    let store = Store::new();
    store.import([attempt("1", true), attempt("2", true)].concat()).fine();
    let ahead = attempt("9", true).replace("\"time\":\"20", "\"time\":\"21");
    let one = [
        attempt("1", true),
        attempt("2", false),
        attempt("3", true),
        attempt("3", true),
        attempt("3", false),
        "no event\n".to_owned(),
        with("4", "\"outcome\":\"failure\""),
        ahead,
    ];
    let one = store.write("one.jsonl", one.concat());
    let two = store.write("two.jsonl", attempt("3", true) + &attempt("5", true));
    let before = bytes_below(store.directory.path());
    let dry = store.run(&["import", "--dry-run", &one, &two, "--json"]).ended(1, &["line 8"]);
    store.run(&["import", "--dry-run", &one]).ended(1, &["did you mean \"failed\"?"]);
    // SQLite creates these two for a reader too.
    let mut after = bytes_below(store.directory.path());
    after.retain(|name, bytes| {
        !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty())
    });
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before), "a dry run leaves no file behind");
    for (name, bytes) in after {
        assert!(bytes == before[&name], "a dry run changed {name}");
    }
    let (mut dry, mut real) =
        (dry.json(), store.run(&["import", &one, &two, "--json"]).ended(1, &[]).json());
    assert_eq!(count(&dry), [3, 3, 2, 2], "{dry}");
    assert_eq!((&dry["dry_run"], &real["dry_run"]), (&true.into(), &false.into()));
    for json in [&mut dry, &mut real] {
        let members = json.as_object_mut().unwrap();
        members.remove("dry_run");
        members.remove("passes");
    }
    assert_eq!(dry, real);
    let after = store.run(&["import", "--dry-run", &two]).fine();
    let words = "0 to append, 2 duplicates, 0 conflicts, 0 refused\ndry run: nothing was stored\n";
    assert_eq!(after.out, words);
}

/// A log that takes signed events only refuses the same unsigned events in a dry run.
#[test]
fn a_dry_run_knows_the_rules_of_the_log() {
    let store = Store::new();
    store.run(&["config", "signatures", "require"]).fine();
    let file = store.write("one.jsonl", attempt("1", true));
    for args in [&["import", "--dry-run", &file][..], &["import", &file]] {
        store.run(args).ended(1, &["line 1", "signed events only"]);
    }
}
