//! Producers' signatures: who signed, what the signature requirement accepts, and where it is
//! shown.

use super::store::{CommandResult, Store, attempt};
use serde_json::Value;

/// A store with a producer's key, registered unless it is a stranger's.
struct Signed {
    store: Store,
    identity: String,
}

impl Signed {
    fn new() -> Self {
        let store = Store::new();
        store.run(&["key", "new", "producer", "arm", "--any-source"]).fine();
        let json = store.run(&["identity", "--json"]).fine().json();
        let identity = json["identity_hash"].as_str().unwrap().to_string();
        Signed { store, identity }
    }

    /// A signed file of events, 8 per signature.
    fn file(&self, name: &str, producer: &str, identity: &str, events: &str) -> String {
        let input = self.store.write("plain.jsonl", events);
        let keys = self.store.path.with_extension("db.keys").join("producers");
        let key = keys.join(format!("{producer}.key"));
        let out = self.store.directory.path().join(name);
        let (key, out) = (key.to_str().unwrap(), out.to_str().unwrap().to_string());
        let args = ["sign", &input, "--key", key, "--name", producer, "--identity", identity];
        self.store.run(&[&args[..], &["--batch", "8", "-o", &out]].concat()).fine();
        out
    }

    fn import(&self, file: &str) -> CommandResult {
        self.store.run(&["import", file, "--signed", "--json"])
    }

    fn signers(&self) -> Vec<Value> {
        let log = self.store.run(&["log", "--json"]).out;
        let one = |line: &str| serde_json::from_str::<Value>(line).unwrap()["signers"].clone();
        log.lines().map(one).collect()
    }
}

fn attempts(from: usize, to: usize) -> String {
    (from..to).map(|n| attempt(&n.to_string(), n % 3 > 0)).collect()
}

fn counts(ran: &CommandResult) -> [u64; 3] {
    let json = ran.json();
    ["appended", "refused", "signed"].map(|name| json[name].as_u64().unwrap())
}

#[test]
fn who_signed_is_seen_everywhere() {
    let signed = Signed::new();
    let store = &signed.store;
    store.import(attempts(0, 5)).fine();
    let file = signed.file("s.jsonl", "arm", &signed.identity, &attempts(5, 25));
    assert_eq!(counts(&signed.import(&file).fine()), [20, 0, 20]);
    let signers = signed.signers();
    let is_signed = |value: &&Value| **value == serde_json::json!(["arm"]);
    assert_eq!(signers.iter().filter(is_signed).count(), 20);
    assert!(store.run(&["log"]).fine().out.contains("(signed by arm)"));
    let json = store.run(&["explain", "grasp + cup + ward", "--json"]).fine().json();
    assert_eq!((&json["signed"], &json["evidence_total"]), (&20.into(), &25.into()));
    assert_eq!(json["signers"], serde_json::json!(["arm"]));
    let words = store.run(&["explain", "grasp + cup + ward"]).fine().out;
    assert!(words.contains("Signed: 20 of 25, by 1 producer (arm)"), "{words}");
    let log = store.run(&["log", "--json"]).fine().out;
    let event: Value = serde_json::from_str(log.lines().nth(10).unwrap()).unwrap();
    let event = event["event_ref"].as_str().unwrap();
    assert!(store.run(&["explain", event]).fine().out.contains("signed  by arm"));
    // Sending it again changes nothing.
    assert_eq!(counts(&signed.import(&file).fine()), [0, 0, 20]);
    let db = rusqlite::Connection::open(&store.path).unwrap();
    let kept: i64 = db.query_row("SELECT count(*) FROM statement", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 3, "8, 8 and 4 events");
    store.run(&["verify"]).fine();
    // Forgetting erases content, not the signature over its digest.
    store.run(&["forget", event]).fine();
    store.run(&["verify"]).fine();
    let json = store.run(&["explain", "grasp + cup + ward", "--json"]).fine().json();
    assert_eq!((&json["signed"], &json["evidence_total"]), (&19.into(), &24.into()));
}

