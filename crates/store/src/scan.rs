//! Scanning a log: chunk by chunk where chunks exist, event by event elsewhere.
//!
//! **Invariant:** every event of the range is passed on exactly once, as a place in a chunk or as a
//! single event; a chunk that cannot be decoded is an error.

use crate::Error;
use crate::read::View;
use crate::session::{Order, Result};
use ipse_core::chunk::{CHUNK_EVENTS, Chunk, SMALL_EVENTS};
use ipse_core::{Event, Seq};
use std::ops::{ControlFlow, Range, RangeInclusive};

/// The receiver of a scan.
pub trait Scan<E> {
    /// Receives the events at `places` of a chunk whose first event is at position `first`.
    fn chunk(
        &mut self,
        first: Seq,
        chunk: &Chunk<'_>,
        places: Range<usize>,
    ) -> std::result::Result<(), E>;

    /// Receives one event.
    fn event(&mut self, seq: Seq, event: &Event<'_>) -> std::result::Result<(), E>;

    /// Whether the scan may stop.
    fn enough(&self) -> bool {
        false
    }
}

/// A range of up to this many events is read from rows, even if a chunk holds it.
const FEW_ROWS: u64 = 16;
const CONTINUE: ControlFlow<()> = ControlFlow::Continue(());
const BREAK: ControlFlow<()> = ControlFlow::Break(());

/// The first and last position of the chunk of this size, stored or not, that holds a position.
pub(crate) fn chunk_around(seq: Seq, size: usize) -> (Seq, Seq) {
    let size = size as u64;
    let before = (seq.0 - 1) / size * size;
    (Seq(before + 1), Seq(before + size))
}

/// Decodes a chunk. Returns its first position too.
fn decode(last: Seq, body: &[u8]) -> Result<(Seq, Chunk<'_>)> {
    let fits = |chunk: &Chunk<'_>| {
        let size = chunk.count;
        (size == CHUNK_EVENTS || size == SMALL_EVENTS) && last.0.is_multiple_of(size as u64)
    };
    let chunk = Chunk::decode(body).filter(fits);
    let chunk =
        chunk.ok_or_else(|| Error::Corrupt(format!("the chunk of seq {last} cannot be read")))?;
    Ok((chunk_around(last, chunk.count).0, chunk))
}

impl View<'_> {
    /// Passes a range of the log to `sink`, in order, until it has enough. Some events may follow
    /// after it has enough.
    pub fn scan<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        sink: &mut impl Scan<E>,
    ) -> std::result::Result<(), E> {
        let (mut next, end) = range.clone().into_inner();
        if end.0.saturating_sub(next.0) < FEW_ROWS {
            return self.each_event(range, |seq, event| sink.event(seq, event));
        }
        let ends = next..=chunk_around(end, CHUNK_EVENTS).1;
        self.visit_chunks::<E>(ends, Order::OldestFirst, |first, last, chunk| {
            if next < first {
                let stop = Seq(first.0 - 1).min(end);
                self.rows(next..=stop, sink)?;
                next = stop.next();
            }
            if next <= end && next <= last && !sink.enough() {
                let stop = last.min(end);
                sink.chunk(first, chunk, places(first, next, stop))?;
                next = stop.next();
            }
            Ok(if next > end || sink.enough() { BREAK } else { CONTINUE })
        })?;
        self.rows(next..=end, sink)
    }

    /// Passes events from rows to `sink`, until it has enough.
    fn rows<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        sink: &mut impl Scan<E>,
    ) -> std::result::Result<(), E> {
        let (mut next, end) = range.into_inner();
        while next <= end && !sink.enough() {
            let stop = chunk_around(next, SMALL_EVENTS).1.min(end);
            self.each_event(next..=stop, |seq, event| sink.event(seq, event))?;
            next = stop.next();
        }
        Ok(())
    }

    /// Passes the log up to `end` to `sink`, from the end towards the beginning, until it has
    /// enough: chunk by chunk where chunks exist, elsewhere in groups of events in ascending order.
    pub fn scan_back<E: From<Error>>(
        &self,
        mut end: Seq,
        sink: &mut impl Scan<E>,
    ) -> std::result::Result<(), E> {
        if end.0 == 0 {
            return Ok(());
        }
        let ends = Seq(1)..=chunk_around(end, CHUNK_EVENTS).1;
        self.visit_chunks::<E>(ends, Order::NewestFirst, |first, last, chunk| {
            // Small chunks after the end are skipped.
            if first <= end {
                if last < end {
                    self.rows_back(last.next(), end, sink)?;
                    end = last;
                }
                if !sink.enough() {
                    sink.chunk(first, chunk, places(first, first, end.min(last)))?;
                    end = Seq(first.0 - 1);
                }
            }
            Ok(if end.0 == 0 || sink.enough() { BREAK } else { CONTINUE })
        })?;
        self.rows_back(Seq(1), end, sink)
    }

    fn rows_back<E: From<Error>>(
        &self,
        first: Seq,
        mut end: Seq,
        sink: &mut impl Scan<E>,
    ) -> std::result::Result<(), E> {
        while end >= first && !sink.enough() {
            let start = chunk_around(end, SMALL_EVENTS).0.max(first);
            self.each_event(start..=end, |seq, event| sink.event(seq, event))?;
            end = Seq(start.0 - 1);
        }
        Ok(())
    }

    /// Visits the chunks that end in a range, each with its first and its last position.
    fn visit_chunks<E: From<Error>>(
        &self,
        ends: RangeInclusive<Seq>,
        order: Order,
        mut visit: impl FnMut(Seq, Seq, &Chunk<'_>) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<(), E> {
        let mut failed = None;
        self.session.visit_chunks(self.log, ends, order, &mut |last, body| {
            let (first, chunk) = decode(last, body)?;
            Ok(visit(first, last, &chunk).unwrap_or_else(|error| {
                failed = Some(error);
                BREAK
            }))
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// The places of the positions from `from` to `to` in a chunk.
fn places(first: Seq, from: Seq, to: Seq) -> Range<usize> {
    (from.0 - first.0) as usize..(to.0 - first.0 + 1) as usize
}
