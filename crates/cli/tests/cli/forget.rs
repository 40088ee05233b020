//! `forget`, `prune` and `config`: output, remaining data, and kills.

use super::store::{Store, attempt, ran, vector};
use rusqlite::Connection;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The refs of all events, in the order of the log.
fn refs(store: &Store) -> Vec<String> {
    let log = store.run(&["log", "--json"]).fine();
    let name = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["event_ref"].as_str().unwrap().to_string()
    };
    log.out.lines().map(name).collect()
}

/// Files next to the store that contain one of the words, with the word.
fn found(directory: &Path, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("ipse.db") {
            continue;
        }
        // In another process: closing a file here would drop SQLite's locks on it.
        let bytes = Command::new("cat").arg(&path).output().unwrap().stdout;
        // A word is searched where its mark is.
        let marks = (0..bytes.len().saturating_sub(3)).filter(|at| bytes[*at..].starts_with(b"zq"));
        let here: std::collections::BTreeSet<&[u8]> =
            marks.map(|at| &bytes[at..(at + 8).min(bytes.len())]).collect();
        found.extend(
            words
                .iter()
                .filter(|word| here.contains(word.as_bytes()))
                .map(|word| format!("{word} in {name}")),
        );
    }
    found
}

/// Eight letters that occur nowhere else.
fn canary(number: usize) -> String {
    format!("zq{number:06}")
}

#[test]
fn the_answers_and_their_exit_codes() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let names = refs(&store);
    let ran = store.run(&["forget", &names[0], &names[3], "--json"]).fine();
    assert_eq!(ran.members(), ["already", "erase_pending", "forgotten", "pass"]);
    let json = ran.json();
    assert_eq!((&json["forgotten"], &json["pass"]["rows_touched"]), (&2.into(), &2.into()));
    assert_eq!(json["erase_pending"], false);
    // Already forgotten, once more, and together with a new one.
    let again = store.run(&["forget", &names[0], "--json"]).fine().json();
    assert_eq!((&again["forgotten"], &again["already"]), (&0.into(), &1.into()));
    assert!(again["pass"].is_null());
    store.run(&["forget", &names[0], &names[1]]).ended(0, &["already forgotten"]);
    // An unknown ref, or text that is no ref, changes nothing.
    let before = store.run(&["log", "--json"]).fine().out;
    let unknown = "ev_00000000000000000000000000000000";
    store.run(&["forget", &names[4], unknown]).ended(1, &[unknown, "nothing was changed"]);
    for bad in ["ev_12", "x", "", "ev_0000000000000000000000000000000g", "fa_00", "\u{1b}[2J"] {
        let ran = store.run(&["forget", &names[4], bad]);
        let ran = ran.ended(1, &["is not an event ref", "nothing was changed", "hint"]);
        assert!(!ran.err.contains('\u{1b}'));
    }
    let pass = &names[15];
    store.run(&["forget", pass]).ended(1, &["consolidation_run", "never forgotten"]);
    assert_eq!(store.run(&["log", "--json"]).fine().out, before);
    store.run(&["forget"]).ended(2, &["EVENT_REF", "--from-file"]);
    let refused = store.run(&["forget", unknown, "--json"]).ended(1, &["no event"]).json();
    assert_eq!(refused["refused"]["reason"], "unknown");
    assert_eq!(refused["forgotten"], 0);
    let refused = store.run(&["forget", "x", "--json"]).ended(1, &[]).json();
    assert_eq!(refused["refused"]["reason"], "not_a_ref");
    let ran = store.run(&["log"]).fine();
    assert_eq!(ran.out.matches("(forgotten)").count(), 3);
    assert_eq!(before.matches("\"event\":null").count(), 3);
    let identity = store.run(&["identity"]).fine();
    assert!(identity.out.contains("12 events, 3 passes, 3 forgotten"), "{}", identity.out);
    let identity = store.run(&["identity", "--json"]).fine().json();
    assert_eq!((&identity["events"], &identity["forgotten"]), (&12.into(), &3.into()));
    let verified = store.run(&["verify"]).fine();
    assert!(verified.out.contains("note: events forgotten: 3"), "{}", verified.out);
}

