//! The facts that a pass changed.
//!
//! **Invariants:** a fact counts once, in however many slices of a pass it changes; a pass of
//! several slices keeps no more than the ids of its facts.

use ipse_core::{Fact, FactId, FactKey};
use std::collections::BTreeSet;

/// What a pass has changed so far.
#[derive(Default)]
pub(crate) struct Changes {
    changed: Vec<Fact>,
    gone: Vec<FactKey>,
    /// Instead of the facts, once a pass has several slices.
    ids: Option<BTreeSet<FactId>>,
}

impl Changes {
    /// Says that another slice follows, before the facts of the first one are published.
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

    /// How many facts changed or are gone.
    pub(crate) fn rows(&self) -> u64 {
        let changed = self.ids.as_ref().map_or(self.changed.len(), BTreeSet::len);
        (changed + self.gone.len()) as u64
    }

    /// The facts that changed, unless only their ids were kept; and the keys of deleted facts.
    pub(crate) fn into_facts(self) -> (Option<Vec<Fact>>, Vec<FactKey>) {
        let changed = if self.are_sliced() { None } else { Some(self.changed) };
        (changed, self.gone)
    }
}
