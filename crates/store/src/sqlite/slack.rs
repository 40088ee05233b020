//! Clearing what a page holds and no longer uses.
//!
//! With `secure_delete` SQLite clears cells and pages that it frees. What it does not clear is the
//! gap that a page has after its cells moved to a neighbour: copies of them stay there, and survive
//! the forgetting of the row itself. Here the gaps are cleared, through SQLite's own page table, so
//! inside the transaction like every other change.
//!
//! **Invariant:** only bytes between a page's list of cells and its first cell are ever changed;
//! to the tree they do not exist.

use crate::Error;
use rusqlite::{CachedStatement, Connection};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of the file's own header before the first page's.
const FILE_HEADER: usize = 100;

/// Leaves to either side of a key that one change may have moved cells to, and one more.
const REACH: usize = 4;

/// Pages in the order of their keys, each with the greatest key it may hold; the last has none.
type Level = Vec<(usize, Option<i64>)>;

/// One page of a b-tree.
struct Page {
    bytes: Vec<u8>,
    header: usize,
}

impl Page {
    fn number(&self, at: usize, length: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at + length)?;
        Some(bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn is_leaf(&self) -> bool {
        self.bytes.get(self.header).is_some_and(|kind| kind & 8 != 0)
    }

    /// Where the list of cells stands.
    fn cells(&self) -> Option<Range<usize>> {
        let first = self.header + if self.is_leaf() { 8 } else { 12 };
        Some(first..first + 2 * self.number(self.header + 3, 2)?)
    }

    fn gap(&self) -> Option<Range<usize>> {
        let content = match self.number(self.header + 5, 2)? {
            0 => 65_536,
            content => content,
        };
        let gap = self.cells()?.end..content;
        (gap.start <= gap.end && gap.end <= self.bytes.len()).then_some(gap)
    }

    /// The pages below, each with the greatest key it may hold; the last has none.
    fn children(&self) -> Option<Level> {
        if self.is_leaf() {
            return Some(Vec::new());
        }
        let mut children = Vec::new();
        for place in self.cells()?.step_by(2) {
            let cell = self.number(place, 2)?;
            children.push((self.number(cell, 4)?, Some(self.key(cell + 4)?)));
        }
        children.push((self.number(self.header + 8, 4)?, None));
        Some(children)
    }

    /// A key in SQLite's variable length: seven bits a byte, but eight in the ninth.
    fn key(&self, at: usize) -> Option<i64> {
        let mut key = 0_i64;
        for (place, byte) in self.bytes.get(at..)?.iter().take(9).enumerate() {
            if place == 8 {
                return Some(key << 8 | i64::from(*byte));
            }
            key = key << 7 | i64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(key);
            }
        }
        None
    }
}

/// Pages of a store, to be read and cleared inside a transaction.
pub(super) struct Pages<'c> {
    connection: &'c Connection,
    read: CachedStatement<'c>,
}

impl<'c> Pages<'c> {
    /// Nothing, if this SQLite was compiled without its page table.
    pub(super) fn of(connection: &'c Connection) -> Option<Self> {
        let read = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1");
        Some(Pages { connection, read: read.ok()? })
    }

    /// Clears every page of a table or an index.
    pub(super) fn clear_all(&mut self, name: &str) -> Result<(), Error> {
        let mut next = vec![self.root(name)?];
        while let Some(number) = next.pop() {
            let page = self.clear(number)?;
            next.extend(children(number, &page)?.into_iter().map(|(child, _)| child));
        }
        Ok(())
    }

    /// Clears the leaves of a table around these keys. When a cell shrinks, SQLite moves others
    /// between three neighbours at most, so nothing lies further off than that for each key.
    pub(super) fn clear_around(&mut self, name: &str, keys: &[i64]) -> Result<(), Error> {
        let reach = REACH * keys.len();
        let parents = self.parents(self.root(name)?)?;
        let mut leaves = BTreeSet::new();
        for key in keys {
            let place = position(&parents, *key);
            let family = &parents[place.saturating_sub(1)..(place + 2).min(parents.len())];
            let family = self.below(family)?;
            let place = position(&family, *key);
            let near = &family[place.saturating_sub(reach)..(place + reach + 1).min(family.len())];
            leaves.extend(near.iter().map(|(leaf, _)| *leaf));
        }
        leaves.into_iter().try_for_each(|leaf| self.clear(leaf).map(drop))
    }

    /// The pages right above the leaves, in order, each with the greatest key it may hold.
    fn parents(&mut self, root: usize) -> Result<Level, Error> {
        let mut level = vec![(root, None)];
        loop {
            let below = self.below(&level)?;
            match below.first() {
                Some((first, _)) if !self.page(*first)?.is_leaf() => level = below,
                _ => return Ok(level),
            }
        }
    }

    /// The children of some pages, in order. A leaf stands for itself.
    fn below(&mut self, level: &[(usize, Option<i64>)]) -> Result<Level, Error> {
        let mut below = Level::new();
        for (number, greatest) in level {
            let page = self.page(*number)?;
            if page.is_leaf() {
                below.push((*number, *greatest));
            }
            for (child, key) in children(*number, &page)? {
                below.push((child, key.or(*greatest)));
            }
        }
        Ok(below)
    }

    fn root(&self, name: &str) -> Result<usize, Error> {
        let root: i64 = self
            .connection
            .prepare_cached("SELECT rootpage FROM sqlite_schema WHERE name = ?1")
            .and_then(|mut statement| statement.query_row([name], |row| row.get(0)))
            .map_err(Error::while_trying("find a table's pages"))?;
        usize::try_from(root).map_err(|_| damaged(0))
    }

    fn page(&mut self, number: usize) -> Result<Page, Error> {
        let bytes = self
            .read
            .query_row([number.cast_signed()], |row| row.get(0))
            .map_err(Error::while_trying("read a page"))?;
        Ok(Page { bytes, header: if number == 1 { FILE_HEADER } else { 0 } })
    }

    /// Clears a page's gap, if there is anything in it.
    fn clear(&mut self, number: usize) -> Result<Page, Error> {
        let mut page = self.page(number)?;
        let gap = page.gap().ok_or_else(|| damaged(number))?;
        if page.bytes[gap.clone()].iter().any(|byte| *byte != 0) {
            page.bytes[gap].fill(0);
            self.connection
                .prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")
                .and_then(|mut update| update.execute((number.cast_signed(), &page.bytes)))
                .map_err(Error::while_trying("clear a page"))?;
        }
        Ok(page)
    }
}

/// Which page of a level a key belongs to.
fn position(level: &[(usize, Option<i64>)], key: i64) -> usize {
    let place = level.partition_point(|(_, greatest)| greatest.is_some_and(|most| most < key));
    place.min(level.len().saturating_sub(1))
}

fn children(number: usize, page: &Page) -> Result<Level, Error> {
    page.children().ok_or_else(|| damaged(number))
}

fn damaged(page: usize) -> Error {
    Error::Corrupt(format!("page {page} of the file cannot be read"))
}
