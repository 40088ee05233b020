//! The events of a log in SQLite.
//!
//! **Invariants:** a session that appends finds events by name in an index in memory, any other
//! session in the stored index. Housekeeping events are found without a scan of the log.

use super::session::Connected;
use super::{at, refs, seq_of, span};
use crate::audit::RawEvent;
use crate::session::{Events, Kind, Log, Order, Pick, Result, Span, Typed};
use crate::{Error, Stored};
use ipse_core::event::PASS_RECORD;
use ipse_core::{Admitted, Digest, EventRef, Seq, Time, is_housekeeping};
use ipse_ledger::Entry;
use rusqlite::types::Value;
use rusqlite::{Params, Row, params_from_iter};

/// The condition of the partial index `event_of_house`. SQLite uses the index only for a query with
/// the same condition.
const OF_HOUSE: &str = " AND (type IN ('forget', 'intent') OR type >= 'ipse.' AND type < 'ipse/')";

/// The newest event that ipse wrote by a time. The index `event_of_recorder` has the same condition
/// and the times, so no row of `event` is read. The clock may have gone back, so the
/// times are not in the order of the positions, and no faster search gives the newest position.
const LAST_RECORDED: &str = "SELECT at, time_us FROM event INDEXED BY event_of_recorder \
                             WHERE at BETWEEN ?1 AND ?2 AND time_us <= ?3 \
                             AND (type IN ('consolidation_run', 'forget', 'intent') \
                             OR type >= 'ipse.' AND type < 'ipse/') ORDER BY at DESC LIMIT 1";

/// Selects the columns of an entry, and whether its event was forgotten. SQLite knows the length of
/// a column without reading it.
macro_rules! select_entries {
    ($rest:literal) => {
        concat!(
            "SELECT at, event_ref, time_us, type, digest, octet_length(columns) = 0 ",
            "FROM event WHERE ",
            $rest
        )
    };
}
const STORED: &str = "SELECT at, event_ref, time_us, type, digest, payload FROM event WHERE \
                      at BETWEEN ?1 AND ?2";
const STORED_PASSES: &str = "SELECT e.at, e.event_ref, e.time_us, e.type, e.digest, e.payload \
                             FROM pass p JOIN event e ON e.at = p.at WHERE p.at BETWEEN ?1 AND ?2";

impl Connected {
    /// The rows of a query, decoded by `read`.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        attempt: &'static str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<Result<T>>,
    ) -> Result<Vec<T>> {
        let attempt = Error::while_trying(attempt);
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(values).map_err(&attempt)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(&attempt)? {
            all.push(read(row).map_err(&attempt)??);
        }
        Ok(all)
    }

    /// One row for each value, in their order; a missing row is an error.
    pub(super) fn each<V, P: Params, T>(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = V>,
        params: impl Fn(V) -> P,
        attempt: &'static str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let attempt = Error::while_trying(attempt);
        let mut statement = self.prepare(sql)?;
        let one = |value| statement.query_row(params(value), &read).map_err(&attempt);
        values.into_iter().map(one).collect()
    }

    /// Runs a statement for each value. Returns the number of rows that each run changed.
    pub(super) fn change<V, P: Params>(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = V>,
        params: impl Fn(V) -> P,
        attempt: &'static str,
    ) -> Result<Vec<usize>> {
        let attempt = Error::while_trying(attempt);
        let mut statement = self.connection.prepare_cached(sql).map_err(&attempt)?;
        let one = |value| statement.execute(params(value)).map_err(&attempt);
        values.into_iter().map(one).collect()
    }

    /// Runs one statement.
    pub(super) fn execute(
        &self,
        sql: &str,
        values: impl Params,
        attempt: &'static str,
    ) -> Result<usize> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(Error::while_trying(attempt))
    }

    /// The only row of a query that always returns one.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        values: impl Params,
        attempt: &'static str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.prepare(sql)?.query_row(values, read).map_err(Error::while_trying(attempt))
    }
}

impl Events for Connected {
    fn head(&self, log: Log) -> Result<Seq> {
        let sql = "SELECT max(at) FROM event WHERE at BETWEEN ?1 AND ?2";
        let bounds = (at(log, Seq(0)), at(log, Seq::MAX));
        let last: Option<i64> =
            self.one(sql, bounds, "find the end of the log", |row| row.get(0))?;
        Ok(last.map_or(Seq(0), seq_of))
    }

