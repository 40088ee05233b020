//! `reproduce`: its output, its files, and the input that it rejects.

use crate::store::{CommandResult, binary, ran, root, vector};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Runs it in its own directory, which must have no stores afterwards.
fn reproduce(directory: &Path, args: &[&str]) -> CommandResult {
    let ran = ran(binary().current_dir(directory).arg("reproduce").args(args));
    assert!(!directory.join("ipse.db").exists(), "the store of the command line is not touched");
    ran
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

#[test]
fn the_headline_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let v3 = reproduce(directory.path(), &["v3"]).fine();
    let rows = |figures: &str| v3.out.matches(figures).count();
    assert_eq!(rows("79.82% [78.02%, 81.49%]"), 8, "raw and calibrated, paper and ours, twice");
    assert_eq!(rows("-2.6% [-4.7%, +0.4%]"), 4, "without gates and with them");
    assert_eq!(rows(" clamped, 0 denied"), 3);
    assert!(v3.out.contains("seed 20260506 alone"), "{}", v3.out);
    assert!(v3.out.contains("74.58%"), "{}", v3.out);
    for number in 1..=6 {
        assert!(v3.out.contains(&format!("erratum {number}\n")), "{number}: {}", v3.out);
    }
    assert!(v3.out.ends_with("23 figures equal as printed, 0 differ, 12 cells are errata\n"));
}

#[test]
fn counts_of_seeds_for_programs() {
    let directory = tempfile::tempdir().unwrap();
    let all = reproduce(directory.path(), &["v3", "--json"]).fine().json();
    let replay: Value =
        serde_json::from_slice(&fs::read(vector("v3_expected.json")).unwrap()).unwrap();
    for control in ["raw", "uniform", "calibrated"] {
        let (ours, want) = (&all["v3"][control]["per_seed"], &replay["replay"][control]);
        assert_eq!(ours.as_array().unwrap().len(), 10);
        for (ours, want) in
            ours.as_array().unwrap().iter().zip(want["per_seed"].as_array().unwrap())
        {
            for figure in ["seed", "attempts", "unproductive", "no_memory_unproductive"] {
                assert_eq!(ours[figure], want[figure], "{control}");
            }
        }
    }
    let one = ["v3", "--json", "--seed", "20260506", "--confidence-weighting", "raw"];
    let one = reproduce(directory.path(), &one).fine().json();
    assert_eq!(one["v3"]["raw"]["mean_reduction"].as_f64(), Some(100.0 * (1.0 - 122.0 / 480.0)));
    assert_eq!(one["v3"]["raw"]["ci"], Value::Null, "one seed has no interval");
    assert_eq!(one["v3"]["uniform"], Value::Null, "it was not asked for");
}

/// The paper's driver: each point of its sweeps is also a setting of V3.
#[test]
fn the_settings_of_v3_are_arguments() {
    let directory = tempfile::tempdir().unwrap();
    let replay: Value =
        serde_json::from_slice(&fs::read(vector("v3_expected.json")).unwrap()).unwrap();
    for (args, sweep, point) in [
        (&["--threshold", "0.3"][..], "threshold", "0.3"),
        (&["--threshold", "0.7"], "threshold", "0.7"),
        (&["--prior-mean", "0.7", "--prior-weight", "5"], "prior", "0.7/5"),
        (&["--prior-mean", "0.7"], "prior", "0.7/10"),
        (&["--prior-mean", "0.7", "--prior-weight", "20"], "prior", "0.7/20"),
        (&["--decisions", "500"], "n", "500"),
    ] {
        let ran = reproduce(directory.path(), &[&["v3", "--json"], args].concat()).fine();
        let (ours, want) = (&ran.json()["v3"], &replay["replay"][sweep][point]);
        let near = |ours: &Value, want: &Value| {
            (ours.as_f64().unwrap() - want.as_f64().unwrap()).abs() < 1e-9
        };
        let ours = &ours["calibrated"];
        assert!(near(&ours["mean_reduction"], &want["mean_reduction"]), "{args:?}");
        assert!(near(&ours["ci"][0], &want["ci"][0]) && near(&ours["ci"][1], &want["ci"][1]));
    }
    let other = reproduce(directory.path(), &["v3", "--threshold", "0.4", "--prior-mean", "0.6"]);
    let other = other.fine().out;
    assert!(other.contains("10 seeds, threshold 0.4, prior 0.6/10"), "{other}");
    assert!(other.ends_with("0 figures equal as printed, 0 differ\n"), "{other}");
}

