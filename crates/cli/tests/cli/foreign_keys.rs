//! Keys made by OpenSSL, and statements written by an in-toto library: registered by the PEM file,
//! signed in a form that is not canonical, and verified by all programs.

use super::store::{Store, attempt, ran};
use ipse_core::{Admitted, hex};
use ipse_door::{Origin, admit};
use ipse_ledger::{NoteSigner, base64, dsse};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Runs OpenSSL in the directory of a store.
#[track_caller]
fn openssl(store: &Store, args: &[&str]) {
    ran(assert_cmd::Command::new("openssl").args(args).current_dir(store.directory.path())).fine();
}

/// A key pair: `NAME.key` and `NAME.pem`.
fn key_pair(store: &Store, name: &str, algorithm: &[&str]) -> String {
    let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
    openssl(store, &[&["genpkey", "-out", &key, "-algorithm"], algorithm].concat());
    openssl(store, &["pkey", "-in", &key, "-pubout", "-out", &pem]);
    let path = store.directory.path();
    fs::set_permissions(path.join(key), Permissions::from_mode(0o600)).unwrap();
    path.join(pem).to_str().unwrap().to_string()
}

fn register(store: &Store, name: &str, public: &str) -> super::store::CommandResult {
    store.run(&["key", "new", "producer", name, "--any-source", "--public", public])
}

#[test]
fn a_public_key_of_openssl_is_registered_by_its_file() {
    let store = Store::new();
    let pem = key_pair(&store, "arm", &["ed25519"]);
    let vkey = register(&store, "arm", &pem).ended(0, &["registered; arm may sign"]).out;
    assert!(vkey.starts_with("arm+"), "{vkey}");
    let key = store.directory.path().join("arm.key");
    let signer = ipse::keys::read_signer(&key, "arm", None).unwrap();
    assert_eq!(vkey.trim(), signer.public().to_string());
    // The same key again, in either form.
    assert_eq!(register(&store, "arm", &pem).fine().out, vkey);
    assert_eq!(register(&store, "arm", vkey.trim()).fine().out, vkey);
    let windows = fs::read_to_string(&pem).unwrap().replace('\n', "\r\n");
    assert_eq!(register(&store, "arm", &store.write("crlf.pem", windows)).fine().out, vkey);
    let other = key_pair(&store, "leg", &["ed25519"]);
    register(&store, "arm", &other).ended(2, &["`arm` has a key already"]);
    store.run(&["key", "revoke", "arm"]).fine();
    register(&store, "arm", &pem).ended(2, &["that key was revoked"]);
    register(&store, "arm", &other).fine();
}

/// The point of order one: anyone can sign under it.
const WEAK_PEM: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\
    -----END PUBLIC KEY-----\n";

/// Under another name a revoked key would count again, and one producer would look like two.
#[test]
fn a_key_has_one_name() {
    let store = Store::new();
    let public = key_pair(&store, "arm", &["ed25519"]);
    let vkey = register(&store, "arm", &public).fine().out;
    register(&store, "arm", &public).fine();
    register(&store, "arm-2", &public).ended(2, &["registered as `arm`", "arm-2"]);
    store.run(&["key", "revoke", "arm", "--yes"]).fine();
    register(&store, "arm-2", &public).ended(2, &["revoked as `arm`", "needs a new one"]);
    register(&store, "arm", &public).ended(2, &["was revoked permanently"]);
    // A file with a verifier key is accepted too.
    let other = Store::new();
    let file = other.write("arm.vkey", &vkey);
    assert_eq!(register(&other, "arm", &file).fine().out, vkey);
    register(&other, "leg", &file).ended(2, &["the key is called `arm`"]);
}

#[test]
fn other_keys_are_refused_and_say_why() {
    let store = Store::new();
    let pem = key_pair(&store, "arm", &["ed25519"]);
    let text = fs::read_to_string(&pem).unwrap();
    let private = pem.replace(".pem", ".key");
    let both = fs::read_to_string(&private).unwrap() + &text;
    let ec = key_pair(&store, "ec", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    openssl(&store, &["ec", "-in", "ec.key", "-out", "old.key"]);
    let old = store.directory.path().join("old.key");
    let cases = [
        (private, "it holds a private key; `openssl pkey -in FILE -pubout`"),
        (old.to_str().unwrap().to_string(), "it holds a private key"),
        (store.write("both.pem", both), "it holds a private key"),
        (store.write("two.pem", text.repeat(2)), "several PEM blocks"),
        (ec, "not an Ed25519 key"),
        (key_pair(&store, "x", &["x25519"]), "not an Ed25519 key"),
        (key_pair(&store, "rsa", &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]), "not an Ed25519"),
        (store.write("weak.pem", WEAK_PEM), "is a weak key"),
        (store.write("cut.pem", &text[..text.len() / 2]), "not an Ed25519 public key in PEM"),
        (store.write("empty.pem", ""), "not an Ed25519 public key in PEM"),
        (store.write("noise.pub", [0xff; 80]), "not an Ed25519 public key in PEM"),
        (store.write("label.pem", text.replace("PUBLIC", "RSA PUBLIC")), "not a public key"),
        (store.write("big.pem", "x".repeat(20_000)), "MAX_KEY_BYTES"),
        (store.directory.path().to_str().unwrap().to_string(), "not an ordinary file"),
        (format!("{pem}.gone"), "neither a file nor a verifier key"),
    ];
    for (file, why) in cases {
        let ran = register(&store, "arm", &file).ended(2, &[why]);
        assert!(!ran.err.contains("PRIVATE KEY--") && !ran.err.contains("hint"), "{}", ran.err);
    }
    let list = store.run(&["key", "list"]).fine().out;
    assert!(!list.contains("producer"), "{list}");
}

