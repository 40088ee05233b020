//! Forgetting: one transaction deletes content from rows and chunks, then the files are erased.
//!
//! **Invariants**
//! - Only content is deleted: the position, event ref, time, type and digest of an event stay.
//! - The transaction that deletes content also sets an erase mark. The mark is removed only when no
//!   file of the store can hold that content any more. If the process dies before, the next process
//!   that writes finishes the erasing.

use crate::seal;
use crate::session::Result;
use crate::write::{Batch, Writer};
use ipse_core::Seq;

/// The handle that forgets events of one log. It has its own connection.
pub struct Eraser(pub(crate) Writer);

impl Eraser {
    /// Begins a transaction. Waits while another process is writing.
    pub fn begin(&mut self) -> Result<Erasing<'_>> {
        Ok(Erasing { batch: self.0.begin()?, freed: 0 })
    }
}

/// An open transaction that forgets events.
#[must_use = "forgetting that is not committed is rolled back"]
pub struct Erasing<'w> {
    batch: Batch<'w>,
    /// Bytes that were deleted from rows. New rows cannot reuse this space.
    freed: u64,
}

impl<'w> Erasing<'w> {
    /// The batch for the `forget` events and the pass.
    pub fn batch(&mut self) -> &mut Batch<'w> {
        &mut self.batch
    }

    /// Deletes the content of events from rows and chunks. The positions must ascend.
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

    /// Sets the erase mark and commits.
    pub fn commit(mut self) -> Result<()> {
        let (session, log, head) = self.batch.changing();
        session.mark_erased(log, head, self.freed)?;
        self.batch.commit()
    }
}
