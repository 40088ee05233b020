//! Forgetting: content leaves rows and chunks in one transaction, and the store's files after it.
//!
//! **Invariants**
//! - Nothing but content leaves: position, ref, time, type and digest of an event stay.
//! - The transaction that deletes content marks the store; the mark goes only once no file of the
//!   store can hold that content any more. So the next process that writes finishes the erasing.

use crate::seal;
use crate::session::Result;
use crate::write::{Batch, Writer};
use ipse_core::Seq;

/// The handle of `forget`, on one identity's log: a connection of its own.
pub struct Eraser(pub(crate) Writer);

impl Eraser {
    /// Begins; waits for another process that is writing.
    pub fn begin(&mut self) -> Result<Erasing<'_>> {
        Ok(Erasing { batch: self.0.begin()?, freed: 0 })
    }
}

/// Forgetting under way: one transaction.
#[must_use = "forgetting that is not committed is rolled back"]
pub struct Erasing<'w> {
    batch: Batch<'w>,
    /// Bytes that were deleted from rows; no later row fits in there.
    freed: u64,
}

impl<'w> Erasing<'w> {
    /// The batch for the events that say so, and for the pass.
    pub fn batch(&mut self) -> &mut Batch<'w> {
        &mut self.batch
    }

    /// Deletes the content of events, given in ascending order, also in their chunks.
    pub fn erase(&mut self, seqs: &[Seq]) -> Result<()> {
        let (session, log, head) = self.batch.changing();
        self.freed += session.empty(log, seqs)?;
        let mut reached = Seq(0);
        for seq in seqs {
            if *seq > reached {
                reached = seal::again(session, log, *seq, head)?;
            }
        }
        Ok(())
    }

    /// Makes everything durable.
    pub fn commit(mut self) -> Result<()> {
        let (session, log, head) = self.batch.changing();
        session.mark_erased(log, head, self.freed)?;
        self.batch.commit()
    }
}
