//! Key files and the key directory, as a program uses them.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse::keys::{
    KeyDirectory, KeyError, MAX_KEY_BYTES, MAX_NAME_BYTES, Protection, Role, new_key_file,
    read_signer,
};
use ipse_core::Identity;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const ONE: Identity = Identity([1; 32]);
const TWO: Identity = Identity([2; 32]);

/// A source of bytes that never repeats.
fn counting() -> impl FnMut() -> [u8; 32] {
    let mut count = 0;
    move || {
        count += 1;
        [count; 32]
    }
}

fn directory() -> (tempfile::TempDir, KeyDirectory) {
    let place = tempfile::tempdir().unwrap();
    let keys = KeyDirectory::of_store(&ipse::Location::file(place.path().join("ipse.db")));
    (place, keys)
}

fn manifest() -> ipse::Manifest {
    let manifest = ipse::Manifest::new(|field| {
        Some(match field {
            "commissioned_at" => "2026-05-01T00:00:00Z".into(),
            hash if hash.ends_with("_hash") => "1".repeat(64),
            name => format!("my {name}"),
        })
    });
    manifest.unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn openssl(args: &[&str], path: &Path) -> String {
    let output = Command::new("openssl").args(args).arg("-in").arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn openssl_makes(args: &[&str], path: &Path) {
    let made = Command::new("openssl").args(args).arg("-out").arg(path).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Encrypts a key file under the passphrase `x`.
fn openssl_encrypts(path: &Path, how: &[&str], locked: &Path) {
    let from = path.to_str().unwrap();
    let args = [&["pkcs8", "-topk8", "-in", from, "-passout", "pass:x"], how].concat();
    openssl_makes(&args, locked);
}

#[test]
fn keys_are_made_once_private_and_whole() {
    let (_place, keys) = directory();
    assert_eq!(keys.path().extension().unwrap(), "keys");
    let made = keys.create(&ONE, &mut counting(), None).unwrap();
    assert_eq!(made, ["log.key", "operator.key"]);
    assert_eq!(mode(keys.path()), 0o700);
    for name in ["log.key", "operator.key"] {
        assert_eq!(mode(&keys.path().join(name)), 0o600, "{name}");
    }
    let before = fs::read(keys.path().join("log.key")).unwrap();
    let none = keys.create(&ONE, &mut counting(), Some("word")).unwrap();
    assert!(none.is_empty());
    assert_eq!(fs::read(keys.path().join("log.key")).unwrap(), before);
    assert_eq!(keys.log_keys().unwrap().len(), 1);
    let mut names: Vec<_> =
        fs::read_dir(keys.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lock", "log.key", "log.vkey", "operator.key", "operator.pub"]);
}

#[test]
fn openssl_reads_what_is_written() {
    let (_place, keys) = directory();
    keys.create(&ONE, &mut counting(), None).unwrap();
    let public = openssl(&["pkey", "-pubin"], &keys.path().join("operator.pub"));
    assert_eq!(public, openssl(&["pkey", "-pubout"], &keys.path().join("operator.key")));
    assert_eq!(public, fs::read_to_string(keys.path().join("operator.pub")).unwrap());
    let signer = keys.operator_signer(None).unwrap();
    assert_eq!(keys.operator_key().unwrap(), signer.public());
}

#[test]
fn what_openssl_writes_is_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.key");
    openssl_makes(&["genpkey", "-algorithm", "ed25519"], &path);
    let public = read_signer(&path, "arm", None).unwrap().public();
    let read = openssl(&["pkey", "-pubout"], &path);
    assert_eq!(read, ipse_bundle::pem(public.key()));
}

fn error_of(bytes: &[u8], mode: u32) -> KeyError {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a.key");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    read_signer(&path, "arm", None).unwrap_err()
}

#[test]
fn bad_key_files_have_distinct_errors() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("plain.key");
    new_key_file(&path, "arm", &mut counting(), None).unwrap();
    let plain = fs::read_to_string(path).unwrap();
    for mode in [0o644, 0o640, 0o604, 0o620] {
        assert!(matches!(error_of(plain.as_bytes(), mode), KeyError::Unsafe(_)));
    }
    let large = vec![b'x'; usize::try_from(MAX_KEY_BYTES).unwrap() + 1];
    let public = plain.replace("PRIVATE", "PUBLIC");
    let cut = &plain[..plain.len() - 40];
    for bytes in [b"", &large[..], public.as_bytes(), cut.as_bytes(), b"\xff\xfe"] {
        let error = error_of(bytes, 0o600);
        assert!(matches!(error, KeyError::Malformed { .. }), "{error}");
    }
    let error = read_signer(place.path(), "arm", None).unwrap_err();
    assert!(matches!(error, KeyError::Malformed { .. }), "a directory: {error}");
    let error = read_signer(&place.path().join("none"), "arm", None).unwrap_err();
    assert!(matches!(error, KeyError::Missing(_)), "{error}");
    let other = place.path().join("rsa.key");
    openssl_makes(&["genpkey", "-algorithm", "x25519"], &other);
    let error = read_signer(&other, "arm", None).unwrap_err();
    assert!(error.to_string().contains("not an Ed25519 key"), "{error}");
}

#[test]
fn a_weak_public_half_is_no_key() {
    let (_place, keys) = directory();
    keys.create(&ONE, &mut counting(), None).unwrap();
    let path = keys.path().join("operator.pub");
    let text = fs::read_to_string(&path).unwrap();
    let mut der = Vec::from(*b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00");
    der.extend([1]);
    der.extend([0; 31]);
    let weak = pkcs8::Document::try_from(der.as_slice()).unwrap();
    fs::write(&path, weak.to_pem("PUBLIC KEY", pkcs8::LineEnding::LF).unwrap()).unwrap();
    assert!(matches!(keys.operator_key(), Err(KeyError::Weak(_))));
    fs::write(&path, text).unwrap();
    keys.operator_key().unwrap();
}

#[test]
fn a_key_kept_elsewhere_is_not_created_again() {
    let (_place, keys) = directory();
    keys.create(&ONE, &mut counting(), None).unwrap();
    fs::remove_file(keys.path().join("log.key")).unwrap();
    assert!(keys.create(&TWO, &mut counting(), None).unwrap().is_empty());
    assert_eq!(keys.log_keys().unwrap().len(), 2);
    assert!(matches!(keys.log_signer(&ONE, None), Err(KeyError::Missing(_))));
    assert!(matches!(keys.held(Role::Log), Err(KeyError::Missing(_))));
    let error = keys.new_log(&[ONE], &mut counting(), None).unwrap_err();
    assert!(matches!(error, KeyError::Exists(_)));
}

#[test]
fn a_key_whose_making_was_interrupted_is_finished() {
    let (_place, keys) = directory();
    let mut random = counting();
    keys.create(&ONE, &mut random, None).unwrap();
    let (log, operator) = (keys.log_keys().unwrap(), keys.operator_key().unwrap());
    fs::remove_file(keys.path().join("log.vkey")).unwrap();
    fs::remove_file(keys.path().join("operator.pub")).unwrap();
    let encrypted = keys.new_operator(&mut random, Some("word"));
    assert!(matches!(encrypted, Err(KeyError::Exists(_))), "it is there without a passphrase");
    assert_eq!(keys.new_operator(&mut random, None).unwrap(), operator);
    assert_eq!(keys.new_log(&[ONE], &mut random, None).unwrap(), log);
    assert!(matches!(keys.new_operator(&mut random, None), Err(KeyError::Exists(_))));
}

#[test]
fn revoked_keys_make_room_and_are_kept() {
    let (_place, keys) = directory();
    let mut random = counting();
    keys.create(&ONE, &mut random, None).unwrap();
    keys.keep_head(&ONE, "a head").unwrap();
    let (log, operator) = (keys.log_keys().unwrap(), keys.operator_key().unwrap());
    let place = keys.revoke_log(None).unwrap();
    for name in ["log.key", "log.vkey"] {
        assert!(place.join(name).is_file() && !keys.path().join(name).exists(), "{name}");
    }
    assert!(place.join(format!("heads/{ONE}.note")).is_file());
    assert_eq!(keys.last_head(&ONE).unwrap(), None);
    assert!(matches!(keys.revoke_log(None), Err(KeyError::Missing(_))));
    assert_ne!(keys.new_log(&[ONE, TWO], &mut random, None).unwrap()[0], log[0]);
    keys.revoke_operator(None).unwrap();
    assert_ne!(keys.new_operator(&mut random, None).unwrap(), operator);
    let revoked = keys.revoked().unwrap();
    assert_eq!(revoked, [(Role::Log, log[0].clone()), (Role::Operator, operator)]);
}

#[test]
fn the_last_head_is_kept() {
    let (_place, keys) = directory();
    assert!(keys.last_head(&ONE).unwrap().is_none());
    keys.create(&ONE, &mut counting(), None).unwrap();
    for note in ["first", "second"] {
        keys.keep_head(&ONE, note).unwrap();
        assert_eq!(keys.last_head(&ONE).unwrap().unwrap().0, note);
    }
    assert_eq!(keys.last_head(&TWO).unwrap(), None);
    let held = keys.lock().unwrap();
    let other = fs::File::open(keys.path().join("lock")).unwrap();
    assert!(other.try_lock().is_err(), "one at a time");
    drop(held);
    other.try_lock().unwrap();
}

#[test]
fn producers_have_plain_names() {
    let (_place, keys) = directory();
    let mut random = counting();
    let key = keys.new_producer("arm-7", &mut random, None).unwrap();
    assert_eq!(mode(&keys.path().join("producers/arm-7.key")), 0o600);
    let text = fs::read_to_string(keys.path().join("producers/arm-7.vkey")).unwrap();
    assert_eq!(text, format!("{key}\n"));
    let again = keys.new_producer("arm-7", &mut random, None);
    assert!(matches!(again, Err(KeyError::Exists(_))));
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    for name in ["", ".a", "a/b", "..", "a b", "a+b", "é", "operator", "log", &long] {
        let made = keys.new_producer(name, &mut random, None);
        assert!(matches!(made, Err(KeyError::Name(_))), "{name}");
    }
    keys.new_producer(&long[1..], &mut random, None).unwrap();
}

/// The library opens a log without a private key unsigned. A damaged half of a key is an error.
#[test]
fn a_damaged_public_half_opens_no_memory() {
    let (place, keys) = directory();
    let store = place.path().join("ipse.db");
    let identity = ipse::Agent::register(&store, &manifest()).unwrap().identity();
    let open = || ipse::Agent::open(&store, identity).map(drop);
    open().unwrap();
    keys.create(&identity, &mut counting(), None).unwrap();
    open().unwrap();
    let (private, public) = (keys.path().join("log.key"), keys.path().join("log.vkey"));
    fs::copy(keys.path().join("operator.key"), &private).unwrap();
    assert!(matches!(open(), Err(ipse::Error::Key(_))), "the private half is another key's");
    fs::write(&private, "").unwrap();
    assert!(matches!(open(), Err(ipse::Error::Key(_))), "the private half is empty");
    fs::remove_file(&private).unwrap();
    open().unwrap();
    fs::write(&public, "damaged").unwrap();
    assert!(matches!(open(), Err(ipse::Error::Key(_))));
}

/// Keys under a passphrase; the feature adds them.
#[cfg(feature = "passphrase")]
mod encrypted {
    use super::*;

    #[test]
    fn a_second_identity_adds_a_line_and_needs_no_passphrase() {
        let (_place, keys) = directory();
        keys.create(&ONE, &mut counting(), Some("word")).unwrap();
        assert!(keys.create(&TWO, &mut counting(), None).unwrap().is_empty());
        let public = keys.log_keys().unwrap();
        let signer = |identity| keys.log_signer(identity, Some("word")).unwrap().public();
        assert_eq!(public, [signer(&ONE), signer(&TWO)]);
        assert_eq!(public[0].key(), public[1].key());
        assert_eq!(public[1].name(), format!("ipse/{TWO}"));
    }

    #[test]
    fn an_agent_says_whether_it_signs() {
        let place = tempfile::tempdir().unwrap();
        let store = place.path().join("ipse.db");
        let opening = |word: Option<&str>| ipse::Opening {
            passphrase: word.map(str::to_owned),
            ..ipse::Opening::default()
        };
        let manifest = manifest();
        let open = |word| ipse::Agent::register_with(&store, &manifest, opening(word));
        assert!(open(Some("word")).unwrap().signs());
        assert!(!open(None).unwrap().signs(), "the key is encrypted");
        let wrong = open(Some("sword")).err().unwrap();
        assert!(matches!(wrong, ipse::Error::Key(KeyError::WrongPassphrase(_))), "{wrong}");
        fs::remove_file(place.path().join("ipse.db.keys/log.key")).unwrap();
        assert!(!open(Some("word")).unwrap().signs(), "there is no private key");
    }

    #[test]
    fn openssl_decrypts_what_is_encrypted() {
        let (_place, keys) = directory();
        keys.create(&ONE, &mut counting(), None).unwrap();
        let (_place, locked) = directory();
        locked.create(&ONE, &mut counting(), Some("pass word")).unwrap();
        assert_eq!(locked.held(Role::Log).unwrap(), Protection::Encrypted);
        let args = ["pkey", "-passin", "pass:pass word"];
        assert_eq!(
            openssl(&args, &locked.path().join("log.key")),
            fs::read_to_string(keys.path().join("log.key")).unwrap(),
            "the same key once it is decrypted"
        );
    }

    #[test]
    fn what_openssl_encrypts_is_decrypted() {
        let place = tempfile::tempdir().unwrap();
        let (path, locked) = (place.path().join("a.key"), place.path().join("b.key"));
        openssl_makes(&["genpkey", "-algorithm", "ed25519"], &path);
        let plain = read_signer(&path, "arm", None).unwrap().public();
        for how in [&["-scrypt"][..], &["-v2", "aes-256-cbc"], &["-v2", "aes128", "-iter", "9"]] {
            openssl_encrypts(&path, how, &locked);
            assert_eq!(read_signer(&locked, "arm", Some("x")).unwrap().public(), plain, "{how:?}");
            for wrong in ["y", ""] {
                let error = read_signer(&locked, "arm", Some(wrong)).unwrap_err();
                assert!(matches!(error, KeyError::WrongPassphrase(_)), "{how:?}: {error}");
            }
            let error = read_signer(&locked, "arm", None).unwrap_err();
            assert!(matches!(error, KeyError::NoPassphrase(_)), "{how:?}: {error}");
        }
    }

    #[test]
    fn an_encrypted_key_is_finished_with_its_passphrase() {
        let (_place, keys) = directory();
        let mut random = counting();
        let operator = keys.new_operator(&mut random, Some("word")).unwrap();
        fs::remove_file(keys.path().join("operator.pub")).unwrap();
        assert!(matches!(keys.new_operator(&mut random, None), Err(KeyError::NoPassphrase(_))));
        assert_eq!(keys.new_operator(&mut random, Some("word")).unwrap(), operator);
    }
}

/// The library without the feature: `cargo test -p ipse`.
#[cfg(not(feature = "passphrase"))]
mod not_encrypted {
    use super::*;

    #[track_caller]
    fn names_the_feature<T>(result: Result<T, KeyError>) {
        let error = result.err().unwrap();
        assert!(matches!(error, KeyError::PassphraseUnsupported(_)), "{error}");
        assert!(error.to_string().contains("feature `passphrase`"), "{error}");
    }

    #[test]
    fn an_encrypted_key_is_an_error_that_names_the_feature() {
        let place = tempfile::tempdir().unwrap();
        let (path, locked) = (place.path().join("a.key"), place.path().join("b.key"));
        openssl_makes(&["genpkey", "-algorithm", "ed25519"], &path);
        openssl_encrypts(&path, &["-scrypt"], &locked);
        names_the_feature(read_signer(&locked, "arm", None));
        names_the_feature(read_signer(&locked, "arm", Some("x")));
    }

    #[test]
    fn no_key_is_encrypted_and_none_is_left_behind() {
        let (_place, keys) = directory();
        names_the_feature(keys.create(&ONE, &mut counting(), Some("word")));
        assert!(!keys.has(Role::Log) && !keys.has(Role::Operator));
        assert_eq!(keys.create(&ONE, &mut counting(), None).unwrap().len(), 2);
    }

    #[test]
    fn the_encrypted_key_of_a_store_is_listed_and_signs_nothing() {
        let (_place, keys) = directory();
        keys.create(&ONE, &mut counting(), None).unwrap();
        let (log, locked) = (keys.path().join("log.key"), keys.path().join("locked"));
        openssl_encrypts(&log, &["-scrypt"], &locked);
        fs::rename(locked, log).unwrap();
        assert_eq!(keys.held(Role::Log).unwrap(), Protection::Encrypted);
        names_the_feature(keys.log_signer(&ONE, Some("x")));
    }
}
