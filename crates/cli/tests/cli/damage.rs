//! `ipse verify` on damaged stores, one kind of damage per test: it reports the place and no other.
//!
//! The store has a full chunk, small chunks, rows in none, a run of refs, several passes, saved
//! tallies, all four kinds of facts and events that feed none.

use super::store::{Store, attempt};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A store that every test copies.
fn original() -> &'static (TempDir, PathBuf) {
    static MADE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    MADE.get_or_init(|| {
        let store = Store::new();
        let lines =
            |from: usize, to: usize| -> String { (from..to).map(|n| line(n) + "\n").collect() };
        store.import(lines(0, 15)).fine();
        store.import(lines(15, 4300)).fine();
        store.import(lines(4300, 4700)).fine();
        store.import(lines(4700, 4710)).fine();
        store.run(&["tree-head", "--sign"]).fine();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("original.db");
        let db = Connection::open(&store.path).unwrap();
        db.execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
        (directory, path)
    })
}

fn line(n: usize) -> String {
    let time = format!("2026-05-06T{:02}:{:02}:{:02}Z", 10 + n / 3600, n / 60 % 60, n % 60);
    let data = match n % 10 {
        0 => r#"{"zone":"dock","failure_reason":"bump"}"#.to_string(),
        1 => r#"{"target_class":"cup","object":{"mass":180.5,"colour":"red"}}"#.to_string(),
        2 => r#"{"text":"a remark"}"#.to_string(),
        digit => format!(
            "{{\"skill_id\":\"grasp{}\",\"target_class\":\"cup\",\"environment\":\"ward\",\
             \"zone\":\"dock\",\"params\":{{\"force_n\":{}}},\"success\":{},\
             \"failure_reason\":\"slip\"}}",
            n % 7,
            10 + digit,
            digit > 5
        ),
    };
    let kind = ["incident", "note", "note"].get(n % 10).unwrap_or(&"execution_result");
    format!(r#"{{"id":"e{n}","source":"arm","type":"{kind}","time":"{time}","data":{data}}}"#)
}

struct Damaged {
    store: Store,
}

impl Damaged {
    /// A copy of the store, changed with its guards removed; the guards are put back.
    fn by(sql: &str) -> Self {
        Self::copy().then(sql)
    }

    fn then(self, sql: &str) -> Self {
        let db = Connection::open(&self.store.path).unwrap();
        let mut triggers =
            db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
        let triggers: Vec<(String, String)> = triggers
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for (name, _) in &triggers {
            db.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        let before = db.total_changes();
        db.execute_batch(sql).unwrap();
        assert!(db.total_changes() > before, "the damage changed nothing: {sql}");
        for (_, sql) in &triggers {
            db.execute_batch(sql).unwrap();
        }
        self
    }

    /// A copy in which seq 9 and 4650 were forgotten, at seq 4715.
    fn forgotten() -> Self {
        let damaged = Self::copy();
        let db = Connection::open(&damaged.store.path).unwrap();
        let name = |seq: i64| -> String {
            let sql = "SELECT 'ev_' || lower(hex(event_ref)) FROM event WHERE at = (1 << 40) + ?1";
            db.query_row(sql, [seq], |row| row.get(0)).unwrap()
        };
        damaged.store.run(&["forget", &name(9), &name(4650)]).fine();
        damaged.store.run(&["verify"]).fine();
        damaged
    }

    fn copy() -> Self {
        let store = Store::nothing();
        std::fs::copy(&original().1, &store.path).unwrap();
        Damaged { store }
    }

    /// Checks for exactly these findings: severity and beginning of the place, and words of the
    /// message.
    fn finds(&self, expected: &[(&str, &str, &str)]) {
        let ran = self.store.run(&["verify", "--json"]);
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        let report = ran.json();
        let findings = report["findings"].as_array().unwrap();
        let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings.len(), expected.len(), "{}", shown.join("\n"));
        for (severity, place, words) in expected {
            let fits = |finding: &&serde_json::Value| {
                finding["severity"] == *severity
                    && finding["place"].as_str().unwrap().starts_with(place)
                    && finding["message"].as_str().unwrap().contains(words)
            };
            assert!(findings.iter().any(|f| fits(&f)), "{place}: {words}\n{}", shown.join("\n"));
        }
    }
}

macro_rules! damages {
    ($($name:ident: $sql:expr => $findings:expr;)*) => {
        $(#[test]
        fn $name() {
            Damaged::by($sql).finds(&$findings);
        })*
    };
}

/// The row of a position; this store has one log, number 1.
macro_rules! at {
    ($table:literal, $set:literal, $seq:literal) => {
        concat!("UPDATE ", $table, " SET ", $set, " WHERE at = (1 << 40) + ", $seq)
    };
}

damages! {
    a_byte_of_a_payload: at!("event", "payload = replace(payload, 'ward', 'warp')", 8)
        => [("critical", "seq 8", "payload and digest")];
    a_payload_and_its_digest: at!(
        "event",
        "payload = '{}', digest = unhex('44136fa355b3678a1146ad16f7e8649e' ||
         '94fb4fc21fe77e8310c060f61caaff8a')",
        8
    )
        => [("critical", "seq 8", "every event must have it")];
    a_digest: at!("event", "digest = zeroblob(32)", 9)
        => [("critical", "seq 9", "payload and digest")];
    a_time: at!("event", "time_us = time_us + 1", 4650)
        => [("critical", "seq 4650", "time and payload")];
    a_type: at!("event", "type = 'incident'", 4650)
        => [("critical", "seq 4650", "type and payload")];
    a_ref: at!("event", "event_ref = zeroblob(16)", 4712)
        => [("critical", "seq 4712", "event_ref and payload")];
    a_column: at!("event", "columns = (SELECT columns FROM event WHERE at = (1 << 40) + 7)", 9)
        => [("error", "seq 9", "typed columns")];
    swapped_columns:
        "CREATE TEMP TABLE two AS SELECT at, columns FROM event
         WHERE at IN ((1 << 40) + 7, (1 << 40) + 9);
         UPDATE event SET columns =
         (SELECT columns FROM two WHERE two.at = (2 << 40) + 16 - event.at)
         WHERE at IN ((1 << 40) + 7, (1 << 40) + 9)"
        => [("error", "seq 7", "typed columns"), ("error", "seq 9", "typed columns")];
    an_event_missing: "DELETE FROM event WHERE at = (1 << 40) + 4709"
        => [("critical", "seq 4709", "missing from the log")];
    the_first_event_missing: "DELETE FROM event WHERE at = (1 << 40) + 1"
        => [("critical", "seq 1", "missing from the log")];
    the_last_events_missing: "DELETE FROM event WHERE at >= (1 << 40) + 4700"
        => [("critical", "seq 4700..4714", "missing from the log")];
    an_event_twice:
        "INSERT INTO event
         SELECT at + 5, event_ref, time_us, type, digest, columns, payload FROM event
         WHERE at = (1 << 40) + 4710"
        => [("critical", "ev_", "twice")];
    a_chunk_edited: at!("chunk", "body = zeroblob(100)", 4096)
        => [("error", "chunk of seq 1..4096", "differs")];
    one_byte_of_a_chunk:
        at!("chunk", "body = CAST(substr(body, 1, 900) || x'07' || substr(body, 902) AS BLOB)",
            4096)
        => [("error", "chunk of seq 1..4096", "differs")];
    the_refs_of_a_chunk: at!("chunk", "refs = zeroblob(65536)", 4096)
        => [("error", "chunk of seq 1..4096", "differs")];
    a_small_chunk_edited: at!("chunk", "body = zeroblob(10)", 4352)
        => [("error", "chunk of seq 4097..4352", "differs")];
    a_chunk_missing: "DELETE FROM chunk WHERE at = (1 << 40) + 4096"
        => [("error", "chunk of seq 1..4096", "missing")];
    a_chunk_too_many:
        "INSERT INTO chunk SELECT at + 5, body, refs FROM chunk WHERE at = (1 << 40) + 4352"
        => [("error", "chunk that ends at seq 4357", "no chunk ends")];
    a_fact_edited:
        "UPDATE fact SET value = replace(value, '\"n_observations\":', '\"n_observations\":1')
         WHERE fact_kind = 'zone_risk'"
        => [("error", "zone_risk fact `dock`", "another value")];
    a_facts_time: "UPDATE fact SET last_us = last_us - 1000000 WHERE fact_kind = 'zone_risk'"
        => [("error", "zone_risk fact `dock`", "another time")];
    a_facts_last_event: "UPDATE fact SET last_ref = zeroblob(16) WHERE fact_kind = 'zone_risk'"
        => [("error", "zone_risk fact `dock`", "last supporting event")];
    a_facts_id: "UPDATE fact SET fact_id = zeroblob(16) WHERE fact_kind = 'zone_risk'"
        => [("error", "zone_risk fact `dock`", "a wrong id")];
    a_facts_kind: "UPDATE fact SET fact_kind = 'opinion' WHERE fact_kind = 'zone_risk'"
        => [("error", "opinion fact `dock`", "cannot be derived"),
            ("error", "zone_risk fact `dock`", "missing")];
    a_fact_missing: "DELETE FROM fact WHERE fact_kind = 'zone_risk'"
        => [("error", "zone_risk fact `dock`", "missing")];
    a_fact_too_many: "INSERT INTO fact (log, fact_id, fact_kind, fact_key, value, last_us, last_ref)
         SELECT log, zeroblob(16), fact_kind, 'cellar', value, last_us, last_ref FROM fact
         WHERE fact_kind = 'zone_risk'"
        => [("error", "zone_risk fact `cellar`", "cannot be derived")];
    a_tally_edited: "UPDATE tally SET state = zeroblob(3) WHERE number = 1"
        => [("error", "tally of the", "differs")];
    a_tally_missing: "DELETE FROM tally WHERE number = 2"
        => [("error", "tally of the", "missing")];
    a_tally_too_many:
        "INSERT INTO tally (log, fact_id, state) VALUES (1, zeroblob(16), zeroblob(9))"
        => [("error", "tally fa_0000", "no fact")];
    a_pass_missing: "DELETE FROM pass WHERE first_seq = 16"
        => [("error", "pass record at seq 4302", "not listed")];
    a_pass_too_many:
        "INSERT INTO pass
         SELECT at + 3, first_seq, last_seq, tallied, rule_version, rule_set_sha256 FROM pass
         WHERE first_seq = 1"
        => [("error", "pass at seq 19", "has no record")];
    a_passs_range: "UPDATE pass SET first_seq = 18 WHERE first_seq = 16"
        => [("error", "pass at seq 4302", "differs from its record")];
    a_passs_rules: "UPDATE pass SET rule_version = 'v0' WHERE first_seq = 16"
        => [("error", "pass at seq 4302", "differs from its record")];
    the_index_missing: "DELETE FROM run; DELETE FROM piece"
        => [("error", "index of seq 1..4096", "missing")];
    a_run_moved: "UPDATE run SET first_seq = 2"
        => [("error", "index of seq 2..4096", "does not follow the run before it")];
    a_filter: "UPDATE run SET filter = zeroblob(length(filter))"
        => [("error", "index of seq 1..4096", "filter")];
    a_piece_edited:
        "UPDATE piece SET refs = zeroblob(length(refs))
         WHERE number = (SELECT min(number) FROM piece)"
        => [("error", "index of seq 1..4096", "does not match the events")];
    a_piece_missing: "DELETE FROM piece WHERE number = (SELECT max(number) FROM piece)"
        => [("error", "index of seq 1..4096", "does not match the events")];
    a_piece_too_many:
        "INSERT INTO piece SELECT number + 1, refs FROM piece ORDER BY number DESC LIMIT 1"
        => [("error", "index", "no run")];
    a_row_without_an_identity:
        "INSERT INTO pass
         SELECT (9 << 40) + 1, first_seq, last_seq, tallied, rule_version, rule_set_sha256
         FROM pass LIMIT 1"
        => [("error", "table pass", "no registered identity: 1")];
    the_newest_pass_missing: "DELETE FROM pass WHERE at = (SELECT max(at) FROM pass)"
        => [("error", "pass record at seq 4714", "not listed")];
    the_newest_pass_far_ahead: "UPDATE pass SET last_seq = 9223372036854775807
         WHERE at = (SELECT max(at) FROM pass)"
        => [("critical", "seq 4715..9223372036854775808", "missing from the log")];
    a_registered_hash: "UPDATE manifest SET identity_hash =
         'a113b1a485f0f31fc71582f00278878e70a9c23f5af27820ba7d58f5af8d60ff'"
        => [("critical", "manifest", "hashes to")];
    events_in_another_order:
        "CREATE TEMP TABLE two AS SELECT * FROM event
         WHERE at IN ((1 << 40) + 7, (1 << 40) + 9);
         DELETE FROM event WHERE at IN (SELECT at FROM two);
         INSERT INTO event SELECT (2 << 40) + 16 - at, event_ref, time_us, type, digest, columns,
         payload FROM two"
        => [("critical", "chunk of seq 1..4096", "another order"),
            ("error", "index of seq 1..4096", "does not match the events")];
    an_event_before_the_first:
        "INSERT INTO event
         SELECT at - 1, event_ref, time_us, type, digest, columns, payload FROM event
         WHERE at = (1 << 40) + 1"
        => [("critical", "seq 0", "before the first")];
    a_token_without_an_identity:
        "INSERT INTO token (log, token_id, hash, role, created) VALUES (9, x'00', x'00', 'x', 0)"
        => [("error", "table token", "no registered identity: 1")];
    a_token_made_by_hand:
        "INSERT INTO token (log, token_id, hash, role, created)
         VALUES (1, zeroblob(16), zeroblob(32), 'operator', 0)"
        => [("error", "token tk_00000000000000000000000000000000", "do not match"),
            ("error", "token tk_00000000000000000000000000000000", "no act of the log created")];
    a_table_missing: "DELETE FROM tally; DROP TABLE tally"
        => [("error", "schema: table tally", "missing"),
            ("error", "schema: index tally_by_id", "missing")];
    the_manifest: "UPDATE manifest SET canonical = replace(canonical, 'e', 'E')"
        => [("critical", "manifest", "hashes to")];
    a_table_more: "CREATE TABLE more (x); INSERT INTO more VALUES (1)"
        => [("error", "schema: table more", "not ours")];
}

