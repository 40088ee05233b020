//! One connection to a file: transactions and cached state.
//!
//! **Invariants**
//! - A connection that appends checks the store's files before and after every commit.
//! - A write transaction begins only on the schema of this program, even if a newer program
//!   migrated the store after the connection was opened.
//! - The cached index of names is trusted only after a commit: a rollback clears it.

use super::checkpoint::Checkpointer;
use super::erase::{mark_erased, pending};
use super::files::{Files, sync_directory, sync_new_names};
use super::guard::confine;
use super::refs::Refs;
use super::{STEPS, at, audit, open_to_read, open_to_write, refs, seq_of, wal};
use crate::Error;
use crate::session::{Access, Duty, Log, Mark, Result, Session, Transactions, Upkeep};
use ipse_core::{EventRef, Identity, Seq};
use rusqlite::{CachedStatement, Connection};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::path::Path;

/// A connection with one duty.
pub(super) struct Connected {
    // Dropped before the connection: its thread has its own connection.
    checkpointer: Option<RefCell<Checkpointer>>,
    pub(super) connection: Connection,
    pub(super) refs: RefCell<Refs>,
    files: RefCell<Files>,
    appends: bool,
    /// Whether a write transaction is open.
    writing: Cell<bool>,
    /// Whether the index in memory was updated to the last position in this transaction.
    pub(super) follows: Cell<bool>,
}

impl Connected {
    /// Opens a store for a duty.
    pub(super) fn open(path: &Path, duty: Duty) -> Result<Self> {
        let appends = matches!(duty, Duty::Write | Duty::Forget | Duty::Configure | Duty::Tokens);
        let mut connection = match duty {
            Duty::Read => open_to_read(path)?,
            _ => open_to_write(path)?,
        };
        let mut checkpointer = None;
        match duty {
            Duty::Read => {}
            Duty::Write | Duty::Forget => {
                checkpointer = Some(RefCell::new(Checkpointer::attach(&mut connection, path)?));
            }
            Duty::Sign | Duty::Cosign => sync_new_names(path)?,
            Duty::Register | Duty::Configure | Duty::Tokens | Duty::Artefacts => {
                sync_directory(path)?;
            }
        }
        if duty != Duty::Read {
            confine(&mut connection, duty)?;
        }
        let files = if appends { Files::to_append(path)? } else { Files::at(path) };
        let (refs, files) = (RefCell::default(), RefCell::new(files));
        let (writing, follows) = (Cell::new(false), Cell::new(false));
        Ok(Connected { checkpointer, connection, refs, files, appends, writing, follows })
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql).map_err(Error::while_trying("prepare a query"))
    }

    /// Whether names are looked up in memory: inside a transaction of a session that appends.
    pub(super) fn indexes(&self) -> bool {
        self.appends && self.writing.get()
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Fails if another process migrated the store to a newer schema. The write lock prevents a
    /// change until the transaction ends.
    fn check_schema(&self) -> Result<()> {
        let attempt = Error::while_trying("read the schema version");
        let mut statement = self.prepare("PRAGMA user_version")?;
        let found: i64 = statement.query_row([], |row| row.get(0)).map_err(&attempt)?;
        let (found, known) = (usize::try_from(found).unwrap_or(usize::MAX), STEPS.len());
        let path = self.connection.path().unwrap_or_default().into();
        match found.cmp(&known) {
            Ordering::Equal => Ok(()),
            Ordering::Less => Err(Error::Older { path, found, known }),
            Ordering::Greater => Err(Error::Newer { path, found, known }),
        }
    }

    /// Runs `work` in one write transaction: the open one, or one of its own.
    pub(super) fn atomically<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.writing.get() {
            return work();
        }
        self.begin(Access::Write)?;
        let done = work().and_then(|value| self.commit().map(|()| value));
        if done.is_err() {
            self.rollback();
        }
        done
    }
}

impl Session for Connected {}

fn no_identity(hash: &str) -> Error {
    Error::Corrupt(format!("an identity is no hash: {hash}"))
}

