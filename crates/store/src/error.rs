//! Errors of a store: `Display` states the failed operation, `source` the cause.

use crate::MAX_LIVE_TOKENS;
use std::path::PathBuf;

/// An error of a store.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The store file does not exist.
    #[error("there is no store at {}", .0.display())]
    NotFound(PathBuf),
    /// The open file was removed, replaced or emptied by another process.
    #[error(
        "{} was removed, replaced or emptied while it was open; the last writes may be lost",
        .0.display()
    )]
    Gone(PathBuf),
    /// A file or a directory could not be synced, so nothing was acknowledged.
    #[error("could not make {} durable", path.display())]
    NotDurable {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The directory for a new store does not exist.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// The path cannot be read.
    #[error("{} cannot be opened", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file exists and is not an ipse store.
    #[error("{} is not an ipse store; it is left untouched", .0.display())]
    Foreign(PathBuf),
    /// The path names a directory.
    #[error("{} is a directory, not a store", .0.display())]
    Directory(PathBuf),
    /// The store was written by a newer ipse.
    #[error("{} has schema {found}, and this ipse knows up to {known}", path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its schema version.
        found: usize,
        /// The newest version that this build supports.
        known: usize,
    },
    /// The store has an older schema and must be migrated.
    #[error("{} has schema {found}, older than {known}", path.display())]
    Older {
        /// The store.
        path: PathBuf,
        /// Its schema version.
        found: usize,
        /// The version that this build needs.
        known: usize,
    },
    /// The linked SQLite has a bug that can corrupt a write-ahead log.
    #[error("SQLite {0} is too old: 3.51.3 or later is needed")]
    OldSqlite(&'static str),
    /// The identity is not registered.
    #[error("identity {0} is not registered in this store")]
    UnknownIdentity(String),
    /// Another process held the write lock for too long.
    #[error("another process has been writing for over {0} s")]
    Busy(u64),
    /// The file or its directory is not writable.
    #[error("the store is read-only")]
    ReadOnly,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// A limit of the format was reached.
    #[error("{0}")]
    Limit(&'static str),
    /// The limit of live tokens was reached.
    #[error("an identity has at most {MAX_LIVE_TOKENS} live tokens")]
    TooManyTokens,
    /// A log can be restored into an empty log only.
    #[error("the log is not empty")]
    NotEmpty,
    /// Another process stored a tree head at the same time.
    #[error("another process stored a tree head at the same time")]
    HeadMoved,
    /// Stored bytes are corrupt or contradict each other. A retry never helps.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The store file or one of its companion files cannot be opened.
    #[error("could not {attempt}")]
    CannotOpen {
        /// The failed operation.
        attempt: &'static str,
        /// The cause.
        source: Cause,
    },
    /// Any other error of the database.
    #[error("could not {attempt}")]
    Database {
        /// The failed operation.
        attempt: &'static str,
        /// The cause.
        source: Cause,
    },
    /// No engine of this build supports the scheme of the address.
    #[error("this ipse stores in files and cannot open `{0}…` (PostgreSQL is not supported yet)")]
    UnknownScheme(&'static str),
    /// The address is empty.
    #[error("the address of the store is empty")]
    NoAddress,
}

/// The error of an engine's own library.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Seconds that a writer waits for the write lock.
pub(crate) const BUSY_SECONDS: u64 = 10;

impl Error {
    /// Whether the file cannot be read as a store.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Corrupt(_) | Error::Database { .. })
    }
}
