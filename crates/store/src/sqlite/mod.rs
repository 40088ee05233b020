//! The embedded store: one SQLite file in write-ahead mode, any number of identities.
//!
//! **Invariants**
//! - Only [`create`] makes a file. Everything else opens what is there, and refuses a file that is
//!   not ours or that a newer ipse wrote, before it has changed a byte.
//! - Every connection that writes syncs at each commit (`synchronous=FULL`) and clears what it
//!   frees (`secure_delete`).
//! - Schema changes are steps that run whole or not at all.
//! - Before the first commit of a handle that acknowledges, the names of the store's files are
//!   durable, and so is the write-ahead log that a process left behind.

mod audit;
mod checkpoint;
mod erase;
mod files;
mod guard;
mod house;
mod read;
mod refs;
mod register;
mod restore;
mod seal;
mod setting;
mod slack;
mod statement;
mod token;
mod transaction;
mod tree;
mod wal;
mod write;

pub use audit::{Pair, RawEvent, RawFact, RawPass};
pub use erase::{Eraser, Erasing};
pub use read::{Reader, Scan, Snapshot, View};
pub use register::{Registered, Registrar};
pub use restore::Restoring;
pub use setting::Settings;
pub use slack::forgets_in_place;
pub use statement::Signed;
pub use token::TokenWriter;
pub use tree::{Grown, HeadWriter, STORED_LEVEL};
pub use write::{Batch, Pass, Writer};

use crate::Error;
use crate::error::BUSY_SECONDS;
use ipse_core::Seq;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// `ipse` in ASCII: marks the file as ours.
const APPLICATION_ID: i64 = 0x6970_7365;

/// Each step brings the schema one version further; `user_version` counts the steps taken.
const STEPS: [&str; 6] = [
    include_str!("schema_v1.sql"),
    include_str!("schema_v2.sql"),
    include_str!("schema_v3.sql"),
    include_str!("schema_v4.sql"),
    include_str!("schema_v5.sql"),
    include_str!("schema_v6.sql"),
];

/// The oldest schema that can be read as it is: the steps after it only make reading faster.
const READABLE: usize = 5;

/// The first SQLite without the bug that can corrupt a write-ahead log after a reset.
const MIN_SQLITE: i32 = 3_051_003;

const SEQ_BITS: u32 = 40;
/// Events of one log at most, 2⁴⁰ − 1: position and log share one 64-bit integer.
pub const MAX_SEQ: u64 = Seq::MAX.0;

// A position fits its bits.
const _: () = assert!(MAX_SEQ == (1 << SEQ_BITS) - 1);
/// Identities of one store at most: the other half of that integer, sign aside.
pub const MAX_LOGS: i64 = (1 << 23) - 1;

/// Prepared statements kept ready: more than there are in this crate.
const STATEMENTS: usize = 64;

/// A log's number within the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LogId(i64);

impl LogId {
    fn at(self, seq: Seq) -> i64 {
        debug_assert!(seq.0 <= MAX_SEQ, "BUG: seq beyond its bits");
        self.0 << SEQ_BITS | seq.0.cast_signed()
    }
}

fn seq_of(at: i64) -> Seq {
    Seq(at.cast_unsigned() & MAX_SEQ)
}

/// Makes a new store, or opens the one that is there, and brings its schema up to date.
pub fn create(path: &Path) -> Result<Registrar, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    wal::write_again(path)?;
    let mut connection = connect(path, flags)?;
    if is_fresh(path, &connection)? {
        switch_to_wal(&connection)?;
    } else {
        check_ours(path, &connection)?;
    }
    migrate(&mut connection, &STEPS)?;
    erase::finish_at_opening(path, &connection)?;
    files::sync_directory(path)?;
    Ok(Registrar::new(connection))
}

/// Write-ahead mode, for good. SQLite does not wait for others here, so this does.
fn switch_to_wal(connection: &Connection) -> Result<(), Error> {
    let attempt = Error::while_trying("switch the new store to write-ahead mode");
    for _ in 0..BUSY_SECONDS * 100 {
        match connection.pragma_update(None, "journal_mode", "WAL").map_err(&attempt) {
            Err(Error::Busy(_)) => std::thread::sleep(Duration::from_millis(10)),
            done => return done,
        }
    }
    Err(Error::Busy(BUSY_SECONDS))
}

