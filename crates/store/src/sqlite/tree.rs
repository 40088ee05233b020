//! The Merkle tree over a log: subtrees that are stored, and the handle that stores tree heads.
//!
//! **Invariants**
//! - The tree is a function of the entries. What is stored of it is a cache of subtrees of 256
//!   entries and more; smaller ones, and those that are missing, are computed from the rows.
//! - A tree head takes the place of the one before it only if that one is still there.
//! - Nothing here is on the way of an append: the tree grows when a head is signed.

use super::guard::{Duty, confine};
use super::read::View;
use super::register::find_log;
use super::transaction::{Level, Open};
use super::{LogId, MAX_SEQ, open_to_write, seq_of};
use crate::Error;
use ipse_core::{Identity, Seq};
use ipse_ledger::tree::{self, Edge, Hash, Nodes, entry_hash, node_hash};
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

/// The level of the smallest subtrees that are stored: 256 entries.
const STORED_LEVEL: u32 = 8;

impl Nodes for View<'_> {
    type Error = Error;

    fn node(&self, level: u32, index: u64) -> Result<Hash, Error> {
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
    fn small_subtree(&self, level: u32, index: u64) -> Result<Hash, Error> {
        let (first, last) = (Seq((index << level) + 1), Seq((index + 1) << level));
        let mut edge = Edge::default();
        self.each_entry(first..=last, |entry, _| {
            edge.push(entry.hash(), |_, _, _| {});
            Ok::<_, Error>(())
        })?;
        match edge.size() {
            size if size == 1 << level => Ok(edge.root()),
            _ => Err(Error::Corrupt(format!("entries are missing in seq {first}..{last}"))),
        }
    }

    /// The stored roots of the subtrees that end at a position, the smallest first.
    pub fn stored_nodes(&self, last: Seq) -> Result<Option<Vec<Hash>>, Error> {
        self.connection
            .prepare_cached("SELECT nodes FROM tree WHERE at = ?1")
            .and_then(|mut statement| {
                let read = |row: &rusqlite::Row<'_>| {
                    let nodes = row.get_ref(0)?.as_blob()?;
                    Ok(nodes.as_chunks().0.to_vec())
                };
                statement.query_row([self.log.at(last)], read).optional()
            })
            .map_err(Error::while_trying("read the tree"))
    }

    /// Where stored subtrees end, ascending.
    pub fn tree_ends(&self) -> Result<Vec<Seq>, Error> {
        self.connection
            .prepare_cached("SELECT at FROM tree WHERE at BETWEEN ?1 AND ?2 ORDER BY at")
            .and_then(|mut statement| {
                let bounds = (self.log.at(Seq(0)), self.log.at(Seq(MAX_SEQ)));
                statement.query_map(bounds, |row| row.get(0).map(seq_of))?.collect()
            })
            .map_err(Error::while_trying("read the tree"))
    }

    /// The root over the first `size` entries.
    pub fn tree_root(&self, size: u64) -> Result<Hash, Error> {
        tree::root(self, size)
    }

    /// The newest signed tree head, as it is stored.
    pub fn tree_head(&self) -> Result<Option<String>, Error> {
        self.connection
            .prepare_cached("SELECT note FROM tree_head WHERE log = ?1")
            .and_then(|mut statement| {
                statement.query_row([self.log.0], |row| row.get(0)).optional()
            })
            .map_err(Error::while_trying("read the tree head"))
    }

    /// The right edge where stored subtrees end; nothing if none are stored.
    fn stored_edge(&self) -> Result<Edge, Error> {
        let bounds = (self.log.at(Seq(0)), self.log.at(self.head()?));
        let at: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(at) FROM tree WHERE at BETWEEN ?1 AND ?2")
            .and_then(|mut statement| statement.query_row(bounds, |row| row.get(0)))
            .map_err(Error::while_trying("read the tree"))?;
        let size = at.map_or(0, |at| seq_of(at).0) >> STORED_LEVEL << STORED_LEVEL;
        let mut subtrees = Vec::new();
        let mut begin = 0;
        for level in (STORED_LEVEL..u64::BITS).rev().filter(|level| size >> level & 1 == 1) {
            subtrees.push(self.node(level, begin >> level)?);
            begin += 1 << level;
        }
        Ok(Edge::new(size, subtrees).expect("BUG: a subtree for each bit of the size"))
    }
}

