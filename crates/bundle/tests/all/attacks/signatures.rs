//! Attacks on signatures: tree heads, statements, keys, the list of hashes; rollback and fork.

use super::{Attack, Case, bytes, draft, refused};
use crate::forge::{Draft, MANIFEST, camera, event, identity_of, log_key, operator, robot, signer};
use crate::forge::{Log, manifest_naming, sums_of, trusted, trusted_with, week};
use ipse_core::json::Members;
use ipse_core::{hex, sha256};
use ipse_ledger::dsse::{Statement, key_id, pre_authentication, sign};
use ipse_ledger::{Certificate, NoteSigner, TreeHead, base64};

const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// An envelope with its signature repeated `times` times.
fn envelope(kind: &str, payload: &str, signer: &NoteSigner, times: usize) -> String {
    let signature = signer.sign_bytes(&pre_authentication(kind, payload.as_bytes()));
    let signature = Members::new()
        .text("keyid", &key_id(&signer.public()))
        .text("sig", &base64::encode(&signature))
        .finish();
    Members::new()
        .text("payload", &base64::encode(payload.as_bytes()))
        .text("payloadType", kind)
        .raw("signatures", format!("[{}]", vec![signature; times].join(",")))
        .finish()
}

/// A week with another envelope over the list of hashes, made from the true statement.
fn sums_sig(make: fn(Statement) -> String) -> Case {
    let mut draft = week().draft();
    draft.sums_sig = Some(make(draft.bundled(&sums_of(&draft.members())).statement()));
    Case::of(draft.pack())
}

/// A week with another list of hashes, which is signed.
fn sums(change: fn(String) -> String) -> Case {
    let mut draft = week().draft();
    draft.sums = Some(change(sums_of(&draft.members())));
    Case::of(draft.pack())
}

/// A log whose manifest names a key of the operator, for an auditor who trusts these.
fn naming(key: &NoteSigner, operators: &[NoteSigner]) -> Case {
    let manifest = manifest_naming(key);
    let mut log = Log::new(&manifest);
    log.events(1..=3);
    Case::of(log.draft().pack()).trusting(&trusted_with(&manifest, operators))
}

/// A signature that only a lenient verifier accepts: the order of the group added to `s`.
fn malleable(signature: &[u8]) -> Vec<u8> {
    let order =
        hex::decode::<32>("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let (mut signature, mut carry) = (signature.to_vec(), 0);
    let begin = signature.len() - 32;
    for (byte, add) in signature[begin..].iter_mut().zip(order.unwrap()) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
    }
    signature
}

/// A named key of small order, for which signatures can be forged.
fn weak_key(name: &str) -> String {
    let mut key = vec![1, 1];
    key.resize(33, 0);
    let id = hex::encode(&sha256(&[name.as_bytes(), b"\n", &key])[..4]);
    format!("{name}+{id}+{}", base64::encode(&key))
}

fn weak_pem() -> String {
    let der =
        [&hex::decode::<12>("302a300506032b6570032100").unwrap()[..], &[1], &[0; 31]].concat();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", base64::encode(&der))
}

fn head_of(change: fn(&mut TreeHead)) -> Case {
    let mut draft = week().draft();
    let mut head = week().head(64);
    change(&mut head);
    draft.head = log_key(&identity_of(MANIFEST)).sign(&head.text()).unwrap();
    Case::of(draft.pack())
}

/// A bundle as an attacker makes it with keys of the same names.
fn with_own_keys() -> Draft {
    let mut draft = week().draft();
    let mine = signer("operator", 66);
    draft.certificate = sign(&Certificate { manifest: MANIFEST.into() }.statement(), &mine);
    draft.operator_pub = ipse_bundle::pem(mine.public().key());
    draft.sums_signer = mine;
    draft
}

