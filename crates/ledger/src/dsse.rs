//! Signed statements: in-toto Statement v1 in a DSSE 1.0 envelope.
//!
//! **Invariants:** the signature covers the type of the payload, and the type is checked. A
//! statement that ipse signs is canonical JSON. A producer's statement may be any strict JSON with
//! the same members: its bytes are signed, stored and compared.

use crate::base64;
use crate::note::{NoteKey, NoteSigner};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use ipse_core::json::{Members, Object, Value, list};
use ipse_core::{hex, json_parse, sha256};

/// The type of every payload here.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The maximum number of signatures of an envelope.
pub const MAX_SIGNATURES: usize = 16;
/// The maximum nesting of an envelope and of a statement.
const MAX_DEPTH: usize = 16;

/// Whether a line of a file of events is an envelope that signs the events before it: it has all
/// three members of an envelope. An event may have some of them as extensions.
pub fn is_envelope(line: &[u8]) -> bool {
    let hint = b"\"payloadType\"";
    let has_members = |line: &[u8]| {
        let value = json_parse::parse(line, MAX_DEPTH).ok()?;
        let object = value.as_object()?;
        let members = ["payload", "payloadType", "signatures"];
        Some(members.iter().all(|name| object.get(name).is_some()))
    };
    // Only the few lines with the hint are parsed.
    line.windows(hint.len()).any(|part| part == hint) && has_members(line) == Some(true)
}

/// The reason why an envelope is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EnvelopeError {
    /// It does not have the form of an envelope.
    Malformed,
    /// Its payload is of another type.
    PayloadType,
    /// It has more signatures than [`MAX_SIGNATURES`].
    TooManySignatures,
    /// No trusted key signed it.
    Untrusted,
    /// The signature under the name of a trusted key is wrong.
    WrongSignature,
    /// A key id has the name of a trusted key, but no trusted key of that name has the id.
    OtherKey,
    /// The payload is not a statement in canonical form.
    NoStatement,
    /// The payload is not a statement in any form.
    NotAStatement,
    /// The statement has another predicate type.
    PredicateType,
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EnvelopeError::Malformed => "this is not a signed envelope",
            EnvelopeError::PayloadType => "the payload is of another type",
            EnvelopeError::TooManySignatures => "the envelope has more than 16 signatures",
            EnvelopeError::Untrusted => "no trusted key signed the envelope",
            EnvelopeError::WrongSignature => "the signature of the envelope does not match its key",
            EnvelopeError::OtherKey => {
                "the envelope names a key with a trusted name that is not a trusted key"
            }
            EnvelopeError::NoStatement => "the payload is not a statement in canonical form",
            EnvelopeError::NotAStatement => {
                "the payload is not an in-toto statement v1 in strict JSON with exactly the \
                 members that docs/formats/ledger.md lists"
            }
            EnvelopeError::PredicateType => "the statement has another predicate type",
        })
    }
}

impl core::error::Error for EnvelopeError {}

/// The bytes that are signed: type and payload, each with its length.
pub fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// The id of a key in envelopes: name and id, as in a verifier key.
pub fn key_id(key: &NoteKey) -> String {
    format!("{}+{}", key.name(), hex::encode(&key.id()))
}

/// The name of the key in a key id.
pub fn owner(key_id: &str) -> &str {
    key_id.split('+').next().unwrap_or_default()
}

/// An in-toto statement about subjects that are identified by their SHA-256.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Names and digests, in hex.
    pub subjects: Vec<(String, String)>,
    /// The predicate type.
    pub predicate_type: String,
    /// The predicate: the canonical JSON of an object.
    pub predicate: String,
}

impl Statement {
    /// Canonical bytes.
    pub fn canonical(&self) -> String {
        let subject = |(name, digest): &(String, String)| {
            let digest = Members::new().text("sha256", digest).finish();
            Members::new().raw("digest", digest).text("name", name).finish()
        };
        Members::new()
            .text("_type", STATEMENT_TYPE)
            .raw("predicate", &self.predicate)
            .text("predicateType", &self.predicate_type)
            .raw("subject", list(self.subjects.iter().map(subject)))
            .finish()
    }