    fn find(&self, log: Log, names: &[EventRef]) -> Result<Vec<Option<Seq>>> {
        if !self.indexes() {
            return refs::find_stored(&self.connection, log, self.head(log)?, names);
        }
        let mut refs = self.refs.borrow_mut();
        // This session holds the write lock, so no other session changes the last position.
        if !self.follows.replace(true) {
            refs.follow(&self.connection, log, self.head(log)?)?;
        }
        names.iter().map(|name| refs.find(&self.connection, log, name)).collect()
    }

    fn insert(&self, log: Log, first: Seq, events: &[&Admitted]) -> Result<()> {
        // FAIL, not ABORT: a statement of one row has nothing to undo, so SQLite keeps no copy of
        // the page.
        let sql = "INSERT OR FAIL INTO event \
                   (at, event_ref, time_us, type, digest, columns, payload) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let places = events.iter().zip((first.0..).map(|seq| at(log, Seq(seq))));
        self.change(
            sql,
            places,
            |(event, at)| {
                let (name, time, digest) = (event.event_ref.0, event.time.micros(), event.digest.0);
                (at, name, time, &event.event_type, digest, &event.columns, &event.canonical)
            },
            "append an event",
        )?;
        self.refs.borrow_mut().add(log, first, events);
        Ok(())
    }

    fn empty(&self, log: Log, seqs: &[Seq]) -> Result<u64> {
        let sql = "SELECT octet_length(payload) + octet_length(columns) FROM event WHERE at = ?1";
        let attempt = "forget an event";
        let place = |seq: &Seq| [at(log, *seq)];
        let bytes = self.each(sql, seqs, place, attempt, |row| row.get::<_, i64>(0))?;
        let sql = "UPDATE event SET payload = '', columns = x'' WHERE at = ?1";
        self.change(sql, seqs, place, attempt)?;
        Ok(bytes.iter().map(|bytes| bytes.unsigned_abs()).sum())
    }

    fn names(&self, log: Log, seqs: &[Seq]) -> Result<Vec<EventRef>> {
        let sql = "SELECT event_ref FROM event WHERE at = ?1";
        let place = |seq: &Seq| [at(log, *seq)];
        self.each(sql, seqs, place, "read an event's name", |row| row.get(0).map(EventRef))
    }

    fn typed(&self, log: Log, range: Span, limit: usize) -> Result<Vec<Typed>> {
        let sql = "SELECT at, event_ref, time_us, type, columns FROM event \
                   WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3";
        self.rows(sql, span(log, &range, limit), "read the events", typed)
    }

    fn typed_at(&self, log: Log, seqs: &[Seq]) -> Result<Vec<Typed>> {
        let sql = "SELECT at, event_ref, time_us, type, columns FROM event WHERE at = ?1";
        let rows = self.each(sql, seqs, |seq| [at(log, *seq)], "read the events", typed)?;
        rows.into_iter().collect()
    }

    fn entries(&self, log: Log, range: Span, limit: usize) -> Result<Vec<(Entry, bool)>> {
        let sql = select_entries!("at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3");
        self.rows(sql, span(log, &range, limit), "read the entries of the log", entry)
    }

    fn entries_at(&self, log: Log, seqs: &[Seq]) -> Result<Vec<(Entry, bool)>> {
        let (sql, attempt) = (select_entries!("at = ?1"), "read an entry of the log");
        let entries = self.each(sql, seqs, |seq| [at(log, *seq)], attempt, entry)?;
        entries.into_iter().collect()
    }

    fn stored(&self, log: Log, pick: &Pick<'_>, limit: usize) -> Result<Vec<Stored>> {
        let (sql, texts) = query(pick);
        let (first, last, limit) = span(log, &pick.range, limit);
        let numbers = [first, last, limit].map(Value::from).into_iter();
        let values = numbers.chain(texts.into_iter().map(|text| Value::from(text.to_owned())));
        self.rows(&sql, params_from_iter(values), "read the log", stored)
    }

