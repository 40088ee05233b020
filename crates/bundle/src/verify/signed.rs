//! What the operator and the log signed: the bundle, the certificate, the tree head; and the keys
//! that travel along.

use crate::archive::Archive;
use crate::envelope;
use crate::name::Name;
use crate::report::Report;
use crate::trust::{Trust, is_producer, read_keys, read_pem};
use ipse_consolidate::Rules;
use ipse_core::{Digest, Identity, Seq, sha256};
use ipse_ledger::dsse::{self, EnvelopeError, Statement};
use ipse_ledger::note::NoteError;
use ipse_ledger::{Bundled, Certificate, Note, NoteKey, TreeHead};
use ipse_manifest::Manifest;
use std::io;

/// The longest manifest, note or list of keys.
const MAX_SMALL: usize = 1 << 20;

/// Reads a small member; too long a one is a failure.
fn small(archive: &Archive<'_>, name: Name, report: &mut Report) -> io::Result<Option<Vec<u8>>> {
    let Some(part) = archive.part(name) else { return Ok(None) };
    let bytes = part.whole(MAX_SMALL)?;
    if bytes.is_none() {
        report.fail(name.to_string(), format!("is longer than {MAX_SMALL} bytes"));
    }
    Ok(bytes)
}

/// A statement of the operator's.
fn operators_word(
    bytes: &[u8],
    predicate_type: &str,
    trust: &Trust,
) -> Result<(Statement, NoteKey), String> {
    let operators = trust.operators();
    let opened = dsse::open(bytes, predicate_type, &operators);
    let opened = opened.map_err(|error| match error {
        EnvelopeError::Untrusted | EnvelopeError::OtherKey => {
            let named = dsse::key_ids(bytes).join(", ");
            format!("no trusted operator key signed it; it names {named}")
        }
        error => error.to_string(),
    });
    let (statement, keys) = opened?;
    // Nothing else covers the envelope, so it has one form only.
    if let Some(fault) = envelope::fault(bytes) {
        return Err(fault.to_string());
    }
    let key = keys.first().ok_or("no key signed it")?;
    Ok((statement, (*key).clone()))
}

/// What the operator says that the bundle holds.
pub(super) fn bundled(
    archive: &Archive<'_>,
    sums: &Digest,
    trust: &Trust,
    report: &mut Report,
) -> io::Result<Option<Bundled>> {
    let place = Name::SumsSignature.to_string();
    let Some(bytes) = small(archive, Name::SumsSignature, report)? else { return Ok(None) };
    let read = operators_word(&bytes, Bundled::TYPE, trust).and_then(|(statement, key)| {
        let bundled = Bundled::read(&statement).ok_or("the statement is not about a bundle")?;
        match bundled.sums == *sums {
            true => Ok((bundled, key)),
            false => Err("the statement is about another SHA256SUMS".to_string()),
        }
    });
    match read {
        Ok((bundled, key)) => {
            report.pass(place, format!("signed by {}", dsse::key_id(&key)));
            Ok(Some(bundled))
        }
        Err(message) => {
            report.fail(place, message);
            Ok(None)
        }
    }
}

/// Whether what the operator says fits the rest.
pub(super) fn fits(
    bundled: &Bundled,
    archive: &Archive<'_>,
    head: &TreeHead,
    identity: &Identity,
    report: &mut Report,
) -> bool {
    let Bundled { from, to, size, checkpoint, .. } = bundled;
    let whole = *from == Seq(1);
    let facts = archive.part(Name::Facts).is_some();
    let rules = [
        (bundled.identity != *identity, "says that it is about another identity"),
        (*size != head.size, "says another size than the tree head"),
        (
            from.0 == 0 || to.0 > *size || from.0 - 1 > to.0,
            "says a range that does not lie in the log",
        ),
        (
            checkpoint.is_some() != whole,
            "gives a checkpoint to a range without a beginning, or none to a whole one",
        ),
        (
            checkpoint.is_some_and(|checkpoint| checkpoint > *to),
            "says a checkpoint beyond its range",
        ),
        (facts && !whole, "says a range without a beginning, and there are facts"),
        (!facts && whole, "says that the log is there from the start, and facts.jsonl is missing"),
    ];
    let wrong: Vec<_> = rules.into_iter().filter(|(wrong, _)| *wrong).collect();
    for (_, message) in &wrong {
        report.fail(Name::SumsSignature.to_string(), *message);
    }
    wrong.is_empty()
}

pub(super) fn manifest(archive: &Archive<'_>, report: &mut Report) -> io::Result<Option<Manifest>> {
    let place = Name::Manifest.to_string();
    let Some(bytes) = small(archive, Name::Manifest, report)? else { return Ok(None) };
    match Manifest::from_canonical(&bytes) {
        Ok(manifest) => {
            report.pass(place, format!("canonical; the identity is {}", manifest.identity()));
            Ok(Some(manifest))
        }
        Err(error) => {
            report.fail(place, error.to_string());
            Ok(None)
        }
    }
}

