//! The plain sqlite3 shell, read-only, sees the paper's columns.

use super::store::{Store, ran};

fn shell(store: &Store, sql: &str) -> super::store::Ran {
    let mut command = assert_cmd::Command::new("sqlite3");
    ran(command.arg("-readonly").arg("-list").arg(&store.path).arg(sql))
}

#[test]
fn semantic_facts_has_the_papers_columns() {
    let store = Store::with("facts/edges.events.jsonl");
    let sql = "SELECT '{\"fact_key\":' || json_quote(fact_key) || ',\"fact_kind\":' || \
               json_quote(fact_kind) || ',\"last_updated\":' || json_quote(last_updated) || \
               ',\"value\":' || fact_value_json || '}' FROM semantic_facts \
               ORDER BY fact_kind, fact_key";
    assert_eq!(shell(&store, sql).fine().out, store.snapshot(), "fractions of a second too");
    let identity = store.run(&["identity", "--json"]).fine().json();
    let sql = "SELECT DISTINCT identity_hash FROM semantic_facts";
    assert_eq!(shell(&store, sql).fine().out.trim(), identity["identity_hash"].as_str().unwrap());
}

#[test]
fn episodic_events_can_be_read_and_not_written() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let count = shell(&store, "SELECT count(*), max(seq) FROM episodic_events").fine().out;
    assert_eq!(count.trim(), "16|16");
    let ran = shell(&store, "DELETE FROM event");
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("readonly"), "{}", ran.err);
}
