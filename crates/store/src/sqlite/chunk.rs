//! Chunks in SQLite. A full chunk at the end of the log also becomes a run of the ref index.

use super::event::bytes;
use super::session::Connected;
use super::{at, seq_of, span};
use crate::Error;
use crate::audit::Pair;
use crate::session::{Chunks, Log, Order, Result, Span, Visit};
use ipse_core::{EventRef, Seq};
use rusqlite::{OptionalExtension, Row};

impl Chunks for Connected {
    fn visit_chunks(
        &self,
        log: Log,
        ends: Span,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let sql = match order {
            Order::OldestFirst => {
                "SELECT at, body FROM chunk WHERE at BETWEEN ?1 AND ?2 ORDER BY at"
            }
            Order::NewestFirst => {
                "SELECT at, body FROM chunk WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC"
            }
        };
        let attempt = Error::while_trying("read a chunk");
        let (first, last, _) = span(log, &ends, 0);
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query((first, last)).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            let end = seq_of(row.get(0).map_err(&attempt)?);
            let body = row.get_ref(1).map_err(&attempt)?;
            let body = body
                .as_blob()
                .map_err(|_| Error::Corrupt(format!("the chunk of seq {end} cannot be read")))?;
            if visit(end, body)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn raw_chunks(&self, log: Log, ends: &[Seq]) -> Result<Vec<Option<Pair>>> {
        let mut statement = self.prepare("SELECT body, refs FROM chunk WHERE at = ?1")?;
        let read = |row: &Row<'_>| Ok((bytes(row, 0)?, bytes(row, 1)?));
        let one = |end: &Seq| statement.query_row([at(log, *end)], read).optional();
        ends.iter()
            .map(one)
            .collect::<rusqlite::Result<_>>()
            .map_err(Error::while_trying("read a chunk"))
    }

    fn chunk_names(&self, log: Log, end: Seq) -> Result<Vec<EventRef>> {
        let names = self
            .prepare("SELECT refs FROM chunk WHERE at = ?1")?
            .query_row([at(log, end)], |row| {
                let refs = row.get_ref(0)?.as_blob()?;
                Ok(refs.as_chunks().0.iter().map(|name| EventRef(*name)).collect())
            })
            .optional()
            .map_err(Error::while_trying("read the refs of a chunk"))?;
        Ok(names.unwrap_or_default())
    }

    fn chunk_ends(&self, log: Log, range: Span) -> Result<Vec<Seq>> {
        let sql = "SELECT at FROM chunk WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
        let bounds = (at(log, *range.start()), at(log, *range.end()));
        self.rows(sql, bounds, "count the chunks", |row| Ok(Ok(seq_of(row.get(0)?))))
    }

    fn put_chunk(&self, log: Log, replaced: Span, body: &[u8], names: &[EventRef]) -> Result<()> {
        let (first, last) = (at(log, *replaced.start()), at(log, *replaced.end()));
        let sql = "DELETE FROM chunk WHERE at BETWEEN ?1 AND ?2";
        self.execute(sql, (first, last), "remove small chunks")?;
        let refs: Vec<u8> = names.iter().flat_map(|name| name.0).collect();
        let sql = "INSERT INTO chunk (at, body, refs) VALUES (?1, ?2, ?3)";
        self.execute(sql, (last, body, refs), "seal a chunk")?;
        self.refs.borrow_mut().sealed(&self.connection, log, *replaced.end(), names)
    }
}
