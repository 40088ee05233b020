//! Signed evidence on the command line: tree heads, proofs, bundles, and the message if a head
//! cannot be signed.

use super::store::{CommandResult, Store, attempt, ran};
use ipse_ledger::{NoteKey, ProofFile, TreeHead};
use serde_json::Value;
use std::path::PathBuf;

fn cup() -> Store {
    Store::with("facts/glass_cup.events.jsonl")
}

fn keys(store: &Store) -> PathBuf {
    store.path.with_extension("db.keys")
}

fn log_key(store: &Store) -> NoteKey {
    let text = std::fs::read_to_string(keys(store).join("log.vkey")).unwrap();
    NoteKey::parse(text.trim()).unwrap()
}

fn identity(store: &Store) -> String {
    store.run(&["identity", "--json"]).fine().json()["identity_hash"].as_str().unwrap().to_string()
}

fn events(store: &Store) -> Vec<Value> {
    let log = store.run(&["log", "--json"]).fine().out;
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_tree_head_follows_a_pass() {
    let store = Store::new();
    store.run(&["tree-head"]).ended(1, &["no tree head", "--sign"]);
    store.import(attempt("1", true)).fine();
    let head = store.run(&["tree-head", "--json"]).fine();
    assert_eq!(head.members(), ["identity_hash", "note", "root_sha256", "tree_size"]);
    assert_eq!(head.json()["tree_size"], 2);
    let note = store.run(&["tree-head"]).fine().out;
    assert_eq!(head.json()["note"], note);
    let kept = keys(&store).join("heads").join(format!("{}.note", identity(&store)));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), note);
    store.run(&["record", "--zone", "z", "--failed", "--no-consolidate"]).fine();
    store.run(&["tree-head"]).ended(0, &["1 newer event", "--sign"]);
    store.run(&["tree-head", "--sign"]).fine();
    assert_eq!(store.run(&["tree-head", "--json"]).fine().json()["tree_size"], 3);
    store.run(&["verify"]).fine();
}

#[test]
fn without_a_key_passes_go_on_and_it_is_said() {
    let store = cup();
    let away = store.directory.path().join("away");
    std::fs::rename(keys(&store).join("log.key"), &away).unwrap();
    for args in [
        vec!["record", "--zone", "z", "--failed"],
        vec!["consolidate"],
        vec!["prune", "--keep", "10"],
    ] {
        store.run(&args).ended(0, &["tree heads are not signed", "log.key"]);
    }
    store.import(attempt("7", true)).ended(0, &["tree heads are not signed"]);
    store.run(&["tree-head", "--sign"]).ended(2, &["no key", "log.key", "hint"]);
    assert!(store.run(&["verify"]).fine().out.contains("past the signed tree head"));
    // The last head still proves the entries that it covers.
    let first = events(&store)[0]["event_ref"].as_str().unwrap().to_string();
    store.run(&["explain", &first, "--proof"]).fine();
    std::fs::rename(away, keys(&store).join("log.key")).unwrap();
    store.run(&["tree-head", "--sign"]).fine();
    assert!(!store.run(&["verify"]).fine().out.contains("past the signed"));
}

/// Replaces the store with a copy from before the last import.
fn rolled_back() -> (Store, String) {
    let store = cup();
    let copy = store.directory.path().join("copy.db");
    let sql = format!("VACUUM INTO '{}'", copy.display());
    rusqlite::Connection::open(&store.path).unwrap().execute_batch(&sql).unwrap();
    store.import(attempt("1", true)).fine();
    let signed = store.run(&["tree-head", "--sign"]).fine().out;
    for suffix in ["", "-wal", "-shm"] {
        let file = store.path.with_extension(format!("db{suffix}"));
        let _ = std::fs::remove_file(file);
    }
    std::fs::copy(copy, &store.path).unwrap();
    (store, signed)
}

