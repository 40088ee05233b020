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
    let store = Store::nothing();
    let mut bytes = Vec::new();
    let file = File::open(vector("store/schema_5.db.gz")).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    std::fs::write(&store.path, bytes).unwrap();
    let facts = std::fs::read_to_string(vector("store/schema_5.snapshot.jsonl")).unwrap();
    (store, facts)
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
