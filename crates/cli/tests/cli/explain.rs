//! `explain`, `--as-of`, `diff`, and concurrent processes.

use super::store::{Store, attempt, root, vector};
use rusqlite::Connection;
use serde_json::Value;
use std::time::{Duration, Instant};

const GLASS_CUP: &str = "manipulation.grasp + glass_cup + sim_relaxed";

fn glass_cup() -> Store {
    Store::with("facts/glass_cup.events.jsonl")
}

#[test]
fn a_fact_is_explained_to_its_last_event() {
    let store = glass_cup();
    let out = store.run(&["explain", GLASS_CUP]).fine().out;
    for words in [
        "12 of 15 attempts worked: success_rate 0.8.",
        "force_n: 12 of 12 at 25 worked, 3 of 3 below failed; window 25..25;",
        "confidence 15/(15+3)",
        "Evidence: 15 events, latest in the log first",
        "16   1..15  v1",
    ] {
        assert!(out.contains(words), "{words}\n{out}");
    }
    let (prose, _) = out.split_once("\nEvidence").unwrap();
    assert!(prose.lines().all(|line| line.chars().count() <= 80), "{out}");
    let json = store.run(&["explain", GLASS_CUP, "--json"]).fine().json();
    let id = json["fact"]["fact_id"].as_str().unwrap();
    assert_eq!(store.run(&["explain", id, "--json"]).fine().json(), json, "by id as by key");
    assert_eq!(json["evidence_total"], 15);
    let seqs: Vec<u64> =
        json["evidence"].as_array().unwrap().iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=15).rev().collect::<Vec<_>>());
    let first = &json["evidence"][0];
    for member in ["event_ref", "seq", "time", "type", "source", "id"] {
        assert!(first.get(member).is_some(), "{member}: {first}");
    }
    assert_eq!(first["event_ref"], json["fact"]["value"]["last_supporting_event_id"]);
    assert_eq!(json["passes"][0]["last_seq"], 15);
}

#[test]
fn the_words_count_what_they_say() {
    let store = Store::new();
    let attempt = |n: usize, force: &str, success: bool| {
        attempt(&format!("e{n}"), success)
            .replace("\"success\"", &format!("\"params\":{{\"f\":{force}}},\"success\""))
    };
    let mut log: String = (0..12).map(|n| attempt(n, "25", true)).collect();
    log += &attempt(12, "25.3", false);
    store.import(log).fine();
    let out = store.run(&["explain", "grasp + cup + ward"]).fine().out;
    assert!(out.contains("f: 12 of 13 within 25..25.3 worked; what mostly worked there 25..25;"));
    // An edited fact is shown with a warning.
    let db = Connection::open(&store.path).unwrap();
    db.execute_batch("UPDATE fact SET value = replace(value, '0.9230', '0.9999')").unwrap();
    store.run(&["explain", "grasp + cup + ward"]).ended(1, &["does not match its sum"]);
}

#[test]
fn an_event_is_explained_to_the_facts_it_feeds() {
    let store = glass_cup();
    let json = store.run(&["explain", GLASS_CUP, "--json"]).fine().json();
    let last = json["evidence"][14]["event_ref"].as_str().unwrap().to_string();
    let event = store.run(&["explain", &last, "--json"]).fine().json();
    assert_eq!(event["event"]["seq"], 1);
    assert_eq!(event["event"]["event_ref"], last.as_str());
    let kinds: Vec<&str> = event["facts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| fact["fact_kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"skill_success_rate"), "{event}");
    let words = store.run(&["explain", &last]).fine().out;
    assert!(words.contains("folded  by the pass at seq 16, range 1..15"), "{words}");
    assert!(words.contains("Facts it feeds"), "{words}");
    // The pass record itself is an event too, and feeds no fact.
    let passes = store.run(&["passes", "--json"]).fine().json();
    let record = passes["event_ref"].as_str().unwrap();
    let words = store.run(&["explain", record]).fine().out;
    assert!(words.contains("  none\n") && words.contains("folded  never"), "{words}");
}

