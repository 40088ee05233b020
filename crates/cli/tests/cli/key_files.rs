//! Key files that are damaged, mismatched, unfinished, or in a directory that other users can write
//! to: none of them counts as a missing key, and none of them signs.

use super::store::{CommandResult, Store, attempt, binary, ran, vector};
use ipse_ledger::NoteKey;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn cup() -> Store {
    Store::with("facts/glass_cup.events.jsonl")
}

fn keys(store: &Store, name: &str) -> PathBuf {
    store.path.with_extension("db.keys").join(name)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Another private key under that name.
fn replace_by_another(path: &Path) {
    let args = ["genpkey", "-algorithm", "ed25519", "-out", path.to_str().unwrap()];
    ran(assert_cmd::Command::new("openssl").args(args)).fine();
    set_mode(path, 0o600);
}

fn export(store: &Store) -> (PathBuf, CommandResult) {
    let file = store.directory.path().join("bundle.ipse");
    let ran = store.run(&["export", "-o", file.to_str().unwrap()]);
    (file, ran)
}

#[test]
fn halves_of_two_keys_export_nothing() {
    for (private, public) in [("operator.key", "operator.pub"), ("log.key", "log.vkey")] {
        let store = cup();
        let before = fs::read(keys(&store, private)).unwrap();
        replace_by_another(&keys(&store, private));
        let (file, ran) = export(&store);
        ran.ended(2, &[private, "is not the private half of", public, "put back a copy"]);
        assert!(!file.exists());
        fs::write(keys(&store, private), before).unwrap();
        let (_, ran) = export(&store);
        ran.fine();
    }
}

/// A flipped bit of the seed gives another valid key.
#[test]
fn a_flipped_bit_of_the_operators_key_is_found() {
    let store = cup();
    let path = keys(&store, "operator.key");
    let good = fs::read(&path).unwrap();
    let mut mismatches = 0;
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, &bad).unwrap();
        let ran = store.run(&["identity", "--certificate"]);
        if ran.code == 0 {
            // A line break, or a bit of the encoding that decoders ignore.
            let certificate = ran.out;
            fs::write(&path, &good).unwrap();
            assert_eq!(certificate, store.run(&["identity", "--certificate"]).out, "byte {at}");
            continue;
        }
        mismatches += usize::from(ran.err.contains("is not the private half of"));
        ran.ended(2, &["operator.key"]);
    }
    assert!(mismatches > 10, "{mismatches} flips gave another key");
}

/// Commands that read the log's public half, or sign with its key.
const USERS: [&[&str]; 6] = [
    &["verify"],
    &["tree-head", "--sign"],
    &["record", "--zone", "z", "--failed"],
    &["consolidate"],
    &["key", "list"],
    &["export", "-o", "/dev/null"],
];

#[test]
fn a_public_half_that_cannot_be_read_is_not_no_key() {
    let store = cup();
    let path = keys(&store, "log.vkey");
    let good = fs::read(&path).unwrap();
    let words = ["log.vkey", "hint: put back a copy of it, or delete it and run `ipse init`"];
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        store.run(&["verify"]).ended(2, &words);
    }
    for bad in [&b""[..], b"\n", b"\xff\xfe", &good[..good.len() - 9]] {
        fs::write(&path, bad).unwrap();
        for args in USERS {
            store.run(args).ended(2, &words);
        }
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    store.run(&["verify"]).ended(2, &["log.vkey"]);
    fs::remove_dir(&path).unwrap();
    // It is created again from the private half.
    let manifest = vector("manifest/golden.toml");
    store.run(&["init", "--manifest", manifest.to_str().unwrap()]).fine();
    assert_eq!(fs::read(&path).unwrap(), good);
    for args in USERS {
        store.run(args).fine();
    }
}

#[test]
fn a_private_half_that_is_empty_or_cut_off_is_not_no_key() {
    let store = cup();
    let path = keys(&store, "log.key");
    let good = fs::read(&path).unwrap();
    // The others use no private half.
    let signers = USERS.iter().filter(|args| !["verify", "key"].contains(&args[0]));
    for bad in [&b""[..], b"\n", &good[..good.len() / 2], &good[..good.len() - 9]] {
        fs::write(&path, bad).unwrap();
        for args in signers.clone() {
            store.run(args).ended(2, &["log.key is not a valid key", "put back a copy"]);
        }
    }
    // Without the file the log continues unsigned.
    fs::remove_file(&path).unwrap();
    store.run(&["consolidate"]).ended(0, &["note: tree heads are not signed"]);
}

