//! Statements of producers, their keys, and the settings of a log in SQLite.

use super::session::Connected;
use super::token::{entries, lines};
use super::{at, seq_of, span};
use crate::session::{Log, Result, Settings, StatementRow, Statements};
use crate::{DEFAULT_MAX_AHEAD, Error, Owed, Producer, Signatures};
use ipse_core::Seq;
use rusqlite::{OptionalExtension, Row};

impl Statements for Connected {
    fn statement_count(&self, log: Log) -> Result<u64> {
        let sql = "SELECT max(number) FROM statement WHERE number BETWEEN ?1 AND ?2";
        let bounds = (at(log, Seq(0)), at(log, Seq::MAX));
        let attempt = "count the statements";
        let last: Option<i64> = self.one(sql, bounds, attempt, |row| row.get(0))?;
        Ok(last.map_or(0, |number| seq_of(number).0))
    }

    fn statements(&self, log: Log, from: u64, limit: usize) -> Result<Vec<StatementRow>> {
        let sql = "SELECT number, signer, events FROM statement \
                   WHERE number BETWEEN ?1 AND ?2 ORDER BY number LIMIT ?3";
        let range = Seq(from)..=Seq::MAX;
        self.rows(sql, span(log, &range, limit), "read the statements", |row| {
            let number = seq_of(row.get(0)?).0;
            Ok(Ok(StatementRow { number, signer: row.get(1)?, events: row.get(2)? }))
        })
    }

    fn envelopes(&self, log: Log, numbers: &[u64]) -> Result<Vec<String>> {
        let sql = "SELECT envelope FROM statement WHERE number = ?1";
        let place = |number: &u64| [at(log, Seq(*number))];
        self.each(sql, numbers, place, "read an envelope", |row| row.get(0))
    }

    fn put_statement(&self, log: Log, statement: &StatementRow, envelope: &str) -> Result<()> {
        let sql = "INSERT OR FAIL INTO statement (number, signer, events, envelope) \
                   VALUES (?1, ?2, ?3, ?4)";
        let StatementRow { number, signer, events } = statement;
        let row = (at(log, Seq(*number)), signer, events, envelope);
        self.execute(sql, row, "store a statement").map(drop)
    }

    fn producers(&self, log: Log) -> Result<Vec<Producer>> {
        let sql = "SELECT key, revoked, sources FROM producer WHERE log = ?1 ORDER BY number";
        self.rows(sql, [log.number], "read the producers", |row| Ok(Ok(read_producer(row)?)))
    }

    fn put_producer(&self, log: Log, key: &str, sources: Option<&[String]>) -> Result<Producer> {
        let attempt = "register a producer";
        self.atomically(|| {
            let sql = "SELECT key, revoked, sources FROM producer WHERE log = ?1 AND key = ?2";
            let stored = self
                .prepare(sql)?
                .query_row((log.number, key), read_producer)
                .optional()
                .map_err(Error::while_trying(attempt))?;
            if let Some(stored) = stored {
                return Ok(stored);
            }
            let sql = "INSERT INTO producer (log, key, revoked, sources) VALUES (?1, ?2, 0, ?3)";
            self.execute(sql, (log.number, key, sources.map(lines)), attempt)?;
            let sources = sources.map(<[String]>::to_vec);
            Ok(Producer { key: key.to_owned(), revoked: false, sources })
        })
    }

    fn revoke_producer(&self, log: Log, name: &str) -> Result<bool> {
        // A verifier key begins with the name and a plus sign. No name contains a plus sign.
        let sql = "UPDATE producer SET revoked = 1 \
                   WHERE log = ?1 AND revoked = 0 AND instr(key, ?2) = 1";
        let values = (log.number, format!("{name}+"));
        Ok(self.execute(sql, values, "revoke a producer")? > 0)
    }
}

impl Settings for Connected {
    fn signatures(&self, log: Log) -> Result<Signatures> {
        let sql = "SELECT signatures FROM policy WHERE log = ?1";
        let found: Option<i64> = self
            .prepare(sql)?
            .query_row([log.number], |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read the signature requirement"))?;
        match found {
            None | Some(1) => Ok(Signatures::Record),
            Some(0) => Ok(Signatures::Off),
            Some(2) => Ok(Signatures::Require),
            Some(other) => Err(Error::Corrupt(format!("{other} is no signature requirement"))),
        }
    }

    fn set_signatures(&self, log: Log, signatures: Signatures) -> Result<()> {
        let sql = "INSERT INTO policy (log, signatures) VALUES (?1, ?2) \
                   ON CONFLICT (log) DO UPDATE SET signatures = excluded.signatures";
        let values = (log.number, signatures as i64);
        self.execute(sql, values, "set the signature requirement").map(drop)
    }

    fn max_ahead(&self, log: Log) -> Result<Option<u64>> {
        let sql = "SELECT max_ahead FROM policy WHERE log = ?1";
        let found: Option<Option<i64>> = self
            .prepare(sql)?
            .query_row([log.number], |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read the setting max-ahead"))?;
        let Some(hours) = found else { return Ok(Some(DEFAULT_MAX_AHEAD)) };
        let damaged = |hours| Error::Corrupt(format!("max-ahead is {hours} hours"));
        hours.map(|hours| u64::try_from(hours).map_err(|_| damaged(hours))).transpose()
    }

    fn set_max_ahead(&self, log: Log, hours: Option<u64>) -> Result<()> {
        let sql = "INSERT INTO policy (log, signatures, max_ahead) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (log) DO UPDATE SET max_ahead = excluded.max_ahead";
        let hours = hours.map(|hours| i64::try_from(hours).unwrap_or(i64::MAX));
        let values = (log.number, Signatures::Record as i64, hours);
        self.execute(sql, values, "set max-ahead").map(drop)
    }

    fn retention(&self, log: Log) -> Result<Option<String>> {
        self.prepare("SELECT kept FROM retention WHERE log = ?1")?
            .query_row([log.number], |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read the retention"))
    }

    fn set_retention(&self, log: Log, retention: Option<&str>) -> Result<()> {
        let attempt = "change the retention";
        let done = match retention {
            Some(kept) => {
                let sql = "INSERT INTO retention (log, kept) VALUES (?1, ?2) \
                           ON CONFLICT (log) DO UPDATE SET kept = excluded.kept";
                self.execute(sql, (log.number, kept), attempt)
            }
            None => self.execute("DELETE FROM retention WHERE log = ?1", [log.number], attempt),
        };
        done.map(drop)
    }

    fn owed_acts(&self, log: Log) -> Result<Vec<Owed>> {
        let sql = "SELECT number, act, data FROM act_owed WHERE log = ?1 ORDER BY number";
        self.rows(sql, [log.number], "read the owed acts", |row| {
            Ok(Ok(Owed { number: row.get(0)?, act: row.get(1)?, data: row.get(2)? }))
        })
    }

    fn owe_act(&self, log: Log, act: &str, data: &str) -> Result<()> {
        let sql = "INSERT INTO act_owed (log, act, data) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (log, act, data) DO NOTHING";
        self.execute(sql, (log.number, act, data), "record an owed act").map(drop)
    }

    fn settle_act(&self, number: i64) -> Result<()> {
        let sql = "DELETE FROM act_owed WHERE number = ?1";
        self.execute(sql, [number], "settle an owed act").map(drop)
    }
}

/// Reads key, `revoked` and sources.
fn read_producer(row: &Row<'_>) -> rusqlite::Result<Producer> {
    let sources: Option<String> = row.get(2)?;
    Ok(Producer { key: row.get(0)?, revoked: row.get(1)?, sources: sources.map(entries) })
}
