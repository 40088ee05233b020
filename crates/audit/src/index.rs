//! The entries of a log: their names, their digests, and the tree over them.

use ipse_core::{Digest, EventRef, Seq};
use ipse_ledger::{Edge, Hash, TreeHead};
use std::collections::BTreeMap;

/// The index of all entries.
#[derive(Default)]
pub struct Index {
    /// Names by position.
    pub names: Vec<EventRef>,
    /// Digests by position; empty if the verifier does not need them.
    pub digests: Vec<Digest>,
    /// By position: whether ipse wrote the event, and whether it can be forgotten; empty if the
    /// verifier does not need them.
    pub kinds: Vec<[bool; 2]>,
    /// The tree over the entries.
    pub edge: Edge,
    /// Positions from 0, sorted by name.
    by_name: Vec<u32>,
    /// Roots at the sizes of tree heads; `None` for sizes that are not reached.
    roots: BTreeMap<u64, Option<Hash>>,
}

impl Index {
    /// An empty index that keeps the roots at these sizes.
    pub fn new(sizes: impl Iterator<Item = u64>) -> Self {
        let roots = sizes.map(|size| (size, None)).collect();
        let mut index = Index { roots, ..Index::default() };
        index.keep_root();
        index
    }

    /// Adds the hash of the next entry to the tree. `each` is called for the completed subtrees, as
    /// by [`Edge::push`].
    pub fn grow(&mut self, entry: Hash, each: impl FnMut(u32, u64, &Hash)) {
        self.edge.push(entry, each);
        self.keep_root();
    }

    fn keep_root(&mut self) {
        if let Some(root) = self.roots.get_mut(&self.edge.size()) {
            *root = Some(self.edge.root());
        }
    }

    /// Checks that the log begins with the entries under a tree head. Its size must be one of those
    /// given to [`Index::new`].
    pub fn continues(&self, head: &TreeHead) -> Result<(), String> {
        let (signed, size) = (head.size, self.edge.size());
        match self.roots.get(&signed) == Some(&Some(head.root)) {
            true => Ok(()),
            false if signed > size => Err(format!(
                "covers {signed} entries, but there are {size}: an older copy, or rolled back"
            )),
            false => Err(format!(
                "the first {signed} entries are not those that were signed: the log was forked"
            )),
        }
    }

    /// Sorts the names for [`Index::find`]. Returns the positions, from 0, of duplicate names.
    pub fn sort(&mut self) -> Vec<[usize; 2]> {
        let names = &self.names;
        self.by_name = (0..=u32::MAX).take(names.len()).collect();
        self.by_name.sort_unstable_by_key(|place| (names[*place as usize], *place));
        let pairs = self.by_name.windows(2).map(|pair| [pair[0], pair[1]].map(|at| at as usize));
        pairs.filter(|[first, second]| names[*first] == names[*second]).collect()
    }

    /// Looks up the position, from 0, of an event by its name.
    pub fn find(&self, name: &EventRef) -> Option<usize> {
        let named = |place: &u32| self.names[*place as usize];
        let place = self.by_name.binary_search_by_key(name, named).ok()?;
        Some(self.by_name[place] as usize)
    }

    /// Looks up the position of an event by its name, and its digest if digests are kept.
    pub fn look_up(&self, name: &EventRef) -> Option<(Seq, Digest)> {
        let at = self.find(name)?;
        Some((Seq(at as u64 + 1), *self.digests.get(at)?))
    }
}
