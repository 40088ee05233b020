//! What an auditor reads: rows as they are, believed in nothing.
//!
//! **Invariants:** nothing here writes; a row that cannot be read as what it should be is handed
//! out as bytes, or told as a difference, never skipped.

use super::erase::pending;
use super::read::{Snapshot, View};
use super::{MAX_SEQ, STEPS, refs, seq_of};
use crate::Error;
use ipse_core::{EventRef, Seq};
use rusqlite::{Connection, OptionalExtension, Row};

/// An event's row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawEvent {
    /// Its position.
    pub seq: Seq,
    /// What should be its name.
    pub event_ref: Vec<u8>,
    /// What should be its time, in microseconds.
    pub time: i64,
    /// What should be its type.
    pub event_type: Vec<u8>,
    /// What should be its digest.
    pub digest: Vec<u8>,
    /// What should be its typed columns.
    pub columns: Vec<u8>,
    /// What should be its canonical bytes.
    pub payload: Vec<u8>,
}

/// A fact's row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawFact {
    /// What should be its id.
    pub fact_id: Vec<u8>,
    /// What should be the name of its kind.
    pub kind: String,
    /// What should be its key.
    pub key: String,
    /// What should be its value.
    pub value: String,
    /// How many of its past observations should have been forgotten.
    pub forgotten: i64,
    /// The time of its last supporting event, in microseconds.
    pub last_us: i64,
    /// The name of that event.
    pub last_ref: Vec<u8>,
}

/// A pass's row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawPass {
    /// Where its record should stand.
    pub seq: Seq,
    /// The first seq of its range.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
    /// How far the tallies reached after it.
    pub tallied: Seq,
    /// The rules.
    pub rule_version: String,
    /// Their hash.
    pub rule_set: Vec<u8>,
}

/// Two columns of bytes.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Tables whose rows belong to a log, with what tells which.
const OF_A_LOG: [(&str, &str); 13] = [
    ("event", "at >> 40"),
    ("chunk", "at >> 40"),
    ("run", "at >> 40"),
    ("piece", "number >> 40"),
    ("pass", "at >> 40"),
    ("fact", "log"),
    ("tally", "log"),
    ("tree", "at >> 40"),
    ("tree_head", "log"),
    ("producer", "log"),
    ("policy", "log"),
    ("statement", "number >> 40"),
    ("token", "log"),
];

impl Snapshot<'_> {
    /// What SQLite itself finds wrong with the file.
    pub fn file_damage(&self) -> Result<Vec<String>, Error> {
        let connection = self.view().connection;
        let lines = texts(connection, "PRAGMA integrity_check(20)")?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Tables, indexes, views and guards that are missing, changed or not ours, compared with the
    /// schema that the file says it has.
    pub fn schema_damage(&self) -> Result<Vec<(String, &'static str)>, Error> {
        let attempt = Error::while_trying("compare the schema");
        let fresh = Connection::open_in_memory().map_err(&attempt)?;
        let taken: i64 = self
            .view()
            .connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(&attempt)?;
        let steps = STEPS.iter().take(usize::try_from(taken).unwrap_or(0));
        steps.into_iter().try_for_each(|step| fresh.execute_batch(step)).map_err(&attempt)?;
        let sql = "SELECT type || ' ' || name || char(10) || coalesce(sql, '') \
                   FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1";
        let (ours, theirs) = (texts(&fresh, sql)?, texts(self.view().connection, sql)?);
        let name = |text: &String| text.lines().next().unwrap_or_default().to_string();
        let has = |all: &[String], one: &String| all.iter().any(|other| name(other) == name(one));
        let lost = ours.iter().filter(|one| !theirs.contains(one));
        let lost =
            lost.map(|one| (name(one), if has(&theirs, one) { "changed" } else { "missing" }));
        let more = theirs.iter().filter(|one| !has(&ours, one)).map(|one| (name(one), "not ours"));
        Ok(lost.chain(more).collect())
    }

    /// Whether what was forgotten may still be in the file or its write-ahead log.
    pub fn erase_pending(&self) -> Result<bool, Error> {
        Ok(!pending(self.view().connection)?.is_empty())
    }

    /// Rows that belong to no registered identity: a table, and how many.
    pub fn rows_of_nobody(&self) -> Result<Vec<(&'static str, u64)>, Error> {
        let mut found = Vec::new();
        for (table, log) in OF_A_LOG {
            let sql = format!(
                "SELECT count(*) FROM {table} WHERE {log} NOT IN (SELECT log FROM manifest)"
            );
            let count: i64 = self
                .view()
                .connection
                .query_row(&sql, [], |row| row.get(0))
                .map_err(Error::while_trying("look for rows of nobody"))?;
            if count != 0 {
                found.push((table, count.unsigned_abs()));
            }
        }
        Ok(found)
    }
}

fn texts(connection: &Connection, sql: &str) -> Result<Vec<String>, Error> {
    let read = || {
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
    };
    read().map_err(Error::while_trying("look at the file as a whole"))
}

fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(row.get_ref(column)?.as_bytes_or_null().ok().flatten().unwrap_or_default().to_vec())
}