#[test]
fn each_run_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    for (args, prefix, count) in [
        (&["sweeps"][..], "run-d-", 190),
        (&["v3", "--seed", "1", "20260506", "--threshold", "0.4"], "run-v3-", 12),
    ] {
        let out = directory.path().join("report");
        let args = [args, &["--out", out.to_str().unwrap()]].concat();
        reproduce(directory.path(), &args).fine();
        let files = files(&out);
        let runs: Vec<_> = files.iter().filter(|(name, _)| name.starts_with("run-")).collect();
        assert_eq!(runs.len(), count, "an earlier report is replaced");
        let sums = String::from_utf8(files["SHA256SUMS"].clone()).unwrap();
        for (name, bytes) in runs {
            let run: Value = serde_json::from_slice(bytes).unwrap();
            let seed = run["seed"].to_string();
            assert!(name.starts_with(prefix) && name.ends_with(&format!("-{seed}.json")), "{name}");
            assert!(run["decisions"].as_u64() >= Some(100) && run["threshold"].is_number());
            assert!(sums.contains(&format!("  {name}\n")), "{name}");
        }
    }
    let out = directory.path().join("report");
    let run = fs::read(out.join("run-v3-gates-raw-20260506.json")).unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    assert_eq!(
        (&run["gates"], &run["threshold"], &run["control"]),
        (&true.into(), &0.4.into(), &"raw".into())
    );
}

#[test]
fn two_runs_write_equal_results() {
    let directory = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| {
        let logs = vector("facts/glass_cup.events.jsonl");
        let out = directory.path().join(name);
        let args = ["all", logs.to_str().unwrap(), "--quick", "--out", out.to_str().unwrap()];
        let ran = reproduce(directory.path(), &args).fine();
        assert!(ran.err.contains("report.html"), "{}", ran.err);
        files(&out)
    });
    assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
    let sums = String::from_utf8(one["SHA256SUMS"].clone()).unwrap();
    let listed: BTreeMap<&str, &str> =
        sums.lines().map(|line| line.split_once("  ").unwrap()).map(|(a, b)| (b, a)).collect();
    for (name, bytes) in &one {
        assert_eq!(Some(bytes), two.get(name), "{name} differs between two runs");
        let sum = ipse_core::hex::encode(&ipse_core::sha256(&[bytes]));
        assert!(name == "SHA256SUMS" || listed.get(name.as_str()) == Some(&sum.as_str()), "{name}");
    }
    for name in ["report.html", "results.json", "v1.csv", "v2.csv", "v3.csv", "v3-forest.svg"] {
        assert!(one.contains_key(name), "{name}");
    }
    for figure in ["two-stances", "worked-example", "hash-inputs", "consolidation-pipeline"] {
        assert!(one[&format!("{figure}.png")].starts_with(b"\x89PNG"), "{figure}");
    }
    for figure in ["worked-example.svg", "hash-inputs.svg"] {
        let shown = fs::read(root().join("docs/figures").join(figure)).unwrap();
        assert!(one[figure] == shown, "docs/figures/{figure}: copy it from `ipse reproduce --out`");
    }
    let printed = reproduce(directory.path(), &["--quick", "--json"]).fine().out;
    let results = String::from_utf8(one["results.json"].clone()).unwrap();
    let without_logs = |text: &str| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        value.as_object_mut().unwrap().remove("evaluate");
        value
    };
    assert_eq!(without_logs(&printed), without_logs(&results), "what --json prints is written");
}

