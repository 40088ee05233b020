//! Writing: batches of events, and passes over them.
//!
//! **Invariants**
//! - A [`Batch`] is one transaction: wholly there after `commit`, wholly absent otherwise.
//! - A [`Pass`] is a savepoint within it, so that its failure cannot lose the events; it can put
//!   facts and tallies, and becomes durable only by `commit(record)`. A pass in a batch that has
//!   written nothing needs no savepoint: its failure ends the batch, and nothing is lost by that.
//! - Positions are dense: the next one is the head plus one, read inside the transaction.

use super::checkpoint::Checkpointer;
use super::files::Files;
use super::guard::{Duty, confine};
use super::refs::Refs;
use super::register::find_log;
use super::seal::{self, Row};
use super::transaction::{Level, Open};
use super::{LogId, MAX_SEQ, View, open_to_write};
use crate::{Appended, Error, PassRecord};
use ipse_core::chunk::CHUNK_EVENTS;
use ipse_core::{Admitted, Event, EventRef, Fact, FactId, Identity, Seq};
use rusqlite::{CachedStatement, Connection};
use std::ops::RangeInclusive;
use std::path::Path;

/// The one writing handle of a process, on one identity's log.
pub struct Writer {
    checkpointer: Checkpointer,
    connection: Connection,
    log: LogId,
    refs: Refs,
    synchronous: i64,
    erase_pending: bool,
    files: Files,
}

impl Writer {
    /// Opens a store for appending and for passes, and for nothing else.
    pub fn open(path: &Path, identity: &Identity) -> Result<Self, Error> {
        Self::open_for(path, identity, Duty::Write)
    }

    /// Opens a store for a duty.
    pub(super) fn open_for(path: &Path, identity: &Identity, duty: Duty) -> Result<Self, Error> {
        // A process may change its directory; the file stays where it is.
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (mut connection, erase_pending) = open_to_write(path)?;
        let log = find_log(&connection, identity)?
            .ok_or_else(|| Error::UnknownIdentity(identity.to_string()))?;
        let synchronous = connection
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .map_err(Error::while_trying("configure the connection"))?;
        let checkpointer = Checkpointer::attach(&mut connection, path)?;
        confine(&mut connection, duty)?;
        let (refs, files) = (Refs::default(), Files::to_append(path)?);
        Ok(Writer { checkpointer, connection, log, refs, synchronous, erase_pending, files })
    }

    /// Begins a batch; waits for another process that is writing.
    pub fn begin(&mut self) -> Result<Batch<'_>, Error> {
        self.files.check_before()?;
        let (log, refs, files) = (self.log, &mut self.refs, &mut self.files);
        let checkpointer = &mut self.checkpointer;
        let tx = Open::begin(&self.connection, Level::Batch)
            .map_err(Error::while_trying("begin to write"))?;
        let head = View { connection: &self.connection, log }.head()?;
        refs.begin();
        let written = self.connection.total_changes();
        Ok(Batch { tx, log, refs, files, checkpointer, head, written, insert: None })
    }

    /// What the log and the facts look like, each time that something is read.
    pub fn view(&self) -> View<'_> {
        View { connection: &self.connection, log: self.log }
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        self.files.path()
    }

    /// Lets go of the typed columns of recent events. They were kept for the next chunk, and must
    /// not stay in memory once one of the events is forgotten.
    pub fn release(&mut self) {
        self.refs.release();
    }

    /// How many events have their typed columns in memory, for a test.
    #[doc(hidden)]
    pub fn held(&self) -> usize {
        self.refs.held()
    }

    /// Whether forgotten bytes were still in the files when this was opened, and had to stay.
    pub fn erase_pending(&self) -> bool {
        self.erase_pending
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
    tx: Open<'w>,
    log: LogId,
    refs: &'w mut Refs,
    files: &'w mut Files,
    checkpointer: &'w mut Checkpointer,
    head: Seq,
    /// Rows that the connection had changed when the batch began.
    written: u64,
    /// Prepared for the first event, used for all of the batch.
    insert: Option<CachedStatement<'w>>,
}

