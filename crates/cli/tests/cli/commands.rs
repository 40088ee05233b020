//! Every command: its JSON, its text output, its exit code.

use super::store::{Store, attempt, ran, vector};

fn cup() -> Store {
    Store::with("facts/glass_cup.events.jsonl")
}

#[test]
fn init_says_whether_it_is_new() {
    let store = Store::nothing();
    let manifest = vector("manifest/golden.toml");
    let args = ["init", "--manifest", manifest.to_str().unwrap(), "--json"];
    let first = store.run(&args).fine();
    assert_eq!(first.members(), ["created", "identity_hash", "rule_version"]);
    assert_eq!(first.json()["rule_version"], "v1");
    assert_eq!(first.json()["created"], true);
    let golden = std::fs::read_to_string(vector("manifest/golden.identity.txt")).unwrap();
    assert_eq!(first.json()["identity_hash"], golden.trim());
    assert_eq!(store.run(&args).fine().json()["created"], false);
}

#[test]
fn record_appends_and_renews_the_facts() {
    let store = Store::new();
    let args = [
        "record",
        "--skill",
        "grasp",
        "--target",
        "cup",
        "--environment",
        "ward3",
        "--param",
        "force_n=25",
        "--param",
        "speed=-0.5e1",
        "--success",
        "--json",
    ];
    let ran = store.run(&args).fine();
    assert_eq!(ran.members(), ["event_ref", "pass", "seq", "status"]);
    let json = ran.json();
    assert_eq!((&json["seq"], &json["status"]), (&1.into(), &"appended".into()));
    assert_eq!(json["pass"]["rows_touched"], 1);
    let facts = store.run(&["facts", "--json"]).fine().json();
    let params = &facts["facts"][0]["value"]["params"];
    assert_eq!((&params["force_n"]["mean"], &params["speed"]["mean"]), (&25.into(), &(-5).into()));
    let log = store.run(&["log", "--json"]).fine().out;
    let event: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(event["event"]["source"], "cli");
    assert_eq!(event["event"]["data"]["environment"], "ward3");
}

#[test]
fn the_environment_is_named_once() {
    let store = Store::new();
    for short in [false, true] {
        let flag = if short { "--env" } else { "--environment" };
        store.run(&["record", "--skill", "grasp", flag, "ward3", "--success"]).fine();
    }
    let known = store.run(&["facts", "--env", "ward3", "--json"]).fine().json();
    assert_eq!(known["facts"][0]["n_observations"], 2, "{known}");
    assert_eq!(known["consultation"]["query"]["env"], "ward3", "hashed, so it keeps its name");
    for command in ["facts", "record"] {
        let twice = [command, "--env", "a", "--environment", "b"];
        store.run(&twice).ended(2, &["--environment", "cannot be used multiple times"]);
    }
}

#[test]
fn record_reports_duplicates_and_conflicts() {
    let store = Store::new();
    let args = |outcome: &'static str| {
        ["record", "--id", "7", "--time", "2026-05-06T10:00:00Z", "--zone", "z", outcome, "--json"]
    };
    store.run(&args("--success")).fine();
    let again = store.run(&args("--success")).fine().json();
    assert_eq!((&again["status"], &again["seq"]), (&"duplicate".into(), &1.into()));
    assert!(again["pass"].is_null());
    let conflict = store.run(&args("--failed")).ended(1, &["conflict", "seq 1"]).json();
    assert_eq!(conflict["status"], "conflict");
}

#[test]
fn record_wants_an_outcome_and_good_values() {
    let store = Store::new();
    store.run(&["record", "--skill", "s"]).ended(2, &["--success", "--failed", "--outcome"]);
    store.run(&["record", "--success", "--failed"]).ended(2, &["cannot be used with"]);
    store.run(&["record", "--outcome", "great"]).ended(2, &["possible values"]);
    store.run(&["record", "--success", "--param", "f"]).ended(2, &["NAME=NUMBER"]);
    store.run(&["record", "--success", "--param", "f=ten"]).ended(2, &["not a number"]);
    store.run(&["record", "--success", "--param", "f=1", "--param", "f=2"]).ended(2, &["twice"]);
    store.run(&["record", "--success", "--time", "now"]).ended(1, &["time", "not_rfc3339"]);
    store.run(&["record", "--success", "--source", "ipse"]).ended(1, &["reserved_source"]);
    store.run(&["record", "--type", "intent"]).ended(1, &["reserved_type"]);
    store.run(&["record", "--success", "--param", "f=1e17"]).ended(1, &["unsafe_integer"]);
    assert_eq!(store.run(&["log"]).code, 1, "nothing was stored");
    store.run(&["record", "--type", "incident", "--zone", "z"]).fine();
}

