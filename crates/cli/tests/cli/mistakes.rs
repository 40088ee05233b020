//! Mistakes of a first hour: each message names what is wrong and what to do. Nothing is stored.
//!
//! A row is a command line, its exit code, and words of standard error that a person needs.

use super::store::{Store, attempt, ran, vector};
use std::os::unix::fs::PermissionsExt;

/// One mistake: arguments (`@NAME` is a file of the table below), exit code, words of the message.
type Mistake = (&'static [&'static str], i32, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    // Wrong words and numbers.
    (&["fact"], 2, &["tip", "'facts'"]),
    (&["facts", "--skil", "x"], 2, &["tip", "'--skill'"]),
    (&["facts", "--kind", "skill"], 2, &["possible values", "skill_success_rate"]),
    (&["facts", "--limit", "0"], 2, &["must be a whole number of at least 1"]),
    (&["facts", "--limit", "ten"], 2, &["must be a whole number of at least 1"]),
    (&["facts", "--as-of", "999"], 2, &["seq 999", "the end of the log", "16"]),
    (
        &["facts", "--as-of", "03.05.2026"],
        2,
        &["a position such as 15", "a time such as", "a date"],
    ),
    (&["facts", "--as-of", "yesterday"], 2, &["a position such as 15", "a time such as", "a date"]),
    (&["facts", "--as-of", "2026-02-30"], 2, &["a position such as 15", "a date such as 2026-"]),
    (&["facts", "--as-of", "1960-01-01"], 2, &["in the years 1970 to 9999"]),
    (&["facts", "--as-of", "9999999999999"], 2, &["a position is at most 1099511627775"]),
    (&["snapshot", "--as-of", "2026-5-3"], 2, &["--as-of", "a date such as 2026-05-03"]),
    (&["diff", "0", "last week"], 2, &["<TO>", "a time such as 2026-05-03T10:00:00Z"]),
    (&["diff", "0", "999"], 2, &["seq 999", "the end of the log", "16"]),
    (&["rules", "facts", "v2", "--as-of", "x"], 2, &["--as-of", "a date such as"]),
    (&["rules", "report", "v2", "--as-of", "x"], 2, &["--as-of", "a date such as"]),
    (&["log", "--since", "15"], 2, &["--since", "RFC 3339", "a date such as 2026-05-03"]),
    (&["log", "--until", "3 May"], 2, &["--until", "a time such as 2026-05-03T10:00:00Z"]),
    (&["log", "--since", "2026-05-04", "--until", "2026-05-03"], 2, &["--since is after --until"]),
    (&["log", "--last", "0"], 2, &["must be a whole number of at least 1"]),
    (&["log", "--last", "3", "--limit", "3"], 2, &["cannot be used with"]),
    (&["log", "--after", "-1"], 2, &["--after", "must be a position"]),
    (&["log", "--skill", "nothing"], 1, &["no event matches"]),
    (&["log", "--after", "999"], 1, &["no event"]),
    (&["facts", "--skill", "nothing"], 1, &["no fact matches", "manipulation.grasp"]),
    (&["facts", "--identity", "ffff"], 2, &["no identity", "ffff", "b113b1a4"]),
    (&["facts", "--identity", "b1"], 2, &["at least 4 digits"]),
    (&["demo"], 2, &["temporary store", "--store"]),
    (&["diff", "5"], 2, &["<TO>", "ipse diff 0 15"]),
    (&["explain", "manipulation.grasp", "+", "glass_cup"], 2, &["quote the key"]),
    (&["record", "--force_n", "25", "--success"], 2, &["--param NAME=VALUE"]),
    (&["record"], 2, &["--success", "--failed", "--outcome"]),
    (&["record", "--skill", "a", "--param", "force_n=hard", "--success"], 2, &["`hard`", "number"]),
    (&["record", "--skill", "a", "--outcome", "failure"], 2, &["tip", "'failed'"]),
    (&["forget", "5"], 1, &["`5`", "event ref"]),
    (&["prune", "--before", "01.05.2026"], 2, &["RFC 3339"]),
    (&["config", "retention", "6months"], 2, &["48h"]),
    (&["token", "create", "--role", "admin"], 2, &["possible values", "planner"]),
    (&["serve", "--dev", "--listen", "0.0.0.0:0"], 2, &["loopback only", "ipse token create"]),
    (&["identity", "remove", "b113"], 2, &["is kept", "16 events", "empty"]),
    (&["identity", "remove", "b1"], 2, &["at least 4 digits"]),
    (&["identity", "remove", "ffff"], 2, &["no identity here begins with ffff"]),
    (&["identity", "remove"], 2, &["<PREFIX>"]),
    (&["explain", "ev_8d"], 1, &["at least 4 of its 32 hex digits"]),
    (&["serve", "--listen", "7601"], 2, &["address and a port"]),
    // Manifests.
    (&["init"], 2, &["--manifest", "ipse manifest new > agent.toml"]),
    (&["init", "--manifest", "@missing.toml"], 2, &["could not read", "ipse manifest new"]),
    (&["init", "--manifest", "@events.jsonl"], 2, &["holds events", "ipse import"]),
    (
        &["init", "--manifest", "@one-field.toml"],
        2,
        &["fields are missing", "operator", "embodiment"],
    ),
    (&["init", "--manifest", "@misspelt.toml"], 2, &["`agentid`", "did you mean `agent_id`"]),
    (&["init", "--manifest", "@bare-date.toml"], 2, &["commissioned_at", "quoted string"]),
    (&["init", "--manifest", "@broken.toml"], 2, &["not valid TOML", "line 1"]),
    (&["init", "--manifest", "@agent.ipse"], 2, &["it is a bundle"]),
    (&["init", "--manifest", "@store.sqlite"], 2, &["an SQLite database"]),
    (&["init", "--manifest", "@directory"], 2, &["not an ordinary file"]),
    // Files that are not JSON Lines.
    (&["import", "@missing.jsonl"], 2, &["could not open", "missing.jsonl"]),
    (&["import", "@directory"], 2, &["is a directory", "no file to import"]),
    (&["import", "@week"], 2, &["is a directory", "week/mo.jsonl", "week/tu.jsonl"]),
    (&["import", "@numeric-id.jsonl", "@missing.jsonl"], 2, &["could not open", "missing.jsonl"]),
    (&["import", "@numeric-id.jsonl", "@table.csv"], 2, &["table.csv is a table such as CSV"]),
    (&["import", "-", "-"], 2, &["given twice"]),
    (&["import", "@empty.jsonl", "--dry-run", "--signed"], 2, &["cannot be used with"]),
    (&["import", "@array.json"], 2, &["one JSON array", "jq -c '.[]'"]),
    (&["import", "@array-pretty.json"], 2, &["one JSON array", "jq -c '.[]'"]),
    (&["import", "@pretty.json"], 2, &["over several lines", "jq -c ."]),
    (&["import", "@spread.json"], 2, &["over several lines", "jq -c ."]),
    (&["import", "@misspelt.toml"], 2, &["TOML", "ipse init --manifest"]),
    (&["import", "@table.csv"], 2, &["a table such as CSV", "one JSON object per line"]),
    (&["import", "@store.sqlite"], 2, &["an SQLite database", "export -o"]),
    (&["import", "@bag.mcap"], 2, &["an MCAP robot bag"]),
    (&["import", "@log.xz"], 2, &["xz -dc"]),
    (&["import", "@log.zst"], 2, &["zstd -dc"]),
    (&["import", "@log.zip"], 2, &["unzip -p"]),
    (&["import", "@utf16.jsonl"], 2, &["UTF-16", "iconv"]),
    (&["import", "@agent.ipse"], 2, &["a bundle", "ipse import-bundle"]),
    (&["import", "@empty.jsonl"], 0, &["no event"]),
    (&["sign", "@array.json", "--key", "k", "--name", "arm"], 2, &[]),
    // Events that are refused.
    (&["import", "@unix-time.jsonl"], 1, &["line 1", "`time`", "2026-05-06T10:00:00Z"]),
    (&["import", "@numeric-id.jsonl"], 1, &["line 1", "`id`", "must be a string"]),
    // Outputs.
    (&["export", "-o", "@misspelt.toml"], 2, &["--force"]),
    (&["export", "-o", "@directory"], 2, &["directory"]),
];