impl Batch<'_> {
    /// Puts an event at the end of the log, unless it is there already.
    pub fn append(&mut self, event: &Admitted) -> Result<Appended, Error> {
        if self.tx.connection.is_autocommit() {
            return Err(Error::Limit("a batch ends with a pass that fails and is alone in it"));
        }
        let (connection, insert) = (self.tx.connection, &mut self.insert);
        append(connection, insert, self.log, self.refs, &mut self.head, event)
    }

    /// What would become of an event that is there already; `None` if it is not.
    pub fn look(&mut self, event: &Admitted) -> Result<Option<Appended>, Error> {
        let seq = self.find(&event.event_ref)?;
        seq.map(|seq| compare(self.tx.connection, self.log, seq, event)).transpose()
    }

    /// The position of the event of that name, if it is in the log.
    pub fn find(&mut self, event_ref: &EventRef) -> Result<Option<Seq>, Error> {
        self.refs.follow(self.tx.connection, self.log, self.head)?;
        self.refs.find(self.tx.connection, self.log, event_ref)
    }

    /// The position of the last event.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// What the log and the facts look like from inside this batch.
    pub fn view(&self) -> View<'_> {
        View { connection: self.tx.connection, log: self.log }
    }

    /// Begins a pass.
    pub fn pass(&mut self) -> Result<Pass<'_>, Error> {
        let alone = self.tx.connection.total_changes() == self.written;
        let level = if alone { Level::PassAlone } else { Level::Pass };
        let savepoint =
            Open::begin(self.tx.connection, level).map_err(Error::while_trying("begin a pass"))?;
        // Back to where the pass finds it: prepared twice it would cost more than all the rest.
        self.insert = None;
        Ok(Pass { savepoint, log: self.log, refs: self.refs, head: &mut self.head })
    }

    /// Makes everything durable. If the process dies before this returns, all of the batch is
    /// there after reopening or none of it; once it has returned, all of it.
    pub fn commit(self) -> Result<(), Error> {
        self.files.make_names_durable()?;
        self.tx.commit().map_err(Error::while_trying("make the batch durable"))?;
        self.refs.committed();
        self.checkpointer.after_commit();
        self.files.check_after()
    }
}

/// A pass under way: facts on their way to becoming durable, with the record that explains them.
#[must_use = "a pass that is not committed is rolled back"]
pub struct Pass<'b> {
    savepoint: Open<'b>,
    log: LogId,
    refs: &'b mut Refs,
    head: &'b mut Seq,
}

impl Pass<'_> {
    /// What the log and the facts look like from inside this pass.
    pub fn view(&self) -> View<'_> {
        View { connection: self.savepoint.connection, log: self.log }
    }

    /// The position of the last event.
    pub fn head(&self) -> Seq {
        *self.head
    }

    /// Hands over the events of a range without a look at the store, if this process appended all
    /// of them lately; says whether it did.
    pub fn each_at_hand(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(&Event<'_>),
    ) -> bool {
        let rows = self.refs.at_hand(range, *self.head).unwrap_or_default();
        let events = rows.iter().map(Row::event).collect::<Option<Vec<_>>>().unwrap_or_default();
        events.iter().for_each(&mut each);
        !events.is_empty()
    }

    /// The name of the event at a position.
    pub fn event_ref(&self, seq: Seq) -> Result<EventRef, Error> {
        match self.refs.at_hand(seq..=*self.head, *self.head) {
            Some([row, ..]) => Ok(row.name()),
            _ => self.view().event_ref(seq),
        }
    }

    /// Removes all facts and tallies of this log: another rule set starts from nothing.
    pub fn start_over(&self) -> Result<(), Error> {
        let attempt = Error::while_trying("start over with another rule set");
        let connection = self.savepoint.connection;
        connection.execute("DELETE FROM fact WHERE log = ?1", [self.log.0]).map_err(&attempt)?;
        connection.execute("DELETE FROM tally WHERE log = ?1", [self.log.0]).map_err(&attempt)?;
        Ok(())
    }

    /// Puts a fact in place of the one of that id; says whether anything changed.
    pub fn put_fact(&self, id: &FactId, fact: &Fact) -> Result<bool, Error> {
        put_fact(self.savepoint.connection, self.log, id, fact)
    }

    /// Removes a fact; says whether there was one.
    pub fn remove_fact(&self, id: &FactId) -> Result<bool, Error> {
        self.change("DELETE FROM fact WHERE fact_id = ?1", [id.0]).map(|rows| rows > 0)
    }

    /// Removes the sum behind a fact.
    pub fn remove_tally(&self, id: &FactId) -> Result<(), Error> {
        self.change("DELETE FROM tally WHERE fact_id = ?1", [id.0]).map(drop)
    }

    /// Takes down that so many more of a fact's past observations were forgotten.
    pub fn count_forgotten(&self, id: &FactId, observations: u64) -> Result<(), Error> {
        let sql = "UPDATE fact SET forgotten = forgotten + ?2 WHERE fact_id = ?1";
        self.change(sql, (id.0, observations.cast_signed())).map(drop)
    }

    fn change(&self, sql: &str, values: impl rusqlite::Params) -> Result<usize, Error> {
        self.savepoint
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(Error::while_trying("change a fact or its sum"))
    }

    /// Puts the sum behind a fact.
    pub fn put_tally(&self, id: &FactId, state: &[u8]) -> Result<(), Error> {
        let sql = "INSERT INTO tally (log, fact_id, state) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (fact_id) DO UPDATE SET state = excluded.state";
        let put =
            || self.savepoint.connection.prepare_cached(sql)?.execute((self.log.0, id.0, state));
        put().map(drop).map_err(Error::while_trying("put a tally"))
    }

    /// Finishes the pass: its record joins the log, its facts and checkpoint join the batch.
    pub fn commit(self, record: &PassRecord<'_>) -> Result<Seq, Error> {
        let mut head = *self.head;
        let connection = self.savepoint.connection;
        let appended = append(connection, &mut None, self.log, self.refs, &mut head, record.event);
        // If anything fails from here on, the savepoint is rolled back, and the refs with it.
        let known = self.refs.doubt();
        let Appended::New(seq) = appended? else {
            return Err(Error::Corrupt(format!(
                "a pass record for the range from seq {} is there already",
                record.first
            )));
        };
        let attempt = Error::while_trying("record the pass");
        self.put_pass(seq, record).map_err(&attempt)?;
        seal::small_chunks(self.savepoint.connection, self.log, record.first, head)?;
        self.savepoint.commit().map_err(&attempt)?;
        self.refs.trust(known);
        *self.head = head;
        Ok(seq)
    }

    fn put_pass(&self, seq: Seq, record: &PassRecord<'_>) -> rusqlite::Result<()> {
        let progress = &record.progress;
        let seqs = [record.first, progress.checkpoint, progress.tallied];
        let [first, last, tallied] = seqs.map(|seq| seq.0.cast_signed());
        let sql = "INSERT INTO pass (at, first_seq, last_seq, tallied, rule_version, \
                   rule_set_sha256) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let rules = (&progress.rule_version, progress.rule_set);
        let row = (self.log.at(seq), first, last, tallied, rules.0, rules.1);
        self.savepoint.connection.prepare_cached(sql)?.execute(row).map(drop)
    }
}

