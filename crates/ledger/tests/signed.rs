//! Notes, tree heads, proof files and envelopes: published examples, our own, and rejected ones.
#![allow(missing_docs, clippy::unwrap_used)]

mod all;

use all::All;
use ipse_core::sha256;
use ipse_ledger::dsse::{self, EnvelopeError, Statement, StatementIndex};
use ipse_ledger::note::NoteError;
use ipse_ledger::proof::ProofError;
use ipse_ledger::tree::inclusion;
use ipse_ledger::{
    Edge, Note, NoteKey, NoteSigner, ProofFile, PublicKey, SecretKey, TreeHead, base64, entry_hash,
};
use proptest::prelude::*;

fn signer(name: &str) -> NoteSigner {
    NoteSigner::new(name, SecretKey::from_seed(&sha256(&[name.as_bytes()]))).unwrap()
}

/// The example of Go's `golang.org/x/mod/sumdb/note`.
const NEUMANN: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PROBLEM: &str = "If you think cryptography is the answer to your problem,\n\
                       then you don't know what your problem is.\n";
const SIGNED: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1\
                      FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

#[test]
fn a_note_that_go_signed_verifies() {
    let key = NoteKey::parse(NEUMANN).unwrap();
    assert_eq!(key.to_string(), NEUMANN);
    let note = format!("{PROBLEM}\n{SIGNED}");
    let read = Note::parse(&note).unwrap();
    assert_eq!(read.text, PROBLEM);
    assert_eq!(read.verify(std::slice::from_ref(&key)).unwrap(), [&key]);
    let changed = note.replace("answer", "question");
    assert_eq!(Note::parse(&changed).unwrap().verify(&[key]), Err(NoteError::WrongSignature));
}

#[test]
fn notes_are_what_they_must_be() {
    let (ours, other) = (signer("ipse/a"), signer("ipse/b"));
    let note = ours.sign("one\n\ntwo\n").unwrap();
    let keys = [ours.public(), other.public()];
    assert_eq!(Note::parse(&note).unwrap().verify(&keys).unwrap(), [&keys[0]]);
    assert_eq!(Note::parse(&note).unwrap().verify(&keys[1..]), Err(NoteError::Untrusted));
    // The same name with another key is another key.
    let twin = NoteSigner::new("ipse/a", SecretKey::from_seed(&[1; 32])).unwrap().public();
    assert_eq!(Note::parse(&note).unwrap().verify(&[twin]), Err(NoteError::Untrusted));
    let line = note.lines().last().unwrap().to_string() + "\n";
    let theirs = other.sign("one\n\ntwo\n").unwrap().lines().last().unwrap().to_string() + "\n";
    let both = note.clone() + &theirs;
    assert_eq!(Note::parse(&both).unwrap().verify(&keys).unwrap().len(), 2);
    let many = note.clone() + &theirs.repeat(15);
    assert!(Note::parse(&many).unwrap().verify(&keys).is_ok());
    assert_eq!(Note::parse(&(many + &theirs)), Err(NoteError::TooManySignatures));
    for bad in [
        String::new(),
        "one\n".into(),
        line.clone(),
        format!("one\n{line}"),
        format!("one\n\n{}", line.trim_end()),
        format!("one\r\n\n{line}"),
        format!("one\n\r\n{line}"),
        format!("one\n\n{}", line.replace('\n', "\r\n")),
        format!("one\n\n{line}\n"),
        format!("one\n\n{line}\n{line}").replace("one", "\u{7}"),
        format!("one\n\n{}", line.replace('\u{2014}', "-")),
        format!("one\n\n{}", line.replace("ipse/a", "")),
        format!("one\n\n{}", line.replace("ipse/a", "a+b")),
        format!("one\n\n{}", line.replace("ipse/a", "a\u{a0}b")),
        format!("one\n\n{}", line.replace('=', "")),
        "one\n\n\u{2014} a AAAAAA==\n".into(),
        "one\n\n\u{2014} a AAAA\n".into(),
        "one\n\n\u{2014} a\n".into(),
    ] {
        assert_eq!(Note::parse(&bad), Err(NoteError::Malformed), "{bad:?}");
    }
    for text in ["", "no newline", "tab\t\n", "nul\0\n"] {
        assert_eq!(ours.sign(text), None, "{text:?}");
    }
    for name in ["", "a b", "a+b", "a\u{2003}b", "a\nb"] {
        assert!(NoteSigner::new(name, SecretKey::from_seed(&[1; 32])).is_none(), "{name:?}");
    }
}

