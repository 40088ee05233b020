//! Tree heads compared over time, and witnesses: no log can have two histories that both verify.

use super::store::{CommandResult, Store, attempt, ran};
use assert_cmd::Command;
use ipse_ledger::cosignature::cosigned_text;
use ipse_ledger::tree::is_consistent;
use ipse_ledger::{CosignRequest, Note, NoteKey, SecretKey, TreeHead, WitnessKey, base64};
use std::path::PathBuf;

fn cup() -> Store {
    Store::with("facts/glass_cup.events.jsonl")
}

fn keys(store: &Store) -> PathBuf {
    store.path.with_extension("db.keys")
}

fn identity(store: &Store) -> String {
    store.run(&["identity", "--json"]).fine().json()["identity_hash"].as_str().unwrap().to_owned()
}

/// A copy of the store as it is now, and a function that puts it back in place of a store whose key
/// directory has forgotten what it signed.
struct Copy(PathBuf);

impl Copy {
    fn of(store: &Store) -> Self {
        let path = store.directory.path().join("copy.db");
        let sql = format!("VACUUM INTO '{}'", path.display());
        rusqlite::Connection::open(&store.path).unwrap().execute_batch(&sql).unwrap();
        Copy(path)
    }

    fn put_back(&self, store: &Store) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(store.path.with_extension(format!("db{suffix}")));
        }
        std::fs::copy(&self.0, &store.path).unwrap();
        let _ = std::fs::remove_file(keys(store).join("heads/").join(identity(store) + ".note"));
    }
}

/// A witness of C2SP tlog-witness, without HTTP.
struct Witness {
    key: SecretKey,
    log: NoteKey,
    last: TreeHead,
    clock: u64,
}

impl Witness {
    fn of(store: &Store, seed: u8) -> Self {
        let text = std::fs::read_to_string(keys(store).join("log.vkey")).unwrap();
        let log = NoteKey::parse(text.trim()).unwrap();
        let root = ipse_ledger::tree::empty_root();
        let last = TreeHead { origin: log.name().to_owned(), size: 0, root };
        Witness { key: SecretKey::from_seed(&[seed; 32]), log, last, clock: 1_790_000_000 }
    }

    fn public(&self) -> WitnessKey {
        WitnessKey::new("witness.example/w1", self.key.public()).unwrap()
    }

    /// The answer to a request: a line, or the status of a refusal.
    fn answer(&mut self, body: &str) -> Result<String, u16> {
        let request = CosignRequest::parse(body).ok_or(400_u16)?;
        let note = Note::parse(&request.note).map_err(|_| 400_u16)?;
        note.verify(std::slice::from_ref(&self.log)).map_err(|_| 403_u16)?;
        let head = TreeHead::parse(note.text).ok_or(400_u16)?;
        if request.old != self.last.size {
            return Err(409);
        }
        let (old, new) = ((self.last.size, &self.last.root), (head.size, &head.root));
        if !is_consistent(old, new, &request.proof) {
            return Err(422);
        }
        self.last = head;
        self.clock += 1;
        let signature = self.key.sign(cosigned_text(self.clock, note.text).as_bytes());
        let bytes = [&self.public().id()[..], &self.clock.to_be_bytes(), &signature].concat();
        Ok(format!("\u{2014} {} {}\n", self.public().name(), base64::encode(&bytes)))
    }
}

/// Requests, has the request answered, and adds the answer.
fn cosigned(store: &Store, witness: &mut Witness) -> CommandResult {
    let request = store.run(&["witness", "request"]).fine().out;
    let answer = witness.answer(&request).unwrap();
    let (request, answer) = (store.write("request", request), store.write("answer", answer));
    let key = witness.public().to_string();
    store.run(&["witness", "add", &answer, "--request", &request, "--witness", &key])
}

fn exported(store: &Store, name: &str, more: &[&str]) -> (String, CommandResult) {
    let file = store.directory.path().join(name).to_str().unwrap().to_owned();
    let done = store.run(&[&["export", "-o", &file], more].concat());
    (file, done)
}

/// The tree head in a bundle.
fn head_in(bundle: &str) -> String {
    ran(Command::new("tar").args(["-xOf", bundle, "tree-head.note"])).fine().out
}