#[test]
fn an_operators_public_half_that_cannot_be_read_is_an_error() {
    let store = cup();
    let path = keys(&store, "operator.pub");
    for bad in [&b""[..], b"nonsense"] {
        fs::write(&path, bad).unwrap();
        store.run(&["verify"]).ended(2, &["operator.pub", "put back a copy"]);
        let (file, ran) = export(&store);
        ran.ended(2, &["operator.pub", "put back a copy"]);
        assert!(!file.exists());
    }
}

/// Without `log.vkey` no signature is checked, and `verify` reports that.
#[test]
fn verify_says_that_no_signature_was_checked() {
    let store = cup();
    let words = "signatures of tree heads were not checked";
    assert!(!store.run(&["verify"]).fine().out.contains(words));
    fs::remove_file(keys(&store, "log.vkey")).unwrap();
    assert!(store.run(&["verify"]).fine().out.contains(words));
}

/// The registered key of a producer in a store.
#[test]
fn a_registered_key_that_cannot_be_read_is_a_finding() {
    let store = cup();
    store.run(&["key", "new", "producer", "arm", "--any-source"]).fine();
    store.run(&["verify"]).fine();
    unregister(&store);
    let sql = "INSERT INTO producer VALUES (1, 1, 'arm+00000000+AQID', 0, NULL)";
    rusqlite::Connection::open(&store.path).unwrap().execute(sql, ()).unwrap();
    let out = store.run(&["verify"]).ended(1, &[]).out;
    assert!(out.contains("key of a producer"), "{out}");
}

#[test]
fn keys_are_not_used_from_a_directory_that_others_may_write_to() {
    let store = cup();
    store.run(&["key", "new", "producer", "arm", "--any-source"]).fine();
    let directory = keys(&store, "");
    let words = ["other users can write to", "chmod go-w"];
    for mode in [0o720, 0o702, 0o777] {
        set_mode(&directory, mode);
        store.run(&["identity", "--certificate"]).ended(2, &words);
        store.run(&["tree-head", "--sign"]).ended(2, &words);
        let (file, ran) = export(&store);
        ran.ended(2, &words);
        assert!(!file.exists());
    }
    set_mode(&directory, 0o755);
    store.run(&["identity", "--certificate"]).fine();
    let sign = |key: &Path| {
        let args = ["sign", "-", "--key", key.to_str().unwrap(), "--name", "arm"];
        store.fed(&args, attempt("1", true))
    };
    let key = keys(&store, "producers/arm.key");
    sign(&key).fine();
    let link = store.directory.path().join("link.key");
    symlink(&key, &link).unwrap();
    sign(&link).fine();
    set_mode(&keys(&store, "producers"), 0o770);
    for path in [&key, &link] {
        sign(path).ended(2, &words);
    }
    set_mode(&keys(&store, "producers"), 0o700);
    set_mode(store.directory.path(), 0o770);
    sign(&link).ended(2, &words);
    sign(&key).fine();
}

/// Keys that would not be used later are not created.
#[test]
fn no_key_is_made_in_a_directory_that_others_may_write_to() {
    let store = Store::nothing();
    let (directory, manifest) = (keys(&store, ""), vector("manifest/golden.toml"));
    let init = ["init", "--manifest", manifest.to_str().unwrap()];
    let words = ["other users can write to", "chmod go-w"];
    fs::create_dir(&directory).unwrap();
    for mode in [0o720, 0o702, 0o777] {
        set_mode(&directory, mode);
        store.run(&init).ended(1, &words);
        assert!(!keys(&store, "log.key").exists() && !keys(&store, "operator.key").exists());
        store.run(&["key", "new", "log"]).ended(2, &words);
        store.run(&["key", "new", "producer", "arm", "--any-source"]).ended(2, &words);
    }
    set_mode(&directory, 0o755);
    store.run(&init).fine();
    store.run(&["export", "-o", "/dev/null"]).fine();
    set_mode(&directory, 0o775);
    store.run(&init).ended(1, &words);
}

