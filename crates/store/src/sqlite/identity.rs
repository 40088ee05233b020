//! Registered manifests in SQLite.
//!
//! **Invariants:** a manifest is stored once as bytes under its SHA-256, and never changes. It is
//! removed only while its log has no event, with all rows of its log, and the number of the log is
//! never used again.

use super::MAX_LOGS;
use super::session::Connected;
use crate::session::{Events, Identities, Log, Result};
use crate::{Error, Registered};
use ipse_core::{Identity, Seq, sha256};
use rusqlite::OptionalExtension;

/// Removes a log: the manifest first, because stored files are kept while it is there. All other
/// tables have rows only for logs with events.
const REMOVAL: [&str; 9] = [
    "DELETE FROM manifest WHERE log = ?1",
    "DELETE FROM token WHERE log = ?1",
    "DELETE FROM producer WHERE log = ?1",
    "DELETE FROM policy WHERE log = ?1",
    "DELETE FROM retention WHERE log = ?1",
    "DELETE FROM tree_head WHERE log = ?1",
    "DELETE FROM artefact WHERE log = ?1",
    "DELETE FROM act_owed WHERE log = ?1",
    "INSERT INTO retired (log) VALUES (?1)",
];

impl Identities for Connected {
    fn log(&self, identity: &Identity) -> Result<Option<Log>> {
        self.prepare("SELECT log FROM manifest WHERE identity_hash = ?1")?
            .query_row([identity.to_string()], |row| {
                Ok(Log { number: row.get(0)?, identity: *identity })
            })
            .optional()
            .map_err(Error::while_trying("look up the identity"))
    }

    fn manifests(&self) -> Result<Vec<(String, String)>> {
        let sql = "SELECT identity_hash, canonical FROM manifest ORDER BY log";
        self.rows(sql, [], "read the manifests", |row| Ok(Ok((row.get(0)?, row.get(1)?))))
    }

    fn register(&self, canonical: &str) -> Result<Registered> {
        let attempt = "register the manifest";
        let identity = Identity(sha256(&[canonical.as_bytes()]));
        self.atomically(|| {
            let created = self.log(&identity)?.is_none();
            if created {
                let sql = "SELECT max(coalesce((SELECT max(log) FROM manifest), 0), \
                           coalesce((SELECT max(log) FROM retired), 0))";
                let logs: i64 = self.one(sql, [], attempt, |row| row.get(0))?;
                if logs >= MAX_LOGS {
                    return Err(Error::Limit("a store holds at most 8388607 identities"));
                }
                let sql = "INSERT INTO manifest (log, identity_hash, canonical) \
                           VALUES (?1, ?2, ?3)";
                self.execute(sql, (logs + 1, identity.to_string(), canonical), attempt)?;
            }
            Ok(Registered { identity, created })
        })
    }

    fn remove(&self, log: Log) -> Result<()> {
        let attempt = "remove the identity";
        self.atomically(|| {
            if self.log(&log.identity)? != Some(log) {
                return Err(Error::UnknownIdentity(log.identity.to_string()));
            }
            if self.head(log)? != Seq(0) {
                return Err(Error::NotEmpty);
            }
            REMOVAL.iter().try_for_each(|sql| self.execute(sql, [log.number], attempt).map(drop))
        })
    }
}
