//! Registered manifests in SQLite.
//!
//! **Invariant:** a manifest is stored once as bytes under its SHA-256, and never changes.

use super::MAX_LOGS;
use super::session::Connected;
use crate::session::{Identities, Log, Result};
use crate::{Error, Registered};
use ipse_core::{Identity, sha256};
use rusqlite::OptionalExtension;

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
                let sql = "SELECT coalesce(max(log), 0) FROM manifest";
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
}
