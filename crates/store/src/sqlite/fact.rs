//! Facts, tallies and the list of passes in SQLite.

use super::event::bytes;
use super::session::Connected;
use super::{at, seq_of, span};
use crate::Error;
use crate::audit::{Pair, RawFact, RawPass};
use crate::session::{Facts, Log, Order, Page, Passes, Result, Span, Wanted};
use ipse_core::{EventRef, Fact, FactId, FactKey, FactKind, Seq, Support, Time};
use rusqlite::{OptionalExtension, Row};

/// The columns of a pass.
macro_rules! select_passes {
    ($rest:literal) => {
        concat!(
            "SELECT at, first_seq, last_seq, tallied, rule_version, rule_set_sha256 FROM pass ",
            "WHERE at BETWEEN ?1 AND ?2 ",
            $rest
        )
    };
}

impl Connected {
    /// A page of a table with the columns `number` and `log`.
    fn numbered<T>(
        &self,
        sql: &str,
        (log, from, limit): (Log, u64, usize),
        attempt: &'static str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<Result<Option<T>>>,
    ) -> Result<Page<T>> {
        let values = (log.number, from.cast_signed(), i64::try_from(limit).unwrap_or(i64::MAX));
        let read = |row: &Row<'_>| {
            let number: i64 = row.get(0)?;
            Ok(read(row)?.map(|row| (number.unsigned_abs(), row)))
        };
        let rows = self.rows(sql, values, attempt, read)?;
        let next = rows.last().filter(|_| rows.len() == limit).map(|(number, _)| *number);
        Ok(Page { rows: rows.into_iter().filter_map(|(_, row)| row).collect(), next })
    }

    /// At most one row for each id, in their order.
    fn by_id<T>(
        &self,
        sql: &str,
        log: Log,
        ids: &[FactId],
        attempt: &'static str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<Option<T>>> {
        let mut statement = self.prepare(sql)?;
        let one = |id: &FactId| statement.query_row((id.0, log.number), &read).optional();
        let rows = ids.iter().map(one).collect::<rusqlite::Result<Vec<_>>>();
        rows.map_err(Error::while_trying(attempt))
    }
}

impl Facts for Connected {
    fn facts(&self, log: Log, from: u64, limit: usize, wanted: Wanted<'_>) -> Result<Page<Fact>> {
        let sql = "SELECT number, fact_kind, fact_key, value, last_us, last_ref, last_worked \
                   FROM fact WHERE log = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
        self.numbered(sql, (log, from, limit), "read the facts", |row| {
            Ok(match fact_key(row, 1)? {
                Ok(key) if wanted(&key) => fact(row, key, 3)?.map(Some),
                Ok(_) => Ok(None),
                Err(error) => Err(error),
            })
        })
    }

    fn facts_by_id(&self, log: Log, ids: &[FactId]) -> Result<Vec<Option<Fact>>> {
        let sql = "SELECT fact_kind, fact_key, value, last_us, last_ref, last_worked FROM fact \
                   WHERE fact_id = ?1 AND log = ?2";
        let read = |row: &Row<'_>| match fact_key(row, 0)? {
            Ok(key) => fact(row, key, 2),
            Err(error) => Ok(Err(error)),
        };
        let facts = self.by_id(sql, log, ids, "read a fact", read)?;
        facts.into_iter().map(Option::transpose).collect()
    }

    fn forgotten_of(&self, log: Log, ids: &[FactId]) -> Result<Vec<u64>> {
        let sql = "SELECT forgotten FROM fact WHERE fact_id = ?1 AND log = ?2";
        let counts = self.by_id(sql, log, ids, "read a fact", |row| row.get::<_, i64>(0))?;
        Ok(counts.into_iter().map(|count| count.unwrap_or(0).unsigned_abs()).collect())
    }

    fn put_facts(&self, log: Log, facts: &[(FactId, Fact)]) -> Result<Vec<bool>> {
        let sql = "INSERT INTO fact \
                   (log, fact_id, fact_kind, fact_key, value, last_us, last_ref, last_worked) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (fact_id) DO UPDATE SET \
                   value = excluded.value, last_us = excluded.last_us, \
                   last_ref = excluded.last_ref, last_worked = excluded.last_worked \
                   WHERE (value, last_us, last_ref) \
                   IS NOT (excluded.value, excluded.last_us, excluded.last_ref)";
        let rows = facts.iter().map(|(id, fact)| {
            let (kind, key) = (fact.key.kind().name(), fact.key.text());
            let (time, last) = (fact.last.time.micros(), fact.last.event_ref.0);
            (log.number, id.0, kind, key, &fact.value, time, last, fact.last.worked)
        });
        let changed = self.change(sql, rows, |row| row, "put a fact")?;
        Ok(changed.into_iter().map(|rows| rows > 0).collect())
    }

    fn remove_facts(&self, _log: Log, ids: &[FactId]) -> Result<Vec<bool>> {
        let sql = "DELETE FROM fact WHERE fact_id = ?1";
        let removed = self.change(sql, ids, |id| [id.0], "remove a fact")?;
        Ok(removed.into_iter().map(|rows| rows > 0).collect())
    }

    fn count_forgotten(&self, _log: Log, counts: &[(FactId, u64)]) -> Result<()> {
        let sql = "UPDATE fact SET forgotten = forgotten + ?2 WHERE fact_id = ?1";
        let row = |(id, count): &(FactId, u64)| (id.0, count.cast_signed());
        self.change(sql, counts, row, "count forgotten observations").map(drop)
    }

    fn tallies(&self, log: Log, ids: &[FactId]) -> Result<Vec<Option<Vec<u8>>>> {
        let sql = "SELECT state FROM tally WHERE fact_id = ?1 AND log = ?2";
        self.by_id(sql, log, ids, "read a tally", |row| row.get(0))
    }

    fn put_tallies(&self, log: Log, tallies: &[(FactId, Option<Vec<u8>>)]) -> Result<()> {
        let sql = "INSERT INTO tally (log, fact_id, state) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (fact_id) DO UPDATE SET state = excluded.state";
        let kept = tallies.iter().filter_map(|(id, state)| Some((id, state.as_ref()?)));
        self.change(sql, kept, |(id, state)| (log.number, id.0, state), "put a tally")?;
        let gone = tallies.iter().filter(|(_, state)| state.is_none());
        let sql = "DELETE FROM tally WHERE fact_id = ?1";
        self.change(sql, gone, |(id, _)| [id.0], "remove a tally").map(drop)
    }

    fn tally_bytes(&self, log: Log) -> Result<u64> {
        let sql = "SELECT coalesce(sum(length(state)), 0) FROM tally WHERE log = ?1";
        let bytes: i64 = self.one(sql, [log.number], "measure the tallies", |row| row.get(0))?;
        Ok(bytes.unsigned_abs())
    }

    fn remove_all_facts(&self, log: Log) -> Result<()> {
        let attempt = "start over with another rule set";
        self.execute("DELETE FROM fact WHERE log = ?1", [log.number], attempt)?;
        self.execute("DELETE FROM tally WHERE log = ?1", [log.number], attempt).map(drop)
    }

    fn raw_facts(&self, log: Log, from: u64, limit: usize) -> Result<Page<RawFact>> {
        let sql = "SELECT number, fact_id, fact_kind, fact_key, value, last_us, last_ref, \
                   forgotten FROM fact WHERE log = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
        let text = |row: &Row<'_>, column| -> rusqlite::Result<String> {
            Ok(String::from_utf8_lossy(&bytes(row, column)?).into_owned())
        };
        self.numbered(sql, (log, from, limit), "read the raw facts", |row| {
            Ok(Ok(Some(RawFact {
                fact_id: bytes(row, 1)?,
                kind: text(row, 2)?,
                key: text(row, 3)?,
                value: text(row, 4)?,
                last_us: row.get(5)?,
                last_ref: bytes(row, 6)?,
                forgotten: row.get(7)?,
            })))
        })
    }

    fn raw_tallies(&self, log: Log, from: u64, limit: usize) -> Result<Page<Pair>> {
        let sql = "SELECT number, fact_id, state FROM tally \
                   WHERE log = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
        self.numbered(sql, (log, from, limit), "read the raw tallies", |row| {
            Ok(Ok(Some((bytes(row, 1)?, bytes(row, 2)?))))
        })
    }
}

