//! Access tokens: who may speak to a server, by the hash of what is shown.
//!
//! **Invariants**
//! - No token gets here, only its SHA-256.
//! - A row is put once. After that only `revoked` and `last_used` move, and what is revoked stays
//!   revoked; the guard of the connection and the triggers in the file both say so.
//! - Whatever is asked about one identity reads and writes rows of that identity only.

use super::files::sync_directory;
use super::guard::{Duty, confine};
use super::read::View;
use super::register::find_log;
use super::transaction::{Level, Open};
use super::{LogId, open_to_write};
use crate::{Error, MAX_LIVE_TOKENS, TokenRow};
use ipse_core::{Identity, Time};
use rusqlite::{Connection, OptionalExtension, Row};
use std::path::Path;

/// The columns of a token, in the order that [`token`] reads them.
macro_rules! select_token {
    ($rest:literal) => {
        concat!(
            "SELECT token_id, hash, role, name, sources, created, expires, revoked, last_used ",
            "FROM token WHERE log = ?1 ",
            $rest
        )
    };
}

/// A token that has expired at a moment is no longer live at that very moment.
const LIVE: &str = "revoked IS NULL AND (expires IS NULL OR expires > ?1)";

/// The handle that puts, revokes and notes the use of tokens: a connection of its own.
pub struct TokenWriter {
    connection: Connection,
}

impl TokenWriter {
    /// Opens a store for tokens, and for nothing else.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (mut connection, _) = open_to_write(path)?;
        sync_directory(path)?;
        confine(&mut connection, Duty::Tokens)?;
        Ok(TokenWriter { connection })
    }

    /// What can be read of an identity. Every question is answered as of when it is asked.
    pub fn view(&self, identity: &Identity) -> Result<View<'_>, Error> {
        Ok(View { connection: &self.connection, log: self.log(identity)? })
    }

    /// Whether any identity has a token that is live.
    pub fn any_live(&self, now: Time) -> Result<bool, Error> {
        self.connection
            .prepare_cached(&format!("SELECT 1 FROM token WHERE {LIVE}"))
            .and_then(|mut statement| statement.exists([now.micros()]))
            .map_err(Error::while_trying("look for a token"))
    }

    /// Puts a token. An error, and nothing is changed, if there are as many live ones as may be.
    pub fn put(&mut self, identity: &Identity, token: &TokenRow) -> Result<(), Error> {
        let attempt = Error::while_trying("store a token");
        let log = self.log(identity)?;
        // Counted and put under one lock: two processes cannot both take the last place.
        let tx = Open::begin(&self.connection, Level::Batch).map_err(&attempt)?;
        let live: i64 = tx
            .connection
            .prepare_cached(&format!("SELECT count(*) FROM token WHERE {LIVE} AND log = ?2"))
            .and_then(|mut count| count.query_row((token.created.micros(), log.0), |r| r.get(0)))
            .map_err(&attempt)?;
        if live.unsigned_abs() >= MAX_LIVE_TOKENS {
            return Err(Error::TooManyTokens);
        }
        let TokenRow { token_id, hash, role, name, sources, created, expires, .. } = token;
        let sources = sources.as_ref().map(|sources| sources.join("\n"));
        let (created, expires) = (created.micros(), expires.map(Time::micros));
        tx.connection
            .execute(
                "INSERT INTO token (log, token_id, hash, role, name, sources, created, expires) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                (log.0, token_id, hash, role, name, sources, created, expires),
            )
            .map_err(&attempt)?;
        // If the process dies before this returns, the token is there or not; nobody has seen it.
        tx.commit().map_err(&attempt)
    }

    /// Revokes a token for good; says whether there was one that was not.
    pub fn revoke(
        &mut self,
        identity: &Identity,
        token_id: &[u8; 16],
        now: Time,
    ) -> Result<bool, Error> {
        let sql = "UPDATE token SET revoked = ?3 \
                   WHERE log = ?1 AND token_id = ?2 AND revoked IS NULL";
        self.connection
            .execute(sql, (self.log(identity)?.0, token_id, now.micros()))
            .map(|rows| rows > 0)
            .map_err(Error::while_trying("revoke a token"))
    }

    /// Notes that a token was used, if its last use is still the `previous` one; says whether it
    /// was. So of many who decide at once on the same row, one writes.
    pub fn note_use(
        &mut self,
        identity: &Identity,
        token_id: &[u8; 16],
        previous: Option<Time>,
        now: Time,
    ) -> Result<bool, Error> {
        let sql = "UPDATE token SET last_used = ?4 \
                   WHERE log = ?1 AND token_id = ?2 AND last_used IS ?3";
        let log = self.log(identity)?.0;
        self.connection
            .prepare_cached(sql)
            .and_then(|mut update| {
                update.execute((log, token_id, previous.map(Time::micros), now.micros()))
            })
            .map(|rows| rows > 0)
            .map_err(Error::while_trying("note the use of a token"))
    }

    fn log(&self, identity: &Identity) -> Result<LogId, Error> {
        find_log(&self.connection, identity)?
            .ok_or_else(|| Error::UnknownIdentity(identity.to_string()))
    }

    /// Runs any statement, to show in a test that the guard refuses it.
    #[doc(hidden)]
    pub fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }
}

impl View<'_> {
    /// All tokens, oldest first: also those that are expired or revoked.
    pub fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        self.connection
            .prepare_cached(select_token!("ORDER BY number"))
            .and_then(|mut statement| statement.query_map([self.log.0], token)?.collect())
            .map_err(Error::while_trying("read the tokens"))
    }

    /// The token of that id.
    pub fn token(&self, token_id: &[u8; 16]) -> Result<Option<TokenRow>, Error> {
        self.connection
            .prepare_cached(select_token!("AND token_id = ?2"))
            .and_then(|mut statement| statement.query_row((self.log.0, token_id), token).optional())
            .map_err(Error::while_trying("read a token"))
    }
}

fn token(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    let sources: Option<String> = row.get(4)?;
    let created = time(row, 5)?.ok_or(rusqlite::Error::IntegralValueOutOfRange(5, 0))?;
    Ok(TokenRow {
        token_id: row.get(0)?,
        hash: row.get(1)?,
        role: row.get(2)?,
        name: row.get(3)?,
        sources: sources.map(|lines| lines.split('\n').map(str::to_string).collect()),
        created,
        expires: time(row, 6)?,
        revoked: time(row, 7)?,
        last_used: time(row, 8)?,
    })
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    let Some(micros) = row.get(column)? else { return Ok(None) };
    let out_of_range = rusqlite::Error::IntegralValueOutOfRange(column, micros);
    Time::from_micros(micros).map(Some).ok_or(out_of_range)
}
