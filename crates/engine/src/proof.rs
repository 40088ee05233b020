//! Proofs: that an event is in the log that was signed.

use crate::{Error, head_of};
use ipse_core::Seq;
use ipse_ledger::tree::inclusion;
use ipse_ledger::{Entry, ProofFile};
use ipse_store::sqlite::View;

/// An entry, and the proof that it is under the newest signed tree head; `None` if there is no such
/// head, or it does not reach so far.
pub fn prove(view: View<'_>, seq: Seq) -> Result<Option<(Entry, ProofFile)>, Error> {
    let Some(note) = view.tree_head()? else { return Ok(None) };
    let head = head_of(&note).ok_or(Error::NoHead("in the store that can be read"))?;
    if head.size > view.head()?.0 {
        return Err(Error::Behind { signed: head.size, stored: view.head()?.0 });
    }
    let Some(index) = seq.0.checked_sub(1) else { return Ok(None) };
    let Some(hashes) = inclusion(&view, index, head.size)? else { return Ok(None) };
    let mut found = None;
    view.each_entry(seq..=seq, |entry, _| {
        found = Some(entry);
        Ok::<_, Error>(())
    })?;
    Ok(found.map(|entry| (entry, ProofFile { index, hashes, note })))
}
