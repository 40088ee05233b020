//! Clearing the unused bytes of a page.
//!
//! With `secure_delete` SQLite clears cells and pages that it frees. It does not clear the gap in a
//! page whose cells moved to a neighbour: copies of them stay there after the row itself is
//! forgotten. This module clears the gaps through SQLite's own page table, so the change is part of
//! the transaction.
//!
//! **Invariant:** only bytes between a page's list of cells and its first cell are changed. The
//! b-tree never reads them.

use crate::Error;
use rusqlite::{CachedStatement, Connection};
use std::collections::BTreeSet;
use std::ops::Range;

/// One page of a b-tree. It is never the first page of the file, which has the file header too.
struct Page(Vec<u8>);

impl Page {
    fn number(&self, at: usize, length: usize) -> Option<usize> {
        let bytes = self.0.get(at..at + length)?;
        Some(bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn is_leaf(&self) -> bool {
        self.0.first().is_some_and(|kind| kind & 8 != 0)
    }

    /// The byte range of the list of cells.
    fn cells(&self) -> Option<Range<usize>> {
        let first = if self.is_leaf() { 8 } else { 12 };
        Some(first..first + 2 * self.number(3, 2)?)
    }

    fn gap(&self) -> Option<Range<usize>> {
        let content = match self.number(5, 2)? {
            0 => 65_536,
            content => content,
        };
        let gap = self.cells()?.end..content;
        (gap.start <= gap.end && gap.end <= self.0.len()).then_some(gap)
    }

    /// The numbers of the child pages.
    fn children(&self) -> Option<Vec<usize>> {
        if self.is_leaf() {
            return Some(Vec::new());
        }
        let below = |place| self.number(self.number(place, 2)?, 4);
        let mut children = self.cells()?.step_by(2).map(below).collect::<Option<Vec<_>>>()?;
        children.push(self.number(8, 4)?);
        Some(children)
    }
}

/// Reads and clears pages of a store inside a transaction.
pub(super) struct Pages<'c> {
    connection: &'c Connection,
    read: CachedStatement<'c>,
}

impl<'c> Pages<'c> {
    /// `None` if this SQLite was compiled without its page table.
    pub(super) fn of(connection: &'c Connection) -> Option<Self> {
        let read = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1");
        Some(Pages { connection, read: read.ok()? })
    }

    /// Clears the gaps of all pages of a table or an index.
    pub(super) fn clear_all(&mut self, name: &str) -> Result<(), Error> {
        let mut next = vec![self.root(name)?];
        let mut seen = BTreeSet::new();
        while let Some(number) = next.pop() {
            if !seen.insert(number) {
                return Err(damaged(number));
            }
            let page = self.clear(number)?;
            next.extend(page.children().ok_or_else(|| damaged(number))?);
        }
        Ok(())
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
        self.read
            .query_row([number.cast_signed()], |row| row.get(0).map(Page))
            .map_err(Error::while_trying("read a page"))
    }

    /// Clears the gap of a page, if it is not zero already.
    fn clear(&mut self, number: usize) -> Result<Page, Error> {
        let mut page = self.page(number)?;
        let gap = page.gap().ok_or_else(|| damaged(number))?;
        if page.0[gap.clone()].iter().any(|byte| *byte != 0) {
            page.0[gap].fill(0);
            self.connection
                .prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")
                .and_then(|mut update| update.execute((number.cast_signed(), &page.0)))
                .map_err(Error::while_trying("clear a page"))?;
        }
        Ok(page)
    }
}

fn damaged(page: usize) -> Error {
    Error::Corrupt(format!("page {page} of the file cannot be read"))
}
/// Whether the linked SQLite lets forgetting clear single pages. Otherwise forgetting rewrites the
/// whole file: the result is the same, and a large store takes longer.
pub fn forgets_in_place() -> bool {
    let asked = "SELECT sqlite_compileoption_used('ENABLE_DBPAGE_VTAB')";
    let used =
        Connection::open_in_memory().and_then(|it| it.query_row(asked, [], |row| row.get(0)));
    used.unwrap_or(false)
}
