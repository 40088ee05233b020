//! The facts that a pass changed.
//!
//! **Invariants:** a fact counts once, even if several slices of a pass change it; a pass of
//! several slices keeps only the ids of its facts.

use ipse_core::{Fact, FactId, FactKey};
use std::collections::BTreeSet;

/// The facts that a pass has changed so far.
#[derive(Default)]
pub(crate) struct Changes {
    changed: Vec<Fact>,
    gone: Vec<FactKey>,
    /// The ids of changed facts, instead of `changed`, for a pass of several slices.
    ids: Option<BTreeSet<FactId>>,
}

impl Changes {
    /// Switches to ids. Called when another slice follows, before the first one is published.
    pub(crate) fn keep_ids_only(&mut self) {
        self.ids.get_or_insert_default();
    }

    /// Whether the pass has several slices.
    pub(crate) fn are_sliced(&self) -> bool {
        self.ids.is_some()
    }

    pub(crate) fn put(&mut self, id: FactId, fact: Fact) {
        match &mut self.ids {
            Some(ids) => drop(ids.insert(id)),
            None => self.changed.push(fact),
        }
    }

    pub(crate) fn remove(&mut self, key: FactKey) {
        self.gone.push(key);
    }

    /// The number of facts that were changed or deleted.
    pub(crate) fn rows(&self) -> u64 {
        let changed = self.ids.as_ref().map_or(self.changed.len(), BTreeSet::len);
        (changed + self.gone.len()) as u64
    }

    /// The changed facts, unless only their ids were kept, and the keys of deleted facts.
    pub(crate) fn into_facts(self) -> (Option<Vec<Fact>>, Vec<FactKey>) {
        let changed = if self.are_sliced() { None } else { Some(self.changed) };
        (changed, self.gone)
    }
}