/// Runs a command on a terminal with a typed answer.
pub(crate) fn on_a_terminal(
    store: &Store,
    args: &str,
    answer: &str,
) -> super::store::CommandResult {
    let (binary, path) = (env!("CARGO_BIN_EXE_ipse"), store.path.display());
    let line = format!("{binary} --store {path} {args}");
    let mut script = assert_cmd::Command::new("script");
    ran(script.args(["-qec", &line, "/dev/null"]).write_stdin(answer))
}

#[test]
fn on_a_terminal_it_asks_first() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let name = &refs(&store)[0];
    let question = "This will permanently forget 1 event, change 2 facts and remove 0. Continue?";
    for answer in ["n\n", "\n", "", "what\n"] {
        let ran = on_a_terminal(&store, &format!("forget {name}"), answer);
        assert_eq!(ran.code, 1, "{}", ran.out);
        assert!(ran.out.contains(question) && ran.out.contains("nothing was changed"));
        assert_eq!(refs(&store).len(), 16);
    }
    let unknown = "forget ev_00000000000000000000000000000000";
    let ran = on_a_terminal(&store, unknown, "y\n");
    assert_eq!(ran.code, 1);
    assert!(!ran.out.contains("[y/N]"), "what cannot be is not asked: {}", ran.out);
    let ran = on_a_terminal(&store, &format!("forget {name}"), "y\n");
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert_eq!(refs(&store).len(), 18);
    let ran = on_a_terminal(&store, &format!("forget {name}"), "");
    assert!(ran.code == 0 && !ran.out.contains("[y/N]"), "nothing to ask: {}", ran.out);
    assert!(ran.out.contains("already forgotten"), "{}", ran.out);
    assert_eq!(on_a_terminal(&store, "prune --keep 9", "yes\n").code, 0);
    assert_eq!(on_a_terminal(&store, "prune --keep 8 --yes", "").code, 0);
    let ran = on_a_terminal(&store, "prune --keep 7 --dry-run", "");
    assert!(ran.code == 0 && !ran.out.contains("[y/N]"), "{}", ran.out);
    assert_eq!(store.run(&["identity", "--json"]).fine().json()["events"], 8);
}

/// Messages may go to a file: the person at the keyboard is asked all the same. Without a terminal
/// on standard input and standard error no question is asked.
#[test]
fn it_asks_the_person_at_the_keyboard_wherever_messages_go() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let left = || store.run(&["identity", "--json"]).fine().json()["events"].as_u64().unwrap();
    let log = store.directory.path().join("messages.log");
    for (redirect, answer, code, kept) in [
        (format!("2>{}", log.display()), "n\n", 1, 15),
        (format!("2>{0} >>{0}", log.display()), "\n", 1, 15),
        ("2>/dev/null".to_owned(), "y\n", 0, 9),
        ("2>/dev/null </dev/null".to_owned(), "", 0, 8),
    ] {
        let keep = if kept == 8 { 8 } else { 9 };
        let ran = on_a_terminal(&store, &format!("prune --keep {keep} {redirect}"), answer);
        assert_eq!((ran.code, left()), (code, kept), "{redirect} {answer:?}: {}", ran.out);
        assert_eq!(ran.out.contains("[y/N]"), !answer.is_empty(), "{redirect}: {}", ran.out);
    }
    let messages = std::fs::read_to_string(log).unwrap();
    assert!(!messages.contains("[y/N]"), "no person reads a question in a file: {messages}");
}

/// Standard input may be the list of refs: the answer still comes from the terminal.
#[test]
fn it_asks_on_the_terminal_despite_a_pipe() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let (ipse, path) = (env!("CARGO_BIN_EXE_ipse"), store.path.display());
    let line = format!("echo {} | {ipse} --store {path} forget --from-file -", refs(&store)[0]);
    for (answer, left) in [("n\n", 15), ("y\n", 14)] {
        let mut script = assert_cmd::Command::new("script");
        let asked = ran(script.args(["-qec", &line, "/dev/null"]).write_stdin(answer));
        assert!(asked.out.contains("[y/N]"), "{}", asked.out);
        assert_eq!(store.run(&["identity", "--json"]).fine().json()["events"], left);
    }
}

