//! Signatures: checks the bundle, the certificate, the tree head, the keys in the bundle, and the
//! producers' statements against the entries.
//!
//! **Invariant:** a statement of a producer counts once, in any encoding of its envelope.

use super::Check;
use crate::archive::Archive;
use crate::envelope;
use crate::name::Name;
use crate::report::counted;
use crate::trust::{OPERATOR, Trust, is_producer, key_sha256, read_keys, read_pem};
use ipse_audit::Index;
use ipse_consolidate::Rules;
use ipse_core::{Digest, Identity, Seq, hex, sha256};
use ipse_ledger::dsse::{self, EnvelopeError, Statement, StatementIndex};
use ipse_ledger::note::NoteError;
use ipse_ledger::{Bundled, Certificate, Note, NoteKey, SentStatement, TreeHead};
use ipse_manifest::Manifest;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The longest manifest, note or list of keys.
const MAX_SMALL: usize = 1 << 20;

/// The hash of the operator's key that the manifest of an archive names. Reports nothing: a
/// manifest that is not valid is reported later.
pub(super) fn named_key(archive: &Archive<'_>) -> io::Result<Option<[u8; 32]>> {
    let part = archive.part(Name::Manifest);
    let bytes = part.map(|part| part.whole(MAX_SMALL)).transpose()?.flatten();
    let manifest = bytes.and_then(|bytes| Manifest::from_canonical(&bytes).ok());
    Ok(manifest.and_then(|manifest| manifest.operator_key().ok()?))
}

/// Opens a statement of the operator; returns it with the id of the key that signed it.
fn operators_word(bytes: &[u8], kind: &str, trust: &Trust) -> Result<(Statement, String), String> {
    let operators = trust.operators();
    let (statement, keys) = dsse::open(bytes, kind, &operators).map_err(|error| match error {
        EnvelopeError::Untrusted | EnvelopeError::OtherKey => {
            let named = dsse::key_ids(bytes).join(", ");
            format!("no trusted operator key signed it; it names {named}")
        }
        error => error.to_string(),
    })?;
    // No hash covers the envelope, so only one form of it is valid.
    envelope::fault(bytes).map_or(Ok(()), |fault| Err(fault.to_string()))?;
    Ok((statement, first_id(&keys)?))
}

fn first_id(keys: &[&NoteKey]) -> Result<String, String> {
    keys.first().map(|key| dsse::key_id(key)).ok_or_else(|| "no key signed it".to_string())
}

impl Check<'_, '_> {
    /// Reads a small member. A longer one is reported as a failure.
    pub(super) fn small(&mut self, name: Name) -> io::Result<Option<Vec<u8>>> {
        let Some(part) = self.archive.part(name) else { return Ok(None) };
        let bytes = part.whole(MAX_SMALL)?;
        if bytes.is_none() {
            self.report.fail(name, format!("is longer than {MAX_SMALL} bytes"));
        }
        Ok(bytes)
    }

    /// Reads a small member and reports the result.
    fn read<T>(
        &mut self,
        name: Name,
        read: impl FnOnce(&[u8], &Trust) -> Result<(T, String), String>,
    ) -> io::Result<Option<T>> {
        let Some(bytes) = self.small(name)? else { return Ok(None) };
        let read = read(&bytes, self.trust);
        self.tell(name, read.as_ref().map(|(_, message)| message));
        Ok(read.ok().map(|(found, _)| found))
    }

    /// Reads the operator's statement about the contents of the bundle.
    pub(super) fn bundled(&mut self, sums: &Digest) -> io::Result<Option<Bundled>> {
        self.read(Name::SumsSignature, |bytes, trust| {
            let (statement, key) = operators_word(bytes, Bundled::TYPE, trust)?;
            let bundled = Bundled::read(&statement).ok_or("the statement is not about a bundle")?;
            match bundled.sums == *sums {
                true => Ok((bundled, format!("signed by {key}"))),
                false => Err("the statement is about another SHA256SUMS".to_string()),
            }
        })
    }

