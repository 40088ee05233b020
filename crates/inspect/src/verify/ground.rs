//! Checks the log event by event: position, digest, entry, typed columns, and chunks.

use super::evidence::Tree;
use super::{BESIDE, Check, DERIVED, GROUND, Report};
use crate::Error;
use ipse_audit::{Index, differences};
use ipse_consolidate::RuleSet;
use ipse_consult::intents::Content;
use ipse_core::chunk::{self, CHUNK_EVENTS, SMALL_EVENTS};
use ipse_core::event::PASS_RECORD;
use ipse_core::{Admitted, Digest, Event, EventRef, Seq, Time, sha256};
use ipse_door::{Origin, admit};
use ipse_ledger::account::can_be_forgotten;
use ipse_store::RawEvent;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The number of events between two progress reports.
const TELL_EVERY: u64 = 4096;

/// The chunks, compared during the walk over the log.
#[derive(Default)]
pub(super) struct Chunks {
    /// The last positions of stored chunks that the walk has not reached.
    ends: BTreeSet<Seq>,
    /// The events since the last full chunk, without their content.
    rows: Vec<Admitted>,
    /// Whether one of these events is missing or cannot be read.
    broken: bool,
    /// Chunks that differ from their events.
    odd: Vec<RangeInclusive<Seq>>,
}

impl<R: RuleSet> Check<'_, R> {
    /// Walks over the log and checks the log itself.
    pub(super) fn ground(&mut self) -> Result<(), Error> {
        let view = self.view;
        self.reached = view.progress()?;
        self.log.tree = Tree::new(view, self.outside)?;
        self.log.index = Index::new(self.log.tree.sizes());
        let total = view.head()?.0;
        self.log.chunks.ends = view.chunk_ends()?.into_iter().collect();
        view.each_raw_event(|raw| {
            if raw.seq.0.is_multiple_of(TELL_EVERY) {
                (self.progress)(raw.seq.0, total);
            }
            self.event(raw)
        })?;
        // The checkpoint is beyond the last event, so the end of the log is missing.
        let (head, checkpoint) = (self.log.head, self.reached.checkpoint);
        if checkpoint.0 > 0 && head <= checkpoint {
            self.gap(head.next(), checkpoint.next());
        }
        for last in std::mem::take(&mut self.log.chunks.ends) {
            if last <= head || !self.log.is_missing {
                let place = format!("chunk that ends at seq {last}");
                self.report.add(DERIVED, place, "is at a position where no chunk ends");
            }
        }
        self.report.events = self.log.index.names.len() as u64;
        for [first, _] in self.log.index.sort() {
            let name = self.log.index.names[first].to_string();
            self.report.add(GROUND, name, "is in the log twice");
        }
        self.report.all(GROUND, self.log.walk.forgets.faults());
        self.report.all(GROUND, self.log.walk.unfinished());
        for range in std::mem::take(&mut self.log.chunks.odd) {
            let forgets = &self.log.walk.forgets;
            // A chunk may be the only witness of the entry of a forgotten event.
            let kind = if forgets.any(range.clone()) { BESIDE } else { DERIVED };
            // Events without content that no `forget` event names cannot be compared.
            if !forgets.lost(range.clone()) {
                let place = format!("chunk of seq {}..{}", range.start(), range.end());
                self.report.add(kind, place, "differs from the events it covers");
            }
        }
        Ok(())
    }

    /// Reports positions that are missing.
    fn gap(&mut self, first: Seq, last: Seq) {
        let more = if first == last { String::new() } else { format!("..{last}") };
        self.report.add(GROUND, format!("seq {first}{more}"), "is missing from the log");
        self.log.is_missing = true;
    }

    fn event(&mut self, raw: RawEvent) -> Result<(), Error> {
        let (seq, expected) = (raw.seq, self.log.head.next());
        if seq.0 == 0 {
            self.report.add(GROUND, "seq 0", "is before the first position");
            return Ok(());
        }
        if seq != expected {
            self.gap(expected, Seq(seq.0 - 1));
            self.log.chunks.broken = true;
        }
        self.log.head = seq;
        let name = EventRef(raw.event_ref.as_slice().try_into().unwrap_or_default());
        self.log.index.names.push(name);
        let event_type = std::str::from_utf8(&raw.event_type).unwrap_or_default();
        let text = String::from_utf8_lossy(&raw.payload);
        let is_gone = raw.payload.is_empty() && raw.columns.is_empty();
        let (row, content) = if is_gone && can_be_forgotten(event_type) {
            (stored(&raw), Content::Forgotten)
        } else {
            let readable = if event_type == PASS_RECORD { text.as_bytes() } else { &raw.payload };
            (checked(&raw, &mut self.report), Content::Bytes(readable))
        };
        self.report.all(GROUND, self.log.walk.next(seq, name, event_type, content));
        self.grow(&raw, row.as_ref())?;
        let typed = row.as_ref().and_then(Admitted::typed);
        if let (Some(again), Some(time)) = (&mut self.gates.again, Time::from_micros(raw.time)) {
            again.next((seq, name, time), event_type, content, typed.as_ref());
        }
        self.log.chunks.broken |= typed.is_none();
        if let Some(event) = typed {
            let is_in_sums = seq <= self.reached.checkpoint;
            let sums = is_in_sums.then_some(&mut self.sums[0]);
            self.log.walk.feed(self.rules, sums, &event);
        }
        if seq == self.reached.tallied {
            self.sums[1] = self.sums[0].clone();
        }
        self.log.chunks.rows.extend(row);
        match seq.0.is_multiple_of(SMALL_EVENTS as u64) {
            true => self.chunk(seq),
            false => Ok(()),
        }
    }

    /// Compares the chunk that ends at a position, if one exists or must exist.
    fn chunk(&mut self, seq: Seq) -> Result<(), Error> {
        let is_full = seq.0.is_multiple_of(CHUNK_EVENTS as u64);
        let size = if is_full { CHUNK_EVENTS } else { SMALL_EVENTS };
        let first = Seq(seq.0 + 1 - size as u64);
        let place = format!("chunk of seq {first}..{seq}");
        let Chunks { ends, rows, broken, odd } = &mut self.log.chunks;
        let is_stored = ends.remove(&seq);
        if is_stored && !*broken && rows.len() >= size {
            let rows = &rows[rows.len() - size..];
            let events: Vec<Event<'_>> = rows.iter().filter_map(Admitted::typed).collect();
            let names = rows.iter().filter(|_| is_full).flat_map(|row| row.event_ref.0);
            let expected = (chunk::encode(&events), names.collect::<Vec<u8>>());
            match self.view.raw_chunk(seq)? {
                Some((_, names)) if reordered(&names, &expected.1) => {
                    let message = "was sealed with its events in another order";
                    self.report.add(GROUND, place, message);
                }
                stored if stored.as_ref() != Some(&expected) => odd.push(first..=seq),
                _ => {}
            }
        } else if !is_stored && is_full {
            self.report.add(DERIVED, place, "is missing");
        }
        if is_full {
            rows.clear();
            *broken = false;
        }
        Ok(())
    }
}