/// More events arrive between the question and the answer: only the confirmed ones are forgotten.
#[test]
fn the_answer_is_about_what_was_asked() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let lines: String = (0..20).map(|n| attempt(&n.to_string(), true)).collect();
    let later = store.write("later.jsonl", lines);
    let ipse = format!("{} --store {}", env!("CARGO_BIN_EXE_ipse"), store.path.display());
    // The answer takes as long as an import.
    let answer = format!("(sleep 1; {ipse} import {later} >{later}.out 2>&1; echo y)");
    let line = format!("{answer} | script -qec '{ipse} prune --keep 10' /dev/null");
    let asked = ran(assert_cmd::Command::new("sh").args(["-c", &line]));
    let number = |before: &str| asked.out.split(before).nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(number("This will permanently forget "), number("forgot "), "{}", asked.out);
    let left = store.run(&["identity", "--json"]).fine().json();
    assert_eq!(left["events"].as_u64().unwrap() + left["forgotten"].as_u64().unwrap(), 35);
}

#[test]
fn refs_come_from_a_file_too() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let names = refs(&store);
    let file = store.write("refs.txt", format!("{}\n\n  {}  \r\n{}", names[0], names[1], names[2]));
    let bad = store.write("bad.txt", format!("{}\nev_x\n", names[3]));
    store.run(&["forget", "--from-file", &bad]).ended(1, &["line 2", "ev_x"]);
    let ran = store.run(&["forget", &names[3], "--from-file", &file, "--json"]).fine();
    assert_eq!(ran.json()["forgotten"], 4);
    let ran = store.fed(&["forget", "--from-file", "-", "--json"], names[4].as_bytes()).fine();
    assert_eq!(ran.json()["forgotten"], 1);
    store.fed(&["forget", "--from-file", "-"], "\n").ended(0, &["no event ref"]);
    let ran = store.fed(&["forget", "--from-file", "-", "--json"], "").fine();
    assert_eq!(ran.json()["forgotten"], 0);
    let marked = format!("\u{feff}{}\n", names[5]);
    let ran = store.fed(&["forget", "--from-file", "-", "--json"], marked).fine();
    assert_eq!(ran.json()["forgotten"], 1);
    for bad in [&b"\xff\xfe\n"[..], &[b'x'; 100_000], &[b' '; 100_000], &[0; 70_000]] {
        let ran = store.fed(&["forget", "--from-file", "-"], bad);
        let ran = ran.ended(1, &["line 1", "is not an event ref", "nothing was changed"]);
        assert!(ran.err.len() < 1000, "{}", ran.err);
    }
    store.run(&["forget", "--from-file", "nowhere.txt"]).ended(2, &["nowhere.txt"]);
}

#[test]
fn a_forgotten_event_is_refused_and_explained() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let names = refs(&store);
    store.run(&["forget", &names[0]]).fine();
    let file = vector("facts/glass_cup.events.jsonl");
    let ran = store.run(&["import", file.to_str().unwrap(), "--json"]);
    let json = ran.ended(1, &["was forgotten"]).json();
    assert_eq!((&json["duplicates"], &json["refused"]), (&14.into(), &1.into()));
    assert_eq!(json["refusals"][0]["rule"], "forgotten");
    assert_eq!(json["refusals"][0]["field"], "id");
    let record = ["record", "--source", "robot-7", "--id", "0", "--skill", "s", "--success"];
    store.run(&record).ended(1, &["[forgotten]", "nothing was stored"]);
    let ran = store.run(&["explain", &names[0]]).fine();
    assert!(ran.out.contains("forgotten at seq 17"), "{}", ran.out);
    let json = store.run(&["explain", &names[0], "--json"]).fine().json();
    assert!(json["event"]["event"].is_null());
    assert_eq!(json["forgotten"]["seq"], 17);
    assert_eq!(json["facts"].as_array().unwrap().len(), 0);
    let key = "manipulation.grasp + glass_cup + sim_relaxed";
    let json = store.run(&["explain", key, "--json"]).fine().json();
    assert_eq!((&json["forgotten"], &json["evidence_total"]), (&1.into(), &14.into()));
    let ran = store.run(&["explain", key]).fine();
    assert!(ran.out.contains("Forgotten since: 1 past observation"), "{}", ran.out);
    // The facts at the time of the action, from the events that still exist.
    let as_of = store.run(&["facts", "--as-of", "15", "--json"]).fine().json();
    assert_eq!(as_of["facts"][0]["n_observations"], 14);
}