#[test]
fn content_that_is_gone_without_a_word() {
    for seq in [8, 4651, 4712] {
        let sql =
            format!("UPDATE event SET payload = '', columns = x'' WHERE at = (1 << 40) + {seq}");
        let place = format!("seq {seq}");
        Damaged::by(&sql).finds(&[("critical", &place, "no later forget event names it")]);
    }
    // A pass record cannot be forgotten: without content it is damaged.
    let sql = at!("event", "payload = ''", 4302);
    Damaged::by(sql).finds(&[
        ("critical", "seq 4302", "payload and digest"),
        ("critical", "pass record at seq 4302", "cannot be read"),
    ]);
}

#[test]
fn forgetting_that_was_undone_or_rewritten() {
    let sql = at!("event", "payload = '{}', columns = x'00'", 4650);
    Damaged::forgotten().then(sql).finds(&[
        ("critical", "seq 4650", "payload and digest"),
        ("critical", "forget event at seq 4715", "but its content exists"),
    ]);
    let sql = at!("event", "payload = replace(payload, 'event_refs', 'event_reff')", 4715);
    Damaged::forgotten().then(sql).finds(&[
        ("critical", "seq 4715", "payload and digest"),
        ("critical", "forget event at seq 4715", "cannot be read"),
        ("critical", "seq 9", "no later forget event"),
        ("critical", "seq 4650", "no later forget event"),
    ]);
    let sql = "UPDATE fact SET forgotten = 3 WHERE fact_kind = 'zone_risk'";
    Damaged::forgotten().then(sql).finds(&[("error", "zone_risk fact `dock`", "more forgotten")]);
}