pub(super) fn certificate(
    archive: &Archive<'_>,
    manifest: &Manifest,
    trust: &Trust,
    report: &mut Report,
) -> io::Result<()> {
    let place = Name::Certificate.to_string();
    let Some(bytes) = small(archive, Name::Certificate, report)? else { return Ok(()) };
    let read = operators_word(&bytes, Certificate::TYPE, trust).and_then(|(statement, key)| {
        let certificate = Certificate::read(&statement).ok_or("the statement is no certificate")?;
        match certificate.manifest == manifest.canonical() {
            true => Ok(key),
            false => Err("is about another manifest".to_string()),
        }
    });
    match read {
        Ok(key) => report.pass(place, format!("{} certifies this manifest", dsse::key_id(&key))),
        Err(message) => report.fail(place, message),
    }
    Ok(())
}

/// The keys in the bundle: they must be those that are trusted. Gives the producers'.
pub(super) fn keys(
    archive: &Archive<'_>,
    identity: &Identity,
    trust: &Trust,
    report: &mut Report,
) -> io::Result<Vec<NoteKey>> {
    let log = small(archive, Name::LogKey, report)?.unwrap_or_default();
    let place = Name::LogKey.to_string();
    let trusted = trust.logs(identity);
    match read_keys(&log) {
        None => report.fail(place, "holds something else than sound verifier keys"),
        Some(keys) if !keys.iter().any(|key| trusted.contains(key)) => {
            report
                .fail(place, "holds no trusted key of this log: another one was put in its place");
        }
        Some(_) => report.pass(place, "holds a trusted key of this log"),
    }
    let operator = small(archive, Name::OperatorKey, report)?.unwrap_or_default();
    let place = Name::OperatorKey.to_string();
    match read_pem(&operator) {
        None => report.fail(place, "is no sound Ed25519 public key in PEM form"),
        Some(key) if !trust.operators().contains(&key) => {
            report.fail(place, "is no trusted operator key: another one was put in its place");
        }
        Some(_) => report.pass(place, "is a trusted operator key"),
    }
    producer_keys(archive, trust, report)
}

fn producer_keys(
    archive: &Archive<'_>,
    trust: &Trust,
    report: &mut Report,
) -> io::Result<Vec<NoteKey>> {
    if archive.part(Name::ProducerKeys).is_none() {
        return Ok(Vec::new());
    }
    let bytes = small(archive, Name::ProducerKeys, report)?.unwrap_or_default();
    let place = Name::ProducerKeys.to_string();
    let Some(keys) = read_keys(&bytes) else {
        report.fail(place, "holds something else than sound verifier keys");
        return Ok(Vec::new());
    };
    for key in keys.iter().filter(|key| !is_producer(key.name())) {
        report.fail(&place, format!("{} is no name for a producer's key", key.name()));
    }
    let (known, unknown): (Vec<_>, Vec<_>) =
        keys.iter().partition(|key| trust.keys().contains(key));
    for key in unknown {
        report.limit(&place, format!("{} is not among the trusted keys", dsse::key_id(key)));
    }
    if !known.is_empty() {
        report.pass(place, format!("{} of {} are trusted", known.len(), keys.len()));
    }
    Ok(keys)
}

/// The signed tree head; none if it is not believed.
pub(super) fn head(
    archive: &Archive<'_>,
    identity: &Identity,
    trust: &Trust,
    report: &mut Report,
) -> io::Result<Option<TreeHead>> {
    let place = Name::TreeHead.to_string();
    let Some(bytes) = small(archive, Name::TreeHead, report)? else { return Ok(None) };
    let note = String::from_utf8(bytes).unwrap_or_default();
    match read_head(&note, identity, trust) {
        Ok((head, key)) => {
            report.pass(place, format!("{} entries, signed by {}", head.size, dsse::key_id(&key)));
            Ok(Some(head))
        }
        Err(message) => {
            report.fail(place, message);
            Ok(None)
        }
    }
}

/// Reads a tree head of an identity's log that a trusted key of that log signed.
pub(super) fn read_head(
    note: &str,
    identity: &Identity,
    trust: &Trust,
) -> Result<(TreeHead, NoteKey), String> {
    let origin = TreeHead::origin_of(identity);
    let note = Note::parse(note).map_err(|error| error.to_string())?;
    let logs = trust.logs(identity);
    let keys = note.verify(&logs).map_err(|error| match error {
        NoteError::Untrusted => format!("no trusted key named {origin} signed it"),
        error => error.to_string(),
    })?;
    let head = TreeHead::parse(note.text).ok_or("the note is no tree head")?;
    if head.origin != origin {
        return Err(format!("is about another log, {}", head.origin));
    }
    let key = keys.first().ok_or("no key signed it")?;
    Ok((head, (*key).clone()))
}

/// The rule set in the bundle; `None` if it is unknown. Nothing is reported.
pub(super) fn rules(archive: &Archive<'_>) -> io::Result<Option<Rules>> {
    let Some(part) = archive.part(Name::RuleSet) else { return Ok(None) };
    Ok(part.whole(MAX_SMALL)?.and_then(|bytes| Rules::of_hash(&sha256(&[&bytes]))))
}

/// Reports a rule set that is unknown or too long.
pub(super) fn check_rules(
    archive: &Archive<'_>,
    rules: Option<Rules>,
    report: &mut Report,
) -> io::Result<()> {
    if small(archive, Name::RuleSet, report)?.is_some() && rules.is_none() {
        let ours = Rules::ALL.map(Rules::version).join(", ");
        let message = format!(
            "is a rule set that this verifier does not have; only {ours} can be derived again"
        );
        report.fail(Name::RuleSet.to_string(), message);
    }
    Ok(())
}
