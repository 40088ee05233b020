//! Passes: transactions that store facts.
//!
//! **Invariant:** a [`Pass`] is a savepoint within a batch, so a failed pass does not lose the
//! events. It stores facts and tallies, and becomes durable only by `commit(record)`. A pass in a
//! batch that has written nothing needs no savepoint: its failure rolls back the batch, which holds
//! nothing else.

use crate::audit::RawPass;
use crate::read::View;
use crate::session::{Result, Typed};
use crate::write::{State, Tail};
use crate::{Appended, Error, PassRecord, seal};
use ipse_core::{Event, EventRef, Fact, FactId, Seq};
use std::ops::RangeInclusive;

/// An open pass. `commit` stores its facts together with the record that explains them.
#[must_use = "a pass that is not committed is rolled back"]
pub struct Pass<'b> {
    tail: Tail<'b>,
    state: &'b mut State,
    /// Whether the batch had written nothing when the pass began.
    alone: bool,
    /// The last position when the pass began.
    began_at: Seq,
    done: bool,
}

impl<'b> Pass<'b> {
    pub(crate) fn new(tail: Tail<'b>, state: &'b mut State, alone: bool) -> Self {
        let began_at = *tail.head;
        Pass { tail, state, alone, began_at, done: false }
    }

    /// The log and the facts as this pass sees them.
    pub fn view(&self) -> View<'_> {
        View { session: self.tail.session, log: self.tail.log }
    }

    /// The position of the last event.
    pub fn head(&self) -> Seq {
        *self.tail.head
    }

    /// Passes the events of a range to `each` from the cache, if all of them are cached. Returns
    /// whether they were.
    pub fn each_at_hand(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(&Event<'_>),
    ) -> bool {
        let rows = self.tail.recent.at_hand(range, self.head()).unwrap_or_default();
        let events = rows.iter().map(Typed::event).collect::<Result<Vec<_>>>().unwrap_or_default();
        events.iter().for_each(&mut each);
        !events.is_empty()
    }

    /// The name of the event at a position.
    pub fn event_ref(&self, seq: Seq) -> Result<EventRef> {
        match self.tail.recent.at_hand(seq..=self.head(), self.head()) {
            Some([row, ..]) => Ok(row.event_ref),
            _ => self.view().event_ref(seq),
        }
    }

    /// Deletes all facts and tallies of this log, before the first pass of another rule set.
    pub fn start_over(&self) -> Result<()> {
        self.tail.session.remove_all_facts(self.tail.log)
    }

    /// Stores facts, replacing those with the same ids. Returns which of them changed.
    pub fn put_facts(&self, facts: &[(FactId, Fact)]) -> Result<Vec<bool>> {
        self.tail.session.put_facts(self.tail.log, facts)
    }

    /// Deletes facts. Returns which of them existed.
    pub fn remove_facts(&self, ids: &[FactId]) -> Result<Vec<bool>> {
        self.tail.session.remove_facts(self.tail.log, ids)
    }

    /// Adds to the counts of forgotten observations.
    pub fn count_forgotten(&self, counts: &[(FactId, u64)]) -> Result<()> {
        self.tail.session.count_forgotten(self.tail.log, counts)
    }

    /// Stores the tallies of facts; `None` deletes a tally.
    pub fn put_tallies(&self, tallies: &[(FactId, Option<Vec<u8>>)]) -> Result<()> {
        self.tail.session.put_tallies(self.tail.log, tallies)
    }

    /// Finishes the pass: appends its record, and adds its facts and checkpoint to the batch.
    pub fn commit(mut self, record: &PassRecord<'_>) -> Result<Seq> {
        let appended = self.tail.append_all(&[record.event], |_| None)?;
        let [Appended::New(seq)] = appended[..] else {
            return Err(Error::Corrupt(format!(
                "a pass record for the range from seq {} exists already",
                record.first
            )));
        };
        let progress = &record.progress;
        let pass = RawPass {
            seq,
            first: record.first,
            last: progress.checkpoint,
            tallied: progress.tallied,
            rule_version: progress.rule_version.clone(),
            rule_set: progress.rule_set.to_vec(),
        };
        self.tail.session.put_pass(self.tail.log, &pass)?;
        seal::small_chunks(self.tail.session, self.tail.log, record.first, *self.tail.head)?;
        if !self.alone {
            self.tail.session.release()?;
        }
        self.done = true;
        Ok(seq)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if self.alone {
            self.tail.session.rollback();
            *self.state = State::RolledBack;
        } else {
            self.tail.session.rollback_to();
        }
        *self.tail.head = self.began_at;
        self.tail.recent.clear();
    }
}
