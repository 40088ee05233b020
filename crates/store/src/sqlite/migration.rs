//! The steps of the schema, and migrating a store through them.
//!
//! **Invariants**
//! - A step and its version are stored in one transaction. A process that dies inside a step leaves
//!   the version before it.
//! - One step changes every event. It takes the events in parts, and each part stores how far it
//!   came in the same transaction: a migration that was killed goes on where it stopped. Until the
//!   step is complete, the version is [`UNFINISHED`], so that neither an older nor a newer program
//!   uses the store.

use super::APPLICATION_ID;
use crate::Error;
use ipse_core::Columns;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, TransactionBehavior};

/// Each step migrates the schema to the next version; `user_version` counts the steps.
pub(super) const STEPS: [&str; 11] = [
    include_str!("schema/schema_v1.sql"),
    include_str!("schema/schema_v2.sql"),
    include_str!("schema/schema_v3.sql"),
    include_str!("schema/schema_v4.sql"),
    include_str!("schema/schema_v5.sql"),
    include_str!("schema/schema_v6.sql"),
    include_str!("schema/schema_v7.sql"),
    include_str!("schema/schema_v8.sql"),
    include_str!("schema/schema_v9.sql"),
    include_str!("schema/schema_v10.sql"),
    include_str!("schema/schema_v11.sql"),
];

/// The version whose next step derives the sources of all events.
const BEFORE_SOURCES: usize = 9;
/// The version of a store whose events have their sources in part. It is greater than every version
/// of a complete store.
const UNFINISHED: i64 = 0x1_0009;
/// Events per transaction of that step: few enough that a killed migration loses little work.
const PART: i64 = 16_384;

/// The number of complete steps; `None` for a version that no program writes.
pub(super) fn steps_taken(version: i64) -> Option<usize> {
    if version == UNFINISHED { Some(BEFORE_SOURCES) } else { usize::try_from(version).ok() }
}

/// Runs the missing steps, each in a transaction with its version. Returns how many it completed.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<usize, Error> {
    let attempt = Error::while_trying("migrate the schema");
    define_with_source(connection).map_err(&attempt)?;
    let mut done = 0;
    loop {
        // If the process dies before a commit, neither the step nor its version is stored. Another
        // process that migrates at the same time waits here, and then finds nothing to do.
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&attempt)?;
        let version: i64 =
            tx.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(&attempt)?;
        let taken = steps_taken(version).unwrap_or(usize::MAX);
        let missing = steps.get(taken..).unwrap_or_default();
        if missing.is_empty() {
            return Ok(done);
        }
        if taken == BEFORE_SOURCES && derive_sources(&tx).map_err(&attempt)? {
            tx.pragma_update(None, "user_version", UNFINISHED).map_err(&attempt)?;
            tx.commit().map_err(&attempt)?;
            continue;
        }
        // A new store is created in one transaction: no other process sees an older version of it.
        let now = if taken == 0 { steps.len() } else { 1 };
        for (step, version) in missing.iter().take(now).zip(taken as u64 + 1..) {
            tx.execute_batch(step).map_err(&attempt)?;
            tx.pragma_update(None, "user_version", version.cast_signed()).map_err(&attempt)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(&attempt)?;
        tx.commit().map_err(&attempt)?;
        done += now.min(missing.len());
    }
}

/// Adds their source to the columns of the next events. Returns false if all events have theirs.
fn derive_sources(tx: &Connection) -> rusqlite::Result<bool> {
    tx.execute_batch("CREATE TABLE IF NOT EXISTS migration (done INTEGER NOT NULL) STRICT")?;
    let one = |sql: &str, done: i64| tx.query_row(sql, [done], |row| row.get::<_, Option<i64>>(0));
    let done = one("SELECT max(done) FROM migration WHERE done >= ?1", 0)?.unwrap_or(0);
    let part = format!(
        "SELECT max(at) FROM (SELECT at FROM event WHERE at > ?1 ORDER BY at LIMIT {PART})"
    );
    let Some(last) = one(&part, done)? else {
        tx.execute_batch("DROP TABLE migration")?;
        return Ok(false);
    };
    // Events cannot be changed. The guard returns in the same transaction, as it was.
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'event_is_frozen'";
    let guard: String = tx.query_row(sql, [], |row| row.get(0))?;
    tx.execute_batch("DROP TRIGGER event_is_frozen")?;
    tx.execute(
        "UPDATE event SET columns = with_source(columns, payload) \
         WHERE at > ?1 AND at <= ?2 AND columns <> x''",
        (done, last),
    )?;
    tx.execute_batch(&guard)?;
    tx.execute("DELETE FROM migration", [])?;
    tx.execute("INSERT INTO migration VALUES (?1)", [last])?;
    Ok(true)
}

