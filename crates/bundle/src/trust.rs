//! Trusted keys and earlier tree heads, as the verifier supplies them.
//!
//! **Invariants:** the name of a key determines its use. `operator` signs bundles and certificates,
//! `ipse/<identity>` signs that identity's log, every other name belongs to a producer. All
//! operators' keys come from one text, and so do all keys of one log. No other text can add one.

use crate::Error;
use ipse_core::{Identity, sha256};
use ipse_ledger::{NoteKey, PublicKey, TreeHead, WitnessKey, base64};

/// The name of every operator's key.
pub const OPERATOR: &str = "operator";
/// The prefix of the names of logs' keys.
const LOG: &str = "ipse/";

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";
/// The bytes before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo.
const DER_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The keys that the verifier trusts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trust {
    keys: Vec<NoteKey>,
    /// The number of keys from earlier texts.
    before: usize,
    /// The witnesses that must have cosigned the tree head.
    witnesses: Vec<WitnessKey>,
}

impl Trust {
    /// Reads verifier keys, one per line, or public keys in PEM form, or both. A PEM key is an
    /// operator's key.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut trust = Trust::default();
        trust.add(text)?;
        Ok(trust)
    }

    /// Reads more keys, from another author. A text with producers' keys cannot also name an
    /// operator or a log, and no later text can add another key to an operator or a log.
    pub fn add(&mut self, text: &str) -> Result<(), Error> {
        let mut more = Trust::default();
        more.read(text)?;
        let producers = more.keys.iter().any(|key| is_producer(key.name()));
        let own = |key: &&NoteKey| !is_producer(key.name());
        if producers && more.keys.iter().any(|key| own(&key)) {
            let message = "one text holds producers' keys and keys of an operator or a log; \
                           its author could be either: give the keys of each owner separately";
            return Err(Error::Key(message.to_string()));
        }
        for key in more.keys {
            let rival = |other: &&NoteKey| other.name() == key.name() && own(other);
            if self.keys.contains(&key) {
                continue;
            }
            if self.keys[..self.before].iter().any(|other| rival(&other)) {
                let message =
                    format!("two texts give different keys named `{}`: give only one", key.name());
                return Err(Error::Key(message));
            }
            self.keys.push(key);
        }
        self.before = self.keys.len();
        Ok(())
    }

    fn read(&mut self, text: &str) -> Result<(), Error> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut found = false;
        while let Some(line) = lines.next() {
            let key = match line {
                PEM_BEGIN => {
                    let body: String = lines.by_ref().take_while(|line| *line != PEM_END).collect();
                    operator_key(&body)?
                }
                line => verifier_key(line)?,
            };
            found = true;
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
        if found { Ok(()) } else { Err(Error::Key("the text holds no key: it is empty".into())) }
    }

    /// Requires that the witnesses with these verifier keys, one per line, cosigned the tree head.
    pub fn require_witnesses(&mut self, text: &str) -> Result<(), Error> {
        let message = "not the verifier key of a witness: expected a complete name+id+key of type \
                       4 (cosignature/v1), of an Ed25519 key that is not weak";
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys = lines.map(WitnessKey::parse).collect::<Option<Vec<_>>>();
        let keys = keys.filter(|keys| !keys.is_empty());
        for key in keys.ok_or_else(|| Error::Key(message.to_string()))? {
            if !self.witnesses.contains(&key) {
                self.witnesses.push(key);
            }
        }
        Ok(())
    }

    /// The required witnesses.
    pub(crate) fn witnesses(&self) -> &[WitnessKey] {
        &self.witnesses
    }

    /// All trusted keys.
    pub fn keys(&self) -> &[NoteKey] {
        &self.keys
    }

    /// The keys that may sign bundles and certificates.
    pub(crate) fn operators(&self) -> Vec<NoteKey> {
        self.named(|name| name == OPERATOR)
    }

    /// The same keys, without operator's keys that a manifest does not name. All stay if none of
    /// them has the hash that the manifest names.
    pub(crate) fn narrowed(&self, named: Option<[u8; 32]>) -> Trust {
        let mut trust = self.clone();
        let is_other = |key: &NoteKey| {
            key.name() == OPERATOR && named.is_some_and(|named| key_sha256(key.key()) != named)
        };
        if self.operators().iter().any(|key| !is_other(key)) {
            trust.keys.retain(|key| !is_other(key));
        }
        trust
    }

    /// The keys that may sign an identity's log.
    pub(crate) fn logs(&self, identity: &Identity) -> Vec<NoteKey> {
        let origin = TreeHead::origin_of(identity);
        self.named(|name| name == origin)
    }

    /// The keys of producers.
    pub(crate) fn producers(&self) -> Vec<NoteKey> {
        self.named(is_producer)
    }

    fn named(&self, fits: impl Fn(&str) -> bool) -> Vec<NoteKey> {
        self.keys.iter().filter(|key| fits(key.name())).cloned().collect()
    }
}

/// Whether a key of that name is a producer's.
pub(crate) fn is_producer(name: &str) -> bool {
    name != OPERATOR && !name.starts_with(LOG)
}