#[test]
fn the_signature_requirement_decides_what_is_accepted() {
    let signed = Signed::new();
    let store = &signed.store;
    store.run(&["config", "signatures", "maybe"]).ended(2, &["off, record, require"]);
    assert_eq!(store.run(&["config", "signatures"]).fine().out, "signatures  record\n");
    let good = signed.file("good.jsonl", "arm", &signed.identity, &attempts(0, 10));
    let other = signed.file("other.jsonl", "arm", &"ab".repeat(32), &attempts(10, 20));
    store.run(&["config", "signatures", "require"]).fine();
    assert_eq!(counts(&store.import(attempts(30, 33)).ended(1, &["unsigned"])), [0, 3, 0]);
    store.run(&["record", "--zone", "z", "--failed"]).ended(1, &["unsigned", "nothing was stored"]);
    let ran = signed.import(&other).ended(1, &["wrong_signature", "another identity"]);
    assert_eq!(counts(&ran), [0, 12, 0]);
    assert_eq!(store.run(&["log"]).code, 1, "nothing was stored");
    assert_eq!(counts(&signed.import(&good).fine()), [10, 0, 10]);
    assert_eq!(counts(&store.import(attempts(0, 1)).fine()), [0, 0, 0], "a duplicate is no event");
    store.run(&["config", "signatures", "record"]).fine();
    let ran = signed.import(&other).ended(1, &["wrong_signature", "another identity"]);
    assert_eq!(counts(&ran), [10, 2, 0], "stored as unsigned, and reported");
    store.run(&["config", "signatures", "off"]).fine();
    let more = signed.file("more.jsonl", "arm", &signed.identity, &attempts(40, 50));
    assert_eq!(counts(&signed.import(&more).ended(0, &["signatures are ignored"])), [10, 0, 0]);
    store.run(&["verify"]).fine();
}

#[test]
fn only_registered_keys_sign_and_only_until_they_are_revoked() {
    let signed = Signed::new();
    let store = &signed.store;
    store.run(&["config", "signatures", "require"]).fine();
    let before = signed.file("before.jsonl", "arm", &signed.identity, &attempts(0, 8));
    let after = signed.file("after.jsonl", "arm", &signed.identity, &attempts(8, 16));
    signed.import(&before).fine();
    store.run(&["key", "revoke", "arm", "--yes"]).fine();
    let ran = signed.import(&after).ended(1, &["revoked"]);
    assert_eq!(counts(&ran), [0, 9, 0]);
    assert_eq!(counts(&signed.import(&before).fine()), [0, 0, 8], "sending it again is safe");
    store.run(&["verify"]).fine();
    assert_eq!(signed.signers()[0], serde_json::json!(["arm"]), "it stays what it was");
    // A stranger under the same name.
    let stranger = Signed::new();
    let file = stranger.file("stranger.jsonl", "arm", &signed.identity, &attempts(20, 28));
    signed.import(&file).ended(1, &["not signed by a producer that is registered"]);
}

#[test]
fn what_was_signed_and_then_changed_counts_for_nothing() {
    let signed = Signed::new();
    signed.store.run(&["config", "signatures", "require"]).fine();
    let file = signed.file("s.jsonl", "arm", &signed.identity, &attempts(0, 8));
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 9);
    let all = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    let import = |text: String| signed.store.fed(&["import", "-", "--signed", "--json"], text);
    // An envelope counts with all of its events, or not at all.
    let changed = text.replacen("\"target_class\":\"cup\"", "\"target_class\":\"pot\"", 1);
    assert_eq!(
        counts(&import(changed).ended(1, &["line 9", "was not sent with it unchanged"])),
        [0, 9, 0]
    );
    let early = all(&[&[lines[8]], &lines[..8]].concat());
    assert_eq!(counts(&import(early).ended(1, &["line 1:", "unsigned"])), [0, 9, 0]);
    let lost = all(&[&lines[..3], &lines[4..]].concat());
    assert_eq!(counts(&import(lost).ended(1, &["line 8", "not in the log"])), [0, 8, 0]);
    assert_eq!(counts(&import(all(&lines[..1])).ended(1, &["unsigned"])), [0, 1, 0]);
    assert_eq!(counts(&import(text.clone()).fine()), [8, 0, 8]);
    assert_eq!(counts(&import(all(&[lines[8], lines[8]])).fine()), [0, 0, 0]);
    // Without the flag an envelope is no event.
    signed.store.fed(&["import", "-"], text).ended(1, &["line 9", "--signed"]);
    signed.store.run(&["verify"]).fine();
}