impl View<'_> {
    fn bounds(&self) -> (i64, i64) {
        (self.log.at(Seq(0)), self.log.at(Seq(MAX_SEQ)))
    }

    fn each_row<E: From<Error>>(
        &self,
        sql: &str,
        bounds: (i64, i64),
        mut each: impl FnMut(&Row<'_>) -> Result<Result<(), E>, rusqlite::Error>,
    ) -> Result<(), E> {
        let attempt = Error::while_trying("read the store row by row");
        let mut statement = self.connection.prepare_cached(sql).map_err(&attempt)?;
        let mut rows = statement.query(bounds).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            each(row).map_err(&attempt)??;
        }
        Ok(())
    }

    /// Hands over every row of the log, in order.
    pub fn each_raw_event<E: From<Error>>(
        &self,
        mut each: impl FnMut(RawEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = "SELECT at, event_ref, time_us, type, digest, columns, payload FROM event \
                   WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
        self.each_row(sql, self.bounds(), |row| {
            Ok(each(RawEvent {
                seq: seq_of(row.get(0)?),
                event_ref: bytes(row, 1)?,
                time: row.get(2)?,
                event_type: bytes(row, 3)?,
                digest: bytes(row, 4)?,
                columns: bytes(row, 5)?,
                payload: bytes(row, 6)?,
            }))
        })
    }

    /// Every fact row, in no particular order.
    pub fn raw_facts(&self) -> Result<Vec<RawFact>, Error> {
        let sql = "SELECT fact_id, fact_kind, fact_key, value, last_us, last_ref, forgotten \
                   FROM fact WHERE log BETWEEN ?1 AND ?2";
        let mut all = Vec::new();
        let text = |row: &Row<'_>, column| -> rusqlite::Result<String> {
            Ok(String::from_utf8_lossy(&bytes(row, column)?).into_owned())
        };
        self.each_row(sql, (self.log.0, self.log.0), |row| {
            all.push(RawFact {
                fact_id: bytes(row, 0)?,
                kind: text(row, 1)?,
                key: text(row, 2)?,
                value: text(row, 3)?,
                last_us: row.get(4)?,
                last_ref: bytes(row, 5)?,
                forgotten: row.get(6)?,
            });
            Ok(Ok::<_, Error>(()))
        })?;
        Ok(all)
    }

    /// Every tally row: fact id and state.
    pub fn raw_tallies(&self) -> Result<Vec<Pair>, Error> {
        let sql = "SELECT fact_id, state FROM tally WHERE log BETWEEN ?1 AND ?2";
        let mut all = Vec::new();
        self.each_row(sql, (self.log.0, self.log.0), |row| {
            all.push((bytes(row, 0)?, bytes(row, 1)?));
            Ok(Ok::<_, Error>(()))
        })?;
        Ok(all)
    }

    /// Every pass row, oldest first.
    pub fn raw_passes(&self) -> Result<Vec<RawPass>, Error> {
        let sql = "SELECT at, first_seq, last_seq, tallied, rule_version, rule_set_sha256 \
                   FROM pass WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
        let mut all = Vec::new();
        self.each_row(sql, self.bounds(), |row| {
            all.push(raw_pass(row)?);
            Ok(Ok::<_, Error>(()))
        })?;
        Ok(all)
    }

    /// The pass that folded the event at a position: the first whose record stands after it.
    pub fn pass_over(&self, seq: Seq) -> Result<Option<RawPass>, Error> {
        self.connection
            .prepare_cached(
                "SELECT at, first_seq, last_seq, tallied, rule_version, rule_set_sha256 \
                 FROM pass WHERE at > ?1 AND at <= ?2 ORDER BY at LIMIT 1",
            )
            .and_then(|mut statement| {
                statement.query_row((self.log.at(seq), self.bounds().1), raw_pass).optional()
            })
            .map_err(Error::while_trying("find the pass over an event"))
    }

    /// The last pass whose record stands at or before a position.
    pub fn pass_before(&self, seq: Seq) -> Result<Option<RawPass>, Error> {
        self.connection
            .prepare_cached(
                "SELECT at, first_seq, last_seq, tallied, rule_version, rule_set_sha256 \
                 FROM pass WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT 1",
            )
            .and_then(|mut statement| {
                statement.query_row((self.bounds().0, self.log.at(seq)), raw_pass).optional()
            })
            .map_err(Error::while_trying("find the pass before an event"))
    }

    /// Where chunks end, ascending.
    pub fn chunk_ends(&self) -> Result<Vec<Seq>, Error> {
        let mut all = Vec::new();
        let sql = "SELECT at FROM chunk WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
        self.each_row(sql, self.bounds(), |row| {
            all.push(seq_of(row.get(0)?));
            Ok(Ok::<_, Error>(()))
        })?;
        Ok(all)
    }

    /// Body and refs of the chunk that ends at a position.
    pub fn raw_chunk(&self, last: Seq) -> Result<Option<Pair>, Error> {
        self.connection
            .prepare_cached("SELECT body, refs FROM chunk WHERE at = ?1")
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| Ok((bytes(row, 0)?, bytes(row, 1)?));
                statement.query_row([self.log.at(last)], read).optional()
            })
            .map_err(Error::while_trying("read a chunk"))
    }

    /// What is wrong with the index of refs, given the names of all events in order: a place, and
    /// what it is.
    pub fn index_damage(&self, names: &[EventRef]) -> Result<Vec<(String, String)>, Error> {
        refs::damage(self.connection, self.log, names)
    }

    /// The position of the event of that name.
    pub fn find(&self, event_ref: &EventRef) -> Result<Option<Seq>, Error> {
        refs::find_stored(self.connection, self.log, self.head()?, event_ref)
    }
}

fn raw_pass(row: &Row<'_>) -> rusqlite::Result<RawPass> {
    let seq = |column| Ok::<_, rusqlite::Error>(Seq(row.get::<_, i64>(column)?.unsigned_abs()));
    Ok(RawPass {
        seq: seq_of(row.get(0)?),
        first: seq(1)?,
        last: seq(2)?,
        tallied: seq(3)?,
        rule_version: row.get(4)?,
        rule_set: bytes(row, 5)?,
    })
}
