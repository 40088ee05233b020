//! Sealing: every 4096 events their typed columns become a chunk, in the transaction that appends
//! the last of them. A pass puts the newest ones into small chunks until then.
//!
//! **Invariant:** a chunk is made from the rows it covers and from nothing else, so one that is
//! missing can be made again at any time.

use crate::read::{ALL, CONTENT_PAGE, pages};
use crate::scan::chunk_around;
use crate::session::{Log, Result, Session, Typed};
use ipse_core::chunk::{self, CHUNK_EVENTS, SMALL_EVENTS};
use ipse_core::{EventRef, Seq};
use std::ops::RangeInclusive;

/// Makes the full chunk that ends at `last`, in place of the small ones. The newest rows, if they
/// are all at hand, are not read again.
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

/// Makes the chunk around a position again from its rows, if there is one; returns how far it
/// reaches.
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

/// Makes the small chunks of events up to `head` that are missing, if one ends at `from` or later.
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

/// Makes every full chunk that is missing, as in a store whose derived parts were deleted; returns
/// whether one was.
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

/// Stores the chunk of some rows in place of those that end in a range; it ends where the range
/// does.
fn put(
    session: &dyn Session,
    log: Log,
    replaced: RangeInclusive<Seq>,
    rows: &[Typed],
) -> Result<()> {
    let events = rows.iter().map(Typed::event).collect::<Result<Vec<_>>>()?;
    let body = chunk::encode(&events);
    // Only full chunks are asked for their names.
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