    /// Checks the operator's statement against the rest of the bundle.
    pub(super) fn fits(&mut self, bundled: &Bundled, head: &TreeHead, identity: &Identity) -> bool {
        let Bundled { from, to, size, checkpoint, .. } = bundled;
        let (whole, facts) = (*from == Seq(1), self.archive.part(Name::Facts).is_some());
        let outside = from.0 == 0 || to.0 > *size || from.0 - 1 > to.0;
        let odd = checkpoint.is_some() != whole;
        let missing = !facts && whole;
        let rules = [
            (bundled.identity != *identity, "is about another identity"),
            (*size != head.size, "gives another size than the tree head"),
            (outside, "gives a range that is not in the log"),
            (odd, "must give a checkpoint if and only if the range begins at seq 1"),
            (*checkpoint > Some(*to), "gives a checkpoint beyond its range"),
            (facts && !whole, "the range does not begin at seq 1, but facts.jsonl exists"),
            (missing, "the range begins at seq 1, but facts.jsonl is missing"),
        ];
        let before = self.report.fails();
        let wrong = rules.into_iter().filter(|(wrong, _)| *wrong);
        wrong.for_each(|(_, why)| self.report.fail(Name::SumsSignature, why));
        self.report.fails() == before
    }

    pub(super) fn manifest(&mut self) -> io::Result<Option<Manifest>> {
        self.read(Name::Manifest, |bytes, _| {
            let manifest = Manifest::from_canonical(bytes).map_err(|error| error.to_string())?;
            let message = format!("canonical; the identity is {}", manifest.identity());
            Ok((manifest, message))
        })
    }

    pub(super) fn certificate(&mut self, manifest: &Manifest) -> io::Result<Option<()>> {
        self.read(Name::Certificate, |bytes, trust| {
            let (statement, key) = operators_word(bytes, Certificate::TYPE, trust)?;
            let certificate =
                Certificate::read(&statement).ok_or("the statement is not a certificate")?;
            match certificate.manifest == manifest.canonical() {
                true => Ok(((), format!("{key} certifies this manifest"))),
                false => Err("is about another manifest".to_string()),
            }
        })
    }

    /// Compares the operator's key that the manifest names with the trusted one.
    pub(super) fn named_operator(&mut self, manifest: &Manifest) {
        let named = match manifest.operator_key() {
            Ok(Some(named)) => named,
            Ok(None) => {
                let message = "the manifest names no operator key: that this operator answers for \
                               the agent follows only from how you got operator.pub";
                return self.report.limit(OPERATOR, message);
            }
            Err(error) => return self.report.limit(OPERATOR, format!("the manifest: {error}")),
        };
        let operators = self.trust.operators();
        let shown = |key: &[u8; 32]| format!("sha256:{}", hex::encode(key));
        match operators.iter().find(|key| key_sha256(key.key()) == named) {
            Some(key) => {
                let message = format!("the manifest names {}, and no other key", dsse::key_id(key));
                self.report.pass(OPERATOR, message);
            }
            // Without a trusted key of an operator the check of the key in the bundle fails.
            None if operators.is_empty() => {}
            None => {
                let given: Vec<_> =
                    operators.iter().map(|key| shown(&key_sha256(key.key()))).collect();
                let message = format!(
                    "the manifest names the key {}, and the operator key that you trust is {}: \
                     its signature does not count for this agent",
                    shown(&named),
                    given.join(", ")
                );
                self.report.fail(OPERATOR, message);
            }
        }
    }

