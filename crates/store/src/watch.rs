//! Watching a store for changes by other sessions.
//!
//! **Invariants**
//! - While no other session writes, a check compares one number.
//! - An identity is reported once for all changes of its log since the last check, and again if
//!   the caller asks for it.

use crate::Reader;
use crate::session::{Mark, Result};
use ipse_core::Identity;
use std::collections::BTreeMap;

/// Detects changes of a store by other sessions.
pub struct Watch {
    reader: Reader,
    seen: Option<i64>,
    marks: BTreeMap<Identity, Mark>,
}

impl Watch {
    pub(crate) fn new(reader: Reader) -> Self {
        Watch { reader, seen: None, marks: BTreeMap::new() }
    }

    /// The identities whose log another session has changed since the last call, and those that
    /// were registered since. The first call returns all. Tokens and settings are not watched.
    /// Fails if the store was removed or replaced.
    pub fn changed(&mut self) -> Result<Vec<Identity>> {
        let version = Some(self.reader.session().version()?);
        if self.seen == version {
            return Ok(Vec::new());
        }
        let marks = self.reader.session().marks()?;
        // A change after the version was read is in these marks, or the next call finds it.
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

    /// Reports an identity again at the next call, because the caller could not handle its change.
    pub fn again(&mut self, identity: &Identity) {
        self.marks.remove(identity);
        self.seen = None;
    }

    /// A reader of the current store.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}
