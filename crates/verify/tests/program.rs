//! The program as auditors use it: exit codes, messages, JSON.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../bundle/tests/all/forge.rs"]
mod forge;

use assert_cmd::Command;
use forge::{MANIFEST, header, identity_of, producer_event, trusted, week};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A directory with a bundle, keys and tree heads.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Desk(TempDir::new().unwrap());
        desk.put("week.ipse", &week().draft().pack());
        let (ours, theirs) = forge::by_owner(&trusted());
        desk.put("keys", ours.as_bytes());
        desk.put("producers", theirs.as_bytes());
        desk.put("heads", format!("{}\n{}", week().note(21), week().note(64)).as_bytes());
        desk
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the program; returns exit code, standard output and standard error.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut program = Command::cargo_bin("ipse-verify").unwrap();
        let output = program.current_dir(self.0.path()).args(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn a_good_bundle_is_verified() {
    let (code, out, err) =
        Desk::new().run(&["week.ipse", "--trust", "keys", "producers", "--anchors", "heads"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let last = out.lines().last().unwrap();
    assert_eq!(last, format!("verified: {}, 64 entries", identity_of(MANIFEST)));
    let is_known = |line: &&str| ["PASS ", "LIMIT"].iter().any(|word| line.starts_with(word));
    let lines = out.lines().count() - 2;
    assert_eq!(out.lines().filter(is_known).count(), lines, "{out}");
    assert!(out.contains("PASS   anchor 2"), "{out}");
}

#[test]
fn keys_are_given_as_text_as_files_and_often() {
    let desk = Desk::new();
    let (keys, _) = forge::by_owner(&trusted());
    let log = keys.lines().next().unwrap();
    let pem = desk.put("operator.pub", &keys.as_bytes()[log.len()..]);
    let pem = pem.to_str().unwrap();
    assert_eq!(desk.run(&["week.ipse", "--trust", log, pem]).0, 0);
    assert_eq!(desk.run(&["week.ipse", "--trust", log, "--trust", pem]).0, 0);
    assert_eq!(desk.run(&["--trust", log, pem, "--", "week.ipse"]).0, 0);
    let (code, out, _) = desk.run(&["week.ipse", "--trust", log]);
    assert!(code == 1 && out.contains("no operator key is trusted: give the operator's"), "{out}");
    let (code, out, _) = desk.run(&["week.ipse", "--trust", pem]);
    assert!(code == 1 && out.contains("no log key is trusted: give the operator's"), "{out}");
    // A file of producers' keys cannot add a key of the operator or the log.
    let all = desk.put("all", trusted().as_bytes());
    let (code, _, err) = desk.run(&["week.ipse", "--trust", all.to_str().unwrap()]);
    assert!(code == 2 && err.contains("give the keys of each owner"), "{err}");
    for name in ["operator", &format!("ipse/{}", identity_of(MANIFEST))] {
        let evil = forge::signer(name, 99).public().to_string();
        let (code, _, err) = desk.run(&["week.ipse", "--trust", "keys", "--trust", &evil]);
        assert!(code == 2 && err.contains("two texts give different keys named"), "{err}");
    }
}

#[test]
fn failed_checks_are_reported_and_end_with_1() {
    let desk = Desk::new();
    let mut bytes = week().draft().pack();
    let place = bytes.windows(6).position(|six| six == b"slip 1").unwrap();
    bytes[place + 5] = b'2';
    desk.put("bad.ipse", &bytes);
    let (code, out, _) = desk.run(&["bad.ipse", "--trust", "keys"]);
    assert_eq!(code, 1);
    assert!(out.contains("FAIL   events.jsonl, line 1"), "{out}");
    assert_eq!(out.lines().last(), Some("NOT VERIFIED: 1 check failed"));
    let mut fork = week();
    fork.rows[63].entry.digest.0[0] ^= 1;
    desk.put("fork", fork.note(64).as_bytes());
    let (code, out, _) = desk.run(&["week.ipse", "--trust", "keys", "--anchors", "fork"]);
    assert!(code == 1 && out.contains("the log was forked"), "{out}");
}

#[test]
fn without_trust_it_says_how_to_get_a_key() {
    let (code, out, err) = Desk::new().run(&["week.ipse"]);
    assert_eq!((code, out.as_str()), (2, ""));
    for words in ["no key is trusted", "log.vkey", "operator.pub", "by voice", "never trusted"] {
        assert!(err.contains(words), "{words}: {err}");
    }
}

#[test]
fn what_cannot_be_read_ends_with_2_and_a_hint() {
    let desk = Desk::new();
    desk.put("empty", b"");
    desk.put("text", b"this is no key\n");
    desk.put("bytes", &[0xff; 9]);
    for arguments in [
        &["nowhere.ipse", "--trust", "keys"][..],
        &[".", "--trust", "keys"],
        &["week.ipse", "--trust", "nowhere"],
        &["week.ipse", "--trust", "empty"],
        &["week.ipse", "--trust", "text"],
        &["week.ipse", "--trust", "bytes"],
        &["week.ipse", "--trust", "a+b+c"],
        &["week.ipse", "--trust", "keys", "--anchors", "nowhere"],
        &["week.ipse", "--trust", "keys", "--anchors", "empty"],
        &["week.ipse", "--trust", "keys", "--anchors", "text"],
    ] {
        let (code, out, err) = desk.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains("\nhint: "), "{arguments:?}: {err}");
    }
    desk.put("store.db", b"SQLite format 3\0\x10\0");
    let (code, _, err) = desk.run(&["store.db", "--trust", "keys"]);
    assert!(code == 2 && err.contains("is an SQLite database, not a bundle"), "{err}");
    let (code, _, err) = desk.run(&["--trust", "keys", "week.ipse"]);
    assert!(code == 2 && err.contains("FILE.ipse comes first"), "{err}");
    assert_eq!(desk.run(&[]).0, 2);
    assert_eq!(desk.run(&["week.ipse", "--trust", "keys", "--unknown"]).0, 2);
}

#[test]
fn json_is_one_object() {
    let desk = Desk::new();
    desk.put("cut.ipse", &week().draft().pack()[..1024]);
    for (file, verified) in [("week.ipse", true), ("cut.ipse", false)] {
        let (code, out, err) = desk.run(&[file, "--trust", "keys", "--json"]);
        assert_eq!((code, err.as_str()), (i32::from(!verified), ""));
        let json: Value = serde_json::from_str(&out).unwrap();
        let names: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(names, ["findings", "identity_hash", "tree_size", "verified"]);
        assert_eq!(json["verified"], verified);
        let identity = verified.then(|| identity_of(MANIFEST).to_string());
        assert_eq!(json["identity_hash"], Value::from(identity));
        assert_eq!(json["tree_size"], Value::from(verified.then_some(64)));
        for finding in json["findings"].as_array().unwrap() {
            let verdict = finding["verdict"].as_str().unwrap();
            assert!(["pass", "fail", "limit"].contains(&verdict));
            assert!(finding["place"].is_string() && finding["message"].is_string());
        }
    }
}

/// Writes bundles of a log with an intent and its outcome: of all events, and of a part.
fn planned(desk: &Desk) -> [String; 2] {
    let mut log = week();
    let intent = forge::intent(90, forge::intent_data("denied"));
    log.push(&intent);
    let named = format!("{{\"intent\":\"{}\",\"success\":true}}", intent.event_ref);
    let acted = producer_event(91, "robot-7", "execution_result", &named);
    log.push(&acted);
    desk.put("planned.ipse", &log.draft().pack());
    desk.put("range.ipse", &log.draft_of(66, 66, 0).pack());
    [intent.event_ref, acted.event_ref].map(|name| name.to_string())
}

#[test]
fn why_walks_back_from_an_action() {
    let desk = Desk::new();
    let [intent, acted] = planned(&desk);
    let ask = |file: &str, more: &[&str]| {
        let (code, out, err) = desk.run(&[&[file, "--trust", "keys"], more].concat());
        (code, out, err)
    };
    let (code, plain, _) = ask("planned.ipse", &[]);
    assert_eq!(code, 0);
    for name in [&intent, &acted] {
        let (code, out, err) = ask("planned.ipse", &["--why", name]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        let page = out.strip_prefix(&plain).expect("the report comes first");
        assert!(page.starts_with("\nAction\n"), "{page}");
        assert!(page.contains("standing   against_gates"), "{page}");
        let (code, out, _) = ask("planned.ipse", &["--why", name, "--json"]);
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &json["verified"]), (0, &Value::from(true)));
        assert_eq!(json["action"]["event_ref"], name.as_str());
        assert_eq!(json["action"]["intent"]["event_ref"], intent.as_str());
        assert_eq!(json["action"]["proofs"].as_array().unwrap().len(), 2);
    }
    let pass = week().name(21).to_string();
    let stranger = "ev_00000000000000000000000000000000";
    for (name, word) in [(pass.as_str(), "is not an action"), (stranger, "no event")] {
        let (code, out, err) = ask("planned.ipse", &["--why", name]);
        assert_eq!((code, out.as_str()), (1, plain.as_str()));
        assert!(err.contains(word), "{err}");
        let (code, out, _) = ask("planned.ipse", &["--why", name, "--json"]);
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &json["verified"], &json["action"]), (1, &true.into(), &Value::Null));
    }
    let (code, out, err) = ask("range.ipse", &["--why", &acted]);
    assert_eq!(code, 2);
    assert!(out.contains("\nverified: "), "{out}");
    assert!(err.contains("holds seq 66..66 of 66, but seq 65 is needed"), "{err}");
    assert!(err.contains("hint: ask the operator for the whole log"), "{err}");
    assert_eq!(ask("planned.ipse", &["--why", "ev_1"]).0, 2);
    assert_eq!(ask("planned.ipse", &["--evidence", "3"]).0, 2, "it needs --why");
    assert_eq!(ask("planned.ipse", &["--why", &acted, "--evidence", "101"]).0, 2);
    assert_eq!(ask("planned.ipse", &["--page", "2"]).0, 2, "it needs --why");
    assert_eq!(ask("planned.ipse", &["--why", &acted, "--page", "0"]).0, 2);
    let (code, out, _) = ask("planned.ipse", &["--why", &acted, "--page", "2", "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["action"]["facts"]), (0, &Value::Array(Vec::new())));
}

#[test]
fn no_trail_is_shown_of_a_bundle_that_did_not_pass() {
    let desk = Desk::new();
    let [_, acted] = planned(&desk);
    let mut bytes = fs::read(desk.0.path().join("planned.ipse")).unwrap();
    let place = bytes.windows(6).position(|six| six == b"slip 1").unwrap();
    bytes[place + 5] = b'2';
    desk.put("bad.ipse", &bytes);
    let (code, out, _) = desk.run(&["bad.ipse", "--trust", "keys", "--why", &acted]);
    assert_eq!(code, 1);
    assert!(out.contains("NOT VERIFIED") && !out.contains("Action"), "{out}");
    let (code, out, _) = desk.run(&["bad.ipse", "--trust", "keys", "--why", &acted, "--json"]);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["verified"], &json["action"]), (1, &false.into(), &Value::Null));
}