    /// Checks that the keys in the bundle are trusted. Returns the producers' keys.
    pub(super) fn keys(&mut self, identity: &Identity) -> io::Result<Vec<NoteKey>> {
        let (logs, operators) = (self.trust.logs(identity), self.trust.operators());
        let log = read_keys(&self.small(Name::LogKey)?.unwrap_or_default());
        let ended = match log.map(|keys| keys.iter().any(|key| logs.contains(key))) {
            None => Err("must hold only valid verifier keys"),
            Some(false) if logs.is_empty() => {
                Err("no trusted key is a key of this log: give the operator's log.vkey too")
            }
            Some(false) => Err(
                "is not the log key that you trust: you gave another log's key, or the bundle was \
                 signed again with another key",
            ),
            Some(true) => Ok("holds a trusted key of this log"),
        };
        self.tell(Name::LogKey, ended);
        let operator = read_pem(&self.small(Name::OperatorKey)?.unwrap_or_default());
        let ended = match operator.map(|key| operators.contains(&key)) {
            None => Err("is not a valid Ed25519 public key in PEM form"),
            Some(false) if operators.is_empty() => {
                Err("no operator key is trusted: give the operator's operator.pub too")
            }
            Some(false) => Err(
                "is not the operator key that you trust: you gave another operator's key, or the \
                 bundle was signed again with another key",
            ),
            Some(true) => Ok("is a trusted operator key"),
        };
        self.tell(Name::OperatorKey, ended);
        self.producer_keys()
    }

    fn producer_keys(&mut self) -> io::Result<Vec<NoteKey>> {
        let place = Name::ProducerKeys;
        if self.archive.part(place).is_none() {
            return Ok(Vec::new());
        }
        let Some(keys) = read_keys(&self.small(place)?.unwrap_or_default()) else {
            self.report.fail(place, "must hold only valid verifier keys");
            return Ok(Vec::new());
        };
        for key in keys.iter().filter(|key| !is_producer(key.name())) {
            self.report
                .fail(place, format!("{} cannot be the name of a producer's key", key.name()));
        }
        let is_trusted = |key: &&NoteKey| self.trust.keys().contains(key);
        let (trusted, others): (Vec<_>, Vec<_>) = keys.iter().partition(is_trusted);
        for key in others {
            let message = format!("{} is not among the trusted keys", dsse::key_id(key));
            self.report.limit(place, message);
        }
        if !trusted.is_empty() {
            self.report.pass(place, format!("{} of {} are trusted", trusted.len(), keys.len()));
        }
        Ok(keys)
    }

    /// The signed tree head. `None` if it is not valid or no trusted key signed it.
    pub(super) fn head(&mut self, identity: &Identity) -> io::Result<Option<TreeHead>> {
        self.read(Name::TreeHead, |bytes, trust| {
            let note = std::str::from_utf8(bytes).unwrap_or_default();
            let (head, key) = read_head(note, identity, trust)?;
            let message = format!("{} entries, signed by {key}", head.size);
            Ok((head, message))
        })
    }

    /// The rule set in the bundle, or the error. Reports nothing.
    pub(super) fn rules(&self) -> io::Result<Result<Rules, String>> {
        let part = self.archive.part(Name::RuleSet);
        let bytes = part.map(|part| part.whole(MAX_SMALL)).transpose()?.flatten();
        let Some(bytes) = bytes else {
            return Ok(Err(format!("is longer than {MAX_SMALL} bytes")));
        };
        Ok(Rules::of_hash(&sha256(&[&bytes])).ok_or_else(|| {
            let ours = Rules::versions();
            format!("is an unknown rule set; this verifier can derive facts only with {ours}")
        }))
    }

    /// Compares the producers' statements with the entries.
    pub(super) fn statements(&mut self, known: &Index, identity: &Identity) -> io::Result<()> {
        let (began, mut index) = (self.report.fails(), StatementIndex::default());
        let mut signed = Signed { producers: self.trust.producers(), ..Signed::default() };
        for (name, part) in self.archive.signatures() {
            let bytes = part.whole(envelope::MAX_BYTES)?;
            let checked = match bytes.as_ref().map(|bytes| (bytes, index.add(bytes, name))) {
                None => Err(format!("is longer than {} bytes", envelope::MAX_BYTES)),
                Some((_, Some(first))) => {
                    Err(format!("is a duplicate of {first}: the same statement"))
                }
                Some((bytes, None)) => signed.envelope(bytes, known, identity),
            };
            checked.unwrap_or_else(|message| self.report.fail(name, message));
        }
        let Signed { entries, signers, unknown, .. } = signed;
        let (signed, who) = (entries.len() as u64, counted(signers.len() as u64, "producer"));
        if !signers.is_empty() {
            let events = counted(signed, "event");
            let message = format!("{events} signed by {who}, digests as in the log");
            self.holds_since(began, "signatures", message);
        }
        for (key, n) in unknown {
            let statements = counted(n, "statement");
            let message = format!("{statements} by {key} not counted: the key is not trusted");
            self.report.limit("signatures", message);
        }
        let events = known.kinds.iter().filter(|[house, _]| !house).count() as u64;
        if events > signed {
            let events = counted(events - signed, "event");
            self.report.limit("signatures", format!("{events} not signed by a trusted producer"));
        }
        Ok(())
    }
}

