//! Signed tree heads, and proofs that an event is in the log that was signed.

use crate::{Error, Page, answer};
use ipse_core::json::Members;
use ipse_core::{Identity, Seq, hex};
use ipse_engine::head_of;
use ipse_ledger::tree::inclusion;
use ipse_ledger::{Entry, Hash, ProofFile};
use ipse_store::View;

/// The last position of a log, and its newest signed tree head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heads {
    /// The last position.
    pub head: Seq,
    /// The newest signed tree head.
    pub signed: Option<SignedHead>,
}

/// A signed tree head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedHead {
    /// The number of entries that it covers.
    pub size: u64,
    /// The root of the tree.
    pub root: Hash,
    /// The signed note.
    pub note: String,
}

impl SignedHead {
    /// Reads a note; `None` if it is not a tree head.
    pub fn read(note: String) -> Option<Self> {
        let head = head_of(&note)?;
        Some(SignedHead { size: head.size, root: head.root, note })
    }

    /// The newest signed tree head of a log.
    pub(crate) fn newest(view: View<'_>) -> Result<Option<Self>, Error> {
        let Some(note) = view.tree_head()? else { return Ok(None) };
        Self::read(note).map(Some).ok_or(Error::NoHead("the stored note is not a tree head"))
    }

    /// The tree head as JSON.
    pub fn json(&self, identity: &Identity) -> String {
        Members::new()
            .text("identity_hash", &identity.to_string())
            .raw("tree_size", self.size)
            .text("root_sha256", &hex::encode(&self.root))
            .text("note", &self.note)
            .finish()
    }

    /// The note as text.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        self.note.lines().for_each(|line| page.line(line));
        page
    }
}

/// The proof that an entry is under a signed tree head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// The entry of the event.
    pub entry: Entry,
    /// The C2SP proof file.
    pub file: ProofFile,
}

impl Proof {
    /// The proof as JSON.
    pub fn json(&self) -> String {
        answer::proof(&self.entry, &self.file)
    }
}

/// Proves that an entry is under the newest signed tree head. `None` if no tree head covers it.
pub fn prove(view: View<'_>, seq: Seq) -> Result<Option<Proof>, Error> {
    let Some(note) = view.tree_head()? else { return Ok(None) };
    let head = head_of(&note).ok_or(Error::NoHead("the stored note is not a tree head"))?;
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
    let file = ProofFile { index, hashes, note };
    Ok(found.map(|entry| Proof { entry, file }))
}