/// Opens a store for writing, bringing an older schema up to date. What was forgotten before and is
/// not erased yet is, unless somebody is in the way; says whether it had to stay.
pub(crate) fn open_to_write(path: &Path) -> Result<(Connection, bool), Error> {
    wal::write_again(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if check_ours(path, &connection)? < STEPS.len() {
        migrate(&mut connection, &STEPS)?;
    }
    // A copy that SQLite made (VACUUM INTO, a restored backup) is in another mode.
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(Error::while_trying("read the journal mode"))?;
    if mode != "wal" {
        switch_to_wal(&connection)?;
    }
    let erase_pending = !erase::finish_at_opening(path, &connection)?;
    Ok((connection, erase_pending))
}

/// Opens a store for reading only.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, Error> {
    let open = |immutable| {
        let connection = connect_read_only(path, immutable)?;
        check_ours(path, &connection).map(|found| (connection, found))
    };
    // On a medium that cannot be written SQLite cannot make its shared-memory file. Without a
    // write-ahead log beside it the file is complete, and may be read as it stands.
    let opened = match open(false) {
        Err(Error::CannotOpen { .. } | Error::ReadOnly) if !has_wal(path) => open(true),
        opened => opened,
    };
    let (connection, found) = opened?;
    if found < READABLE {
        return Err(Error::Older { path: path.to_owned(), found, known: READABLE });
    }
    Ok(connection)
}

fn has_wal(path: &Path) -> bool {
    std::fs::metadata(files::wal_of(path)).is_ok_and(|wal| wal.len() > 0)
}

fn connect_read_only(path: &Path, immutable: bool) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    if !immutable {
        return connect(path, flags);
    }
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'?' | b'#' | b'%' | 0x80.. => uri.push_str(&format!("%{byte:02x}")),
            _ => uri.push(char::from(*byte)),
        }
    }
    uri.push_str("?immutable=1");
    connect(Path::new(&uri), flags | OpenFlags::SQLITE_OPEN_URI)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let connection = open_file(path, flags)?;
    configure(&connection).map_err(or_foreign(path, "configure the connection"))?;
    Ok(connection)
}

/// A connection that has not read anything yet, and is not configured.
fn open_file(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let number = rusqlite::version_number();
    if number < MIN_SQLITE {
        return Err(Error::OldSqlite(rusqlite::version()));
    }
    let creates = flags.contains(OpenFlags::SQLITE_OPEN_CREATE);
    let is_uri = flags.contains(OpenFlags::SQLITE_OPEN_URI);
    if !creates && !is_uri {
        check_file(path)?;
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|parent| creates && !parent.is_dir()) {
        return Err(Error::NoDirectory(directory.to_owned()));
    }
    // A directory, a device or a pipe is nobody's store.
    if !is_uri && path.exists() && !path.is_file() {
        return Err(Error::Foreign(path.to_owned()));
    }
    // SQLite reads `:memory:` and `file:…` as names of its own; as paths they begin with a dot.
    let special =
        path.to_str().is_some_and(|name| name.starts_with([':']) || name.starts_with("file:"));
    let name = if special && !is_uri { Path::new(".").join(path) } else { path.to_owned() };
    Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(Error::while_trying("open the store"))
}

/// A file that is missing or empty is no store yet.
fn check_file(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() > 0 || !file.is_file() => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Unreadable { path: path.to_owned(), source: error })
        }
        _ => Err(Error::NotFound(path.to_owned())),
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "synchronous", "FULL")?;
    // What is freed is cleared, so that what is forgotten later has no copies left behind; what
    // does not fit into memory meanwhile goes into no other file.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "recursive_triggers", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Whether the file holds no database yet: missing, empty, or left by an `init` that died early.
fn is_fresh(path: &Path, connection: &Connection) -> Result<bool, Error> {
    let (application, version) = marks(path, connection)?;
    let objects: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(Error::while_trying("read the schema"))?;
    Ok(application == 0 && version == 0 && objects == 0)
}