#[test]
fn a_log_is_consistent_with_every_tree_head_that_it_signed() {
    let store = cup();
    let empty = Store::new();
    let note = store.run(&["tree-head"]).fine().out;
    let anchor = store.write("anchor.note", &note);
    for n in 0..3 {
        store.import(attempt(&n.to_string(), true)).fine();
        let said = store.run(&["proof", "consistency", &anchor]).fine().out;
        assert_eq!(
            said,
            format!("consistent: the tree head over {} entries continues those 16\n", 18 + 2 * n)
        );
    }
    let piped = store.fed(&["proof", "consistency", "-", "--json"], note.clone()).fine();
    assert_eq!(piped.members(), ["consistent", "from", "hashes", "to", "tree_head"]);
    assert_eq!(piped.json()["from"], 16);
    // What is not a tree head of this log by a known key says nothing about it.
    let other = store.write("other.note", empty.import(attempt("1", true)).fine().out);
    store.run(&["proof", "consistency", &other]).ended(2, &["not a signed note"]);
    let foreign = empty.run(&["tree-head"]).fine().out;
    let foreign = store.write("foreign.note", foreign);
    store.run(&["proof", "consistency", &foreign]).ended(2, &["no trusted key signed", "--trust"]);
    let their_key = keys(&empty).join("log.vkey").to_str().unwrap().to_owned();
    let trusting = ["proof", "consistency", &foreign, "--trust", &their_key];
    store.run(&trusting).ended(1, &["the log was rolled back, or there are two histories"]);
    let flipped = store.write("flipped.note", note.replace("\n16\n", "\n15\n"));
    store.run(&["proof", "consistency", &flipped]).ended(2, &["does not match its key"]);
    store.run(&["proof", "consistency", "nowhere"]).ended(2, &["nowhere"]);
    Store::new().run(&["proof", "consistency", &anchor]).ended(2, &["no trusted key signed"]);
}

#[test]
fn a_rollback_and_a_fork_contradict_an_earlier_tree_head() {
    let store = cup();
    let copy = Copy::of(&store);
    store.import(attempt("1", true)).fine();
    let anchor = store.write("anchor.note", store.run(&["tree-head"]).fine().out);
    copy.put_back(&store);
    let rolled_back = store.run(&["proof", "consistency", &anchor]);
    assert_eq!(rolled_back.code, 1);
    assert!(
        rolled_back.out.contains("covers 18 entries, and the log has 16"),
        "{}",
        rolled_back.out
    );
    for n in 0..3 {
        store.import(attempt(&format!("other {n}"), false)).fine();
    }
    let forked = store.run(&["proof", "consistency", &anchor, "--json"]);
    assert_eq!((forked.code, forked.json()["consistent"].clone()), (1, false.into()));
    let message = "the first 18 entries of the log are not those that were signed";
    assert_eq!(forked.json()["message"], message);
}

#[test]
fn a_witness_cosigns_and_the_bundle_carries_it() {
    let store = cup();
    let before = exported(&store, "before.ipse", &[]);
    let (mut witness, plain) = (Witness::of(&store, 7), std::fs::read(&before.0).unwrap());
    let said = cosigned(&store, &mut witness).fine().out;
    assert!(said.starts_with("stored: witness.example/w1+"), "{said}");
    assert!(said.contains("cosigned the tree head over 16 entries at 2026-"), "{said}");
    let (bundle, done) = exported(&store, "one.ipse", &[]);
    assert!(done.fine().out.contains("tree head over 16 with 1 cosignature"));
    let note = head_in(&bundle);
    assert_eq!(note.lines().count(), 6, "{note}");
    assert!(note.starts_with(&head_in(&before.0)), "the signature of the log comes first");
    // Another witness; the names sort the lines. The same witness again changes nothing.
    let mut other = Witness::of(&store, 8);
    let request = store.run(&["witness", "request", "--since", "0"]).fine().out;
    let answer = store.write("answer", other.answer(&request).unwrap());
    let add = ["witness", "add", &answer, "--witness", &other.public().to_string(), "--json"];
    let added = store.run(&add).fine();
    assert_eq!(added.members(), ["identity_hash", "key_id", "new", "time", "tree_size"]);
    assert_eq!(added.json()["new"], true);
    assert_eq!(store.run(&add).fine().json()["new"], false);
    assert!(store.run(&["verify"]).fine().out.contains("cosignatures of witnesses: 2"));
    // Without a cosignature the bundle has the bytes that it had before.
    let moved = Store::new();
    let trust: Vec<String> = ["log.vkey", "operator.pub"]
        .map(|name| keys(&store).join(name).to_str().unwrap().to_owned())
        .into();
    let (two, _) = exported(&store, "two.ipse", &[]);
    let import = ["import-bundle", &two, "--trust", &trust[0], &trust[1], "--json"];
    assert_eq!(moved.run(&import).fine().json()["cosignatures"], 2);
    assert!(moved.run(&["verify"]).fine().out.contains("cosignatures of witnesses: 2"));
    for name in ["log.key", "operator.key", "log.vkey", "operator.pub"] {
        std::fs::copy(keys(&store).join(name), keys(&moved).join(name)).unwrap();
    }
    let _ = std::fs::remove_dir_all(keys(&moved).join("heads"));
    let (again, done) = exported(&moved, "again.ipse", &[]);
    done.fine();
    assert!(std::fs::read(again).unwrap() == std::fs::read(&two).unwrap(), "the bundles differ");
    let unwitnessed = Store::new();
    let import = ["import-bundle", &before.0, "--trust", &trust[0], &trust[1]];
    unwitnessed.run(&import).fine();
    for name in ["log.key", "operator.key", "log.vkey", "operator.pub"] {
        std::fs::copy(keys(&store).join(name), keys(&unwitnessed).join(name)).unwrap();
    }
    let _ = std::fs::remove_dir_all(keys(&unwitnessed).join("heads"));
    let (again, done) = exported(&unwitnessed, "again.ipse", &[]);
    done.fine();
    assert!(std::fs::read(again).unwrap() == plain, "the bundles differ");
}

