//! Attacks on the file and its connections: each is rejected and changes nothing.

use super::{Connected, Guarded, create, open};
use crate::session::Duty;
use crate::{Appended, Error};
use ipse_core::{Fact, FactId, FactKey, FactKind, Identity, Seq, Support};
use ipse_door::{Origin, admit};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MANIFEST: &str = "{\"agent_id\":\"a\"}";

pub(super) struct Store {
    _directory: TempDir,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
}

fn event(id: &str) -> ipse_core::Admitted {
    let line = format!(
        "{{\"id\":\"{id}\",\"type\":\"note\",\"time\":\"2026-05-06T10:00:00Z\",\"data\":{{}}}}"
    );
    admit(line.as_bytes(), Origin::Producer, || [7; 16]).unwrap()
}

/// A store with one identity and three events.
pub(super) fn store() -> Store {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let identity = create(&path).unwrap().register(MANIFEST).unwrap().identity;
    let mut writer = open(&path).unwrap().writer(&identity).unwrap();
    let mut batch = writer.begin().unwrap();
    for id in ["1", "2", "3"] {
        assert!(matches!(batch.append(&event(id)).unwrap(), Appended::New(_)));
    }
    batch.commit().unwrap();
    Store { _directory: directory, path, identity }
}

/// All ground data as one text.
pub(super) fn ground(path: &Path) -> String {
    let db = Connection::open(path).unwrap();
    let mut all = String::new();
    for sql in [
        "SELECT log || identity_hash || canonical FROM manifest",
        "SELECT at || hex(event_ref) || time_us || type || hex(digest) || payload FROM event",
    ] {
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        all.extend(rows.map(|row| row.unwrap() + "\n"));
    }
    all
}

#[test]
fn a_pass_connection_cannot_reach_the_manifest_nor_the_schema() {
    let store = store();
    let before = ground(&store.path);
    let writer = Guarded::of(&store.path, Duty::Write);
    for sql in [
        "INSERT INTO manifest VALUES (9, 'x', 'y')",
        "INSERT OR REPLACE INTO manifest VALUES (1, 'x', 'y')",
        "REPLACE INTO manifest VALUES (1, 'x', 'y')",
        "UPDATE manifest SET canonical = 'y'",
        "DELETE FROM manifest",
        "DROP TABLE manifest",
        "DROP TRIGGER manifest_is_frozen",
        "ALTER TABLE manifest RENAME TO m",
        "ALTER TABLE manifest ADD COLUMN c",
        "ATTACH ':memory:' AS other",
        "ATTACH 'other.db' AS other",
        "DETACH main",
        "PRAGMA writable_schema = 1",
        "PRAGMA user_version = 9",
        "PRAGMA synchronous = OFF",
        "PRAGMA journal_mode = DELETE",
        "CREATE TRIGGER t AFTER INSERT ON fact BEGIN UPDATE manifest SET canonical = 'y'; END",
        "CREATE TEMP TRIGGER t AFTER INSERT ON fact BEGIN DELETE FROM manifest; END",
        "CREATE TEMP TABLE manifest (log)",
        "CREATE TABLE other (x)",
        "CREATE VIEW other AS SELECT 1",
        "CREATE INDEX i ON fact (fact_key)",
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "REINDEX",
        "ANALYZE",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "UPDATE event SET type = 'x'",
        "UPDATE event SET payload = 'x'",
        "DELETE FROM event",
        "DELETE FROM pass",
        "SELECT load_extension('x')",
        "SELECT writefile('x', 'y')",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ] {
        assert!(writer.try_statement(sql).is_err(), "allowed: {sql}");
    }
    assert_eq!(ground(&store.path), before);
}

/// Without the triggers in the file only the authorizer is left.
#[test]
fn without_the_triggers_the_authorizer_still_denies() {
    let store = store();
    let db = Connection::open(&store.path).unwrap();
    let triggers: Vec<String> = db
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(triggers.len() >= 6);
    triggers.iter().for_each(|name| db.execute_batch(&format!("DROP TRIGGER {name}")).unwrap());
    drop(db);
    let before = ground(&store.path);
    let writer = Guarded::of(&store.path, Duty::Write);
    for sql in [
        "INSERT INTO manifest VALUES (9, 'x', 'y')",
        "REPLACE INTO manifest VALUES (1, 'x', 'y')",
        "UPDATE manifest SET canonical = 'y'",
        "DELETE FROM manifest",
        "DROP TABLE manifest",
        "ALTER TABLE manifest RENAME TO m",
        "ATTACH ':memory:' AS other",
        "PRAGMA writable_schema = 1",
        "CREATE TRIGGER t AFTER INSERT ON fact BEGIN DELETE FROM manifest; END",
        "UPDATE event SET payload = 'x'",
        "DELETE FROM event",
    ] {
        let error = writer.try_statement(sql).expect_err(sql);
        let denied = Some(rusqlite::ErrorCode::AuthorizationForStatementDenied);
        assert_eq!(error.sqlite_error_code(), denied, "{sql}: {error}");
    }
    assert_eq!(ground(&store.path), before);
}