/// The tree of a log at one moment, with what is to be stored of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grown {
    /// How many entries it has.
    pub size: u64,
    /// Its root.
    pub root: Hash,
    /// The tree head that is stored.
    pub stored: Option<String>,
    /// Positions and the roots of the subtrees that end there.
    rows: Vec<(i64, Vec<u8>)>,
}

/// The handle that stores tree heads, on one identity's log: a connection of its own.
pub struct HeadWriter {
    connection: Connection,
    log: LogId,
}

impl HeadWriter {
    /// Opens a store for tree heads, and for nothing else.
    pub fn open(path: &Path, identity: &Identity) -> Result<Self, Error> {
        let (mut connection, _) = open_to_write(path)?;
        let log = find_log(&connection, identity)?
            .ok_or_else(|| Error::UnknownIdentity(identity.to_string()))?;
        confine(&mut connection, Duty::Sign)?;
        Ok(HeadWriter { connection, log })
    }

    /// What can be read.
    pub fn view(&self) -> View<'_> {
        View { connection: &self.connection, log: self.log }
    }

    /// The tree over all entries, from the stored right edge on. It takes no lock: entries never
    /// change, so what holds now holds for good.
    pub fn grow(&self) -> Result<Grown, Error> {
        let attempt = Error::while_trying("begin to read");
        let reading = self.connection.unchecked_transaction().map_err(attempt)?;
        let view = View { connection: &reading, log: self.log };
        let (head, stored) = (view.head()?, view.tree_head()?);
        let mut edge = view.stored_edge()?;
        let mut rows: Vec<(i64, Vec<u8>)> = Vec::new();
        let log = self.log;
        let mut text = String::with_capacity(256);
        view.each_entry(Seq(edge.size() + 1)..=head, |entry, _| {
            text.clear();
            entry.write(&mut text);
            edge.push(entry_hash(text.as_bytes()), |level, index, hash| {
                let at = log.at(Seq((index + 1) << level));
                match level {
                    0..STORED_LEVEL => {}
                    STORED_LEVEL => rows.push((at, hash.to_vec())),
                    // Larger ones end where the smallest of them does, right after it.
                    _ => rows.iter_mut().rev().take(1).for_each(|row| row.1.extend(hash)),
                }
            });
            Ok::<_, Error>(())
        })?;
        Ok(Grown { size: edge.size(), root: edge.root(), stored, rows })
    }

    /// Puts a signed head in place of the one that was there when the tree was grown, and stores
    /// the tree. An error, and nothing is changed, if another one is there meanwhile.
    pub fn put(&mut self, grown: &Grown, note: &str) -> Result<(), Error> {
        let attempt = Error::while_trying("store the tree head");
        let tx = Open::begin(&self.connection, Level::Batch).map_err(&attempt)?;
        let view = View { connection: tx.connection, log: self.log };
        if view.tree_head()? != grown.stored {
            return Err(Error::HeadMoved);
        }
        let put = || {
            let sql = "INSERT OR IGNORE INTO tree (at, nodes) VALUES (?1, ?2)";
            let mut insert = tx.connection.prepare_cached(sql)?;
            grown.rows.iter().try_for_each(|(at, nodes)| insert.execute((at, nodes)).map(drop))?;
            let sql = "INSERT INTO tree_head (log, note) VALUES (?1, ?2) \
                       ON CONFLICT (log) DO UPDATE SET note = excluded.note";
            tx.connection.prepare_cached(sql)?.execute((self.log.0, note)).map(drop)
        };
        put().map_err(&attempt)?;
        tx.commit().map_err(&attempt)
    }

    /// Runs any statement, to show in a test that the guard refuses it.
    #[doc(hidden)]
    pub fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }
}