/// No head is due within a second of the last one; the log is compared anyway.
#[test]
fn nothing_is_appended_to_an_older_copy() {
    let (store, _) = rolled_back();
    let first = events(&store)[0]["event_ref"].as_str().unwrap().to_string();
    let key = keys(&store).join("log.key");
    for with_key in [true, false] {
        if !with_key {
            std::fs::rename(&key, store.directory.path().join("away")).unwrap();
        }
        let words = ["18 entries was signed, and the store has 16", "key revoke log"];
        store.run(&["record", "--zone", "z", "--failed"]).ended(2, &words);
        store.run(&["record", "--zone", "z", "--failed", "--no-consolidate"]).ended(2, &words);
        store.import(attempt("2", false)).ended(2, &words);
        store.run(&["consolidate"]).ended(2, &words);
        store.run(&["forget", &first, "--yes"]).ended(2, &words);
        store.run(&["prune", "--keep", "3", "--yes"]).ended(2, &words);
    }
    assert_eq!(events(&store).len(), 16);
    assert!(store.run(&["verify"]).out.contains("an older copy"));
    // Without any keys there is nothing to compare with.
    let other = ["--key-dir", "nowhere", "record", "--zone", "z", "--failed"];
    store.run(&other).fine();
    store.run(&other).fine();
    let words = ["the first 18 entries are not those that were signed", "key revoke log"];
    store.run(&["record", "--zone", "z", "--failed"]).ended(2, &words);
}

#[test]
fn a_bundle_that_is_older_than_the_last_head_is_not_imported() {
    let store = cup();
    let (older, _) = export(&store, "older.ipse", &[]);
    store.import(attempt("1", true)).fine();
    let (newer, _) = export(&store, "newer.ipse", &[]);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(store.path.with_extension(format!("db{suffix}")));
    }
    let manifest = super::store::vector("manifest/golden.toml");
    store.run(&["init", "--manifest", manifest.to_str().unwrap()]).fine();
    import_bundle(&store, &store, &older).ended(2, &["18 entries was signed", "key revoke log"]);
    store.run(&["log"]).ended(1, &["the log is empty"]);
    import_bundle(&store, &store, &newer).fine();
    store.run(&["verify"]).fine();
}

#[test]
fn an_older_copy_signs_nothing_until_it_has_a_new_key() {
    let (store, signed) = rolled_back();
    store.run(&["verify"]).ended(1, &[]);
    assert!(store.run(&["verify"]).out.contains("an older copy"));
    store.run(&["tree-head", "--sign"]).ended(2, &["18 entries", "restore the newer store"]);
    store.run(&["key", "revoke", "log", "--yes"]).fine();
    store.run(&["key", "new", "log"]).fine();
    store.run(&["record", "--zone", "z", "--failed"]).fine();
    store.import(attempt("2", false)).fine();
    let again = store.run(&["tree-head", "--sign"]).fine().out;
    assert_ne!(again.lines().last(), signed.lines().last());
    store.run(&["verify"]).fine();
}

/// Also for forgotten events: the entry stays, and so does its proof.
#[test]
fn every_event_has_a_proof_that_needs_no_store() {
    let store = Store::new();
    let lines: String = (0..300).map(|n| attempt(&n.to_string(), n % 3 > 0)).collect();
    store.import(lines).fine();
    let all = events(&store);
    let gone = all[7]["event_ref"].as_str().unwrap();
    store.run(&["forget", gone]).fine();
    store.run(&["tree-head", "--sign"]).fine();
    let origin = format!("ipse/{}", identity(&store));
    let key = log_key(&store);
    for event in all.iter().step_by(43).chain([&all[7], &all[300]]) {
        let name = event["event_ref"].as_str().unwrap();
        let ran = store.run(&["explain", name, "--proof", "--json"]).fine();
        assert_eq!(ran.members(), ["entry", "index", "proof"]);
        let (json, keys) = (ran.json(), [key.clone()]);
        let entry = json["entry"].as_str().unwrap();
        let file = ProofFile::parse(json["proof"].as_str().unwrap()).unwrap();
        let head: TreeHead = file.verify(entry.as_bytes(), &origin, &keys).unwrap();
        assert_eq!(
            (head.size, json["index"].as_u64()),
            (303, event["seq"].as_u64().map(|n| n - 1))
        );
        let entry: Value = serde_json::from_str(entry).unwrap();
        for member in ["digest", "event_ref", "seq", "time", "type"] {
            assert_eq!(entry[member], event[member]);
        }
        assert_eq!(store.run(&["explain", name, "--proof"]).fine().out, json["proof"]);
    }
    store.run(&["explain", "grasp + cup + ward", "--proof"]).ended(2, &["needs an event ref"]);
    let unknown = format!("ev_{}", "0".repeat(32));
    store.run(&["explain", &unknown, "--proof"]).ended(1, &["no event"]);
    store.import(attempt("late", true)).fine();
    let last = events(&store)[302]["event_ref"].as_str().unwrap().to_string();
    store.run(&["explain", &last, "--proof"]).fine();
}