#[test]
fn what_is_not_there_is_said_and_what_is_ambiguous_is_listed() {
    let store = Store::new();
    let line = |id: &str, data: &str| {
        format!(
            "{{\"id\":\"{id}\",\"source\":\"s\",\"type\":\"execution_result\",\
             \"time\":\"2026-05-06T10:00:00Z\",\"data\":{data}}}\n"
        )
    };
    // The same word as environment and as reason: two kinds under one key.
    let data = "{\"skill_id\":\"a\",\"target_class\":\"b\",\"environment\":\"c\",\
                \"success\":false,\"failure_reason\":\"c\"}";
    store.import(line("1", data)).fine();
    let ran = store.run(&["explain", "a + b + c"]).ended(1, &["several match", "fa_"]);
    assert!(ran.err.contains("interaction_pattern") && ran.err.contains("skill_success_rate"));
    for unknown in ["x + y", "fa_00000000000000000000000000000000"] {
        store.run(&["explain", unknown]).ended(1, &["no fact or event `"]);
    }
    store.run(&["explain", "ev_00000000000000000000000000000000"]).ended(1, &["no event"]);
    store.run(&["explain", "a + b + c", "--page", "0"]).ended(2, &["--page"]);
}

#[test]
fn evidence_comes_in_pages_through_chunks_and_rows() {
    let store = Store::new();
    let event = |n: usize| {
        attempt(&format!("e{n}"), n.is_multiple_of(2))
            .replace("\"grasp\"", &format!("\"skill{}\"", n % 3))
    };
    store.import((0..4700).map(event).collect::<String>()).fine();
    store.import((4700..4707).map(event).collect::<String>()).fine();
    let explain = |more: &[&str]| {
        let args: Vec<&str> =
            ["explain", "skill1 + cup + ward", "--json"].iter().chain(more).copied().collect();
        store.run(&args).fine().json()
    };
    let ids = |json: &Value| -> Vec<usize> {
        let id = |event: &Value| event["id"].as_str().unwrap()[1..].parse().unwrap();
        json["evidence"].as_array().unwrap().iter().map(id).collect()
    };
    let all = explain(&["--all"]);
    let want: Vec<usize> = (0..4707).rev().filter(|n| n % 3 == 1).collect();
    assert_eq!(ids(&all), want);
    assert_eq!(all["evidence_total"], want.len());
    assert_eq!(ids(&explain(&[])), want[..100]);
    assert_eq!(ids(&explain(&["--page", "3"])), want[200..300]);
    assert_eq!(ids(&explain(&["--page", "16"])), want[1500..]);
    let args = ["explain", "skill1 + cup + ward", "--page", "17"];
    store.run(&args).ended(1, &["no page 17: the last page is 16"]);
    // Without the chunks and the index the output is the same.
    let db = Connection::open(&store.path).unwrap();
    db.execute_batch("DELETE FROM chunk; DELETE FROM run; DELETE FROM piece").unwrap();
    assert_eq!(ids(&explain(&["--all"])), want);
    let old = all["evidence"][1500]["event_ref"].as_str().unwrap();
    store.run(&["explain", old]).fine();
}

#[test]
fn every_kind_has_its_words() {
    let store = Store::with("facts/edges.events.jsonl");
    let facts = store.run(&["facts", "--json"]).fine().json();
    for fact in facts["facts"].as_array().unwrap() {
        let id = fact["fact_id"].as_str().unwrap();
        let reported = store.run(&["explain", id, "--json"]).fine().json();
        assert_eq!(reported["evidence_total"], fact["n_observations"], "{fact}");
        let evidence = reported["evidence"].as_array().unwrap();
        assert_eq!(evidence.len() as u64, fact["n_observations"].as_u64().unwrap(), "{fact}");
        // The last sentence gives the confidence of the fact.
        let words = reported["words"].as_array().unwrap().last().unwrap().as_str().unwrap();
        assert!(words.contains(&fact["confidence"].to_string()), "{words}\n{fact}");
        store.run(&["explain", id]).fine();
    }
}

#[test]
fn as_of_is_what_was_known_there() {
    let store = Store::new();
    let mut snapshots = vec![(0, String::new())];
    for n in 0..12 {
        store.import(attempt(&format!("e{n}"), n % 3 == 0)).fine();
        let head = store.run(&["log", "--json"]).fine().out.lines().count();
        snapshots.push((head, store.snapshot()));
    }
    for (seq, want) in &snapshots {
        let seq = seq.to_string();
        assert_eq!(store.run(&["snapshot", "--as-of", &seq]).fine().out, *want, "as of {seq}");
    }
    let facts = store.run(&["facts", "--as-of", "2", "--json"]).fine().json();
    assert_eq!(
        (&facts["checkpoint"], &facts["facts"][0]["n_observations"]),
        (&2.into(), &1.into())
    );
    for args in [["snapshot", "--as-of", "25"], ["facts", "--as-of", "25"], ["diff", "0", "25"]] {
        store.run(&args).ended(2, &["beyond the end of the log: the last position is 24"]);
    }
    store.run(&["facts", "--as-of", "0"]).ended(1, &["no facts before the first event"]);
    store.run(&["snapshot", "--as-of", "-1"]).ended(2, &["--as-of"]);
}

