//! What producers signed, held against the entries.

use super::entries::Known;
use super::sums::Listed;
use crate::archive::Archive;
use crate::envelope;
use crate::name::Name;
use crate::report::{Report, counted};
use crate::trust::{Trust, is_producer};
use ipse_core::{Digest, Identity, Seq};
use ipse_ledger::dsse::{self, EnvelopeError};
use ipse_ledger::{NoteKey, Sent};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

pub(super) fn check(
    archive: &Archive<'_>,
    listed: &Listed,
    known: &Known,
    identity: &Identity,
    trust: &Trust,
    report: &mut Report,
) -> io::Result<()> {
    let before = report.fails();
    twice(&listed.digests, report);
    let mut checking = Checking {
        known,
        identity,
        producers: trust.producers(),
        signed: vec![false; known.names.len()],
        who: BTreeSet::new(),
        unknown: BTreeMap::new(),
    };
    for (name, part) in archive.signatures() {
        let bytes = part.whole(envelope::MAX_BYTES)?;
        let checked = match &bytes {
            Some(bytes) => checking.envelope(bytes),
            None => Err(format!("is longer than {} bytes", envelope::MAX_BYTES)),
        };
        if let Err(message) = checked {
            report.fail(name.to_string(), message);
        }
    }
    checking.tell(report.fails() == before, report);
    Ok(())
}

/// Statements that stand there twice.
fn twice(digests: &[(Name, Digest)], report: &mut Report) {
    let mut seen: BTreeMap<[u8; 32], Name> = BTreeMap::new();
    for (name, digest) in digests.iter().filter(|(name, _)| matches!(name, Name::Signature(_))) {
        if let Some(first) = seen.insert(digest.0, *name) {
            report.fail(name.to_string(), format!("is {first} once more"));
        }
    }
}

struct Checking<'c> {
    known: &'c Known,
    identity: &'c Identity,
    producers: Vec<NoteKey>,
    /// Entries that a trusted producer signed, by position.
    signed: Vec<bool>,
    who: BTreeSet<String>,
    /// Statements by keys that are not trusted.
    unknown: BTreeMap<String, u64>,
}

impl Checking<'_> {
    /// Every event that it names is in the log as it was signed: others are never kept.
    fn envelope(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (statement, keys) = match dsse::open(bytes, Sent::TYPE, &self.producers) {
            Err(EnvelopeError::Untrusted) => return self.untrusted(bytes),
            opened => opened.map_err(|error| error.to_string())?,
        };
        let sent = Sent::read(&statement).ok_or("does not say what a producer sent")?;
        if sent.identity != *self.identity {
            return Err(format!("was sent to another identity, {}", sent.identity));
        }
        for (name, digest) in &sent.events {
            let Some(at) = self.known.find(name) else {
                return Err(format!("{name} was signed and is not in this log"));
            };
            let seq = Seq(at as u64 + 1);
            if self.known.digests[at] != *digest {
                return Err(format!("{name} was signed with other content than seq {seq} has"));
            }
            if self.known.house[at] {
                return Err(format!("{name} at seq {seq} is none of a producer's events"));
            }
            self.signed[at] = true;
        }
        self.who.extend(keys.into_iter().map(dsse::key_id));
        Ok(())
    }

    fn untrusted(&mut self, bytes: &[u8]) -> Result<(), String> {
        let ids = envelope::key_ids(bytes);
        let name = |id: &String| id.split('+').next().is_some_and(is_producer);
        match ids.iter().all(name) && !ids.is_empty() {
            true => *self.unknown.entry(ids.join(", ")).or_default() += 1,
            false => return Err("no producer's key signed it".to_string()),
        }
        Ok(())
    }

    fn tell(&self, holds: bool, report: &mut Report) {
        let signed = self.signed.iter().filter(|signed| **signed).count() as u64;
        if holds && !self.who.is_empty() {
            let (events, who) =
                (counted(signed, "event"), counted(self.who.len() as u64, "producer"));
            report.pass("signatures", format!("{events} signed by {who}, digests as in the log"));
        }
        for (key, n) in &self.unknown {
            let statements = counted(*n, "statement");
            let message = format!("{statements} by {key}, which is not trusted: not counted");
            report.limit("signatures", message);
        }
        let unsigned = self.known.events.saturating_sub(signed);
        if unsigned > 0 {
            let events = counted(unsigned, "event");
            report.limit("signatures", format!("{events} that no trusted producer signed"));
        }
    }
}
