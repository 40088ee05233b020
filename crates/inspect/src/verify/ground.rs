//! The log, event by event: position, digest, entry, typed columns, and the chunks made of them.

use super::evidence::Growing;
use super::{Report, Severity};
use crate::Error;
use ipse_consolidate::{BulkFold, EVERY_FACT, Group, RuleSet, Totals};
use ipse_consult::intents::{Content, Intents};
use ipse_core::chunk::{self, CHUNK_EVENTS, SMALL_EVENTS};
use ipse_core::event::{FORGET, PASS_RECORD};
use ipse_core::{Admitted, Event, EventRef, FactKey, Seq, Time, is_housekeeping, sha256};
use ipse_door::{Origin, admit};
use ipse_engine::Single;
use ipse_ledger::account::{Forgets, can_be_forgotten};
use ipse_store::sqlite::{RawEvent, View};
use std::ops::RangeInclusive;

/// Events between two words about how far it is.
const TELL_EVERY: u64 = 4096;

/// What the walk over the log brings home.
pub(super) struct Walked<'r, R: RuleSet> {
    /// The names of all events, in order.
    pub(super) names: Vec<EventRef>,
    /// The position of the last event.
    pub(super) head: Seq,
    /// Whether positions are missing.
    pub(super) missing: bool,
    /// Pass records, as far as they could be read.
    pub(super) records: Vec<Record>,
    /// What was forgotten, and what says so.
    pub(super) forgets: Forgets,
    /// Intents and decisions.
    pub(super) intents: Intents,
    /// The sums at the checkpoint, and where the stored tallies stand.
    pub(super) sums: [Folding<'r, R>; 2],
}

/// A pass record, with what the walk knew when it came by.
pub(super) struct Record {
    pub(super) seq: Seq,
    pub(super) canonical: String,
    /// Events before it, housekeeping aside.
    pub(super) counted: u64,
}

/// A fold by whichever way the rule set has.
pub(super) enum Folding<'r, R: RuleSet> {
    Bulk(Box<dyn BulkFold<R::Tally>>),
    Single(&'r R, Single<R::Tally>),
}

impl<'r, R: RuleSet> Folding<'r, R> {
    fn new(rules: &'r R) -> Self {
        match rules.bulk(EVERY_FACT) {
            Some(bulk) => Folding::Bulk(bulk),
            None => Folding::Single(rules, Single::default()),
        }
    }

    fn fold(&mut self, seq: Seq, event: &Event<'_>) {
        match self {
            // A name is never asked for: every event brings its own.
            Folding::Bulk(bulk) => bulk.fold_event(seq, event, &mut |_| None),
            Folding::Single(rules, single) => single.fold(*rules, event),
        }
    }

    pub(super) fn finish(self, mut each: impl FnMut(FactKey, Group<R::Tally>)) -> Totals {
        match self {
            Folding::Bulk(bulk) => bulk.finish(&mut |_| None, &mut each).unwrap_or_default(),
            Folding::Single(_, single) => single.finish(each),
        }
    }
}

/// What a chunk needs of an event.
struct Row {
    event_ref: EventRef,
    time: Time,
    event_type: String,
    columns: Vec<u8>,
}

impl Row {
    fn event(&self) -> Option<Event<'_>> {
        Event::of_row(self.event_ref, self.time, &self.event_type, &self.columns)
    }
}

pub(super) fn walk<'r, R: RuleSet>(
    view: View<'_>,
    rules: &'r R,
    growing: &mut Growing<'_>,
    report: &mut Report,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Walked<'r, R>, Error> {
    let reached = view.progress()?;
    let total = view.head()?.0;
    let mut walk = Walk {
        view,
        chunk_ends: view.chunk_ends()?,
        rows: Vec::new(),
        whole: true,
        counted: 0,
        odd_chunks: Vec::new(),
        until: [reached.checkpoint, reached.tallied],
        walked: Walked {
            names: Vec::new(),
            head: Seq(0),
            missing: false,
            records: Vec::new(),
            forgets: Forgets::default(),
            intents: Intents::default(),
            sums: [Folding::new(rules), Folding::new(rules)],
        },
    };
    view.each_raw_event(|raw| {
        if raw.seq.0.is_multiple_of(TELL_EVERY) {
            progress(raw.seq.0, total);
        }
        growing.push(&raw)?;
        walk.event(raw, report)
    })?;
    // The facts have come further than the log: its end is gone.
    let head = walk.walked.head;
    let expected = if reached.checkpoint.0 > 0 { reached.checkpoint.next() } else { Seq(0) };
    if head < expected {
        report.critical(range(head.next(), expected), "is missing from the log");
        walk.walked.missing = true;
    }
    for last in walk.chunk_ends.into_iter().filter(|last| *last <= head || !walk.walked.missing) {
        report.error(format!("chunk that ends at seq {last}"), "has no place there");
    }
    report.events = walk.walked.names.len() as u64;
    twice(&walk.walked.names, report);
    for (place, message) in walk.walked.forgets.faults() {
        report.critical(place, message);
    }
    tell_chunks(walk.odd_chunks, &walk.walked.forgets, report);
    Ok(walk.walked)
}

