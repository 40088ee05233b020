//! Signed statements: in-toto Statement v1 in a DSSE 1.0 envelope.
//!
//! **Invariants:** what is signed binds the type of the payload, and the type is compared; a
//! statement that ipse signs is canonical JSON. A producer's may be in any form of strict JSON,
//! with the same members: what is signed, kept and compared are its bytes.

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
/// Signatures of an envelope at most.
pub const MAX_SIGNATURES: usize = 16;
/// Nesting of an envelope and of a statement at most.
const MAX_DEPTH: usize = 16;

/// Whether a line of a file of events is an envelope that signs the events before it, and no event:
/// it has the three members of an envelope. An event may have any of them as an extension.
pub fn is_envelope(line: &[u8]) -> bool {
    let hint = b"\"payloadType\"";
    let has_members = |line: &[u8]| {
        let value = json_parse::parse(line, MAX_DEPTH).ok()?;
        let object = value.as_object()?;
        let members = ["payload", "payloadType", "signatures"];
        Some(members.iter().all(|name| object.get(name).is_some()))
    };
    // Few lines have the hint: only those are parsed.
    line.windows(hint.len()).any(|part| part == hint) && has_members(line) == Some(true)
}

/// Why an envelope is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EnvelopeError {
    /// It has not the form of an envelope.
    Malformed,
    /// Its payload is of another type.
    PayloadType,
    /// It has more signatures than [`MAX_SIGNATURES`].
    TooManySignatures,
    /// No trusted key signed it.
    Untrusted,
    /// A trusted key is named, and the signature is not its own.
    WrongSignature,
    /// A key id has the name of a trusted key, and no trusted key of that name has the id.
    OtherKey,
    /// The payload is no statement in canonical form.
    NoStatement,
    /// The payload is no statement in any form.
    NotAStatement,
    /// It is a statement about something else.
    PredicateType,
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EnvelopeError::Malformed => "this is no signed envelope",
            EnvelopeError::PayloadType => "the payload is of another type",
            EnvelopeError::TooManySignatures => "the envelope has more than 16 signatures",
            EnvelopeError::Untrusted => "no trusted key signed the envelope",
            EnvelopeError::WrongSignature => "the signature of the envelope is not its key's",
            EnvelopeError::OtherKey => {
                "the envelope names a key under a trusted name, and it is none of the trusted keys"
            }
            EnvelopeError::NoStatement => "the payload is no statement in canonical form",
            EnvelopeError::NotAStatement => {
                "the payload is no in-toto statement v1 in strict JSON with the members that \
                 docs/formats/ledger.md lists, and no others"
            }
            EnvelopeError::PredicateType => "the statement is about something else",
        })
    }
}

impl core::error::Error for EnvelopeError {}

/// What is signed: type and payload, each with its length.
pub fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// The id under which an envelope names a key: name and id, as in a verifier key.
pub fn key_id(key: &NoteKey) -> String {
    format!("{}+{}", key.name(), hex::encode(&key.id()))
}

/// The name of the key that an id names.
pub fn owner(key_id: &str) -> &str {
    key_id.split('+').next().unwrap_or_default()
}

/// A statement about things that are named by their SHA-256.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// Names and digests, in hex.
    pub subjects: Vec<(String, String)>,
    /// What kind of statement it is.
    pub predicate_type: String,
    /// What it says, as canonical JSON of an object.
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

    /// Reads canonical bytes, and nothing else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::parse_any_form(bytes).filter(|statement| statement.canonical().as_bytes() == bytes)
    }

    /// Reads the bytes of a statement in any form of strict JSON: white space, order and escapes
    /// are free. Members that a statement here does not have are not.
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

/// Signs a statement; the envelope is one line of canonical JSON.
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

/// Reads an envelope that a trusted key signed, and the statement of that type in it, which must be
/// in canonical form.
pub fn open<'k>(
    envelope: &[u8],
    predicate_type: &str,
    trusted: &'k [NoteKey],
) -> Result<(Statement, Vec<&'k NoteKey>), EnvelopeError> {
    let read = |payload: &[u8]| Statement::parse(payload).ok_or(EnvelopeError::NoStatement);
    open_with(envelope, predicate_type, trusted, read)
}

/// The same for the statement of a producer, which may be in any form of strict JSON: libraries for
/// in-toto write no canonical one.
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

fn read_parts(envelope: &[u8]) -> Option<Parts> {
    json_parse::parse(envelope, MAX_DEPTH).ok()?.as_object().and_then(Parts::read)
}

/// Statements that were met, each at a place. Payloads and keys are compared, not envelopes: the
/// same statement in another encoding is the same statement.
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

/// An envelope, taken apart.
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
            // Two keys of one name may share an id: four bytes are soon found.
            match trusted.iter().filter(named).find(|key| key.key().verifies(&message, signature)) {
                Some(key) if found.contains(&key) => {}
                Some(key) => found.push(key),
                None if trusted.iter().any(|key| named(&key)) => {
                    return Err(EnvelopeError::WrongSignature);
                }
                // Taken for a stranger's, the statement of a trusted key would not count.
                None if trusted.iter().any(|key| owner(id) == key.name()) => {
                    return Err(EnvelopeError::OtherKey);
                }
                None => {}
            }
        }
        if found.is_empty() { Err(EnvelopeError::Untrusted) } else { Ok(found) }
    }
}