#[test]
fn measurements_stand_apart() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("report");
    let args = ["runtime", "--quick", "--out", out.to_str().unwrap(), "--json"];
    let printed = reproduce(directory.path(), &args).fine().json();
    let files = files(&out);
    let sums = String::from_utf8(files["SHA256SUMS"].clone()).unwrap();
    let listed: Vec<_> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(listed, ["results.json"], "all else has a clock in it");
    let results: Value = serde_json::from_slice(&files["results.json"]).unwrap();
    assert_eq!(results["timings"], Value::Null);
    let timings: Value = serde_json::from_slice(&files["timings.json"]).unwrap();
    assert_eq!(timings["points"].as_array().unwrap().len(), 6);
    assert_eq!(printed["timings"], timings);
    assert!(files.contains_key("runtime-scaling.svg") && files.contains_key("g-runtime.csv"));
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("<img src=x>&.jsonl");
    fs::copy(vector("facts/glass_cup.events.jsonl"), &log).unwrap();
    let out = directory.path().join("report");
    let args = ["all", log.to_str().unwrap(), "--quick", "--out", out.to_str().unwrap()];
    reproduce(directory.path(), &args).fine();
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("&lt;img src=x&gt;&amp;"), "names are escaped");
    assert!(!page.contains("<img") && !page.contains("<script"));
    for reference in ["src=", "href=\"h", "url(", "@import"] {
        let outside = page.replace("&lt;img src=x", "").contains(reference);
        assert!(!outside, "{reference}");
    }
    assert_eq!(page.matches("<svg").count(), 5, "every figure is in it");
    assert_eq!(page.matches("<li id=\"erratum-").count(), 37, "and every erratum");
}

#[test]
fn what_would_be_passed_over_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = vector("facts/glass_cup.events.jsonl");
    let log = log.to_str().unwrap();
    fs::write(directory.path().join("a-file"), "").unwrap();
    let too_many: Vec<String> = (0..1001).map(|seed| seed.to_string()).collect();
    let too_many = too_many.join(",");
    for (args, words) in [
        (&["real"][..], "needs logs"),
        (&["v3", log], "logs need `real` or `all`"),
        (&["sweeps", "--threshold", "0.4"], "--threshold needs v3"),
        (&["--prior-mean", "0.4"], "--prior-mean needs v3"),
        (&["v1", "--decisions", "4"], "--decisions needs v3"),
        (&["v3", "--decisions", "0"], "from 1 to 1000000"),
        (&["v3", "--decisions", "4", "--quick"], "cannot be used with"),
        (&["v3", "--threshold", "1.1"], "from 0 to 1"),
        (&["v3", "--prior-weight", "inf"], "from 0 to 1000000"),
        (&["v3", "--prior-mean", "0.4", "--confidence-weighting", "raw"], "calibrated control"),
        (&["v3", "--prior-weight", "4", "--quick"], "calibrated control"),
        (&["v1", "--seed", "1"], "--seed needs v3 or sweeps"),
        (&["real", log, "--seed", "1"], "--seed needs v3 or sweeps"),
        (&["sweeps", "--confidence-weighting", "raw"], "--confidence-weighting needs v3"),
        (&["real", log, "--quick"], "leave --quick out"),
        (&["v3", "--seed", "7", "--seed", "7"], "seed 7 is given twice"),
        (&["v3", "--seed", &too_many], "one run takes at most 1000"),
        (&["v3", "--seed", "5,-5"], "seeds 5 and -5 draw the same numbers"),
        (&["v3", "--seed", "1.5"], "a seed is a whole number"),
        (&["--seed", "1", "2", "v3"], "give the experiment before --seed"),
        (&["v4"], "invalid value 'v4'"),
        (&["v3", "--confidence-weighting", "none"], "invalid value 'none'"),
        (&["real", "nowhere.jsonl"], "could not read nowhere.jsonl"),
        (&["real", "."], "could not read ."),
        (&["v1", "--out", "a-file"], "it is not a directory"),
        (&["v1", "--out", "a-file/below"], "could not make a-file/below"),
        (&["v1", "--out", "/proc"], "which is not part of a report"),
        (&["v1", "--out", "/proc/self/map_files"], "/proc/self/map_files"),
    ] {
        let ran = reproduce(directory.path(), args).ended(2, &[words]);
        assert!(ran.out.is_empty(), "{args:?}");
    }
}

#[test]
fn a_log_is_run_completely_and_the_protocol_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("lo\u{1b}g.jsonl");
    let events = fs::read_to_string(vector("facts/glass_cup.events.jsonl")).unwrap();
    fs::write(&log, events + &"x".repeat(1 << 20) + "\n{\n").unwrap();
    let log = log.to_str().unwrap();
    let json = reproduce(directory.path(), &["real", log, "--json"]).ended(0, &[]).json();
    assert_eq!(json["evaluate"][0]["refused"], 2, "one that is too long, and one that is no event");
    let words = reproduce(directory.path(), &["real", log]).ended(0, &[]).out;
    assert!(words.contains("Left out: 2 lines rejected by the door."), "{words}");
    assert!(!words.contains('\u{1b}'), "a name that moves the cursor: {words:?}");
    assert!(words.contains("A planner decides on each attempt after the history"), "{words}");
    fs::write(directory.path().join("cut.jsonl.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab").unwrap();
    reproduce(directory.path(), &["real", "cut.jsonl.gz"])
        .ended(2, &["could not read cut.jsonl.gz"]);
}

