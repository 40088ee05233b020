//! Writing: batches of events, and passes over them.
//!
//! **Invariants**
//! - A [`Batch`] is one transaction: wholly there after `commit`, wholly absent otherwise.
//! - A [`Pass`] is a savepoint within it, so that its failure cannot lose the events; it can put
//!   facts and tallies, and becomes durable only by `commit(record)`.
//! - Positions are dense: the next one is the head plus one, read inside the transaction.

use super::guard::confine_to_append_and_pass;
use super::register::find_log;
use super::{LogId, MAX_SEQ, View, open_to_write};
use crate::{Appended, Error, PassRecord};
use ipse_core::{Admitted, Fact, FactId, Identity, Seq};
use rusqlite::{Connection, OptionalExtension, Savepoint, Transaction, TransactionBehavior};
use std::path::Path;

/// The one writing handle of a process, on one identity's log.
pub struct Writer {
    connection: Connection,
    log: LogId,
    synchronous: i64,
}

impl Writer {
    /// Opens a store for appending and for passes, and for nothing else.
    pub fn open(path: &Path, identity: &Identity) -> Result<Self, Error> {
        let mut connection = open_to_write(path)?;
        let log = find_log(&connection, identity)?
            .ok_or_else(|| Error::UnknownIdentity(identity.to_string()))?;
        let synchronous = connection
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .map_err(Error::while_trying("configure the connection"))?;
        confine_to_append_and_pass(&mut connection)?;
        Ok(Writer { connection, log, synchronous })
    }

    /// Begins a batch; waits for another process that is writing.
    pub fn begin(&mut self) -> Result<Batch<'_>, Error> {
        let log = self.log;
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(Error::while_trying("begin to write"))?;
        let head = View { connection: &tx, log }.head()?;
        Ok(Batch { tx, log, head })
    }

    /// SQLite's `synchronous` level of this connection, as it was when the guard closed.
    pub fn synchronous(&self) -> i64 {
        self.synchronous
    }

    /// Runs any statement, to show in a test that the guard refuses it.
    #[doc(hidden)]
    pub fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }
}

/// Events on their way into the log.
#[must_use = "a batch that is not committed is rolled back"]
pub struct Batch<'w> {
    tx: Transaction<'w>,
    log: LogId,
    head: Seq,
}

impl Batch<'_> {
    /// Puts an event at the end of the log, unless it is there already.
    pub fn append(&mut self, event: &Admitted) -> Result<Appended, Error> {
        append(&self.tx, self.log, &mut self.head, event)
    }

    /// What the log and the facts look like from inside this batch.
    pub fn view(&self) -> View<'_> {
        View { connection: &self.tx, log: self.log }
    }

    /// Begins a pass.
    pub fn pass(&mut self) -> Result<Pass<'_>, Error> {
        let savepoint = self.tx.savepoint().map_err(Error::while_trying("begin a pass"))?;
        Ok(Pass { savepoint, log: self.log, head: &mut self.head })
    }

    /// Makes everything durable. If the process dies before this returns, all of the batch is
    /// there after reopening or none of it; once it has returned, all of it.
    pub fn commit(self) -> Result<(), Error> {
        self.tx.commit().map_err(Error::while_trying("make the batch durable"))
    }
}

/// A pass under way: facts on their way to becoming durable, with the record that explains them.
#[must_use = "a pass that is not committed is rolled back"]
pub struct Pass<'b> {
    savepoint: Savepoint<'b>,
    log: LogId,
    head: &'b mut Seq,
}

