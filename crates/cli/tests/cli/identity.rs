//! Manifests and identities: only a changed manifest changes an identity.

use super::store::{Store, binary, ran, vector};
use std::fs;

const HASH: &str = "1111111111111111111111111111111111111111111111111111111111111111";

fn toml(changes: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for field in ipse_manifest::FIELDS {
        let default = match field {
            "commissioned_at" => "\"2026-05-01T00:00:00Z\"".to_string(),
            hash if hash.ends_with("_hash") => format!("\"{HASH}\""),
            name => format!("\"my {name}\""),
        };
        let value = changes.iter().find(|(name, _)| *name == field);
        let value = value.map_or(default, |(_, value)| value.to_string());
        if !value.is_empty() {
            text.push_str(&format!("{field} = {value}\n"));
        }
    }
    let known = |name: &str| ipse_manifest::FIELDS.contains(&name);
    for (name, value) in changes.iter().filter(|(name, _)| !known(name)) {
        text.push_str(&format!("{name} = {value}\n"));
    }
    text
}

fn init(store: &Store, manifest: &str) -> super::store::CommandResult {
    let file = store.write("agent.toml", manifest);
    store.run(&["init", "--manifest", &file])
}

#[test]
fn the_template_can_be_registered_as_it_stands() {
    let store = Store::nothing();
    let template = ran(binary().args(["manifest", "new"])).fine().out;
    let json = ran(binary().args(["manifest", "new", "--json"])).fine().out;
    init(&store, &json).fine();
    assert!(template.lines().filter(|line| line.starts_with('#')).count() > 8, "it is commented");
    init(&store, &template).fine();
}

#[test]
fn canonical_bytes_hash_to_the_identity() {
    let store = Store::new();
    let bytes = store.run(&["identity", "--canonical"]).fine().out;
    let golden = std::fs::read_to_string(vector("manifest/golden.canonical.json")).unwrap();
    assert_eq!(bytes, golden);
    let script = format!(
        "'{}' --store '{}' identity --canonical | sha256sum",
        env!("CARGO_BIN_EXE_ipse"),
        store.path.display()
    );
    let sum = ran(assert_cmd::Command::new("sh").args(["-c", &script])).fine().out;
    let identity = std::fs::read_to_string(vector("manifest/golden.identity.txt")).unwrap();
    assert_eq!(sum.split_whitespace().next(), Some(identity.trim()));
}

#[test]
fn toml_and_json_of_the_same_fields_are_one_identity() {
    let store = Store::nothing();
    let golden = std::fs::read_to_string(vector("manifest/golden.canonical.json")).unwrap();
    let json = store.write("agent.json", format!(" {}\n", golden.replace(',', ",\n  ")));
    let from_json = store.run(&["init", "--manifest", &json]).fine().out;
    let golden = vector("manifest/golden.toml");
    let from_toml = store.run(&["init", "--manifest", golden.to_str().unwrap()]).fine().out;
    assert_eq!(from_json, from_toml);
}

#[test]
fn a_named_file_is_hashed_and_its_bytes_move_the_identity() {
    let store = Store::nothing();
    for (name, field) in [
        ("policy", "policy_hash"),
        ("ecm_registry", "ecm_registry_hash"),
        ("temperament", "temperament_hash"),
    ] {
        store.write("named.toml", "first");
        let manifest = toml(&[(field, ""), (name, "\"named.toml\"")]);
        let first = init(&store, &manifest).fine().out;
        let hash = ipse_core::hex::encode(&ipse_core::sha256(&[b"first"]));
        let given = init(&store, &toml(&[(field, &format!("\"{hash}\""))])).fine().out;
        assert_eq!(first, given, "a file is its hash");
        store.write("named.toml", "second");
        assert_ne!(init(&store, &manifest).fine().out, first);
        let both = toml(&[(name, "\"named.toml\"")]);
        init(&store, &both).ended(2, &[name, field, "twice"]);
        let missing = toml(&[(field, ""), (name, "\"nowhere.toml\"")]);
        init(&store, &missing).ended(2, &[name, "nowhere.toml"]);
    }
}

#[test]
fn bad_manifests_name_the_field_and_leave_no_store() {
    let store = Store::nothing();
    for field in ipse_manifest::FIELDS {
        init(&store, &toml(&[(field, "")])).ended(2, &[field, "missing"]);
        init(&store, &toml(&[(field, "\"\"")])).ended(2, &[field, "empty"]);
        init(&store, &toml(&[(field, "7")])).ended(2, &[field, "quoted"]);
    }
    let unquoted = toml(&[("commissioned_at", "2026-05-01T00:00:00Z")]);
    init(&store, &unquoted).ended(2, &["commissioned_at", "quoted"]);
    init(&store, &toml(&[("colour", "\"red\"")])).ended(2, &["colour", "not a manifest field"]);
    init(&store, &toml(&[("policy_hash", "\"ABC\"")])).ended(2, &["policy_hash", "64"]);
    init(&store, "not = [toml").ended(2, &["TOML"]);
    init(&store, "{\"agent_id\":1,\"agent_id\":2}").ended(2, &["JSON"]);
    store.run(&["init", "--manifest", "nowhere.toml"]).ended(2, &["nowhere.toml"]);
    let directory = store.directory.path().to_str().unwrap();
    store.run(&["init", "--manifest", directory]).ended(2, &["could not read"]);
    assert!(!store.path.exists());
    let manifest = vector("manifest/golden.toml");
    let nowhere = store.directory.path().join("missing/ipse.db");
    let args = ["--store", nowhere.to_str().unwrap(), "init", "--manifest"];
    ran(binary().args(args).arg(manifest)).ended(2, &["no directory"]);
}

