//! A store that an older ipse wrote is read as it is, and brought up to date by the first command
//! that writes.

use crate::store::{Store, vector};
use flate2::read::GzDecoder;
use rusqlite::Connection;
use std::fs::File;
use std::io::Read;

/// The store in `vectors/store`: made by an ipse that knew schema 5, with a pass, intents, a
/// decision, and an event that was forgotten.
fn schema_5() -> (Store, String) {
    sample("schema_5")
}

/// A store of `vectors/store`, and the snapshot of its facts.
fn sample(name: &str) -> (Store, String) {
    let store = Store::nothing();
    let mut bytes = Vec::new();
    let file = File::open(vector(&format!("store/{name}.db.gz"))).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    std::fs::write(&store.path, bytes).unwrap();
    let facts = vector(&format!("store/{name}.snapshot.jsonl"));
    (store, std::fs::read_to_string(facts).unwrap())
}

fn version(store: &Store) -> i64 {
    let db = Connection::open(&store.path).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn commands_that_read_leave_a_store_of_schema_5_as_it_is() {
    let (store, facts) = schema_5();
    let before = std::fs::read(&store.path).unwrap();
    assert_eq!(store.snapshot(), facts);
    store.run(&["verify"]).fine();
    store.run(&["rebuild"]).fine();
    assert_eq!(store.run(&["passes", "--json"]).fine().out.matches("\"trigger\"").count(), 2);
    store.run(&["explain", "ev_5528658e9bf82aa15b94b5485b11a2ac"]).fine();
    assert_eq!(version(&store), 5);
    assert_eq!(std::fs::read(&store.path).unwrap(), before);
}

#[test]
fn the_first_command_that_writes_brings_a_store_of_schema_5_up_to_date() {
    let (store, facts) = schema_5();
    store.run(&["consolidate"]).fine();
    assert_eq!(version(&store), 6);
    store.run(&["verify"]).fine();
    assert_eq!(store.snapshot(), facts);
    let db = Connection::open(&store.path).unwrap();
    // A schema that says 6 and has no index is not what this program would have made.
    db.execute_batch("DROP INDEX event_of_house").unwrap();
    let verified = store.run(&["verify"]);
    assert_eq!(verified.code, 1, "{}", verified.out);
    assert!(verified.out.contains("index event_of_house"), "{}", verified.out);
}

/// `schema_6`: made by the version before the library was split off, with signed events, intents, a
/// decision, an action and a forgotten event.
#[test]
fn a_store_of_schema_6_is_read_and_written() {
    let (store, facts) = sample("schema_6");
    let before = std::fs::read(&store.path).unwrap();
    assert_eq!(store.snapshot(), facts);
    store.run(&["verify"]).fine();
    store.run(&["rebuild"]).fine();
    store.run(&["explain", "ev_8880dbeb58dc2d23f595dbd19a8af6a0"]).fine();
    assert_eq!(std::fs::read(&store.path).unwrap(), before, "reading changes nothing");
    store.run(&["record", "--skill", "s", "--success", "--id", "1"]).fine();
    store.run(&["verify"]).fine();
}

/// `vectors/bundle`: the same log as a bundle, exported by the same version.
#[test]
fn a_bundle_of_an_earlier_version_verifies_and_can_be_taken_in() {
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