#[test]
fn pruning_shows_first_and_then_does() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let before = store.snapshot();
    let ran = store.run(&["prune", "--keep", "10", "--dry-run", "--json"]).fine().json();
    assert_eq!(ran["would_forget"], 5);
    assert_eq!(ran["gone"][0]["fact_kind"], "interaction_pattern");
    assert_eq!(ran["changed"][0]["fact_kind"], "skill_success_rate");
    let ran = store
        .run(&["prune", "--keep", "10", "--dry-run"])
        .ended(0, &["would forget 5 events, change 1 fact and remove 1"]);
    assert!(ran.out.contains("- interaction_pattern") && ran.out.contains("n_observations"));
    assert_eq!(store.snapshot(), before);
    assert_eq!(store.run(&["prune", "--keep", "10", "--json"]).fine().json()["forgotten"], 5);
    let cut = ["prune", "--before", "2026-04-24T12:06:40Z", "--json"];
    assert_eq!(store.run(&cut).fine().json()["forgotten"], 4);
    assert_eq!(store.run(&cut).fine().json()["forgotten"], 0);
    assert_eq!(store.run(&["prune", "--before", "2026-04-24"]).fine().out, "nothing to forget\n");
    assert_eq!(store.run(&["prune", "--before", "2026-04-25"]).fine().code, 0);
    assert_eq!(store.snapshot(), "");
    store.run(&["verify"]).fine();
    for bad in [
        &["prune"][..],
        &["prune", "--keep", "1", "--before", "2026-04-24"],
        &["prune", "--keep", "-1"],
        &["prune", "--keep", "x"],
        &["prune", "--before", "yesterday"],
        &["prune", "--before", "2026-02-30"],
        &["prune", "--retention"],
    ] {
        store.run(bad).ended(2, &["error"]);
    }
}

/// Canaries that an event has room for, and the shared one: the skill's.
const WORDS: usize = 16;
const SHARED: usize = 2;

/// An event with a canary in every place that can hold text.
fn marked(number: usize) -> String {
    let word = |part: usize| canary(number * WORDS + part);
    // Long texts use overflow pages.
    let long = format!("{} ", word(9)).repeat(if number.is_multiple_of(7) { 2500 } else { 3 });
    let outcome = if number.is_multiple_of(3) { "failed" } else { "success" };
    format!(
        "{{\"id\":\"{}\",\"source\":\"{}\",\"type\":\"execution_result\",\
         \"time\":\"2026-05-06T10:{:02}:{:02}Z\",\"note\":\"{long}\",\"data\":{{\
         \"skill_id\":\"{}\",\"target_class\":\"{}\",\"environment\":\"{}\",\"zone\":\"{}\",\
         \"failure_reason\":\"{}\",\"params\":{{\"{}\":{number}.5,\"force_n\":{}}},\
         \"object\":{{\"{}\":\"{}\",\"mass\":{number}}},\"outcome\":\"{outcome}\",\
         \"text\":\"{} {}\"}}}}\n",
        word(0),
        word(1),
        number / 60 % 60,
        number % 60,
        word(2),
        word(3),
        word(4),
        word(5),
        word(6),
        word(7),
        number % 40,
        word(8),
        word(10),
        word(11),
        "x".repeat(number * 37 % 900),
    )
}