/// An eraser can empty a whole event. It can do nothing else that a writer cannot do.
#[test]
fn an_erasers_connection_can_empty_events_and_put_nothing_in() {
    let store = store();
    let before = ground(&store.path);
    let eraser = Guarded::of(&store.path, Duty::Forget);
    for sql in [
        "INSERT INTO manifest VALUES (9, 'x', 'y')",
        "UPDATE manifest SET canonical = 'y'",
        "DELETE FROM manifest",
        "DELETE FROM event",
        "DELETE FROM erase_pending",
        "UPDATE erase_pending SET rewrite = 0",
        "INSERT INTO retention VALUES (1, '1h')",
        "UPDATE event SET type = ''",
        "UPDATE event SET digest = x''",
        "UPDATE event SET at = at + 9",
        "UPDATE event SET payload = 'x'",
        "UPDATE event SET payload = ''",
        "UPDATE event SET columns = x''",
        "UPDATE event SET payload = '', columns = x'00'",
        "UPDATE event SET payload = '', columns = x'', time_us = 0",
        "UPDATE sqlite_dbpage SET pgno = 2",
        "DELETE FROM sqlite_dbpage",
        "INSERT INTO sqlite_dbpage (pgno, data) VALUES (1, NULL)",
        "UPDATE pass SET last_seq = 0",
        "DROP TRIGGER event_is_frozen",
        "ATTACH ':memory:' AS other",
        "PRAGMA secure_delete = OFF",
        "PRAGMA writable_schema = 1",
        "VACUUM",
        "CREATE TABLE other (x)",
    ] {
        assert!(eraser.try_statement(sql).is_err(), "allowed: {sql}");
    }
    assert_eq!(ground(&store.path), before);
    eraser.try_statement("UPDATE event SET payload = '', columns = x'' WHERE at % 8 = 1").unwrap();
    assert_ne!(ground(&store.path), before);
    // A writer's connection cannot do even that.
    let writer = Guarded::of(&store.path, Duty::Write);
    let sql = "UPDATE event SET payload = '', columns = x''";
    let denied = Some(rusqlite::ErrorCode::AuthorizationForStatementDenied);
    assert_eq!(writer.try_statement(sql).unwrap_err().sqlite_error_code(), denied);
    for sql in ["UPDATE sqlite_dbpage SET data = data", "INSERT INTO erase_pending VALUES (1, 0)"] {
        assert_eq!(writer.try_statement(sql).unwrap_err().sqlite_error_code(), denied, "{sql}");
    }
}

