//! Questions by time: `--as-of` with a time, and the filters of `ipse log`, on a log whose recorded
//! times are known, because a bundle keeps them.

use super::conventions::on_terminal;
use super::store::{CommandResult, Store, attempt, vector};
use serde_json::Value;

/// The log of `vectors/bundle`: attempts in April and, on 17 November 2026, passes, intents, a
/// confirmation and a `forget` event.
fn imported() -> Store {
    let bundle = vector("bundle/v0_1.ipse");
    let store = Store::nothing();
    let mut tar = std::process::Command::new("tar");
    let manifest = tar.arg("-xOf").arg(&bundle).arg("manifest.json").output().unwrap().stdout;
    let manifest = store.write("manifest.json", manifest);
    store.run(&["init", "--manifest", &manifest]).fine();
    let keys = ["log.vkey", "producer.vkey", "operator.pub"];
    let keys = keys.map(|name| vector(&format!("bundle/v0_1.{name}")));
    let [log, producer, operator] = keys.each_ref().map(|key| key.to_str().unwrap());
    let bundle = bundle.to_str().unwrap();
    store.run(&["import-bundle", bundle, "--trust", log, producer, operator]).fine();
    store
}

fn rows(ran: &CommandResult) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn seqs(ran: &CommandResult) -> Vec<u64> {
    rows(ran).iter().map(|row| row["seq"].as_u64().unwrap()).collect()
}

/// The positions of the events of ipse, with their times.
fn recorded(store: &Store) -> Vec<(u64, String)> {
    let all = rows(&store.run(&["log", "--json", "--source", "ipse"]).fine());
    let row = |row: &Value| (row["seq"].as_u64().unwrap(), row["time"].as_str().unwrap().into());
    all.iter().map(row).collect()
}

#[test]
fn a_time_is_the_last_position_that_ipse_recorded_by_then() {
    let store = imported();
    let recorded = recorded(&store);
    assert!(recorded.len() >= 8, "{recorded:?}");
    let last = recorded.last().unwrap().0;
    let (first, at) = &recorded[0];
    let rows = [
        ("1999-01-01", 0),
        ("2026-11-16", 0),
        ("2026-11-17T17:54:10.942539Z", 0),
        (at.as_str(), *first),
        ("2026-11-17T18:54:10.942540+01:00", *first),
        (recorded[1].1.as_str(), recorded[1].0),
        ("2026-11-17", last),
        ("9999-12-31T23:59:59Z", last),
    ];
    for (when, seq) in rows {
        let position = seq.to_string();
        for command in ["snapshot", "facts"] {
            let by_time = store.run(&[command, "--as-of", when]);
            let by_position = store.run(&[command, "--as-of", &position]);
            assert_eq!(by_time.out, by_position.out, "{command} {when}");
            assert_eq!(by_time.code, by_position.code, "{command} {when}");
            let note =
                if seq == 0 { "had recorded nothing" } else { "the last that ipse recorded" };
            assert!(by_time.err.contains(&format!("is seq {seq}")), "{}", by_time.err);
            assert!(by_time.err.contains(note) && !by_position.err.contains(note));
        }
        let json = store.run(&["facts", "--json", "--as-of", when]).json();
        assert_eq!((&json["checkpoint"], &json["as_of"]["seq"]), (&seq.into(), &seq.into()));
        assert_eq!(json["as_of"]["recorded"].is_null(), seq == 0, "{when}");
        let plain = store.run(&["facts", "--json", "--as-of", &position]).json();
        assert_eq!(plain.get("as_of"), None, "a position was asked for");
        let diff = store.run(&["diff", when, "0", "--json"]).fine().json();
        assert_eq!((&diff["from"], &diff["to"]), (&seq.into(), &0.into()), "{when}");
        assert_eq!(diff["from_as_of"]["seq"], seq, "{when}");
        assert_eq!(diff.get("to_as_of"), None);
    }
    let text = store.run(&["diff", "2026-11-16", "2026-11-17"]).fine();
    assert_eq!(text.out, store.run(&["diff", "0", &last.to_string()]).fine().out);
    assert!(text.err.contains("is seq 0") && text.err.contains(&format!("is seq {last}")));
}

#[test]
fn shadow_facts_and_the_report_on_rules_take_a_time() {
    let store = imported();
    let seq = recorded(&store)[1].0.to_string();
    let when = "2026-11-17T17:54:14.1Z";
    for command in [&["facts", "v2"][..], &["report", "v2"]] {
        let run = |as_of: &str| store.run(&[&["rules"], command, &["--as-of", as_of]].concat());
        let (by_time, by_position) = (run(when).fine(), run(&seq).fine());
        assert_eq!(by_time.out, by_position.out, "{command:?}");
        assert!(by_time.err.contains(&format!("is seq {seq}")), "{}", by_time.err);
    }
    let json = store.run(&["rules", "facts", "v2", "--as-of", when, "--json"]).fine().json();
    assert_eq!(json["as_of"]["seq"].to_string(), seq);
}

