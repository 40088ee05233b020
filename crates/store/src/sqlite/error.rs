//! Errors of SQLite as errors of a store.

use crate::Error;
use crate::error::BUSY_SECONDS;
use rusqlite::ErrorCode;

impl Error {
    /// Maps a database error to its own variant if an operator can fix the cause.
    pub(super) fn while_trying(attempt: &'static str) -> impl Fn(rusqlite::Error) -> Self {
        move |source| match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy(BUSY_SECONDS),
            Some(ErrorCode::ReadOnly) => Error::ReadOnly,
            Some(ErrorCode::CannotOpen) => Error::CannotOpen { attempt, source: source.into() },
            Some(ErrorCode::DiskFull) => Error::Full,
            Some(ErrorCode::DatabaseCorrupt) => Error::Corrupt(format!("{attempt}: {source}")),
            _ => Error::Database { attempt, source: source.into() },
        }
    }
}