#[test]
fn import_counts_and_lists() {
    let store = Store::new();
    let lines = [
        attempt("1", true),
        attempt("1", true),
        attempt("1", false),
        "\n".into(),
        "not json\n".into(),
        attempt("2", false),
    ];
    let ran = store.import(lines.concat()).ended(1, &["line 3", "line 5", "invalid_json"]);
    let json = ran.json();
    for (name, count) in
        [("appended", 2), ("duplicates", 1), ("conflicts", 1), ("refused", 1), ("passes", 1)]
    {
        assert_eq!(json[name], count, "{name}");
    }
    assert_eq!(
        json["refusals"],
        serde_json::json!([
            {"line": 3, "field": "id", "rule": "conflict"},
            {"line": 5, "field": "", "rule": "invalid_json"},
        ])
    );
    assert_eq!(json["refusals_omitted"], 0);
    let again = store.import(attempt("1", true)).fine().json();
    assert_eq!((&again["duplicates"], &again["passes"]), (&1.into(), &0.into()));
}

#[test]
fn import_decodes_binary_data_of_unsigned_events_and_reports_a_type_nearly_counted() {
    let store = Store::new();
    let event = |id: &str, members: &str| {
        let (time, kind) = ("2026-05-06T10:00:00Z", "org.x.execution_result");
        format!("{{\"id\":\"{id}\",\"time\":\"{time}\",\"type\":\"{kind}\",{members}}}\n")
    };
    // {"skill_id":"s"}
    let encoded = r#""data_base64":"eyJza2lsbF9pZCI6InMifQ==""#;
    let plain = r#""data":{"skill_id":"s"}"#;
    let both = format!("{plain},{encoded}");
    let lines = event("1", encoded) + &event("1", plain) + &event("2", &both) + &event("3", plain);
    let ran = store.import(lines).ended(1, &["line 3", "`data_base64`", "[data_and_base64]"]);
    let hint = "hint: 3 events of a type that ends in .execution_result: feeds no fact; did you \
                mean execution_result";
    assert_eq!(ran.err.matches(hint).count(), 1, "{}", ran.err);
    let json = ran.json();
    for (name, count) in [("appended", 2), ("duplicates", 1), ("refused", 1), ("misnamed", 3)] {
        assert_eq!(json[name], count, "{name}: {json}");
    }
    let quiet = store.import(attempt("4", true)).fine();
    assert!(!quiet.err.contains("hint"), "{}", quiet.err);
    assert_eq!(quiet.json()["misnamed"], 0);
    // A line of a signed file is stored unchanged.
    let unsigned = event("5", encoded);
    assert_eq!(
        store.fed(&["import", "-", "--signed", "--json"], unsigned).fine().json()["appended"],
        1
    );
    let ran = store.import(event("5", plain)).ended(1, &["[conflict]"]);
    assert_eq!(ran.json()["conflicts"], 1);
    store.run(&["verify"]).fine();
}

#[test]
fn import_without_a_pass_and_the_pass_later() {
    let store = Store::new();
    let ran = store.fed(&["import", "-", "--no-consolidate", "--json"], attempt("1", true)).fine();
    assert_eq!(ran.json()["passes"], 0);
    assert_eq!(store.snapshot(), "");
    store.run(&["facts"]).ended(1, &["no facts yet"]);
    let kept = ["record", "--success", "--zone", "z", "--no-consolidate", "--id", "2"];
    store.run(&kept).ended(0, &["appended at seq 2; no pass was run"]);
    let pass = store.run(&["consolidate", "--json"]).fine();
    assert_eq!(pass.members(), ["checkpoint", "pass"]);
    let json = pass.json();
    assert_eq!((&json["checkpoint"], &json["pass"]["last_seq"]), (&2.into(), &2.into()));
    assert_eq!(
        (&json["pass"]["trigger"], &json["pass"]["first_seq"]),
        (&"manual".into(), &1.into())
    );
    let nothing = store.run(&["consolidate", "--json"]).fine().json();
    assert!(nothing["pass"].is_null());
    assert_eq!(nothing["checkpoint"], 2);
    assert_eq!(store.run(&["consolidate"]).fine().out, "nothing new\n");
}

