//! Restoring a whole log that was verified elsewhere into an empty log.
//!
//! **Invariants:** restoring is one transaction into a log without events, and positions do not
//! change. Facts are stored only together with their pass records, which are among the events.

use crate::audit::RawPass;
use crate::read::View;
use crate::session::Result;
use crate::write::{Batch, Writer};
use crate::{Appended, Error};
use ipse_core::{Admitted, Fact, FactId, Seq};
use ipse_ledger::Entry;

/// An open transaction that restores a log.
#[must_use = "a restore that is not committed is rolled back"]
pub struct Restoring<'w> {
    batch: Batch<'w>,
}

impl Writer {
    /// Begins to restore a log, which must be empty.
    pub fn restore(&mut self) -> Result<Restoring<'_>> {
        let batch = self.begin()?;
        if batch.head() != Seq(0) {
            return Err(Error::NotEmpty);
        }
        Ok(Restoring { batch })
    }
}

impl<'w> Restoring<'w> {
    /// The batch for events and statements.
    pub fn batch(&mut self) -> &mut Batch<'w> {
        &mut self.batch
    }

    /// The log as restored so far.
    pub fn view(&self) -> View<'_> {
        self.batch.view()
    }

    /// Appends the next events. A forgotten event has an entry only.
    pub fn put(&mut self, events: Vec<(Entry, Option<Admitted>)>) -> Result<()> {
        let seqs: Vec<Seq> = events.iter().map(|(entry, _)| entry.seq).collect();
        let whole =
            |(entry, event): (Entry, Option<Admitted>)| event.unwrap_or_else(|| left(entry));
        let whole: Vec<Admitted> = events.into_iter().map(whole).collect();
        let appended = self.batch.append_all(&whole, |_| None)?;
        match seqs.iter().zip(appended).find(|(seq, done)| *done != Appended::New(**seq)) {
            Some((seq, _)) => Err(Error::Corrupt(format!("seq {seq} is not the next new event"))),
            None => Ok(()),
        }
    }

    /// Adds the pass whose record is at position `seq` to the list of passes.
    pub fn put_pass(
        &mut self,
        (seq, first, last): (Seq, Seq, Seq),
        rule_version: &str,
        rule_set: [u8; 32],
    ) -> Result<()> {
        let (rule_version, rule_set) = (rule_version.to_owned(), rule_set.to_vec());
        let pass = RawPass { seq, first, last, tallied: Seq(0), rule_version, rule_set };
        let (session, log, _) = self.batch.changing();
        session.put_pass(log, &pass)
    }

    /// Stores facts.
    pub fn put_facts(&mut self, facts: &[(FactId, Fact)]) -> Result<()> {
        let (session, log, _) = self.batch.changing();
        session.put_facts(log, facts).map(drop)
    }

    /// Commits the transaction. After this returns, the restored log is durable.
    pub fn commit(self) -> Result<()> {
        self.batch.commit()
    }
}

/// A forgotten event: its entry without content.
fn left(entry: Entry) -> Admitted {
    let Entry { event_ref, event_type, time, digest, .. } = entry;
    let (canonical, salt_at, columns) = (String::new(), 0..0, Vec::new());
    Admitted { event_ref, event_type, time, digest, canonical, salt_at, columns }
}
