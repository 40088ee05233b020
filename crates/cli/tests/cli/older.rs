//! A store of an older version is migrated by `migrate` and by the first command that writes; a
//! command that reads does not change it.

use crate::bad_input::on_a_read_only;
use crate::store::{Store, vector};
use flate2::read::GzDecoder;
use rusqlite::Connection;
use std::fs::File;
use std::io::Read;

/// The store in `vectors/store`, written by an ipse with schema 5: a pass, intents, a decision, and
/// a forgotten event.
fn schema_5() -> (Store, String) {
    sample("schema_5")
}

/// A store of `vectors/store`, and the snapshot of its facts.
pub(crate) fn sample(name: &str) -> (Store, String) {
    let store = Store::nothing();
    let mut bytes = Vec::new();
    let file = File::open(vector(&format!("store/{name}.db.gz"))).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    std::fs::write(&store.path, bytes).unwrap();
    let facts = vector(&format!("store/{name}.snapshot.jsonl"));
    (store, std::fs::read_to_string(facts).unwrap())
}

/// The first identity of a store.
fn identity(store: &Store) -> String {
    let db = Connection::open(&store.path).unwrap();
    let sql = "SELECT identity_hash FROM manifest WHERE log = 1";
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn identities(store: &Store) -> Vec<String> {
    let db = Connection::open(&store.path).unwrap();
    let mut rows = db.prepare("SELECT identity_hash FROM manifest").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn version(store: &Store) -> i64 {
    let db = Connection::open(&store.path).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn commands_that_read_leave_an_older_store_as_it_is_and_name_the_command_to_run() {
    for name in ["schema_5", "schema_6", "schema_7", "schema_8", "schema_9", "schema_10"] {
        let (store, _) = sample(name);
        let before = std::fs::read(&store.path).unwrap();
        for args in [&["facts"][..], &["verify"], &["rebuild"], &["passes"], &["log"], &["config"]]
        {
            store.run(args).ended(2, &["older than 11", "hint: ", " migrate"]);
        }
        store.run(&["prune", "--keep", "1", "--dry-run"]).ended(2, &["older than 11"]);
        assert_eq!(std::fs::read(&store.path).unwrap(), before, "{name}");
    }
}

#[test]
fn an_older_store_is_migrated_once_and_keeps_everything() {
    let samples = [
        ("schema_5", 5),
        ("schema_6", 6),
        ("schema_7", 7),
        ("schema_8", 8),
        ("schema_9", 9),
        ("schema_10", 10),
    ];
    for (name, from) in samples {
        let (store, facts) = sample(name);
        let done = store.run(&["migrate", "--json"]).fine().json();
        assert_eq!((&done["from"], &done["to"]), (&from.into(), &11.into()));
        assert_eq!(version(&store), 11);
        assert_eq!(store.run(&["migrate"]).fine().out, "the schema is up to date\n");
        assert!(store.run(&["migrate", "--json"]).fine().json()["from"].is_null());
        let ours = identity(&store);
        let ask = |command| store.run(&[command, "--identity", &ours]).fine().out;
        assert_eq!(ask("snapshot"), facts);
        ask("verify");
        ask("rebuild");
    }
    let (store, _) = sample("schema_5");
    assert_eq!(store.run(&["migrate"]).fine().out, "schema 5 -> 11\n");
    assert_eq!(store.run(&["passes", "--json"]).fine().out.matches("\"trigger\"").count(), 2);
    store.run(&["explain", "ev_5528658e9bf82aa15b94b5485b11a2ac"]).fine();
    let (store, _) = sample("schema_6");
    store.run(&["migrate"]).fine();
    store.run(&["explain", "ev_8880dbeb58dc2d23f595dbd19a8af6a0"]).fine();
    let (store, _) = sample("schema_7");
    store.run(&["migrate"]).fine();
    let ours = ["--identity", &identity(&store)];
    store.run(&[&["explain", "ev_743a99db7d81fc328633b66b8920e2c6"], &ours[..]].concat()).fine();
    let kept = store.run(&[&["config", "retention"], &ours[..]].concat()).fine().out;
    assert_eq!(kept, "retention   90d\n");
}

/// The views of a migrated store are those of a new store.
#[test]
fn the_events_of_a_migrated_store_show_source_id_and_time() {
    let (store, _) = sample("schema_7");
    store.run(&["migrate"]).fine();
    let db = Connection::open(&store.path).unwrap();
    let row = |seq: i64| {
        let sql =
            "SELECT source, id, time FROM episodic_events WHERE identity_hash = ?1 AND seq = ?2";
        db.query_row(sql, (identity(&store), seq), |row| {
            Ok([row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?])
        })
        .unwrap()
    };
    let texts = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_string));
    assert_eq!(row(1), texts([None, None, Some("2026-04-24T03:06:40.000000Z")]), "it is forgotten");
    let done = [Some("robot-7"), Some("done"), Some("2026-11-17T00:00:00.250000Z")];
    assert_eq!(row(82), texts(done));
    let east = [Some("base-2"), Some("go-0"), Some("2026-04-24T01:06:40.000000Z")];
    assert_eq!(row(83), texts(east), "sent with +02:00");
}

#[test]
fn the_first_command_that_writes_brings_an_older_store_up_to_date_and_says_so() {
    let (store, facts) = schema_5();
    let line = "note: migrated the store from schema 5 to 11\n";
    let ran = store.run(&["consolidate"]).fine();
    assert_eq!(ran.err.matches(line).count(), 1, "{}", ran.err);
    assert!(!store.run(&["consolidate"]).fine().err.contains("schema"));
    assert_eq!(version(&store), 11);
    store.run(&["verify"]).fine();
    assert_eq!(store.snapshot(), facts);
    let db = Connection::open(&store.path).unwrap();
    // A store with schema 11 and without the index is not one that this program would have made.
    db.execute_batch("DROP INDEX event_of_house").unwrap();
    let verified = store.run(&["verify"]);
    assert_eq!(verified.code, 1, "{}", verified.out);
    assert!(verified.out.contains("index event_of_house"), "{}", verified.out);

    let (store, _) = sample("schema_6");
    store.run(&["record", "--skill", "s", "--success", "--id", "1"]).fine();
    store.run(&["verify"]).fine();

    let (store, _) = sample("schema_6");
    let manifest = vector("manifest/golden.toml");
    let ran = store.run(&["init", "--manifest", manifest.to_str().unwrap()]).fine();
    assert!(ran.err.starts_with("note: migrated the store from schema 6 to 11\n"), "{}", ran.err);
}

/// No command can use such a store, so the hint names a workaround.
#[test]
fn an_older_store_that_cannot_be_written_is_copied_first() {
    let (store, _) = sample("schema_6");
    on_a_read_only(&store, |as_nobody| {
        as_nobody(&["facts"]).ended(2, &["older than 11", " migrate"]);
        for args in [&["migrate"][..], &["record", "--skill", "s", "--success"]] {
            let ran = as_nobody(args).ended(2, &["read-only", "migrate the copy"]);
            assert!(!ran.err.contains("reading commands work"), "{}", ran.err);
        }
    });
}

/// The first token of an observer migrates the store: an older ipse must not open it, because it
/// would report that token as damage. Existing tokens stay.
#[test]
fn a_store_gets_observers_by_the_schema_that_knows_them() {
    let (store, _) = sample("schema_7");
    store.run(&["token", "create", "--role", "observer"]).ended(0, &["schema 7 to 11"]);
    assert_eq!(version(&store), 11);
    for identity in identities(&store) {
        let listed = store.run(&["token", "list", "--identity", &identity, "--json"]).fine().json();
        let roles = listed.as_array().unwrap().iter().map(|token| token["role"].as_str().unwrap());
        let roles: Vec<&str> = roles.collect();
        assert!(roles.contains(&"observer"), "{roles:?}");
        store.run(&["verify", "--identity", &identity]).fine();
    }
}

/// Keys and tokens of an older store keep their rights, and its settings their values. An event
/// that is dated ahead stays; only a new one is refused.
#[test]
fn an_older_store_keeps_its_rights_and_gets_the_limit_for_dates_ahead() {
    let (store, _) = sample("schema_8");
    store.run(&["migrate"]).fine();
    let ours = identity(&store);
    let run = |args: &[&str]| store.run(&[&["--identity", &ours], args].concat());
    let settings = run(&["config"]).fine().out;
    assert_eq!(settings, "retention   90d\nsignatures  require\nmax-ahead   1d\n");
    let keys = run(&["key", "list", "--json"]).fine().json();
    let keys: Vec<_> =
        keys.as_array().unwrap().iter().map(|key| (&key["name"], &key["state"])).collect();
    assert_eq!(
        keys,
        [(&"arm-7".into(), &"registered".into()), (&"arm-6".into(), &"revoked".into())]
    );
    let listed = run(&["key", "list"]).fine().out;
    assert_eq!(listed.matches(" any ").count(), 2, "{listed}");
    let listed = run(&["token", "list"]).fine().out;
    assert!(listed.contains(" any ") && listed.contains(" arm* "), "{listed}");
    run(&["config", "signatures", "record"]).fine();
    let record = |id: &str| {
        let args = ["--id", id, "--source", "clock", "--time", "2041-01-01T00:00:00Z"];
        let event = ["--skill", "manipulation.grasp", "--target", "steel_cup", "--failed"];
        run(&[&["record", "--reason", "slip"], &event[..], &args].concat())
    };
    record("ahead").ended(0, &["duplicate at seq 21"]);
    record("another").ended(1, &["time_ahead", "nothing was stored"]);
    run(&["verify"]).fine();
}

/// The setting of a whole store becomes that of each of its identities.
#[test]
fn a_retention_of_the_store_goes_to_its_identities() {
    let (store, _) = sample("schema_6");
    let db = Connection::open(&store.path).unwrap();
    db.execute_batch("INSERT INTO setting VALUES ('retention', '90d')").unwrap();
    drop(db);
    store.run(&["migrate"]).fine();
    assert_eq!(store.run(&["config", "retention"]).fine().out, "retention   90d\n");
    store.run(&["verify"]).fine();
}

/// `vectors/bundle`: the same log as a bundle, exported by the same version.
#[test]
fn a_bundle_of_an_earlier_version_verifies_and_can_be_imported() {
    let bundle = vector("bundle/v0_1.ipse");
    let keys = ["log.vkey", "producer.vkey", "operator.pub"];
    let keys = keys.map(|name| vector(&format!("bundle/v0_1.{name}")));
    let store = Store::nothing();
    let manifest = store.path.with_file_name("manifest.json");
    let extracted = std::process::Command::new("tar")
        .args(["-xOf", bundle.to_str().unwrap(), "manifest.json"])
        .output()
        .unwrap();
    std::fs::write(&manifest, extracted.stdout).unwrap();
    store.run(&["init", "--manifest", manifest.to_str().unwrap()]).fine();
    let [log, producer, operator] = keys.each_ref().map(|key| key.to_str().unwrap());
    let taken = ["import-bundle", bundle.to_str().unwrap(), "--trust", log, producer, operator];
    store.run(&taken).fine();
    let (_, facts) = sample("schema_6");
    assert_eq!(store.snapshot(), facts);
    store.run(&["verify"]).fine();
}
