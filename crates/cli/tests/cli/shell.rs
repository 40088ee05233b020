//! The plain sqlite3 shell, read-only, sees the paper's columns.

use super::store::{Store, ran};

fn shell(store: &Store, sql: &str) -> super::store::CommandResult {
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

/// Every column of an event, for an intact, a forgotten and a damaged one.
#[test]
fn episodic_events_has_source_id_and_time_as_columns() {
    let store = Store::with("facts/edges.events.jsonl");
    let sql = "SELECT count(*) FROM episodic_events WHERE source IS NOT payload_json ->> 'source' \
               OR id IS NOT payload_json ->> 'id' OR source IS NULL OR id IS NULL \
               OR unixepoch(time) <> time_us / 1000000 OR length(time) <> 27 \
               OR substr(time, -7) <> printf('%06dZ', time_us % 1000000)";
    assert_eq!(shell(&store, sql).fine().out, "0\n");
    let sorted = |by| {
        let rows = format!("SELECT seq FROM episodic_events ORDER BY {by}, seq");
        shell(&store, &format!("SELECT group_concat(seq) FROM ({rows})")).fine().out
    };
    assert_eq!(sorted("time"), sorted("time_us"), "as text too");
    let first = "SELECT event_ref FROM episodic_events WHERE seq = 1";
    let first = shell(&store, first).fine().out;
    let time = shell(&store, "SELECT time FROM episodic_events WHERE seq = 1").fine().out;
    store.run(&["forget", "--yes", first.trim()]).fine();
    let sql = "SELECT source IS NULL, id IS NULL, time FROM episodic_events WHERE seq = 1";
    assert_eq!(shell(&store, sql).fine().out, format!("1|1|{time}"));
    let db = rusqlite::Connection::open(&store.path).unwrap();
    db.execute_batch("DROP TRIGGER event_is_frozen").unwrap();
    db.execute("UPDATE event SET payload = '{\"id\":' WHERE at & 1023 = 2", []).unwrap();
    let sql = "SELECT count(*), count(source), count(id), count(time) FROM episodic_events";
    let out = shell(&store, sql).fine().out;
    let counts: Vec<u64> = out.trim().split('|').map(|count| count.parse().unwrap()).collect();
    let all = counts[0];
    assert_eq!(counts, [all, all - 2, all - 2, all], "one damaged row does not stop the query");
}

/// New columns do not move existing ones: a query by column number still works.
#[test]
fn columns_of_the_views_keep_their_places() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let columns = |view| {
        let sql = format!("SELECT group_concat(name, ' ') FROM pragma_table_info('{view}')");
        shell(&store, &sql).fine().out
    };
    let want = "identity_hash seq event_ref type time_us digest payload_json source id time\n";
    assert_eq!(columns("episodic_events"), want);
    let want = "identity_hash fact_kind fact_key fact_value_json last_updated\n";
    assert_eq!(columns("semantic_facts"), want);
}
