//! `ipse sign`: events under their producer's name, without a store.

use super::store::{CommandResult, Store, attempt, binary, ran, vector};
use ipse_core::sha256;
use ipse_ledger::{NoteKey, SentStatement, dsse};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const WHOM: &str = "b113b1a485f0f31fc71582f00278878e70a9c23f5af27820ba7d58f5af8d60ff";

/// A producer's key, made by OpenSSL, and no store.
struct Producer {
    store: Store,
    key: String,
}

impl Producer {
    fn new() -> Self {
        let store = Store::nothing();
        let key = store.directory.path().join("arm.key").to_str().unwrap().to_string();
        let args = ["genpkey", "-algorithm", "ed25519", "-out", &key];
        ran(assert_cmd::Command::new("openssl").args(args)).fine();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Producer { store, key }
    }

    fn sign(&self, more: &[&str], input: impl Into<Vec<u8>>) -> CommandResult {
        let args = ["sign", "-", "--key", &self.key, "--name", "arm", "--identity", WHOM];
        ran(binary().args(args).args(more).write_stdin(input))
    }

    fn public(&self) -> NoteKey {
        let path = std::path::Path::new(&self.key);
        ipse::keys::read_signer(path, "arm", None).unwrap().public()
    }
}

fn salted(id: &str) -> String {
    let salt = format!("\"salt\":\"{}\",\"source\"", "0a".repeat(16));
    attempt(id, true).replacen("\"source\"", &salt, 1)
}

/// Checks every envelope against the lines before it; returns the number of events of each.
fn opened(text: &str, key: &NoteKey) -> Vec<usize> {
    let trusted = [key.clone()];
    let (mut since, mut covered) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if !line.starts_with("{\"payload\"") {
            since.push(ipse_core::hex::encode(&sha256(&[line.as_bytes()])));
            continue;
        }
        let (statement, _) = dsse::open(line.as_bytes(), SentStatement::TYPE, &trusted).unwrap();
        let sent = SentStatement::read(&statement).unwrap();
        assert_eq!(sent.identity.to_string(), WHOM);
        let digests: Vec<String> =
            sent.events.iter().map(|(_, digest)| digest.to_string()).collect();
        assert_eq!(digests, since, "exactly the events since the envelope before");
        covered.push(since.len());
        since.clear();
    }
    assert!(since.is_empty(), "every event is covered");
    covered
}

#[test]
fn an_envelope_covers_the_events_before_it() {
    let producer = Producer::new();
    let events = fs::read(vector("facts/glass_cup.events.jsonl")).unwrap();
    let key = producer.public();
    let whole = producer.sign(&[], events.clone()).ended(0, &["signed 15 events in 1 envelope"]);
    assert_eq!(opened(&whole.out, &key), [15]);
    let parts = producer.sign(&["--batch", "6"], events.clone()).fine();
    assert_eq!(opened(&parts.out, &key), [6, 6, 3]);
    let even = producer.sign(&["--batch", "5"], events).fine();
    assert_eq!(opened(&even.out, &key), [5, 5, 5], "no empty envelope at the end");
    let nothing = producer.sign(&[], "\n").ended(0, &["the input holds no event"]);
    assert_eq!(nothing.out, "");
}

#[test]
fn events_with_a_salt_give_equal_bytes() {
    let producer = Producer::new();
    let events = salted("1") + &salted("2");
    let first = producer.sign(&[], events.clone()).fine().out;
    assert_eq!(producer.sign(&[], events).fine().out, first);
    let lines: Vec<&str> = first.lines().filter(|line| !line.contains("payload")).collect();
    let again = producer.sign(&[], lines.join("\n")).fine().out;
    assert_eq!(again, first, "canonical lines stay what they are");
    let fresh = |id| producer.sign(&[], attempt(id, true)).fine().out;
    assert_ne!(fresh("1"), fresh("1"), "a salt is made where there is none");
}