/// Reads a tree head that a trusted key of an identity's log signed, and the id of the key.
pub(super) fn read_head(
    note: &str,
    identity: &Identity,
    trust: &Trust,
) -> Result<(TreeHead, String), String> {
    let (origin, logs) = (TreeHead::origin_of(identity), trust.logs(identity));
    let note = Note::parse(note).map_err(|error| error.to_string())?;
    let keys = note.verify(&logs).map_err(|error| match error {
        NoteError::Untrusted => format!("no trusted key named {origin} signed it"),
        error => error.to_string(),
    })?;
    let head = TreeHead::parse(note.text).ok_or("the note is not a tree head")?;
    if head.origin != origin {
        return Err(format!("is about another log, {}", head.origin));
    }
    Ok((head, first_id(&keys)?))
}

/// The events that trusted producers signed.
#[derive(Default)]
struct Signed {
    producers: Vec<NoteKey>,
    /// The positions of signed entries.
    entries: BTreeSet<usize>,
    signers: BTreeSet<String>,
    /// The number of statements by untrusted keys, by key id.
    unknown: BTreeMap<String, u64>,
}

impl Signed {
    /// Checks one statement. Every event that it names must be in the log with the signed digest.
    fn envelope(&mut self, bytes: &[u8], known: &Index, identity: &Identity) -> Result<(), String> {
        let mut ids = dsse::key_ids(bytes);
        let opened = match dsse::open_any_form(bytes, SentStatement::TYPE, &self.producers) {
            Err(EnvelopeError::Untrusted) => {
                if ids.is_empty() || !ids.iter().all(|id| is_producer(dsse::owner(id))) {
                    return Err("no producer's key signed it".to_string());
                }
                *self.unknown.entry(ids.join(", ")).or_default() += 1;
                return Ok(());
            }
            Err(EnvelopeError::OtherKey) => {
                // Keep the ids with the name of a trusted producer that are not its trusted keys.
                let all = || self.producers.iter();
                ids.retain(|id| all().any(|key| key.name() == dsse::owner(id)));
                ids.retain(|id| !all().any(|key| dsse::key_id(key) == *id));
                let others = ids.join(", ");
                Err(format!("names {others}, but no trusted key of that producer has this id"))
            }
            opened => opened.map_err(|error| error.to_string()),
        };
        let (statement, keys) = opened?;
        let sent = SentStatement::read(&statement).ok_or("is not a producer's statement")?;
        if sent.identity != *identity {
            return Err(format!("was sent to another identity, {}", sent.identity));
        }
        for (name, digest) in &sent.events {
            let at = known.find(name);
            let at = at.ok_or_else(|| format!("{name} was signed but is not in this log"))?;
            let seq = at + 1;
            if known.digests[at] != *digest {
                return Err(format!("{name} was signed with other content than seq {seq} has"));
            }
            if known.kinds[at][0] {
                return Err(format!("{name} at seq {seq} was not written by a producer"));
            }
            self.entries.insert(at);
        }
        let signers: Vec<String> = keys.into_iter().map(dsse::key_id).collect();
        for id in ids.into_iter().filter(|id| !signers.contains(id)) {
            *self.unknown.entry(id).or_default() += 1;
        }
        self.signers.extend(signers);
        Ok(())
    }
}