#[test]
fn keys_are_strict() {
    let key = signer("k").public();
    assert_eq!(NoteKey::parse(&key.to_string()), Some(key.clone()));
    let text = key.to_string();
    for bad in [
        text.replace("k+", "l+"),
        text.replace('+', " "),
        text.to_uppercase(),
        text[..text.len() - 1].to_string(),
        format!("{text} "),
        String::new(),
    ] {
        assert_eq!(NoteKey::parse(&bad), None, "{bad}");
    }
}

#[test]
fn weak_keys_are_no_keys() {
    // Every encoding of the points of small order (RFC 8032's curve has eight), and no points.
    let far = |low: u8, high: u8| {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (low, high);
        bytes
    };
    let near = |low: u8, high: u8| {
        let mut bytes = [0; 32];
        (bytes[0], bytes[31]) = (low, high);
        bytes
    };
    let eighth = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05";
    let other = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
    let digits = |text: &str, high: u8| {
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap();
        }
        bytes[31] |= high;
        bytes
    };
    for weak in [
        near(0, 0),
        near(0, 0x80),
        near(1, 0),
        near(1, 0x80),
        far(0xec, 0x7f),
        far(0xec, 0xff),
        far(0xed, 0x7f),
        far(0xed, 0xff),
        far(0xee, 0x7f),
        far(0xee, 0xff),
        digits(eighth, 0),
        digits(eighth, 0x80),
        digits(other, 0),
        digits(other, 0x80),
    ] {
        assert!(PublicKey::new(&weak).is_none(), "{weak:02x?}");
    }
}

#[test]
fn signatures_are_strict() {
    let secret = SecretKey::from_seed(&[9; 32]);
    let signature = secret.sign(b"m");
    assert!(secret.public().verifies(b"m", &signature));
    for length in [0, 63, 65] {
        let mut cut = signature.to_vec();
        cut.resize(length, 0);
        assert!(!secret.public().verifies(b"m", &cut));
    }
    // The same number with the order of the group added: a lenient verifier takes it.
    let order = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut malleable = signature;
    let mut carry = 0_u16;
    for (byte, more) in malleable[32..].iter_mut().zip(order) {
        carry += u16::from(*byte) + more;
        *byte = (carry & 0xff) as u8;
        carry >>= 8;
    }
    assert!(!secret.public().verifies(b"m", &malleable));
    assert!(!format!("{secret:?}").contains("0909"), "a secret is not printed");
}

#[test]
fn heads_have_three_lines() {
    let head = TreeHead { origin: "ipse/x".into(), size: 20_852_163, root: [7; 32] };
    assert_eq!(TreeHead::parse(&head.text()), Some(head.clone()));
    assert_eq!(TreeHead::parse(&TreeHead { size: 0, ..head.clone() }.text()).unwrap().size, 0);
    let text = head.text();
    for bad in [
        text.replace("20852163", "020852163"),
        text.replace("20852163", "+20852163"),
        text.replace("20852163", "-1"),
        text.replace("20852163", "18446744073709551616"),
        text.replace("20852163", ""),
        text.replace("ipse/x", ""),
        text.replace('\n', "\r\n"),
        text.replace("=\n", "\n"),
        text.replace("Bwc=", "Bwd="),
        text.clone() + "extension\n",
        text.trim_end().to_string(),
        String::new(),
    ] {
        assert_eq!(TreeHead::parse(&bad), None, "{bad:?}");
    }
}