impl Transactions for Connected {
    fn begin(&self, access: Access) -> Result<()> {
        let sql = match access {
            Access::Read => "BEGIN",
            Access::Write => "BEGIN IMMEDIATE",
        };
        if self.appends && access == Access::Write {
            self.files.borrow_mut().check_before()?;
        }
        let attempt = match access {
            Access::Read => "begin to read",
            Access::Write => "begin to write",
        };
        self.run(sql).map_err(Error::while_trying(attempt))?;
        if access == Access::Write {
            self.check_schema().inspect_err(|_| drop(self.run("ROLLBACK")))?;
        }
        self.writing.set(access == Access::Write);
        self.follows.set(false);
        Ok(())
    }

    fn commit(&self) -> Result<()> {
        if self.indexes() {
            self.files.borrow_mut().make_names_durable()?;
        }
        self.run("COMMIT").map_err(Error::while_trying("make the batch durable"))?;
        if !self.indexes() {
            self.writing.set(false);
            return Ok(());
        }
        self.writing.set(false);
        self.refs.borrow_mut().committed();
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.borrow_mut().after_commit();
        }
        self.files.borrow_mut().check_after()
    }

    fn rollback(&self) {
        self.writing.set(false);
        self.refs.borrow_mut().rolled_back();
        // After some errors SQLite has rolled back automatically. If this fails, the connection is
        // broken, and its next statement returns an error.
        if !self.connection.is_autocommit() {
            let _ = self.run("ROLLBACK");
        }
    }

    fn savepoint(&self) -> Result<()> {
        self.run("SAVEPOINT pass").map_err(Error::while_trying("begin a pass"))
    }

    fn release(&self) -> Result<()> {
        self.run("RELEASE pass").map_err(Error::while_trying("record the pass"))
    }

    fn rollback_to(&self) {
        self.refs.borrow_mut().rolled_back();
        self.follows.set(false);
        for sql in ["ROLLBACK TO pass", "RELEASE pass"] {
            let _ = self.run(sql);
        }
    }
}

impl Upkeep for Connected {
    fn is_usable(&self) -> bool {
        self.connection.is_autocommit() && self.files.borrow().check().is_ok()
    }

    fn version(&self) -> Result<i64> {
        self.files.borrow().check()?;
        self.connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(Error::while_trying("check whether the store has changed"))
    }

    fn marks(&self) -> Result<Vec<(Identity, Mark)>> {
        let sql = "SELECT m.identity_hash, (SELECT max(at) FROM event WHERE at BETWEEN \
                   m.log << 40 AND m.log << 40 | ((1 << 40) - 1)), \
                   (SELECT note FROM tree_head WHERE log = m.log) FROM manifest m ORDER BY m.log";
        self.rows(sql, [], "find the changed logs", |row| {
            let hash: String = row.get(0)?;
            let head = row.get::<_, Option<i64>>(1)?.map_or(Seq(0), seq_of);
            let mark = Mark { head, tree_head: row.get(2)? };
            let identity = Identity::parse(&hash);
            Ok(identity.map(|it| (it, mark)).ok_or_else(|| no_identity(&hash)))
        })
    }

    fn erase_pending(&self) -> Result<bool> {
        Ok(!pending(&self.connection)?.is_empty())
    }

    fn mark_erased(&self, log: Log, head: Seq, freed: u64) -> Result<()> {
        mark_erased(&self.connection, at(log, head), at(log, Seq(0)), freed)
    }

    fn file_damage(&self) -> Result<Vec<String>> {
        audit::file_damage(&self.connection)
    }

    fn schema_damage(&self) -> Result<Vec<(String, &'static str)>> {
        audit::schema_damage(&self.connection)
    }

    fn journal_damage(&self) -> Result<Option<u64>> {
        wal::journal_damage(&self.connection)
    }

    fn rows_of_nobody(&self) -> Result<Vec<(&'static str, u64)>> {
        audit::rows_of_nobody(&self.connection)
    }

    fn index_damage(&self, log: Log, names: &[EventRef]) -> Result<Vec<(String, String)>> {
        refs::damage(&self.connection, log, names)
    }
}
