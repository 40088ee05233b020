//! Taking in a log that was verified elsewhere, whole, into an empty place.
//!
//! **Invariants:** it is one transaction, into a log without events; what is taken in keeps its
//! positions. No facts without the records that explain them: those are among the events.

use super::View;
use super::write::{Batch, Writer, put_fact};
use crate::{Appended, Error};
use ipse_core::{Admitted, Fact, FactId, Seq};
use ipse_ledger::Entry;

/// A log on its way in.
#[must_use = "what is not committed is rolled back"]
pub struct Restoring<'w> {
    batch: Batch<'w>,
}

impl Writer {
    /// Begins to take in a log; there must be none yet.
    pub fn restore(&mut self) -> Result<Restoring<'_>, Error> {
        let batch = self.begin()?;
        if batch.head() != Seq(0) {
            return Err(Error::NotEmpty);
        }
        Ok(Restoring { batch })
    }
}

impl<'w> Restoring<'w> {
    /// Where events and statements are put.
    pub fn batch(&mut self) -> &mut Batch<'w> {
        &mut self.batch
    }

    /// What the log looks like so far.
    pub fn view(&self) -> View<'_> {
        self.batch.view()
    }

    /// Puts the next event, or what is left of it if it was forgotten.
    pub fn put(&mut self, entry: &Entry, event: Option<&Admitted>) -> Result<(), Error> {
        let left = || Admitted {
            event_ref: entry.event_ref,
            event_type: entry.event_type.clone(),
            time: entry.time,
            digest: entry.digest,
            canonical: String::new(),
            salt_at: 0..0,
            columns: Vec::new(),
        };
        let appended = match event {
            Some(event) => self.batch.append(event)?,
            None => self.batch.append(&left())?,
        };
        match appended {
            Appended::New(seq) if seq == entry.seq => Ok(()),
            _ => Err(Error::Corrupt(format!("seq {} of the log does not fit in", entry.seq))),
        }
    }

    /// Lists the pass whose record stands at a position.
    pub fn put_pass(
        &mut self,
        (seq, first, last): (Seq, Seq, Seq),
        rule_version: &str,
        rule_set: [u8; 32],
    ) -> Result<(), Error> {
        let View { connection, log } = self.batch.view();
        let sql = "INSERT INTO pass (at, first_seq, last_seq, tallied, rule_version, \
                   rule_set_sha256) VALUES (?1, ?2, ?3, 0, ?4, ?5)";
        let [first, last] = [first, last].map(|seq| seq.0.cast_signed());
        connection
            .prepare_cached(sql)
            .and_then(|mut insert| {
                insert.execute((log.at(seq), first, last, rule_version, rule_set))
            })
            .map(drop)
            .map_err(Error::while_trying("list a pass"))
    }

    /// Puts a fact.
    pub fn put_fact(&mut self, id: &FactId, fact: &Fact) -> Result<(), Error> {
        let View { connection, log } = self.batch.view();
        put_fact(connection, log, id, fact).map(drop)
    }

    /// Makes all of it durable.
    pub fn commit(self) -> Result<(), Error> {
        self.batch.commit()
    }
}