fn files(store: &Store) {
    let events = std::fs::read(vector("facts/glass_cup.events.jsonl")).unwrap();
    let golden = std::fs::read_to_string(vector("manifest/golden.toml")).unwrap();
    let at = "2026-05-06T10:00:00Z";
    for name in ["directory", "week"] {
        std::fs::create_dir(store.directory.path().join(name)).unwrap();
    }
    for (name, bytes) in [
        ("events.jsonl", &events[..]),
        ("one-field.toml", b"agent_id = \"a\"\n"),
        ("misspelt.toml", golden.replace("agent_id", "agentid").as_bytes()),
        ("bare-date.toml", golden.replace("\"2026-05-01T00:00:00Z\"", "2026-05-01").as_bytes()),
        ("broken.toml", b"agent_id\n"),
        ("array.json", b"[{\"id\":\"1\"}]"),
        ("array-pretty.json", b"[\n  {\n    \"id\": \"1\"\n  }\n]\n"),
        ("pretty.json", b"{\n  \"id\": \"1\"\n}\n"),
        ("spread.json", b"{\"id\":\"1\",\n\"type\":\"note\"}\n"),
        ("table.csv", b"id,time,skill\n1,2026-05-06,grasp\n"),
        ("store.sqlite", b"SQLite format 3\0\x10\0"),
        ("bag.mcap", b"\x89MCAP0\r\n\x01"),
        ("log.xz", b"\xfd7zXZ\0\0"),
        ("log.zst", b"\x28\xb5\x2f\xfd\x04"),
        ("log.zip", b"PK\x03\x04\x14"),
        ("utf16.jsonl", b"\xff\xfe{\0\"\0"),
        ("empty.jsonl", b""),
        ("unix-time.jsonl", b"{\"id\":\"1\",\"type\":\"note\",\"time\":1778061600}\n"),
        ("week/mo.jsonl", b""),
        ("week/tu.jsonl", b""),
        (
            "numeric-id.jsonl",
            format!("{{\"id\":7,\"type\":\"note\",\"time\":\"{at}\"}}\n").as_bytes(),
        ),
    ] {
        store.write(name, bytes);
    }
    let bundle = store.directory.path().join("agent.ipse");
    store.run(&["export", "-o", bundle.to_str().unwrap()]).fine();
}

