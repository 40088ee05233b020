//! The embedded store: one SQLite file in write-ahead mode, any number of identities.
//!
//! **Invariants**
//! - Only [`create`] creates a file. All other functions open an existing file, and reject a
//!   foreign file or one of a newer ipse before they change a byte.
//! - Every connection that writes syncs at each commit (`synchronous=FULL`) and zeroes freed bytes
//!   (`secure_delete`).
//! - Each schema step is atomic.
//! - Before the first commit of a handle, the names of the store's files are durable, and so is the
//!   write-ahead log that a dead process left behind.

mod artefact;
mod audit;
mod checkpoint;
mod chunk;
mod cosignature;
mod erase;
mod error;
mod event;
mod fact;
mod files;
mod guard;
mod identity;
mod migration;
mod refs;
mod session;
mod slack;
mod statement;
mod token;
mod tree;
mod wal;

#[cfg(test)]
#[path = "../../tests/attacks/mod.rs"]
mod attacks;

pub use slack::forgets_in_place;

use crate::error::BUSY_SECONDS;
use crate::session::{Duty, Engine, Log, Session};
use crate::{Erased, Error, FileBytes, Location, Migrated, Patience};
use ipse_core::Seq;
use migration::{STEPS, migrate};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use session::Connected;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `ipse` in ASCII: marks the file as an ipse store.
const APPLICATION_ID: i64 = 0x6970_7365;

/// The first SQLite without the bug that can corrupt a write-ahead log after a reset.
const MIN_SQLITE: i32 = 3_051_003;

const SEQ_BITS: u32 = 40;
/// Maximum number of events of one log, 2⁴⁰ − 1: position and log share one 64-bit integer.
const MAX_SEQ: u64 = Seq::MAX.0;

// A position fits into its bits.
const _: () = assert!(MAX_SEQ == (1 << SEQ_BITS) - 1);
/// Maximum number of identities of one store: the other bits of that integer, without the sign.
const MAX_LOGS: i64 = (1 << 23) - 1;

/// Size of the cache of prepared statements: more than this crate uses.
const STATEMENTS: usize = 64;

/// The key of a position: the log and the position in one integer.
fn at(log: Log, seq: Seq) -> i64 {
    debug_assert!(seq.0 <= MAX_SEQ, "BUG: seq beyond its bits");
    log.number << SEQ_BITS | seq.0.cast_signed()
}

/// The bounds of a range and the limit of a page, as parameters of a query.
fn span(log: Log, range: &RangeInclusive<Seq>, limit: usize) -> (i64, i64, i64) {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let last = (*range.end()).min(Seq::MAX);
    (at(log, (*range.start()).min(Seq::MAX)), at(log, last), limit)
}

fn seq_of(at: i64) -> Seq {
    Seq(at.cast_unsigned() & MAX_SEQ)
}

/// A store in a file.
pub(crate) struct Sqlite {
    path: PathBuf,
    location: Location,
}

impl Sqlite {
    pub(crate) fn at(path: &Path) -> Self {
        // The process may change its working directory later.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Sqlite { path: absolute, location: Location::file(path) }
    }
}

impl Engine for Sqlite {
    fn location(&self) -> &Location {
        &self.location
    }

    fn session(&self, duty: Duty) -> Result<Box<dyn Session>, Error> {
        Ok(Box::new(Connected::open(&self.path, duty)?))
    }

    fn finish_erasing(&self, patience: Patience) -> Result<Erased, Error> {
        erase::finish_erasing(&self.path, patience)
    }

    fn copy_to(&self, path: &Path) -> Result<(), Error> {
        let name = path.to_string_lossy();
        open_to_read(&self.path)?
            .execute("VACUUM INTO ?1", [name.as_ref()])
            .map(drop)
            .map_err(Error::while_trying("copy the store"))
    }
}

/// The sizes of the files of a store.
pub(crate) fn file_bytes(path: &Path) -> FileBytes {
    FileBytes { store: files::bytes(path), wal: files::bytes(&files::wal_of(path)) }
}

/// Creates a store, or migrates the schema of an existing one.
pub(crate) fn create(path: &Path) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    wal::write_again(path)?;
    let mut connection = connect(path, flags)?;
    if is_fresh(path, &connection)? {
        switch_to_wal(&connection)?;
    } else {
        check_ours(path, &connection)?;
    }
    migrate(&mut connection, &STEPS)?;
    files::sync_directory(path)
}