#[test]
fn rejected_lines_are_reported_and_not_signed() {
    let producer = Producer::new();
    let input = format!("{}not json\n{}{{}}\n", attempt("1", true), attempt("2", false));
    let ran = producer.sign(&[], input.clone()).ended(1, &["line 2:", "line 4:", "2 refused"]);
    assert_eq!(opened(&ran.out, &producer.public()), [2]);
    let out = producer.store.directory.path().join("signed.jsonl");
    let out = out.to_str().unwrap();
    let ran = producer.sign(&["-o", out, "--json"], input).ended(1, &[]);
    let members = ["envelopes", "refusals", "refusals_omitted", "refused", "signed"];
    assert_eq!(ran.members(), members);
    assert_eq!(ran.json()["refusals"][0]["line"], 2);
    assert_eq!(opened(&fs::read_to_string(out).unwrap(), &producer.public()), [2]);
}

#[test]
fn a_file_may_be_signed_in_place() {
    let producer = Producer::new();
    let file = producer.store.write("week.jsonl", attempt("1", true));
    let args = ["sign", &file, "--key", &producer.key, "--name", "arm", "--identity", WHOM];
    ran(binary().args(args).args(["-o", &file])).fine();
    assert_eq!(opened(&fs::read_to_string(&file).unwrap(), &producer.public()), [1]);
    let bad = format!("{}not json\n", attempt("1", true));
    producer.store.write("week.jsonl", bad.clone());
    ran(binary().args(args).args(["-o", &file])).ended(2, &["was not replaced", "1 line refused"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), bad, "no line is lost");
    producer.store.write("week.jsonl", attempt("1", true));
    let bad = ["-o", "/nowhere/signed.jsonl"];
    ran(binary().args(args).args(bad)).ended(2, &["could not write /nowhere/signed.jsonl"]);
    ran(binary().args(args).args(["-o", "/dev/full"])).ended(2, &["could not write the events"]);
    let directory = producer.store.directory.path().to_str().unwrap();
    ran(binary().args(args).args(["-o", directory])).ended(2, &["could not write"]);
}

#[test]
fn a_prefix_is_looked_up_in_a_store() {
    let producer = Producer::new();
    let store = Store::new();
    let args = ["sign", "-", "--key", &producer.key, "--name", "arm"];
    let whom = |more: &[&str]| store.fed(&[&args[..], more].concat(), salted("1"));
    let first = whom(&[]).fine().out;
    assert_eq!(opened(&first, &producer.public()), [1]);
    assert_eq!(whom(&["--identity", "B113B1"]).fine().out, first);
    whom(&["--identity", "ffffffff"]).ended(2, &["no identity here begins with"]);
    producer.store.run(&args).ended(2, &["all 64 digits of --identity", "no store at"]);
}

#[test]
fn bad_inputs_are_reported() {
    let producer = Producer::new();
    let store = &producer.store;
    let file = store.write("week.jsonl", attempt("1", true));
    let sign = |file: &str, key: &str, name: &str| {
        ran(binary().args(["sign", file, "--key", key, "--name", name, "--identity", WHOM]))
    };
    let directory = store.directory.path().to_str().unwrap();
    sign("/nowhere", &producer.key, "arm").ended(2, &["could not open /nowhere"]);
    sign(directory, &producer.key, "arm").ended(2, &["is a directory"]);
    sign(&file, "/nowhere.key", "arm").ended(2, &["no key at /nowhere.key", "ipse key new"]);
    sign(&file, directory, "arm").ended(2, &["not an ordinary file"]);
    sign(&file, "/dev/zero", "arm").ended(2, &["not an ordinary file"]);
    let large = store.write("large.key", vec![b'-'; 1 << 20]);
    fs::set_permissions(&large, fs::Permissions::from_mode(0o600)).unwrap();
    sign(&file, &large, "arm").ended(2, &["16384 bytes"]);
    for name in ["operator", "", "a b", "a+b"] {
        sign(&file, &producer.key, name).ended(2, &["is not a valid producer name"]);
    }
    for batch in ["0", "4097", "x"] {
        producer.sign(&["--batch", batch], "").ended(2, &["--batch"]);
    }
    fs::set_permissions(&producer.key, fs::Permissions::from_mode(0o604)).unwrap();
    sign(&file, &producer.key, "arm").ended(2, &["other users can read", "chmod 600"]);
}