#[test]
fn keys_next_to_a_store_are_found_through_a_link() {
    let store = cup();
    let elsewhere = tempfile::tempdir().unwrap();
    let [link, beside] = ["link.db", "link.db.keys"].map(|name| elsewhere.path().join(name));
    symlink(&store.path, &link).unwrap();
    let run = |args: &[&str]| ran(binary().arg("--store").arg(&link).args(args));
    let recorded = run(&["record", "--zone", "z", "--failed"]).fine();
    assert!(!recorded.err.contains("not signed"), "{}", recorded.err);
    run(&["export", "-o", "/dev/null"]).fine();
    assert!(!run(&["verify"]).fine().out.contains("were not checked"));
    let key = keys(&store, "new.ipse");
    run(&["export", "-o", key.to_str().unwrap()]).ended(2, &["it is in the key directory"]);
    assert!(!beside.exists());
    // A directory next to the link comes first.
    fs::rename(keys(&store, ""), &beside).unwrap();
    run(&["export", "-o", "/dev/null"]).fine();
    store.run(&["export", "-o", "/dev/null"]).ended(2, &["no key at"]);
    fs::rename(&beside, keys(&store, "")).unwrap();
    // New keys are created next to the file, also if the link was dangling.
    let (new, file) = (elsewhere.path().join("new.db"), store.directory.path().join("file.db"));
    symlink(&file, &new).unwrap();
    let manifest = vector("manifest/golden.toml");
    ran(binary().arg("--store").arg(&new).arg("init").arg("--manifest").arg(&manifest)).fine();
    assert!(file.with_extension("db.keys").join("log.key").is_file());
    assert!(!new.with_extension("db.keys").exists());
}

/// Removes a producer from the store, as if the command had died before the registration.
fn unregister(store: &Store) {
    let rows = rusqlite::Connection::open(&store.path).unwrap().execute("DELETE FROM producer", ());
    assert_eq!(rows.unwrap(), 1);
}

fn registered(store: &Store) -> Vec<String> {
    let list = store.run(&["key", "list", "--json"]).fine().json();
    let all = list.as_array().unwrap().iter().filter(|key| key["state"] == "registered");
    all.map(|key| key["public_key"].as_str().unwrap().to_string()).collect()
}

/// Every state that a killed `key new producer` can leave is finished by the same command.
#[test]
fn an_interrupted_key_of_a_producer_is_finished_by_the_same_command() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("arm.key");
    let in_directory: &[&str] = &["key", "new", "producer", "arm", "--any-source"];
    let elsewhere = [in_directory, &["--out", out.to_str().unwrap()]].concat();
    for args in [in_directory, &elsewhere] {
        let store = Store::new();
        let key = store.run(args).fine().out;
        let private = match args.len() {
            5 => keys(&store, "producers/arm.key"),
            _ => out.clone(),
        };
        let before = fs::read(&private).unwrap();
        for without_public in [false, true] {
            unregister(&store);
            if without_public && args.len() == 5 {
                fs::remove_file(keys(&store, "producers/arm.vkey")).unwrap();
            }
            assert_eq!(store.run(args).ended(0, &["registered;"]).out, key);
            assert_eq!(fs::read(&private).unwrap(), before, "the private half is the same");
            assert_eq!(registered(&store), [key.trim()]);
        }
        // A finished key is not created again; its public half is shown.
        store.run(args).ended(2, &["has a key already", key.trim(), "ipse key revoke arm"]);
        // Only directories and unfinished files: the command starts over.
        unregister(&store);
        fs::remove_file(&private).unwrap();
        let other = store.run(args).fine().out;
        assert_ne!(other, key);
        assert_eq!(registered(&store), [other.trim()]);
        if args.len() == 5 {
            assert_eq!(fs::read_to_string(keys(&store, "producers/arm.vkey")).unwrap(), other);
        }
    }
}

