//! A rehearsal of appends: the results that events would get, without a write.
//!
//! **Invariants:** the handle only reads. Without concurrent writers the results are those of
//! [`Log::append`](crate::Log::append) for the same events in the same order. Of an event that
//! would be new, only a hash is kept in memory.

use crate::Error;
use crate::signed::latest;
use ipse_core::{Admitted, EventRef, Seq, Time, is_housekeeping};
use ipse_store::{Appended, Signatures, View};
use std::collections::BTreeMap;

/// Appends to a log that are only computed.
pub struct Rehearsal<'v> {
    view: View<'v>,
    /// The latest time of an event that the log accepts.
    latest: Option<Time>,
    /// Whether the log rejects unsigned events.
    signed_only: bool,
    /// The events that would be new, with a hash of their content.
    new: BTreeMap<EventRef, (Seq, [u8; 32])>,
    head: Seq,
}

impl<'v> Rehearsal<'v> {
    /// Starts a rehearsal on a log at a time.
    pub fn of(view: View<'v>, now: Time) -> Result<Self, Error> {
        let (latest, head) = (latest(view, now)?, view.head()?);
        let signed_only = view.signatures()? == Signatures::Require;
        Ok(Rehearsal { view, latest, signed_only, new: BTreeMap::new(), head })
    }

    /// The results of an append of these unsigned events.
    pub fn append(&mut self, events: &[Admitted]) -> Result<Vec<Appended>, Error> {
        let stored = self.view.compare(&events.iter().collect::<Vec<_>>())?;
        let results = events.iter().zip(stored).map(|(event, stored)| {
            stored.unwrap_or_else(|| self.earlier(event).unwrap_or_else(|| self.append_new(event)))
        });
        Ok(results.collect())
    }

    /// The result for an event whose name an earlier one of the rehearsal has.
    fn earlier(&self, event: &Admitted) -> Option<Appended> {
        let (seq, hash) = self.new.get(&event.event_ref)?;
        Some(match *hash == event.content_hash() {
            true => Appended::Duplicate(*seq),
            false => Appended::Conflict(*seq),
        })
    }

    fn append_new(&mut self, event: &Admitted) -> Appended {
        match self.latest.filter(|latest| event.time > *latest) {
            _ if is_housekeeping(&event.event_type) => {}
            Some(latest) => return Appended::Ahead(latest),
            None if self.signed_only => return Appended::Unsigned,
            None => {}
        }
        self.head = self.head.next();
        self.new.insert(event.event_ref, (self.head, event.content_hash()));
        Appended::New(self.head)
    }
}
