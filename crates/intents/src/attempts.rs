//! The newest ended attempts of the skills that contracts name, from the log.
//!
//! **Invariants**
//! - They come from the log and never from facts, so a rule set cannot change a verdict.
//! - Each part of the log is read once. A lookup inside a transaction reads only the few events
//!   since [`CaughtUp`] was made before it.

use ipse_core::judge::{EndedAttempt, EndedAttempts, Precondition};
use ipse_core::{Seq, Time};
use ipse_engine::{Error, LogView};
use ipse_gates::Gates;
use ipse_inspect::Look;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// This many events are read inside the transaction: fewer than a page of rows.
const FEW: u64 = 64;

/// The newest ended attempts of one agent.
pub(crate) struct Attempts {
    /// Held by the request that reads the log before its transaction. No transaction waits for it.
    reading: Mutex<()>,
    read: Mutex<ReadSoFar>,
}

#[derive(Clone)]
struct ReadSoFar {
    head: Seq,
    ended: EndedAttempts,
}

/// Proof that the log was read before the transaction.
#[must_use = "a lookup inside a transaction requires it"]
pub(crate) struct CaughtUp(());

/// The attempts that decide the lines of a contract, and whether each line holds.
#[derive(Default)]
pub(crate) struct Preceding {
    pub(crate) newest: Vec<Option<EndedAttempt>>,
    pub(crate) holds: Vec<bool>,
}

impl Attempts {
    /// Nothing was read yet.
    pub(crate) fn new(gates: &Gates) -> Self {
        let ended = EndedAttempts::of(gates.preceding_skills().map(str::to_owned));
        Attempts { reading: Mutex::default(), read: Mutex::new(ReadSoFar { head: Seq(0), ended }) }
    }

    /// Reads the log up to now, on a read-only connection.
    pub(crate) fn catch_up(&self, look: &Look) -> Result<CaughtUp, Error> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.read().head;
        if look.past(|past| past.head())?.0 - head.0 <= FEW {
            return Ok(CaughtUp(()));
        }
        let mut read = self.read().clone();
        look.past(|past| read.catch_up(past))?;
        let mut shared = self.read();
        // A transaction may have read further meanwhile.
        if read.head > shared.head {
            *shared = read;
        }
        Ok(CaughtUp(()))
    }

    /// Looks up the attempts that decide these lines, inside the transaction that appends the
    /// intent.
    pub(crate) fn look_up(
        &self,
        _: CaughtUp,
        past: &LogView<'_>,
        (lines, target, now): (&[Precondition], Option<&str>, Time),
    ) -> Result<Preceding, Error> {
        let mut read = self.read();
        read.catch_up(past)?;
        let newest = lines.iter().map(|line| read.ended.newest(line, target).copied());
        let newest: Vec<Option<EndedAttempt>> = newest.collect();
        let holds = lines.iter().zip(&newest).map(|(line, it)| line.holds(now, it.as_ref()));
        Ok(Preceding { holds: holds.collect(), newest })
    }

    fn read(&self) -> MutexGuard<'_, ReadSoFar> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadSoFar {
    fn catch_up(&mut self, past: &LogView<'_>) -> Result<(), Error> {
        let ReadSoFar { head, ended } = self;
        *head = past.events(*head, |seq, event| ended.add(seq, event))?;
        Ok(())
    }
}
