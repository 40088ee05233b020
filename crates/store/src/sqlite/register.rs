//! Registering a manifest: the only write that touches who an agent is, and it only ever adds.

use super::{LogId, MAX_LOGS};
use crate::Error;
use ipse_core::{Identity, sha256};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

/// The handle of `init`.
pub struct Registrar {
    connection: Connection,
}

/// What registering found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registered {
    /// Who the manifest is.
    pub identity: Identity,
    /// Whether it was not there before.
    pub created: bool,
}

impl Registrar {
    pub(super) fn new(connection: Connection) -> Self {
        Registrar { connection }
    }

    /// Adds a manifest by its canonical bytes; one that is there already stays as it is.
    pub fn register(&mut self, canonical: &str) -> Result<Registered, Error> {
        let attempt = Error::while_trying("register the manifest");
        let identity = Identity(sha256(&[canonical.as_bytes()]));
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&attempt)?;
        let created = find_log(&tx, &identity)?.is_none();
        if created {
            let logs: i64 = tx
                .query_row("SELECT coalesce(max(log), 0) FROM manifest", [], |row| row.get(0))
                .map_err(&attempt)?;
            if logs >= MAX_LOGS {
                return Err(Error::Limit("a store holds at most 8388607 identities"));
            }
            tx.execute(
                "INSERT INTO manifest (log, identity_hash, canonical) VALUES (?1, ?2, ?3)",
                (logs + 1, identity.to_string(), canonical),
            )
            .map_err(&attempt)?;
        }
        tx.commit().map_err(&attempt)?;
        Ok(Registered { identity, created })
    }
}

pub(super) fn find_log(
    connection: &Connection,
    identity: &Identity,
) -> Result<Option<LogId>, Error> {
    connection
        .query_row(
            "SELECT log FROM manifest WHERE identity_hash = ?1",
            [identity.to_string()],
            |row| row.get(0).map(LogId),
        )
        .optional()
        .map_err(Error::while_trying("look up the identity"))
}
