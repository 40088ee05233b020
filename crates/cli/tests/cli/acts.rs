//! Acts of governance: each change of a setting, key or token is an event in the log, `verify`
//! compares the tables with them, and a log takes its settings along when it moves.

use super::older::sample;
use super::store::{Store, attempt};
use serde_json::Value;

/// The acts of a log, oldest first.
fn acts(store: &Store) -> Vec<Value> {
    let log = store.run(&["log", "--json"]).fine().out;
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut acts: Vec<Value> = events.filter(|event| event["type"] == "ipse.act").collect();
    acts.sort_by_key(|event| event["seq"].as_u64());
    acts.into_iter().map(|event| event["event"]["data"].clone()).collect()
}

/// The names of the acts.
fn names(store: &Store) -> Vec<String> {
    acts(store).iter().map(|act| act["act"].as_str().unwrap().to_owned()).collect()
}

fn change(store: &Store, sql: &str) {
    let db = rusqlite::Connection::open(&store.path).unwrap();
    let triggers: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    triggers
        .iter()
        .for_each(|(name, _)| db.execute_batch(&format!("DROP TRIGGER {name}")).unwrap());
    db.execute_batch(sql).unwrap();
    triggers.iter().for_each(|(_, sql)| db.execute_batch(sql).unwrap());
}

/// The hint of `verify` works: setting the value again gives a log without findings.
#[test]
fn a_setting_that_was_changed_by_hand_is_set_again() {
    for (value, acts_then) in [("record", 0), ("off", 1)] {
        let store = Store::with("facts/glass_cup.events.jsonl");
        store.run(&["config", "retention", "180d"]).fine();
        let before = names(&store).len();
        change(
            &store,
            "INSERT INTO policy (log, signatures) VALUES (1, 2)
             ON CONFLICT (log) DO UPDATE SET signatures = 2;
             UPDATE retention SET kept = '5'",
        );
        store.run(&["verify"]).ended(1, &[]);
        store.run(&["config", "signatures", value]).fine();
        store.run(&["config", "retention", "180d"]).fine();
        assert_eq!(names(&store).len(), before + acts_then, "{value}");
        store.run(&["verify"]).fine();
    }
}

#[test]
fn every_change_is_an_act_and_the_same_value_is_none() {
    let store = Store::new();
    let identity = store.run(&["identity", "--json"]).fine().out;
    for args in [
        &["config", "signatures", "require"][..],
        &["config", "signatures", "require"],
        &["config", "signatures", "off"],
        &["config", "retention", "180d"],
        &["config", "max-ahead", "off"],
        &["key", "new", "producer", "arm", "--source", "arm"],
        &["key", "revoke", "arm", "--yes"],
        &["token", "create", "--role", "planner", "--name", "p"],
        &["token", "revoke", "p"],
        &["token", "create", "--role", "observer", "--name", "o"],
    ] {
        store.run(args).fine();
    }
    let all = [
        "signatures",
        "signatures",
        "retention",
        "max_ahead",
        "producer_registered",
        "producer_revoked",
        "token_created",
        "token_revoked",
    ];
    assert_eq!(names(&store), all);
    let first = &acts(&store)[0];
    assert_eq!(
        (&first["from"], &first["to"], &first["by"]),
        (&Value::from("record"), &Value::from("require"), &Value::from("cli"))
    );
    let ran = store.run(&["verify"]).fine();
    assert!(ran.out.contains("acts of governance on the record: 8"), "{}", ran.out);
    assert!(ran.out.contains("no findings"), "{}", ran.out);
    // Acts are no experience: nothing is new to a pass, and the identity is the same.
    assert!(store.run(&["consolidate"]).fine().out.contains("nothing new"));
    assert_eq!(store.run(&["identity", "--json"]).fine().out, identity);
}

#[test]
fn a_table_changed_by_hand_is_a_finding() {
    for (sql, words) in [
        ("INSERT INTO policy (log, signatures) VALUES (1, 0)", "setting signatures: is off"),
        ("UPDATE policy SET signatures = 1", "the acts of the log give require"),
        ("UPDATE policy SET max_ahead = NULL", "setting max-ahead: is off"),
        ("INSERT INTO retention (log, kept) VALUES (1, '1h')", "setting retention: is 1h"),
        ("UPDATE producer SET sources = NULL", "may use other sources than the act"),
        ("UPDATE producer SET revoked = 1", "is revoked, but no act of the log revoked it"),
        ("DELETE FROM producer", "keys of producers in acts that are not in this store: 1"),
        ("UPDATE token SET expires = NULL", "differs from the act that created it"),
        ("UPDATE token SET role = 'operator'", "differs from the act that created it"),
        ("UPDATE token SET revoked = 1", "is revoked, but no act of the log revoked it"),
        ("DELETE FROM token", "tokens in acts that are not in this store"),
    ] {
        let store = Store::new();
        if !sql.starts_with("INSERT INTO policy") {
            store.run(&["config", "signatures", "require"]).fine();
        }
        store.run(&["key", "new", "producer", "arm", "--source", "arm"]).fine();
        store.run(&["token", "create", "--role", "planner"]).fine();
        change(&store, sql);
        let ran = store.run(&["verify"]);
        assert!(ran.out.contains(words), "{sql}: {}", ran.out);
        let exit = if sql.starts_with("DELETE") { 0 } else { 1 };
        assert_eq!(ran.code, exit, "{sql}: {}", ran.out);
    }
}

/// The keys of a store, for `--trust`.
fn trust(store: &Store) -> [String; 2] {
    let keys = store.path.with_extension("db.keys");
    ["log.vkey", "operator.pub"].map(|name| keys.join(name).to_str().unwrap().to_owned())
}