/// A log with an event of each kind, for the filters.
fn varied() -> Store {
    let store = Store::new();
    let line = |id: u64, day: u64, kind: &str, source: &str, data: &str| {
        format!(
            "{{\"id\":\"{id}\",\"source\":\"{source}\",\"type\":\"{kind}\",\
             \"time\":\"2026-05-{day:02}T10:00:00Z\",\"data\":{data}}}\n"
        )
    };
    let grasp = "{\"skill_id\":\"grasp\",\"target_class\":\"cup\",\"environment\":\"ward\",\
                 \"params\":{\"force_n\":25},\"success\":true}";
    let slip = "{\"skill_id\":\"grasp\",\"target_class\":\"jar\",\"outcome\":\"failed\",\
                \"failure_reason\":\"slip\\u001b[2J\"}";
    let go = "{\"skill_id\":\"nav.go\",\"zone\":\"dock\",\"outcome\":\"denied\"}";
    let seen = "{\"target_class\":\"cup\",\"object\":{\"mass_g\":210,\"wet\":true}}";
    let lines = [
        line(1, 1, "execution_result", "arm", grasp),
        line(2, 3, "execution_result", "arm", slip),
        line(3, 2, "execution_result", "base", go),
        line(4, 3, "seen", "camera", seen),
        line(5, 4, "note", "camera", "{\"text\":\"nothing here\"}"),
    ];
    store.import(lines.concat()).fine();
    store
}

#[test]
fn filters_combine_and_pages_go_on() {
    let store = varied();
    let rows: &[(&[&str], &[u64])] = &[
        (&[], &[1, 2, 3, 4, 5, 6]),
        (&["--since", "2026-05-03", "--until", "2026-05-03"], &[2, 4]),
        (&["--since", "2026-05-03T10:00:00Z", "--until", "2026-05-03T10:00:00Z"], &[2, 4]),
        (&["--since", "2026-05-03T10:00:00.000001Z", "--until", "2026-05-03"], &[]),
        (&["--until", "2026-05-02"], &[1, 3]),
        (&["--skill", "grasp"], &[1, 2]),
        (&["--target", "cup"], &[1, 4]),
        (&["--failed"], &[2]),
        (&["--failed", "--target", "cup"], &[]),
        (&["--type", "note"], &[5]),
        (&["--type", "consolidation_run"], &[6]),
        (&["--source", "camera"], &[4, 5]),
        (&["--source", "camera", "--since", "2026-05-04"], &[5]),
        (&["--last", "2"], &[6, 5]),
        (&["--last", "99", "--skill", "grasp"], &[2, 1]),
        (&["--last", "1", "--skill", "grasp"], &[2]),
        (&["--limit", "2"], &[5, 6]),
        (&["--limit", "1", "--skill", "grasp"], &[2]),
        (&["--limit", "2", "--source", "camera"], &[4, 5]),
        (&["--limit", "99", "--source", "camera"], &[4, 5]),
        (&["--after", "4"], &[5, 6]),
        (&["--after", "0", "--limit", "2"], &[1, 2]),
        (&["--after", "1", "--limit", "1", "--target", "cup"], &[4]),
        (&["--after", "6"], &[]),
    ];
    for (args, want) in rows {
        let ran = store.run(&[&["log", "--json"], *args].concat());
        assert_eq!(seqs(&ran), *want, "{args:?}");
        assert_eq!(ran.code, i32::from(want.is_empty()), "{args:?}");
        let text = store.run(&[&["log"], *args].concat());
        let lines: Vec<u64> = text
            .out
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(lines, *want, "{args:?}");
        assert_eq!(text.err.contains("no event"), want.is_empty(), "{args:?}: {}", text.err);
    }
    let first = store.run(&["log", "--after", "0", "--limit", "2"]).fine();
    assert!(first.err.contains("--after 2"), "{}", first.err);
    let last = store.run(&["log", "--after", "4", "--limit", "2"]).fine();
    assert_eq!(last.err, "", "nothing follows");
}