/// An event that shares facts with it and stays.
fn neighbour(number: usize) -> String {
    let skill = if number.is_multiple_of(5) {
        canary(number / 5 * WORDS + SHARED)
    } else {
        format!("s{number}")
    };
    attempt(&format!("n{number}"), number.is_multiple_of(3))
        .replace("\"grasp\"", &format!("\"{skill}\""))
        .replace("\"ward\"", &format!("\"w{}\"", "y".repeat(number * 11 % 300)))
}

const MARKED: usize = 1000;

/// A store with marked events among others; with two identities their logs grow in parallel.
fn aviary(identities: usize) -> Store {
    let store = Store::new();
    let other = store.write("other.json", OTHER);
    if identities == 2 {
        store.run(&["init", "--manifest", &other]).fine();
    }
    // Many imports and passes, so that pages split, facts grow and chunks merge.
    for part in 0..10 {
        let numbers = part * MARKED / 10..(part + 1) * MARKED / 10;
        let lines: String = numbers
            .map(|n| marked(n) + &(0..4).map(|k| neighbour(n * 4 + k)).collect::<String>())
            .collect();
        let file = store.write("part.jsonl", lines);
        for identity in &[FIRST, SECOND][..identities] {
            store.run(&["--identity", identity, "import", &file]).fine();
        }
    }
    if identities == 2 {
        store.run(&["--identity", SECOND, "prune", "--keep", "0"]).fine();
    }
    store
}

/// The refs of the marked events, each with its number.
fn marked_events(store: &Store) -> Vec<(String, usize)> {
    let log = store.run(&["--identity", FIRST, "log", "--json"]).fine().out;
    let marked = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = event["event"]["id"].as_str()?.strip_prefix("zq")?;
        let name = event["event_ref"].as_str()?.to_string();
        Some((name, word.parse::<usize>().ok()? / WORDS))
    };
    log.lines().filter_map(marked).collect()
}

/// The canaries of an event, without the one that remaining events share.
fn words(number: usize) -> Vec<String> {
    let parts = (0..12).filter(|part| *part != SHARED);
    parts.map(|part| canary(number * WORDS + part)).collect()
}

/// Every third event in small groups, so that data between them moves; then another third at once;
/// then the rest, in small groups.
fn batches() -> Vec<Vec<usize>> {
    let third = |rest: usize| (0..MARKED).filter(move |place| place % 3 == rest);
    let few = |rest| -> Vec<Vec<usize>> {
        third(rest).collect::<Vec<_>>().chunks(48).map(<[usize]>::to_vec).collect()
    };
    [few(1), vec![third(2).collect()], few(0)].concat()
}

#[test]
fn a_thousand_canaries_leave_no_feather() {
    for identities in [1, 2] {
        let store = aviary(identities);
        let run = |args: &[&str]| store.run(&[&["--identity", FIRST], args].concat()).fine();
        let events = marked_events(&store);
        assert_eq!(events.len(), MARKED);
        let all: Vec<String> = (0..MARKED).flat_map(words).collect();
        assert_eq!(found(store.directory.path(), &all).len(), all.len(), "the search finds them");
        // A reader keeps the store open, so that nothing is erased just by the last close.
        let idle = Connection::open(&store.path).unwrap();
        idle.query_row("SELECT count(*) FROM manifest", [], |row| row.get::<_, i64>(0)).unwrap();
        let mut gone = Vec::new();
        for batch in batches() {
            let names: Vec<&str> = batch.iter().map(|place| &*events[*place].0).collect();
            gone.extend(batch.iter().flat_map(|place| words(events[*place].1)));
            let file = store.write("refs.txt", names.join("\n"));
            run(&["forget", "--from-file", &file]);
            assert_eq!(found(store.directory.path(), &gone), [""; 0], "{identities} identities");
        }
        run(&["verify"]);
        run(&["rebuild"]);
        run(&["prune", "--keep", "0"]);
        let rest: Vec<String> = (0..MARKED).map(|n| canary(n * WORDS + SHARED)).collect();
        assert_eq!(found(store.directory.path(), &rest), [""; 0], "{identities} identities");
        run(&["verify"]);
    }
}