/// A copy in which the content of an event was replaced, with a matching digest.
fn rewritten(seq: u64, old: &str, new: &str) -> Damaged {
    let damaged = Damaged::copy();
    let db = Connection::open(&damaged.store.path).unwrap();
    let sql = format!("SELECT payload FROM event WHERE at = (1 << 40) + {seq}");
    let payload: String = db.query_row(&sql, [], |row| row.get(0)).unwrap();
    let untrue = payload.replace(old, new);
    assert_ne!(payload, untrue);
    let digest = ipse_core::sha256(&[untrue.as_bytes()]);
    let sql = "DROP TRIGGER event_is_frozen";
    let guard: String = db
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'event_is_frozen'", [], |r| r.get(0))
        .unwrap();
    db.execute_batch(sql).unwrap();
    let sql = format!("UPDATE event SET payload = ?1, digest = ?2 WHERE at = (1 << 40) + {seq}");
    db.execute(&sql, (untrue, digest)).unwrap();
    db.execute_batch(&guard).unwrap();
    damaged
}

#[test]
fn a_pass_record_that_counts_wrong() {
    let (old, new) = ("\"events_processed\":4285", "\"events_processed\":4284");
    rewritten(4302, old, new).finds(&[
        ("critical", "tree head", "not those that were signed"),
        ("error", "pass record at seq 4302", "its number of events is not"),
    ]);
}