/// A command does not leave a tree head to a later process, however new the last one is.
#[test]
fn a_command_signs_what_it_owes_before_it_exits() {
    let store = cup();
    for id in ["1", "2", "3"] {
        store.import(attempt(id, true)).fine();
    }
    let ran = store.run(&["verify"]).fine();
    assert!(!ran.out.contains("past the signed tree head"), "{}", ran.out);
    let record = ["record", "--skill", "grasp", "--success"];
    store.run(&record).fine();
    let first = events(&store)[0]["event_ref"].as_str().unwrap().to_string();
    store.run(&["forget", &first]).fine();
    // The act about the erased bytes comes with the next append.
    store.run(&record).fine();
    store.fed(&["import", "-", "--no-consolidate"], attempt("4", true)).fine();
    let ran = store.run(&["verify"]).fine();
    assert!(ran.out.contains("entries past the signed tree head: 1"), "{}", ran.out);
    store.run(&["consolidate"]).fine();
    let ran = store.run(&["verify"]).fine();
    let all = format!("{}{}", ran.out, ran.err);
    assert!(!all.contains("past the signed tree head") && !all.contains("no tree head"), "{all}");
}

fn export(store: &Store, name: &str, more: &[&str]) -> (PathBuf, CommandResult) {
    let file = store.directory.path().join(name);
    let args = [&["export", "-o", file.to_str().unwrap()], more].concat();
    let ran = store.run(&args);
    (file, ran)
}

fn trust(store: &Store) -> [String; 3] {
    let key = |name: &str| keys(store).join(name).to_str().unwrap().to_string();
    ["--trust".to_string(), key("log.vkey"), key("operator.pub")]
}

fn import_bundle(from: &Store, into: &Store, file: &std::path::Path) -> CommandResult {
    let mut command = into.command();
    ran(command.arg("import-bundle").arg(file).args(trust(from)))
}

#[test]
fn a_bundle_goes_out_and_comes_in_as_it_was() {
    let store = Store::with("facts/mixed_random.events.jsonl");
    let third = events(&store)[2]["event_ref"].as_str().unwrap().to_string();
    store.run(&["forget", &third]).fine();
    store.import(attempt("1", true)).fine();
    let (file, ran) = export(&store, "a.ipse", &["--json"]);
    let members = "checkpoint cosignatures events facts from identity_hash signatures to tree_size";
    assert_eq!(ran.fine().members().join(" "), members);
    let (again, _) = export(&store, "b.ipse", &[]);
    assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(again).unwrap(), "same content");
    let other = Store::new();
    import_bundle(&store, &other, &file).fine();
    assert_eq!(other.snapshot(), store.snapshot());
    assert_eq!(events(&other), events(&store));
    assert_eq!(other.run(&["passes", "--json"]).out, store.run(&["passes", "--json"]).out);
    let root =
        |store: &Store| store.run(&["tree-head", "--json"]).fine().json()["root_sha256"].clone();
    assert_eq!(root(&other), root(&store));
    other.run(&["verify"]).fine();
    other.run(&["rebuild"]).fine();
    // The log continues: later passes start from the imported facts.
    for store in [&store, &other] {
        store.import(attempt("2", false)).fine();
        store.run(&["verify"]).fine();
    }
    assert_eq!(other.snapshot(), store.snapshot());
    import_bundle(&store, &other, &file).ended(2, &["not empty"]);
}