#[test]
fn an_empty_file_is_no_store_yet() {
    let store = Store::nothing();
    std::fs::write(&store.path, "").unwrap();
    store.run(&["facts"]).ended(2, &["no store at", "init --manifest"]);
    let manifest = vector("manifest/golden.toml");
    store.run(&["init", "--manifest", manifest.to_str().unwrap()]).fine();
}

#[test]
fn the_identity_is_byte_equal_across_everything() {
    let store = Store::new();
    let before = store.run(&["identity", "--canonical"]).fine().out;
    let events = vector("facts/mixed_random.events.jsonl");
    for args in [
        vec!["import", events.to_str().unwrap()],
        vec!["consolidate"],
        vec!["record", "--zone", "z", "--failed"],
        vec!["rebuild"],
        vec!["prune", "--keep", "50"],
        vec!["config", "retention", "1h"],
        vec!["prune", "--retention"],
        vec!["import", events.to_str().unwrap()],
    ] {
        store.run(&args);
        assert_eq!(store.run(&["identity", "--canonical"]).fine().out, before);
    }
    let ran = store.run(&["identity", "--json"]).fine();
    assert_eq!(
        ran.members(),
        ["events", "forgotten", "identity_hash", "manifest", "passes", "unchanged"]
    );
    let json = ran.json();
    assert_eq!((&json["unchanged"], &json["passes"]), (&true.into(), &4.into()));
    assert_eq!(json["manifest"]["agent_id"], "ward-robot-01");
    assert!(store.run(&["identity"]).fine().out.contains("unchanged"));
}

#[test]
fn a_manifest_file_can_be_compared_without_changing_anything() {
    let store = Store::new();
    let golden = vector("manifest/golden.toml");
    store.run(&["identity", "--manifest", golden.to_str().unwrap()]).fine();
    let other = store.write("other.toml", toml(&[]));
    let ran = store.run(&["identity", "--manifest", &other, "--json"]).ended(1, &[]);
    assert_eq!(ran.json()["same_as_file"], false);
    store.run(&["identity"]).fine();
}

/// The last line is the verdict, and no line contradicts it.
#[test]
fn a_manifest_file_that_differs_is_named_field_by_field() {
    let store = Store::new();
    let golden = fs::read_to_string(vector("manifest/golden.toml")).unwrap();
    let changed = golden.replace(&"1".repeat(64), &"a".repeat(64)).replace("rev-c", "rev-d");
    let changed = store.write("changed.toml", changed);
    let out = store.run(&["identity", "--manifest", &changed]).ended(1, &[]).out;
    assert!(
        out.contains("policy_hash differs\n  store: 1111") && out.contains("file:  aaaa"),
        "{out}"
    );
    assert!(out.contains("embodiment differs\n  store: two-arm-mobile/rev-c\n"), "{out}");
    assert!(!out.contains("unchanged") && !out.contains("operator differs"), "{out}");
    let json = store.run(&["identity", "--manifest", &changed, "--json"]).ended(1, &[]).json();
    assert_eq!(json["differs"], serde_json::json!(["embodiment", "policy_hash"]));
    let verdict = out.trim_end().rsplit_once("another agent").unwrap().1;
    assert!(verdict.ends_with(json["file_identity"].as_str().unwrap()), "{out}");
    let same = vector("manifest/golden.toml");
    let out = store.run(&["identity", "--manifest", same.to_str().unwrap()]).fine().out;
    assert!(out.ends_with("the manifest file gives the same identity\n"), "{out}");
}

/// In a store of several agents, the manifest file selects the agent.
#[test]
fn a_manifest_file_is_compared_with_its_own_agent() {
    let store = Store::new();
    let other = store.write("other.toml", toml(&[]));
    init(&store, &toml(&[])).fine();
    let golden = vector("manifest/golden.toml");
    for file in [golden.to_str().unwrap(), &other] {
        let out = store.run(&["identity", "--manifest", file]).fine().out;
        assert!(out.ends_with("the manifest file gives the same identity\n"), "{out}");
    }
    let third = store.write("third.toml", toml(&[("agent_id", "\"third\"")]));
    store.run(&["identity", "--manifest", &third]).ended(2, &["several identities"]);
}

