//! Bad input: a clear message, the documented exit code, nothing stored, never a panic.

use super::store::{CommandResult, Store, attempt, ran, vector};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// Each bad line between two good ones: the good ones are stored, the bad one is reported.
#[test]
fn bad_lines_are_refused_by_number_field_and_rule() {
    let with = |data: &str| attempt("bad", true).replace("\"success\":true", data);
    let deep = format!("\"x\":{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for (line, field, rule) in [
        (format!("{{\"x\":\"{}\"}}\n", "a".repeat(1_000_000)), "", "too_large"),
        (with(&deep), "data.x", "too_deep"),
        (with("\"success\":true,\"success\":true"), "data.success", "duplicate_key"),
        (with("\"x\":\"\\ud800\""), "data.x", "lone_surrogate"),
        (with("\"params\":{\"f\":1e400}"), "data.params.f", "number_overflow"),
        (with("\"params\":{\"f\":1e17}"), "data.params.f", "unsafe_integer"),
        (with("\"params\":{\"f\":9007199254740993}"), "data.params.f", "unsafe_integer"),
        (with("\"x\":\"\\u0000\""), "data.x", "nul"),
        (with("\"x\":\"a\u{0}b\""), "data.x", "nul"),
        ("{\"id\":\"1\"\n".to_string(), "", "invalid_json"),
        ("{} {}\n".to_string(), "", "trailing_data"),
        ("[]\n".to_string(), "", "not_an_object"),
    ] {
        let store = Store::new();
        let input = [attempt("1", true), line, attempt("2", true)].concat();
        let json = store.import(input).ended(1, &["line 2", rule]).json();
        assert_eq!((&json["appended"], &json["refused"]), (&2.into(), &1.into()), "{rule}");
        let refusal = &json["refusals"][0];
        assert_eq!(refusal["line"], 2);
        assert_eq!(refusal["rule"], rule);
        let got = refusal["field"].as_str().unwrap();
        assert!(got == field || rule == "too_deep" && got.starts_with(field), "{got}");
        assert_eq!(store.run(&["log", "--json"]).out.matches("\"id\":\"bad\"").count(), 0);
    }
}

#[test]
fn names_out_of_events_cannot_write_to_the_terminal() {
    let store = Store::new();
    let name = "\\u001b[31m\\n".to_string() + &"x".repeat(5000);
    let line = format!("{{\"id\":\"1\",\"data\":{{\"{name}\":9007199254740993}}}}\n");
    let ran = store.import(line).ended(1, &["unsafe_integer"]);
    assert!(!ran.err.contains('\u{1b}'));
    assert!(ran.err.len() < 2000 && ran.out.len() < 2000, "shortened");
}

#[test]
fn a_store_that_is_removed_meanwhile_is_no_success() {
    let store = Store::new();
    let lines: String = (0..60_000).map(|n| attempt(&n.to_string(), true)).collect();
    let file = store.write("log.jsonl", lines);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ipse"))
        .args(["--store", store.path.to_str().unwrap(), "import", "-v", &file])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut first).unwrap();
    assert!(first.starts_with("durable"), "{first}");
    std::fs::rename(&store.path, store.directory.path().join("elsewhere.db")).unwrap();
    let rest: Vec<String> = std::io::BufRead::lines(stderr).map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(rest.join("\n").contains("removed, replaced or emptied"), "{rest:?}");
}

#[test]
fn bytes_that_are_not_text() {
    let store = Store::new();
    let input = [attempt("1", true).into_bytes(), b"\xff\xfe\n".to_vec()].concat();
    let json = store.import(input).ended(1, &["line 2"]).json();
    assert_eq!(json["refusals"][0]["rule"], "invalid_utf8");
}