#[test]
fn damaged_statements_are_found() {
    for (sql, words) in [
        ("UPDATE statement SET envelope = replace(envelope, 'keyid', 'keyed')", "envelope"),
        ("UPDATE statement SET signer = 'x'", "its signer is not"),
        // Statements are numbered from 1: one at 0 must be found too.
        ("UPDATE statement SET number = number - 1, signer = 'x'", "its signer is not"),
        ("UPDATE statement SET events = x'0107'", "does not name the events"),
        ("UPDATE statement SET events = x'0109'", "does not name the events"),
        ("UPDATE statement SET events = x'01ffffffffffffffff01'", "does not name the events"),
        ("DELETE FROM producer", "not signed by a producer that is registered"),
        (
            "INSERT INTO statement SELECT number + 1, signer, events, envelope FROM statement",
            "is a duplicate of statement 1",
        ),
        ("UPDATE statement SET events = x'0106'", "does not name the events"),
    ] {
        let signed = Signed::new();
        let file = signed.file("s.jsonl", "arm", &signed.identity, &attempts(0, 8));
        signed.import(&file).fine();
        let db = rusqlite::Connection::open(&signed.store.path).unwrap();
        let guard = "SELECT sql FROM sqlite_schema WHERE name = 'statement_is_frozen'";
        let guard: String = db.query_row(guard, [], |row| row.get(0)).unwrap();
        db.execute_batch("DROP TRIGGER statement_is_frozen").unwrap();
        // A correct run is left unchanged: 01 07 means seq 1 to 8.
        let sql =
            if sql.contains("x'0107'") { "UPDATE statement SET events = x'0207'" } else { sql };
        db.execute_batch(sql).unwrap();
        db.execute_batch(&guard).unwrap();
        drop(db);
        let ran = signed.store.run(&["verify"]).ended(1, &[]);
        assert!(ran.out.contains("producer statement") && ran.out.contains(words), "{}", ran.out);
    }
}

/// The report of an auditor who trusts the log, the operator and the producer.
fn exported(store: &Store) -> ipse_bundle::Report {
    let bundle = store.directory.path().join("a.ipse");
    store.run(&["export", "-o", bundle.to_str().unwrap()]).fine();
    let keys = store.path.with_extension("db.keys");
    let mut trust = ipse_bundle::Trust::default();
    for name in ["log.vkey", "operator.pub", "producers/arm.vkey"] {
        trust.add(&std::fs::read_to_string(keys.join(name)).unwrap()).unwrap();
    }
    let bytes = std::fs::read(bundle).unwrap();
    let report = ipse_bundle::verify(&bytes, &trust, &[], &mut |_, _| {}).unwrap();
    assert!(report.passed(), "{}", report.json());
    report
}

#[test]
fn a_statement_in_another_encoding_is_kept_once() {
    let signed = Signed::new();
    let store = &signed.store;
    let file = signed.file("s.jsonl", "arm", &signed.identity, &attempts(0, 8));
    signed.import(&file).fine();
    let text = std::fs::read_to_string(&file).unwrap();
    let again = store.write("again.jsonl", text.replace("{\"payload\"", "{\"a\":1,\"payload\""));
    assert_eq!(counts(&signed.import(&again).fine()), [0, 0, 8]);
    let db = rusqlite::Connection::open(&store.path).unwrap();
    let count = || db.query_row("SELECT count(*) FROM statement", [], |row| row.get::<_, i64>(0));
    assert_eq!(count().unwrap(), 1);
    // Earlier versions stored both. Such a store is valid, and its bundles contain one.
    db.execute_batch(
        "INSERT INTO statement SELECT number + 1, signer, events, \
         replace(envelope, '{\"payload\"', '{\"a\":1,\"payload\"') FROM statement",
    )
    .unwrap();
    assert_eq!(count().unwrap(), 2);
    drop(db);
    let ran = store.run(&["verify"]).fine();
    assert!(ran.out.contains("statement 2 is statement 1 in another encoding"), "{}", ran.out);
    let json = exported(store).json();
    assert!(json.contains("8 events signed by 1 producer"), "{json}");
}

