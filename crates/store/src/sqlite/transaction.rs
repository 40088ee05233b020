//! Transactions and savepoints by prepared statements: a commit of one event prepares nothing.
//!
//! **Invariant:** what is opened is either committed or, however its scope is left, rolled back.

use rusqlite::Connection;

/// What is opened: a transaction that waits for other writers, or a savepoint within it; or, for a
/// pass that is alone in its transaction, nothing more. SQLite keeps a copy in memory of every page
/// that changes after a savepoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Batch,
    Pass,
    PassAlone,
}

/// A transaction or savepoint under way.
pub(super) struct Open<'c> {
    pub(super) connection: &'c Connection,
    level: Level,
    done: bool,
}

impl<'c> Open<'c> {
    pub(super) fn begin(connection: &'c Connection, level: Level) -> rusqlite::Result<Self> {
        let sql = match level {
            Level::Batch => Some("BEGIN IMMEDIATE"),
            Level::Pass => Some("SAVEPOINT pass"),
            Level::PassAlone => None,
        };
        sql.map_or(Ok(()), |sql| run(connection, sql))?;
        Ok(Open { connection, level, done: false })
    }

    pub(super) fn commit(mut self) -> rusqlite::Result<()> {
        let sql = match self.level {
            Level::Batch => Some("COMMIT"),
            Level::Pass => Some("RELEASE pass"),
            Level::PassAlone => None,
        };
        sql.map_or(Ok(()), |sql| run(self.connection, sql))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let undo: &[&str] = match self.level {
            // After some errors SQLite has rolled back by itself.
            Level::Batch | Level::PassAlone if self.connection.is_autocommit() => &[],
            Level::Batch | Level::PassAlone => &["ROLLBACK"],
            Level::Pass => &["ROLLBACK TO pass", "RELEASE pass"],
        };
        // If this fails, the connection is beyond help; its next statement says so.
        undo.iter().for_each(|sql| drop(run(self.connection, sql)));
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
