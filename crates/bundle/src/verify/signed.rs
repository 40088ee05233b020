//! Signatures: checks the bundle, the certificate, the tree head, the keys in the bundle, and the
//! producers' statements against the entries.
//!
//! **Invariant:** a statement of a producer counts once, in any encoding of its envelope.

use super::Check;
use crate::archive::Archive;
use crate::envelope;
use crate::name::Name;
use crate::trust::{Trust, is_producer};
use ipse_audit::Index;
use ipse_consolidate::Rules;
use ipse_consult::answer::counted;
use ipse_core::{Digest, Identity, Seq, sha256};
use ipse_ledger::dsse::{self, EnvelopeError, StatementIndex};
use ipse_ledger::{Bundled, Certificate, Governance, NoteKey, SentStatement, TreeHead};
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
        self.report.tell(name, read.as_ref().map(|(_, message)| message));
        Ok(read.ok().map(|(found, _)| found))
    }

    /// Reads the operator's statement about the contents of the bundle.
    pub(super) fn bundled(&mut self, sums: &Digest) -> io::Result<Option<Bundled>> {
        self.read(Name::SumsSignature, |bytes, trust| {
            let (statement, key) = trust.operators_statement(bytes, Bundled::TYPE)?;
            let bundled = Bundled::read(&statement).ok_or("the statement is not about a bundle")?;
            match bundled.sums == *sums {
                true => Ok((bundled, format!("signed by {key}"))),
                false => Err("the statement is about another SHA256SUMS".to_string()),
            }
        })
    }

    /// Checks the operator's statement against the rest of the bundle.
    pub(super) fn fits(&mut self, bundled: &Bundled, head: &TreeHead, identity: &Identity) -> bool {
        let has_facts = self.archive.part(Name::Facts).is_some();
        let faults: Vec<_> = bundled.contradictions(identity, head.size, has_facts).collect();
        faults.iter().for_each(|why| self.report.fail(Name::SumsSignature, why));
        faults.is_empty()
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
            let (statement, key) = trust.operators_statement(bytes, Certificate::TYPE)?;
            let certificate =
                Certificate::read(&statement).ok_or("the statement is not a certificate")?;
            match certificate.manifest == manifest.canonical() {
                true => Ok(((), format!("{key} certifies this manifest"))),
                false => Err("is about another manifest".to_string()),
            }
        })
    }

    /// Checks that the keys in the bundle are trusted. Returns the producers' keys.
    pub(super) fn keys(&mut self, identity: &Identity) -> io::Result<Vec<NoteKey>> {
        let log = self.small(Name::LogKey)?.unwrap_or_default();
        self.report.tell(Name::LogKey, self.trust.log_key(&log, identity));
        let operator = self.small(Name::OperatorKey)?.unwrap_or_default();
        self.report.tell(Name::OperatorKey, self.trust.operator_key(&operator));
        if self.archive.part(Name::ProducerKeys).is_none() {
            return Ok(Vec::new());
        }
        let producers = self.small(Name::ProducerKeys)?.unwrap_or_default();
        let (keys, lines) = self.trust.producer_keys(&producers);
        for (verdict, message) in lines {
            self.report.add(verdict, Name::ProducerKeys, message);
        }
        Ok(keys)
    }

    /// The signed tree head. `None` if it is not valid or no trusted key signed it.
    pub(super) fn head(&mut self, identity: &Identity) -> io::Result<Option<TreeHead>> {
        self.read(Name::TreeHead, |bytes, trust| {
            let note = std::str::from_utf8(bytes).unwrap_or_default();
            let (head, key) = TreeHead::signed(note, identity, &trust.logs(identity))?;
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
    pub(super) fn statements(
        &mut self,
        known: &Index,
        identity: &Identity,
        governance: &Governance,
    ) -> io::Result<()> {
        let (began, mut index) = (self.report.fails(), StatementIndex::default());
        let mut signed = Signed::under(self.trust.producers(), governance);
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
        if !signers.is_empty() && governance.acts().is_empty() {
            let message = "the log has no acts: positions were not compared with the registration \
                           and revocation of keys";
            self.report.limit("signatures", message);
        }
        if !signers.is_empty() {
            let events = counted(signed, "event");
            let message = format!("{events} signed by {who}, digests as in the log");
            self.report.holds_since(began, "signatures", message);
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

/// The events that trusted producers signed.
struct Signed<'g> {
    producers: Vec<NoteKey>,
    /// The acts that registered and revoked keys.
    governance: &'g Governance,
    /// The positions of signed entries.
    entries: BTreeSet<usize>,
    signers: BTreeSet<String>,
    /// The number of statements by untrusted keys, by key id.
    unknown: BTreeMap<String, u64>,
}

impl<'g> Signed<'g> {
    fn under(producers: Vec<NoteKey>, governance: &'g Governance) -> Self {
        let (entries, signers, unknown) = Default::default();
        Signed { producers, governance, entries, signers, unknown }
    }

    /// Checks one statement. Every event that it names must be in the log with the signed digest.
    fn envelope(&mut self, bytes: &[u8], known: &Index, identity: &Identity) -> Result<(), String> {
        let ids = dsse::key_ids(bytes);
        let opened = match dsse::open_any_form(bytes, SentStatement::TYPE, &self.producers) {
            Err(EnvelopeError::Untrusted) => {
                if ids.is_empty() || !ids.iter().all(|id| is_producer(dsse::owner(id))) {
                    return Err("no producer's key signed it".to_string());
                }
                *self.unknown.entry(ids.join(", ")).or_default() += 1;
                return Ok(());
            }
            Err(EnvelopeError::OtherKey) => {
                let others = dsse::other_ids(bytes, &self.producers).join(", ");
                Err(format!("names {others}, but no trusted key of that producer has this id"))
            }
            opened => opened.map_err(|error| error.to_string()),
        };
        let (statement, keys) = opened?;
        let sent = SentStatement::read(&statement).ok_or("is not a producer's statement")?;
        if sent.identity != *identity {
            return Err(format!("was sent to another identity, {}", sent.identity));
        }
        let mut seqs = Vec::new();
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
            seqs.push(Seq(seq as u64));
        }
        seqs.sort_unstable();
        let by = keys.iter().map(ToString::to_string);
        if let Some((seq, fault)) = self.governance.statement_fault(by, &seqs) {
            return Err(format!("signs the event at seq {seq}, but {fault}"));
        }
        self.entries.extend(seqs.iter().map(|seq| seq.0 as usize - 1));
        let signers: Vec<String> = keys.into_iter().map(dsse::key_id).collect();
        for id in ids.into_iter().filter(|id| !signers.contains(id)) {
            *self.unknown.entry(id).or_default() += 1;
        }
        self.signers.extend(signers);
        Ok(())
    }
}
