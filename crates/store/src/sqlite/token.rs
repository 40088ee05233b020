//! Access tokens in SQLite.

use super::session::Connected;
use crate::session::{Log, Result, Tokens};
use crate::{Error, MAX_LIVE_TOKENS, TokenRow};
use ipse_core::Time;
use rusqlite::{OptionalExtension, Row};

/// The columns of a token, in the order that `read_token` reads them.
macro_rules! select_token {
    ($rest:literal) => {
        concat!(
            "SELECT token_id, hash, role, name, sources, created, expires, revoked, last_used ",
            "FROM token WHERE log = ?1 ",
            $rest
        )
    };
}

/// A token is no longer live at the moment of its expiry.
const LIVE: &str = "revoked IS NULL AND (expires IS NULL OR expires > ?1)";

/// The log number of tokens that belong to the store itself. The first log has the number 1.
const STORE: i64 = 0;

fn number(of: Option<Log>) -> i64 {
    of.map_or(STORE, |log| log.number)
}

impl Tokens for Connected {
    fn tokens(&self, of: Option<Log>) -> Result<Vec<TokenRow>> {
        let sql = select_token!("ORDER BY number");
        self.rows(sql, [number(of)], "read the tokens", |row| Ok(Ok(read_token(row)?)))
    }

    fn token(&self, of: Option<Log>, token_id: &[u8; 16]) -> Result<Option<TokenRow>> {
        self.prepare(select_token!("AND token_id = ?2"))?
            .query_row((number(of), token_id), read_token)
            .optional()
            .map_err(Error::while_trying("read a token"))
    }

    fn any_live_token(&self, now: Time) -> Result<bool> {
        self.prepare(&format!("SELECT 1 FROM token WHERE {LIVE}"))?
            .exists([now.micros()])
            .map_err(Error::while_trying("look for a token"))
    }

    fn put_token(&self, of: Option<Log>, token: &TokenRow) -> Result<()> {
        let attempt = "store a token";
        // The count and the insert are under one lock: two processes cannot both take the last
        // place. If the process dies before this returns, the token may be stored, but no client
        // has seen it.
        self.atomically(|| {
            let sql = format!("SELECT count(*) FROM token WHERE {LIVE} AND log = ?2");
            let values = (token.created.micros(), number(of));
            let live: i64 = self.one(&sql, values, attempt, |row| row.get(0))?;
            if live.unsigned_abs() >= MAX_LIVE_TOKENS {
                return Err(Error::TooManyTokens);
            }
            let TokenRow { token_id, hash, role, name, sources, created, expires, .. } = token;
            let sources = sources.as_deref().map(lines);
            let (created, expires) = (created.micros(), expires.map(Time::micros));
            let sql = "INSERT INTO token \
                       (log, token_id, hash, role, name, sources, created, expires) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            let row = (number(of), token_id, hash, role, name, sources, created, expires);
            self.execute(sql, row, attempt).map(drop)
        })
    }

    fn revoke_token(&self, of: Option<Log>, token_id: &[u8; 16], now: Time) -> Result<bool> {
        let sql = "UPDATE token SET revoked = ?3 \
                   WHERE log = ?1 AND token_id = ?2 AND revoked IS NULL";
        let values = (number(of), token_id, now.micros());
        Ok(self.execute(sql, values, "revoke a token")? > 0)
    }

    fn note_use(
        &self,
        of: Option<Log>,
        id: &[u8; 16],
        previous: Option<Time>,
        now: Time,
    ) -> Result<bool> {
        let sql = "UPDATE token SET last_used = ?4 \
                   WHERE log = ?1 AND token_id = ?2 AND last_used IS ?3";
        let values = (number(of), id, previous.map(Time::micros), now.micros());
        Ok(self.execute(sql, values, "record the use of a token")? > 0)
    }
}

fn read_token(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    let sources: Option<String> = row.get(4)?;
    let created = time(row, 5)?.ok_or(rusqlite::Error::IntegralValueOutOfRange(5, 0))?;
    Ok(TokenRow {
        token_id: row.get(0)?,
        hash: row.get(1)?,
        role: row.get(2)?,
        name: row.get(3)?,
        sources: sources.map(entries),
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

/// A list of sources as it is stored: one per line. No source contains a line break.
pub(super) fn lines(sources: &[String]) -> String {
    sources.join("\n")
}

/// Reads a stored list of sources.
pub(super) fn entries(lines: String) -> Vec<String> {
    lines.split('\n').map(str::to_string).collect()
}