/// A proof file for entry 5 of 11.
fn proof() -> (ProofFile, NoteKey) {
    let (mut edge, mut all) = (Edge::default(), All::default());
    (0..11_u8).for_each(|n| all.push(&mut edge, entry_hash(&[n])));
    let head = TreeHead { origin: "ipse/x".into(), size: 11, root: edge.root() };
    let signer = signer("ipse/x");
    let hashes = inclusion(&all, 5, 11).unwrap().unwrap();
    let note = signer.sign(&head.text()).unwrap();
    (ProofFile { index: 5, hashes, note }, signer.public())
}

#[test]
fn proof_files_prove_one_entry_of_one_log() {
    let (file, key) = proof();
    let text = file.text();
    assert!(text.starts_with("c2sp.org/tlog-proof@v1\nindex 5\n"), "{text}");
    assert_eq!(ProofFile::parse(&text), Some(file.clone()));
    let keys = [key];
    assert_eq!(file.verify(&[5], "ipse/x", &keys).unwrap().size, 11);
    assert_eq!(file.verify(&[6], "ipse/x", &keys), Err(ProofError::Path));
    assert_eq!(file.verify(&[5], "ipse/y", &keys), Err(ProofError::Origin));
    let strange = [signer("ipse/y").public()];
    assert_eq!(file.verify(&[5], "ipse/x", &strange), Err(ProofError::Signature));
    let moved = ProofFile { index: 4, ..file.clone() };
    assert_eq!(moved.verify(&[5], "ipse/x", &keys), Err(ProofError::Path));
    let mut short = file.clone();
    short.hashes.pop();
    assert_eq!(short.verify(&[5], "ipse/x", &keys), Err(ProofError::Path));
    let grown = ProofFile { note: file.note.replace("\n11\n", "\n12\n"), ..file.clone() };
    assert_eq!(grown.verify(&[5], "ipse/x", &keys), Err(ProofError::Signature));
    let none = ProofFile { note: signer("ipse/x").sign("no head\n").unwrap(), ..file };
    assert_eq!(none.verify(&[5], "ipse/x", &keys), Err(ProofError::NoHead));
    for bad in [
        text.replace("@v1", "@v2"),
        text.replace("index 5", "index 05"),
        text.replace("index 5", "index -5"),
        text.replace("index 5\n", "extra AAAA\nindex 5\n"),
        text.replace("index 5\n", ""),
        text.replace('\n', "\r\n"),
        text.replacen("=\n", "\n", 1),
        text.split("\n\n").next().unwrap().to_string(),
    ] {
        let read = ProofFile::parse(&bad);
        assert!(read.is_none_or(|file| file.verify(&[5], "ipse/x", &keys).is_err()), "{bad}");
    }
}

const ABOUT: &str = "https://ipse.example/test/v1";

fn statement() -> Statement {
    Statement {
        subjects: vec![("a".into(), "0f".repeat(32)), ("b \"c\"".into(), "1".repeat(64))],
        predicate_type: ABOUT.into(),
        predicate: "{\"n\":1,\"z\":{\"q\":[]}}".into(),
    }
}