#[test]
fn manifests_that_are_no_ordinary_files_are_refused_at_once() {
    let store = Store::nothing();
    store.run(&["init", "--manifest", "/dev/zero"]).ended(2, &["not an ordinary file"]);
    let large = store.write("large.toml", vec![b'#'; (1 << 20) + 1]);
    store.run(&["init", "--manifest", &large]).ended(2, &["larger than"]);
    let device = toml(&[("policy_hash", ""), ("policy", "\"/dev/zero\"")]);
    init(&store, &device).ended(2, &["policy", "not an ordinary file"]);
    let ran = init(&store, &toml(&[("\"\\u001b[31mred\"", "\"x\"")])).ended(2, &["red"]);
    assert!(!ran.err.contains('\u{1b}'), "control characters are not printed");
    assert!(!store.path.exists());
}

#[test]
fn names_that_sqlite_would_take_for_its_own_are_file_names() {
    let store = Store::nothing();
    let golden = vector("manifest/golden.toml");
    for name in [":memory:", "file:x.db", "file:x.db?mode=memory", "a b?c#d%20e.db"] {
        let mut command = binary();
        command.current_dir(store.directory.path()).args(["--store", name, "init", "--manifest"]);
        ran(command.arg(&golden)).fine();
        assert!(store.directory.path().join(name).is_file(), "{name}");
    }
}

#[test]
fn a_store_made_by_many_at_once_is_made_once() {
    for _ in 0..5 {
        let store = Store::nothing();
        let golden = vector("manifest/golden.toml");
        let args = ["init", "--manifest", golden.to_str().unwrap()];
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| store.run(&args).fine());
            }
        });
        store.run(&["identity"]).fine();
    }
}

#[test]
fn a_manifest_edited_in_the_file_is_noticed() {
    let store = Store::new();
    let db = rusqlite::Connection::open(&store.path).unwrap();
    db.execute_batch(
        "DROP TRIGGER manifest_is_frozen;
         UPDATE manifest SET canonical = replace(canonical, 'ward-robot-01', 'ward-robot-02')",
    )
    .unwrap();
    drop(db);
    let ran = store.run(&["identity", "--json"]).ended(1, &[]);
    assert_eq!(ran.json()["unchanged"], false);
    assert!(store.run(&["identity"]).ended(1, &[]).out.contains("CHANGED"));
}

#[test]
fn a_changed_manifest_is_another_identity_with_its_own_log() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let first = store.run(&["identity", "--json"]).fine().json();
    let second = init(&store, &toml(&[])).ended(0, &["2 identities, each with its own log"]);
    let (first, second) =
        (first["identity_hash"].as_str().unwrap().to_string(), second.out.trim().to_string());
    store.run(&["facts"]).ended(2, &["--identity PREFIX", &first, &second]);
    store.run(&["--identity", &second[..8], "facts"]).ended(1, &["no facts yet"]);
    store.run(&["--identity", &first[..8], "facts"]).fine();
    store.run(&["--identity", "ffffffff", "facts"]).ended(2, &["no identity here begins with"]);
    store.run(&["--identity", "f", "facts"]).ended(2, &["at least 4"]);
}

/// An edited manifest is another identity: it is announced, and is removable while empty.
#[test]
fn an_identity_that_was_registered_by_mistake_is_removed() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let golden = std::fs::read_to_string(vector("manifest/golden.toml")).unwrap();
    let other = store.write("other.toml", golden.replacen("agent_id = \"", "agent_id = \"x", 1));
    let warned = store.run(&["init", "--manifest", &other]).fine();
    let words = ["warning: this store holds identity b113b1a4", "--identity", "identity remove"];
    assert!(words.iter().all(|word| warned.err.contains(word)), "{}", warned.err);
    let identity = warned.out.trim().to_owned();
    store.run(&["facts"]).ended(2, &["several identities"]);
    store.run(&["token", "create", "--role", "planner", "--identity", &identity]).fine();
    store.run(&["config", "retention", "48h", "--identity", &identity]).fine();
    store.run(&["identity", "remove", "b113"]).ended(2, &["is kept", "16 events"]);
    let removed = store.run(&["identity", "remove", &identity[..6], "--json"]).fine().json();
    assert_eq!(removed["identity_hash"], identity.as_str());
    store.run(&["facts"]).fine();
    store.run(&["verify"]).fine();
    // Registered again, it has none of its settings.
    store.run(&["init", "--manifest", &other]).fine();
    let tokens = store.run(&["token", "list", "--json", "--identity", &identity]);
    assert_eq!(tokens.out.trim(), "[]");
    store.run(&["identity", "remove", &identity]).fine();
    // A log that begins with rules of its own has an event.
    store.run(&["init", "--manifest", &other, "--rules", "v2"]).fine();
    store.run(&["identity", "remove", &identity]).ended(2, &["1 event", "rule set"]);
}
