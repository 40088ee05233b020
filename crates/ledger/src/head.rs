//! Tree heads: the size and root of a log (C2SP `tlog-checkpoint`).

use crate::note::{Note, NoteError, NoteKey};
use crate::tree::Hash;
use crate::{base64, dsse};
use alloc::format;
use alloc::string::{String, ToString};
use ipse_core::Identity;

/// Size and root of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeHead {
    /// The name of the log.
    pub origin: String,
    /// The number of entries.
    pub size: u64,
    /// The root over all entries.
    pub root: Hash,
}

impl TreeHead {
    /// The origin of an identity's log.
    pub fn origin_of(identity: &Identity) -> String {
        format!("ipse/{identity}")
    }

    /// Reads the head of any log from a note. The signatures are not checked.
    pub fn of_note(note: &str) -> Option<Self> {
        TreeHead::parse(Note::parse(note).ok()?.text)
    }

    /// Reads the head of an identity's log from a note. The signatures are not checked.
    pub fn of(note: &str, identity: &Identity) -> Result<Self, String> {
        let note = Note::parse(note).map_err(|error| format!("cannot be read: {error}"))?;
        let head = TreeHead::parse(note.text).ok_or("cannot be read: it is not a tree head")?;
        match head.origin == Self::origin_of(identity) {
            true => Ok(head),
            false => Err(format!("belongs to another log, {}", head.origin)),
        }
    }

    /// Reads the head of an identity's log that one of these keys signed; returns it with the id of
    /// the key.
    pub fn signed(
        note: &str,
        identity: &Identity,
        keys: &[NoteKey],
    ) -> Result<(Self, String), String> {
        let head = Self::of(note, identity)?;
        let verified = Note::parse(note).and_then(|note| note.verify(keys));
        let signers = verified.map_err(|error| match error {
            NoteError::Untrusted => format!("no trusted key named {} signed it", head.origin),
            error => error.to_string(),
        })?;
        let signer = signers.first().ok_or("no key signed it")?;
        Ok((head, dsse::key_id(signer)))
    }

    /// The text that is signed: three lines.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, base64::encode(&self.root))
    }

    /// Parses exactly the form of `text`. Extension lines are rejected, because they cannot be
    /// audited.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let head = TreeHead {
            origin: lines.next().filter(|origin| !origin.is_empty())?.to_string(),
            size: number(lines.next()?)?,
            root: base64::decode_hash(lines.next()?)?,
        };
        lines.next().is_none().then_some(head)
    }
}

/// A decimal number without leading zeros.
pub(crate) fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