#[test]
fn inputs_that_are_not_files_of_events() {
    let store = Store::new();
    let empty = store.write("empty.jsonl", "");
    store.run(&["import", &empty]).ended(0, &["no event"]);
    let directory = store.directory.path().to_str().unwrap().to_string();
    store.run(&["import", &directory]).ended(2, &["directory"]);
    store.run(&["import", "nowhere.jsonl"]).ended(2, &["nowhere.jsonl"]);
    store.run(&["import"]).ended(2, &["FILE"]);
    let blank = store.write("blank.jsonl", "\n \t\r\n\r\n");
    store.run(&["import", &blank]).ended(0, &["no event"]);
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_read_and_a_broken_tail_keeps_the_good_lines() {
    let lines: String = (0..100).map(|n| attempt(&n.to_string(), true)).collect();
    let whole = gzip(&lines);
    let store = Store::new();
    let file = store.write("events.jsonl.gz", &whole);
    assert_eq!(store.run(&["import", &file, "--json"]).fine().json()["appended"], 100);

    let store = Store::new();
    let file = store.write("events.jsonl.gz", &whole[..whole.len() - 300]);
    let json = store.run(&["import", &file, "--json"]).ended(1, &["truncated"]).json();
    assert!(json["appended"].as_u64().unwrap() > 90);
    assert_eq!(json["refused"], 1);
    store.run(&["rebuild"]).fine();

    let store = Store::new();
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    let file = store.write("events.jsonl.gz", &damaged);
    store.run(&["import", &file]).ended(1, &[]);
}

#[test]
fn windows_line_ends_and_a_missing_last_one() {
    let store = Store::new();
    let text = [attempt("1", true), attempt("2", true)].concat().replace('\n', "\r\n");
    assert_eq!(store.import(text.trim_end()).fine().json()["appended"], 2);
}

#[test]
fn without_a_store_every_command_says_how_to_make_one() {
    let store = Store::nothing();
    let events = vector("facts/glass_cup.events.jsonl");
    for args in [
        vec!["identity"],
        vec!["facts"],
        vec!["snapshot"],
        vec!["log"],
        vec!["passes"],
        vec!["rebuild"],
        vec!["consolidate"],
        vec!["record", "--success"],
        vec!["import", events.to_str().unwrap()],
    ] {
        store.run(&args).ended(2, &["no store at", "init --manifest"]);
        assert!(!store.path.exists(), "only init makes a store");
    }
}

#[test]
fn stores_of_other_programs_are_left_alone() {
    let store = Store::nothing();
    let manifest = vector("manifest/golden.toml");
    let init = ["init", "--manifest", manifest.to_str().unwrap()];
    for bytes in [b"my diary, not a database at all".to_vec(), {
        let other = store.directory.path().join("other.db");
        rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        std::fs::read(other).unwrap()
    }] {
        std::fs::write(&store.path, &bytes).unwrap();
        for args in [&["facts"][..], &["record", "--success"], &init] {
            store.run(args).ended(2, &["not an ipse store"]);
            assert_eq!(std::fs::read(&store.path).unwrap(), bytes);
        }
    }
    let directory = store.directory.path().to_str().unwrap().to_string();
    for place in [directory.as_str(), "/dev/null"] {
        let at = |args: &[&str]| ran(super::store::binary().args(["--store", place]).args(args));
        let words = if place == directory { "is a directory" } else { "not an ipse store" };
        at(&["facts"]).ended(2, &[words]);
        at(&init).ended(2, &[words]);
    }
    ran(super::store::binary().args(["--store", "postgres://x/y", "facts"]))
        .ended(2, &["PostgreSQL"]);
}

#[test]
fn a_store_of_a_newer_ipse_is_refused() {
    let store = Store::new();
    let db = rusqlite::Connection::open(&store.path).unwrap();
    db.pragma_update(None, "user_version", 4711).unwrap();
    drop(db);
    store.run(&["facts"]).ended(2, &["schema 4711", "newer"]);
    store.run(&["consolidate"]).ended(2, &["schema 4711"]);
}

#[test]
fn a_damaged_store_is_an_error_and_not_a_panic() {
    let store = Store::with("facts/mixed_random.events.jsonl");
    rusqlite::Connection::open(&store.path)
        .unwrap()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let good = std::fs::read(&store.path).unwrap();
    for page in 1..good.len() / 4096 {
        let mut bad = good.clone();
        bad[page * 4096..page * 4096 + 64].fill(0xa5);
        std::fs::write(&store.path, &bad).unwrap();
        for args in [&["facts"][..], &["rebuild"], &["log"], &["consolidate"]] {
            let ran = store.run(args);
            assert!((0..=2).contains(&ran.code), "page {page}, {args:?}: {}", ran.err);
            assert!(!ran.err.contains("panicked"), "page {page}, {args:?}: {}", ran.err);
        }
        let _ = std::fs::remove_file(store.path.with_extension("db-wal"));
        let _ = std::fs::remove_file(store.path.with_extension("db-shm"));
    }
}

/// Runs commands on a store that only its owner can write, in a directory that is not writable.
/// Root can write anything, so they run as another user.
pub(crate) fn on_a_read_only(
    store: &Store,
    commands: impl FnOnce(&dyn Fn(&[&str]) -> CommandResult),
) {
    let binary = store.directory.path().join("ipse");
    std::fs::copy(env!("CARGO_BIN_EXE_ipse"), &binary).unwrap();
    let script = format!(
        "cd '{0}' && rm -f ipse.db-shm ipse.db-wal && chmod 555 . ipse && chmod 444 ipse.db",
        store.directory.path().display()
    );
    ran(assert_cmd::Command::new("sh").args(["-c", &script])).fine();
    commands(&|args| {
        let stranger = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(if is_root() { &stranger[..] } else { &[] });
        ran(command.arg(&binary).arg("--store").arg(&store.path).args(args))
    });
    ran(assert_cmd::Command::new("chmod").arg("755").arg(store.directory.path())).fine();
}

#[test]
fn a_read_only_store_can_be_read_and_says_why_it_cannot_be_written() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    on_a_read_only(&store, |as_nobody| {
        assert!(as_nobody(&["facts"]).fine().out.contains("0.83"));
        as_nobody(&["rebuild"]).fine();
        let words = ["read-only", "reading commands work"];
        as_nobody(&["record", "--success"]).ended(2, &words);
        let events = vector("facts/glass_cup.events.jsonl");
        let input = std::fs::read_to_string(events).unwrap();
        let copy = std::env::temp_dir().join(format!("ipse-test-{}.jsonl", std::process::id()));
        std::fs::write(&copy, input).unwrap();
        as_nobody(&["import", copy.to_str().unwrap()]).ended(2, &words);
        std::fs::remove_file(copy).unwrap();
    });
}

