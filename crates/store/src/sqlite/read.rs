//! Reading: a connection that cannot write, and one consistent view of one log.
//!
//! **Invariants:** everything read through one [`View`] is of one moment, whatever others write
//! meanwhile; damaged bytes are an error that names the place, never a guess.

use super::erase::pending;
use super::files::Files;
use super::register::find_log;
use super::{LogId, MAX_SEQ, open_to_read, seq_of};
use crate::{Error, Progress, Stored};
use ipse_core::chunk::{CHUNK_EVENTS, Chunk, SMALL_EVENTS};
use ipse_core::{
    Digest, Event, EventRef, Fact, FactId, FactKey, FactKind, Identity, Seq, Support, Time,
};
use ipse_ledger::Entry;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Transaction};
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::path::Path;

/// A read-only handle on a store.
pub struct Reader {
    pub(super) connection: Connection,
    files: Files,
}

impl Reader {
    /// Opens a store for reading only.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Reader { connection: open_to_read(path)?, files: Files::at(path) })
    }

    /// Writes a compact copy of the whole store to a path where nothing is.
    pub fn copy_to(&self, path: &Path) -> Result<(), Error> {
        let name = path.to_string_lossy();
        self.connection
            .execute("VACUUM INTO ?1", [name.as_ref()])
            .map(drop)
            .map_err(Error::while_trying("copy the store"))
    }

    /// A number that moves whenever another connection, of any process, has changed the store; an
    /// error if the store or its write-ahead log was removed or replaced since it was opened.
    pub fn version(&self) -> Result<i64, Error> {
        self.files.check()?;
        self.connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(Error::while_trying("look whether the store has changed"))
    }

    /// Whether what was forgotten may still be in the file or its write-ahead log.
    pub fn erase_pending(&self) -> Result<bool, Error> {
        Ok(!pending(&self.connection)?.is_empty())
    }

    /// All registered identities with their canonical manifests, oldest first.
    pub fn manifests(&self) -> Result<Vec<(String, String)>, Error> {
        let read = || {
            self.connection
                .prepare("SELECT identity_hash, canonical FROM manifest ORDER BY log")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()
        };
        read().map_err(Error::while_trying("read the manifests"))
    }

    /// A consistent view of one identity's log and facts, as of now.
    pub fn view(&self, identity: &Identity) -> Result<Snapshot<'_>, Error> {
        let transaction = self
            .connection
            .unchecked_transaction()
            .map_err(Error::while_trying("begin to read"))?;
        let log = find_log(&transaction, identity)?
            .ok_or_else(|| Error::UnknownIdentity(identity.to_string()))?;
        Ok(Snapshot { transaction, log })
    }
}

/// A read transaction: what [`Reader::view`] holds open.
pub struct Snapshot<'r> {
    transaction: Transaction<'r>,
    log: LogId,
}

impl Snapshot<'_> {
    /// What can be read.
    pub fn view(&self) -> View<'_> {
        View { connection: &self.transaction, log: self.log }
    }
}

/// Takes a log in, as much of it at once as there is.
pub trait Scan<E> {
    /// The events at `places` of a chunk whose first event stands at `first`.
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), E>;

    /// One event.
    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), E>;

    /// Whether nothing more is wanted.
    fn enough(&self) -> bool {
        false
    }
}

/// So few events are read from their rows, whether they are in a chunk or not.
const FEW_ROWS: u64 = 16;

/// First and last position of the chunk of that size, sealed or not, that a position belongs to.
pub(super) fn chunk_around(seq: Seq, size: usize) -> (Seq, Seq) {
    let size = size as u64;
    let before = (seq.0 - 1) / size * size;
    (Seq(before + 1), Seq(before + size))
}

/// One moment of one log.
#[derive(Clone, Copy)]
pub struct View<'c> {
    pub(super) connection: &'c Connection,
    pub(super) log: LogId,
}

impl<'c> View<'c> {
    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, Error> {
        self.connection.prepare_cached(sql).map_err(Error::while_trying("prepare a query"))
    }