#[test]
fn no_control_character_reaches_the_terminal() {
    let desk = Desk::new();
    desk.put("bad.ipse", &[header("\u{1b}[2J\u{202e}x", 0), vec![0; 1024]].concat());
    for more in [&[][..], &["--json"]] {
        let (code, out, err) = desk.run(&[&["bad.ipse", "--trust", "keys"], more].concat());
        assert_eq!(code, 1);
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!out.contains(bad) && !err.contains(bad), "{out:?}");
    }
}

#[test]
fn help_teaches() {
    let (code, out, _) = Desk::new().run(&["--help"]);
    assert_eq!(code, 0);
    let parts = ["Example: ipse-verify", "never trusted", "Exit 0: verified", "--anchors", "--why"];
    for words in parts {
        assert!(out.contains(words), "{words}: {out}");
    }
}

/// Gate files beside the bundle judge its intents again. A verdict that they do not give is a
/// failure, with its position and gate.
#[test]
fn gate_files_of_the_auditor_judge_intents_again() {
    let desk = Desk::new();
    fs::create_dir(desk.0.path().join("gates")).unwrap();
    let names = ["ecm-registry.toml", "policy.toml", "temperament.toml"];
    let mut manifest = MANIFEST.to_owned();
    for (name, digit) in names.into_iter().zip(["2", "1", "3"]) {
        let path = format!("{}/../../examples/gates/{name}", env!("CARGO_MANIFEST_DIR"));
        let bytes = fs::read(path).unwrap();
        let hash = ipse_core::hex::encode(&ipse_core::sha256(&[&bytes]));
        manifest = manifest.replace(&digit.repeat(64), &hash);
        desk.put(&format!("gates/{name}"), &bytes);
    }
    let mut log = forge::Log::new(&manifest);
    log.push(&forge::intent(1, forge::intent_data("admitted")));
    desk.put("forged.ipse", &log.draft().pack());
    desk.put("keys", forge::trusted_with(&manifest, &[forge::operator()]).as_bytes());
    let (code, out, _) = desk.run(&["forged.ipse", "--trust", "keys"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("no files of the gates: 1 verdict is as recorded"), "{out}");
    let with = ["forged.ipse", "--trust", "keys", "--gates", "gates"];
    let (code, out, _) = desk.run(&with);
    let wanted = "recorded admitted, the files say denied (admission: unknown_skill)";
    assert!(code == 1 && out.contains("intent at seq 1") && out.contains(wanted), "{out}");
    let name = log.name(1).to_string();
    let (code, out, _) = desk.run(&[&with[..], &["--why", &name]].concat());
    assert!(code == 1 && out.contains("judged again: NOT what the files say"), "{out}");
    let (code, out, _) = desk.run(&["forged.ipse", "--trust", "keys", "--why", &name]);
    assert!(code == 0 && out.ends_with("\njudged again: not judged\n"), "{out}");
    fs::remove_file(desk.0.path().join("gates/policy.toml")).unwrap();
    let (code, out, _) = desk.run(&with);
    assert!(code == 0 && out.contains("without gates/policy.toml"), "{out}");
    let (code, _, err) = desk.run(&["forged.ipse", "--trust", "keys", "--gates", "nowhere"]);
    assert!(code == 2 && err.contains("there is no gate file in nowhere"), "{err}");
}