#[test]
fn an_interrupted_encrypted_key_needs_its_passphrase() {
    let store = Store::new();
    let with =
        |args: &[&str], word: &str| ran(store.command().args(args).env("IPSE_PASSPHRASE", word));
    let args = ["key", "new", "producer", "arm", "--any-source", "--passphrase"];
    let key = with(&args, "a word").fine().out;
    unregister(&store);
    with(&args, "another").ended(2, &["does not open"]);
    store.run(&args[..5]).ended(2, &["is encrypted"]);
    assert_eq!(with(&args, "a word").fine().out, key);
    unregister(&store);
    assert_eq!(with(&args[..5], "a word").fine().out, key);
    // A key without a passphrase does not count as one with a passphrase.
    let plain = ["key", "new", "producer", "leg", "--any-source"];
    let leg = store.run(&plain).fine().out;
    let sql = "DELETE FROM producer WHERE key LIKE 'leg+%'";
    rusqlite::Connection::open(&store.path).unwrap().execute(sql, ()).unwrap();
    let locked = [&plain[..], &["--passphrase"]].concat();
    with(&locked, "a word").ended(2, &["without a passphrase"]);
    assert_eq!(store.run(&plain).fine().out, leg);
}

/// A file that no interrupted command left is not taken for the key.
#[test]
fn a_key_that_is_used_is_not_finished_under_another_name() {
    let store = Store::new();
    let out = store.directory.path().join("arm.key");
    let out = out.to_str().unwrap();
    store.run(&["key", "new", "producer", "arm", "--any-source", "--out", out]).fine();
    store
        .run(&["key", "new", "producer", "leg", "--any-source", "--out", out])
        .ended(2, &["already"]);
    store.run(&["key", "revoke", "arm"]).fine();
    store
        .run(&["key", "new", "producer", "arm", "--any-source", "--out", out])
        .ended(2, &["already"]);
    // Nor is the key of another identity.
    store.run(&["key", "new", "producer", "hand", "--any-source"]).fine();
    let golden = fs::read_to_string(vector("manifest/golden.toml")).unwrap();
    let manifest = store.write("other.toml", golden.replace("ward-robot-01", "ward-robot-02"));
    let other = store.run(&["init", "--manifest", &manifest]).fine().out;
    let new = ["--identity", other.trim(), "key", "new", "producer", "hand", "--any-source"];
    store.run(&new).ended(2, &["already", "to register this one"]);
    // Halves of different keys are reported.
    let public = keys(&store, "producers/foot.vkey");
    let foot = ["--identity", other.trim(), "key", "new", "producer", "foot", "--any-source"];
    fs::copy(keys(&store, "producers/hand.key"), keys(&store, "producers/foot.key")).unwrap();
    let hand = fs::read_to_string(keys(&store, "producers/hand.vkey")).unwrap();
    let hand = NoteKey::parse(hand.trim()).unwrap();
    let arm = ipse::keys::read_signer(Path::new(out), "foot", None).unwrap().public();
    assert_ne!(hand.key(), arm.key());
    fs::write(public, format!("{arm}\n")).unwrap();
    store.run(&foot).ended(2, &["foot.key", "is not the private half of", "foot.vkey"]);
}

/// A revocation that was interrupted after the store recorded it leaves files of a revoked key.
#[test]
fn an_interrupted_revocation_is_finished() {
    let sql = "UPDATE producer SET revoked = 1";
    let new = ["key", "new", "producer", "arm", "--any-source"];
    let revoked = || {
        let store = Store::new();
        let key = store.run(&new).fine().out;
        rusqlite::Connection::open(&store.path).unwrap().execute(sql, ()).unwrap();
        (store, key)
    };
    let (store, key) = revoked();
    store.run(&["key", "revoke", "arm"]).ended(0, &["revoked/producer-arm-"]);
    assert!(!keys(&store, "producers/arm.key").exists());
    store.run(&["key", "revoke", "arm"]).ended(1, &["nothing was changed"]);
    assert_ne!(store.run(&new).fine().out, key);
    let (store, key) = revoked();
    let other = store.run(&new).fine().out;
    assert_ne!(other, key);
    assert_eq!(registered(&store), [other.trim()]);
    assert!(fs::read_dir(keys(&store, "revoked")).unwrap().count() == 1, "the old one is kept");
}
