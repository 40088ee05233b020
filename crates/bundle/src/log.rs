//! Reading the log of a bundle: its entries, and its events with their entries.
//!
//! **Invariant:** an event is returned only if it is canonical, its writer may write it, and its
//! entry has its name and digest. Other lines are reported and skipped.

use crate::archive::Archive;
use crate::name::Name;
use crate::report::Report;
use crate::source::Lines;
use ipse_audit::Index;
use ipse_core::{Admitted, Seq, is_housekeeping, sha256};
use ipse_door::{MAX_EVENT_BYTES, read_stored};
use ipse_ledger::account::can_be_forgotten;
use ipse_ledger::{Entry, entry_hash};
use std::collections::BTreeSet;
use std::io;

/// The longest line of an entry: a type of 256 bytes, each escaped, and the rest.
pub(crate) const MAX_ENTRY_BYTES: usize = 4096;
/// The maximum number of entries: positions are stored in 32 bits.
const MAX_ENTRIES: usize = u32::MAX as usize;

/// Adds the next line of entries to an index.
pub(crate) fn add_entry(index: &mut Index, line: &[u8]) -> Result<(), &'static str> {
    let entry = Entry::parse(line).ok_or("is not an entry in canonical form")?;
    if entry.seq != Seq(index.names.len() as u64 + 1) {
        return Err("its seq does not follow the previous one");
    }
    if index.names.len() == MAX_ENTRIES {
        return Err("there are more entries than 4294967295");
    }
    index.names.push(entry.event_ref);
    index.digests.push(entry.digest);
    index.kinds.push([is_housekeeping(&entry.event_type), can_be_forgotten(&entry.event_type)]);
    index.grow(entry_hash(line), |_, _, _| {});
    Ok(())
}

/// Entries in order, each with its event if the bundle has it.
pub(crate) struct Pairs<'a> {
    entries: Lines<'a>,
    events: Lines<'a>,
    known: &'a Index,
    /// The number of entries that were returned.
    returned: u64,
    /// The event that was read and not returned yet, and its position.
    next: Option<(Seq, Admitted)>,
    /// The position of the last event that was read.
    last: Seq,
}

impl<'a> Pairs<'a> {
    /// Begins at the first entry of an archive whose entries are in an index.
    pub(crate) fn new(archive: &Archive<'a>, known: &'a Index) -> Option<Self> {
        let lines = |name, limit| archive.part(name).map(|part| part.lines(limit));
        Some(Pairs {
            entries: lines(Name::Entries, MAX_ENTRY_BYTES)?,
            events: lines(Name::Events, MAX_EVENT_BYTES)?,
            known,
            returned: 0,
            next: None,
            last: Seq(0),
        })
    }

    /// The number of lines of events that were read.
    pub(crate) fn events(&self) -> u64 {
        self.events.number()
    }

    /// The next entry. Wrong lines of events are reported as failures.
    pub(crate) fn next(
        &mut self,
        report: &mut Report,
    ) -> io::Result<Option<(Entry, Option<Admitted>)>> {
        if self.next.is_none() {
            self.next = self.event(report)?;
        }
        let line = self.entries.next()?;
        let Some(entry) = line.and_then(|line| Entry::parse(line.ok()?)) else {
            if self.next.is_some() || self.returned != self.known.names.len() as u64 {
                report.fail("bundle", "the file changed while it was read");
            }
            return Ok(None);
        };
        self.returned += 1;
        let event = self.next.take_if(|(seq, _)| *seq == entry.seq).map(|(_, event)| event);
        Ok(Some((entry, event)))
    }

    fn event(&mut self, report: &mut Report) -> io::Result<Option<(Seq, Admitted)>> {
        while let Some(line) = self.events.next()? {
            let read = line.map_err(|broken| broken.message().to_string()).and_then(read_stored);
            match read.and_then(|event| Ok((self.position(&event)?, event))) {
                Ok((seq, event)) => {
                    self.last = seq;
                    return Ok(Some((seq, event)));
                }
                Err(message) => {
                    report.fail(format!("events.jsonl, line {}", self.events.number()), message);
                }
            }
        }
        Ok(None)
    }

    /// Looks up the entry of an event.
    fn position(&self, event: &Admitted) -> Result<Seq, String> {
        let name = event.event_ref;
        let found = self.known.look_up(&name);
        let (seq, digest) = found.ok_or_else(|| format!("{name} has no entry"))?;
        match self.last {
            _ if digest != event.digest => {
                Err(format!("{name} does not match the digest of its entry, seq {seq}"))
            }
            last if seq <= last => Err(format!("{name}, seq {seq}, comes after seq {last}")),
            _ => Ok(seq),
        }
    }
}

/// The line number of the first event whose digest is in no entry.
pub(crate) fn foreign_event(archive: &Archive<'_>) -> io::Result<Option<u64>> {
    let [events, entries] = [Name::Events, Name::Entries].map(|name| archive.part(name));
    let (Some(events), Some(entries)) = (events, entries) else { return Ok(None) };
    let (mut digests, mut lines) = (BTreeSet::new(), entries.lines(MAX_EVENT_BYTES));
    while let Some(Ok(entry)) = lines.next()? {
        digests.extend(Entry::parse(entry).map(|entry| entry.digest.0));
    }
    let mut lines = events.lines(MAX_EVENT_BYTES);
    while let Some(line) = lines.next()? {
        if !line.is_ok_and(|event| digests.contains(&sha256(&[event]))) {
            return Ok(Some(lines.number()));
        }
    }
    Ok(None)
}