impl Pass<'_> {
    /// What the log and the facts look like from inside this pass.
    pub fn view(&self) -> View<'_> {
        View { connection: &self.savepoint, log: self.log }
    }

    /// Removes all facts and tallies of this log: another rule set starts from nothing.
    pub fn start_over(&self) -> Result<(), Error> {
        let attempt = Error::while_trying("start over with another rule set");
        self.savepoint
            .execute("DELETE FROM fact WHERE log = ?1", [self.log.0])
            .map_err(&attempt)?;
        self.savepoint
            .execute("DELETE FROM tally WHERE log = ?1", [self.log.0])
            .map_err(&attempt)?;
        Ok(())
    }

    /// Puts a fact in place of the one of that id; says whether anything changed.
    pub fn put_fact(&self, id: &FactId, fact: &Fact) -> Result<bool, Error> {
        let sql = "INSERT INTO fact \
                   (log, fact_id, fact_kind, fact_key, value, last_us, last_ref) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (fact_id) DO UPDATE SET \
                   value = excluded.value, last_us = excluded.last_us, \
                   last_ref = excluded.last_ref \
                   WHERE (value, last_us, last_ref) \
                   IS NOT (excluded.value, excluded.last_us, excluded.last_ref)";
        let (kind, key) = (fact.key.kind().name(), fact.key.text());
        let (time, last) = (fact.last.time.micros(), fact.last.event_ref.0);
        let row = (self.log.0, id.0, kind, key, &fact.value, time, last);
        let put = || self.savepoint.prepare_cached(sql)?.execute(row);
        put().map(|rows| rows > 0).map_err(Error::while_trying("put a fact"))
    }

    /// Puts the sum behind a fact.
    pub fn put_tally(&self, id: &FactId, state: &[u8]) -> Result<(), Error> {
        let sql = "INSERT INTO tally (log, fact_id, state) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (fact_id) DO UPDATE SET state = excluded.state";
        let put = || self.savepoint.prepare_cached(sql)?.execute((self.log.0, id.0, state));
        put().map(drop).map_err(Error::while_trying("put a tally"))
    }

    /// Finishes the pass: its record joins the log, its facts and checkpoint join the batch.
    pub fn commit(self, record: &PassRecord<'_>) -> Result<Seq, Error> {
        let mut head = *self.head;
        let Appended::New(seq) = append(&self.savepoint, self.log, &mut head, record.event)? else {
            return Err(Error::Corrupt(format!(
                "a pass record for the range from seq {} is there already",
                record.first
            )));
        };
        let progress = &record.progress;
        let (first, last) = (record.first.0.cast_signed(), progress.checkpoint.0.cast_signed());
        let attempt = Error::while_trying("record the pass");
        self.savepoint
            .execute(
                "INSERT INTO pass (at, first_seq, last_seq) VALUES (?1, ?2, ?3)",
                (self.log.at(seq), first, last),
            )
            .map_err(&attempt)?;
        self.savepoint
            .execute(
                "INSERT INTO progress (log, checkpoint, tallied, rule_version, rule_set_sha256) \
                 VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (log) DO UPDATE SET \
                 checkpoint = excluded.checkpoint, tallied = excluded.tallied, \
                 rule_version = excluded.rule_version, rule_set_sha256 = excluded.rule_set_sha256",
                (
                    self.log.0,
                    last,
                    progress.tallied.0.cast_signed(),
                    &progress.rule_version,
                    progress.rule_set,
                ),
            )
            .map_err(&attempt)?;
        self.savepoint.commit().map_err(&attempt)?;
        *self.head = head;
        Ok(seq)
    }
}

fn append(
    connection: &Connection,
    log: LogId,
    head: &mut Seq,
    event: &Admitted,
) -> Result<Appended, Error> {
    if head.0 >= MAX_SEQ {
        return Err(Error::Limit("a log holds at most 2^40 - 1 events"));
    }
    let seq = head.next();
    if claim_place(connection, log, seq, event).map_err(Error::while_trying("append an event"))? {
        insert(connection, log.at(seq), event).map_err(Error::while_trying("append an event"))?;
        *head = seq;
        return Ok(Appended::New(seq));
    }
    compare(connection, log, event)
}

/// Takes the event's ref, if nobody has it.
fn claim_place(
    connection: &Connection,
    log: LogId,
    seq: Seq,
    event: &Admitted,
) -> rusqlite::Result<bool> {
    let sql = "INSERT INTO place (log, event_ref, seq) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let rows =
        connection.prepare_cached(sql)?.execute((log.0, event.event_ref.0, seq.0.cast_signed()))?;
    Ok(rows > 0)
}

fn insert(connection: &Connection, at: i64, event: &Admitted) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO entry (at, event_ref, time_us, type, digest) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((at, event.event_ref.0, event.time.micros(), &event.event_type, event.digest.0))?;
    connection
        .prepare_cached("INSERT INTO payload (at, canonical) VALUES (?1, ?2)")?
        .execute((at, &event.canonical))?;
    connection
        .prepare_cached("INSERT INTO typed (at, columns) VALUES (?1, ?2)")?
        .execute((at, &event.columns))?;
    Ok(())
}

/// Tells a duplicate from a conflict.
fn compare(connection: &Connection, log: LogId, event: &Admitted) -> Result<Appended, Error> {
    let attempt = Error::while_trying("compare an event with the one in the log");
    let seq: i64 = connection
        .prepare_cached("SELECT seq FROM place WHERE log = ?1 AND event_ref = ?2")
        .and_then(|mut s| s.query_row((log.0, event.event_ref.0), |row| row.get(0)))
        .map_err(&attempt)?;
    let seq = Seq(seq.unsigned_abs());
    let stored: Option<String> = connection
        .prepare_cached("SELECT canonical FROM payload WHERE at = ?1")
        .and_then(|mut s| s.query_row([log.at(seq)], |row| row.get(0)).optional())
        .map_err(&attempt)?;
    match stored {
        Some(stored) if event.says_the_same_as(&stored) => Ok(Appended::Duplicate(seq)),
        Some(_) => Ok(Appended::Conflict(seq)),
        None => Err(Error::Corrupt(format!("the payload of seq {seq} is missing"))),
    }
}