/// Defines the SQL function `with_source(columns, payload)`. Columns that have a source stay as
/// they are. So do those of an event whose payload cannot be read; `ipse verify` reports it.
fn define_with_source(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_UTF8;
    connection.create_scalar_function("with_source", 2, flags, |arguments| {
        let (columns, payload): (Vec<u8>, String) = (arguments.get(0)?, arguments.get(1)?);
        let source = ipse_core::event::source_of(&payload);
        Ok(match source.filter(|_| Columns::decode(&columns).is_none()) {
            Some(source) => Columns::with_source(columns, &source),
            None => columns,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Sqlite, erase, switch_to_wal};
    use super::*;
    use crate::session::{Duty, Engine};
    use crate::{Location, Migrated, Store};
    use ipse_core::Identity;
    use std::path::Path;

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    }

    #[test]
    fn steps_run_once_each_and_whole_or_not_at_all() {
        let mut db = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE a (x); INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)"];
        migrate(&mut db, &steps[..1]).unwrap();
        assert_eq!(version(&db), 1);
        let broken = [steps[0], "INSERT INTO a VALUES (9); INSERT INTO nowhere VALUES (1)"];
        assert!(migrate(&mut db, &broken).is_err());
        assert_eq!(version(&db), 1);
        migrate(&mut db, &steps).unwrap();
        migrate(&mut db, &steps).unwrap();
        assert_eq!(version(&db), 2);
        let sum: i64 = db.query_row("SELECT sum(x) FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 3, "the broken step left nothing, the good ones ran once");
    }

    /// Ground data is kept, derived data is deleted.
    #[test]
    fn a_store_of_schema_1_is_brought_up_to_date() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &STEPS[..1]).unwrap();
        db.execute_batch(
            "INSERT INTO manifest VALUES (1, 'h', 'c');
             INSERT INTO event VALUES ((1 << 40) + 1, zeroblob(16), 0, 't', x'00', x'00', 'p');
             INSERT INTO chunk VALUES (4096, x'00', x'00');
             INSERT INTO pass VALUES (2, 1, 1);
             INSERT INTO progress VALUES (1, 1, 1, 'v1', x'00');",
        )
        .unwrap();
        migrate(&mut db, &STEPS).unwrap();
        assert_eq!(version(&db), 11);
        assert_eq!(erase::pending(&db).unwrap(), [(0, true)], "pages were freed uncleared");
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM event"), 1);
        assert_eq!(count("SELECT count(*) FROM manifest"), 1);
        assert_eq!(
            count("SELECT (SELECT count(*) FROM chunk) + (SELECT count(tallied) FROM pass)"),
            0
        );
    }

    /// An older store with one row in each table that a later step keeps.
    fn store_of_schema_4(path: &Path, identity: Identity) -> Connection {
        let mut db = Connection::open(path).unwrap();
        switch_to_wal(&db).unwrap();
        migrate(&mut db, &STEPS[..4]).unwrap();
        db.execute("INSERT INTO manifest VALUES (1, ?1, 'c')", [identity.to_string()]).unwrap();
        db.execute_batch(
            "INSERT INTO event VALUES ((1 << 40) + 1, zeroblob(16), 0, 't', x'00', x'00', 'p');
             INSERT INTO fact VALUES (1, 1, x'00', 'k', 'k', 'v', 0, x'00', 0);
             INSERT INTO tree_head VALUES (1, 'n');
             INSERT INTO producer VALUES (1, 1, 'k', 1);
             INSERT INTO setting VALUES ('retention', '1h');",
        )
        .unwrap();
        db
    }

    /// If several processes migrate at once, each step is reported by the process that ran it.
    #[test]
    fn a_migration_reports_the_steps_that_it_took_itself() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        drop(store_of_schema_4(&path, Identity([7; 32])));
        let location = Location::file(&path);
        let steps: usize = std::thread::scope(|scope| {
            let one = || Store::migrate(&location).unwrap().map_or(0, |it| it.to - it.from);
            let all: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(steps, STEPS.len() - 4);
    }

    #[test]
    fn only_a_migration_changes_an_older_store() {
        let directory = tempfile::tempdir().unwrap();
        let (path, identity) = (directory.path().join("store.db"), Identity([7; 32]));
        let db = store_of_schema_4(&path, identity);
        let location = Location::file(&path);
        let older = |result: Result<Store, Error>| {
            matches!(result.err(), Some(Error::Older { found: 4, known: 11, .. }))
        };
        assert!(older(Store::open(&location)));
        let writing = Sqlite::at(&path).session(Duty::Write).err();
        assert!(matches!(writing, Some(Error::Older { .. })), "writing migrates nothing either");
        assert_eq!(version(&db), 4);
        let migrated = Store::migrate(&location).unwrap();
        assert_eq!(migrated, Some(Migrated { from: 4, to: 11 }));
        assert_eq!(Store::migrate(&location).unwrap(), None);
        assert_eq!(erase::pending(&db).unwrap(), [(0, true)], "rows have moved");
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        for table in ["manifest", "event", "fact", "tree_head", "producer", "retention"] {
            assert_eq!(count(&format!("SELECT count(*) FROM {table}")), 1, "{table}");
        }
        let reader = Store::open(&location).unwrap().reader().unwrap();
        assert_eq!(reader.retention(&identity).unwrap().as_deref(), Some("1h"));
        let snapshot = reader.view(&identity).unwrap();
        assert_eq!(snapshot.schema_damage().unwrap(), [], "equal to a new store");
    }

    /// A process that dies between two steps, or inside one, leaves a store that the next migration
    /// brings up to date.
    #[test]
    fn a_migration_that_stops_at_any_step_goes_on_from_there() {
        for stopped in 4..STEPS.len() {
            let directory = tempfile::tempdir().unwrap();
            let (path, identity) = (directory.path().join("store.db"), Identity([7; 32]));
            let mut db = store_of_schema_4(&path, identity);
            let broken = format!("{}; INSERT INTO nowhere VALUES (1)", STEPS[stopped]);
            let mut steps = STEPS[..stopped].to_vec();
            steps.push(&broken);
            assert!(migrate(&mut db, &steps).is_err());
            let kept = if stopped == BEFORE_SOURCES {
                UNFINISHED
            } else {
                i64::try_from(stopped).unwrap()
            };
            assert_eq!(version(&db), kept, "earlier steps are kept");
            let location = Location::file(&path);
            assert!(matches!(Store::open(&location), Err(Error::Older { .. })));
            Store::migrate(&location).unwrap();
            let reader = Store::open(&location).unwrap().reader().unwrap();
            assert_eq!(reader.retention(&identity).unwrap().as_deref(), Some("1h"));
            assert_eq!(reader.view(&identity).unwrap().schema_damage().unwrap(), []);
        }
    }

    /// A store of schema 9 with more events than one part, every third of them forgotten.
    fn store_of_schema_9(path: &Path, events: i64) -> Connection {
        let mut db = store_of_schema_4(path, Identity([7; 32]));
        migrate(&mut db, &STEPS[..BEFORE_SOURCES]).unwrap();
        let tx = db.transaction().unwrap();
        for number in 2..=events {
            let (columns, payload) = match number % 3 {
                0 => (Vec::new(), String::new()),
                _ => (vec![0; 8], format!("{{\"source\":\"arm {number}\"}}")),
            };
            let sql = "INSERT INTO event VALUES ((1 << 40) + ?1, randomblob(16), 0, 't', x'00', \
                       ?2, ?3)";
            tx.execute(sql, (number, columns, payload)).unwrap();
        }
        tx.commit().unwrap();
        db
    }

    /// The columns of all events, in order.
    fn columns(db: &Connection) -> Vec<Vec<u8>> {
        let mut rows = db.prepare("SELECT columns FROM event ORDER BY at").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Each part is one transaction. A process that dies after any number of them leaves a store
    /// that no program opens, and the next migration continues with the next part.
    #[test]
    fn a_migration_that_is_killed_after_any_part_goes_on_with_the_next() {
        let events = 2 * PART + 100;
        let directory = tempfile::tempdir().unwrap();
        let want = {
            let mut db = store_of_schema_9(&directory.path().join("whole.db"), events);
            migrate(&mut db, &STEPS).unwrap();
            columns(&db)
        };
        let source = |number: i64| Columns::with_source(vec![0; 8], &format!("arm {number}"));
        assert_eq!((&want[1], &want[2]), (&source(2), &Vec::new()));
        for parts in 1..=3_i64 {
            let path = directory.path().join(format!("{parts}.db"));
            let mut db = store_of_schema_9(&path, events);
            define_with_source(&db).unwrap();
            for _ in 0..parts {
                let tx = db.transaction().unwrap();
                assert!(derive_sources(&tx).unwrap());
                tx.pragma_update(None, "user_version", UNFINISHED).unwrap();
                tx.commit().unwrap();
            }
            let location = Location::file(&path);
            let older = Store::open(&location).err();
            assert!(matches!(older, Some(Error::Older { found: 9, known: 11, .. })));
            let done: i64 = db.query_row("SELECT done FROM migration", [], |r| r.get(0)).unwrap();
            assert_eq!(done - (1 << 40), events.min(parts * PART), "it continues from here");
            assert_eq!(Store::migrate(&location).unwrap(), Some(Migrated { from: 9, to: 11 }));
            assert_eq!(columns(&db), want);
            let reader = Store::open(&location).unwrap().reader().unwrap();
            let snapshot = reader.view(&Identity([7; 32])).unwrap();
            assert_eq!(snapshot.schema_damage().unwrap(), [], "the guard is back");
        }
    }
}