#[test]
fn the_list_of_refusals_is_capped_and_says_so() {
    let store = Store::new();
    let json = store.import("x\n".repeat(1234)).ended(1, &["1214 more", "--json"]).json();
    assert_eq!(json["refused"], 1234);
    assert_eq!(json["refusals"].as_array().unwrap().len(), 1000);
    assert_eq!(json["refusals_omitted"], 234);
}

#[test]
fn each_durable_batch_is_reported_if_asked_for() {
    let store = Store::new();
    let lines: String = (0..2500).map(|n| attempt(&n.to_string(), true)).collect();
    let file = store.write("log.jsonl", &lines);
    let ran = store.run(&["import", "--verbose", &file]).fine();
    for line in ["durable up to line 1000", "durable up to line 2000", "durable up to line 2500"] {
        assert!(ran.err.contains(line), "{}", ran.err);
    }
    let again = store.run(&["import", "-v", &file]).fine().err;
    assert!(again.contains("durable up to line 2500: 0 appended, 2500 duplicates"), "{again}");
    assert_eq!(store.import(lines).fine().err, "", "one summary is enough");
}

#[test]
fn a_pipe_that_stays_open_is_made_durable_as_it_comes() {
    use std::io::{BufRead, Write};
    use std::process::Stdio;
    let store = Store::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ipse"))
        .args(["--store", store.path.to_str().unwrap(), "--verbose", "import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    for n in 1..=3 {
        stdin.write_all(attempt(&n.to_string(), true).as_bytes()).unwrap();
        let mut reported = String::new();
        stderr.read_line(&mut reported).unwrap();
        assert!(reported.starts_with(&format!("durable up to line {n}:")), "{reported}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(store.run(&["identity", "--json"]).fine().json()["events"], 3);
}

#[test]
fn facts_for_programs() {
    let json = cup().run(&["facts", "--json"]).fine().json();
    let members: Vec<_> = json.as_object().unwrap().keys().collect();
    let expected = [
        "checkpoint",
        "consultation",
        "consultation_id",
        "facts",
        "grounding",
        "identity_hash",
        "rule_version",
        "total",
    ];
    assert_eq!(members, expected, "the members that HTTP has");
    assert_eq!((&json["checkpoint"], &json["rule_version"]), (&15.into(), &"v1".into()));
    let fact = &json["facts"][0];
    let members: Vec<_> = fact.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "confidence",
            "fact_id",
            "fact_key",
            "fact_kind",
            "last_supporting_event_id",
            "last_updated",
            "n_observations",
            "rule_version",
            "value"
        ]
    );
    assert_eq!(fact["fact_key"], "manipulation.grasp + glass_cup + sim_relaxed");
    assert_eq!(fact["confidence"], 0.8333);
    assert_eq!(fact["value"]["params"]["force_n"]["recommended"]["value"], 25);
    assert_eq!(json["facts"][1]["fact_kind"], "interaction_pattern", "by confidence");
}

#[test]
fn facts_can_be_filtered() {
    let store = cup();
    let count = |args: &[&str]| {
        let ran = store.run(&[&["facts", "--json"], args].concat());
        let count = ran.json()["facts"].as_array().unwrap().len();
        assert_eq!(ran.code, i32::from(count == 0));
        count
    };
    assert_eq!(count(&["--skill", "manipulation.grasp"]), 2);
    assert_eq!(count(&["--environment", "sim_relaxed", "--kind", "skill_success_rate"]), 1);
    assert_eq!(count(&["--env", "sim_relaxed", "--kind", "skill_success_rate"]), 1, "an alias");
    assert_eq!(count(&["--environment", "elsewhere"]), 1, "patterns have no environment");
    assert_eq!(count(&["--zone", "ward"]), 0);
    assert_eq!(count(&["--limit", "1"]), 1);
    assert_eq!(count(&["--target", "*"]), 0);
    for command in ["facts", "log", "passes"] {
        store.run(&[command, "--limit", "0"]).ended(2, &["--limit"]);
    }
    store.run(&["facts", "--kind", "rumour"]).ended(2, &["possible values"]);
}

#[test]
fn grounding_is_one_line_a_fact_and_stable() {
    let store = cup();
    let args = ["facts", "--format", "grounding", "--kind", "skill_success_rate"];
    let text = store.run(&args).fine().out;
    let (header, line) = text.split_once('\n').unwrap();
    assert_eq!(header, "known facts for this agent (rule set v1):");
    let want = "- manipulation.grasp + glass_cup + sim_relaxed: recommended_force_n = 25 \
        (25..25, confidence = 0.70), success_rate = 0.8, confidence = 0.83, \
        n_observations = 15 [fa_";
    assert!(line.starts_with(want), "{line}");
    store.import(attempt("elsewhere", true)).fine();
    let relevant = [
        "facts",
        "--format",
        "grounding",
        "--skill",
        "manipulation.grasp",
        "--kind",
        "skill_success_rate",
    ];
    assert_eq!(store.run(&relevant).fine().out, text, "another fact moved, these bytes did not");
}

#[test]
fn every_kind_has_its_grounding_body() {
    let mut all = String::new();
    for name in ["mixed_random", "objects"] {
        let store = Store::with(&format!("facts/{name}.events.jsonl"));
        let text = store.run(&["facts", "--format", "grounding"]).fine().out;
        assert_eq!(text.lines().count() - 1, store.snapshot().lines().count(), "a line a fact");
        all.push_str(&text);
    }
    for body in [" failures: ", ": risk = ", ": median = ", ": most common = ", "success_rate = "] {
        assert!(all.contains(body), "{body}");
    }
}

#[test]
fn the_snapshot_is_the_vector() {
    let want = std::fs::read_to_string(vector("facts/glass_cup.snapshot.jsonl")).unwrap();
    assert_eq!(cup().snapshot(), want);
}

#[test]
fn log_and_passes_are_json_lines_with_seq() {
    let store = cup();
    let log = store.run(&["log", "--json"]).fine().out;
    let events: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=16).collect::<Vec<_>>());
    assert_eq!(events[15]["type"], "consolidation_run");
    assert_eq!(events[15]["event"]["source"], "ipse");
    let passes = store.run(&["passes", "--json"]).fine().out;
    let pass: serde_json::Value = serde_json::from_str(&passes).unwrap();
    assert_eq!(pass["seq"], 16);
    assert_eq!(pass["events_processed"], 15);
    let table = store.run(&["passes"]).fine().out;
    let columns: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(columns[0][5..7], ["TRIGGER", "RULES"]);
    assert_eq!(columns[1][5..7], ["manual", "v1"]);
    assert_eq!(store.run(&["log", "--json", "--limit", "2"]).fine().out.lines().count(), 2);
    let empty = Store::new();
    empty.run(&["log"]).ended(1, &["empty"]);
    empty.run(&["passes"]).ended(1, &["no passes yet"]);
}