#[test]
fn every_mistake_has_a_message_that_helps() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    files(&store);
    let before = store.snapshot();
    for (args, code, words) in MISTAKES {
        let path = |name: &str| store.directory.path().join(name).to_str().unwrap().to_string();
        let args: Vec<String> = args
            .iter()
            .map(|arg| arg.strip_prefix('@').map_or_else(|| (*arg).to_string(), path))
            .collect();
        let given: Vec<&str> = args.iter().map(String::as_str).collect();
        let result = store.run(&given).ended(*code, words);
        assert!(!result.err.contains("os error") || *code == 2, "{given:?}: {}", result.err);
    }
    assert_eq!(store.snapshot(), before, "a mistake changes nothing");
    let log = store.run(&["log", "--json"]).fine();
    assert_eq!(log.out.matches("\"seq\":").count(), 16, "nothing was stored");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_read() {
    let store = Store::new();
    let lines = [attempt("1", true), attempt("2", true)].concat().replace('\n', "\r\n");
    let marked = [b"\xef\xbb\xbf".to_vec(), lines.into_bytes()].concat();
    assert_eq!(store.import(marked).fine().json()["appended"], 2);
    let golden = std::fs::read_to_string(vector("manifest/golden.toml")).unwrap();
    let marked = format!("\u{feff}{}", golden.replace('\n', "\r\n"));
    let file = store.write("marked.toml", marked);
    let identity = store.run(&["identity", "--manifest", &file]).fine();
    assert!(identity.out.contains("b113b1a4"), "{}", identity.out);
}