/// An envelope around the bytes of a statement.
fn envelope(payload: &str, signer: &NoteSigner) -> String {
    let message = dsse::pre_authentication(dsse::PAYLOAD_TYPE, payload.as_bytes());
    let signature = json!({
        "sig": base64::encode(&signer.sign_bytes(&message)),
        "keyid": dsse::key_id(&signer.public()),
    });
    let payload = base64::encode(payload.as_bytes());
    json!({"payloadType": dsse::PAYLOAD_TYPE, "payload": payload, "signatures": [signature]})
        .to_string()
}

/// A statement about events, as a library writes it: not canonical.
fn statement(identity: &str, events: &[Admitted]) -> Value {
    let subject = |event: &Admitted| {
        let digest = json!({"sha256": hex::encode(&event.digest.0)});
        json!({"name": event.event_ref.to_string(), "digest": digest})
    };
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": events.iter().map(subject).collect::<Vec<_>>(),
        "predicateType": "urn:ipse:sent:v1",
        "predicate": {"identity_hash": identity},
    })
}

fn events(from: usize, to: usize) -> Vec<Admitted> {
    let event = |n: usize| {
        let salt = || [u8::try_from(n).unwrap(); 16];
        admit(attempt(&n.to_string(), true).as_bytes(), Origin::Producer, salt).unwrap()
    };
    (from..to).map(event).collect()
}

fn signed_file(events: &[Admitted], envelope: &str) -> String {
    let lines: String = events.iter().map(|event| format!("{}\n", event.canonical)).collect();
    format!("{lines}{envelope}\n")
}

/// The report of the auditor's program about a bundle.
fn audited(store: &Store, vkey: &str) -> ipse_bundle::Report {
    let bundle = store.directory.path().join("log.ipse");
    store.run(&["export", "-o", bundle.to_str().unwrap()]).fine();
    let keys = store.path.with_extension("db.keys");
    let mut trust = ipse_bundle::Trust::default();
    for name in ["log.vkey", "operator.pub"] {
        trust.add(&fs::read_to_string(keys.join(name)).unwrap()).unwrap();
    }
    trust.add(vkey).unwrap();
    let bytes = fs::read(bundle).unwrap();
    ipse_bundle::verify(&bytes, &trust, &[], &mut |_, _| {}).unwrap()
}

#[test]
fn a_statement_that_is_not_canonical_counts_and_verifies() {
    let store = Store::new();
    let json = store.run(&["identity", "--json"]).fine().json();
    let identity = json["identity_hash"].as_str().unwrap();
    let pem = key_pair(&store, "arm", &["ed25519"]);
    let vkey = register(&store, "arm", &pem).fine().out;
    let key = store.directory.path().join("arm.key");
    let signer = ipse::keys::read_signer(&key, "arm", None).unwrap();
    let import = |events: &[Admitted], payload: &str| {
        let file = store.write("s.jsonl", signed_file(events, &envelope(payload, &signer)));
        store.run(&["import", &file, "--signed", "--json"])
    };
    let counts = |ran: super::store::CommandResult| {
        let json = ran.json();
        ["appended", "duplicates", "refused", "signed"].map(|name| json[name].as_u64().unwrap())
    };
    let four = events(0, 4);
    let pretty = serde_json::to_string_pretty(&statement(identity, &four)).unwrap();
    assert_eq!(counts(import(&four, &pretty).fine()), [4, 0, 0, 4]);
    assert_eq!(counts(import(&four, &pretty).fine()), [0, 4, 0, 4], "sent again");
    let kept = || {
        let db = rusqlite::Connection::open(&store.path).unwrap();
        db.query_row("SELECT count(*) FROM statement", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(kept(), 1, "payload and key are compared");
    let spaced = serde_json::to_string(&statement(identity, &four)).unwrap().replace(',', ", ");
    assert_eq!(counts(import(&four, &spaced).fine()), [0, 4, 0, 4]);
    assert_eq!(kept(), 2, "another form is another payload");
    // A statement that two readers could understand differently is rejected.
    let two = events(4, 6);
    let plain = serde_json::to_string(&statement(identity, &two)).unwrap();
    for bad in [
        plain.replacen("\"_type\"", "\"_type\":\"x\",\"_type\"", 1),
        plain.replacen("{\"identity_hash\"", "{\"note\":1,\"identity_hash\"", 1),
        plain.replacen('{', "{\"more\":1,", 1),
    ] {
        let ran = import(&two, &bad).ended(1, &["wrong_signature"]);
        assert_eq!(ran.json()["signed"], 0, "{bad}");
    }
    store.run(&["verify"]).fine();
    let report = audited(&store, &vkey);
    assert!(report.passed(), "{}", report.json());
    assert!(report.json().contains("4 events signed by 1 producer"), "{}", report.json());
}
