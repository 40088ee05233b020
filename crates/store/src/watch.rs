//! Watching a store for changes by others.
//!
//! **Invariants**
//! - While no other session writes, watching costs one look at a number.
//! - An identity is reported once for all changes of its log since the look before, and again if
//!   the caller could not follow.

use crate::Reader;
use crate::session::{Mark, Result};
use ipse_core::Identity;
use std::collections::BTreeMap;

/// A store that is watched.
pub struct Watch {
    reader: Reader,
    seen: Option<i64>,
    marks: BTreeMap<Identity, Mark>,
}

impl Watch {
    pub(crate) fn new(reader: Reader) -> Self {
        Watch { reader, seen: None, marks: BTreeMap::new() }
    }

    /// The identities whose log another session has changed since this was asked last, and those
    /// that were registered since; all of them when it is asked for the first time. Tokens and
    /// settings are not watched. An error if the store was removed or replaced.
    pub fn changed(&mut self) -> Result<Vec<Identity>> {
        let version = Some(self.reader.session().version()?);
        if self.seen == version {
            return Ok(Vec::new());
        }
        let marks = self.reader.session().marks()?;
        // A change after the version was read is in these marks already, or the next look finds it.
        self.seen = version;
        let mut changed = Vec::new();
        for (identity, mark) in marks {
            if self.marks.get(&identity) != Some(&mark) {
                self.marks.insert(identity, mark);
                changed.push(identity);
            }
        }
        Ok(changed)
    }

    /// Reports an identity again at the next look: the caller could not follow its change.
    pub fn again(&mut self, identity: &Identity) {
        self.marks.remove(identity);
        self.seen = None;
    }

    /// For questions about the store as it is now.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}