/// A log that requires signatures still requires them after it moved, and its keys have the same
/// sources and revocations. The import appends no event.
#[test]
fn a_log_takes_its_settings_and_keys_along() {
    let store = Store::new();
    for args in [
        &["config", "signatures", "require"][..],
        &["config", "retention", "90d"],
        &["config", "max-ahead", "2d"],
        &["key", "new", "producer", "arm", "--source", "arm"],
        &["key", "new", "producer", "old", "--any-source"],
        &["key", "revoke", "old", "--yes"],
        &["key", "new", "producer", "old", "--source", "old"],
        &["token", "create", "--role", "planner"],
    ] {
        store.run(args).fine();
    }
    let bundle = store.directory.path().join("a.ipse");
    let bundle = bundle.to_str().unwrap();
    store.run(&["export", "-o", bundle]).fine();
    let [log, operator] = trust(&store);
    let import = ["import-bundle", bundle, "--json", "--trust", &log, &operator];
    let other = Store::new();
    let ran = other.run(&import).ended(0, &["as the acts of the log give them", "tk_"]);
    assert_eq!(ran.json()["settings_moved"], true);
    assert_eq!(ran.json()["tokens_left_out"].as_array().unwrap().len(), 1);
    let positions = |store: &Store| store.run(&["log", "--json"]).fine().out.lines().count();
    assert_eq!(positions(&other), positions(&store), "an import appends no event");
    for command in [&["config"][..], &["key", "list"]] {
        let keys = |text: String| -> Vec<String> {
            let rows =
                text.lines().filter(|row| !row.contains(" log ") && !row.contains("operator"));
            let mut rows: Vec<String> = rows.map(str::to_owned).collect();
            rows.sort();
            rows
        };
        let [here, there] = [&store, &other].map(|store| keys(store.run(command).fine().out));
        assert_eq!(here, there);
    }
    let ran = other.run(&["verify"]).fine();
    assert!(ran.out.contains("tokens do not move with a log): 1"), "{}", ran.out);
    other.run(&["record", "--skill", "grasp", "--success"]).ended(1, &["unsigned"]);
    assert_eq!(positions(&other), positions(&store), "nothing was owed");
    // Before tokens and keys only.
    for first in [&["token", "create", "--role", "planner"][..], &["config", "retention", "1d"]] {
        let other = Store::new();
        other.run(first).fine();
        other.run(&import).ended(2, &["right after a plain `init`, before tokens and keys"]);
    }
    let flag = [&import[..], &["--signatures", "off"]].concat();
    Store::new().run(&flag).ended(2, &["the acts of this log set signatures to require"]);
}

/// A store of an older version gets one baseline per log that has events, from its first write on.
#[test]
fn an_older_store_gets_one_baseline() {
    for name in ["schema_5", "schema_8", "schema_9", "schema_10"] {
        let (store, _) = sample(name);
        store.run(&["migrate"]).fine();
        let db = rusqlite::Connection::open(&store.path).unwrap();
        let sql = "SELECT identity_hash FROM manifest WHERE log = 1";
        let ours: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
        drop(db);
        let run = |args: &[&str]| store.run(&[args, &["--identity", &ours]].concat());
        let count = || {
            let log = run(&["log", "--json"]).fine().out;
            log.lines().filter(|line| line.contains("\"act\":\"baseline\"")).count()
        };
        let ran = run(&["verify"]).fine();
        assert!(ran.out.contains("the next command that writes records them"), "{}", ran.out);
        assert_eq!(count(), 0, "{name}: migrating appends nothing");
        run(&["config", "retention", "77d"]).fine();
        run(&["config", "retention", "78d"]).fine();
        run(&["import", &store.write("a.jsonl", attempt("1", true))]);
        assert_eq!(count(), 1, "{name}");
        let ran = run(&["verify"]).fine();
        assert!(ran.out.contains("no findings"), "{name}: {}", ran.out);
    }
}

/// A new key of the store is an act in the log, signed by the key that it replaces.
#[test]
fn a_new_key_of_the_store_is_an_act_that_the_old_key_signed() {
    let store = Store::new();
    store.import(attempt("1", true)).fine();
    for role in ["operator", "log"] {
        store.run(&["key", "revoke", role, "--yes"]).fine();
        store.run(&["key", "new", role]).fine();
    }
    let all = acts(&store);
    let roles: Vec<_> = all.iter().map(|act| (act["act"].as_str(), act["role"].as_str())).collect();
    let changed = Some("key_changed");
    assert_eq!(roles, [(changed, Some("operator")), (changed, Some("log"))]);
    for act in &all {
        assert!(act["signature"].as_str().unwrap().contains("payload"), "{act}");
        assert_ne!(act["old_key_id"], act["new_key_id"]);
    }
    assert!(store.run(&["verify"]).fine().out.contains("no findings"));
}

/// Erasing forgotten bytes is an act, after the pass of the forgetting.
#[test]
fn erased_bytes_are_an_act() {
    let store = Store::new();
    store.import(attempt("1", true)).fine();
    let log = store.run(&["log", "--json"]).fine().out;
    let line = log.lines().find(|line| line.contains("execution_result")).unwrap();
    let first: Value = serde_json::from_str(line).unwrap();
    let name = first["event_ref"].as_str().unwrap().to_owned();
    store.run(&["forget", &name]).fine();
    // Erasing is the last write to the file, so the next append records it.
    assert_eq!(names(&store), [""; 0]);
    store.import(attempt("2", true)).fine();
    store.import(attempt("3", true)).fine();
    assert_eq!(names(&store), ["erased"]);
    assert!(store.run(&["verify"]).fine().out.contains("no findings"));
}