#[test]
fn digests_in_the_log_are_those_of_the_events() {
    let log = cup().run(&["log", "--json"]).fine().out;
    for line in log.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let start = line.find("\"event\":").unwrap() + "\"event\":".len();
        let end = line.find(",\"event_ref\"").unwrap();
        let digest = ipse_core::hex::encode(&ipse_core::sha256(&[&line.as_bytes()[start..end]]));
        assert_eq!(value["digest"], digest);
    }
}

#[test]
fn rebuild_compares_and_never_repairs() {
    let store = cup();
    let ran = store.run(&["rebuild", "--json"]).fine();
    assert_eq!(ran.members(), ["cpu_ms", "equal", "events", "facts"]);
    assert_eq!(ran.json()["events"], 15);
    let db = rusqlite::Connection::open(&store.path).unwrap();
    db.execute("UPDATE fact SET value = replace(value, '0.8333', '0.9999')", []).unwrap();
    drop(db);
    let damaged = store.snapshot();
    let words = ["do not follow from the log", "differs: skill_success_rate manipulation.grasp"];
    let ran = store.run(&["rebuild", "--json"]).ended(1, &words);
    assert_eq!(ran.json()["equal"], false);
    assert_eq!(store.snapshot(), damaged, "it never repairs");
}

#[test]
fn tables_for_people() {
    let store = cup();
    let facts = store.run(&["facts"]).fine().out;
    assert!(facts.starts_with("CONF"), "{facts}");
    assert!(facts.contains("0.83") && facts.contains("recommended_force_n = 25"), "{facts}");
    assert!(store.run(&["passes"]).fine().out.contains("1..15"));
    assert!(store.run(&["log"]).fine().out.contains("execution_result"));
    assert!(store.run(&["rebuild"]).fine().out.contains("equal, byte for byte"));
}