    /// The position of the last event; 0 if there is none.
    pub fn head(&self) -> Result<Seq, Error> {
        let (first, last) = (self.log.at(Seq(0)), self.log.at(Seq(MAX_SEQ)));
        let at: Option<i64> = self
            .prepare("SELECT max(at) FROM event WHERE at BETWEEN ?1 AND ?2")?
            .query_row((first, last), |row| row.get(0))
            .map_err(Error::while_trying("find the end of the log"))?;
        Ok(at.map_or(Seq(0), seq_of))
    }

    /// How many pass records there are.
    pub fn pass_count(&self) -> Result<u64, Error> {
        let (first, last) = (self.log.at(Seq(0)), self.log.at(Seq(MAX_SEQ)));
        let count: i64 = self
            .prepare("SELECT count(*) FROM pass WHERE at BETWEEN ?1 AND ?2")?
            .query_row((first, last), |row| row.get(0))
            .map_err(Error::while_trying("count the passes"))?;
        Ok(count.unsigned_abs())
    }

    /// How far the facts have come.
    pub fn progress(&self) -> Result<Progress, Error> {
        let sql = "SELECT last_seq, tallied, rule_version, rule_set_sha256 FROM pass \
                   WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT 1";
        let bounds = (self.log.at(Seq(0)), self.log.at(Seq(MAX_SEQ)));
        let read = |row: &Row<'_>| {
            Ok(Progress {
                checkpoint: Seq(row.get::<_, i64>(0)?.unsigned_abs()),
                tallied: Seq(row.get::<_, i64>(1)?.unsigned_abs()),
                rule_version: row.get(2)?,
                rule_set: row.get(3)?,
            })
        };
        let progress = self
            .prepare(sql)?
            .query_row(bounds, read)
            .optional()
            .map_err(Error::while_trying("read the checkpoint"))?;
        Ok(progress.unwrap_or_default())
    }

    /// Hands each event of a range to `each`, in order, as rules see it.
    pub fn each_event<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Seq, &Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT at, event_ref, time_us, type, columns FROM event \
                   WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
        let mut statement = self.prepare(sql)?;
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()));
        let attempt = Error::while_trying("read the events");
        let mut rows = statement.query(bounds).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            let seq = seq_of(row.get(0).map_err(&attempt)?);
            let event = typed_event(row).map_err(&attempt)?;
            each(seq, &event.ok_or_else(|| damaged("typed columns", seq))?)?;
        }
        Ok(())
    }

    /// Hands the entries of a range to `each`, in order, each with whether its event was forgotten.
    pub fn each_entry<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Entry, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT at, event_ref, time_us, type, digest, columns = x'' FROM event \
                   WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
        let mut statement = self.prepare(sql)?;
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()));
        let attempt = Error::while_trying("read the entries of the log");
        let mut rows = statement.query(bounds).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            let (entry, forgotten) = entry(row).map_err(&attempt)??;
            each(entry, forgotten)?;
        }
        Ok(())
    }

    /// Hands a range of the log to `sink`, until it has enough: whole chunks where they are sealed,
    /// events elsewhere. Some events may follow after it has enough.
    pub fn scan<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        sink: &mut impl Scan<E>,
    ) -> Result<(), E> {
        let (mut next, end) = (*range.start(), *range.end());
        if end.0.saturating_sub(next.0) < FEW_ROWS {
            return self.each_event(range, |seq, event| sink.event(seq, event));
        }
        while next <= end && !sink.enough() {
            let stop = match self.scan_chunk(next, end, CHUNK_EVENTS, sink)? {
                Some(stop) => stop,
                None => match self.scan_chunk(next, end, SMALL_EVENTS, sink)? {
                    Some(stop) => stop,
                    None => {
                        let stop = chunk_around(next, SMALL_EVENTS).1.min(end);
                        self.each_event(next..=stop, |seq, event| sink.event(seq, event))?;
                        stop
                    }
                },
            };
            next = stop.next();
        }
        Ok(())
    }

    /// Hands the log up to `end` to `sink`, from the end towards the beginning, until it has
    /// enough: whole chunks where they are sealed, elsewhere some events at a time, in their order.
    pub fn scan_back<E: From<Error>>(
        &self,
        mut end: Seq,
        sink: &mut impl Scan<E>,
    ) -> Result<(), E> {
        while end.0 > 0 && !sink.enough() {
            let (mut first, _) = chunk_around(end, CHUNK_EVENTS);
            if self.scan_chunk(first, end, CHUNK_EVENTS, sink)?.is_none() {
                (first, _) = chunk_around(end, SMALL_EVENTS);
                if self.scan_chunk(first, end, SMALL_EVENTS, sink)?.is_none() {
                    self.each_event(first..=end, |seq, event| sink.event(seq, event))?;
                }
            }
            end = Seq(first.0 - 1);
        }
        Ok(())
    }

    /// Hands the chunk of that size around `next` to `sink`, up to `end`; says how far that was, if
    /// it is sealed.
    fn scan_chunk<E: From<Error>>(
        &self,
        next: Seq,
        end: Seq,
        size: usize,
        sink: &mut impl Scan<E>,
    ) -> Result<Option<Seq>, E> {
        let (first, last) = chunk_around(next, size);
        let attempt = Error::while_trying("read a chunk");
        let mut statement = self.prepare("SELECT body FROM chunk WHERE at = ?1")?;
        let mut rows = statement.query([self.log.at(last)]).map_err(&attempt)?;
        let Some(row) = rows.next().map_err(&attempt)? else { return Ok(None) };
        let body = row.get_ref(0).map_err(&attempt)?;
        let body = body.as_blob().map_err(|_| damaged("chunk", last))?;
        let chunk = Chunk::decode(body).filter(|chunk| chunk.count == size);
        let chunk = chunk.ok_or_else(|| damaged("chunk", last))?;
        let stop = last.min(end);
        let places = (next.0 - first.0) as usize..(stop.0 - first.0 + 1) as usize;
        sink.chunk(first, &chunk, places)?;
        Ok(Some(stop))
    }

    /// Hands each event of a range to `each`, newest last, as it is stored, until it breaks
    /// off; `limit` takes the newest so many.
    pub fn each_stored<E: From<Error>>(
        &self,
        passes_only: bool,
        limit: Option<u64>,
        mut each: impl FnMut(Stored) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let limit = limit.map_or(MAX_SEQ, |limit| limit.min(MAX_SEQ));
        // Positions in the log are dense, so the newest are a range; passes are few.
        let (sql, first) = if passes_only {
            (
                "SELECT e.at, e.event_ref, e.time_us, e.type, e.digest, e.payload FROM \
                 (SELECT at FROM pass WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT ?3) c \
                 JOIN event e ON e.at = c.at ORDER BY e.at",
                Seq(0),
            )
        } else {
            (
                "SELECT at, event_ref, time_us, type, digest, payload FROM event \
                 WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3",
                Seq((self.head()?.0 + 1).saturating_sub(limit)),
            )
        };
        let mut statement = self.prepare(sql)?;
        let bounds = (self.log.at(first), self.log.at(Seq(MAX_SEQ)), limit.cast_signed());
        let attempt = Error::while_trying("read the log");
        let mut rows = statement.query(bounds).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            if each(stored(row).map_err(&attempt)??)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Hands the canonical bytes of a range to `each`, in order, forgotten events left out.
    pub fn each_content<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT payload FROM event WHERE at BETWEEN ?1 AND ?2 AND payload <> '' \
                   ORDER BY at";
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()));
        self.each_payload(sql, bounds, each)
    }

    /// Hands the only column of a query to `each`.
    pub(super) fn each_payload<E: From<Error>>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self.prepare(sql)?;
        let attempt = Error::while_trying("read the events");
        let mut rows = statement.query(values).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            let payload = row.get_ref(0).map_err(&attempt)?;
            each(payload.as_str().map_err(|_| Error::Corrupt("a payload is no text".into()))?)?;
        }
        Ok(())
    }

    /// Hands the positions and canonical bytes of the events of a range whose bytes hold a text to
    /// `each`, in order. Every one of them is looked at: no text is indexed.
    pub fn each_holding<E: From<Error>>(
        &self,
        text: &str,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Seq, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT at, payload FROM event WHERE at BETWEEN ?1 AND ?2 \
                   AND instr(payload, ?3) ORDER BY at";
        let mut statement = self.prepare(sql)?;
        let attempt = Error::while_trying("look for what names an event");
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()), text);
        let mut rows = statement.query(bounds).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            let seq = seq_of(row.get(0).map_err(&attempt)?);
            let payload = row.get_ref(1).map_err(&attempt)?;
            each(seq, payload.as_str().map_err(|_| damaged("payload", seq))?)?;
        }
        Ok(())
    }

    /// The newest event of a type in a range, as it is stored.
    pub fn last_of_type(
        &self,
        event_type: &str,
        range: RangeInclusive<Seq>,
    ) -> Result<Option<Stored>, Error> {
        let sql = "SELECT at, event_ref, time_us, type, digest, payload FROM event \
                   WHERE at BETWEEN ?1 AND ?2 AND type = ?3 ORDER BY at DESC LIMIT 1";
        self.prepare(sql)?
            .query_row((self.log.at(*range.start()), self.log.at(*range.end()), event_type), stored)
            .optional()
            .map_err(Error::while_trying("look for an event"))?
            .transpose()
    }

    /// The event at a position, as it is stored.
    pub fn stored(&self, seq: Seq) -> Result<Option<Stored>, Error> {
        let sql = "SELECT at, event_ref, time_us, type, digest, payload FROM event WHERE at = ?1";
        self.prepare(sql)?
            .query_row([self.log.at(seq)], stored)
            .optional()
            .map_err(Error::while_trying("read an event"))?
            .transpose()
    }

    /// Whether the chunk that ends at a position is there.
    pub(super) fn has_chunk(&self, last: Seq) -> Result<bool, Error> {
        self.prepare("SELECT 1 FROM chunk WHERE at = ?1")?
            .exists([self.log.at(last)])
            .map_err(Error::while_trying("look for a chunk"))
    }

    /// The names of the events of the chunk that ends at a position; none if it is a small one.
    pub fn sealed_refs(&self, last: Seq) -> Result<Vec<EventRef>, Error> {
        self.prepare("SELECT refs FROM chunk WHERE at = ?1")?
            .query_row([self.log.at(last)], |row| {
                let refs = row.get_ref(0)?.as_blob()?;
                Ok(refs.as_chunks().0.iter().map(|name| EventRef(*name)).collect())
            })
            .map_err(Error::while_trying("read the refs of a chunk"))
    }

    /// The digest of the event at a position.
    pub fn digest(&self, seq: Seq) -> Result<Digest, Error> {
        self.prepare("SELECT digest FROM event WHERE at = ?1")?
            .query_row([self.log.at(seq)], |row| row.get(0).map(Digest))
            .map_err(Error::while_trying("read an event's digest"))
    }

    /// The name of the event at a position.
    pub fn event_ref(&self, seq: Seq) -> Result<EventRef, Error> {
        self.prepare("SELECT event_ref FROM event WHERE at = ?1")?
            .query_row([self.log.at(seq)], |row| row.get(0).map(EventRef))
            .map_err(Error::while_trying("read an event's name"))
    }

    /// All facts, in no particular order.
    pub fn facts(&self) -> Result<Vec<Fact>, Error> {
        let mut facts = Vec::new();
        self.each_fact(
            |_| true,
            |fact| {
                facts.push(fact);
                Ok::<_, Error>(())
            },
        )?;
        Ok(facts)
    }

    /// Hands the facts whose keys are wanted to `each`, in no particular order.
    pub fn each_fact<E: From<Error>>(
        &self,
        wanted: impl Fn(&FactKey) -> bool,
        mut each: impl FnMut(Fact) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT fact_kind, fact_key, value, last_us, last_ref FROM fact WHERE log = ?1";
        let mut statement = self.prepare(sql)?;
        let attempt = Error::while_trying("read the facts");
        let mut rows = statement.query([self.log.0]).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            if wanted(&fact_key(row).map_err(&attempt)??) {
                each(fact(row).map_err(&attempt)??)?;
            }
        }
        Ok(())
    }

    /// The identity whose log this is.
    pub fn identity(&self) -> Result<Identity, Error> {
        let hash: String = self
            .prepare("SELECT identity_hash FROM manifest WHERE log = ?1")?
            .query_row([self.log.0], |row| row.get(0))
            .map_err(Error::while_trying("read the identity"))?;
        Identity::parse(&hash).ok_or_else(|| Error::Corrupt(format!("identity `{hash}`")))
    }

    /// One fact; that of another identity is not there, though its id is known.
    pub fn fact(&self, id: &FactId) -> Result<Option<Fact>, Error> {
        let sql = "SELECT fact_kind, fact_key, value, last_us, last_ref FROM fact \
                   WHERE fact_id = ?1 AND log = ?2";
        self.prepare(sql)?
            .query_row((id.0, self.log.0), fact)
            .optional()
            .map_err(Error::while_trying("read a fact"))?
            .transpose()
    }

    /// How many of a fact's past observations were forgotten since.
    pub fn forgotten_of(&self, id: &FactId) -> Result<u64, Error> {
        let count: Option<i64> = self
            .prepare("SELECT forgotten FROM fact WHERE fact_id = ?1 AND log = ?2")?
            .query_row((id.0, self.log.0), |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read a fact"))?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    /// The bytes of all stored sums.
    pub fn tally_bytes(&self) -> Result<u64, Error> {
        let bytes: i64 = self
            .prepare("SELECT coalesce(sum(length(state)), 0) FROM tally WHERE log = ?1")?
            .query_row([self.log.0], |row| row.get(0))
            .map_err(Error::while_trying("measure the tallies"))?;
        Ok(bytes.unsigned_abs())
    }

    /// The stored sum behind one fact.
    pub fn tally(&self, id: &FactId) -> Result<Option<Vec<u8>>, Error> {
        self.prepare("SELECT state FROM tally WHERE fact_id = ?1")?
            .query_row([id.0], |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read a tally"))
    }
}

fn damaged(what: &str, seq: Seq) -> Error {
    Error::Corrupt(format!("the {what} of seq {seq} cannot be read"))
}

fn typed_event<'r>(row: &'r Row<'_>) -> rusqlite::Result<Option<Event<'r>>> {
    let Some(time) = Time::from_micros(row.get(2)?) else { return Ok(None) };
    let (name, columns) = (EventRef(row.get(1)?), row.get_ref(4)?.as_blob()?);
    Ok(Event::of_row(name, time, row.get_ref(3)?.as_str()?, columns))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Result<(Entry, bool), Error>> {
    let seq = seq_of(row.get(0)?);
    let Some(time) = Time::from_micros(row.get(2)?) else { return Ok(Err(damaged("time", seq))) };
    let (event_ref, event_type) = (EventRef(row.get(1)?), row.get(3)?);
    let entry = Entry { seq, event_ref, time, event_type, digest: Digest(row.get(4)?) };
    Ok(Ok((entry, row.get(5)?)))
}

pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<Result<Stored, Error>> {
    let seq = seq_of(row.get(0)?);
    let Some(time) = Time::from_micros(row.get(2)?) else { return Ok(Err(damaged("time", seq))) };
    Ok(Ok(Stored {
        seq,
        event_ref: EventRef(row.get(1)?),
        event_type: row.get(3)?,
        time,
        digest: Digest(row.get(4)?),
        canonical: row.get(5)?,
    }))
}

fn fact(row: &Row<'_>) -> rusqlite::Result<Result<Fact, Error>> {
    let key = match fact_key(row)? {
        Ok(key) => key,
        Err(error) => return Ok(Err(error)),
    };
    let Some(time) = Time::from_micros(row.get(3)?) else {
        return Ok(Err(unreadable_fact(key.kind().name(), key.text())));
    };
    let last = Support { time, event_ref: EventRef(row.get(4)?) };
    Ok(Ok(Fact { key, last, value: row.get(2)? }))
}

fn fact_key(row: &Row<'_>) -> rusqlite::Result<Result<FactKey, Error>> {
    let (kind, key): (String, String) = (row.get(0)?, row.get(1)?);
    Ok(match FactKind::parse(&kind) {
        Some(kind) => Ok(FactKey::from_text(kind, key)),
        None => Err(unreadable_fact(&kind, &key)),
    })
}

fn unreadable_fact(kind: &str, key: &str) -> Error {
    Error::Corrupt(format!("the {kind} fact `{key}` cannot be read"))
}
