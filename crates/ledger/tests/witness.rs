//! Cosignatures and requests to witnesses, against vectors that another implementation made.
#![allow(missing_docs, clippy::unwrap_used)]

mod all;

use all::All;
use ipse_ledger::cosignature::{MAX_COSIGNATURES, cosignatures, cosigned_note, signed_by};
use ipse_ledger::tree::{consistency, is_consistent};
use ipse_ledger::{
    CosignRequest, Cosignature, Edge, Note, NoteKey, TreeHead, WitnessKey, entry_hash,
};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../vectors/ledger/witness.json")).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn head(note: &str) -> TreeHead {
    TreeHead::parse(Note::parse(note).unwrap().text).unwrap()
}

/// The witnesses of the vectors, with their cosignatures.
fn witnesses(vectors: &Value) -> Vec<(WitnessKey, Cosignature, &Value)> {
    let mut all = Vec::new();
    for one in vectors["witnesses"].as_array().unwrap() {
        let key = WitnessKey::parse(text(&one["vkey"])).unwrap();
        all.push((key, Cosignature::parse(text(&one["line"])).unwrap(), one));
    }
    all
}

#[test]
fn requests_are_those_of_the_vectors() {
    let vectors = vectors();
    let (mut edge, mut nodes) = (Edge::default(), All::default());
    for entry in vectors["entries"].as_array().unwrap() {
        nodes.push(&mut edge, entry_hash(text(entry).as_bytes()));
    }
    let note = text(&vectors["head"]);
    for request in vectors["requests"].as_array().unwrap() {
        let (old, body) = (request["old"].as_u64().unwrap(), text(&request["body"]));
        let proof = consistency(&nodes, old, 7).unwrap().unwrap();
        let ours = CosignRequest { old, proof, note: note.to_owned() };
        assert_eq!(ours.text(), body, "{old}");
        assert_eq!(CosignRequest::parse(body), Some(ours.clone()), "{old}");
        if old == 3 {
            let (was, is) = (head(text(&vectors["old_head"])), head(note));
            assert!(is_consistent((3, &was.root), (7, &is.root), &ours.proof));
        }
    }
}

#[test]
fn a_request_has_one_form() {
    let vectors = vectors();
    let body = text(&vectors["requests"][3]["body"]);
    let hash = body.lines().nth(1).unwrap();
    for bad in [
        body.replacen("old 3", "old 03", 1),
        body.replacen("old 3", "old +3", 1),
        body.replacen("old 3", "new 3", 1),
        body.replacen("old 3\n", "old 3\r\n", 1),
        body.replacen(hash, &hash[1..], 1),
        body.replacen(hash, &(format!("{hash}\n").repeat(64) + hash), 1),
        body.replacen("\n\n", "\n", 2),
        String::new(),
    ] {
        assert_eq!(CosignRequest::parse(&bad), None, "{bad}");
    }
}

#[test]
fn a_cosignature_verifies_under_its_key_its_text_and_its_time_alone() {
    let vectors = vectors();
    let head = head(text(&vectors["head"])).text();
    let all = witnesses(&vectors);
    for (key, cosignature, vector) in &all {
        assert_eq!(key.to_string(), text(&vector["vkey"]));
        assert_eq!([key.key_id(), cosignature.key_id()], [text(&vector["key_id"]); 2]);
        assert_eq!(
            (cosignature.line().as_str(), cosignature.name()),
            (text(&vector["line"]), key.name())
        );
        assert_eq!(cosignature.time(), vector["time"].as_u64().unwrap());
        assert_eq!(cosignature.when(), text(&vector["when"]));
        assert!(cosignature.verifies(&head, key));
        assert!(!cosignature.verifies(&head.replace("\n7\n", "\n8\n"), key));
        let others = all.iter().filter(|(other, ..)| other != key);
        others.for_each(|(other, ..)| assert!(!cosignature.verifies(&head, other)));
    }
}

/// Each flipped bit of a line makes it another cosignature, or none.
#[test]
fn every_bit_of_a_line_counts() {
    let vectors = vectors();
    let head = head(text(&vectors["head"])).text();
    for (key, cosignature, _) in witnesses(&vectors) {
        let line = cosignature.line();
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut bytes = line.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let Ok(bad) = String::from_utf8(bytes) else { continue };
                let read = Cosignature::parse(&bad);
                assert!(!read.is_some_and(|read| read.verifies(&head, &key)), "{at} {bit}: {bad}");
            }
        }
    }
}

#[test]
fn keys_of_other_types_and_weak_keys_are_no_witnesses() {
    let vectors = vectors();
    let good = text(&vectors["witnesses"][0]["vkey"]);
    assert!(WitnessKey::parse(good).is_some());
    assert!(NoteKey::parse(good).is_none(), "the key of a witness signs no tree heads");
    assert!(WitnessKey::parse(text(&vectors["log"])).is_none(), "a log is no witness");
    let (name, rest) = good.split_once('+').unwrap();
    for bad in [
        format!("{name}x+{rest}"),
        good.replacen("+", "++", 1),
        format!("{good} "),
        good[..good.len() - 4].to_owned(),
        good.replace("witness", "wit ness"),
    ] {
        assert!(WitnessKey::parse(&bad).is_none(), "{bad}");
    }
    // A key of small order, with the id that belongs to it.
    for point in [[0; 32], {
        let mut one = [0; 32];
        one[0] = 1;
        one
    }] {
        let bytes = [&[4], &point[..]].concat();
        let hash = ipse_core::sha256(&[b"weak\n", &bytes]);
        let (id, key) = (ipse_core::hex::encode(&hash[..4]), ipse_ledger::base64::encode(&bytes));
        assert!(WitnessKey::parse(&format!("weak+{id}+{key}")).is_none());
    }
}

#[test]
fn a_note_carries_cosignatures_by_name_after_the_signature_of_the_log() {
    let vectors = vectors();
    let (plain, whole) = (text(&vectors["head"]), text(&vectors["cosigned"]));
    let mut lines: Vec<Cosignature> =
        witnesses(&vectors).into_iter().map(|(_, line, _)| line).collect();
    assert_eq!(cosigned_note(plain, lines.clone()), whole);
    lines.reverse();
    assert_eq!(cosigned_note(plain, lines.clone()), whole, "the order of arrival has no effect");
    assert_eq!(cosigned_note(plain, Vec::new()), plain);
    assert_eq!(cosignatures(whole).len(), 3);
    assert!(cosignatures(plain).is_empty(), "the signature of the log is no cosignature");
    assert_eq!(signed_by(whole, &head(plain).origin), plain);
    let log = [NoteKey::parse(text(&vectors["log"])).unwrap()];
    assert_eq!(Note::parse(whole).unwrap().verify(&log).unwrap().len(), 1);
    // Lines before the last empty line belong to the text.
    let inside = format!("{}\n\nx\n\n— a AAAA\n", lines[0].line());
    assert!(cosignatures(&inside).is_empty());
    // More lines than a note may have make no note that verifiers reject.
    let many = cosigned_note(plain, vec![lines[0].clone(); 20]);
    assert_eq!(cosignatures(&many).len(), MAX_COSIGNATURES);
    assert!(Note::parse(&many).is_ok());
}
