//! The retention of an identity: set, shown and applied.

use crate::forget::{FIRST, OTHER, SECOND};
use crate::store::{Store, vector};

#[test]
fn a_retention_is_set_kept_and_applied() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    assert_eq!(
        store.run(&["config"]).fine().out,
        "retention   off\nsignatures  record\nmax-ahead   1d\n"
    );
    let json = store.run(&["config", "--json"]).fine().json();
    let kept = json["retention"].as_object().unwrap();
    assert!(kept.len() == 1 && kept.values().all(serde_json::Value::is_null), "{json}");
    for bad in ["soon", "0d", "180", "36501d", ""] {
        store.run(&["config", "retention", bad]).ended(2, &["is not a retention"]);
    }
    store.run(&["config", "colour"]).ended(2, &["unknown setting `colour`", "retention"]);
    store.run(&["prune", "--retention"]).ended(2, &["ipse --store", "config retention 180d"]);
    store.run(&["config", "retention", "36500d"]).ended(0, &["prune --retention"]);
    assert_eq!(store.run(&["config", "retention"]).fine().out, "retention   36500d\n");
    let ran = store.run(&["prune", "--retention", "--json"]).fine();
    assert_eq!(ran.json()["forgotten"], 0);
    let attempt = ["record", "--skill", "s", "--success"];
    store.run(&attempt).fine();
    store.run(&["config", "retention", "1h"]).fine();
    assert_eq!(store.run(&["prune", "--retention", "--json"]).fine().json()["forgotten"], 15);
    assert_eq!(store.run(&["config", "retention", "off"]).fine().out, "retention   off\n");
    store.run(&["prune", "--retention"]).ended(2, &["no retention is set"]);
}

/// Each identity has its own retention; `prune --retention` applies to all that have one, unless
/// one is named.
#[test]
fn each_identity_has_its_own_retention() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let other = store.write("other.json", OTHER);
    store.run(&["init", "--manifest", &other]).fine();
    let events = vector("facts/glass_cup.events.jsonl");
    store.run(&["--identity", SECOND, "import", events.to_str().unwrap()]).fine();
    store.run(&["config", "retention", "1h"]).ended(2, &["--identity"]);
    store.run(&["--identity", SECOND, "config", "retention", "1h"]).fine();
    let seen = store.run(&["prune", "--retention", "--dry-run", "--json"]).fine().out;
    assert_eq!(seen.matches("\"would_forget\":15").count(), 1, "{seen}");
    let unset = store.run(&["--identity", FIRST, "prune", "--retention"]);
    let unset = unset.ended(2, &["no retention is set", " --identity ", " config retention 180d"]);
    // The command in the error message works as printed.
    let shown = unset.err.split("such as: ipse ").nth(1).unwrap();
    let shown: Vec<_> = shown.lines().next().unwrap().split(' ').collect();
    assert_eq!(shown[..2], ["--store", store.path.to_str().unwrap()]);
    assert!(store.run(&shown[2..]).fine().out.contains("180d"));
    store.run(&["--identity", FIRST, "config", "retention", "36500d"]).fine();
    let shown = store.run(&["config", "retention"]).fine().out;
    let lines = [format!("retention   36500d  ({FIRST}"), format!("retention   1h  ({SECOND}")];
    assert!(lines.iter().all(|line| shown.contains(line.as_str())), "{shown}");
    let seen = store.run(&["prune", "--retention", "--dry-run", "--json"]).fine().out;
    assert!(seen.contains("\"would_forget\":0"), "{seen}");
    store.run(&["--identity", FIRST, "config", "retention", "1h"]).fine();
    let seen = store.run(&["prune", "--retention", "--dry-run", "--json"]).fine().out;
    assert_eq!(seen.matches("\"would_forget\":15").count(), 2, "{seen}");
    assert!(seen.contains(FIRST) && seen.contains(SECOND), "{seen}");
    let done = store.run(&["--identity", SECOND, "prune", "--retention", "--json"]).fine().json();
    assert_eq!(done["forgotten"], 15);
    let done = store.run(&["prune", "--retention", "--json"]).fine().out;
    assert!(done.contains("\"forgotten\":15") && done.contains("\"forgotten\":0"), "{done}");
    assert!(done.contains(FIRST) && done.contains(SECOND), "one line for each: {done}");
    for identity in [FIRST, SECOND] {
        assert_eq!(store.run(&["--identity", identity, "snapshot"]).fine().out, "");
        store.run(&["--identity", identity, "verify"]).fine();
    }
    store.run(&["prune", "--keep", "1"]).ended(2, &["--identity"]);
}
