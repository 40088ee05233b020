//! What an operator has set, for the whole store.

use super::guard::{Duty, confine};
use super::{Reader, open_to_write};
use crate::Error;
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

/// The handle of `config`.
pub struct Settings {
    connection: Connection,
}

impl Settings {
    /// Opens a store for setting things, and for nothing else.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (mut connection, _) = open_to_write(path)?;
        confine(&mut connection, Duty::Configure)?;
        Ok(Settings { connection })
    }

    /// Sets a value, or takes it away.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Error> {
        let set = match value {
            Some(value) => self.connection.execute(
                "INSERT INTO setting (name, value) VALUES (?1, ?2) \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, value),
            ),
            None => self.connection.execute("DELETE FROM setting WHERE name = ?1", [name]),
        };
        set.map(drop).map_err(Error::while_trying("change a setting"))
    }

    /// Runs any statement, to show in a test that the guard refuses it.
    #[doc(hidden)]
    pub fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }
}

impl Reader {
    /// What a setting says.
    pub fn setting(&self, name: &str) -> Result<Option<String>, Error> {
        self.connection
            .query_row("SELECT value FROM setting WHERE name = ?1", [name], |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read a setting"))
    }
}