/// Whether both have the same names in another order.
fn reordered(stored: &[u8], expected: &[u8]) -> bool {
    let sorted = |names: &[u8]| {
        let mut names: Vec<[u8; 16]> = names.as_chunks().0.to_vec();
        names.sort_unstable();
        names
    };
    stored != expected && sorted(stored) == sorted(expected)
}

/// The event of a row as stored, without content.
fn stored(raw: &RawEvent) -> Option<Admitted> {
    Some(Admitted {
        event_ref: EventRef(raw.event_ref.as_slice().try_into().unwrap_or_default()),
        event_type: String::from_utf8(raw.event_type.clone()).ok()?,
        time: Time::from_micros(raw.time)?,
        digest: Digest(raw.digest.as_slice().try_into().unwrap_or_default()),
        canonical: String::new(),
        salt_at: 0..0,
        columns: raw.columns.clone(),
    })
}

/// Compares a row with its payload. Returns the event without content.
fn checked(raw: &RawEvent, report: &mut Report) -> Option<Admitted> {
    let place = format!("seq {}", raw.seq);
    // A stored event has its salt. If it is missing, the zero salt changes the bytes.
    let event = admit(&raw.payload, Origin::House, || [0; 16]).ok();
    let event = event.filter(|event| event.canonical.as_bytes() == raw.payload);
    let digest = event.as_ref().map_or_else(|| sha256(&[&raw.payload]), |event| event.digest.0);
    if digest != raw.digest.as_slice() {
        report.add(GROUND, place, "payload and digest do not match");
        return stored(raw);
    }
    let Some(event) = event else {
        report.add(GROUND, place, "the payload is not an event in canonical form");
        return stored(raw);
    };
    for part in differences(&event, (&raw.event_ref, raw.time, &raw.event_type)) {
        report.add(GROUND, &place, format!("{part} and payload do not match"));
    }
    if event.columns != raw.columns {
        report.add(BESIDE, place, "typed columns and payload do not match");
    }
    Some(Admitted { canonical: String::new(), ..event })
}