/// An honest log never looks forged: a signature over content that is not in the log is not stored,
/// whatever key made it.
#[test]
fn what_is_sent_again_otherwise_does_not_make_a_bundle_fail() {
    let signed = Signed::new();
    let store = &signed.store;
    store.import(attempts(0, 2)).fine();
    // Signed again: the same events under other salts, and six more.
    let file = signed.file("again.jsonl", "arm", &signed.identity, &attempts(0, 8));
    let ran = signed.import(&file).ended(1, &["line 9", "wrong_signature", "another salt"]);
    assert_eq!(counts(&ran), [6, 1, 0], "stored as unsigned, and reported");
    let first = signed.file("first.jsonl", "arm", &signed.identity, &attempts(20, 28));
    signed.import(&first).fine();
    let again = signed.file("second.jsonl", "arm", &signed.identity, &attempts(24, 32));
    assert_eq!(counts(&signed.import(&again).ended(1, &["another salt"])), [4, 1, 0]);
    store.run(&["verify"]).fine();
    let report = exported(store);
    assert!(report.json().contains("8 events signed by 1 producer"), "{}", report.json());
    assert!(report.json().contains("12 events not signed by a trusted producer"));
}

/// A bundle carries no private keys and tokens: an import lists them.
#[test]
fn an_import_says_what_did_not_travel() {
    let signed = Signed::new();
    let store = &signed.store;
    let file = signed.file("s.jsonl", "arm", &signed.identity, &attempts(0, 8));
    signed.import(&file).fine();
    exported(store);
    store.run(&["config", "signatures", "require"]).fine();
    let keys = store.path.with_extension("db.keys");
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_string();
    let bundle = text(store.directory.path().join("a.ipse"));
    let key = |name: &str| text(keys.join(name));
    let [log, operator, arm] = [key("log.vkey"), key("operator.pub"), key("producers/arm.vkey")];
    let import = ["import-bundle", &bundle, "--json", "--trust", &log, &operator];
    let other = Store::new();
    let words = ["signatures record, retention off, max-ahead 1d", "private keys, access tokens"];
    let ran = other.run(&import).ended(0, &words);
    assert!(ran.err.contains("1 statement of producers that are not among --trust"), "{}", ran.err);
    // The acts register the key. Its statements are kept only if the importer trusts it.
    assert_eq!(ran.json()["keys_left_out"], serde_json::json!([]));
    let other = Store::new();
    let ran = other.run(&[&import[..], &[&arm]].concat()).fine();
    assert!(!ran.err.contains("WARNING") && !ran.err.contains("not among"), "{}", ran.err);
    assert_eq!(ran.json()["statements"], 1);
    other.run(&["verify"]).fine();
    other.run(&["config", "signatures", "require"]).fine();
    other.run(&["record", "--skill", "grasp", "--success"]).ended(1, &["unsigned"]);
    // An import that is rejected changes no setting.
    other.run(&[&import[..], &["--signatures", "off"]].concat()).ended(2, &["not empty"]);
    assert!(other.run(&["config", "signatures"]).fine().out.contains("require"));
}

