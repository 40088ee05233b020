//! `explain` of planned actions, and the same trail from an exported bundle.

use super::planned::{Planned, plan};
use super::store::Store;
use ipse_bundle::trail::{Found, Listing};
use ipse_core::EventRef;
use serde_json::Value;

const GLASS_CUP: &str = "manipulation.grasp + glass_cup + sim_relaxed";

fn lived() -> (Store, Planned) {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let planned = plan(&store);
    (store, planned)
}

fn action(store: &Store, name: &str) -> Value {
    store.run(&["explain", name, "--json"]).fine().json()["action"].clone()
}

#[test]
fn an_action_is_walked_back_from() {
    let (store, planned) = lived();
    let reported = action(&store, &planned.acted);
    assert_eq!(reported["intent"]["event_ref"], planned.intent.as_str());
    assert_eq!(reported["attempts"][0]["standing"], "planned");
    assert_eq!(reported["attempts"][0]["deviations"][0]["field"], "params.force_n");
    assert_eq!(reported["consultation"]["now"], "verified");
    assert_eq!(reported["unproven"].as_array().unwrap().len(), 0);
    assert!(reported["facts"][0]["evidence"].as_array().unwrap().len() <= 10);
    let out = store.run(&["explain", &planned.acted]).fine().out;
    let places = [
        "  type    execution_result",
        "\nContent\n",
        "\nAction\n",
        "\nIntent\n",
        "\nGates\n",
        "\nFacts consulted\n",
        "\nProofs\n",
        "\nFacts it feeds\n",
    ]
    .map(|part| out.find(part).unwrap_or_else(|| panic!("no `{part}` in\n{out}")));
    assert!(places.is_sorted(), "{out}");
    assert!(!out.contains("planned no"), "{out}");
    assert!(out.contains("    deviates   params.force_n: admitted 40, acted 41\n"), "{out}");
    let all = store.run(&["explain", &planned.acted, "--all", "--json"]).fine().json();
    assert_eq!(all["action"]["facts"][0]["evidence"].as_array().unwrap().len(), 15);
    let out = store.run(&["explain", &planned.intent]).fine().out;
    assert!(out.contains("\nAction\n") && !out.contains("Facts it feeds"), "{out}");
    let out = store.run(&["explain", &planned.confirmation]).fine().out;
    assert!(out.contains("  verdict    needs_confirmation: declined\n"), "{out}");
    assert_eq!(action(&store, &planned.waiting)["verdict"]["standing"], "declined");
    assert_eq!(action(&store, &planned.against)["attempts"][0]["standing"], "against_gates");
}

/// A value next to a proof must be the proven one; otherwise it is not shown.
#[test]
fn a_verdict_that_was_changed_in_the_file_is_not_shown() {
    let (store, planned) = lived();
    let db = rusqlite::Connection::open(&store.path).unwrap();
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'event_is_frozen'";
    let guard: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    db.execute_batch("DROP TRIGGER event_is_frozen").unwrap();
    let sql = "UPDATE event SET payload = replace(payload, '\"verdict\":\"clamped\"', \
               '\"verdict\":\"denied\"') WHERE type = 'intent'";
    assert!(db.execute(sql, []).unwrap() > 0);
    db.execute_batch(&guard).unwrap();
    drop(db);
    store.run(&["explain", &planned.acted]).ended(2, &["does not match its digest", "verify"]);
    store.run(&["verify"]).ended(1, &[]);
}

#[test]
fn an_action_without_an_intent_is_explained_as_before() {
    let (store, planned) = lived();
    let log = store.run(&["log", "--json"]).fine().out;
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let first = first["event_ref"].as_str().unwrap();
    let out = store.run(&["explain", first]).fine().out;
    assert!(out.contains("  planned no: it names no intent\n"), "{out}");
    assert!(!out.contains("\nAction\n"), "{out}");
    assert_eq!(action(&store, first)["attempts"][0]["standing"], "unplanned");
    let pass = log.lines().find(|line| line.contains("\"type\":\"consolidation_run\"")).unwrap();
    let pass: Value = serde_json::from_str(pass).unwrap();
    let json = store.run(&["explain", pass["event_ref"].as_str().unwrap(), "--json"]).fine();
    assert_eq!(json.members(), ["event", "facts", "forgotten"]);
    // Forgetting an intent leaves the action.
    store.run(&["forget", &planned.intent, "--yes"]).fine();
    let out = store.run(&["explain", &planned.intent]).fine().out;
    assert!(
        out.contains("Its content was erased") && out.contains("standing   forgotten"),
        "{out}"
    );
    let out = store.run(&["explain", &planned.acted]).fine().out;
    assert!(out.contains("standing   forgotten") && !out.contains("planned no"), "{out}");
    store.run(&["forget", &planned.acted, "--yes"]).fine();
    let out = store.run(&["explain", &planned.acted]).fine().out;
    assert!(!out.contains("\nAction\n"), "{out}");
    store.run(&["verify"]).fine();
}

#[test]
fn a_fact_separates_planned_evidence_from_unplanned() {
    let plain = Store::with("facts/glass_cup.events.jsonl");
    let out = plain.run(&["explain", GLASS_CUP]).fine().out;
    assert!(!out.contains("INTENT") && !out.contains("Planned:"), "{out}");
    let (store, planned) = lived();
    let out = store.run(&["explain", GLASS_CUP]).fine().out;
    assert!(out.contains("\nPlanned: 1 of 17, through the gates; 1 against them\n"), "{out}");
    assert!(out.contains("INTENT"), "{out}");
    assert!(out.contains(&planned.intent[..11]), "{out}");
    assert!(out.contains("against the gates"), "{out}");
    let json = store.run(&["explain", GLASS_CUP, "--json"]).fine().json();
    assert_eq!(json["planned"], 1);
    let standings = json["evidence"].as_array().unwrap().iter();
    let standings: Vec<_> = standings.map(|it| it["standing"].as_str().unwrap()).collect();
    assert_eq!(standings[..3], ["against_gates", "planned", "unplanned"]);
}

#[test]
fn a_bundle_explains_like_the_store() {
    let (store, planned) = lived();
    let file = store.directory.path().join("all.ipse");
    store.run(&["export", "-o", file.to_str().unwrap()]).fine();
    let keys = store.path.with_extension("db.keys");
    let mut trust = ipse_bundle::Trust::default();
    for name in ["log.vkey", "operator.pub"] {
        trust.add(&std::fs::read_to_string(keys.join(name)).unwrap()).unwrap();
    }
    let bytes = std::fs::read(&file).unwrap();
    let opened = ipse_bundle::open(&bytes, &trust, &[], &mut |_, _| {}).unwrap();
    let opened = opened.map_err(|report| report.json()).unwrap();
    for name in [&planned.intent, &planned.confirmation, &planned.acted, &planned.against] {
        let found = opened.why(&EventRef::parse(name).unwrap(), Listing::default()).unwrap();
        let Found::Action(trail) = found else { panic!("{name} is no action") };
        let ours = store.run(&["explain", name, "--json"]).fine().out;
        assert!(ours.contains(&trail.json()), "byte for byte");
    }
}
