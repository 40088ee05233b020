//! Sealing: every 4096 events their typed columns become a chunk, in the transaction that appends
//! the last of them. A pass puts the newest ones into small chunks until then.
//!
//! **Invariant:** a chunk is made from the rows it covers and from nothing else, so one that is
//! missing can be made again at any time.

use super::read::chunk_around;
use super::{LogId, View};
use crate::Error;
use ipse_core::chunk::{self, CHUNK_EVENTS, SMALL_EVENTS};
use ipse_core::{Admitted, Event, EventRef, Seq, Time};
use rusqlite::Connection;

/// What a chunk needs of an event.
pub(super) struct Row {
    event_ref: EventRef,
    time: Time,
    event_type: String,
    columns: Vec<u8>,
}

impl Row {
    pub(super) fn of(event: &Admitted) -> Self {
        Row {
            event_ref: event.event_ref,
            time: event.time,
            event_type: event.event_type.clone(),
            columns: event.columns.clone(),
        }
    }

    pub(super) fn name(&self) -> EventRef {
        self.event_ref
    }

    /// The event as rules see it; `None` if its columns are damaged.
    pub(super) fn event(&self) -> Option<Event<'_>> {
        Event::of_row(self.event_ref, self.time, &self.event_type, &self.columns)
    }
}

/// Makes the full chunk that ends at `last`, in place of the small ones. The newest rows, if they
/// are all at hand, are not read again.
pub(super) fn chunk(
    connection: &Connection,
    log: LogId,
    last: Seq,
    newest: &[Row],
) -> Result<(), Error> {
    let (first, _) = chunk_around(last, CHUNK_EVENTS);
    connection
        .prepare_cached("DELETE FROM chunk WHERE at BETWEEN ?1 AND ?2")
        .and_then(|mut statement| statement.execute((log.at(first), log.at(last))))
        .map_err(Error::while_trying("remove small chunks"))?;
    if newest.len() == CHUNK_EVENTS {
        put(connection, log, last, newest)
    } else {
        put(connection, log, last, &rows(connection, log, first, last)?)
    }
}

/// Makes the chunk around a position anew from its rows, if there is one; says how far it reaches.
pub(super) fn again(
    connection: &Connection,
    log: LogId,
    seq: Seq,
    head: Seq,
) -> Result<Seq, Error> {
    let (_, full) = chunk_around(seq, CHUNK_EVENTS);
    if full <= head {
        chunk(connection, log, full, &[])?;
        return Ok(full);
    }
    let (first, last) = chunk_around(seq, SMALL_EVENTS);
    if (View { connection, log }).has_chunk(last)? {
        connection
            .prepare_cached("DELETE FROM chunk WHERE at = ?1")
            .and_then(|mut statement| statement.execute([log.at(last)]))
            .map_err(Error::while_trying("remove a chunk"))?;
        put(connection, log, last, &rows(connection, log, first, last)?)?;
    }
    Ok(last)
}

/// Makes the small chunks of events up to `head` that are missing, if one ends at `from` or later.
pub(super) fn small_chunks(
    connection: &Connection,
    log: LogId,
    from: Seq,
    head: Seq,
) -> Result<(), Error> {
    let size = SMALL_EVENTS as u64;
    if (from.0 - 1) / size == head.0 / size {
        return Ok(());
    }
    let full = head.0 / CHUNK_EVENTS as u64 * CHUNK_EVENTS as u64;
    for last in (full / size + 1..=head.0 / size).map(|number| Seq(number * size)) {
        if !(View { connection, log }).has_chunk(last)? {
            let (first, _) = chunk_around(last, SMALL_EVENTS);
            put(connection, log, last, &rows(connection, log, first, last)?)?;
        }
    }
    Ok(())
}

fn put(connection: &Connection, log: LogId, last: Seq, rows: &[Row]) -> Result<(), Error> {
    let damaged = || Error::Corrupt(format!("typed columns before seq {last} cannot be read"));
    let events = rows.iter().map(Row::event).collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
    let body = chunk::encode(&events);
    // Only full chunks are asked for their refs.
    let names = rows.iter().filter(|_| rows.len() == CHUNK_EVENTS);
    let refs: Vec<u8> = names.flat_map(|row| row.event_ref.0).collect();
    connection
        .prepare_cached("INSERT INTO chunk (at, body, refs) VALUES (?1, ?2, ?3)")
        .and_then(|mut statement| statement.execute((log.at(last), body, refs)))
        .map(drop)
        .map_err(Error::while_trying("seal a chunk"))
}

fn rows(connection: &Connection, log: LogId, first: Seq, last: Seq) -> Result<Vec<Row>, Error> {
    let attempt = Error::while_trying("read the events to seal");
    let sql = "SELECT event_ref, time_us, type, columns FROM event WHERE at BETWEEN ?1 AND ?2";
    let mut statement = connection.prepare_cached(sql).map_err(&attempt)?;
    let rows = statement
        .query_map((log.at(first), log.at(last)), |row| {
            Ok((EventRef(row.get(0)?), row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .map_err(&attempt)?;
    rows.map(|row| {
        let (event_ref, time, event_type, columns) = row.map_err(&attempt)?;
        let time = Time::from_micros(time)
            .ok_or_else(|| Error::Corrupt(format!("a time before seq {last} cannot be read")))?;
        Ok(Row { event_ref, time, event_type, columns })
    })
    .collect()
}

/// Makes every full chunk that is missing, as in a store whose derived parts were deleted; says
/// whether there was one.
pub(super) fn missing_chunks(
    connection: &Connection,
    log: LogId,
    head: Seq,
) -> Result<bool, Error> {
    let full = head.0 / CHUNK_EVENTS as u64;
    let attempt = Error::while_trying("count the chunks");
    let (low, high) = (log.at(Seq(0)), log.at(Seq(super::MAX_SEQ)));
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM chunk WHERE at BETWEEN ?1 AND ?2 AND at % ?3 = 0")
        .and_then(|mut statement| {
            statement.query_row((low, high, CHUNK_EVENTS.cast_signed()), |row| row.get(0))
        })
        .map_err(&attempt)?;
    if count.unsigned_abs() == full {
        return Ok(false);
    }
    for number in 1..=full {
        let last = Seq(number * CHUNK_EVENTS as u64);
        let there = View { connection, log }.has_chunk(last)?;
        if !there {
            chunk(connection, log, last, &[])?;
        }
    }
    Ok(true)
}