/// Only ipse writes its own records: producers cannot sign them.
#[test]
fn pass_records_are_not_signed_by_producers() {
    let signed = Signed::new();
    let store = &signed.store;
    let file = signed.file("s.jsonl", "arm", &signed.identity, &attempts(0, 2));
    signed.import(&file).fine();
    let log = store.run(&["log", "--json"]).fine().out;
    let record: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let name = ipse_core::EventRef::parse(record["event_ref"].as_str().unwrap()).unwrap();
    let digest = ipse_core::hex::decode(record["digest"].as_str().unwrap()).unwrap();
    let sent = ipse_ledger::SentStatement {
        identity: ipse_core::Identity::parse(&signed.identity).unwrap(),
        events: vec![(name, ipse_core::Digest(digest))],
    };
    let keys = store.path.with_extension("db.keys").join("producers");
    let signer = ipse::keys::read_signer(&keys.join("arm.key"), "arm", None).unwrap();
    let envelope = ipse_ledger::dsse::sign(&sent.statement(), &signer);
    let ran = store.fed(&["import", "-", "--signed"], format!("{envelope}\n"));
    ran.ended(1, &["which ipse wrote about itself"]);
}

/// As many events as one statement may name, and unsigned ones around it.
#[test]
fn the_largest_batches_are_signed_whole() {
    let signed = Signed::new();
    let store = &signed.store;
    let input = store.write("many.jsonl", attempts(0, 8192));
    let key = store.path.with_extension("db.keys").join("producers").join("arm.key");
    let (key, identity) = (key.to_str().unwrap(), signed.identity.as_str());
    let args = ["sign", &input, "--key", key, "--name", "arm", "--identity", identity];
    let text = store.run(&[&args[..], &["--batch", "4096"]].concat()).fine().out;
    assert_eq!(text.lines().count(), 8194);
    let stray = format!("{}{text}{}", attempts(20_000, 20_003), attempts(30_000, 30_002));
    let ran = store.fed(&["import", "-", "--signed", "--json"], stray).fine();
    assert_eq!(counts(&ran), [8197, 0, 8192]);
    // Too many unsigned events to buffer all before it: those of the envelope must be buffered.
    let plain: String = attempts(40_000, 48_190);
    let more = signed.file("more.jsonl", "arm", identity, &attempts(60_000, 60_008));
    let more = std::fs::read_to_string(more).unwrap();
    let ran = store.fed(&["import", "-", "--signed", "--json"], plain + &more).fine();
    assert_eq!(counts(&ran), [8198, 0, 8]);
    store.run(&["verify"]).fine();
}

/// A signed batch with an event of a source that the key may not use is refused as a whole, also
/// where unsigned events are accepted.
#[test]
fn a_key_signs_only_events_of_its_sources() {
    let signed = Signed::new();
    let store = &signed.store;
    let make = ["key", "new", "producer", "leg", "--source", "leg", "--source", "hip-*"];
    store.run(&make).fine();
    let of = |source: &str, n: usize| {
        attempt(&n.to_string(), true).replace("\"arm\"", &format!("\"{source}\""))
    };
    let good = of("leg", 1) + &of("hip-2", 2);
    let good = signed.file("good.jsonl", "leg", &signed.identity, &good);
    assert_eq!(counts(&signed.import(&good).fine()), [2, 0, 2]);
    let bad = of("leg", 3) + &of("arm", 4);
    let bad = signed.file("bad.jsonl", "leg", &signed.identity, &bad);
    for policy in ["record", "require"] {
        store.run(&["config", "signatures", policy]).fine();
        let ran = signed.import(&bad).ended(1, &["[source_not_allowed]", "source `arm`"]);
        assert_eq!(counts(&ran), [0, 3, 0], "two events and their envelope");
        let rules = ran.json()["refusals"].as_array().unwrap().clone();
        assert!(rules.iter().all(|refusal| refusal["rule"] == "source_not_allowed"), "{rules:?}");
    }
    // Unsigned events have no list.
    store.run(&["config", "signatures", "record"]).fine();
    store.import(of("arm", 4)).fine();
    store.run(&["record", "--skill", "s", "--success", "--source", "anything"]).fine();
    store.run(&["verify"]).fine();
}