#[test]
fn a_bundle_that_does_not_fit_changes_nothing() {
    let store = cup();
    let (file, _) = export(&store, "a.ipse", &[]);
    let other = Store::new();
    let before = std::fs::read(&other.path).unwrap();
    let without = ran(other.command().arg("import-bundle").arg(&file));
    without.ended(2, &["--trust", "other than the bundle"]);
    import_bundle(&other, &other, &file).ended(1, &["FAIL", "nothing was imported"]);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let flipped = other.write("flipped.ipse", &bytes);
    import_bundle(&store, &other, flipped.as_ref()).ended(1, &["FAIL", "nothing was imported"]);
    let (part, _) = export(&store, "part.ipse", &["--from", "3", "--to", "9"]);
    import_bundle(&store, &other, &part).ended(2, &["range"]);
    import_bundle(&store, &other, "nowhere.ipse".as_ref()).ended(2, &["nowhere.ipse"]);
    import_bundle(&store, &other, other.directory.path()).ended(2, &["ordinary file"]);
    assert_eq!(std::fs::read(&other.path).unwrap(), before);
    let nothing = Store::nothing();
    import_bundle(&store, &nothing, &file).ended(2, &["init --manifest"]);
}

#[test]
fn exports_name_their_range_and_their_keys() {
    let store = cup();
    let (_, ran) = export(&store, "a.ipse", &["--to", "17"]);
    ran.ended(2, &["beyond the signed tree head, which covers 16"]);
    let (_, ran) = export(&store, "a.ipse", &["--from", "9", "--to", "8"]);
    ran.ended(2, &["from 9 to 8"]);
    let (file, ran) = export(&store, "a.ipse", &["--from", "9"]);
    assert!(ran.fine().out.contains("no facts"));
    assert!(file.is_file());
    let (_, ran) = export(&store, "missing/a.ipse", &[]);
    ran.ended(2, &["missing"]);
    std::fs::rename(keys(&store).join("operator.key"), store.directory.path().join("o")).unwrap();
    let (file, ran) = export(&store, "b.ipse", &[]);
    ran.ended(2, &["operator.key", "hint"]);
    assert!(!file.exists());
    let empty = Store::new();
    let (file, ran) = export(&empty, "e.ipse", &[]);
    assert!(ran.fine().out.contains("0 events"));
    let other = Store::new();
    import_bundle(&empty, &other, &file).fine();
}

/// An export never replaces a store, a key or anything that is not a file.
#[test]
fn exports_replace_neither_stores_nor_keys_nor_devices() {
    let store = cup();
    let bundle = store.write("old.ipse", "old");
    for (path, words) in [
        (store.path.clone(), "it is the store"),
        (keys(&store).join("log.key"), "in the key directory"),
        (keys(&store).join("new.ipse"), "in the key directory"),
        (store.directory.path().to_path_buf(), "directory"),
    ] {
        let args = ["export", "-o", path.to_str().unwrap()];
        store.run(&args).ended(2, &[words]);
    }
    let link = store.directory.path().join("link.ipse");
    std::os::unix::fs::symlink(&store.path, &link).unwrap();
    store.run(&["export", "-o", link.to_str().unwrap()]).ended(2, &["it is the store"]);
    store.run(&["export", "-o", "/dev/null"]).fine();
    assert!(!std::path::Path::new("/dev/null").metadata().unwrap().is_file());
    store.run(&["export", "-o", &bundle, "--force"]).fine();
    assert!(verified(&store, bundle.as_ref()).passed(), "what was there before is replaced");
    store.run(&["verify"]).fine();
}

