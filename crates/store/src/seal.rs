//! Sealing: the typed columns of 4096 events become a chunk, in the transaction that appends the
//! last of them. Until then a pass puts the newest events into small chunks.
//!
//! **Invariant:** a chunk is derived only from the rows that it covers, so a missing chunk can be
//! created again at any time.

use crate::read::{ALL, CONTENT_PAGE, pages};
use crate::scan::chunk_around;
use crate::session::{Log, Result, Session, Typed};
use ipse_core::chunk::{self, CHUNK_EVENTS, SMALL_EVENTS};
use ipse_core::{EventRef, Seq};
use std::ops::RangeInclusive;

/// Creates the full chunk that ends at `last`, replacing the small ones. If all rows are in
/// `newest`, they are not read again.
pub(crate) fn full_chunk(
    session: &dyn Session,
    log: Log,
    last: Seq,
    newest: &[Typed],
) -> Result<()> {
    let (first, _) = chunk_around(last, CHUNK_EVENTS);
    match newest.len() == CHUNK_EVENTS {
        true => put(session, log, first..=last, newest),
        false => put(session, log, first..=last, &rows(session, log, first..=last)?),
    }
}

/// Creates the chunk around a position again from its rows, if one exists. Returns the last
/// position of the chunk.
pub(crate) fn again(session: &dyn Session, log: Log, seq: Seq, head: Seq) -> Result<Seq> {
    let (_, full) = chunk_around(seq, CHUNK_EVENTS);
    if full <= head {
        full_chunk(session, log, full, &[])?;
        return Ok(full);
    }
    let (first, last) = chunk_around(seq, SMALL_EVENTS);
    if !session.chunk_ends(log, last..=last)?.is_empty() {
        put(session, log, last..=last, &rows(session, log, first..=last)?)?;
    }
    Ok(last)
}

/// Creates the missing small chunks of events up to `head`, if one ends at `from` or later.
pub(crate) fn small_chunks(session: &dyn Session, log: Log, from: Seq, head: Seq) -> Result<()> {
    let size = SMALL_EVENTS as u64;
    if (from.0 - 1) / size == head.0 / size {
        return Ok(());
    }
    let full = head.0 / CHUNK_EVENTS as u64 * CHUNK_EVENTS as u64;
    let sealed = session.chunk_ends(log, Seq(full + 1)..=head)?;
    for last in (full / size + 1..=head.0 / size).map(|number| Seq(number * size)) {
        if sealed.binary_search(&last).is_err() {
            let (first, _) = chunk_around(last, SMALL_EVENTS);
            put(session, log, last..=last, &rows(session, log, first..=last)?)?;
        }
    }
    Ok(())
}

/// Creates every missing full chunk, as in a store whose derived data was deleted. Returns whether
/// one was missing.
pub(crate) fn missing_chunks(session: &dyn Session, log: Log, head: Seq) -> Result<bool> {
    let size = CHUNK_EVENTS as u64;
    let mut sealed = session.chunk_ends(log, ALL)?;
    sealed.retain(|last| last.0.is_multiple_of(size));
    let full = head.0 / size;
    if sealed.len() as u64 == full {
        return Ok(false);
    }
    for last in (1..=full).map(|number| Seq(number * size)) {
        if sealed.binary_search(&last).is_err() {
            full_chunk(session, log, last, &[])?;
        }
    }
    Ok(true)
}

/// Stores the chunk of these rows, replacing the chunks that end in a range. The chunk ends where
/// the range ends.
fn put(
    session: &dyn Session,
    log: Log,
    replaced: RangeInclusive<Seq>,
    rows: &[Typed],
) -> Result<()> {
    let events = rows.iter().map(Typed::event).collect::<Result<Vec<_>>>()?;
    let body = chunk::encode(&events);
    // Only full chunks store the names of their events.
    let is_full = rows.len() == CHUNK_EVENTS;
    let names: Vec<EventRef> = rows.iter().filter(|_| is_full).map(|row| row.event_ref).collect();
    session.put_chunk(log, replaced, &body, &names)
}

fn rows(session: &dyn Session, log: Log, range: RangeInclusive<Seq>) -> Result<Vec<Typed>> {
    let mut all = Vec::new();
    let read = |range| session.typed(log, range, CONTENT_PAGE);
    pages(
        range,
        CONTENT_PAGE,
        read,
        |row: &Typed| row.seq,
        |row| {
            all.push(row);
            Ok::<_, crate::Error>(())
        },
    )?;
    Ok(all)
}