#[test]
fn a_newer_tree_head_leaves_the_cosignature_with_its_own() {
    let store = cup();
    let mut witness = Witness::of(&store, 7);
    exported(&store, "none.ipse", &["--cosigned"]).1.ended(2, &["no tree head", "witness request"]);
    let request = store.run(&["witness", "request"]).fine().out;
    let answer = store.write("answer", witness.answer(&request).unwrap());
    let request = store.write("request", request);
    // A pass signs a newer head in between.
    store.import(attempt("1", true)).fine();
    let key = witness.public().to_string();
    let words = ["does not verify under the tree head over 18 entries", "--request"];
    store.run(&["witness", "add", &answer, "--witness", &key]).ended(1, &words);
    let add = ["witness", "add", &answer, "--witness", &key, "--request", &request];
    store.run(&add).fine();
    let (newer, done) = exported(&store, "newer.ipse", &[]);
    done.ended(0, &["the one over 16 entries has: --cosigned exports"]);
    assert_eq!(head_in(&newer).lines().count(), 5);
    let (older, done) = exported(&store, "older.ipse", &["--cosigned"]);
    assert!(done.fine().out.contains("tree head over 16 with 1 cosignature"));
    assert_eq!(head_in(&older).lines().nth(1), Some("16"));
    // The next request continues the head that was cosigned.
    let request = store.run(&["witness", "request"]).fine().out;
    assert!(request.starts_with("old 16\n"), "{request}");
    assert!(witness.answer(&request).is_ok());
    // A forgotten event under the cosigned head is not in any bundle of it.
    let log = store.run(&["log", "--json"]).fine().out;
    let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    store.run(&["forget", first["event_ref"].as_str().unwrap()]).fine();
    let words = ["events under the cosigned tree head over 16 entries were forgotten since"];
    exported(&store, "older.ipse", &["--cosigned", "--force"]).1.ended(2, &words);
}

#[test]
fn a_witness_refuses_a_second_history() {
    let store = cup();
    let copy = Copy::of(&store);
    let mut witness = Witness::of(&store, 7);
    store.import(attempt("1", true)).fine();
    cosigned(&store, &mut witness).fine();
    let seen = store.write("seen.note", head_in(&exported(&store, "seen.ipse", &[]).0));
    let answer = store.directory.path().join("answer").to_str().unwrap().to_owned();
    copy.put_back(&store);
    let words = ["beyond the tree head", "older copy"];
    store.run(&["witness", "request", "--since", "18"]).ended(2, &words);
    for n in 0..3 {
        store.import(attempt(&format!("other {n}"), false)).fine();
    }
    let request = store.run(&["witness", "request"]).fine().out;
    assert_eq!(witness.answer(&request), Err(409), "the witness remembers 18 entries");
    let request = store.run(&["witness", "request", "--since", "18"]).fine().out;
    assert_eq!(witness.answer(&request), Err(422), "no proof leads from there to a fork");
    // The cosignature of the first history is of no use to the second.
    let key = witness.public().to_string();
    let forked = store.write("request", &request);
    let add = ["witness", "add", &answer, "--witness", &key, "--request", &forked];
    store.run(&add).ended(1, &["does not verify"]);
    store.run(&["witness", "add", &seen, "--witness", &key]).ended(2, &["first 18 entries"]);
    store.run(&["verify"]).fine();
    // Put into the file by hand, it is a finding.
    let (line, note) =
        (std::fs::read_to_string(&answer).unwrap(), std::fs::read_to_string(&seen).unwrap());
    let sql = "INSERT INTO cosignature (log, size, key, line, note) \
               SELECT log, 18, ?1, ?2, ?3 FROM manifest";
    let values = (witness.public().key_id(), line.trim_end(), note);
    rusqlite::Connection::open(&store.path).unwrap().execute(sql, values).unwrap();
    let found = store.run(&["verify"]);
    assert_eq!(found.code, 1);
    let words = "the first 18 entries are not those that were signed";
    assert!(found.out.contains(words), "{}", found.out);
}

