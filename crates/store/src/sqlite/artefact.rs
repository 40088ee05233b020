//! Stored files of a log in SQLite.

use super::session::Connected;
use crate::Error;
use crate::session::{Artefacts, Log, Result};
use ipse_core::Digest;
use rusqlite::OptionalExtension;

impl Artefacts for Connected {
    fn artefact(&self, log: Log, sha256: &Digest) -> Result<Option<Vec<u8>>> {
        self.prepare("SELECT bytes FROM artefact WHERE log = ?1 AND sha256 = ?2")?
            .query_row((log.number, sha256.0), |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read a stored file"))
    }

    fn artefacts(&self, log: Log) -> Result<Vec<Vec<u8>>> {
        let sql = "SELECT sha256 FROM artefact WHERE log = ?1 ORDER BY number";
        self.rows(sql, [log.number], "list the stored files", |row| Ok(Ok(row.get(0)?)))
    }

    fn put_artefact(&self, log: Log, sha256: &Digest, bytes: &[u8]) -> Result<bool> {
        // Two processes may store the same file at once: one of them does.
        self.atomically(|| {
            if self.artefact(log, sha256)?.is_some() {
                return Ok(false);
            }
            let sql = "INSERT INTO artefact (log, sha256, bytes) VALUES (?1, ?2, ?3)";
            self.execute(sql, (log.number, sha256.0, bytes), "store a file").map(|_| true)
        })
    }
}