    /// Reads canonical bytes. Rejects any other form.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::parse_any_form(bytes).filter(|statement| statement.canonical().as_bytes() == bytes)
    }

    /// Reads a statement in any form of strict JSON, with any white space, order and escapes.
    /// Rejects unknown members.
    pub fn parse_any_form(bytes: &[u8]) -> Option<Self> {
        let value = json_parse::parse(bytes, MAX_DEPTH).ok()?;
        let object = value.as_object()?;
        if object.get("_type")?.as_text()? != STATEMENT_TYPE {
            return None;
        }
        let predicate = object.get("predicate")?;
        predicate.as_object()?;
        let mut text = String::new();
        predicate.write(&mut text);
        let Value::Array(subjects) = object.get("subject")? else { return None };
        let statement = Statement {
            subjects: subjects.iter().map(subject).collect::<Option<_>>()?,
            predicate_type: object.get("predicateType")?.as_text()?.to_string(),
            predicate: text,
        };
        let mut canonical = String::new();
        value.write(&mut canonical);
        (statement.canonical() == canonical).then_some(statement)
    }
}

fn subject(value: &Value<'_>) -> Option<(String, String)> {
    let subject = value.as_object()?;
    let digest = subject.get("digest")?.as_object()?.get("sha256")?.as_text()?;
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = digest.len() == 64 && digest.bytes().all(lower);
    fits.then_some((subject.get("name")?.as_text()?.to_string(), digest.to_string()))
}

/// Signs a statement. The envelope is one line of canonical JSON.
pub fn sign(statement: &Statement, signer: &NoteSigner) -> String {
    let payload = statement.canonical();
    let signature = signer.sign_bytes(&pre_authentication(PAYLOAD_TYPE, payload.as_bytes()));
    let signature = Members::new()
        .text("keyid", &key_id(&signer.public()))
        .text("sig", &base64::encode(&signature))
        .finish();
    Members::new()
        .text("payload", &base64::encode(payload.as_bytes()))
        .text("payloadType", PAYLOAD_TYPE)
        .raw("signatures", format!("[{signature}]"))
        .finish()
}

/// Reads an envelope that a trusted key signed, and its statement, which must have this predicate
/// type and be in canonical form.
pub fn open<'k>(
    envelope: &[u8],
    predicate_type: &str,
    trusted: &'k [NoteKey],
) -> Result<(Statement, Vec<&'k NoteKey>), EnvelopeError> {
    let read = |payload: &[u8]| Statement::parse(payload).ok_or(EnvelopeError::NoStatement);
    open_with(envelope, predicate_type, trusted, read)
}

/// Like [`open`], for the statement of a producer. It may be in any form of strict JSON, because
/// in-toto libraries do not write canonical JSON.
pub fn open_any_form<'k>(
    envelope: &[u8],
    predicate_type: &str,
    trusted: &'k [NoteKey],
) -> Result<(Statement, Vec<&'k NoteKey>), EnvelopeError> {
    let read =
        |payload: &[u8]| Statement::parse_any_form(payload).ok_or(EnvelopeError::NotAStatement);
    open_with(envelope, predicate_type, trusted, read)
}

fn open_with<'k>(
    envelope: &[u8],
    predicate_type: &str,
    trusted: &'k [NoteKey],
    read: impl FnOnce(&[u8]) -> Result<Statement, EnvelopeError>,
) -> Result<(Statement, Vec<&'k NoteKey>), EnvelopeError> {
    let parts = read_parts(envelope).ok_or(EnvelopeError::Malformed)?;
    if parts.payload_type != PAYLOAD_TYPE {
        return Err(EnvelopeError::PayloadType);
    }
    if parts.signatures.len() > MAX_SIGNATURES {
        return Err(EnvelopeError::TooManySignatures);
    }
    let signers = parts.signers(trusted)?;
    let statement = read(&parts.payload)?;
    if statement.predicate_type != predicate_type {
        return Err(EnvelopeError::PredicateType);
    }
    Ok((statement, signers))
}