#[test]
fn seeds_are_pythons() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["v3", "--json", "--seed", "-7", "18446744073709551619"];
    let json = reproduce(directory.path(), &args).fine().json();
    let seeds: Vec<_> =
        json["v3"]["raw"]["per_seed"].as_array().unwrap().iter().map(|run| &run["seed"]).collect();
    assert_eq!(seeds[0], -7);
    // Draws drop the sign, as CPython does.
    let other = reproduce(directory.path(), &["v3", "--json", "--seed", "7"]).fine().json();
    let attempts = |json: &Value| json["v3"]["raw"]["per_seed"][0]["attempts"].clone();
    assert_eq!(attempts(&json), attempts(&other));
    let controls = |weighting: &str| {
        let args = ["v3", "--json", "--seed", "1", "--confidence-weighting", weighting];
        let json = reproduce(directory.path(), &args).fine().json();
        ["raw", "uniform", "calibrated"].map(|name| json["v3"][name].is_object())
    };
    assert_eq!(controls("raw"), [true, false, false]);
    assert_eq!(controls("uniform"), [false, true, false]);
    assert_eq!(controls("calibrated"), [false, false, true]);
}

/// Names that are equal, or become equal as file names.
#[test]
fn logs_of_one_name_get_distinct_files() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["log.jsonl", "log.jsonl", "log 2.jsonl", "LOG.jsonl", "日誌.jsonl", "記録.jsonl"];
    for name in names {
        let vector = vector("facts/glass_cup.events.jsonl");
        fs::copy(vector, directory.path().join(name)).unwrap();
    }
    let args = [&["real"], &names[..], &["--out", "report"]].concat();
    reproduce(directory.path(), &args).fine();
    let files = files(&directory.path().join("report"));
    let tables: Vec<&str> = files
        .keys()
        .filter_map(|name| name.strip_prefix("evaluate-")?.strip_suffix(".csv"))
        .collect();
    assert_eq!(tables, ["LOG_3", "__", "___2", "log", "log_2", "log_2_2"]);
}

#[test]
fn a_report_replaces_an_earlier_one_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("report");
    reproduce(directory.path(), &["--quick", "--out", "report"]).fine();
    assert!(out.join("v1.csv").exists());
    reproduce(directory.path(), &["v2", "--out", "report"]).fine();
    let now: Vec<String> = files(&out).into_keys().collect();
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    assert_eq!(now.len(), sums.lines().count() + 1, "every file is summed: {now:?}");
    assert!(!now.contains(&"v1.csv".to_owned()));
    fs::write(out.join("thesis.tex"), "mine").unwrap();
    let words = ["holds thesis.tex, which is not part of a report"];
    reproduce(directory.path(), &["v1", "--out", "report"]).ended(2, &words);
    assert_eq!(files(&out).len(), now.len() + 1, "nothing was changed");
}

#[test]
fn lines_that_are_left_out_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let bad = "{}\n\nnot json\n".to_owned() + &"{\"x\":1}\n".repeat(6);
    fs::write(directory.path().join("bad.jsonl"), bad).unwrap();
    let ran = reproduce(directory.path(), &["real", "bad.jsonl"]);
    let words = ["bad.jsonl, line 1: ", "bad.jsonl, line 3: ", "bad.jsonl: 3 more lines refused"];
    let ran = ran.ended(1, &words);
    assert!(ran.out.contains("Left out: 8 lines rejected by the door."), "{}", ran.out);
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    use std::time::Duration;
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ipse"));
        let command = command.args(["reproduce", "runtime"]).env("TMPDIR", directory.path());
        let mut child = command.spawn().unwrap();
        while fs::read_dir(directory.path()).unwrap().next().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        let kill = format!("kill -{signal} {}", child.id());
        std::process::Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(files(directory.path()).len(), 0, "{signal}");
    }
}
