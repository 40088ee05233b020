//! Keys on the command line: created once, never shown, revoked and replaced.

use super::forget::on_a_terminal;
use super::store::{CommandResult, Store, ran, vector};
use ipse_core::{hex, sha256};
use ipse_ledger::{Certificate, NoteKey, PublicKey, dsse};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A verifier key under which anyone can sign.
const WEAK: &str = "arm+b0647592+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn key_file(store: &Store, name: &str) -> PathBuf {
    let directory = format!("{}.keys", store.path.display());
    PathBuf::from(directory).join(name)
}

fn mode(path: &PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn read(store: &Store, name: &str) -> String {
    fs::read_to_string(key_file(store, name)).unwrap()
}

fn init(store: &Store, manifest: &str) -> CommandResult {
    store.run(&["init", "--manifest", manifest])
}

fn golden() -> String {
    vector("manifest/golden.toml").to_str().unwrap().to_string()
}

/// A manifest that differs from the golden one.
fn other(store: &Store) -> String {
    let text = fs::read_to_string(golden()).unwrap().replace("ward-robot-01", "ward-robot-02");
    store.write("other.toml", text)
}

/// Runs with a passphrase in the environment.
fn with_passphrase(store: &Store, args: &[&str], passphrase: &str) -> CommandResult {
    ran(store.command().args(args).env("IPSE_PASSPHRASE", passphrase))
}

fn openssl(args: &[&str]) -> CommandResult {
    ran(assert_cmd::Command::new("openssl").args(args))
}

#[test]
fn init_makes_keys_once_and_says_so() {
    let store = Store::nothing();
    let words = ["keys in ", "ipse.db.keys: log.key, operator.key (keep them; give log.vkey"];
    init(&store, &golden()).ended(0, &words);
    assert_eq!(mode(&key_file(&store, "")), 0o700);
    for name in ["log.key", "operator.key"] {
        assert_eq!(mode(&key_file(&store, name)), 0o600, "{name}");
    }
    let before = (read(&store, "log.key"), read(&store, "operator.key"));
    let again = store.run(&["init", "--manifest", &golden(), "--json"]).fine();
    assert!(!again.err.contains("keys"), "{}", again.err);
    assert_eq!(again.members(), ["created", "identity_hash", "rule_version"]);
    assert_eq!(before, (read(&store, "log.key"), read(&store, "operator.key")));
    init(&store, &other(&store)).fine();
    let lines: Vec<NoteKey> =
        read(&store, "log.vkey").lines().map(|line| NoteKey::parse(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "a line for each identity");
    assert_eq!(lines[0].key(), lines[1].key());
    assert_ne!(lines[0].name(), lines[1].name());
}

#[test]
fn openssl_reads_the_keys() {
    let store = Store::new();
    let file = |name| key_file(&store, name).to_str().unwrap().to_string();
    let public = openssl(&["pkey", "-in", &file("operator.key"), "-pubout"]).fine().out;
    assert_eq!(public, read(&store, "operator.pub"));
    openssl(&["pkey", "-pubin", "-noout", "-in", &file("operator.pub")]).fine();
    openssl(&["pkey", "-noout", "-in", &file("log.key")]).fine();
    let locked = Store::nothing();
    let args = ["init", "--manifest", &golden(), "--passphrase"];
    with_passphrase(&locked, &args, "a word").fine();
    let file = key_file(&locked, "log.key").to_str().unwrap().to_string();
    assert!(read(&locked, "log.key").contains("ENCRYPTED"));
    openssl(&["pkey", "-noout", "-in", &file, "-passin", "pass:a word"]).fine();
    assert_ne!(openssl(&["pkey", "-noout", "-in", &file, "-passin", "pass:b"]).code, 0);
}

/// The SHA-256 of a public key's DER, as OpenSSL writes it.
fn sha256_of(public: &Path) -> String {
    let args = ["pkey", "-pubin", "-outform", "DER", "-in", public.to_str().unwrap()];
    let der = assert_cmd::Command::new("openssl").args(args).output().unwrap();
    assert!(der.status.success());
    hex::encode(&sha256(&[&der.stdout]))
}

/// A directory with an operator's key by OpenSSL, of which only the private half is named as in a
/// key directory.
fn keys_of_openssl(store: &Store, name: &str) -> PathBuf {
    let directory = store.directory.path().join(name);
    fs::create_dir(&directory).unwrap();
    let file = |name: &str| directory.join(name).to_str().unwrap().to_string();
    let private = file("operator.key");
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", &private]).fine();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    openssl(&["pkey", "-in", &private, "-pubout", "-out", &file("public.pem")]).fine();
    directory
}

#[test]
fn a_manifest_names_a_key_that_is_older_than_the_store() {
    let store = Store::nothing();
    store.run(&["key", "new", "operator"]).ended(2, &["no store"]);
    let made = store.directory.path().join("made");
    let key_dir = made.to_str().unwrap();
    let new = store.run(&["key", "new", "operator", "--key-dir", key_dir]).fine();
    assert!(NoteKey::parse(new.out.trim()).is_some_and(|key| key.name() == "operator"));
    store.run(&["key", "new", "operator", "--key-dir", key_dir]).ended(2, &["already exists"]);
    store.run(&["key", "new", "log", "--key-dir", key_dir]).ended(2, &["no store"]);
    let cases = [(made, "operator.pub"), (keys_of_openssl(&store, "foreign"), "public.pem")];
    for (at, (directory, public)) in cases.into_iter().enumerate() {
        let public = directory.join(public);
        let wanted = format!("my-organisation <sha256:{}>", sha256_of(&public));
        let new = ["manifest", "new", "--operator-key", public.to_str().unwrap()];
        assert_eq!(store.run(&[&new[..], &["--json"]].concat()).json()["operator"], wanted);
        let template = store.run(&new).fine().out;
        assert!(template.contains(&format!("\noperator = \"{wanted}\"\n")), "{template}");
        let manifest = store.write("named.toml", template);
        assert!(!store.path.exists(), "no store yet");
        let path = store.directory.path().join(format!("{at}.db"));
        let key = fs::read(directory.join("operator.key")).unwrap();
        let (path, key_dir) = (path.to_str().unwrap(), directory.to_str().unwrap());
        let init = ["--key-dir", key_dir, "init", "--manifest", &manifest];
        let ran = ran(super::store::binary().args(["--store", path]).args(init)).fine();
        assert!(ran.err.contains("log.key (keep them") && !ran.err.contains("operator.key"));
        assert_eq!(fs::read(directory.join("operator.key")).unwrap(), key);
        assert_eq!(sha256_of(&directory.join("operator.pub")), sha256_of(&public));
    }
}

#[test]
fn a_key_that_the_manifest_does_not_name_is_not_the_operator_s() {
    let store = Store::nothing();
    let (ours, theirs) = (keys_of_openssl(&store, "ours"), keys_of_openssl(&store, "theirs"));
    let text = |path: PathBuf| path.to_str().unwrap().to_string();
    let public = text(ours.join("public.pem"));
    let template = store.run(&["manifest", "new", "--operator-key", &public]).fine().out;
    let manifest = store.write("named.toml", template);
    let words = ["names the operator key sha256:", "operator.pub", "hint: copy operator.key"];
    init(&store, &manifest).ended(2, &words);
    let other = ["--key-dir", &text(theirs.clone()), "init", "--manifest", &manifest];
    store.run(&other).ended(2, &words);
    assert!(!store.path.exists() && !key_file(&store, "").exists(), "nothing was created");
    let key_dir = text(ours.clone());
    let run = |args: &[&str]| store.run(&[&["--key-dir", &key_dir], args].concat());
    run(&["init", "--manifest", &manifest]).fine();
    let trust = ["--trust", &text(ours.join("log.vkey")), &text(ours.join("operator.pub"))];
    for (name, code) in [("good.ipse", 0), ("swapped.ipse", 1)] {
        let file = text(store.directory.path().join(name));
        run(&["export", "-o", &file]).fine();
        let copy = Store::nothing();
        let keys = key_file(&copy, "");
        fs::create_dir(&keys).unwrap();
        fs::copy(&public, keys.join("operator.pub")).unwrap();
        init(&copy, &manifest).fine();
        let ran = copy.run(&[&["import-bundle", &file], &trust[..]].concat());
        let words = ["FAIL operator: the manifest names the key sha256:", "does not count"];
        ran.ended(code, if code == 0 { &[] } else { &words });
        // The next bundle is signed by another key, which the importer trusts.
        fs::copy(theirs.join("operator.key"), ours.join("operator.key")).unwrap();
        fs::copy(theirs.join("public.pem"), ours.join("operator.pub")).unwrap();
    }
}

#[test]
fn a_file_without_a_public_key_is_not_named() {
    let store = Store::nothing();
    let keys = keys_of_openssl(&store, "keys");
    let no_key = store.write("no.pem", "no key");
    let private = keys.join("operator.key").to_str().unwrap().to_string();
    let cases = [(private, "private key"), (no_key, "not an Ed25519"), ("none".into(), "no key")];
    for (file, words) in cases {
        let ran = store.run(&["manifest", "new", "--operator-key", &file]);
        assert!(ran.ended(2, &[words]).out.is_empty());
    }
    let odd = fs::read_to_string(golden()).unwrap().replace("Hospital", "<sha256:12>");
    let ran = init(&store, &store.write("odd.toml", odd));
    ran.ended(0, &["note: field `operator` has `<sha256:` but is not"]);
}

#[test]
fn the_operator_certifies_who_this_is() {
    let store = Store::new();
    let envelope = store.run(&["identity", "--certificate"]).fine().out;
    assert_eq!(envelope.matches('\n').count(), 1);
    let list = store.run(&["key", "list", "--json"]).fine().json();
    let operator = list.as_array().unwrap().iter().find(|key| key["role"] == "operator").unwrap();
    let key = NoteKey::parse(operator["public_key"].as_str().unwrap()).unwrap();
    let trusted = [key];
    let (statement, by) =
        dsse::open(envelope.trim().as_bytes(), Certificate::TYPE, &trusted).unwrap();
    assert_eq!(by[0].name(), "operator");
    let certificate = Certificate::read(&statement).unwrap();
    let canonical = store.run(&["identity", "--canonical"]).fine().out;
    assert_eq!(certificate.manifest, canonical);
    fs::remove_file(key_file(&store, "operator.key")).unwrap();
    let words = ["no key at", "operator.key", "hint:", "ipse key new operator"];
    store.run(&["identity", "--certificate"]).ended(2, &words);
}

#[test]
fn passphrases_come_from_the_environment_or_a_file_without_a_terminal() {
    let store = Store::nothing();
    let make = ["init", "--manifest", &golden(), "--passphrase"];
    store.run(&make).ended(2, &["no terminal to ask", "IPSE_PASSPHRASE_FILE"]);
    assert!(!store.path.exists(), "nothing is registered before");
    with_passphrase(&store, &make, "").ended(2, &["1 to 1024 bytes"]);
    let word = store.write("word", "a word\nmore\n");
    let from_file = |args: &[&str], file: &str| {
        ran(store.command().args(args).env("IPSE_PASSPHRASE_FILE", file))
    };
    from_file(&make, &word).fine();
    let certify = ["identity", "--certificate"];
    from_file(&certify, &word).fine();
    with_passphrase(&store, &certify, "a word").fine();
    with_passphrase(&store, &certify, "b").ended(2, &["does not open", "hint:"]);
    store.run(&certify).ended(2, &["is encrypted, and no passphrase", "IPSE_PASSPHRASE_FILE"]);
    from_file(&certify, "/nowhere").ended(2, &["could not read /nowhere"]);
    let list = store.run(&["key", "list"]).fine().out;
    assert_eq!(list.matches("here, encrypted").count(), 2, "{list}");
    init(&store, &other(&store)).fine();
    assert_eq!(read(&store, "log.vkey").lines().count(), 2, "no passphrase is needed for that");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let store = Store::new();
    let file = key_file(&store, "operator.key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    store.run(&["identity", "--certificate"]).ended(2, &["other users can read", "chmod 600"]);
    assert!(store.run(&["key", "list"]).fine().out.contains("others may read it"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    store.run(&["identity", "--certificate"]).fine();
    for text in ["nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
        fs::remove_file(&file).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        store.run(&["identity", "--certificate"]).ended(2, &["is not a valid key", "openssl"]);
    }
}

#[test]
fn the_key_directory_can_be_elsewhere_and_need_not_be_writable() {
    let store = Store::nothing();
    let keys = store.directory.path().join("elsewhere");
    ran(store.command().args(["init", "--manifest", &golden()]).env("IPSE_KEYS", &keys)).fine();
    assert!(keys.join("log.key").is_file());
    assert!(!key_file(&store, "").exists());
    let flag = ["--key-dir", keys.to_str().unwrap(), "identity", "--certificate"];
    store.run(&flag).fine();
    let none = Store::nothing();
    let args = ["--key-dir", "/proc/none", "init", "--manifest", &golden()];
    let words = ["registered in", "the keys in /proc/none are not complete", "`ipse init` again"];
    let ran = none.run(&args).ended(1, &words);
    assert_eq!(ran.out.trim().len(), 64);
    let again = none.run(&[&args[..], &["--json"]].concat()).ended(1, &["already registered"]);
    assert_eq!(again.members(), ["created", "identity_hash", "keys_error", "rule_version"]);
    assert!(again.json()["keys_error"].as_str().unwrap().contains("/proc/none"));
    init(&none, &golden()).fine();
}

#[test]
fn a_key_is_revoked_before_another_is_made() {
    let store = Store::new();
    init(&store, &other(&store)).fine();
    let first = read(&store, "log.vkey");
    store.run(&["key", "new", "log"]).ended(2, &["already", "ipse key revoke"]);
    store.run(&["key", "revoke", "log"]).ended(0, &["revoked/log-", "ipse key new log"]);
    store.run(&["key", "revoke", "log"]).ended(2, &["no key at", "log.key"]);
    let made = store.run(&["key", "new", "log"]).fine().out;
    assert_eq!(made, read(&store, "log.vkey"));
    assert_eq!(made.lines().count(), 2, "for every identity");
    assert_ne!(made, first);
    let before = store.run(&["--identity", "b113", "key", "list", "--json"]).fine().json();
    let states: Vec<_> =
        before.as_array().unwrap().iter().map(|key| key["state"].clone()).collect();
    assert_eq!(states, ["here", "here", "revoked"]);
    store.run(&["key", "revoke", "operator", "--json"]).fine();
    store.run(&["--identity", "b113", "identity", "--certificate"]).ended(2, &["operator.key"]);
    let made = store.run(&["key", "new", "operator"]).fine().out;
    assert!(NoteKey::parse(made.trim()).is_some_and(|key| key.name() == "operator"));
    store.run(&["--identity", "b113", "identity", "--certificate"]).fine();
}

#[test]
fn producers_are_registered_listed_and_revoked() {
    let store = Store::new();
    let vkey = store
        .run(&["key", "new", "producer", "arm-7", "--any-source"])
        .ended(0, &["registered;"])
        .out;
    assert_eq!(vkey, read(&store, "producers/arm-7.vkey"));
    store
        .run(&["key", "new", "producer", "arm-7", "--any-source"])
        .ended(2, &["ipse key revoke arm-7"]);
    let out = store.directory.path().join("leg.key");
    let make =
        ["key", "new", "producer", "leg", "--any-source", "--out", out.to_str().unwrap(), "--json"];
    let leg = store.run(&make).fine();
    assert_eq!(leg.members(), ["key_id", "name", "public_key", "role", "state"]);
    assert_eq!(mode(&out), 0o600);
    let register = |vkey: &str, name: &str| {
        store.run(&["key", "new", "producer", name, "--any-source", "--public", vkey])
    };
    register(vkey.trim(), "arm-8").ended(2, &["called `arm-7`, not `arm-8`"]);
    register(vkey.trim(), "arm-7").fine();
    let list = store.run(&["key", "list"]).fine().out;
    assert_eq!(list.matches("registered").count(), 2, "{list}");
    store.run(&["key", "revoke", "arm-7"]).ended(0, &["revoked/producer-arm-7-"]);
    store.run(&["key", "revoke", "arm-7"]).ended(1, &["nothing was changed"]);
    let again = store.run(&["key", "new", "producer", "arm-7", "--any-source"]).fine().out;
    assert_ne!(again, vkey, "the name is free for another key");
    let list = store.run(&["key", "list", "--json"]).fine().json();
    let named = list.as_array().unwrap().iter().filter(|key| key["name"] == "arm-7");
    let states: Vec<_> = named.map(|key| key["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["revoked", "registered"]);
}

/// The list of a key is fixed when the key is registered.
#[test]
fn a_key_has_the_sources_that_it_was_registered_with() {
    let store = Store::new();
    let key = |args: &[&str]| store.run(&[&["key", "new", "producer", "arm"], args].concat());
    key(&[]).ended(2, &["give --source SOURCE", "or --any-source"]);
    key(&["--source", "a", "--any-source"]).ended(2, &["cannot be used with"]);
    for bad in ["", "*", "a*b", "ipse", "a\nb"] {
        key(&["--source", bad]).ended(2, &["is not a valid source"]);
    }
    let many: Vec<String> = (0..17).map(|n| format!("--source=arm-{n}")).collect();
    key(&many.iter().map(String::as_str).collect::<Vec<_>>()).ended(2, &["at most 16 sources"]);
    assert!(!store.run(&["key", "list"]).fine().out.contains("producer"), "nothing was made");
    let made = key(&["--source", "arm", "--source", "otel:*", "--source", "arm", "--json"]).fine();
    assert_eq!(made.json()["sources"], serde_json::json!(["arm", "otel:*"]));
    let listed = store.run(&["key", "list", "--json"]).fine().json();
    let listed = listed.as_array().unwrap().iter().find(|key| key["name"] == "arm").cloned();
    assert_eq!(listed.unwrap()["sources"], serde_json::json!(["arm", "otel:*"]));
    let table = store.run(&["key", "list"]).fine().out;
    assert!(table.contains(" arm, otel:*  registered"), "{table}");
    let public = made.json()["public_key"].as_str().unwrap().to_owned();
    key(&["--public", &public, "--source", "arm", "--source", "otel:*"]).fine();
    for other in [&["--any-source"][..], &["--source", "arm"]] {
        let words = ["registered with other sources", "arm, otel:*", "revoke it"];
        key(&[&["--public", &public], other].concat()).ended(2, &words);
    }
    store.run(&["verify"]).fine();
}

#[test]
fn bad_keys_and_names_are_refused() {
    let store = Store::new();
    let weak: [u8; 32] = std::array::from_fn(|at| u8::from(at == 0));
    assert!(PublicKey::new(&weak).is_none());
    for vkey in [WEAK, "", "arm", "arm+00000000+AQID", "arm+x+y+z", "\u{1b}[31m"] {
        let ran = store.run(&["key", "new", "producer", "arm", "--any-source", "--public", vkey]);
        assert!(!ran.ended(2, &["neither a file nor a verifier key"]).err.contains('\u{1b}'));
    }
    for name in [".arm", "a/b", "a b", "operator", "log", "", &"x".repeat(65)] {
        store
            .run(&["key", "new", "producer", name, "--any-source"])
            .ended(2, &["valid producer name", "hint"]);
    }
    store.run(&["key", "new", "baker"]).ended(2, &["baker"]);
    store.run(&["key", "revoke", "../x"]).ended(2, &["is not a valid producer name"]);
    store.run(&["key", "revoke", "stranger"]).ended(1, &["nothing was changed"]);
    let there = store.write("there.key", "mine");
    let make = ["key", "new", "producer", "arm", "--any-source", "--out", &there];
    store.run(&make).ended(2, &["already"]);
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
    let list = store.run(&["key", "list"]).fine().out;
    assert!(!list.contains("producer"), "{list}");
    let none = Store::nothing();
    none.run(&["key", "list"]).ended(2, &["no store at"]);
    none.run(&["key", "new", "log"]).ended(2, &["no store at"]);
}

#[test]
fn on_a_terminal_it_asks_and_does_not_show_what_is_typed() {
    let store = Store::nothing();
    let make = format!("init --manifest {} --passphrase", golden());
    let ran = on_a_terminal(&store, &make, "one\ntwo\n");
    assert!(ran.code == 2 && ran.out.contains("the passphrases differ"), "{}", ran.out);
    assert!(!store.path.exists());
    let ran = on_a_terminal(&store, &make, "a word\na word\n");
    assert_eq!(ran.code, 0, "{}", ran.out);
    with_passphrase(&store, &["identity", "--certificate"], "a word").fine();
    let ran = on_a_terminal(&store, "identity --certificate", "a word\n");
    assert!(ran.code == 0 && ran.out.contains("passphrase for "), "{}", ran.out);
    for answer in ["n\n", "", "what\n"] {
        let ran = on_a_terminal(&store, "key revoke log", answer);
        assert!(ran.code == 1 && ran.out.contains("nothing was changed"), "{}", ran.out);
    }
    assert_eq!(on_a_terminal(&store, "key revoke log", "y\n").code, 0);
    assert_eq!(on_a_terminal(&store, "key revoke operator --yes", "").code, 0);
    store.run(&["key", "list"]).fine();
}

/// Every form in which a seed could leak: bytes, hex, and base64 at each of its offsets.
fn forms(seed: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![seed.to_vec(), ipse_core::hex::encode(seed).into_bytes()];
    for skip in 0..3 {
        // Whole groups of three bytes have the same digits at every place.
        let whole = &seed[skip..skip + (seed.len() - skip) / 3 * 3];
        let mut openssl = assert_cmd::Command::new("openssl");
        openssl.args(["base64", "-A"]).write_stdin(whole);
        forms.push(ran(&mut openssl).fine().out.into_bytes());
    }
    forms
}

fn seed(store: &Store, name: &str) -> Vec<u8> {
    let text = read(store, name);
    let (_, document) = pkcs8::SecretDocument::from_pem(&text).unwrap();
    let bytes = document.as_bytes();
    bytes[bytes.len() - 32..].to_vec()
}

#[test]
fn a_private_key_is_in_its_file_and_nowhere_else() {
    let store = Store::new();
    let reader = rusqlite::Connection::open(&store.path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM manifest").unwrap();
    let events = vector("facts/glass_cup.events.jsonl");
    let (events, key) = (events.to_str().unwrap(), key_file(&store, "producers/arm.key"));
    let key = key.to_str().unwrap();
    let mut seen = Vec::new();
    for args in [
        &["key", "new", "producer", "arm", "--any-source"][..],
        &["key", "list"],
        &["key", "list", "--json"],
        &["identity", "--certificate"],
        &["sign", events, "--key", key, "--name", "arm"],
        &["import", events],
        &["verify"],
    ] {
        let ran = store.run(args).fine();
        seen.extend([ran.out.into_bytes(), ran.err.into_bytes()]);
    }
    for file in fs::read_dir(store.directory.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            seen.push(fs::read(path).unwrap());
        }
    }
    assert!(
        store.directory.path().join("ipse.db-wal").is_file(),
        "the write-ahead log is looked at"
    );
    for name in ["log.key", "operator.key", "producers/arm.key"] {
        let seed = seed(&store, name);
        let forms = forms(&seed);
        let holds = |bytes: &[u8], form: &[u8]| bytes.windows(form.len()).any(|w| w == form);
        let file = fs::read(key_file(&store, name)).unwrap();
        assert!(forms.iter().any(|form| holds(&file, form)), "the control: {name} itself");
        for bytes in &seen {
            assert!(!forms.iter().any(|form| holds(bytes, form)), "{name} was betrayed");
        }
    }
}

/// A key in a directory that other users can write to could be replaced.
#[test]
fn a_directory_that_others_may_write_to_holds_no_key() {
    let store = Store::new();
    let directory = key_file(&store, "");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    store.run(&["tree-head", "--sign"]).ended(2, &["other users can write", "chmod go-w"]);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    store.run(&["tree-head", "--sign"]).fine();
    // A key that does not match the published one does not sign either.
    fs::copy(key_file(&store, "operator.key"), key_file(&store, "log.key")).unwrap();
    store.run(&["tree-head", "--sign"]).ended(2, &["log.key is not the private half of"]);
}

/// Unfinished files of a dead process are removed.
#[test]
fn unfinished_files_are_swept_and_revoked_keys_stay_revoked() {
    let store = Store::new();
    let key = store.run(&["key", "new", "producer", "arm", "--any-source"]).fine().out;
    let left = key_file(&store, "producers/.new-abc");
    fs::write(&left, "half a key").unwrap();
    store.run(&["key", "revoke", "arm"]).fine();
    store
        .run(&["key", "new", "producer", "arm", "--any-source", "--public", key.trim()])
        .ended(2, &["revoked"]);
    store.run(&["key", "new", "producer", "leg", "--any-source"]).fine();
    assert!(!left.exists());
    let given =
        ["key", "new", "producer", "x", "--any-source", "--public", "-----BEGIN PRIVATE KEY-----"];
    let reported = store.run(&given).ended(2, &["neither a file nor a verifier key"]);
    assert!(!reported.err.contains("BEGIN PRIVATE"), "what may be a secret is not shown");
}
