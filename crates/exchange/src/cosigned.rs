//! The tree head of a bundle, with the cosignatures of witnesses.
//!
//! **Invariant:** a cosignature goes only with the tree head that the witness signed.

use crate::error::Error;
use ipse_engine::head_of;
use ipse_ledger::cosignature::cosigned_note;
use ipse_ledger::{Cosignature, TreeHead};
use ipse_store::{Cosigned, View};

/// A signed tree head with its cosignatures.
pub(crate) struct CosignedHead {
    pub(crate) head: TreeHead,
    /// The note with the cosignatures.
    pub(crate) note: String,
    /// The number of cosignatures.
    pub(crate) cosignatures: u64,
}

impl CosignedHead {
    /// The newest signed tree head.
    pub(crate) fn newest(view: View<'_>) -> Result<Self, Error> {
        let note = view.tree_head()?.ok_or(Error::NoHead)?;
        Self::of(view, &note, "newest tree head")
    }

    /// The newest tree head that a witness cosigned.
    pub(crate) fn newest_cosigned(view: View<'_>) -> Result<Self, Error> {
        let place = "cosigned tree head";
        let cosigned = view.newest_cosignatures()?.into_iter().next();
        let note = cosigned.ok_or(Error::NotCosigned)?.note;
        let found = Self::of(view, &note, place)?;
        let stored = view.head()?.0;
        match found.head.size <= stored && view.tree_root(found.head.size)? == found.head.root {
            true => Ok(found),
            false => Err(Error::Damaged(place.to_owned())),
        }
    }

    fn of(view: View<'_>, note: &str, place: &str) -> Result<Self, Error> {
        let head = head_of(note).ok_or_else(|| Error::Damaged(place.to_owned()))?;
        let same = |cosigned: &Cosigned| head_of(&cosigned.note).as_ref() == Some(&head);
        let stored = view.cosignatures(head.size)?;
        let lines = stored.iter().filter(|one| same(one)).map(|one| Cosignature::parse(&one.line));
        let lines: Vec<Cosignature> = lines.flatten().collect();
        let cosignatures = lines.len() as u64;
        Ok(CosignedHead { head, note: cosigned_note(note, lines), cosignatures })
    }
}