/// The file shrinks in the end, however few events are forgotten at a time.
#[test]
fn space_is_given_back() {
    let store = aviary(1);
    let size = || std::fs::metadata(&store.path).unwrap().len();
    let before = size();
    for kept in (0..5000).rev().step_by(500) {
        store.run(&["prune", "--keep", &kept.to_string()]).fine();
        assert!(size() <= before + 500_000, "{} of {before}", size());
    }
    assert!(size() < before / 4, "{} of {before}", size());
    store.run(&["verify"]).fine();
}

/// The bytes between the list of cells and the first cell of every leaf page of some trees.
fn gaps(store: &Store) -> Vec<Vec<u8>> {
    let db = Connection::open(&store.path).unwrap();
    let sql = "SELECT pageno FROM dbstat WHERE pagetype = 'leaf' AND name IN \
               ('event', 'chunk', 'fact', 'fact_by_id', 'tally', 'tally_by_id')";
    let mut pages = db.prepare(sql).unwrap();
    let pages: Vec<usize> = pages
        .query_map([], |row| row.get::<_, u32>(0).map(|page| page as usize))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let bytes = std::fs::read(&store.path).unwrap();
    let gap = |page: &usize| {
        let page = &bytes[(page - 1) * 4096..page * 4096];
        let number = |at: usize| usize::from(page[at]) << 8 | usize::from(page[at + 1]);
        page[8 + 2 * number(3)..number(5)].to_vec()
    };
    pages.iter().map(gap).collect()
}

/// SQLite leaves copies of moved data there; a canary is found only if a copy is complete.
#[test]
fn no_page_keeps_what_has_moved() {
    for identities in [1, 2] {
        let store = aviary(identities);
        let dirty = |store: &Store| gaps(store).iter().flatten().filter(|byte| **byte != 0).count();
        if identities == 2 {
            // After forgetting in the other log, a few appends create such copies again.
            let lines: String = (0..600).map(|n| neighbour(n).replace("\"n", "\"m")).collect();
            let file = store.write("more.jsonl", lines);
            store.run(&["--identity", FIRST, "import", &file]).fine();
            assert!(dirty(&store) > 500, "what this looks for is there: {}", dirty(&store));
        }
        let events = marked_events(&store);
        for places in [7..8, 20..25, 30..90, 100..130, 999..1000] {
            for step in [3, 1] {
                let names = events[places.clone()].iter().step_by(step).map(|(name, _)| &**name);
                let file = store.write("refs.txt", names.collect::<Vec<_>>().join("\n"));
                store.run(&["--identity", FIRST, "forget", "--from-file", &file]).fine();
                assert_eq!(dirty(&store), 0, "{identities} identities, {places:?}");
            }
        }
    }
}

/// The first digits of the golden identity, and of the other one.
pub(crate) const FIRST: &str = "b113b1a4";
pub(crate) const OTHER: &str = "{\"agent_id\":\"b\",\"commissioned_at\":\"2026-05-01T00:00:00Z\",\
    \"ecm_registry_hash\":\"2222222222222222222222222222222222222222222222222222222222222222\",\
    \"embodiment\":\"e\",\"operator\":\"o\",\
    \"policy_hash\":\"1111111111111111111111111111111111111111111111111111111111111111\",\
    \"temperament_hash\":\"3333333333333333333333333333333333333333333333333333333333333333\"}";
pub(crate) const SECOND: &str = "84d08943";