#[test]
fn a_stored_cosignature_belongs_to_its_tree_head() {
    let good = "\u{2014} w AQEBAQAAAAAAAAAB";
    let line = good.to_owned() + &"A".repeat(86) + "==";
    for (size, key, line, from, to, words) in [
        (16, "w+01010101", "no line", "", "", "cannot be read"),
        (16, "w+00000000", line.as_str(), "", "", "cannot be read"),
        (16, "w+01010101", line.as_str(), "\n16\n", "\n016\n", "tree head cannot be read"),
        (16, "w+01010101", line.as_str(), "ipse/b", "ipse/a", "belongs to another log"),
        (15, "w+01010101", line.as_str(), "", "", "covers 16 entries"),
        (99, "w+01010101", line.as_str(), "\n16\n", "\n99\n", "there are 16: an older copy"),
    ] {
        let store = cup();
        let note = store.run(&["tree-head"]).fine().out.replacen(from, to, 1);
        let sql = "INSERT INTO cosignature (log, size, key, line, note) \
                   SELECT log, ?1, ?2, ?3, ?4 FROM manifest";
        let db = rusqlite::Connection::open(&store.path).unwrap();
        db.execute(sql, (size, key, line, note)).unwrap();
        let found = store.run(&["verify"]);
        assert!(found.code == 1 && found.out.contains(words), "{words}: {}", found.out);
    }
}

#[test]
fn mistakes_with_witnesses_are_named() {
    let store = Store::new();
    store.run(&["witness", "request"]).ended(1, &["the log is empty"]);
    store.import(attempt("1", true)).fine();
    let mut witness = Witness::of(&store, 7);
    let key = witness.public().to_string();
    let log_key = std::fs::read_to_string(keys(&store).join("log.vkey")).unwrap();
    let answer = store.write("answer", "no line\n");
    for (witness, words) in [
        (log_key.trim(), "verifier key of a witness"),
        ("nowhere.vkey", "neither a file nor"),
        (answer.as_str(), "holds no verifier key"),
    ] {
        store.run(&["witness", "add", &answer, "--witness", witness]).ended(2, &[words]);
    }
    let none = ["no cosignature by witness.example/w1+", "nothing was stored"];
    store.run(&["witness", "add", &answer, "--witness", &key]).ended(1, &none);
    let bad = ["witness", "add", &answer, "--witness", &key, "--request", &answer];
    store.run(&bad).ended(2, &["could not use the tree head in", "not a signed note"]);
    let request = store.run(&["witness", "request", "--json"]).fine();
    assert_eq!(request.members(), ["note", "old", "proof"]);
    // The line may come with the whole note, and over a pipe.
    let body = store.run(&["witness", "request"]).fine().out;
    let note = CosignRequest::parse(&body).unwrap().note + &witness.answer(&body).unwrap();
    store.fed(&["witness", "add", "-", "--witness", &key], note).fine();
    // Without the log's key the newest head is used, and a note says so.
    std::fs::remove_file(keys(&store).join("log.key")).unwrap();
    store.run(&["witness", "request"]).ended(0, &["tree heads are not signed"]);
}

/// Comparing, requesting, adding and exporting leave the identity as it is.
#[test]
fn the_identity_stays_under_all_of_it() {
    let store = cup();
    let certificate = || store.run(&["identity", "--certificate"]).fine().out;
    let (before, facts) = (certificate(), store.snapshot());
    let anchor = store.write("anchor.note", store.run(&["tree-head"]).fine().out);
    cosigned(&store, &mut Witness::of(&store, 7)).fine();
    exported(&store, "one.ipse", &["--cosigned"]).1.fine();
    store.run(&["proof", "consistency", &anchor]).fine();
    assert_eq!((certificate(), store.snapshot()), (before, facts));
}