impl Passes for Connected {
    fn passes(&self, log: Log, range: Span, order: Order, limit: usize) -> Result<Vec<RawPass>> {
        let sql = match order {
            Order::OldestFirst => select_passes!("ORDER BY at LIMIT ?3"),
            Order::NewestFirst => select_passes!("ORDER BY at DESC LIMIT ?3"),
        };
        self.rows(sql, span(log, &range, limit), "read the passes", |row| {
            let seq =
                |column| Ok::<_, rusqlite::Error>(Seq(row.get::<_, i64>(column)?.unsigned_abs()));
            Ok(Ok(RawPass {
                seq: seq_of(row.get(0)?),
                first: seq(1)?,
                last: seq(2)?,
                tallied: seq(3)?,
                rule_version: row.get(4)?,
                rule_set: bytes(row, 5)?,
            }))
        })
    }

    fn pass_count(&self, log: Log) -> Result<u64> {
        let sql = "SELECT count(*) FROM pass WHERE at BETWEEN ?1 AND ?2";
        let bounds = (at(log, Seq(0)), at(log, Seq::MAX));
        let count: i64 = self.one(sql, bounds, "count the passes", |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    fn put_pass(&self, log: Log, pass: &RawPass) -> Result<()> {
        let sql = "INSERT INTO pass (at, first_seq, last_seq, tallied, rule_version, \
                   rule_set_sha256) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let [first, last, tallied] =
            [pass.first, pass.last, pass.tallied].map(|seq| seq.0.cast_signed());
        let rules = (&pass.rule_version, &pass.rule_set);
        let row = (at(log, pass.seq), first, last, tallied, rules.0, rules.1);
        self.execute(sql, row, "record the pass").map(drop)
    }
}

/// Decodes a fact whose value is in this column, followed by its last support.
fn fact(row: &Row<'_>, key: FactKey, column: usize) -> rusqlite::Result<Result<Fact>> {
    let Some(time) = Time::from_micros(row.get(column + 1)?) else {
        return Ok(Err(unreadable(key.kind().name(), key.text())));
    };
    let event_ref = EventRef(row.get(column + 2)?);
    let last = Support { time, event_ref, worked: row.get(column + 3)? };
    Ok(Ok(Fact { key, last, value: row.get(column)? }))
}

fn fact_key(row: &Row<'_>, column: usize) -> rusqlite::Result<Result<FactKey>> {
    let (kind, key): (String, String) = (row.get(column)?, row.get(column + 1)?);
    Ok(match FactKind::parse(&kind) {
        Some(kind) => Ok(FactKey::from_text(kind, key)),
        None => Err(unreadable(&kind, &key)),
    })
}

fn unreadable(kind: &str, key: &str) -> Error {
    Error::Corrupt(format!("the {kind} fact `{key}` cannot be read"))
}