#[test]
fn a_reader_that_stays_makes_it_pending_and_the_next_writer_finishes() {
    let store = Store::new();
    let lines: String = (0..20).map(marked).collect();
    store.import(lines).fine();
    let names = refs(&store);
    let reader = Connection::open(&store.path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM event;").unwrap();
    let rows: i64 = reader.query_row("SELECT count(*) FROM event", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 21);
    let ran = store.run(&["forget", &names[0], "--json"]).ended(1, &["erase pending", "hint"]);
    assert_eq!(ran.json()["erase_pending"], true);
    assert_eq!(ran.json()["forgotten"], 1);
    let words: Vec<String> = (0..12).map(canary).collect();
    assert_ne!(found(store.directory.path(), &words), [""; 0], "the reader still sees them");
    let ran = store.run(&["verify"]).fine();
    assert!(ran.out.contains("may still be in the file"), "{}", ran.out);
    // A command that writes does not wait for the reader, and reports the pending erase.
    let begun = Instant::now();
    let record = ["record", "--skill", "s", "--success"];
    store.run(&record).ended(0, &["forgotten bytes are still in the store"]);
    let manifest = vector("manifest/golden.toml");
    for args in [["init", "--manifest", manifest.to_str().unwrap()], ["config", "retention", "1d"]]
    {
        store.run(&args).ended(0, &["forgotten bytes are still in the store"]);
    }
    assert!(begun.elapsed() < Duration::from_secs(2));
    store.run(&["forget", &names[0], "--json"]).ended(1, &["erase pending"]);
    reader.execute_batch("COMMIT").unwrap();
    // Any command that opens the store for writing finishes it, including this one.
    store.run(&["config", "retention", "2d"]).fine();
    assert_eq!(found(store.directory.path(), &words), [""; 0]);
    assert!(!store.run(&record).fine().err.contains("still in the store"));
    let ran = store.run(&["verify"]).fine();
    assert!(!ran.out.contains("may still be in the file"), "{}", ran.out);
}

const KILLS: u32 = 40;

/// Waits for a different time in each round: spread over the whole run, or from the moment on when
/// the first changed page is in the write-ahead log.
fn wait(kill: u32, took: Duration, store: &Store) {
    if kill.is_multiple_of(2) {
        return std::thread::sleep(took * kill / KILLS);
    }
    let wal = store.path.with_extension("db-wal");
    let begun = Instant::now();
    while !std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) && begun.elapsed() < took {}
    std::thread::sleep(Duration::from_millis(u64::from(kill / 2)));
}

#[test]
fn killed_at_any_moment_it_is_before_or_after() {
    let template = Store::new();
    let lines: String = (0..400).map(marked).chain((0..1500).map(neighbour)).collect();
    template.import(lines).fine();
    let before = template.snapshot();
    let names = refs(&template);
    let file = template.write("refs.txt", names[..400].join("\n"));
    let words: Vec<String> = (0..400).flat_map(words).collect();
    let copy = |to: &Path| assert!(std::fs::copy(&template.path, to).is_ok());
    let start = |store: &Store| {
        Command::new(env!("CARGO_BIN_EXE_ipse"))
            .args(["--store", store.path.to_str().unwrap(), "forget", "--from-file", &file])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let whole = Store::nothing();
    copy(&whole.path);
    let begun = Instant::now();
    assert!(start(&whole).wait().unwrap().success());
    let took = begun.elapsed();
    let after = whole.snapshot();
    assert_ne!(before, after);
    let (mut early, mut late, mut pending) = (0, 0, 0);
    for kill in 0..KILLS {
        let store = Store::nothing();
        copy(&store.path);
        let mut child = start(&store);
        wait(kill, took, &store);
        if kill < KILLS - 1 {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        let verified = store.run(&["verify"]).fine();
        pending += u32::from(verified.out.contains("may still be in the file"));
        let now = store.snapshot();
        assert!(now == before || now == after, "kill {kill}: neither before nor after");
        // The next command that opens the store for writing finishes.
        store.run(&["consolidate"]).fine();
        assert_eq!(store.snapshot(), now);
        store.run(&["verify"]).fine();
        if now == after {
            late += 1;
            assert_eq!(found(store.directory.path(), &words), [""; 0], "kill {kill}");
        } else {
            early += 1;
            assert_eq!(store.run(&["forget", "--from-file", &file]).fine().code, 0);
            assert_eq!(store.snapshot(), after);
        }
    }
    eprintln!("{KILLS} kills: {early} before, {late} after, {pending} with bytes still to erase");
    assert!(early > 0 && late > 0);
}
