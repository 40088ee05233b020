//! Key files that are damaged, do not belong together, or lie where others may write:
//! none of them counts as no key, and none of them signs.

use super::store::{Ran, Store, attempt, ran, vector};
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

fn export(store: &Store) -> (PathBuf, Ran) {
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

/// One bit of the seed makes another key, in which nothing is wrong but that it is another.
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
            // A line break, or a bit of the encoding that no decoder looks at.
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

/// Commands that look at the log's public half, or sign beside it.
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
    // It is made again from the private half.
    let manifest = vector("manifest/golden.toml");
    store.run(&["init", "--manifest", manifest.to_str().unwrap()]).fine();
    assert_eq!(fs::read(&path).unwrap(), good);
    for args in USERS {
        store.run(args).fine();
    }
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

/// Without `log.vkey` no signature was checked, and that is said.
#[test]
fn verify_says_that_no_signature_was_checked() {
    let store = cup();
    let words = "signatures of tree heads were not checked";
    assert!(!store.run(&["verify"]).fine().out.contains(words));
    fs::remove_file(keys(&store, "log.vkey")).unwrap();
    assert!(store.run(&["verify"]).fine().out.contains(words));
}

/// The key of a producer that a store holds.
#[test]
fn a_registered_key_that_cannot_be_read_is_a_finding() {
    let store = cup();
    store.run(&["key", "new", "producer", "arm"]).fine();
    store.run(&["verify"]).fine();
    let sql = "UPDATE producer SET key = 'arm+00000000+AQID'";
    rusqlite::Connection::open(&store.path).unwrap().execute(sql, ()).unwrap();
    let out = store.run(&["verify"]).ended(1, &[]).out;
    assert!(out.contains("key of a producer"), "{out}");
}

#[test]
fn keys_are_not_used_from_a_directory_that_others_may_write_to() {
    let store = cup();
    store.run(&["key", "new", "producer", "arm"]).fine();
    let directory = keys(&store, "");
    let words = ["others may write to the directory", "chmod go-w"];
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
