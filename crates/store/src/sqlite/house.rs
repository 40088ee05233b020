//! Finding the events that ipse writes about itself, without a scan of the log.
//!
//! **Invariants:** the cost follows the events that are found, whatever the length of the log; a
//! file of schema 5 has no index and gives the same answers more slowly.

use super::read::{View, stored};
use super::seq_of;
use crate::{Error, Stored};
use ipse_core::event::PASS_RECORD;
use ipse_core::{EventRef, Seq};
use rusqlite::OptionalExtension;
use std::ops::{ControlFlow, RangeInclusive};

/// The condition of the index `event_of_house`. SQLite uses a partial index only for a query that
/// has the same condition.
macro_rules! indexed {
    ($select:literal, $rest:literal) => {
        concat!(
            $select,
            " FROM event WHERE at BETWEEN ?1 AND ?2 \
             AND (type IN ('forget', 'intent') OR type >= 'ipse.' AND type < 'ipse/') ",
            $rest
        )
    };
}

const NEWEST_FIRST: &str = indexed!(
    "SELECT at, event_ref, time_us, type, digest, payload",
    "AND type = ?3 ORDER BY at DESC"
);
const CONTENT: &str = indexed!("SELECT payload", "AND type = ?3 AND payload <> '' ORDER BY at");
const FORGOTTEN_BY: &str =
    indexed!("SELECT at", "AND type = 'forget' AND instr(payload, ?3) ORDER BY at LIMIT 1");
const PASSES: &str = "SELECT e.at, e.event_ref, e.time_us, e.type, e.digest, e.payload \
                      FROM pass p JOIN event e ON e.at = p.at \
                      WHERE p.at BETWEEN ?1 AND ?2 ORDER BY p.at DESC";

impl View<'_> {
    /// Hands the events of a type of ipse's own in a range to `each`, newest first, until it breaks
    /// off. The type is any but `consolidation_run`, for which there is [`View::passes_back`].
    pub fn house_back<E: From<Error>>(
        &self,
        event_type: &str,
        range: RangeInclusive<Seq>,
        each: impl FnMut(Stored) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        debug_assert!(event_type != PASS_RECORD, "BUG: pass records are not indexed");
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()), event_type);
        self.each_whole(NEWEST_FIRST, bounds, each)
    }

    /// Hands the pass records in a range to `each`, newest first, until it breaks off.
    pub fn passes_back<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        each: impl FnMut(Stored) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()));
        self.each_whole(PASSES, bounds, each)
    }

    fn each_whole<E: From<Error>>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        mut each: impl FnMut(Stored) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut statement = self.prepare(sql)?;
        let attempt = Error::while_trying("look for events of ipse's own");
        let mut rows = statement.query(values).map_err(&attempt)?;
        while let Some(row) = rows.next().map_err(&attempt)? {
            if each(stored(row).map_err(&attempt)??)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Hands the canonical bytes of the events of such a type in a range to `each`, in order,
    /// forgotten events left out.
    pub fn house_content<E: From<Error>>(
        &self,
        event_type: &str,
        range: RangeInclusive<Seq>,
        each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let bounds = (self.log.at(*range.start()), self.log.at(*range.end()), event_type);
        self.each_payload(CONTENT, bounds, each)
    }

    /// The position of the event that says that this one is forgotten, if it is there.
    pub fn forgotten_by(&self, entry: &EventRef, seq: Seq) -> Result<Option<Seq>, Error> {
        let last = Seq(super::MAX_SEQ);
        let bounds = (self.log.at(seq.next().min(last)), self.log.at(last), entry.to_string());
        self.prepare(FORGOTTEN_BY)?
            .query_row(bounds, |row| row.get(0).map(seq_of))
            .optional()
            .map_err(Error::while_trying("look for what forgot an event"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{STEPS, migrate};
    use rusqlite::Connection;

    /// A log of 20,000 events, two of which are intents and one of which is a pass.
    fn store(steps: usize) -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &STEPS[..steps]).unwrap();
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
        rows.unwrap().map(Result::unwrap).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn events_of_ipses_own_are_found_by_the_index_and_in_its_order() {
        let db = store(STEPS.len());
        for sql in [NEWEST_FIRST, CONTENT, FORGOTTEN_BY] {
            let plan = plan(&db, sql);
            let wanted = "USING INDEX event_of_house (type=? AND rowid>? AND rowid<?)";
            assert!(plan.ends_with(wanted), "{sql}:\n{plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}:\n{plan}");
        }
        let plan = plan(&db, PASSES);
        assert!(plan.starts_with("SEARCH p USING INTEGER PRIMARY KEY"), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
    }

    #[test]
    fn the_index_holds_what_ipse_writes_about_itself_except_pass_records() {
        let db = store(STEPS.len());
        let types = ["intent", "forget", "ipse.confirmation", "ipse.", "ipse/", "ipsf", "attempt"];
        for (seq, event_type) in (20_001..).zip(types) {
            let sql =
                "INSERT INTO event VALUES (?1, zeroblob(16), 0, ?2, zeroblob(32), x'00', 'p')";
            db.execute(sql, ((1_i64 << 40) + seq, event_type)).unwrap();
            let bounds = ((1_i64 << 40) + seq, (1_i64 << 40) + seq, event_type);
            let found = db.prepare(NEWEST_FIRST).unwrap().exists(bounds).unwrap();
            assert_eq!(found, ipse_core::is_housekeeping(event_type), "{event_type}");
        }
    }

    #[test]
    fn a_file_of_schema_5_gives_the_same_answers() {
        let answers = |steps| {
            let db = store(steps);
            let view = View { connection: &db, log: crate::sqlite::LogId(1) };
            let mut seqs = Vec::new();
            let all = Seq(1)..=Seq(20_000);
            let mut take = |stored: Stored| {
                seqs.push(stored.seq.0);
                Ok::<_, Error>(ControlFlow::Continue(()))
            };
            view.house_back("intent", all.clone(), &mut take).unwrap();
            view.house_back("forget", all.clone(), &mut take).unwrap();
            view.passes_back(all, &mut take).unwrap();
            seqs
        };
        assert_eq!(answers(5), [900, 70, 800, 99]);
        assert_eq!(answers(6), answers(5));
    }
}