/// The ids of the keys that an envelope names; empty if it cannot be read.
pub fn key_ids(envelope: &[u8]) -> Vec<String> {
    let parts = read_parts(envelope);
    parts.into_iter().flat_map(|parts| parts.signatures).map(|(id, _)| id).collect()
}

/// The ids of an envelope that have the name of a trusted key and are no trusted key.
pub fn other_ids(envelope: &[u8], trusted: &[NoteKey]) -> Vec<String> {
    let mut ids = key_ids(envelope);
    ids.retain(|id| trusted.iter().any(|key| key.name() == owner(id)));
    ids.retain(|id| !trusted.iter().any(|key| key_id(key) == *id));
    ids
}

fn read_parts(envelope: &[u8]) -> Option<Parts> {
    json_parse::parse(envelope, MAX_DEPTH).ok()?.as_object().and_then(Parts::read)
}

/// An index that finds duplicate statements. It compares payloads and keys, not envelopes: the same
/// statement in another encoding is a duplicate.
#[derive(Clone, Debug)]
pub struct StatementIndex<P>(BTreeMap<([u8; 32], String), P>);

impl<P> Default for StatementIndex<P> {
    fn default() -> Self {
        StatementIndex(BTreeMap::new())
    }
}

impl<P: Copy> StatementIndex<P> {
    /// Adds an envelope. Returns the place of an earlier one if all keys that this one names signed
    /// the same payload before.
    pub fn add(&mut self, envelope: &[u8], place: P) -> Option<P> {
        let parts = read_parts(envelope)?;
        let signed = sha256(&[&pre_authentication(&parts.payload_type, &parts.payload)]);
        let (mut earlier, mut new) = (None, false);
        for (id, _) in parts.signatures {
            match self.0.entry((signed, id)) {
                Entry::Occupied(met) => earlier = Some(*met.get()),
                Entry::Vacant(entry) => {
                    entry.insert(place);
                    new = true;
                }
            }
        }
        earlier.filter(|_| !new)
    }
}

/// A parsed envelope.
struct Parts {
    payload_type: String,
    payload: Vec<u8>,
    signatures: Vec<(String, Vec<u8>)>,
}

impl Parts {
    fn read(object: &Object<'_>) -> Option<Self> {
        let text = |object: &Object<'_>, name: &str| Some(object.get(name)?.as_text()?.to_string());
        let Value::Array(signatures) = object.get("signatures")? else { return None };
        let signature = |value: &Value<'_>| {
            let object = value.as_object()?;
            Some((text(object, "keyid")?, base64::decode(object.get("sig")?.as_text()?)?))
        };
        Some(Parts {
            payload_type: text(object, "payloadType")?,
            payload: base64::decode(object.get("payload")?.as_text()?)?,
            signatures: signatures.iter().map(signature).collect::<Option<_>>()?,
        })
    }

    fn signers<'k>(&self, trusted: &'k [NoteKey]) -> Result<Vec<&'k NoteKey>, EnvelopeError> {
        let message = pre_authentication(&self.payload_type, &self.payload);
        let mut found = Vec::new();
        for (id, signature) in &self.signatures {
            let named = |key: &&NoteKey| key_id(key) == *id;
            // Two keys of one name may share an id: collisions of four bytes are easy to find.
            match trusted.iter().filter(named).find(|key| key.key().verifies(&message, signature)) {
                Some(key) if found.contains(&key) => {}
                Some(key) => found.push(key),
                None if trusted.iter().any(|key| named(&key)) => {
                    return Err(EnvelopeError::WrongSignature);
                }
                // Do not ignore it as an unknown key: the statement of a trusted name would then
                // silently not count.
                None if trusted.iter().any(|key| owner(id) == key.name()) => {
                    return Err(EnvelopeError::OtherKey);
                }
                None => {}
            }
        }
        if found.is_empty() { Err(EnvelopeError::Untrusted) } else { Ok(found) }
    }
}