    fn last_recorded(&self, log: Log, by: Time) -> Result<Option<(Seq, Time)>> {
        let (first, last, _) = span(log, &(Seq(1)..=Seq::MAX), 1);
        let bounds = (first, last, by.micros());
        let found =
            self.rows(LAST_RECORDED, bounds, "find what was recorded by a time", |row| {
                let seq = seq_of(row.get(0)?);
                let time = Time::from_micros(row.get(1)?).ok_or_else(|| no_time(seq));
                Ok(time.map(|time| (seq, time)))
            })?;
        Ok(found.into_iter().next())
    }

    fn contents(&self, log: Log, seqs: &[Seq]) -> Result<Vec<String>> {
        let (sql, place) = ("SELECT payload FROM event WHERE at = ?1", |seq: &Seq| [at(log, *seq)]);
        self.each(sql, seqs, place, "compare an event with the one in the log", |row| row.get(0))
    }

    fn raw_events(&self, log: Log, range: Span, limit: usize) -> Result<Vec<RawEvent>> {
        let sql = "SELECT at, event_ref, time_us, type, digest, columns, payload FROM event \
                   WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3";
        self.rows(sql, span(log, &range, limit), "read the store row by row", |row| {
            Ok(Ok(RawEvent {
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
}

/// The query for a selection, and its text parameters. They follow the bounds and the limit.
fn query<'p>(pick: &Pick<'p>) -> (String, Vec<&'p str>) {
    let mut texts = Vec::new();
    let mut number = |text: &'p str| {
        texts.push(text);
        texts.len() + 3
    };
    let (mut sql, key) = match pick.kind {
        Kind::Any => (STORED.to_owned(), "at"),
        Kind::PassRecord => (STORED_PASSES.to_owned(), "p.at"),
        Kind::Of(name) => {
            let is_indexed = name != PASS_RECORD && is_housekeeping(name);
            let indexed = if is_indexed { OF_HOUSE } else { "" };
            (format!("{STORED}{indexed} AND type = ?{}", number(name)), "at")
        }
    };
    if let Some(text) = pick.holding {
        sql.push_str(&format!(" AND instr(payload, ?{})", number(text)));
    }
    if pick.kept_only {
        sql.push_str(" AND payload <> ''");
    }
    let direction = match pick.order {
        Order::OldestFirst => "",
        Order::NewestFirst => " DESC",
    };
    (format!("{sql} ORDER BY {key}{direction} LIMIT ?3"), texts)
}

fn typed(row: &Row<'_>) -> rusqlite::Result<Result<Typed>> {
    let (seq, time) = (seq_of(row.get(0)?), row.get(2)?);
    let Some(time) = Time::from_micros(time) else { return Ok(Err(no_time(seq))) };
    let (event_ref, event_type) = (EventRef(row.get(1)?), row.get(3)?);
    Ok(Ok(Typed { seq, event_ref, time, event_type, columns: row.get(4)? }))
}

fn no_time(seq: Seq) -> Error {
    Error::Corrupt(format!("the time of seq {seq} cannot be read"))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Result<(Entry, bool)>> {
    let seq = seq_of(row.get(0)?);
    let damaged = |what: &str| Ok(Err(unreadable(what, seq)));
    let Some(time) = Time::from_micros(row.get(2)?) else { return Ok(Err(no_time(seq))) };
    let (Ok(name), Ok(digest)) = (row.get(1), row.get(4)) else { return damaged("entry") };
    let Ok(event_type) = row.get(3) else { return damaged("entry") };
    let (event_ref, digest) = (EventRef(name), Digest(digest));
    Ok(Ok((Entry { seq, event_ref, time, event_type, digest }, row.get(5)?)))
}

fn unreadable(what: &str, seq: Seq) -> Error {
    Error::Corrupt(format!("the {what} of seq {seq} cannot be read"))
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Result<Stored>> {
    let seq = seq_of(row.get(0)?);
    let Some(time) = Time::from_micros(row.get(2)?) else { return Ok(Err(no_time(seq))) };
    let Ok(canonical) = row.get(5) else { return Ok(Err(unreadable("payload", seq))) };
    Ok(Ok(Stored {
        seq,
        event_ref: EventRef(row.get(1)?),
        event_type: row.get(3)?,
        time,
        digest: Digest(row.get(4)?),
        canonical,
    }))
}

/// A column as bytes, whatever its SQL type.
pub(super) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(row.get_ref(column)?.as_bytes_or_null().ok().flatten().unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{STEPS, configure, migrate};
    use rusqlite::Connection;

    /// A log of 20,000 events, with two intents, one `forget` event and one pass record.
    fn store() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        configure(&db).unwrap();
        migrate(&mut db, &STEPS).unwrap();
        db.execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
             INSERT INTO event SELECT (1 << 40) + i, zeroblob(16), 0,
               CASE WHEN i IN (70, 900) THEN 'intent' WHEN i = 800 THEN 'forget'
                    WHEN i = 99 THEN 'consolidation_run' ELSE 'attempt' END,
               zeroblob(32), x'00', 'p' FROM n;
             INSERT INTO pass VALUES ((1 << 40) + 99, 1, 98, 98, 'v1', x'00');",
        )
        .unwrap();
        db
    }

    fn plan(db: &Connection, sql: &str) -> String {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = db.prepare(&explain).unwrap();
        let count = statement.parameter_count();
        let rows = statement
            .query_map(rusqlite::params_from_iter(vec![1; count]), |row| row.get::<_, String>(3));
        rows.unwrap().map(std::result::Result::unwrap).collect::<Vec<_>>().join("\n")
    }

    fn pick(kind: Kind<'_>) -> Pick<'_> {
        Pick::all(Seq(1)..=Seq::MAX).kind(kind)
    }

    #[test]
    fn events_of_ipses_own_are_found_by_the_index_and_in_its_order() {
        let db = store();
        let kept = Pick { kept_only: true, ..pick(Kind::Of("intent")) };
        let holding = Pick { holding: Some("ev_"), ..pick(Kind::Of("forget")) };
        for pick in [pick(Kind::Of("intent")).newest_first(), kept, holding] {
            let (sql, _) = query(&pick);
            let plan = plan(&db, &sql);
            let wanted = "USING INDEX event_of_house (type=? AND rowid>? AND rowid<?)";
            assert!(plan.ends_with(wanted), "{sql}:\n{plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}:\n{plan}");
        }
        let plan = plan(&db, &query(&pick(Kind::PassRecord).newest_first()).0);
        assert!(plan.starts_with("SEARCH p USING INTEGER PRIMARY KEY"), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
    }

    /// Position and time are in the index, and its condition is that of the query.
    #[test]
    fn what_was_recorded_by_a_time_is_found_in_an_index() {
        let wanted = "SEARCH event USING INDEX event_of_recorder (at>? AND at<?)";
        assert_eq!(plan(&store(), LAST_RECORDED), wanted);
    }

    /// Every bound value may change between two runs of a statement.
    #[test]
    fn a_statement_is_not_prepared_again_when_other_values_are_bound() {
        let db = store();
        let (sql, _) = query(&pick(Kind::Any));
        let mut statement = db.prepare(&sql).unwrap();
        for limit in [1_u32, 2, 256] {
            let seen = statement.query_map((0, i64::MAX, limit), |_| Ok(())).unwrap().count();
            assert_eq!(seen, limit as usize);
        }
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }

    #[test]
    fn the_index_holds_what_ipse_writes_about_itself_except_pass_records() {
        let db = store();
        let types = ["intent", "forget", "ipse.confirmation", "ipse.", "ipse/", "ipsf", "attempt"];
        for (seq, event_type) in (20_001..).zip(types) {
            let sql =
                "INSERT INTO event VALUES (?1, zeroblob(16), 0, ?2, zeroblob(32), x'00', 'p')";
            db.execute(sql, ((1_i64 << 40) + seq, event_type)).unwrap();
            let sql = format!("{STORED}{OF_HOUSE} AND type = ?3");
            let bounds = ((1_i64 << 40) + seq, (1_i64 << 40) + seq, event_type);
            let found = db.prepare(&sql).unwrap().exists(bounds).unwrap();
            assert_eq!(found, is_housekeeping(event_type), "{event_type}");
            let at = (1_i64 << 40) + seq;
            let found = db.prepare(LAST_RECORDED).unwrap().exists((at, at, 0)).unwrap();
            assert_eq!(found, is_housekeeping(event_type), "{event_type}");
        }
    }
}