/// A directory that cannot be synced is an error: the name of the write-ahead log may be lost in
/// it, and with it acknowledged events. Here it cannot even be opened.
#[test]
fn nothing_is_acknowledged_if_the_directory_cannot_be_synced() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let binary = store.directory.path().join("ipse");
    std::fs::copy(env!("CARGO_BIN_EXE_ipse"), &binary).unwrap();
    let mode = |mode: &str, path: &std::path::Path| {
        ran(assert_cmd::Command::new("chmod").arg(mode).arg(path)).fine();
    };
    mode("666", &store.path);
    mode("755", &binary);
    mode("333", store.directory.path());
    let as_nobody = |args: &[&str]| {
        let stranger = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(if is_root() { &stranger[..] } else { &[] });
        ran(command.arg(&binary).arg("--store").arg(&store.path).args(args))
    };
    let words = ["could not make", "durable"];
    as_nobody(&["record", "--zone", "z", "--failed"]).ended(2, &words);
    as_nobody(&["token", "create", "--role", "planner"]).ended(2, &words);
    mode("755", store.directory.path());
    let log = store.run(&["log", "--json"]).fine().out;
    assert_eq!(log.lines().count(), 16, "nothing was appended");
}

fn is_root() -> bool {
    let id = ran(assert_cmd::Command::new("id").arg("-u")).fine().out;
    id.trim() == "0"
}