#[test]
fn a_diff_shows_every_figure_and_its_change() {
    let store = glass_cup();
    let out = store.run(&["diff", "8", "15"]).fine().out;
    assert!(out.contains("n_observations  8 → 15  (+7)"), "{out}");
    assert!(out.contains("success_rate  0.625 → 0.8  (+0.175)"), "{out}");
    let back = store.run(&["diff", "15", "8", "--json"]).fine().json();
    let figures = back["changed"][0]["figures"].as_array().unwrap();
    let rate = figures.iter().find(|figure| figure["path"] == "success_rate").unwrap();
    assert_eq!(
        (&rate["from"], &rate["to"], &rate["by"]),
        (&0.8.into(), &0.625.into(), &(-0.175).into())
    );
    let json = store.run(&["diff", "0", "15", "--json"]).fine().json();
    assert_eq!(json["added"].as_array().unwrap().len(), 2);
    assert_eq!(store.run(&["diff", "15", "0", "--json"]).fine().json()["gone"], json["added"]);
    assert_eq!(store.run(&["diff", "15", "16"]).fine().out, "", "a pass record moves no fact");
}

#[test]
fn a_reader_never_blocks_a_writer_and_sees_one_moment() {
    let store = glass_cup();
    let reader = Connection::open(&store.path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM event").unwrap();
    let begun = Instant::now();
    store.import(attempt("during-a-read", true)).fine();
    assert!(begun.elapsed() < Duration::from_secs(8), "it waited for the reader");
    let count = |sql| reader.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM event"), 16, "the reader's moment stays");
    store.run(&["verify"]).fine();
}

#[test]
fn a_lock_that_stays_is_an_error_after_ten_seconds() {
    let store = glass_cup();
    let holder = Connection::open(&store.path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let ran = store.import(attempt("late", true));
    let waited = begun.elapsed();
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("10 s") && ran.err.contains("hint"), "{}", ran.err);
    // A generous bound: the machine may be slow, but a minute is not ten seconds.
    assert!(waited >= Duration::from_secs(9) && waited < Duration::from_secs(40), "{waited:?}");
    store.run(&["facts"]).fine();
    holder.execute_batch("ROLLBACK").unwrap();
    store.import(attempt("late", true)).fine();
    store.run(&["verify"]).fine();
}

#[test]
fn verifying_while_others_write_finds_nothing() {
    let store = Store::new();
    let events = |from: usize| -> String {
        let event = |n: usize| attempt(&format!("e{n}"), n.is_multiple_of(3));
        (from..from + 3000).map(event).collect()
    };
    let files = [0, 2000, 4000].map(|from| store.write(&format!("{from}.jsonl"), events(from)));
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            files.iter().map(|file| scope.spawn(|| store.run(&["import", file]).fine())).collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            store.run(&["verify"]).fine();
        }
    });
    let report = store.run(&["verify", "--json"]).fine().json();
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
}

#[test]
fn every_vector_verifies() {
    for entry in std::fs::read_dir(vector("facts")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(".events.jsonl") {
            let store = Store::new();
            store.run(&["import", path.to_str().unwrap()]);
            store.run(&["verify"]).fine();
        }
    }
}

#[test]
fn a_fact_is_found_by_parts_of_its_key_and_by_shortened_ids() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let whole = store.run(&["explain", GLASS_CUP, "--json"]).fine();
    let id = whole.json()["fact"]["fact_id"].as_str().unwrap().to_owned();
    let event = whole.json()["evidence"][0]["event_ref"].as_str().unwrap().to_owned();
    let parts = ["--skill", "manipulation.grasp", "--target", "glass_cup"];
    let with_parts = [&["explain", "--json"][..], &parts].concat();
    for args in [
        &["explain", "--json", &id[..9]][..],
        &["explain", "--json", &id[..12].to_uppercase().replace("FA_", "fa_")],
        &with_parts,
    ] {
        assert_eq!(store.run(args).fine().out, whole.out, "{args:?}");
    }
    let out = store.run(&["explain", &event[..11]]).fine().out;
    assert!(out.starts_with(&event), "{out}");
    store.run(&["explain", &event[..6]]).ended(1, &["at least 4"]);
    store.run(&["explain", "ev_0000"]).ended(1, &["no fact or event `ev_0000`"]);
    store.run(&["explain", "--zone", "nowhere"]).ended(1, &["no fact or event like this"]);
    store.run(&["explain", GLASS_CUP, "--skill", "x"]).ended(2, &["cannot be used with"]);
    store.run(&["explain"]).ended(2, &["--skill, --target or --zone"]);
}