#[test]
fn a_column_says_what_happened() {
    let store = varied();
    let out = store.run(&["log"]).fine().out;
    let mut lines = out.lines();
    assert!(lines.next().unwrap().ends_with(" TYPE              WHAT"), "{out}");
    for (kind, what) in [
        ("execution_result", "grasp cup ward: success, force_n=25"),
        ("execution_result", "grasp jar: failed (slip\\u001b[2J)"),
        ("execution_result", "nav.go zone dock: denied"),
        ("seen", "cup, mass_g=210, wet=true"),
        ("note", ""),
        ("consolidation_run", "pass over seq 1..5 changed"),
    ] {
        let line = lines.next().unwrap();
        let rest = &line[61..];
        assert!(rest.starts_with(kind) && line.contains(what), "{line}");
        assert!(!line.contains('\u{1b}') && line.trim_end() == line, "{line}");
    }
    let rows = rows(&store.run(&["log", "--json"]).fine());
    assert_eq!(rows[1]["summary"], "grasp jar: failed (slip\\u001b[2J)");
    let name = rows[0]["event_ref"].as_str().unwrap();
    store.run(&["forget", "--yes", name]).fine();
    let out = store.run(&["log"]).fine().out;
    assert!(out.lines().nth(1).unwrap().ends_with("execution_result  (forgotten)"), "{out}");
    assert!(out.contains("forget            1 event forgotten"), "{out}");

    let out = imported().run(&["log", "--since", "2026-11-17"]).fine().out;
    for what in [
        ": needs confirmation, force_n=45",
        ": admitted, force_n=25",
        "ipse.confirmation confirmed ev_b0f3b7330b03af760a9a0f485a6b7c40",
    ] {
        assert!(out.contains(what), "{what}: {out}");
    }
}

/// No line is longer than the terminal, and no event ref is broken.
#[test]
fn a_list_fits_the_terminal() {
    let store = varied();
    let event = store.run(&["log", "--json", "--last", "1"]).fine().json();
    let name = event["event_ref"].as_str().unwrap();
    for columns in [140, 100, 80, 66, 60, 40] {
        let shown = on_terminal(&store, columns, "NO_COLOR=1 PAGER=cat", "log");
        let lines: Vec<&str> = shown.lines().map(|line| line.trim_end_matches('\r')).collect();
        let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns}: {shown}");
        assert!(lines.iter().any(|line| line.ends_with(name)), "{columns}: {shown}");
        assert_eq!(lines[0].contains("SEQ"), columns >= 66, "{columns}: {shown}");
        assert!(shown.contains("grasp cup ward:"), "{columns}: {shown}");
    }
}

/// On a terminal, long results go through the pager of the environment; a pipe gets plain bytes.
#[test]
fn a_pager_shows_long_results_on_a_terminal_only() {
    let store = Store::new();
    store.import((0..60).map(|n| attempt(&format!("{n}"), true)).collect::<String>()).fine();
    let file = store.directory.path().join("paged");
    for (args, words) in [("facts", "grasp + cup + ward"), ("log", "grasp cup ward: success")] {
        let pager = format!("NO_COLOR=1 IPSE_PAGER=\"cat > '{}'\"", file.display());
        let shown = on_terminal(&store, 100, &pager, args);
        let paged = std::fs::read_to_string(&file).unwrap();
        assert!(paged.contains(words) && !shown.contains(words), "{args}: {shown}\n{paged}");
        std::fs::remove_file(&file).unwrap();
        let mut command = store.command();
        command.env("IPSE_PAGER", format!("cat > '{}'", file.display()));
        let piped = super::store::ran(command.arg(args)).fine();
        assert!(piped.out.contains(words.split(' ').next().unwrap()) && !file.exists(), "{args}");
    }
    let shown = on_terminal(&store, 100, "NO_COLOR=1 IPSE_PAGER='head -n 3 > /dev/null'", "log");
    assert_eq!(shown, "", "the reader left, which is no error");
}

#[test]
fn a_table_of_facts_has_the_order_of_the_grounding_text() {
    let store = Store::with("facts/mixed_random.events.jsonl");
    for limit in ["7", "1000"] {
        let table = store.run(&["facts", "--limit", limit]).fine();
        let text = store.run(&["facts", "--limit", limit, "--format", "grounding"]).fine().out;
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
        let rows: Vec<&str> = table.out.lines().skip(1).collect();
        assert_eq!(rows.len(), lines.len());
        for (row, line) in rows.iter().zip(&lines) {
            let (_, rest) = line.split_once(": ").unwrap();
            let body = &rest[..rest.rfind(", confidence = ").unwrap()];
            assert!(row.ends_with(body), "{row}\n{line}");
        }
        let total = store.run(&["facts", "--json"]).fine().json()["total"].as_u64().unwrap();
        let said = table.err.contains(&format!("{limit} of {total} facts"));
        assert_eq!(said, limit == "7", "{}", table.err);
    }
}
