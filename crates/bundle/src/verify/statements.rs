//! What producers signed, held against the entries.
//!
//! **Invariant:** a statement counts once, whatever the encoding of its envelope.

use super::entries::Known;
use crate::archive::Archive;
use crate::envelope;
use crate::report::{Report, counted};
use crate::trust::{Trust, is_producer};
use ipse_core::{Identity, Seq};
use ipse_ledger::dsse::{self, EnvelopeError, StatementIndex};
use ipse_ledger::{NoteKey, Sent};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

pub(super) fn check(
    archive: &Archive<'_>,
    known: &Known,
    identity: &Identity,
    trust: &Trust,
    report: &mut Report,
) -> io::Result<()> {
    let before = report.fails();
    let mut checking = Checking {
        known,
        identity,
        producers: trust.producers(),
        signed: vec![false; known.names.len()],
        who: BTreeSet::new(),
        unknown: BTreeMap::new(),
    };
    let mut index = StatementIndex::default();
    for (name, part) in archive.signatures() {
        let bytes = part.whole(envelope::MAX_BYTES)?;
        let checked = match &bytes {
            Some(bytes) => match index.add(bytes, name) {
                Some(first) => Err(format!("is {first} once more: the same statement")),
                None => checking.envelope(bytes),
            },
            None => Err(format!("is longer than {} bytes", envelope::MAX_BYTES)),
        };
        if let Err(message) = checked {
            report.fail(name.to_string(), message);
        }
    }
    checking.tell(report.fails() == before, report);
    Ok(())
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
            Err(EnvelopeError::OtherKey) => return Err(self.other_key(bytes)),
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
        let signers: Vec<String> = keys.into_iter().map(dsse::key_id).collect();
        for id in dsse::key_ids(bytes).into_iter().filter(|id| !signers.contains(id)) {
            *self.unknown.entry(id).or_default() += 1;
        }
        self.who.extend(signers);
        Ok(())
    }

    /// Names the key id that has a trusted producer's name and is none of its trusted keys.
    fn other_key(&self, bytes: &[u8]) -> String {
        let trusted = |id: &String| self.producers.iter().any(|key| dsse::key_id(key) == *id);
        let named = |id: &String| self.producers.iter().any(|key| key.name() == dsse::owner(id));
        let ids = dsse::key_ids(bytes).into_iter();
        let others: Vec<String> = ids.filter(|id| named(id) && !trusted(id)).collect();
        let others = others.join(", ");
        format!("names {others}, and no trusted key of that producer has this id")
    }

    fn untrusted(&mut self, bytes: &[u8]) -> Result<(), String> {
        let ids = dsse::key_ids(bytes);
        let name = |id: &String| is_producer(dsse::owner(id));
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
