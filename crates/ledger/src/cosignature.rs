//! Cosignatures of witnesses under tree heads (C2SP `tlog-cosignature`, Ed25519), and the requests
//! for them (C2SP `tlog-witness`).
//!
//! **Invariants**
//! - A cosignature counts only under the key of a witness that the caller trusts. Other lines of a
//!   note are ignored.
//! - The key of a witness has its own type, so the key of a log is never taken for one.
//! - A request and a line have one form. Any other form is rejected.

use crate::base64;
use crate::key::PublicKey;
use crate::note::{DASH, MAX_SIGNATURES, is_name};
use crate::tree::Hash;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use ipse_core::{Time, hex, sha256};

/// The signature type of cosignatures with Ed25519.
const COSIGNATURE: u8 = 4;
/// The maximum number of cosignatures of a note, beside the signature of its log.
pub const MAX_COSIGNATURES: usize = MAX_SIGNATURES - 1;
/// The maximum number of hashes of a request.
const MAX_PROOF: usize = 63;

/// The named public key of a witness, as verifiers are configured with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WitnessKey {
    name: String,
    key: PublicKey,
}

impl WitnessKey {
    /// A key with a name; `None` if the name is not valid.
    pub fn new(name: &str, key: PublicKey) -> Option<Self> {
        is_name(name).then(|| WitnessKey { name: name.to_string(), key })
    }

    /// Reads a verifier key: name, id and key, joined by `+`. The id must match the key.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '+');
        let (name, id, key) = (parts.next()?, parts.next()?, parts.next()?);
        let key = base64::decode(key)?;
        let (kind, key) = key.split_first()?;
        let key = PublicKey::new(key.try_into().ok().filter(|_| *kind == COSIGNATURE)?)?;
        WitnessKey::new(name, key).filter(|key| hex::encode(&key.id()) == id)
    }

    /// The name of the witness.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key id: four bytes that identify the key together with its name and its type.
    pub fn id(&self) -> [u8; 4] {
        let hash = sha256(&[self.name.as_bytes(), b"\n", &[COSIGNATURE], &self.key.bytes()]);
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// Name and key id, joined by `+`.
    pub fn key_id(&self) -> String {
        key_id(&self.name, &self.id())
    }
}

impl fmt::Display for WitnessKey {
    /// Writes the verifier key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = Vec::from([COSIGNATURE]);
        key.extend(self.key.bytes());
        write!(f, "{}+{}", self.key_id(), base64::encode(&key))
    }
}

fn key_id(name: &str, id: &[u8; 4]) -> String {
    format!("{name}+{}", hex::encode(id))
}

/// A cosignature, not verified yet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cosignature {
    name: String,
    id: [u8; 4],
    time: u64,
    signature: [u8; 64],
}

impl Cosignature {
    /// Reads a line of a note, without its line feed. `None` if the line has not the form of a
    /// cosignature.
    pub fn parse(line: &str) -> Option<Self> {
        let (name, bytes) = line.strip_prefix(DASH)?.split_once(' ')?;
        let bytes = base64::decode(bytes).filter(|_| is_name(name))?;
        let (id, rest) = bytes.split_first_chunk()?;
        let (time, signature) = rest.split_first_chunk()?;
        let (time, name) = (u64::from_be_bytes(*time), name.to_string());
        let signature = signature.try_into().ok()?;
        i64::try_from(time).is_ok().then_some(Cosignature { name, id: *id, time, signature })
    }

    /// The line in a note, without its line feed.
    pub fn line(&self) -> String {
        let bytes = [&self.id[..], &self.time.to_be_bytes(), &self.signature].concat();
        format!("{DASH}{} {}", self.name, base64::encode(&bytes))
    }

    /// The name that the line gives for the witness.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name and key id that the line gives, joined by `+`.
    pub fn key_id(&self) -> String {
        key_id(&self.name, &self.id)
    }

    /// When the witness signed, by its clock: seconds since 1970.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The time as text.
    pub fn when(&self) -> String {
        let micros = i64::try_from(self.time).ok().and_then(|time| time.checked_mul(1_000_000));
        let time = micros.and_then(Time::from_micros);
        time.map_or_else(|| format!("second {}", self.time), |time| time.to_string())
    }

    /// Whether the line names this key.
    pub fn names(&self, witness: &WitnessKey) -> bool {
        self.name == witness.name && self.id == witness.id()
    }

    /// Whether a witness signed the text of this tree head.
    pub fn verifies(&self, head: &str, witness: &WitnessKey) -> bool {
        let message = cosigned_text(self.time, head);
        self.names(witness) && witness.key.verifies(message.as_bytes(), &self.signature)
    }
}

/// The text that a witness signs: its time, and the text of the tree head.
pub fn cosigned_text(time: u64, head: &str) -> String {
    format!("cosignature/v1\ntime {time}\n{head}")
}

/// The lines of a note, or of the answer of a witness, that have the form of a cosignature.
pub fn cosignatures(lines: &str) -> Vec<Cosignature> {
    // The text of a note may contain such lines. Its signatures follow the last empty line.
    let signatures = lines.rfind("\n\n").map_or(lines, |at| &lines[at + 2..]);
    signatures.lines().filter_map(Cosignature::parse).collect()
}

/// A signed tree head with cosignatures: the note of the log, and their lines sorted by the name of
/// the witness.
pub fn cosigned_note(note: &str, mut cosignatures: Vec<Cosignature>) -> String {
    cosignatures.sort();
    let lines = cosignatures.iter().take(MAX_COSIGNATURES);
    note.to_string() + &lines.map(|one| one.line() + "\n").collect::<String>()
}

/// The note with only those signatures that have this name.
pub fn signed_by(note: &str, name: &str) -> String {
    let start = format!("{DASH}{name} ");
    let at = note.rfind("\n\n").map_or(note.len(), |at| at + 2);
    let (text, signatures) = note.split_at(at);
    let own = signatures.split_inclusive('\n').filter(|line| line.starts_with(&start));
    text.to_string() + &own.collect::<String>()
}

/// The body of a request to a witness: cosign this tree head, which continues that of `old`
/// entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CosignRequest {
    /// The number of entries under the last tree head that the witness cosigned; 0 for none.
    pub old: u64,
    /// The proof of consistency.
    pub proof: Vec<Hash>,
    /// The signed tree head.
    pub note: String,
}

impl CosignRequest {
    /// The bytes to post.
    pub fn text(&self) -> String {
        let line = |hash: &Hash| base64::encode(hash) + "\n";
        let proof: String = self.proof.iter().map(line).collect();
        format!("old {}\n{proof}\n{}", self.old, self.note)
    }

    /// Reads a body.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, note) = text.split_once("\n\n")?;
        let mut lines = head.split('\n');
        let old = crate::head::number(lines.next()?.strip_prefix("old ")?)?;
        let proof = lines.map(base64::decode_hash).collect::<Option<Vec<_>>>()?;
        let note = note.to_string();
        (proof.len() <= MAX_PROOF).then_some(CosignRequest { old, proof, note })
    }
}