#[test]
fn members_that_feed_no_fact_are_named_after_an_import() {
    let store = Store::new();
    let with = |id: &str, data: &str| attempt(id, true).replace("\"success\":true", data);
    let input = [
        with("1", "\"outcome\":\"failure\""),
        with("2", "\"outcome\":\"failure\""),
        with("3", "\"success\":\"true\""),
        attempt("4", true).replace("skill_id", "skill"),
        attempt("5", true),
    ];
    let result = store.import(input.concat());
    let hints = [
        "hint: `data.outcome` is \"failure\", which counts as unknown; did you mean \"failed\"? \
         (2 events: lines 1, 2)",
        "hint: `data.success` is a text and counts nowhere; write it without quotes (1 event: line \
         3)",
        "hint: `data.skill` feeds no fact; did you mean `skill_id`? (1 event: line 4)",
    ];
    let json = result.fine().ended(0, &hints).json();
    assert_eq!(json["unused"].as_array().unwrap().len(), 3);
    assert_eq!(json["unused"][0]["count"], 2);
}

#[test]
fn stores_that_cannot_be_used_are_described() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let directory = store.directory.path().to_str().unwrap().to_string();
    let run = |store: &str, args: &[&str]| {
        ran(super::store::binary().args(["--store", store]).args(args))
    };
    run(&directory, &["facts"]).ended(2, &["is a directory", "--store DIRECTORY/ipse.db"]);
    run("/dev/null", &["facts"]).ended(2, &["not an ipse store"]);
    let text = store.write("notes.txt", "notes\n".repeat(100));
    run(&text, &["facts"]).ended(2, &["not an ipse store", "left untouched"]);
}

/// As another user, because root may read and write everything.
#[test]
fn files_of_another_user_are_named() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let is_root = std::process::Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    let mode = |name: &str, mode: u32| {
        let path = store.directory.path().join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let other = |args: &[&str]| {
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups", env!("CARGO_BIN_EXE_ipse"), "--store"]);
        ran(command.arg(&store.path).args(args))
    };
    mode("", 0o777);
    mode("ipse.db", 0o000);
    other(&["facts"]).ended(2, &["Permission denied", "let this user read"]);
    mode("ipse.db", 0o444);
    other(&["facts"]).fine();
    mode("ipse.db", 0o666);
    let refused = other(&["record", "--skill", "a", "--success"]);
    refused.ended(2, &["ipse.db-shm", "delete it"]);
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ipse"));
    let output =
        command.arg("--store").arg(&store.path).arg("facts").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("could not write the output"), "{message}");
}

#[test]
fn an_interrupted_import_says_how_far_it_came() {
    let store = Store::new();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ipse"))
        .args(["--store", store.path.to_str().unwrap(), "import", "-v", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, attempt("1", true).as_bytes()).unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.starts_with("durable up to line 1"), "{line}");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest).unwrap();
    assert!(rest.contains("lines up to 1 are stored; run the same command again"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let log = store.run(&["log", "--json"]).fine();
    assert_eq!(log.out.matches("\"seq\":").count(), 1);
}

#[test]
fn a_bundle_that_is_not_read_to_its_end_is_no_success() {
    let store = Store::new();
    let lines: String = (0..2000).map(|n| attempt(&n.to_string(), true)).collect();
    store.import(lines).fine();
    let ipse = format!("{} --store {}", env!("CARGO_BIN_EXE_ipse"), store.path.display());
    let line = format!("({ipse} export -o - ; echo \"exit $?\" >&2) | head -c 10 > /dev/null");
    let result = ran(assert_cmd::Command::new("sh").args(["-c", &line]));
    assert!(result.err.contains("the bundle is incomplete"), "{}", result.err);
    assert!(result.err.contains("exit 2"), "{}", result.err);
}
