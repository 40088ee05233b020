//! Transactions and savepoints by prepared statements: a commit of one event prepares nothing.
//!
//! **Invariant:** what is opened is either committed or, however its scope is left, rolled back.

use rusqlite::Connection;

/// What is opened: a transaction that waits for other writers, or a savepoint within it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Batch,
    Pass,
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
            Level::Batch => "BEGIN IMMEDIATE",
            Level::Pass => "SAVEPOINT pass",
        };
        run(connection, sql)?;
        Ok(Open { connection, level, done: false })
    }

    pub(super) fn commit(mut self) -> rusqlite::Result<()> {
        run(
            self.connection,
            match self.level {
                Level::Batch => "COMMIT",
                Level::Pass => "RELEASE pass",
            },
        )?;
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
            Level::Batch if self.connection.is_autocommit() => &[],
            Level::Batch => &["ROLLBACK"],
            Level::Pass => &["ROLLBACK TO pass", "RELEASE pass"],
        };
        // If this fails, the connection is beyond help; its next statement says so.
        undo.iter().for_each(|sql| drop(run(self.connection, sql)));
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