/// Another event at the end, or at an earlier place.
fn forked(seq: usize) -> Case {
    let mut other = week();
    let mut event = event(64);
    event.digest.0[0] ^= 1;
    other.rows[seq - 1].entry.digest = event.digest;
    Case::of(other.draft().pack()).anchored(week().note(64))
}

pub const ATTACKS: &[Attack] = &[
    refused("rollback to an older head", "anchor 1", "rolled back", || {
        let mut older = week();
        older.rows.truncate(44);
        older.checkpoint = 43;
        Case::of(older.draft().pack()).anchored(week().note(64))
    }),
    refused("fork of the same size", "anchor 1", "was forked", || forked(64)),
    refused("fork in the past", "anchor 1", "was forked", || forked(5)),
    refused("anchor of another log", "anchor 1", "belongs to another log", || {
        let other = crate::forge::Log::new("{}");
        draft(|_| {}).anchored(other.note(0))
    }),
    refused("anchor by an unknown key", "anchor 1", "no trusted key", || {
        let origin = TreeHead::origin_of(&identity_of(MANIFEST));
        draft(|_| {}).anchored(signer(&origin, 66).sign(&week().head(9).text()).unwrap())
    }),
    refused("anchor that is no note", "anchor 1", "not a signed note", || {
        draft(|_| {}).anchored("x".into())
    }),
    refused("head of another origin", "tree-head.note", "belongs to another log", || {
        head_of(|head| head.origin = "ipse/other".into())
    }),
    refused("head of more entries", "entries.jsonl", "covers 65, but there are 64", || {
        head_of(|head| head.size = 65)
    }),
    refused("head of fewer entries", "entries.jsonl", "covers 63, but there are 64", || {
        head_of(|head| *head = week().head(63))
    }),
    refused("head with another root", "entries.jsonl", "their root is not", || {
        head_of(|head| head.root[0] ^= 1)
    }),
    refused("head by an unknown key of that name", "tree-head.note", "no trusted key", || {
        draft(|draft| {
            let origin = TreeHead::origin_of(&draft.identity);
            draft.head = signer(&origin, 66).sign(&week().head(64).text()).unwrap();
        })
    }),
    refused("head by the operator", "tree-head.note", "no trusted key", || {
        draft(|draft| draft.head = operator().sign(&week().head(64).text()).unwrap())
    }),
    refused("head with a line of extension", "tree-head.note", "not a tree head", || {
        draft(|draft| {
            let text = format!("{}more\n", week().head(64).text());
            draft.head = log_key(&draft.identity).sign(&text).unwrap();
        })
    }),
    refused("head with CRLF", "tree-head.note", "not a signed note", || {
        draft(|draft| draft.head = draft.head.replace('\n', "\r\n"))
    }),
    refused("head with 17 signatures", "tree-head.note", "more than 16 signatures", || {
        draft(|draft| {
            let signature = draft.head.lines().last().unwrap().to_string() + "\n";
            draft.head += &signature.repeat(16);
        })
    }),
    refused("head that is no text", "tree-head.note", "not a signed note", || {
        super::listed(|files| files[6].1[0] = 0xff)
    }),
    refused("head with a lenient signature", "tree-head.note", "does not match its key", || {
        draft(|draft| {
            let (text, signature) = draft.head.trim_end().rsplit_once(' ').unwrap();
            let signature = malleable(&base64::decode(signature).unwrap());
            draft.head = format!("{text} {}\n", base64::encode(&signature));
        })
    }),
    refused(
        "head with the signature of another",
        "tree-head.note",
        "does not match its key",
        || {
            draft(|draft| {
                let other = week().note(63);
                let signature = other.rsplit_once("\n\n").unwrap().1;
                draft.head = format!("{}\n{signature}", week().head(64).text());
            })
        },
    ),
    refused("swapped log key", "keys/log.vkey", "not the log key that you trust", || {
        draft(|draft| {
            let origin = TreeHead::origin_of(&draft.identity);
            draft.log_vkey = format!("{}\n", signer(&origin, 66).public());
        })
    }),
    refused(
        "swapped operator key",
        "keys/operator.pub",
        "not the operator key that you trust",
        || draft(|draft| draft.operator_pub = ipse_bundle::pem(robot().public().key())),
    ),
    refused(
        "operator key that the manifest does not name",
        "operator",
        "its signature does not count for this agent",
        || naming(&signer("operator", 66), &[operator()]),
    ),
    refused(
        "two operator keys, signed by the one that the manifest does not name",
        "SHA256SUMS.sig",
        "no trusted operator key",
        || {
            let other = signer("operator", 66);
            naming(&other, &[operator(), other.clone()])
        },
    ),
    refused(
        "producer's key as the log's",
        "keys/log.vkey",
        "not the log key that you trust",
        || draft(|draft| draft.log_vkey = format!("{}\n", robot().public())),
    ),
    refused("weak log key", "keys/log.vkey", "only valid verifier keys", || {
        draft(|draft| {
            draft.log_vkey += &format!("{}\n", weak_key(&TreeHead::origin_of(&draft.identity)));
        })
    }),
    refused("weak operator key", "keys/operator.pub", "not a valid Ed25519", || {
        draft(|draft| draft.operator_pub = weak_pem())
    }),
    refused("weak producer key", "keys/producers.vkey", "only valid verifier keys", || {
        draft(|draft| draft.producers = Some(format!("{}\n", weak_key("robot-9"))))
    }),
    refused(
        "producer called operator",
        "keys/producers.vkey",
        "cannot be the name of a producer",
        || draft(|draft| draft.producers = Some(format!("{}\n", operator().public()))),
    ),
    refused("producer key twice", "keys/producers.vkey", "only valid verifier keys", || {
        draft(|draft| draft.producers = Some(format!("{0}\n{0}\n", robot().public())))
    }),
    refused("keys with CRLF", "keys/log.vkey", "only valid verifier keys", || {
        draft(|draft| draft.log_vkey = draft.log_vkey.replace('\n', "\r\n"))
    }),
    refused("operator key with text behind it", "keys/operator.pub", "not a valid", || {
        draft(|draft| draft.operator_pub += "x")
    }),
    refused("weak key in --trust", "", "not weak", || {
        draft(|_| {}).trusting(&weak_key("operator"))
    })
    .at_once(),
    refused("weak PEM key in --trust", "", "or a weak one", || draft(|_| {}).trusting(&weak_pem()))
        .at_once(),
    refused("key with the id of another in --trust", "", "the id of the key", || {
        draft(|_| {}).trusting(&robot().public().to_string().replace("robot-7", "robot-8"))
    })
    .at_once(),
    refused("bundle with an attacker's keys", "SHA256SUMS.sig", "no trusted operator", || {
        Case::of(with_own_keys().pack())
    }),
    refused("trust in producers only", "SHA256SUMS.sig", "no trusted operator key", || {
        draft(|_| {}).trusting(&robot().public().to_string())
    }),
    refused("sums by a producer", "SHA256SUMS.sig", "no trusted operator key", || {
        draft(|draft| draft.sums_signer = robot())
    }),
    refused("sums by the log", "SHA256SUMS.sig", "no trusted operator key", || {
        draft(|draft| draft.sums_signer = log_key(&draft.identity))
    }),
    refused("sums of another bundle", "SHA256SUMS.sig", "another SHA256SUMS", || {
        draft(|draft| {
            draft.sums_sig = Some(sign(&draft.bundled("other").statement(), &operator()));
        })
    }),
    refused("sums signed 17 times", "SHA256SUMS.sig", "more than 16 signatures", || {
        sums_sig(|statement| envelope(PAYLOAD_TYPE, &statement.canonical(), &operator(), 17))
    }),
    refused("sums signed twice", "SHA256SUMS.sig", "more than one key", || {
        sums_sig(|statement| envelope(PAYLOAD_TYPE, &statement.canonical(), &operator(), 2))
    }),
    refused("sums not signed", "SHA256SUMS.sig", "no trusted operator key", || {
        sums_sig(|statement| envelope(PAYLOAD_TYPE, &statement.canonical(), &operator(), 0))
    }),
    refused("other payload type", "SHA256SUMS.sig", "of another type", || {
        sums_sig(|statement| envelope("text/plain", &statement.canonical(), &operator(), 1))
    }),
    refused("other predicate type", "SHA256SUMS.sig", "another predicate type", || {
        draft(|draft| draft.sums_sig = Some(draft.certificate.clone()))
    }),
    refused("base 64 not canonical", "SHA256SUMS.sig", "not a signed envelope", || {
        // The last digit before the padding has unused bits.
        sums_sig(|statement| {
            let mut envelope = sign(&statement, &operator()).into_bytes();
            let padding = envelope.windows(4).position(|four| four == b"==\"}").unwrap();
            envelope[padding - 1] += 1;
            String::from_utf8(envelope).unwrap()
        })
    }),
    refused("statement with white space", "SHA256SUMS.sig", "not a statement in canonical", || {
        sums_sig(|statement| {
            let payload = statement.canonical().replace(':', ": ");
            envelope(PAYLOAD_TYPE, &payload, &operator(), 1)
        })
    }),
    refused("statement with another member", "SHA256SUMS.sig", "not about a bundle", || {
        sums_sig(|mut statement| {
            statement.predicate = statement.predicate.replace('{', "{\"a\":1,");
            sign(&statement, &operator())
        })
    }),
    refused("envelope with white space", "SHA256SUMS.sig", "not in canonical form", || {
        sums_sig(|statement| sign(&statement, &operator()) + "\n")
    }),
    refused("envelope with another member", "SHA256SUMS.sig", "unknown members", || {
        sums_sig(|statement| sign(&statement, &operator()).replacen('{', "{\"a\":1,", 1))
    }),
    refused("signature with another member", "SHA256SUMS.sig", "unknown members", || {
        sums_sig(|statement| {
            sign(&statement, &operator()).replace("{\"keyid\"", "{\"a\":1,\"keyid\"")
        })
    }),
    refused("lenient signature of sums", "SHA256SUMS.sig", "does not match its key", || {
        sums_sig(|statement| {
            let true_one = sign(&statement, &operator());
            let (before, rest) = true_one.split_once("\"sig\":\"").unwrap();
            let signature = base64::decode(rest.trim_end_matches("\"}]}")).unwrap();
            let signature = base64::encode(&malleable(&signature));
            format!("{before}\"sig\":\"{signature}\"}}]}}")
        })
    }),
    refused("bundle of another identity", "SHA256SUMS.sig", "about another identity", || {
        draft(|draft| draft.identity.0[0] ^= 1)
    }),
    refused("bundle of another size", "SHA256SUMS.sig", "another size", || {
        draft(|draft| draft.size = 65)
    }),
    refused("range beyond the log", "SHA256SUMS.sig", "is not in the log", || {
        draft(|draft| draft.to = 65)
    }),
    refused("range from 0", "SHA256SUMS.sig", "is not in the log", || {
        draft(|draft| draft.from = 0)
    }),
    refused("range that ends before it begins", "SHA256SUMS.sig", "is not in the log", || {
        let mut draft = week().draft_of(22, 44, 0);
        draft.to = 20;
        Case::of(draft.pack())
    }),
    refused("no checkpoint", "SHA256SUMS.sig", "must give a checkpoint", || {
        draft(|draft| draft.checkpoint = None)
    }),
    refused("checkpoint beyond the range", "SHA256SUMS.sig", "beyond its range", || {
        draft(|draft| draft.checkpoint = Some(65))
    }),
    refused("another checkpoint", "SHA256SUMS.sig", "the last pass ended at seq 62", || {
        Case::of(week().draft_of(1, 64, 43).pack())
    }),
    refused("facts left out", "SHA256SUMS.sig", "facts.jsonl is missing", || {
        draft(|draft| draft.facts = None)
    }),
    refused("facts in a range", "SHA256SUMS.sig", "but facts.jsonl exists", || {
        let mut draft = week().draft_of(22, 64, 0);
        draft.facts = Some(String::new());
        Case::of(draft.pack())
    }),
    refused("list with CRLF", "SHA256SUMS, line 1", "must be the hash of", || {
        sums(|sums| sums.replace('\n', "\r\n"))
    }),
    refused("list in upper case", "SHA256SUMS, line 1", "in lower-case hex", || {
        sums(|sums| {
            let (hash, rest) = sums.split_at(64);
            format!("{}{rest}", hash.to_uppercase())
        })
    }),
    refused("list without a member", "SHA256SUMS, line 5", "must be the hash of `facts", || {
        sums(|sums| sums.split_inclusive('\n').filter(|line| !line.contains("facts")).collect())
    }),
    refused("list without the last member", "SHA256SUMS", "ends before the line of", || {
        sums(|sums| sums.split_inclusive('\n').take(11).collect())
    }),
    refused("list with another member", "SHA256SUMS, line 13", "not in the bundle", || {
        sums(|sums| format!("{sums}{}  x\n", "0".repeat(64)))
    }),
    refused("list in binary mode", "SHA256SUMS, line 1", "must be the hash of", || {
        sums(|sums| sums.replace("  ", " *"))
    }),
    refused("list without its last line end", "SHA256SUMS, line 12", "line feed", || {
        sums(|sums| sums.trim_end().to_string())
    }),
    refused("list with another hash", "manifest.json", "does not match its SHA-256", || {
        sums(|sums| format!("{}{}", "0".repeat(64), &sums[64..]))
    }),
    refused("changed event, not listed", "events.jsonl, line 1", "has no entry", || {
        bytes(|bytes| {
            let place = bytes.windows(6).position(|six| six == b"slip 1").unwrap();
            bytes[place + 5] = b'2';
        })
    }),
    refused("manifest with a line end", "manifest.json", "not a canonical manifest", || {
        draft(|draft| draft.manifest += "\n")
    }),
    refused("manifest with an eighth field", "manifest.json", "not a canonical", || {
        draft(|draft| draft.manifest = draft.manifest.replacen('{', "{\"a\":\"b\",", 1))
    }),
    refused("manifest without a field", "manifest.json", "`agent_id` is missing", || {
        draft(|draft| draft.manifest = draft.manifest.replacen("agent_id", "agent_ie", 1))
    }),
    refused("another manifest", "certificate.dsse.json", "about another manifest", || {
        draft(|draft| draft.manifest = draft.manifest.replace("robot-01", "robot-02"))
    }),
    refused("certificate of another", "certificate.dsse.json", "another manifest", || {
        draft(|draft| {
            let manifest = draft.manifest.replace("robot-01", "robot-02");
            draft.certificate = sign(&Certificate { manifest }.statement(), &operator());
        })
    }),
    refused("certificate by a producer", "certificate.dsse.json", "no trusted operator", || {
        draft(|draft| {
            let certificate = Certificate { manifest: draft.manifest.clone() };
            draft.certificate = sign(&certificate.statement(), &camera());
        })
    }),
    refused(
        "certificate that is a bundle's",
        "certificate.dsse.json",
        "another predicate type",
        || draft(|draft| draft.certificate = sign(&draft.bundled("").statement(), &operator())),
    ),
    refused("certificate with white space", "certificate.dsse.json", "canonical form", || {
        draft(|draft| draft.certificate += " ")
    }),
    refused("only the log is trusted", "SHA256SUMS.sig", "no trusted operator key", || {
        let log = trusted().lines().next().unwrap().to_string();
        draft(|_| {}).trusting(&log)
    }),
];