#[test]
fn what_records_passes_and_forgetting_cannot_be_emptied() {
    let store = store();
    let db = Connection::open(&store.path).unwrap();
    for kind in ["consolidation_run", "forget", "ipse.rules", "ipse.act"] {
        let sql = format!(
            "INSERT INTO event SELECT max(at) + 1, zeroblob(16), 0, '{kind}', x'00', x'00', 'p' \
             FROM event"
        );
        db.execute_batch(&sql).unwrap();
        let sql = format!("UPDATE event SET payload = '', columns = x'' WHERE type = '{kind}'");
        let error = db.execute_batch(&sql).unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

#[test]
fn a_connection_for_settings_reaches_settings_alone() {
    let store = store();
    let settings = Guarded::of(&store.path, Duty::Configure);
    for sql in [
        "INSERT INTO manifest VALUES (9, 'x', 'y')",
        "UPDATE event SET payload = '', columns = x''",
        "INSERT INTO fact (log, fact_id) VALUES (1, x'00')",
        "DELETE FROM fact",
        "UPDATE chunk SET body = x''",
        "UPDATE act_owed SET act = 'x'",
        "DELETE FROM event",
        "UPDATE event SET type = 'x'",
        "REPLACE INTO event SELECT * FROM event",
        "INSERT INTO pass SELECT * FROM pass",
        "INSERT INTO statement VALUES (1, 's', x'', 'e')",
        "INSERT INTO tree_head VALUES (1, 'n')",
        "INSERT INTO token (log) VALUES (1)",
        "DELETE FROM producer",
        "DELETE FROM policy",
        "DELETE FROM erase_pending",
        "DROP TABLE retention",
        "PRAGMA user_version = 9",
    ] {
        assert!(settings.try_statement(sql).is_err(), "allowed: {sql}");
    }
}

#[test]
fn a_connection_for_tree_heads_reaches_the_tree_and_its_head_alone() {
    let store = store();
    let writer = Guarded::of(&store.path, Duty::Sign);
    for sql in [
        "INSERT INTO manifest VALUES (9, 'x', 'y')",
        "INSERT INTO event SELECT at + 1, event_ref, 0, '', x'', x'', '' FROM event",
        "UPDATE event SET payload = '', columns = x''",
        "DELETE FROM fact",
        "DELETE FROM tree",
        "UPDATE tree SET nodes = x''",
        "DELETE FROM tree_head",
        "INSERT INTO producer VALUES (1, 1, 'k', 0, NULL)",
        "INSERT INTO policy VALUES (1, 0, NULL)",
        "INSERT INTO statement VALUES (1, 's', x'', 'e')",
        "INSERT INTO retention VALUES (1, '1h')",
        "DROP TABLE tree",
        "PRAGMA synchronous = OFF",
    ] {
        assert!(writer.try_statement(sql).is_err(), "allowed: {sql}");
    }
    let others = Guarded::of(&store.path, Duty::Write);
    for sql in [
        "INSERT INTO tree_head VALUES (1, 'n')",
        "INSERT INTO tree VALUES (1, x'')",
        "INSERT INTO producer VALUES (1, 1, 'k', 0, NULL)",
        "UPDATE producer SET revoked = 0",
        "UPDATE policy SET max_ahead = NULL",
        "INSERT INTO policy VALUES (1, 0, NULL)",
        "DELETE FROM statement",
    ] {
        assert!(others.try_statement(sql).is_err(), "allowed: {sql}");
    }
}

/// A tree head replaces only the one that was stored when its tree was grown.
#[test]
fn a_tree_head_is_put_by_compare_and_swap() {
    let store = store();
    let mut one = open(&store.path).unwrap().heads(&store.identity).unwrap();
    let mut other = open(&store.path).unwrap().heads(&store.identity).unwrap();
    let (ours, theirs) = (one.grow().unwrap(), other.grow().unwrap());
    assert_eq!((ours.size, &ours.stored), (theirs.size, &None));
    one.put(&ours, "first").unwrap();
    assert!(matches!(other.put(&theirs, "second"), Err(Error::HeadMoved)));
    let stored = || one.view().tree_head().unwrap();
    assert_eq!(stored().as_deref(), Some("first"));
    let theirs = other.grow().unwrap();
    other.put(&theirs, "second").unwrap();
    assert_eq!(stored().as_deref(), Some("second"));
}

#[test]
fn what_a_producer_signed_cannot_be_changed_from_any_connection() {
    let store = store();
    let mut writer = open(&store.path).unwrap().writer(&store.identity).unwrap();
    let mut batch = writer.begin().unwrap();
    batch.put_statement("key", &[Seq(1), Seq(2), Seq(4)], "envelope").unwrap();
    batch.commit().unwrap();
    let db = Connection::open(&store.path).unwrap();
    for sql in [
        "UPDATE statement SET envelope = ''",
        "DELETE FROM statement",
        "INSERT OR REPLACE INTO statement SELECT number, 'x', events, envelope FROM statement",
    ] {
        let error = db.execute_batch(sql).unwrap_err();
        assert!(error.to_string().contains("what a producer signed"), "{sql}: {error}");
    }
    let reader = open(&store.path).unwrap().reader().unwrap();
    let snapshot = reader.view(&store.identity).unwrap();
    let [signed] = snapshot.view().statements().unwrap().try_into().unwrap();
    assert_eq!((signed.number, signed.signer.as_str()), (1, "key"));
    assert_eq!(signed.events, [Seq(1)..=Seq(2), Seq(4)..=Seq(4)]);
    assert_eq!(snapshot.view().envelope(1).unwrap(), "envelope");
}

/// A key gets no source by a change of its row, and none by a second row.
#[test]
fn the_rights_of_a_key_cannot_be_changed_from_any_connection() {
    let store = store();
    let list = ["a".to_owned()];
    let mut settings = open(&store.path).unwrap().settings().unwrap();
    settings.put_producer(&store.identity, "arm+1+k", Some(&list)).unwrap();
    assert!(settings.revoke_producer(&store.identity, "arm").unwrap());
    let db = Connection::open(&store.path).unwrap();
    for sql in [
        "UPDATE producer SET sources = NULL",
        "UPDATE producer SET sources = 'a' || char(10) || 'b'",
        "UPDATE producer SET key = 'other'",
        "UPDATE producer SET log = 2",
        "UPDATE producer SET revoked = 0",
        "UPDATE producer SET revoked = 0, sources = NULL",
        "INSERT OR REPLACE INTO producer SELECT number, log, key, 0, NULL FROM producer",
        "INSERT INTO producer SELECT number + 1, log, key, 0, NULL FROM producer",
    ] {
        let error = db.execute_batch(sql).unwrap_err();
        assert!(error.to_string().contains("the key of a producer"), "{sql}: {error}");
    }
    let reader = open(&store.path).unwrap().reader().unwrap();
    let [arm] = reader.producers(&store.identity).unwrap().try_into().unwrap();
    assert_eq!((arm.revoked, arm.sources.as_deref()), (true, Some(&list[..])));
}

fn fact() -> Fact {
    let note = event("1");
    Fact {
        key: FactKey::new(FactKind::ZoneRisk, &["z"]),
        last: Support { time: note.time, event_ref: note.event_ref, worked: false },
        value: String::from("{}"),
    }
}

#[test]
fn a_planted_trigger_makes_the_pass_fail_and_changes_nothing() {
    for (table, action) in [
        ("fact", "UPDATE manifest SET canonical = 'planted'"),
        ("fact", "DELETE FROM manifest"),
        ("fact", "INSERT INTO manifest VALUES (2, 'planted', 'planted')"),
        ("fact", "INSERT INTO tally (log, fact_id, state) VALUES (1, x'00', x'00')"),
        ("event", "UPDATE pass SET last_seq = 0"),
    ] {
        let store = store();
        let plant = Connection::open(&store.path).unwrap();
        plant
            .execute_batch(&format!("CREATE TRIGGER t AFTER INSERT ON {table} BEGIN {action}; END"))
            .unwrap();
        let before = ground(&store.path);
        let mut writer = open(&store.path).unwrap().writer(&store.identity).unwrap();
        let mut batch = writer.begin().unwrap();
        let id = FactId::new(&store.identity, &fact().key);
        let failed = match table {
            "fact" => batch.pass().unwrap().put_facts(&[(id, fact())]).is_err(),
            _ => batch.append(&event("4")).is_err(),
        };
        assert!(failed, "the planted trigger ran: {action}");
        drop(batch);
        assert_eq!(ground(&store.path), before);
    }
}

#[test]
fn the_log_refuses_changes_from_any_connection() {
    let store = store();
    let before = ground(&store.path);
    for recursive_triggers in [false, true] {
        let db = Connection::open(&store.path).unwrap();
        db.pragma_update(None, "recursive_triggers", recursive_triggers).unwrap();
        for sql in [
            "UPDATE manifest SET canonical = 'x'",
            "DELETE FROM manifest",
            "INSERT OR REPLACE INTO manifest SELECT log, identity_hash, 'x' FROM manifest",
            "INSERT OR REPLACE INTO manifest SELECT 7, identity_hash, 'x' FROM manifest",
            "UPDATE event SET digest = x'00'",
            "UPDATE event SET payload = 'x'",
            "UPDATE event SET columns = x''",
            "UPDATE OR REPLACE event SET at = at + 1",
            "DELETE FROM event WHERE at = (SELECT max(at) FROM event)",
            "INSERT OR REPLACE INTO event \
             SELECT at, event_ref, 0, type, digest, columns, payload FROM event",
            "REPLACE INTO event \
             SELECT at, event_ref, 0, type, digest, columns, 'x' FROM event LIMIT 1",
            "INSERT INTO event SELECT at + 2, event_ref, 0, type, digest, columns, payload \
             FROM event ORDER BY at DESC LIMIT 1",
            "INSERT INTO event SELECT * FROM event LIMIT 1 ON CONFLICT DO UPDATE SET time_us = 0",
        ] {
            assert!(db.execute_batch(sql).is_err(), "allowed: {sql}");
        }
    }
    assert_eq!(ground(&store.path), before);
}

#[test]
fn duplicates_and_conflicts_store_nothing() {
    let store = store();
    let before = ground(&store.path);
    let mut writer = open(&store.path).unwrap().writer(&store.identity).unwrap();
    let mut batch = writer.begin().unwrap();
    assert_eq!(batch.append(&event("2")).unwrap(), Appended::Duplicate(ipse_core::Seq(2)));
    let other = br#"{"id":"2","type":"note","time":"2026-05-06T10:00:01Z","data":{}}"#;
    let other = admit(other, Origin::Producer, || [7; 16]).unwrap();
    assert_eq!(batch.append(&other).unwrap(), Appended::Conflict(ipse_core::Seq(2)));
    batch.commit().unwrap();
    assert_eq!(ground(&store.path), before);
}

#[test]
fn what_a_dropped_batch_put_into_memory_is_not_believed() {
    let store = store();
    let mut one = open(&store.path).unwrap().writer(&store.identity).unwrap();
    let mut batch = one.begin().unwrap();
    assert_eq!(batch.append(&event("mine")).unwrap(), Appended::New(ipse_core::Seq(4)));
    drop(batch);
    // Another process uses the same position.
    let mut two = open(&store.path).unwrap().writer(&store.identity).unwrap();
    let mut batch = two.begin().unwrap();
    assert_eq!(batch.append(&event("theirs")).unwrap(), Appended::New(ipse_core::Seq(4)));
    batch.commit().unwrap();
    let mut batch = one.begin().unwrap();
    assert_eq!(batch.append(&event("theirs")).unwrap(), Appended::Duplicate(ipse_core::Seq(4)));
    assert_eq!(batch.append(&event("mine")).unwrap(), Appended::New(ipse_core::Seq(5)));
}

#[test]
fn a_batch_that_is_dropped_and_a_pass_that_is_dropped_leave_nothing() {
    let store = store();
    let before = ground(&store.path);
    let mut writer = open(&store.path).unwrap().writer(&store.identity).unwrap();
    let mut batch = writer.begin().unwrap();
    batch.append(&event("4")).unwrap();
    drop(batch);
    assert_eq!(ground(&store.path), before);

    let mut batch = writer.begin().unwrap();
    batch.append(&event("4")).unwrap();
    let id = FactId::new(&store.identity, &fact().key);
    assert!(batch.pass().unwrap().put_facts(&[(id, fact())]).unwrap()[0]);
    batch.commit().unwrap();
    let reader = open(&store.path).unwrap().reader().unwrap();
    let snapshot = reader.view(&store.identity).unwrap();
    assert_eq!(snapshot.view().head().unwrap(), ipse_core::Seq(4), "the events are kept");
    assert_eq!(snapshot.view().facts().unwrap(), [], "the facts of the lost pass are not");
}

#[test]
fn a_pass_that_is_alone_in_its_batch_and_dropped_ends_the_batch() {
    let store = store();
    let before = ground(&store.path);
    let mut writer = open(&store.path).unwrap().writer(&store.identity).unwrap();
    let mut batch = writer.begin().unwrap();
    let id = FactId::new(&store.identity, &fact().key);
    assert!(batch.pass().unwrap().put_facts(&[(id, fact())]).unwrap()[0]);
    assert!(batch.append(&event("4")).is_err(), "no event is appended outside a transaction");
    assert!(batch.commit().is_err(), "nothing to commit");
    assert_eq!(ground(&store.path), before);
    let reader = open(&store.path).unwrap().reader().unwrap();
    assert_eq!(reader.view(&store.identity).unwrap().view().facts().unwrap(), []);

    let mut batch = writer.begin().unwrap();
    batch.append(&event("4")).unwrap();
    batch.commit().unwrap();
    assert_ne!(ground(&store.path), before, "the writer still works");
}

#[test]
fn files_that_are_not_ours_are_left_untouched() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "these are my notes, at least sixteen bytes of them").unwrap();
    let other = directory.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let newer = directory.path().join("newer.db");
    create(&newer).unwrap().register(MANIFEST).unwrap();
    Connection::open(&newer).unwrap().pragma_update(None, "user_version", 999).unwrap();
    for path in [&text, &other, &newer] {
        let before = std::fs::read(path).unwrap();
        let foreign = |error: &Error| match error {
            Error::Foreign(_) => path != &newer,
            Error::Newer { found: 999, .. } => path == &newer,
            _ => false,
        };
        assert!(create(path).err().is_some_and(|error| foreign(&error)), "{path:?}");
        assert!(open(path).err().is_some_and(|error| foreign(&error)), "{path:?}");
        let session = Connected::open(path, Duty::Write);
        assert!(session.err().is_some_and(|error| foreign(&error)), "{path:?}");
        assert_eq!(std::fs::read(path).unwrap(), before, "{path:?}");
    }
    let missing = directory.path().join("missing.db");
    assert!(matches!(open(&missing), Err(Error::NotFound(_))));
    assert!(!missing.exists());
}