#[test]
fn what_is_signed_is_type_and_payload() {
    let encoded = dsse::pre_authentication("http://example.com/HelloWorld", b"hello world");
    assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

#[test]
fn envelopes_hold_one_statement_of_one_kind() {
    let (ours, other) = (signer("operator"), signer("other"));
    let keys = [ours.public()];
    let envelope = dsse::sign(&statement(), &ours);
    let (read, signers) = dsse::open(envelope.as_bytes(), ABOUT, &keys).unwrap();
    assert_eq!((read, signers), (statement(), vec![&keys[0]]));
    let fails = |envelope: &str| dsse::open(envelope.as_bytes(), ABOUT, &keys).unwrap_err();
    assert_eq!(fails(&dsse::sign(&statement(), &other)), EnvelopeError::Untrusted);
    let aside = Statement { predicate_type: "https://ipse.example/else".into(), ..statement() };
    assert_eq!(fails(&dsse::sign(&aside, &ours)), EnvelopeError::PredicateType);
    let wrong = envelope.replace("in-toto+json", "in-toto-json");
    assert_eq!(fails(&wrong), EnvelopeError::PayloadType);
    let value: serde_json::Value = serde_json::from_str(&envelope).unwrap();
    let signature = value["signatures"][0].to_string();
    let with =
        |signatures: &str| envelope.replace(&format!("[{signature}]"), &format!("[{signatures}]"));
    assert_eq!(fails(&with("")), EnvelopeError::Untrusted);
    let sixteen = vec![signature.clone(); 16].join(",");
    assert!(dsse::open(with(&sixteen).as_bytes(), ABOUT, &keys).is_ok());
    let more = format!("{sixteen},{signature}");
    assert_eq!(fails(&with(&more)), EnvelopeError::TooManySignatures);
    let sig = value["signatures"][0]["sig"].as_str().unwrap();
    let flipped =
        if sig.starts_with('A') { sig.replacen('A', "B", 1) } else { format!("A{}", &sig[1..]) };
    assert_eq!(fails(&envelope.replace(sig, &flipped)), EnvelopeError::WrongSignature);
    for bad in ["", "[]", "{}", "{\"payload\":1}", "null", &envelope[1..], &envelope.repeat(2)] {
        assert_eq!(fails(bad), EnvelopeError::Malformed, "{bad}");
    }
    // An untrusted key with a trusted name, alone and next to the trusted one.
    let rival = NoteSigner::new("operator", SecretKey::from_seed(&[77; 32])).unwrap();
    let rivals = dsse::sign(&statement(), &rival);
    assert_eq!(fails(&rivals), EnvelopeError::OtherKey);
    let rivals: serde_json::Value = serde_json::from_str(&rivals).unwrap();
    let both = with(&format!("{signature},{}", rivals["signatures"][0]));
    assert_eq!(fails(&both), EnvelopeError::OtherKey);
    // Signed, but not canonical.
    let loose = Statement { predicate: "{\"z\":1,\"a\":2}".into(), ..statement() };
    assert_eq!(fails(&dsse::sign(&loose, &ours)), EnvelopeError::NoStatement);
    let short = Statement { subjects: vec![("a".into(), "0f".into())], ..statement() };
    assert_eq!(fails(&dsse::sign(&short, &ours)), EnvelopeError::NoStatement);
}

/// An envelope around any payload.
fn around(payload: &str, signer: &NoteSigner) -> String {
    let message = dsse::pre_authentication(dsse::PAYLOAD_TYPE, payload.as_bytes());
    let signature = serde_json::json!({
        "keyid": dsse::key_id(&signer.public()),
        "sig": base64::encode(&signer.sign_bytes(&message)),
    });
    serde_json::json!({
        "payload": base64::encode(payload.as_bytes()),
        "payloadType": dsse::PAYLOAD_TYPE,
        "signatures": [signature],
    })
    .to_string()
}

#[test]
fn a_producers_statement_may_be_in_any_form_of_strict_json() {
    let (ours, keys) = (signer("arm"), [signer("arm").public()]);
    let canonical = statement().canonical();
    let value: serde_json::Value = serde_json::from_str(&canonical).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    let escaped = canonical.replace("predicateType", "predicate\\u0054ype");
    let moved = canonical.replacen('{', "{\"predicateType\":\"P\",", 1).replacen(
        &format!(",\"predicateType\":\"{ABOUT}\""),
        "",
        1,
    );
    let moved = moved.replace("\"P\"", &format!("\"{ABOUT}\""));
    for form in [&canonical, &pretty, &escaped, &moved] {
        let envelope = around(form, &ours);
        let (read, signers) = dsse::open_any_form(envelope.as_bytes(), ABOUT, &keys).expect(form);
        assert_eq!((read, signers), (statement(), vec![&keys[0]]), "{form}");
        let strict = dsse::open(envelope.as_bytes(), ABOUT, &keys).map(|(read, _)| read);
        let want =
            if *form == canonical { Ok(statement()) } else { Err(EnvelopeError::NoStatement) };
        assert_eq!(strict, want, "{form}");
    }
    for bad in [
        canonical.replacen('{', "{\"_type\":\"x\",", 1),
        canonical.replacen('{', "{\"more\":1,", 1),
        canonical.replace("{\"digest\"", "{\"uri\":\"x\",\"digest\""),
        canonical.replace("{\"sha256\"", "{\"sha1\":\"x\",\"sha256\""),
        canonical.replace("\"n\":1", "\"n\":1,\"n\":2"),
        canonical.replace("\"n\":1", "\"n\":9007199254740993"),
        canonical.replace("\"n\":1", "\"n\":\"\\u0000\""),
        canonical.replace("0f0f", "0F0F"),
        canonical.replace("Statement/v1", "Statement/v0.1"),
        format!("{canonical}{canonical}"),
        format!("\u{feff}{canonical}"),
        canonical[1..].to_string(),
        String::new(),
    ] {
        assert_ne!(bad, canonical);
        let opened = dsse::open_any_form(around(&bad, &ours).as_bytes(), ABOUT, &keys);
        assert_eq!(opened.unwrap_err(), EnvelopeError::NotAStatement, "{bad}");
    }
    // Another form is another payload, hence another statement.
    let mut index = StatementIndex::default();
    assert_eq!(index.add(around(&canonical, &ours).as_bytes(), 1), None);
    assert_eq!(index.add(around(&pretty, &ours).as_bytes(), 2), None);
    assert_eq!(index.add(around(&pretty, &ours).replace(':', ": ").as_bytes(), 3), Some(2));
}

#[test]
fn a_statement_is_met_once_whatever_its_envelope() {
    let (ours, other) = (signer("operator"), signer("other"));
    let envelope = dsse::sign(&statement(), &ours);
    let mut index = StatementIndex::default();
    let mut add = |envelope: &str, place: u64| index.add(envelope.as_bytes(), place);
    assert_eq!(add(&envelope, 1), None);
    assert_eq!(add(&envelope.replacen('{', "{\"a\":1,", 1), 2), Some(1), "a member more");
    assert_eq!(add(&envelope.replace(':', " : "), 3), Some(1), "white space");
    let others = dsse::sign(&statement(), &other);
    let beside = others.split_once("\"signatures\":[").unwrap().1;
    let both = envelope.replace("]}", &format!(",{beside}"));
    assert_eq!(add(&both, 4), None, "another key");
    assert_eq!(add(&others, 5), Some(4));
    let more = Statement { predicate_type: "https://ipse.example/else".into(), ..statement() };
    assert_eq!(add(&dsse::sign(&more, &ours), 6), None, "another statement");
    assert_eq!(add("{}", 7), None);
    assert_eq!(add("{}", 8), None, "unreadable");
}

proptest! {
    /// No input causes a panic.
    #[test]
    fn anything_is_read_or_refused(text in "\\PC{0,200}(\n\n\\PC{0,100}\n)?", bytes: Vec<u8>) {
        let keys = [signer("k").public()];
        if let Ok(note) = Note::parse(&text) {
            prop_assert!(note.verify(&keys).is_err());
        }
        let _ = (TreeHead::parse(&text), NoteKey::parse(&text), ProofFile::parse(&text));
        let _ = Statement::parse(&bytes);
        prop_assert!(dsse::open(&bytes, ABOUT, &keys).is_err());
        prop_assert!(!keys[0].key().verifies(&bytes, text.as_bytes()));
    }

    /// Every byte of a note is covered.
    #[test]
    fn a_changed_note_is_refused(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let ours = signer("ipse/x");
        let note = ours.sign("ipse/x\n7\nAAAA\n").unwrap();
        let mut bytes = note.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(changed) = String::from_utf8(bytes)
            && let Ok(note) = Note::parse(&changed)
        {
            prop_assert!(note.verify(&[ours.public()]).is_err());
        }
    }
}
