//! Trusted keys and earlier tree heads, as the verifier supplies them.
//!
//! **Invariants:** the name of a key determines its use. `operator` signs bundles and certificates,
//! `ipse/<identity>` signs that identity's log, every other name belongs to a producer. All
//! operators' keys come from one text, and so do all keys of one log. No other text can add one.

use crate::report::Verdict;
use crate::{Error, envelope};
use ipse_core::{Identity, hex, sha256};
use ipse_ledger::dsse::{self, EnvelopeError, Statement};
use ipse_ledger::{NoteKey, PublicKey, TreeHead, WitnessKey, base64};
use ipse_manifest::Manifest;

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

    /// Opens a statement of an operator; returns it with the id of the key that signed it.
    pub(crate) fn operators_statement(
        &self,
        bytes: &[u8],
        predicate_type: &str,
    ) -> Result<(Statement, String), String> {
        let operators = self.operators();
        let opened = dsse::open(bytes, predicate_type, &operators);
        let (statement, keys) = opened.map_err(|error| match error {
            EnvelopeError::Untrusted | EnvelopeError::OtherKey => {
                let named = dsse::key_ids(bytes).join(", ");
                format!("no trusted operator key signed it; it names {named}")
            }
            error => error.to_string(),
        })?;
        // No hash covers the envelope, so only one form of it is valid.
        envelope::fault(bytes).map_or(Ok(()), |fault| Err(fault.to_string()))?;
        let key = keys.first().ok_or("no key signed it")?;
        Ok((statement, dsse::key_id(key)))
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

    /// Checks that the log's keys in a bundle have a trusted one.
    pub(crate) fn log_key(&self, bytes: &[u8], identity: &Identity) -> Result<String, String> {
        let held = read_keys(bytes).ok_or("must hold only valid verifier keys")?;
        vouch(&held, &self.logs(identity), "log key", "log.vkey")
    }

    /// Checks that the operator's key in a bundle is a trusted one.
    pub(crate) fn operator_key(&self, bytes: &[u8]) -> Result<String, String> {
        let held = read_pem(bytes).ok_or("is not a valid Ed25519 public key in PEM form")?;
        vouch(&[held], &self.operators(), "operator key", "operator.pub")
    }

    /// Compares the producers' keys in a bundle with the trusted keys. Returns them with lines of a
    /// report.
    pub(crate) fn producer_keys(&self, bytes: &[u8]) -> (Vec<NoteKey>, Vec<(Verdict, String)>) {
        let Some(keys) = read_keys(bytes) else {
            let message = "must hold only valid verifier keys".to_string();
            return (Vec::new(), vec![(Verdict::Fail, message)]);
        };
        let mut lines = Vec::new();
        for key in keys.iter().filter(|key| !is_producer(key.name())) {
            let message = format!("{} cannot be the name of a producer's key", key.name());
            lines.push((Verdict::Fail, message));
        }
        let others = keys.iter().filter(|key| !self.keys.contains(key));
        lines.extend(others.map(|key| {
            let message = format!("{} is not among the trusted keys", dsse::key_id(key));
            (Verdict::Limit, message)
        }));
        let trusted = keys.iter().filter(|key| self.keys.contains(key)).count();
        if trusted > 0 {
            lines.push((Verdict::Pass, format!("{trusted} of {} are trusted", keys.len())));
        }
        (keys, lines)
    }

    /// Compares the operator's key that a manifest names with the trusted one.
    pub(crate) fn operator_of(&self, manifest: &Manifest) -> Option<(Verdict, String)> {
        let named = match manifest.operator_key() {
            Ok(Some(named)) => named,
            Ok(None) => {
                let message = "the manifest names no operator key: that this operator answers for \
                               the agent follows only from how you got operator.pub";
                return Some((Verdict::Limit, message.to_string()));
            }
            Err(error) => return Some((Verdict::Limit, format!("the manifest: {error}"))),
        };
        let operators = self.operators();
        if let Some(key) = operators.iter().find(|key| key_sha256(key.key()) == named) {
            let message = format!("the manifest names {}, and no other key", dsse::key_id(key));
            return Some((Verdict::Pass, message));
        }
        let shown = |key: &[u8; 32]| format!("sha256:{}", hex::encode(key));
        let given: Vec<_> = operators.iter().map(|key| shown(&key_sha256(key.key()))).collect();
        // Without a trusted key of an operator the check of the key in the bundle fails.
        (!given.is_empty()).then(|| {
            let message = format!(
                "the manifest names the key {}, and the operator key that you trust is {}: its \
                 signature does not count for this agent",
                shown(&named),
                given.join(", ")
            );
            (Verdict::Fail, message)
        })
    }

    fn named(&self, fits: impl Fn(&str) -> bool) -> Vec<NoteKey> {
        self.keys.iter().filter(|key| fits(key.name())).cloned().collect()
    }
}

/// Checks that one of the keys in a bundle is among the trusted ones. `file` is the file with which
/// the operator publishes this key.
fn vouch(held: &[NoteKey], trusted: &[NoteKey], what: &str, file: &str) -> Result<String, String> {
    if held.iter().any(|key| trusted.contains(key)) {
        return Ok(format!("holds a trusted {what}"));
    }
    Err(match trusted.is_empty() {
        true => format!("no {what} is trusted: give the operator's {file} too"),
        false => format!(
            "is not the {what} that you trust: you gave another {what}, or the bundle was signed \
             again with another key"
        ),
    })
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