#[test]
fn every_writing_connection_syncs_at_each_commit() {
    let store = store();
    let db = Connection::open(&store.path).unwrap();
    let mode: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let connection = crate::sqlite::open_to_write(&store.path).unwrap();
    let level: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
    assert_eq!(level, 2, "FULL");
}

#[test]
fn the_log_is_copied_back_off_the_writer_and_stays_bounded() {
    let store = store();
    let size = |ending: &str| {
        let mut name = store.path.clone().into_os_string();
        name.push(ending);
        std::fs::metadata(name).map_or(0, |file| file.len())
    };
    let filler = "x".repeat(2000);
    let mut writer = open(&store.path).unwrap().writer(&store.identity).unwrap();
    let mut longest = 0;
    for round in 0..60 {
        let mut batch = writer.begin().unwrap();
        for n in 0..500 {
            let line = format!(
                "{{\"id\":\"{round}-{n}\",\"type\":\"note\",\
                 \"time\":\"2026-05-06T10:00:00Z\",\"data\":{{\"x\":\"{filler}\"}}}}"
            );
            batch.append(&admit(line.as_bytes(), Origin::Producer, || [7; 16]).unwrap()).unwrap();
        }
        batch.commit().unwrap();
        longest = longest.max(size("-wal"));
    }
    // More than 60 MB were written. Some of them are in the main file while it is open.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while size("") < 10_000_000 {
        assert!(std::time::Instant::now() < patience, "nothing was copied into the main file");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(longest < 200_000_000, "{longest}");
    drop(writer);
    let reader = open(&store.path).unwrap().reader().unwrap();
    assert_eq!(reader.view(&store.identity).unwrap().view().head().unwrap().0, 30_003);
}