/// Tells which chunks differ from their events.
fn tell_chunks(odd: Vec<OddChunk>, forgets: &Forgets, report: &mut Report) {
    for (range, message) in odd {
        let place = format!("chunk of seq {}..{}", range.start(), range.end());
        if forgets.lost(range.clone()) {
            // What it says of content that is gone without a word cannot be compared.
        } else if forgets.any(range) {
            // It may be the only witness of what is left of a forgotten event.
            report.error_of_ground(place, message);
        } else {
            report.error(place, message);
        }
    }
}

fn range(first: Seq, last: Seq) -> String {
    if first == last { format!("seq {first}") } else { format!("seq {first}..{last}") }
}

/// Names that stand in the log twice.
fn twice(names: &[EventRef], report: &mut Report) {
    let mut sorted: Vec<&EventRef> = names.iter().collect();
    sorted.sort_unstable();
    for pair in sorted.windows(2).filter(|pair| pair[0] == pair[1]) {
        report.critical(pair[0].to_string(), "stands in the log twice");
    }
}

/// The events that a chunk covers, and what is wrong with it.
type OddChunk = (RangeInclusive<Seq>, &'static str);

struct Walk<'v, 'r, R: RuleSet> {
    view: View<'v>,
    /// Chunks that were not met yet.
    chunk_ends: Vec<Seq>,
    /// The events since the last full chunk.
    rows: Vec<Row>,
    /// Whether those are all there and could be read.
    whole: bool,
    counted: u64,
    /// Chunks that differ from their events.
    odd_chunks: Vec<OddChunk>,
    until: [Seq; 2],
    walked: Walked<'r, R>,
}

impl<R: RuleSet> Walk<'_, '_, R> {
    fn event(&mut self, raw: RawEvent, report: &mut Report) -> Result<(), Error> {
        let (seq, expected) = (raw.seq, self.walked.head.next());
        if seq.0 == 0 {
            report.critical("seq 0", "stands before the first position");
            return Ok(());
        }
        if seq != expected {
            report.critical(range(expected, Seq(seq.0 - 1)), "is missing from the log");
            (self.whole, self.walked.missing) = (false, true);
        }
        self.walked.head = seq;
        let event_type = std::str::from_utf8(&raw.event_type).unwrap_or_default();
        let forgotten = raw.payload.is_empty() && raw.columns.is_empty();
        let (row, content) = if forgotten && can_be_forgotten(event_type) {
            self.walked.forgets.gone(name_of(&raw), seq, event_type);
            (stored_row(&raw), Content::Forgotten)
        } else {
            (checked(&raw, report), Content::Bytes(&raw.payload))
        };
        self.walked.intents.event(seq, name_of(&raw), event_type, content);
        self.walked.forgets.next(seq, event_type);
        let housekeeping = is_housekeeping(event_type);
        if event_type == FORGET && !self.walked.forgets.said(seq, &raw.payload) {
            report.critical(format!("forget event at seq {seq}"), "cannot be read");
        }
        if raw.event_type == PASS_RECORD.as_bytes() {
            let canonical = String::from_utf8_lossy(&raw.payload).into_owned();
            self.walked.records.push(Record { seq, canonical, counted: self.counted });
        }
        self.counted += u64::from(!housekeeping);
        self.walked.names.push(name_of(&raw));
        match row.as_ref().and_then(Row::event) {
            Some(event) => {
                for (sums, until) in self.walked.sums.iter_mut().zip(self.until) {
                    if seq <= until {
                        sums.fold(seq, &event);
                    }
                }
            }
            None => self.whole = false,
        }
        self.rows.extend(row);
        self.compare_chunks(seq, report)
    }

    fn compare_chunks(&mut self, seq: Seq, report: &mut Report) -> Result<(), Error> {
        if !seq.0.is_multiple_of(SMALL_EVENTS as u64) {
            return Ok(());
        }
        let is_full = seq.0.is_multiple_of(CHUNK_EVENTS as u64);
        let size = if is_full { CHUNK_EVENTS } else { SMALL_EVENTS };
        let place = format!("chunk of seq {}..{seq}", seq.0 + 1 - size as u64);
        let stored = self.chunk_ends.iter().position(|last| *last == seq);
        if let Some(stored) = stored {
            self.chunk_ends.remove(stored);
        }
        match (stored.is_some(), self.whole && self.rows.len() >= size) {
            (true, true) => {
                let rows = &self.rows[self.rows.len() - size..];
                let events: Vec<Event<'_>> = rows.iter().filter_map(Row::event).collect();
                let names = rows.iter().filter(|_| is_full).flat_map(|row| row.event_ref.0);
                let expected = (chunk::encode(&events), names.collect::<Vec<u8>>());
                match self.view.raw_chunk(seq)? {
                    Some((_, refs)) if reordered(&refs, &expected.1) => {
                        report.critical(place, "was sealed with its events in another order");
                    }
                    stored if stored.as_ref() != Some(&expected) => {
                        let range = Seq(seq.0 + 1 - size as u64)..=seq;
                        self.odd_chunks.push((range, "differs from the events it covers"));
                    }
                    _ => {}
                }
            }
            (false, _) if is_full => report.error(place, "is missing"),
            _ => {}
        }
        if is_full {
            self.rows.clear();
            self.whole = true;
        }
        Ok(())
    }
}

/// Whether the same names stand in another order.
fn reordered(stored: &[u8], expected: &[u8]) -> bool {
    let sorted = |refs: &[u8]| {
        let mut refs: Vec<[u8; 16]> = refs.as_chunks().0.to_vec();
        refs.sort_unstable();
        refs
    };
    stored != expected && sorted(stored) == sorted(expected)
}

fn name_of(raw: &RawEvent) -> EventRef {
    EventRef(raw.event_ref.as_slice().try_into().unwrap_or_default())
}

/// What rests on a row as it stands.
fn stored_row(raw: &RawEvent) -> Option<Row> {
    Some(Row {
        event_ref: name_of(raw),
        time: Time::from_micros(raw.time)?,
        event_type: String::from_utf8(raw.event_type.clone()).ok()?,
        columns: raw.columns.clone(),
    })
}

/// Compares a row with what its payload says; hands back what rests on it.
fn checked(raw: &RawEvent, report: &mut Report) -> Option<Row> {
    let place = format!("seq {}", raw.seq);
    if sha256(&[&raw.payload]) != raw.digest.as_slice() {
        report.critical(place, "payload and digest do not fit each other");
        return stored_row(raw);
    }
    let Some(event) = read_again(&raw.payload) else {
        report.critical(place, "the payload is no event in canonical form");
        return stored_row(raw);
    };
    let pairs = [
        ("event_ref", event.event_ref.0.as_slice() == raw.event_ref, Severity::Critical),
        ("time", event.time.micros() == raw.time, Severity::Critical),
        ("type", event.event_type.as_bytes() == raw.event_type, Severity::Critical),
        ("typed columns", event.columns == raw.columns, Severity::Error),
    ];
    for (what, _, severity) in pairs.into_iter().filter(|(_, equal, _)| !equal) {
        let message = format!("{what} and payload do not fit each other");
        match severity {
            Severity::Critical => report.critical(place.clone(), message),
            Severity::Error => report.error_of_ground(place.clone(), message),
        }
    }
    let Admitted { event_ref, time, event_type, columns, .. } = event;
    Some(Row { event_ref, time, event_type, columns })
}

/// The event that stored bytes are, if they are one in canonical form.
fn read_again(payload: &[u8]) -> Option<Admitted> {
    // A stored event has its salt: one that is made up makes other bytes.
    let event = admit(payload, Origin::House, || [0; 16]).ok()?;
    (event.canonical.as_bytes() == payload).then_some(event)
}