#[test]
fn an_event_whose_writer_may_not_write_its_type() {
    let house = rewritten(9, "\"source\":\"arm\"", "\"source\":\"ipse\"");
    house.finds(&[("critical", "seq 9", "has the source of ipse's own events")]);
    let producers = rewritten(8, "\"type\":\"execution_result\"", "\"type\":\"intent\"");
    producers.finds(&[("critical", "seq 8", "has a type that only ipse may write")]);
}

#[test]
fn a_guard_missing() {
    let damaged = Damaged::copy();
    let db = Connection::open(&damaged.store.path).unwrap();
    db.execute_batch("DROP TRIGGER event_is_kept").unwrap();
    damaged.finds(&[("error", "schema: trigger event_is_kept", "missing")]);
}

#[test]
fn an_index_of_the_file_that_lost_an_entry() {
    let damaged = Damaged::copy();
    let db = Connection::open(&damaged.store.path).unwrap();
    // The rows of the table stay and the index loses an entry, as after a bad block.
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'fact_by_id'";
    let page: u32 = db.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(db);
    let mut bytes = std::fs::read(&damaged.store.path).unwrap();
    let begin = (page as usize - 1) * 4096;
    bytes[begin + 3..begin + 5].copy_from_slice(&[0, 0]);
    std::fs::write(&damaged.store.path, bytes).unwrap();
    let ran = damaged.store.run(&["verify", "--json"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let report = ran.json();
    let first = &report["findings"][0];
    assert_eq!((&first["severity"], &first["place"]), (&"critical".into(), &"file".into()));
}

#[test]
fn a_healthy_store_has_no_finding_and_says_what_feeds_nothing() {
    let healthy = Damaged::copy();
    let report = healthy.store.run(&["verify", "--json"]).fine().json();
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
    assert_eq!(report["events"], 4714);
    let notes: Vec<&str> =
        report["notes"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    let unchecked = "signatures of tree heads were not checked: no key of this log was found";
    assert_eq!(notes, ["note events that feed no fact: 471 no_object", unchecked]);
    let words = healthy.store.run(&["verify"]).fine().out;
    assert!(words.contains("4714 events, ") && words.contains("no findings"), "{words}");
}

#[test]
fn events_past_the_checkpoint_are_a_note() {
    let lagging = Damaged::copy();
    let more = attempt("later", true);
    lagging.store.fed(&["import", "-", "--no-consolidate"], more).fine();
    let words = lagging.store.run(&["verify"]).fine().out;
    assert!(words.contains("note: events past the checkpoint, not folded yet: 1"), "{words}");
}

/// The recipe in docs/guide/operate.md.
#[test]
fn derived_state_that_was_emptied_is_made_again() {
    let damaged = Damaged::copy();
    let want = damaged.store.snapshot();
    let guide =
        std::fs::read_to_string(super::store::root().join("docs/guide/operate.md")).unwrap();
    let recipe = guide.split("sqlite3 ipse.db \"").nth(1).unwrap().split('"').next().unwrap();
    let db = Connection::open(&damaged.store.path).unwrap();
    db.execute_batch(recipe).unwrap();
    drop(db);
    damaged.store.run(&["consolidate"]).fine();
    assert_eq!(damaged.store.snapshot(), want);
    damaged.store.run(&["verify"]).fine();
}

/// A damaged end of the write-ahead log hides what was written there. This is a note, because a
/// write that was never acknowledged looks the same.
#[test]
fn a_write_ahead_log_with_a_damaged_end_is_noted() {
    let store = Store::new();
    // While another process has the store open, its write-ahead log stays.
    let open = Connection::open(&store.path).unwrap();
    open.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0)).unwrap();
    for id in ["1", "2", "3"] {
        store.import(attempt(id, true)).fine();
    }
    store.run(&["record", "--zone", "z", "--failed", "--no-consolidate"]).fine();
    let words = "the write-ahead log is damaged after";
    assert!(!store.run(&["verify"]).fine().out.contains(words));
    let wal = |store: &Store| store.path.with_extension("db-wal");
    let mut bytes = std::fs::read(wal(&store)).unwrap();
    for (damaged, events) in [(false, 7), (true, 6)] {
        if damaged {
            let end = bytes.len() - 1000;
            bytes[end] ^= 1;
        }
        let crashed = Store::nothing();
        std::fs::copy(&store.path, &crashed.path).unwrap();
        std::fs::write(wal(&crashed), &bytes).unwrap();
        let verified = crashed.run(&["verify"]).fine();
        assert_eq!(verified.out.contains(words), damaged, "{}", verified.out);
        assert_eq!(crashed.run(&["log", "--json"]).fine().out.lines().count(), events);
    }
}