#[test]
fn a_copy_that_sqlite_made_is_written_ahead_again() {
    let store = store();
    let copy = store.path.with_extension("copy");
    open(&store.path).unwrap().copy_to(&copy).unwrap();
    let mode = || std::fs::read(&copy).unwrap()[18..20].to_vec();
    assert_eq!(mode(), [1, 1], "SQLite writes copies in another mode");
    open(&copy).unwrap().reader().unwrap();
    assert_eq!(mode(), [1, 1], "reading changes nothing");
    drop(open(&copy).unwrap().writer(&store.identity).unwrap());
    assert_eq!(mode(), [2, 2]);
}

#[test]
fn an_unknown_identity_is_refused() {
    let store = store();
    let stranger = Identity([9; 32]);
    assert!(matches!(open(&store.path).unwrap().writer(&stranger), Err(Error::UnknownIdentity(_))));
    let reader = open(&store.path).unwrap().reader().unwrap();
    assert!(matches!(reader.view(&stranger), Err(Error::UnknownIdentity(_))));
}

#[test]
fn registering_twice_changes_nothing_and_another_manifest_has_its_own_log() {
    let store = store();
    let again = create(&store.path).unwrap().register(MANIFEST).unwrap();
    assert!(!again.created);
    let other = create(&store.path).unwrap().register("{\"agent_id\":\"b\"}").unwrap();
    assert!(other.created);
    let reader = open(&store.path).unwrap().reader().unwrap();
    assert_eq!(reader.view(&other.identity).unwrap().view().head().unwrap().0, 0);
    assert_eq!(reader.view(&store.identity).unwrap().view().head().unwrap().0, 3);
    let mut writer = open(&store.path).unwrap().writer(&other.identity).unwrap();
    let mut batch = writer.begin().unwrap();
    assert_eq!(batch.append(&event("1")).unwrap(), Appended::New(ipse_core::Seq(1)));
    batch.commit().unwrap();
    assert_eq!(reader.view(&store.identity).unwrap().view().head().unwrap().0, 3);
}

#[test]
fn this_workspace_builds_sqlite_so_that_forgetting_clears_single_pages() {
    assert!(crate::forgets_in_place(), "see .cargo/config.toml");
}
