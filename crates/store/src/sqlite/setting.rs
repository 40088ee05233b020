//! What an operator has set: for the whole store, and who may sign for an identity.

use super::files::sync_directory;
use super::guard::{Duty, confine};
use super::register::find_log;
use super::{Reader, open_to_write};
use crate::{Error, Signatures};
use ipse_core::Identity;
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
        sync_directory(path)?;
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

    /// Lets a producer sign for an identity, by its verifier key; says whether it may. A key that
    /// was revoked stays revoked.
    pub fn put_producer(&mut self, identity: &Identity, key: &str) -> Result<bool, Error> {
        let log = self.log(identity)?;
        let put = || {
            let sql = "SELECT revoked FROM producer WHERE log = ?1 AND key = ?2";
            let revoked =
                self.connection.query_row(sql, (log, key), |row| row.get(0)).optional()?;
            if revoked.is_none() {
                let sql = "INSERT INTO producer (log, key, revoked) VALUES (?1, ?2, 0)";
                self.connection.execute(sql, (log, key))?;
            }
            Ok(revoked != Some(true))
        };
        put().map_err(Error::while_trying("register a producer"))
    }

    /// Lets the producer of that name sign no more; says whether there was one that could.
    pub fn revoke_producer(&mut self, identity: &Identity, name: &str) -> Result<bool, Error> {
        let log = self.log(identity)?;
        // A verifier key begins with the name and a plus sign, which no name holds.
        let sql = "UPDATE producer SET revoked = 1 \
                   WHERE log = ?1 AND revoked = 0 AND instr(key, ?2) = 1";
        self.connection
            .execute(sql, (log, format!("{name}+")))
            .map(|rows| rows > 0)
            .map_err(Error::while_trying("revoke a producer"))
    }

    /// Sets what is to be done about signatures of an identity's producers.
    pub fn set_signatures(
        &mut self,
        identity: &Identity,
        signatures: Signatures,
    ) -> Result<(), Error> {
        let log = self.log(identity)?;
        let sql = "INSERT INTO policy (log, signatures) VALUES (?1, ?2) \
                   ON CONFLICT (log) DO UPDATE SET signatures = excluded.signatures";
        self.connection
            .execute(sql, (log, signatures as i64))
            .map(drop)
            .map_err(Error::while_trying("set the policy on signatures"))
    }

    fn log(&self, identity: &Identity) -> Result<i64, Error> {
        let log = find_log(&self.connection, identity)?;
        Ok(log.ok_or_else(|| Error::UnknownIdentity(identity.to_string()))?.0)
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
