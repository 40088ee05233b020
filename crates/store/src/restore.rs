//! Restoring a log that was verified elsewhere, whole, where there is none.
//!
//! **Invariants:** it is one transaction, into a log without events; what is restored keeps its
//! positions. No facts without the records that explain them: those are among the events.

use crate::audit::RawPass;
use crate::read::View;
use crate::session::Result;
use crate::write::{Batch, Writer};
use crate::{Appended, Error};
use ipse_core::{Admitted, Fact, FactId, Seq};
use ipse_ledger::Entry;

/// A log on its way in.
#[must_use = "what is not committed is rolled back"]
pub struct Restoring<'w> {
    batch: Batch<'w>,
}

impl Writer {
    /// Begins to restore a log; there must be none yet.
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

    /// What the log looks like so far.
    pub fn view(&self) -> View<'_> {
        self.batch.view()
    }

    /// Puts the next events, or what is left of them if they were forgotten.
    pub fn put(&mut self, events: Vec<(Entry, Option<Admitted>)>) -> Result<()> {
        let seqs: Vec<Seq> = events.iter().map(|(entry, _)| entry.seq).collect();
        let whole =
            |(entry, event): (Entry, Option<Admitted>)| event.unwrap_or_else(|| left(entry));
        let whole: Vec<Admitted> = events.into_iter().map(whole).collect();
        let appended = self.batch.append_all(&whole, |_| true)?;
        match seqs.iter().zip(appended).find(|(seq, done)| *done != Appended::New(**seq)) {
            Some((seq, _)) => Err(Error::Corrupt(format!("seq {seq} of the log does not fit in"))),
            None => Ok(()),
        }
    }

    /// Lists the pass whose record stands at a position.
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

    /// Puts facts.
    pub fn put_facts(&mut self, facts: &[(FactId, Fact)]) -> Result<()> {
        let (session, log, _) = self.batch.changing();
        session.put_facts(log, facts).map(drop)
    }

    /// Makes all of it durable.
    pub fn commit(self) -> Result<()> {
        self.batch.commit()
    }
}

/// What is left of a forgotten event.
fn left(entry: Entry) -> Admitted {
    let Entry { event_ref, event_type, time, digest, .. } = entry;
    let (canonical, salt_at, columns) = (String::new(), 0..0, Vec::new());
    Admitted { event_ref, event_type, time, digest, canonical, salt_at, columns }
}