fn verifier_key(line: &str) -> Result<NoteKey, Error> {
    // The line is not shown: it may be a private key, given by mistake.
    let message = "not a verifier key: expected a complete name+id+key with the id of the key, \
                   of an Ed25519 key that is not weak";
    NoteKey::parse(line).ok_or_else(|| Error::Key(message.to_string()))
}

fn operator_key(body: &str) -> Result<NoteKey, Error> {
    let key = base64::decode(body).and_then(|der| {
        let key: [u8; 32] = der.strip_prefix(&DER_PREFIX)?.try_into().ok()?;
        NoteKey::new(OPERATOR, PublicKey::new(&key)?)
    });
    let message = "a PEM block holds no Ed25519 public key, or a weak one";
    key.ok_or_else(|| Error::Key(message.to_string()))
}

/// The SHA-256 of a public key as DER (SubjectPublicKeyInfo), as a manifest may name it and
/// `openssl pkey -pubin -outform DER | sha256sum` prints it.
pub fn key_sha256(key: &PublicKey) -> [u8; 32] {
    sha256(&[&DER_PREFIX, &key.bytes()])
}

/// A public key in PEM form, as `keys/operator.pub` has it and `openssl` reads it.
pub fn pem(key: &PublicKey) -> String {
    let der = [&DER_PREFIX[..], &key.bytes()[..]].concat();
    format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", base64::encode(&der))
}

/// Reads the operator's key of a bundle; accepts only the exact form of [`pem`].
pub(crate) fn read_pem(bytes: &[u8]) -> Option<NoteKey> {
    let text = std::str::from_utf8(bytes).ok()?;
    let body = text.strip_prefix(PEM_BEGIN)?.strip_suffix("\n")?.strip_suffix(PEM_END)?;
    let key = operator_key(body.trim()).ok()?;
    (pem(key.key()) == text).then_some(key)
}

/// Reads verifier keys of a bundle: one or more, one per line, without duplicates.
pub(crate) fn read_keys(bytes: &[u8]) -> Option<Vec<NoteKey>> {
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let mut keys = Vec::new();
    for line in text.split('\n') {
        keys.push(NoteKey::parse(line).filter(|key| !keys.contains(key))?);
    }
    Some(keys)
}

/// Splits a file of concatenated tree heads into notes.
///
/// ```
/// let two = "a\n1\nx\n\n— a sig\nb\n2\ny\n\n— b sig\n— c sig\n";
/// assert_eq!(ipse_bundle::anchors(two).unwrap().len(), 2);
/// ```
pub fn anchors(text: &str) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    let mut note = String::new();
    let mut signed = false;
    for line in text.split_inclusive('\n') {
        let is_signature = line.starts_with("\u{2014} ");
        if signed && !is_signature {
            notes.push(std::mem::take(&mut note));
            signed = false;
        }
        // Skip empty lines between notes.
        if note.is_empty() && line.trim().is_empty() {
            continue;
        }
        signed |= is_signature;
        note.push_str(line);
    }
    match (signed, note.is_empty()) {
        (true, _) => notes.push(note),
        (false, true) => {}
        (false, false) => return Err(Error::Anchors("the last tree head is not signed".into())),
    }
    if notes.is_empty() {
        return Err(Error::Anchors("the text holds no tree head: it is empty".into()));
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_ledger::SecretKey;

    #[test]
    fn pem_is_read_back_and_only_in_its_form() {
        let key = SecretKey::from_seed(&[7; 32]).public();
        let text = pem(&key);
        assert_eq!(read_pem(text.as_bytes()).map(|key| *key.key()), Some(key));
        assert_eq!(Trust::parse(&text).unwrap().operators().len(), 1);
        for other in [text.replace('\n', "\r\n"), format!("{text}\n"), text.trim().to_string()] {
            assert_eq!(read_pem(other.as_bytes()), None);
            assert!(Trust::parse(&other).is_ok(), "people's files may differ");
        }
    }

    #[test]
    fn the_name_of_a_key_determines_its_use() {
        let key = |name: &str, seed| NoteKey::new(name, SecretKey::from_seed(&[seed; 32]).public());
        let identity = Identity([3; 32]);
        let names = ["operator", "robot-7", &TreeHead::origin_of(&identity), "ipse/other"];
        let lines: Vec<String> =
            names.iter().map(|name| key(name, 1).unwrap().to_string()).collect();
        assert!(Trust::parse(&lines.join("\n")).is_err(), "a producer with an operator");
        let mut trust = Trust::parse(&[&lines[..1], &lines[2..]].concat().join("\n")).unwrap();
        trust.add(&lines[1]).unwrap();
        trust.add(&lines[0]).unwrap();
        let counts = [trust.operators(), trust.producers(), trust.logs(&identity)].map(|k| k.len());
        assert_eq!((counts, trust.keys().len()), ([1, 1, 1], 4));
        for name in [names[0], names[2]] {
            let rival = key(name, 2).unwrap().to_string();
            assert!(trust.add(&rival).is_err(), "another {name} from another text");
            let both = format!("{}\n{rival}", key(name, 1).unwrap());
            assert_eq!(Trust::parse(&both).unwrap().keys().len(), 2, "two from one text");
        }
        assert!(trust.add(&key("robot-7", 2).unwrap().to_string()).is_ok());
        assert!(Trust::parse("").is_err() && Trust::parse("operator+1+x").is_err());
    }
}
