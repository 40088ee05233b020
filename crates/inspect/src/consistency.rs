//! Proofs that a log continues an earlier tree head (RFC 6962, section 2.1.2).
//!
//! **Invariant:** the hashes come from stored subtrees and from at most the last 255 entries, so
//! the cost of a proof grows with the logarithm of the log.

use crate::{Error, Page, SignedHead};
use ipse_core::json::{Members, list, quoted};
use ipse_ledger::tree::{consistency, is_consistent};
use ipse_ledger::{Hash, TreeHead, base64};
use ipse_store::View;

/// The proof that the first `from` entries of a log are the beginning of its first `to`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consistency {
    /// The number of entries of the earlier tree.
    pub from: u64,
    /// The number of entries of the later tree.
    pub to: u64,
    /// The hashes of the proof, in the order of RFC 6962.
    pub hashes: Vec<Hash>,
    /// The newest signed tree head. Unless another size was requested, it is the head of `to`.
    pub tree_head: String,
}

impl Consistency {
    /// The proof as JSON.
    pub fn json(&self) -> String {
        self.members().finish()
    }

    /// The proof as JSON, with the result of the comparison.
    pub fn compared_json(&self) -> String {
        self.members().raw("consistent", true).finish()
    }

    fn members(&self) -> Members {
        let hashes = self.hashes.iter().map(|hash| quoted(&base64::encode(hash)));
        Members::new()
            .raw("from", self.from)
            .raw("to", self.to)
            .raw("hashes", list(hashes))
            .text("tree_head", &self.tree_head)
    }

    /// The result of the comparison as text.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        let Consistency { from, to, .. } = self;
        page.line(format!("consistent: the tree head over {to} entries continues those {from}"));
        page
    }
}

/// The answer to a request for a proof of consistency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConsistencyAnswer {
    /// The proof.
    Proof(Consistency),
    /// No tree head is signed yet.
    Unsigned,
    /// The newest signed tree head covers only this many entries.
    Beyond(u64),
    /// The earlier size is greater than the later one, which is this.
    Reversed(u64),
}

/// Proves that the first `from` entries are the beginning of the first `to`. Without `to` the
/// proof leads to the newest signed tree head.
pub fn prove_consistency(
    view: View<'_>,
    from: u64,
    to: Option<u64>,
) -> Result<ConsistencyAnswer, Error> {
    let Some(newest) = SignedHead::newest(view)? else { return Ok(ConsistencyAnswer::Unsigned) };
    covered(view, &newest)?;
    let to = to.unwrap_or(newest.size);
    if to > newest.size {
        return Ok(ConsistencyAnswer::Beyond(newest.size));
    }
    Ok(match consistency(&view, from, to)? {
        Some(hashes) => {
            ConsistencyAnswer::Proof(Consistency { from, to, hashes, tree_head: newest.note })
        }
        None => ConsistencyAnswer::Reversed(to),
    })
}

/// Fails if a log has fewer entries than its newest tree head covers.
fn covered(view: View<'_>, newest: &SignedHead) -> Result<(), Error> {
    match view.head()?.0 {
        stored if newest.size > stored => Err(Error::Behind { signed: newest.size, stored }),
        _ => Ok(()),
    }
}

/// The result of comparing a log with an earlier tree head of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// The log continues the earlier tree head.
    Consistent(Consistency),
    /// The log contradicts it; the text is a full sentence.
    Contradiction(String),
    /// No tree head is signed yet.
    Unsigned,
}

/// Compares a log with an earlier tree head of it, which the caller has checked to be signed.
pub fn compare(view: View<'_>, earlier: &TreeHead, note: &str) -> Result<Comparison, Error> {
    let Some(newest) = SignedHead::newest(view)? else { return Ok(Comparison::Unsigned) };
    let (stored, size) = (view.head()?.0, earlier.size);
    if size > stored {
        let message = format!("that tree head covers {size} entries, and the log has {stored}");
        return Ok(Comparison::Contradiction(message));
    }
    if view.tree_root(size)? != earlier.root {
        let message = format!("the first {size} entries of the log are not those that were signed");
        return Ok(Comparison::Contradiction(message));
    }
    // A copy of the store may be older than the head and have all of its entries.
    if size > newest.size {
        let (hashes, tree_head) = (Vec::new(), note.to_owned());
        let proof = Consistency { from: size, to: size, hashes, tree_head };
        return Ok(Comparison::Consistent(proof));
    }
    covered(view, &newest)?;
    let hashes = consistency(&view, size, newest.size)?.unwrap_or_default();
    let (old, new) = ((size, &earlier.root), (newest.size, &newest.root));
    if !is_consistent(old, new, &hashes) {
        let message = format!("the entries do not lead to the stored tree head over {}", new.0);
        return Ok(Comparison::Contradiction(message));
    }
    let proof = Consistency { from: size, to: newest.size, hashes, tree_head: newest.note };
    Ok(Comparison::Consistent(proof))
}