/// A bundle has no lists: its signatures are imported whatever a list says, and a key gets the list
/// with which it was registered before, else none.
#[test]
fn a_bundle_is_imported_whatever_the_list_of_a_key_says() {
    let signed = Signed::new();
    let file = signed.file("s.jsonl", "arm", &signed.identity, &attempts(0, 8));
    signed.import(&file).fine();
    exported(&signed.store);
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_string();
    let bundle = text(signed.store.directory.path().join("a.ipse"));
    let keys = signed.store.path.with_extension("db.keys");
    let trusted = ["log.vkey", "operator.pub", "producers/arm.vkey"].map(|it| text(keys.join(it)));
    for list in [None, Some("leg")] {
        let other = Store::new();
        if let Some(source) = list {
            let register = ["key", "new", "producer", "arm", "--source", source, "--public"];
            other.run(&[&register[..], &[&trusted[2]]].concat()).fine();
        }
        let trusted = trusted.each_ref().map(String::as_str);
        other.run(&[&["import-bundle", &bundle, "--trust"], &trusted[..]].concat()).fine();
        other.run(&["verify"]).fine();
        let keys = other.run(&["key", "list", "--json"]).fine().json();
        let arm = keys.as_array().unwrap().iter().find(|key| key["name"] == "arm").unwrap();
        assert_eq!(arm["sources"][0].as_str(), list);
        // Stored signatures stay valid, and new ones need an allowed source.
        let again = other.run(&["import", &file, "--signed", "--json"]).fine();
        assert_eq!(counts(&again), [0, 0, 8]);
        let more = signed.file("more.jsonl", "arm", &signed.identity, &attempts(8, 9));
        let more = other.run(&["import", &more, "--signed", "--json"]);
        assert_eq!(counts(&more), if list.is_none() { [1, 0, 1] } else { [0, 2, 0] });
    }
}

/// The limit holds for what enters, with the clock of this machine, and for nothing that is stored.
#[test]
fn events_that_are_dated_ahead_are_refused_when_they_enter() {
    let store = Store::new();
    let event = attempt("1", true).replace("2026-05-06", "2999-05-06");
    let record = |id: &str| {
        let time = ["--id", id, "--time", "2999-05-06T10:00:00Z"];
        store.run(&[&["record", "--skill", "s", "--success"], &time[..]].concat())
    };
    let words = ["`time`", "too far ahead", "max-ahead", "[time_ahead]"];
    record("1").ended(1, &words);
    assert_eq!(counts(&store.import(event.clone()).ended(1, &words)), [0, 1, 0]);
    assert_eq!(store.run(&["log"]).code, 1, "nothing was stored");
    for bad in ["soon", "0d", "-1d", "1.5d", "1m", "d", "36501d", ""] {
        let words = ["is not a value of max-ahead", "or off"];
        store.run(&["config", "max-ahead", bad]).ended(2, &words);
    }
    for (value, shown) in
        [("36h", "36h"), ("48h", "2d"), ("2w", "14d"), ("1d", "1d"), ("off", "off")]
    {
        let out = store.run(&["config", "max-ahead", value]).fine().out;
        assert_eq!(out, format!("max-ahead   {shown}\n"));
    }
    assert!(store.run(&["config", "max-ahead", "--json"]).fine().out.contains("null"));
    record("1").fine();
    assert_eq!(counts(&store.import(event.clone()).fine()), [1, 0, 0]);
    store.run(&["config", "max-ahead", "1d"]).fine();
    record("1").ended(0, &["duplicate"]);
    record("2").ended(1, &words);
    assert_eq!(counts(&store.import(event).fine()), [0, 0, 0]);
    store.run(&["verify"]).fine();
    // A bundle keeps its events, whatever the clock of the importing machine is.
    let bundle = store.directory.path().join("log.ipse");
    store.run(&["export", "-o", bundle.to_str().unwrap()]).fine();
    let keys = store.path.with_extension("db.keys");
    let keys = ["log.vkey", "operator.pub"].map(|name| keys.join(name));
    let [log, operator] = keys.each_ref().map(|key| key.to_str().unwrap());
    let other = Store::new();
    let import = ["import-bundle", bundle.to_str().unwrap(), "--trust", log, operator];
    other.run(&import).fine();
    assert_eq!(other.snapshot(), store.snapshot());
    other.run(&["verify"]).fine();
}
