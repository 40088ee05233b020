//! Errors of a store: `Display` says what was attempted, `source` says why.

use crate::MAX_LIVE_TOKENS;
use std::path::PathBuf;

/// Why a store could not do what was asked.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no file.
    #[error("there is no store at {}", .0.display())]
    NotFound(PathBuf),
    /// The file that is written is no longer the one under its name, or was emptied.
    #[error(
        "{} was removed, replaced or emptied while it was open; what was written last may be lost",
        .0.display()
    )]
    Gone(PathBuf),
    /// A file or a directory could not be synced, so nothing was acknowledged.
    #[error("could not make {} durable", path.display())]
    NotDurable {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A store cannot be made in a directory that is not there.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// The path cannot even be looked at.
    #[error("{} cannot be opened", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is a file, but not one of ours.
    #[error("{} is not an ipse store; it is left untouched", .0.display())]
    Foreign(PathBuf),
    /// The store was written by a newer ipse.
    #[error("{} has schema {found}, and this ipse knows up to {known}", path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its schema version.
        found: usize,
        /// The newest version known here.
        known: usize,
    },
    /// The store was written by an older ipse and must be opened for writing once.
    #[error("{} has schema {found}, older than {known}", path.display())]
    Older {
        /// The store.
        path: PathBuf,
        /// Its schema version.
        found: usize,
        /// The version needed.
        known: usize,
    },
    /// The linked SQLite has a bug that can corrupt a write-ahead log.
    #[error("SQLite {0} is too old: 3.51.3 or later is needed")]
    OldSqlite(&'static str),
    /// No identity was registered, or not this one.
    #[error("identity {0} is not registered in this store")]
    UnknownIdentity(String),
    /// Another process held the write lock for too long.
    #[error("another process has been writing for over {0} s")]
    Busy(u64),
    /// The file or its directory cannot be written.
    #[error("the store is read-only")]
    ReadOnly,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// A named limit of the format.
    #[error("{0}")]
    Limit(&'static str),
    /// Tokens that nobody revoked pile up.
    #[error("an identity has at most {MAX_LIVE_TOKENS} live tokens")]
    TooManyTokens,
    /// A log can be taken in only where there is none.
    #[error("the log is not empty")]
    NotEmpty,
    /// Another process stored a tree head meanwhile.
    #[error("another process stored a tree head at the same time")]
    HeadMoved,
    /// Stored bytes contradict each other; never retried.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The file, or one beside it, cannot be opened.
    #[error("could not {attempt}")]
    CannotOpen {
        /// What was attempted.
        attempt: &'static str,
        /// Why it failed.
        source: Cause,
    },
    /// The database refused.
    #[error("could not {attempt}")]
    Database {
        /// What was attempted.
        attempt: &'static str,
        /// Why it failed.
        source: Cause,
    },
    /// No engine of this build opens such an address.
    #[error("this ipse stores in files and cannot open `{0}…` (PostgreSQL is not supported yet)")]
    UnknownScheme(&'static str),
    /// The address is empty.
    #[error("the address of the store is empty")]
    NoAddress,
}

/// The error of an engine's own library.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Seconds that a writer waits for another process before it gives up.
pub(crate) const BUSY_SECONDS: u64 = 10;

impl Error {
    /// Whether it says that the file itself cannot be read as a store.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Corrupt(_) | Error::Database { .. })
    }
}