/// The schema version of a store that is ours and not newer than this program.
fn check_ours(path: &Path, connection: &Connection) -> Result<usize, Error> {
    let (application, version) = marks(path, connection)?;
    if application != APPLICATION_ID {
        // A file that another process is just making, or left before it was made, is none yet.
        return Err(match is_fresh(path, connection)? {
            true => Error::NotFound(path.to_owned()),
            false => Error::Foreign(path.to_owned()),
        });
    }
    let found = usize::try_from(version).map_err(|_| Error::Foreign(path.to_owned()))?;
    if found > STEPS.len() {
        return Err(Error::Newer { path: path.to_owned(), found, known: STEPS.len() });
    }
    Ok(found)
}

fn marks(path: &Path, connection: &Connection) -> Result<(i64, i64), Error> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
    let read = || Ok((pragma("application_id")?, pragma("user_version")?));
    read().map_err(or_foreign(path, "read the store's marks"))
}

/// A file that is no database is somebody else's.
fn or_foreign(path: &Path, attempt: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Error::Foreign(path.to_owned()),
        _ => Error::while_trying(attempt)(error),
    }
}

/// Takes the steps that are still missing, each in a transaction with its mark.
fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), Error> {
    let attempt = Error::while_trying("bring the schema up to date");
    // If the process dies before a commit, neither the step nor its mark is there; another process
    // that migrates at the same time waits here and then finds nothing left to do.
    let tx =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&attempt)?;
    let taken: i64 =
        tx.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(&attempt)?;
    let taken = usize::try_from(taken).unwrap_or(0);
    for step in steps.iter().skip(taken) {
        tx.execute_batch(step).map_err(&attempt)?;
    }
    if taken < steps.len() {
        tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(&attempt)?;
        tx.pragma_update(None, "user_version", steps.len().cast_signed() as i64)
            .map_err(&attempt)?;
    }
    tx.commit().map_err(&attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Ground is kept, derived state makes way.
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
        assert_eq!(version(&db), 6);
        assert_eq!(erase::pending(&db).unwrap(), [(0, true)], "pages were freed uncleared");
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM event"), 1);
        assert_eq!(count("SELECT count(*) FROM manifest"), 1);
        assert_eq!(
            count("SELECT (SELECT count(*) FROM chunk) + (SELECT count(tallied) FROM pass)"),
            0
        );
    }

    /// Nothing of an older store moves but its version: the step only adds.
    #[test]
    fn a_store_of_schema_4_is_brought_up_to_date_by_who_writes_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let mut db = Connection::open(&path).unwrap();
        switch_to_wal(&db).unwrap();
        migrate(&mut db, &STEPS[..4]).unwrap();
        let identity = ipse_core::Identity([7; 32]);
        db.execute("INSERT INTO manifest VALUES (1, ?1, 'c')", [identity.to_string()]).unwrap();
        db.execute_batch(
            "INSERT INTO event VALUES ((1 << 40) + 1, zeroblob(16), 0, 't', x'00', x'00', 'p');
             INSERT INTO fact VALUES (1, 1, x'00', 'k', 'k', 'v', 0, x'00', 0);
             INSERT INTO tree_head VALUES (1, 'n');
             INSERT INTO producer VALUES (1, 1, 'k', 1);
             INSERT INTO setting VALUES ('retention', '1h');",
        )
        .unwrap();
        let reading = Reader::open(&path);
        assert!(matches!(reading.err(), Some(Error::Older { found: 4, known: 5, .. })));
        assert_eq!(version(&db), 4, "reading changes nothing");
        let writer = TokenWriter::open(&path).unwrap();
        assert_eq!(version(&db), 6);
        assert_eq!(writer.view(&identity).unwrap().tokens().unwrap(), []);
        assert_eq!(erase::pending(&db).unwrap(), [], "nothing is written anew");
        let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        for table in ["manifest", "event", "fact", "tree_head", "producer", "setting"] {
            assert_eq!(count(&format!("SELECT count(*) FROM {table}")), 1, "{table}");
        }
        let reader = Reader::open(&path).unwrap();
        let snapshot = reader.view(&identity).unwrap();
        assert_eq!(snapshot.schema_damage().unwrap(), [], "as if it had been made so");
    }

    #[test]
    fn positions_hold_log_and_seq() {
        let at = LogId(MAX_LOGS).at(Seq(MAX_SEQ));
        assert_eq!(at, i64::MAX);
        assert_eq!(seq_of(at), Seq(MAX_SEQ));
    }
}
