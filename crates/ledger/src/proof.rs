//! Proof files (C2SP `tlog-proof`): prove that an entry is in a log to a reader without the log.

use crate::base64;
use crate::head::{TreeHead, number};
use crate::note::{Note, NoteKey};
use crate::tree::{Hash, entry_hash, root_from_inclusion};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";
/// The maximum number of hashes of a proof: one for each bit of a size.
const MAX_HASHES: usize = 64;

/// A proof of inclusion with its signed tree head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProofFile {
    /// The index of the entry, from 0.
    pub index: u64,
    /// The sibling hashes on the path to the root, the nearest first.
    pub hashes: Vec<Hash>,
    /// The signed tree head, verbatim.
    pub note: String,
}

/// The reason why a proof is not valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProofError {
    /// The tree head is not signed by a trusted key.
    Signature,
    /// The signed text is not a tree head.
    NoHead,
    /// The tree head belongs to another log.
    Origin,
    /// The proof does not lead from the entry to the root.
    Path,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProofError::Signature => "the tree head is not signed by a trusted key",
            ProofError::NoHead => "the signed text is not a tree head",
            ProofError::Origin => "the tree head belongs to another log",
            ProofError::Path => "the proof does not lead from the entry to the root",
        })
    }
}

impl core::error::Error for ProofError {}

impl ProofFile {
    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nindex {}\n", self.index);
        for hash in &self.hashes {
            text.push_str(&base64::encode(hash));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.note);
        text
    }

    /// Reads a file. Extra data is rejected, because no signature covers it.
    pub fn parse(text: &str) -> Option<Self> {
        let (proof, note) = text.split_once("\n\n")?;
        let mut lines = proof.split('\n');
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let index = number(lines.next()?.strip_prefix("index ")?)?;
        let hashes = lines.map(base64::decode_hash).collect::<Option<Vec<_>>>()?;
        (hashes.len() <= MAX_HASHES).then(|| ProofFile { index, hashes, note: note.to_string() })
    }

    /// Verifies that the entry is in the log of this origin; returns the tree head.
    pub fn verify(
        &self,
        entry: &[u8],
        origin: &str,
        trusted: &[NoteKey],
    ) -> Result<TreeHead, ProofError> {
        let note = Note::parse(&self.note).map_err(|_| ProofError::NoHead)?;
        note.verify(trusted).map_err(|_| ProofError::Signature)?;
        let head = TreeHead::parse(note.text).ok_or(ProofError::NoHead)?;
        if head.origin != origin {
            return Err(ProofError::Origin);
        }
        let hash = entry_hash(entry);
        let root = root_from_inclusion(&hash, self.index, head.size, &self.hashes);
        if root == Some(head.root) { Ok(head) } else { Err(ProofError::Path) }
    }
}