/// Several matches are listed with ids that explain each of them.
#[test]
fn several_matches_are_listed_with_ids() {
    let store = Store::new();
    for (id, skill) in [("1", "grasp.soft"), ("2", "grasp.hard"), ("3", "push")] {
        store.import(attempt(id, true).replace("\"grasp\"", &format!("\"{skill}\""))).fine();
    }
    let listed = store.run(&["explain", "GRASP."]).ended(1, &["several match", "grasp.hard"]).err;
    let ids: Vec<&str> = listed.lines().filter_map(|line| line.trim().split(' ').next()).collect();
    let ids: Vec<&str> = ids.into_iter().filter(|word| word.starts_with("fa_")).collect();
    assert_eq!(ids.len(), 2, "{listed}");
    ids.iter().for_each(|id| drop(store.run(&["explain", id]).fine()));
    assert!(store.run(&["explain", "push"]).fine().out.contains("push + cup + ward"));
}

/// The distance that is said is the one that appears when the successes are really recorded.
#[test]
fn so_many_successes_bring_the_recommendation() {
    for rules in [&[][..], &["--rules", "v2"]] {
        let store = Store::nothing();
        let manifest = vector("manifest/golden.toml");
        let args = [&["init", "--manifest", manifest.to_str().unwrap()][..], rules].concat();
        store.run(&args).fine();
        let line = |n: usize, force: u32, worked: bool| {
            let params = format!("\"params\":{{\"force_n\":{force}}},\"success\"");
            attempt(&n.to_string(), worked).replace("\"success\"", &params)
        };
        let tried =
            (0..12).map(|n| line(n, 25, n != 3)).chain((12..30).map(|n| line(n, 40, false)));
        store.import(tried.take(6).collect::<String>()).fine();
        let explain = || store.run(&["explain", "grasp + cup + ward", "--json"]).fine().json();
        let missing = explain()["missing"][0].clone();
        assert_eq!((&missing["param"], &missing["nearest"]["n"]), (&"force_n".into(), &6.into()));
        let words = store.run(&["explain", "grasp + cup"]).fine().out.replace("\n ", "");
        assert!(
            words.contains("No recommendation for force_n yet: 5 of 6 at 25 worked."),
            "{words}"
        );
        let more = missing["nearest"]["more"].as_u64().unwrap();
        for n in 1..=more {
            assert_eq!(explain()["missing"].as_array().unwrap().len(), 1, "{n} of {more}");
            let later = line(100 + n as usize, 25, true).replace("2026-05-06", "2026-05-09");
            store.import(later).fine();
        }
        assert_eq!(explain()["missing"], serde_json::json!([]), "after {more} {rules:?}");
        assert!(explain()["fact"]["value"]["params"]["force_n"]["recommended"].is_object());
    }
}

/// Units come from the registry that `init` stored, or from a file.
#[test]
fn units_stand_beside_values() {
    let store = Store::nothing();
    let gates = root().join("examples/gates");
    let toml = format!(
        "agent_id = \"a\"\noperator = \"o\"\nembodiment = \"e\"\npolicy = \"{0}/policy.toml\"\n\
         ecm_registry = \"{0}/ecm-registry.toml\"\ntemperament = \"{0}/temperament.toml\"\n\
         commissioned_at = \"2026-05-01T00:00:00Z\"\n",
        gates.display()
    );
    let manifest = store.write("agent.toml", toml);
    store.run(&["init", "--manifest", &manifest]).fine();
    let log = vector("facts/glass_cup.events.jsonl");
    store.run(&["import", log.to_str().unwrap()]).fine();
    let explain = ["explain", "--skill", "manipulation.grasp", "--target", "glass_cup"];
    let stored = store.run(&explain).fine().out;
    assert!(stored.contains("25 N"), "{stored}");
    let file = gates.join("ecm-registry.toml");
    let given = [&explain[..], &["--ecm-registry", file.to_str().unwrap()]].concat();
    assert_eq!(store.run(&given).fine().out, stored);
}
