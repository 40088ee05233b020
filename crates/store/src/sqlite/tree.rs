//! The Merkle tree over a log: subtrees that are stored, and the handle that stores tree heads.
//!
//! **Invariants**
//! - The tree is a function of the entries. What is stored of it is a cache of subtrees of 256
//!   entries and more; smaller ones, and those that are missing, are computed from the rows.
//! - A tree head takes the place of the one before it only if that one is still there.
//! - Nothing here is on the way of an append: the tree grows when a head is signed.

use super::files::sync_new_names;
use super::guard::{Duty, confine};
use super::read::View;
use super::register::find_log;
use super::transaction::{Level, Open};
use super::{LogId, MAX_SEQ, open_to_write, seq_of};
use crate::Error;
use ipse_core::{Digest, EventRef, Identity, Seq, Time};
use ipse_ledger::tree::{self, Edge, Hash, Nodes, entry_hash, node_hash};
use rusqlite::{Connection, OptionalExtension, Row};
use std::ops::RangeInclusive;
use std::path::Path;

/// The level of the smallest subtrees that are stored: 256 entries.
pub const STORED_LEVEL: u32 = 8;

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

/// Writes the entry of a row; `None` if it has not the form of one.
fn write_row(row: &Row<'_>, seq: Seq, out: &mut String) -> rusqlite::Result<Option<()>> {
    let blob = |column| row.get_ref(column).map(|value| value.as_blob().ok());
    let name = blob(1)?.and_then(|name| name.try_into().ok()).map(EventRef);
    let digest = blob(4)?.and_then(|digest| digest.try_into().ok()).map(Digest);
    let (time, event_type) = (Time::from_micros(row.get(2)?), row.get_ref(3)?.as_str().ok());
    let (Some(name), Some(digest), Some(time), Some(event_type)) = (name, digest, time, event_type)
    else {
        return Ok(None);
    };
    ipse_ledger::write_entry(seq, &name, time, event_type, &digest, out);
    Ok(Some(()))
}

impl View<'_> {
    fn small_subtree(&self, level: u32, index: u64) -> Result<Hash, Error> {
        let (first, last) = (Seq((index << level) + 1), Seq((index + 1) << level));
        let mut edge = Edge::default();
        self.each_entry_hash(first..=last, |hash| edge.push(hash, |_, _, _| {}))?;
        match edge.size() {
            size if size == 1 << level => Ok(edge.root()),
            _ => Err(Error::Corrupt(format!("entries are missing in seq {first}..{last}"))),
        }
    }

    /// Hands the hashes of the entries of a range to `each`, in order.
    fn each_entry_hash(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Hash),
    ) -> Result<(), Error> {
        let attempt = Error::while_trying("read the entries of the log");
        let sql = "SELECT at, event_ref, time_us, type, digest FROM event \
                   WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
        let mut statement = self.connection.prepare_cached(sql).map_err(&attempt)?;
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()));
        let mut rows = statement.query(bounds).map_err(&attempt)?;
        let mut text = String::with_capacity(256);
        while let Some(row) = rows.next().map_err(&attempt)? {
            text.clear();
            let seq = seq_of(row.get(0).map_err(&attempt)?);
            if write_row(row, seq, &mut text).map_err(&attempt)?.is_none() {
                return Err(Error::Corrupt(format!("the entry of seq {seq} cannot be read")));
            }
            each(entry_hash(text.as_bytes()));
        }
        Ok(())
    }

    /// The stored roots of the subtrees that end at a position, the smallest first.
    pub fn stored_nodes(&self, last: Seq) -> Result<Option<Vec<Hash>>, Error> {
        self.connection
            .prepare_cached("SELECT nodes FROM tree WHERE at = ?1")
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| {
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
    connection: Connection,
    log: LogId,
    /// How far the tree has grown here; nothing before it is first asked for.
    edge: Option<Edge>,
    /// Subtrees that are not stored yet: where they end, and their roots.
    rows: Vec<(i64, Vec<u8>)>,
}

impl HeadWriter {
    /// Opens a store for tree heads, and for nothing else.
    pub fn open(path: &Path, identity: &Identity) -> Result<Self, Error> {
        let (mut connection, _) = open_to_write(path)?;
        sync_new_names(path)?;
        let log = find_log(&connection, identity)?
            .ok_or_else(|| Error::UnknownIdentity(identity.to_string()))?;
        confine(&mut connection, Duty::Sign)?;
        Ok(HeadWriter { connection, log, edge: None, rows: Vec::new() })
    }

    /// What can be read.
    pub fn view(&self) -> View<'_> {
        View { connection: &self.connection, log: self.log }
    }

    /// Lets the tree grow over all entries, from where it was or from what is stored of it. It
    /// takes no lock: entries never change, so what holds now holds for good.
    pub fn grow(&mut self) -> Result<Grown, Error> {
        let attempt = Error::while_trying("begin to read");
        let reading = self.connection.unchecked_transaction().map_err(attempt)?;
        let view = View { connection: &reading, log: self.log };
        let (head, stored) = (view.head()?, view.tree_head()?);
        let mut edge = match self.edge.take() {
            Some(edge) if edge.size() <= head.0 => edge,
            _ => {
                self.rows.clear();
                view.stored_edge()?
            }
        };
        let (log, rows) = (self.log, &mut self.rows);
        view.each_entry_hash(Seq(edge.size() + 1)..=head, |hash| {
            edge.push(hash, |level, index, hash| {
                let at = log.at(Seq((index + 1) << level));
                match level {
                    0..STORED_LEVEL => {}
                    STORED_LEVEL => rows.push((at, hash.to_vec())),
                    // Larger ones end where the smallest of them does, right after it.
                    _ => rows.iter_mut().rev().take(1).for_each(|row| row.1.extend(hash)),
                }
            });
        })?;
        let grown = Grown { size: edge.size(), root: edge.root(), stored };
        self.edge = Some(edge);
        Ok(grown)
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
            self.rows.iter().try_for_each(|(at, nodes)| insert.execute((at, nodes)).map(drop))?;
            let sql = "INSERT INTO tree_head (log, note) VALUES (?1, ?2) \
                       ON CONFLICT (log) DO UPDATE SET note = excluded.note";
            tx.connection.prepare_cached(sql)?.execute((self.log.0, note)).map(drop)
        };
        put().map_err(&attempt)?;
        tx.commit().map_err(&attempt)?;
        self.rows.clear();
        Ok(())
    }

    /// Runs any statement, to show in a test that the guard refuses it.
    #[doc(hidden)]
    pub fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.execute_batch(sql)
    }
}