/// Puts a fact in place of the one of that id; says whether anything changed.
pub(super) fn put_fact(
    connection: &Connection,
    log: LogId,
    id: &FactId,
    fact: &Fact,
) -> Result<bool, Error> {
    let sql = "INSERT INTO fact \
               (log, fact_id, fact_kind, fact_key, value, last_us, last_ref) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (fact_id) DO UPDATE SET \
               value = excluded.value, last_us = excluded.last_us, \
               last_ref = excluded.last_ref \
               WHERE (value, last_us, last_ref) \
               IS NOT (excluded.value, excluded.last_us, excluded.last_ref)";
    let (kind, key) = (fact.key.kind().name(), fact.key.text());
    let (time, last) = (fact.last.time.micros(), fact.last.event_ref.0);
    let row = (log.0, id.0, kind, key, &fact.value, time, last);
    let put = || connection.prepare_cached(sql)?.execute(row);
    put().map(|rows| rows > 0).map_err(Error::while_trying("put a fact"))
}

/// Where appended events go: the right edge of the log, if nobody has their ref.
fn append<'c>(
    connection: &'c Connection,
    insert: &mut Option<CachedStatement<'c>>,
    log: LogId,
    refs: &mut Refs,
    head: &mut Seq,
    event: &Admitted,
) -> Result<Appended, Error> {
    if head.0 >= MAX_SEQ {
        return Err(Error::Limit("a log holds at most 2^40 - 1 events"));
    }
    refs.follow(connection, log, *head)?;
    if let Some(seq) = refs.find(connection, log, &event.event_ref)? {
        return compare(connection, log, seq, event);
    }
    let seq = head.next();
    let (name, time, digest) = (event.event_ref.0, event.time.micros(), event.digest.0);
    let at = log.at(seq);
    let row = (at, name, time, &event.event_type, digest, &event.columns, &event.canonical);
    let insert = match insert {
        Some(insert) => insert,
        none => none.insert(prepare_insert(connection)?),
    };
    insert.execute(row).map_err(Error::while_trying("append an event"))?;
    refs.add(event, seq);
    *head = seq;
    if seq.0.is_multiple_of(CHUNK_EVENTS as u64) {
        refs.seal(connection, log, seq)?;
    }
    Ok(Appended::New(seq))
}

fn prepare_insert(connection: &Connection) -> Result<CachedStatement<'_>, Error> {
    // FAIL, not ABORT: of one row there is nothing to go back on, so SQLite keeps no copy to do so.
    let sql = "INSERT OR FAIL INTO event (at, event_ref, time_us, type, digest, columns, payload) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.prepare_cached(sql).map_err(Error::while_trying("append an event"))
}

/// Tells a duplicate from a conflict, and both from an event that was forgotten.
fn compare(
    connection: &Connection,
    log: LogId,
    seq: Seq,
    event: &Admitted,
) -> Result<Appended, Error> {
    connection
        .prepare_cached("SELECT payload FROM event WHERE at = ?1")
        .and_then(|mut statement| {
            statement.query_row([log.at(seq)], |row| {
                Ok(match row.get_ref(0)?.as_str() {
                    Ok("") => Appended::Forgotten(seq),
                    Ok(stored) if event.says_the_same_as(stored) => Appended::Duplicate(seq),
                    _ => Appended::Conflict(seq),
                })
            })
        })
        .map_err(Error::while_trying("compare an event with the one in the log"))
}
