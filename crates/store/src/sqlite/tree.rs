//! The stored Merkle tree and the signed head in SQLite.

use super::session::Connected;
use super::{at, seq_of, span};
use crate::Error;
use crate::session::{ByEnd, Log, Order, Result, Span, Trees};
use rusqlite::OptionalExtension;

impl Trees for Connected {
    fn nodes(&self, log: Log, ends: Span, order: Order, limit: usize) -> Result<ByEnd> {
        let sql = match order {
            Order::OldestFirst => {
                "SELECT at, nodes FROM tree WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3"
            }
            Order::NewestFirst => {
                "SELECT at, nodes FROM tree WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT ?3"
            }
        };
        self.rows(sql, span(log, &ends, limit), "read the tree", |row| {
            Ok(Ok((seq_of(row.get(0)?), row.get(1)?)))
        })
    }

    fn tree_head(&self, log: Log) -> Result<Option<String>> {
        self.prepare("SELECT note FROM tree_head WHERE log = ?1")?
            .query_row([log.number], |row| row.get(0))
            .optional()
            .map_err(Error::while_trying("read the tree head"))
    }

    fn swap_tree_head(
        &self,
        log: Log,
        old: Option<&str>,
        new: &str,
        nodes: &ByEnd,
    ) -> Result<bool> {
        let attempt = "store the tree head";
        self.atomically(|| {
            if self.tree_head(log)?.as_deref() != old {
                return Ok(false);
            }
            let sql = "INSERT OR IGNORE INTO tree (at, nodes) VALUES (?1, ?2)";
            self.change(sql, nodes, |(end, nodes)| (at(log, *end), nodes), attempt)?;
            let sql = "INSERT INTO tree_head (log, note) VALUES (?1, ?2) \
                       ON CONFLICT (log) DO UPDATE SET note = excluded.note";
            self.execute(sql, (log.number, new), attempt)?;
            Ok(true)
        })
    }
}
