//! Cosignatures of witnesses in SQLite.

use super::session::Connected;
use crate::Cosigned;
use crate::session::{Cosignatures, Log, Order, Result, Span};

impl Cosignatures for Connected {
    fn cosignatures(
        &self,
        log: Log,
        sizes: Span,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Cosigned>> {
        let sql = match order {
            Order::OldestFirst => {
                "SELECT size, key, line, note FROM cosignature WHERE log = ?1 AND size IN \
                 (SELECT DISTINCT size FROM cosignature WHERE log = ?1 AND size BETWEEN ?2 AND ?3 \
                 ORDER BY size LIMIT ?4) ORDER BY size, key"
            }
            Order::NewestFirst => {
                "SELECT size, key, line, note FROM cosignature WHERE log = ?1 AND size IN \
                 (SELECT DISTINCT size FROM cosignature WHERE log = ?1 AND size BETWEEN ?2 AND ?3 \
                 ORDER BY size DESC LIMIT ?4) ORDER BY size DESC, key"
            }
        };
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let bounds = (log.number, number(sizes.start().0), number(sizes.end().0), limit);
        self.rows(sql, bounds, "read the cosignatures", |row| {
            let size = row.get::<_, i64>(0)?.cast_unsigned();
            let (key, line, note) = (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Ok(Cosigned { size, key, line, note }))
        })
    }

    fn put_cosignature(&self, log: Log, cosigned: &Cosigned) -> Result<()> {
        let sql = "INSERT OR FAIL INTO cosignature (log, size, key, line, note) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let Cosigned { size, key, line, note } = cosigned;
        let size = i64::try_from(*size).unwrap_or(i64::MAX);
        self.execute(sql, (log.number, size, key, line, note), "store a cosignature").map(drop)
    }
}