#[test]
fn an_export_never_covers_less_than_it_says() {
    let store = cup();
    std::fs::rename(keys(&store).join("log.key"), store.directory.path().join("k")).unwrap();
    let (file, ran) = export(&store, "a.ipse", &[]);
    ran.ended(0, &["not signed"]);
    assert!(verified(&store, &file).passed(), "the head covers everything");
    store.import(attempt("1", true)).fine();
    let (_, ran) = export(&store, "b.ipse", &[]);
    ran.ended(2, &["covers 16 of 18 events", "--to 16"]);
    let (file, ran) = export(&store, "b.ipse", &["--to", "16"]);
    ran.ended(0, &[]);
    assert!(verified(&store, &file).passed());
    let first = events(&store)[0]["event_ref"].as_str().unwrap().to_string();
    store.run(&["forget", &first]).fine();
    let (_, ran) = export(&store, "c.ipse", &["--to", "16"]);
    ran.ended(2, &["forgotten since"]);
    // A head of a key that is no longer the log's.
    std::fs::rename(store.directory.path().join("k"), keys(&store).join("log.key")).unwrap();
    store.run(&["key", "revoke", "log", "--yes"]).fine();
    let (_, ran) = export(&store, "d.ipse", &["--to", "16"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    store.run(&["key", "new", "log"]).fine();
    let (file, ran) = export(&store, "e.ipse", &[]);
    ran.fine();
    assert!(verified(&store, &file).passed());
}

/// A head counts only under the published key.
#[test]
fn a_head_of_a_revoked_key_is_not_exported() {
    let store = cup();
    store.run(&["key", "revoke", "log", "--yes"]).fine();
    let (file, ran) = export(&store, "a.ipse", &[]);
    ran.ended(2, &["not signed with the key in log.vkey"]);
    assert!(!file.exists());
    store.run(&["key", "new", "log"]).fine();
    let (file, ran) = export(&store, "a.ipse", &[]);
    ran.fine();
    assert!(verified(&store, &file).passed());
}

fn verified(store: &Store, file: &std::path::Path) -> ipse_bundle::Report {
    let mut trust = ipse_bundle::Trust::default();
    for name in ["log.vkey", "operator.pub"] {
        trust.add(&std::fs::read_to_string(keys(store).join(name)).unwrap()).unwrap();
    }
    let bytes = std::fs::read(file).unwrap();
    ipse_bundle::verify(&bytes, &trust, &[], &mut |_, _| {}).unwrap()
}

/// The auditor's program verifies every bundle: all vectors, in several passes, with forgotten
/// events, whole and in ranges.
#[test]
fn whatever_was_lived_through_verifies() {
    let directory = super::store::vector("facts");
    let mut cases = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let file = file.unwrap().path();
        if !file.to_str().unwrap().ends_with(".events.jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let store = Store::new();
        for cut in lines.chunks(lines.len().div_ceil(3)) {
            store.import(cut.join("\n"));
            let all = events(&store);
            let is_event = |event: &&Value| event["event"]["source"] != "ipse";
            let gone = all.iter().filter(is_event).nth(all.len() / 2);
            if let Some(name) = gone.and_then(|event| event["event_ref"].as_str()) {
                store.run(&["forget", name]).fine();
            }
        }
        let head = events(&store).len();
        let (half, third) = ((head / 2).max(1).to_string(), (head / 3).max(2).to_string());
        for (name, range) in [
            ("whole", vec![]),
            ("beginning", vec!["--to", &half]),
            ("end", vec!["--from", &third]),
            ("middle", vec!["--from", &third, "--to", &half]),
        ] {
            let (bundle, ran) = export(&store, name, &range);
            if name == "middle" && third.parse::<u64>().unwrap() > half.parse().unwrap() {
                continue;
            }
            ran.fine();
            let report = verified(&store, &bundle);
            assert!(report.passed(), "{} {name}: {}", file.display(), report.json());
        }
        cases += 1;
    }
    assert!(cases >= 14, "the vectors are there");
}
