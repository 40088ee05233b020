//! Signed notes (C2SP `signed-note`) with Ed25519 keys.
//!
//! **Invariants:** the text of a note is not trusted until `verify` has found a trusted key. A
//! wrong signature under the name of a trusted key invalidates the note. Unknown keys are ignored.

use crate::base64;
use crate::key::{PublicKey, SecretKey};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use ipse_core::{hex, sha256};

/// The signature type of Ed25519.
const ED25519: u8 = 1;
/// The maximum number of signatures of a note: as many as every verifier must accept.
pub const MAX_SIGNATURES: usize = 16;
pub(crate) const DASH: &str = "\u{2014} ";

/// The reason why a note is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteError {
    /// It does not have the form of a note.
    Malformed,
    /// It has more signatures than [`MAX_SIGNATURES`].
    TooManySignatures,
    /// No trusted key signed it.
    Untrusted,
    /// The signature under the name of a trusted key is wrong.
    WrongSignature,
}

impl fmt::Display for NoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoteError::Malformed => "this is not a signed note",
            NoteError::TooManySignatures => "the note has more than 16 signatures",
            NoteError::Untrusted => "no trusted key signed the note",
            NoteError::WrongSignature => "the signature of the note does not match its key",
        })
    }
}

impl core::error::Error for NoteError {}

/// A named public key, as verifiers are configured with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoteKey {
    name: String,
    key: PublicKey,
}

/// Whether a text can be the name of a key.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |c: char| !c.is_whitespace() && c != '+' && !c.is_control();
    !name.is_empty() && name.chars().all(fits)
}

impl NoteKey {
    /// A key with a name; `None` if the name is not valid.
    pub fn new(name: &str, key: PublicKey) -> Option<Self> {
        is_name(name).then(|| NoteKey { name: name.to_string(), key })
    }

    /// The name of the key.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key itself.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// The key id: four bytes that identify the key together with its name.
    pub fn id(&self) -> [u8; 4] {
        let hash = sha256(&[self.name.as_bytes(), b"\n", &[ED25519], &self.key.bytes()]);
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// Reads a verifier key: name, id and key, joined by `+`. The id must match the key.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '+');
        let (name, id, key) = (parts.next()?, parts.next()?, parts.next()?);
        let key = base64::decode(key)?;
        let (kind, key) = key.split_first()?;
        let key = PublicKey::new(key.try_into().ok().filter(|_| *kind == ED25519)?)?;
        NoteKey::new(name, key).filter(|key| hex::encode(&key.id()) == id)
    }
}

impl fmt::Display for NoteKey {
    /// Writes the verifier key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = Vec::from([ED25519]);
        key.extend(self.key.bytes());
        write!(f, "{}+{}+{}", self.name, hex::encode(&self.id()), base64::encode(&key))
    }
}

/// A named secret key that signs notes.
#[derive(Clone, Debug)]
pub struct NoteSigner {
    name: String,
    key: SecretKey,
}

impl NoteSigner {
    /// A key with a name; `None` if the name is not valid.
    pub fn new(name: &str, key: SecretKey) -> Option<Self> {
        is_name(name).then(|| NoteSigner { name: name.to_string(), key })
    }

    /// The public key.
    pub fn public(&self) -> NoteKey {
        NoteKey { name: self.name.clone(), key: self.key.public() }
    }

    /// A bare signature, as in envelopes.
    pub fn sign_bytes(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message)
    }

    /// A note with this key's signature; `None` if the text cannot be that of a note.
    pub fn sign(&self, text: &str) -> Option<String> {
        if !is_text(text) {
            return None;
        }
        let mut signature = Vec::from(self.public().id());
        signature.extend(self.key.sign(text.as_bytes()));
        Some(format!("{text}\n{DASH}{} {}\n", self.name, base64::encode(&signature)))
    }
}

fn is_text(text: &str) -> bool {
    text.ends_with('\n') && !text.chars().any(|c| c < ' ' && c != '\n')
}

/// A parsed note whose signatures are not verified yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note<'a> {
    /// The signed text.
    pub text: &'a str,
    /// Names, ids and signatures.
    signatures: Vec<(&'a str, [u8; 4], Vec<u8>)>,
}

impl<'a> Note<'a> {
    /// Parses a note.
    pub fn parse(note: &'a str) -> Result<Self, NoteError> {
        // The last empty line is the separator and belongs to neither part.
        let at = note.rfind("\n\n").ok_or(NoteError::Malformed)?;
        let (text, rest) = (&note[..=at], &note[at + 2..]);
        let lines = rest.strip_suffix('\n').ok_or(NoteError::Malformed)?;
        if !is_text(text) {
            return Err(NoteError::Malformed);
        }
        let mut signatures = Vec::new();
        for line in lines.split('\n') {
            if signatures.len() == MAX_SIGNATURES {
                return Err(NoteError::TooManySignatures);
            }
            signatures.push(signature(line).ok_or(NoteError::Malformed)?);
        }
        Ok(Note { text, signatures })
    }

    /// The trusted keys that signed it.
    pub fn verify<'k>(&self, trusted: &'k [NoteKey]) -> Result<Vec<&'k NoteKey>, NoteError> {
        let mut found = Vec::new();
        for (name, id, signature) in &self.signatures {
            let named = |key: &&NoteKey| key.name == *name && key.id() == *id;
            let signed = |key: &&NoteKey| key.key.verifies(self.text.as_bytes(), signature);
            // Two keys of one name may share an id: collisions of four bytes are easy to find.
            match trusted.iter().filter(named).find(signed) {
                Some(key) if found.contains(&key) => {}
                Some(key) => found.push(key),
                None if trusted.iter().any(|key| named(&key)) => {
                    return Err(NoteError::WrongSignature);
                }
                None => {}
            }
        }
        if found.is_empty() { Err(NoteError::Untrusted) } else { Ok(found) }
    }
}

fn signature(line: &str) -> Option<(&str, [u8; 4], Vec<u8>)> {
    let (name, signature) = line.strip_prefix(DASH)?.split_once(' ')?;
    let bytes = base64::decode(signature).filter(|_| is_name(name))?;
    let (id, signature) = bytes.split_first_chunk()?;
    (!signature.is_empty()).then(|| (name, *id, signature.to_vec()))
}
