//! The Merkle tree over a log: stored subtrees, and the handle that stores tree heads.
//!
//! **Invariants**
//! - The tree is a function of the entries. Stored subtrees of 256 or more entries are a cache.
//!   Smaller and missing subtrees are computed from the rows.
//! - A tree head replaces the previous one only if that one is still stored.
//! - An append does not touch the tree: it grows when a tree head is signed.

use crate::read::{ALL, View, known_log};
use crate::session::{Access, Duty, Log, Order, Result};
use crate::store::Writing;
use crate::{Error, Store};
use ipse_core::{Identity, Seq};
use ipse_ledger::tree::{self, Edge, Hash, Nodes, entry_hash, node_hash};
use std::ops::RangeInclusive;

/// The level of the smallest stored subtrees: 256 entries.
pub const STORED_LEVEL: u32 = 8;

impl Nodes for View<'_> {
    type Error = Error;

    fn node(&self, level: u32, index: u64) -> Result<Hash> {
        if level < STORED_LEVEL {
            return self.small_subtree(level, index);
        }
        let last = Seq((index + 1) << level);
        let place = (level - STORED_LEVEL) as usize;
        match self.stored_nodes(last)?.and_then(|nodes| nodes.get(place).copied()) {
            Some(hash) => Ok(hash),
            None => Ok(node_hash(
                &self.node(level - 1, 2 * index)?,
                &self.node(level - 1, 2 * index + 1)?,
            )),
        }
    }
}

impl View<'_> {
    fn small_subtree(&self, level: u32, index: u64) -> Result<Hash> {
        let (first, last) = (Seq((index << level) + 1), Seq((index + 1) << level));
        let mut edge = Edge::default();
        self.each_entry_hash(first..=last, |hash| edge.push(hash, |_, _, _| {}))?;
        match edge.size() {
            size if size == 1 << level => Ok(edge.root()),
            _ => Err(Error::Corrupt(format!("entries are missing in seq {first}..{last}"))),
        }
    }

    /// Passes the hashes of the entries of a range to `each`, in order.
    fn each_entry_hash(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Hash),
    ) -> Result<()> {
        let mut text = String::with_capacity(256);
        self.each_entry(range, |entry, _| {
            text.clear();
            let (name, digest) = (&entry.event_ref, &entry.digest);
            let (time, event_type) = (entry.time, &entry.event_type);
            ipse_ledger::write_entry(entry.seq, name, time, event_type, digest, &mut text);
            each(entry_hash(text.as_bytes()));
            Ok(())
        })
    }

    /// The stored roots of the subtrees that end at a position, the smallest first.
    pub fn stored_nodes(&self, last: Seq) -> Result<Option<Vec<Hash>>> {
        let page = self.session.nodes(self.log, last..=last, Order::OldestFirst, 1)?;
        Ok(page.first().map(|(_, nodes)| nodes.as_chunks().0.to_vec()))
    }

    /// The last positions of the stored subtrees, ascending.
    pub fn tree_ends(&self) -> Result<Vec<Seq>> {
        let page = self.session.nodes(self.log, ALL, Order::OldestFirst, usize::MAX)?;
        Ok(page.into_iter().map(|(last, _)| last).collect())
    }

    /// The root over the first `size` entries.
    pub fn tree_root(&self, size: u64) -> Result<Hash> {
        tree::root(self, size)
    }

    /// The newest stored tree head, a signed note.
    pub fn tree_head(&self) -> Result<Option<String>> {
        self.session.tree_head(self.log)
    }

    /// The right edge of the tree at the end of the stored subtrees; empty if none are stored.
    fn stored_edge(&self) -> Result<Edge> {
        let newest = self.session.nodes(self.log, Seq(1)..=self.head()?, Order::NewestFirst, 1)?;
        let size = newest.first().map_or(0, |(last, _)| last.0) >> STORED_LEVEL << STORED_LEVEL;
        let mut subtrees = Vec::new();
        let mut begin = 0;
        for level in (STORED_LEVEL..u64::BITS).rev().filter(|level| size >> level & 1 == 1) {
            subtrees.push(self.node(level, begin >> level)?);
            begin += 1 << level;
        }
        Ok(Edge::new(size, subtrees).expect("BUG: a subtree for each bit of the size"))
    }
}

/// The tree of a log at one size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grown {
    /// The number of entries.
    pub size: u64,
    /// The root hash.
    pub root: Hash,
    /// The stored tree head, if any.
    pub stored: Option<String>,
}

/// The handle that stores tree heads of one log. It has its own connection.
pub struct HeadWriter {
    session: Writing,
    log: Log,
    /// The right edge of the tree as computed so far; `None` before the first `grow`.
    edge: Option<Edge>,
    /// Subtrees that are not stored yet: their last positions and roots.
    rows: Vec<(Seq, Vec<u8>)>,
}

impl HeadWriter {
    pub(crate) fn open(store: &Store, identity: &Identity) -> Result<Self> {
        let session = store.writing(Duty::Sign)?;
        let log = known_log(&*session, identity)?;
        Ok(HeadWriter { session, log, edge: None, rows: Vec::new() })
    }

    /// The readable state of the log.
    pub fn view(&self) -> View<'_> {
        View { session: &*self.session, log: self.log }
    }

    /// Extends the tree to all entries, from its last size or from the stored subtrees. Takes no
    /// write lock: entries never change, so the result stays valid.
    pub fn grow(&mut self) -> Result<Grown> {
        self.session.begin(Access::Read)?;
        let grown = self.grow_inside();
        self.session.rollback();
        grown
    }

    fn grow_inside(&mut self) -> Result<Grown> {
        let view = View { session: &*self.session, log: self.log };
        let (head, stored) = (view.head()?, view.tree_head()?);
        let mut edge = match self.edge.take() {
            Some(edge) if edge.size() <= head.0 => edge,
            _ => {
                self.rows.clear();
                view.stored_edge()?
            }
        };
        let rows = &mut self.rows;
        view.each_entry_hash(Seq(edge.size() + 1)..=head, |hash| {
            edge.push(hash, |level, index, hash| match level {
                0..STORED_LEVEL => {}
                STORED_LEVEL => rows.push((Seq((index + 1) << level), hash.to_vec())),
                // A larger subtree ends at the same position and follows right after.
                _ => rows.iter_mut().rev().take(1).for_each(|row| row.1.extend(hash)),
            });
        })?;
        let grown = Grown { size: edge.size(), root: edge.root(), stored };
        self.edge = Some(edge);
        Ok(grown)
    }

    /// Replaces the tree head that was stored when the tree was grown, and stores the new subtrees.
    /// Fails without a change if another tree head was stored meanwhile.
    pub fn put(&mut self, grown: &Grown, note: &str) -> Result<()> {
        let expected = grown.stored.as_deref();
        match self.session.swap_tree_head(self.log, expected, note, &self.rows)? {
            true => self.rows.clear(),
            false => return Err(Error::HeadMoved),
        }
        Ok(())
    }
}