/// Migrates the schema of a store; `None` if it is up to date.
pub(crate) fn migrate_at(path: &Path) -> Result<Option<Migrated>, Error> {
    wal::write_again(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if check_ours(path, &connection)? == STEPS.len() {
        return Ok(None);
    }
    // Another process may run some or all of the steps meanwhile.
    let done = migrate(&mut connection, &STEPS)?;
    if done == 0 {
        return Ok(None);
    }
    files::sync_directory(path)?;
    Ok(Some(Migrated { from: STEPS.len() - done, to: STEPS.len() }))
}

/// Switches the file to write-ahead mode permanently. SQLite does not wait for the lock here, so
/// this function retries.
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

/// Opens a store for writing.
fn open_to_write(path: &Path) -> Result<Connection, Error> {
    wal::write_again(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check_current(path, &connection)?;
    // A copy by SQLite (VACUUM INTO, a restored backup) is in another mode.
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(Error::while_trying("read the journal mode"))?;
    if mode != "wal" {
        switch_to_wal(&connection)?;
        // The first read creates the files of the write-ahead log.
        check_current(path, &connection)?;
    }
    Ok(connection)
}

/// Opens a store for reading only.
fn open_to_read(path: &Path) -> Result<Connection, Error> {
    let open = |immutable| {
        let connection = connect_read_only(path, immutable)?;
        check_current(path, &connection).map(|()| connection)
    };
    // On a read-only medium SQLite cannot create its shared-memory file. Without a write-ahead log
    // the main file is complete, and can be read as immutable.
    match open(false) {
        Err(Error::CannotOpen { .. } | Error::ReadOnly) if !has_wal(path) => open(true),
        opened => opened,
    }
}

/// Fails if the schema is not the newest.
fn check_current(path: &Path, connection: &Connection) -> Result<(), Error> {
    let (found, known) = (check_ours(path, connection)?, STEPS.len());
    match found == known {
        true => Ok(()),
        false => Err(Error::Older { path: path.to_owned(), found, known }),
    }
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

/// Opens a connection without configuring it. Nothing is read yet.
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
    // A directory, a device or a pipe is not a store.
    if !is_uri && path.is_dir() {
        return Err(Error::Directory(path.to_owned()));
    }
    if !is_uri && path.exists() && !path.is_file() {
        return Err(Error::Foreign(path.to_owned()));
    }
    // SQLite gives `:memory:` and `file:…` a special meaning; the prefix `./` makes them paths.
    let special =
        path.to_str().is_some_and(|name| name.starts_with([':']) || name.starts_with("file:"));
    let name = if special && !is_uri { Path::new(".").join(path) } else { path.to_owned() };
    Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(Error::while_trying("open the store"))
}

/// Fails if the file is missing or empty: it is no store yet.
fn check_file(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(file) if file.len() > 0 && file.is_file() => check_readable(path),
        Ok(file) if !file.is_file() => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Unreadable { path: path.to_owned(), source: error })
        }
        _ => Err(Error::NotFound(path.to_owned())),
    }
}

/// An error with the system's reason: SQLite reports only that the file cannot be opened. The file
/// is not opened here, because closing it would release the locks of this process on it.
fn check_readable(path: &Path) -> Result<(), Error> {
    match rustix::fs::access(path, rustix::fs::Access::READ_OK) {
        Err(rustix::io::Errno::ACCESS) => {
            let source = rustix::io::Errno::ACCESS.into();
            Err(Error::Unreadable { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(BUSY_SECONDS))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Query plans must not depend on bound values. Otherwise SQLite prepares every statement with a
    // bound LIMIT again on each run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Zero freed bytes, so that content that is forgotten later has no stale copies. Temporary data
    // stays in memory, so that no other file gets a copy.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "recursive_triggers", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Whether the file has no database yet: missing, empty, or left by an `init` that died early.
fn is_fresh(path: &Path, connection: &Connection) -> Result<bool, Error> {
    let (application, version) = marks(path, connection)?;
    let objects: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(Error::while_trying("read the schema"))?;
    Ok(application == 0 && version == 0 && objects == 0)
}

/// The schema version of a store. Fails if the file is foreign or newer than this program.
fn check_ours(path: &Path, connection: &Connection) -> Result<usize, Error> {
    let (application, version) = marks(path, connection)?;
    if application != APPLICATION_ID {
        // A file that another process is creating, or died while creating, is no store yet.
        return Err(match is_fresh(path, connection)? {
            true => Error::NotFound(path.to_owned()),
            false => Error::Foreign(path.to_owned()),
        });
    }
    let found = migration::steps_taken(version).ok_or_else(|| Error::Foreign(path.to_owned()))?;
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

/// Maps the error for a file that is no database to [`Error::Foreign`].
fn or_foreign(path: &Path, attempt: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Error::Foreign(path.to_owned()),
        _ => Error::while_trying(attempt)(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use ipse_core::Identity;

    /// A server of an older version may have the store open when a newer one migrates it.
    #[test]
    fn a_handle_that_is_open_writes_nothing_to_a_newer_schema() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let store = Store::create(&Location::file(&path)).unwrap();
        let identity = store.register("{}").unwrap().identity;
        let mut writer = store.writer(&identity).unwrap();
        writer.begin().unwrap().commit().unwrap();
        let db = Connection::open(&path).unwrap();
        db.pragma_update(None, "user_version", 999).unwrap();
        let newer = |error: Option<Error>| matches!(error, Some(Error::Newer { .. }));
        assert!(newer(writer.begin().err()));
        assert!(newer(store.register("{\"other\":1}").err()));
        db.pragma_update(None, "user_version", STEPS.len().cast_signed() as i64).unwrap();
        writer.begin().unwrap().commit().unwrap();
    }

    #[test]
    fn positions_hold_log_and_seq() {
        let at = at(Log { number: MAX_LOGS, identity: Identity([0; 32]) }, Seq(MAX_SEQ));
        assert_eq!(at, i64::MAX);
        assert_eq!(seq_of(at), Seq(MAX_SEQ));
    }
}
