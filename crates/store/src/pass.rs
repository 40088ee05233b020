//! Passes: facts on their way to becoming durable.
//!
//! **Invariant:** a [`Pass`] is a savepoint within a batch, so that its failure cannot lose the
//! events; it can put facts and tallies, and becomes durable only by `commit(record)`. A pass in a
//! batch that has written nothing needs no savepoint: its failure ends the batch, and nothing is
//! lost by that.

use crate::audit::RawPass;
use crate::read::View;
use crate::session::{Result, Typed};
use crate::write::{State, Tail};
use crate::{Appended, Error, PassRecord, seal};
use ipse_core::{Event, EventRef, Fact, FactId, Seq};
use std::ops::RangeInclusive;

/// A pass under way: facts on their way to becoming durable, with the record that explains them.
#[must_use = "a pass that is not committed is rolled back"]
pub struct Pass<'b> {
    tail: Tail<'b>,
    state: &'b mut State,
    /// Whether the batch had written nothing when the pass began.
    alone: bool,
    /// The head when the pass began.
    began_at: Seq,
    done: bool,
}

impl<'b> Pass<'b> {
    pub(crate) fn new(tail: Tail<'b>, state: &'b mut State, alone: bool) -> Self {
        let began_at = *tail.head;
        Pass { tail, state, alone, began_at, done: false }
    }

    /// What the log and the facts look like from inside this pass.
    pub fn view(&self) -> View<'_> {
        View { session: self.tail.session, log: self.tail.log }
    }

    /// The position of the last event.
    pub fn head(&self) -> Seq {
        *self.tail.head
    }

    /// Passes the events of a range to `each` without a look at the store, if this process appended
    /// all of them lately; returns whether it did.
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

    /// Deletes all facts and tallies of this log: another rule set starts from nothing.
    pub fn start_over(&self) -> Result<()> {
        self.tail.session.remove_all_facts(self.tail.log)
    }

    /// Puts facts in place of those of the same ids; returns which of them changed.
    pub fn put_facts(&self, facts: &[(FactId, Fact)]) -> Result<Vec<bool>> {
        self.tail.session.put_facts(self.tail.log, facts)
    }

    /// Deletes facts; returns which of them existed.
    pub fn remove_facts(&self, ids: &[FactId]) -> Result<Vec<bool>> {
        self.tail.session.remove_facts(self.tail.log, ids)
    }

    /// Adds to the numbers of observations that were forgotten.
    pub fn count_forgotten(&self, counts: &[(FactId, u64)]) -> Result<()> {
        self.tail.session.count_forgotten(self.tail.log, counts)
    }

    /// Stores the sums behind facts; `None` deletes one.
    pub fn put_tallies(&self, tallies: &[(FactId, Option<Vec<u8>>)]) -> Result<()> {
        self.tail.session.put_tallies(self.tail.log, tallies)
    }

    /// Finishes the pass: its record joins the log, its facts and checkpoint join the batch.
    pub fn commit(mut self, record: &PassRecord<'_>) -> Result<Seq> {
        let appended = self.tail.append_all(&[record.event], |_| true)?;
        let [Appended::New(seq)] = appended[..] else {
            return Err(Error::Corrupt(format!(
                "a pass record for the range from seq {} is there already",
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
