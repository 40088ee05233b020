//! The Merkle tree over a log: subtrees that are stored, and the handle that stores tree heads.
//!
//! **Invariants**
//! - The tree is a function of the entries. What is stored of it is a cache of subtrees of 256
//!   entries and more; smaller ones, and those that are missing, are computed from the rows.
//! - A tree head takes the place of the one before it only if that one is still there.
//! - Nothing here is on the way of an append: the tree grows when a head is signed.

use crate::read::{ALL, View, known_log};
use crate::session::{Access, Duty, Log, Order, Result};
use crate::store::Writing;
use crate::{Error, Store};
use ipse_core::{Identity, Seq};
use ipse_ledger::tree::{self, Edge, Hash, Nodes, entry_hash, node_hash};
use std::ops::RangeInclusive;

/// The level of the smallest subtrees that are stored: 256 entries.
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

    /// Where stored subtrees end, ascending.
    pub fn tree_ends(&self) -> Result<Vec<Seq>> {
        let page = self.session.nodes(self.log, ALL, Order::OldestFirst, usize::MAX)?;
        Ok(page.into_iter().map(|(last, _)| last).collect())
    }

    /// The root over the first `size` entries.
    pub fn tree_root(&self, size: u64) -> Result<Hash> {
        tree::root(self, size)
    }

    /// The newest signed tree head, as it is stored.
    pub fn tree_head(&self) -> Result<Option<String>> {
        self.session.tree_head(self.log)
    }

    /// The right edge where stored subtrees end; nothing if none are stored.
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

/// The tree of a log at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grown {
    /// How many entries it has.
    pub size: u64,
    /// Its root.
    pub root: Hash,
    /// The tree head that is stored.
    pub stored: Option<String>,
}

/// The handle that stores tree heads, on one identity's log: a connection of its own.
pub struct HeadWriter {
    session: Writing,
    log: Log,
    /// How far the tree has grown here; nothing before it is first asked for.
    edge: Option<Edge>,
    /// Subtrees that are not stored yet: where they end, and their roots.
    rows: Vec<(Seq, Vec<u8>)>,
}

impl HeadWriter {
    pub(crate) fn open(store: &Store, identity: &Identity) -> Result<Self> {
        let session = store.writing(Duty::Sign)?;
        let log = known_log(&*session, identity)?;
        Ok(HeadWriter { session, log, edge: None, rows: Vec::new() })
    }

    /// What can be read.
    pub fn view(&self) -> View<'_> {
        View { session: &*self.session, log: self.log }
    }

    /// Lets the tree grow over all entries, from where it was or from what is stored of it. It
    /// takes no lock: entries never change, so what holds now holds for good.
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
                // Larger ones end where the smallest of them does, right after it.
                _ => rows.iter_mut().rev().take(1).for_each(|row| row.1.extend(hash)),
            });
        })?;
        let grown = Grown { size: edge.size(), root: edge.root(), stored };
        self.edge = Some(edge);
        Ok(grown)
    }

    /// Puts a signed head in place of the one that was there when the tree was grown, and stores
    /// the tree. An error, and nothing is changed, if another one is there meanwhile.
    pub fn put(&mut self, grown: &Grown, note: &str) -> Result<()> {
        let expected = grown.stored.as_deref();
        match self.session.swap_tree_head(self.log, expected, note, &self.rows)? {
            true => self.rows.clear(),
            false => return Err(Error::HeadMoved),
        }
        Ok(())
    }
}