#[test]
fn demo_shows_it_all_on_one_screen() {
    let ran = ran(super::store::binary().arg("demo")).fine();
    for words in [
        "25 (25..25",
        "0.83",
        "15 observations",
        "known facts for this agent",
        "12 of 12 at 25 worked, 3 of 3 below failed",
        "verified without the store",
        "nothing new",
        "byte-equal",
        "another agent",
    ] {
        assert!(ran.out.contains(words), "{words}");
    }
    assert!(ran.out.lines().count() <= 48, "one screen");
    let identities: Vec<_> = ran.out.lines().filter(|line| line.starts_with("identity ")).collect();
    assert!(identities[0] == identities[1] && identities[1] != identities[2], "{identities:?}");
    // The commands at the end work as printed.
    let store = Store::nothing();
    let (_, next) = ran.out.split_once("try next:\n").unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_ipse")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = assert_cmd::Command::new("sh");
    shell.args(["-ec", next]).current_dir(store.path.parent().unwrap()).env("PATH", path);
    super::store::ran(shell.env_remove("IPSE_STORE").env_remove("IPSE_KEYS")).fine();
    let json = super::store::ran(super::store::binary().args(["demo", "--json"])).fine().json();
    assert_eq!(json["byte_equal"], true);
}

/// The commands that the feature `experiments` adds.
#[cfg(not(feature = "experiments"))]
#[test]
fn a_server_build_has_no_experiments() {
    for command in ["bench", "reproduce"] {
        ran(super::store::binary().arg(command)).ended(2, &["unrecognized subcommand"]);
    }
}

#[test]
fn help_teaches() {
    let help = ran(super::store::binary().arg("--help")).fine().out;
    assert!(help.contains("ipse demo") && help.contains("keeps its identity"), "{help}");
    let help = ran(super::store::binary().args(["import", "--help"])).fine().out;
    assert!(help.contains("Example:") && help.contains("Exit 1"), "{help}");
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let store = Store::with("facts/v1_thousand.events.jsonl");
    let path = store.path.to_str().unwrap();
    let script =
        format!("'{}' --store '{path}' log --json | head -n 1", env!("CARGO_BIN_EXE_ipse"));
    let ran = ran(assert_cmd::Command::new("sh").args(["-c", &script])).fine();
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (1, ""));
}

#[test]
fn an_import_whose_output_is_not_read_is_finished() {
    let store = Store::new();
    let lines: String = (0..5000).map(|n| attempt(&n.to_string(), true)).collect();
    let file = store.write("log.jsonl", lines + "bad\n");
    let (ipse, path) = (env!("CARGO_BIN_EXE_ipse"), store.path.to_str().unwrap());
    for redirect in ["2>&1 | head -n 1", "2> /dev/full | true"] {
        let script = format!(
            "set -o pipefail; '{ipse}' --store '{path}' import '{file}' {redirect} > /dev/null"
        );
        ran(assert_cmd::Command::new("bash").args(["-c", &script])).ended(1, &[]);
        assert_eq!(store.run(&["identity", "--json"]).fine().json()["events"], 5000);
    }
}

#[test]
fn events_that_are_not_folded_yet_are_reported() {
    let store = cup();
    assert_eq!(store.run(&["facts"]).fine().err, "");
    store.fed(&["import", "-", "--no-consolidate"], attempt("1", true)).fine();
    for command in ["facts", "snapshot", "rebuild"] {
        store.run(&[command]).ended(0, &["1 event not folded yet", "ipse consolidate"]);
    }
}

#[test]
fn what_record_keeps_but_cannot_use_is_reported() {
    let store = Store::new();
    let unusable = ["record", "--success", "--zone", "z", "--param", "f=1e21"];
    store.run(&unusable).ended(0, &["kept but feeds no fact"]);
    let long = "x".repeat(1025);
    store.run(&["record", "--failed", "--zone", "z", "--reason", &long]).ended(0, &["1024"]);
    store.run(&["record", "--id", "7", "--zone", "z", "--success"]).fine();
    std::thread::sleep(std::time::Duration::from_millis(2));
    store.run(&["record", "--id", "7", "--zone", "z", "--success"]).ended(1, &["give --time"]);
}
