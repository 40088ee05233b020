//! The tree, its signed heads and what producers signed, against the log.
//!
//! **Invariants:** the root is computed from the entries, never from stored subtrees; a head counts
//! only under the log's own key. Where the log itself is damaged, that is what is told.

use super::{Report, Severity};
use crate::Error;
use ipse_core::{Digest, EventRef, Identity, Seq, Time, sha256};
use ipse_engine::{Endorsed, head_of, registered};
use ipse_ledger::dsse::StatementIndex;
use ipse_ledger::{Edge, Entry, Hash, Note, NoteKey, TreeHead};
use ipse_store::sqlite::{RawEvent, STORED_LEVEL, Signed, View};
use std::collections::BTreeMap;

/// What is known about a log outside its store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outside {
    /// The keys under which its tree heads count.
    pub log_keys: Vec<NoteKey>,
    /// The last tree head that was signed.
    pub last_head: Option<String>,
}

/// The tree, growing with the walk over the log.
pub(super) struct Growing<'v> {
    view: View<'v>,
    edge: Edge,
    /// Whether every entry could be read.
    whole: bool,
    /// Stored subtrees that were not met yet, the last ones first.
    ends: Vec<Seq>,
    /// What ends at the entry that was pushed last, the smallest first.
    ending: Vec<Hash>,
    /// Ends of subtrees that differ from the entries, and of those that are not there.
    odd: Vec<Seq>,
    missing: Vec<Seq>,
    /// Roots at the sizes of heads.
    roots: BTreeMap<u64, Option<Hash>>,
    heads: Vec<(&'static str, String)>,
    /// Names and digests with their positions, if anything is signed by producers.
    digests: Option<Vec<(EventRef, Digest, Seq)>>,
}

/// Where the newest head should be.
const IN_STORE: &str = "tree head";
impl<'v> Growing<'v> {
    pub(super) fn new(view: View<'v>, outside: &Outside) -> Result<Self, Error> {
        let mut ends = view.tree_ends()?;
        ends.reverse();
        let stored = view.tree_head()?.map(|note| (IN_STORE, note));
        let last = outside.last_head.clone().map(|note| ("tree head in the key directory", note));
        let heads: Vec<_> = stored.into_iter().chain(last).collect();
        let sizes = heads.iter().filter_map(|(_, note)| Some(head_of(note)?.size));
        let mut roots: BTreeMap<u64, Option<Hash>> = sizes.map(|size| (size, None)).collect();
        if let Some(root) = roots.get_mut(&0) {
            *root = Some(Edge::default().root());
        }
        let digests = (view.statement_count()? > 0).then(Vec::new);
        let (edge, whole, ending) = (Edge::default(), true, Vec::new());
        let (odd, missing) = (Vec::new(), Vec::new());
        Ok(Growing { view, edge, whole, ends, ending, odd, missing, roots, heads, digests })
    }

    /// Takes in the next entry.
    pub(super) fn push(&mut self, raw: &RawEvent) -> Result<(), Error> {
        let Some(entry) = entry(raw).filter(|entry| entry.seq.0 == self.edge.size() + 1) else {
            self.whole = false;
            return Ok(());
        };
        if let Some(digests) = &mut self.digests {
            digests.push((entry.event_ref, entry.digest, entry.seq));
        }
        self.ending.clear();
        let ending = &mut self.ending;
        self.edge.push(entry.hash(), |level, _, hash| {
            if level >= STORED_LEVEL {
                ending.push(*hash);
            }
        });
        if let Some(root) = self.roots.get_mut(&entry.seq.0) {
            *root = Some(self.edge.root());
        }
        if !self.ending.is_empty() && self.ends.last() != Some(&entry.seq) {
            self.missing.push(entry.seq);
        }
        while self.ends.last().is_some_and(|end| *end <= entry.seq) {
            let end = self.ends.pop().unwrap_or_default();
            if end != entry.seq || self.view.stored_nodes(end)?.as_ref() != Some(&self.ending) {
                self.odd.push(end);
            }
        }
        Ok(())
    }

    /// Compares what is stored and signed with the tree over the entries.
    pub(super) fn check(
        self,
        identity: &Identity,
        outside: &Outside,
        report: &mut Report,
    ) -> Result<(), Error> {
        let damaged = report.findings.iter().any(|f| f.severity == Severity::Critical);
        if damaged || !self.whole {
            let note = "tree, tree head and signatures were not compared: the log is damaged";
            report.notes.push(note.to_string());
            return Ok(());
        }
        let before = report.findings.len();
        for (place, note) in &self.heads {
            self.head(place, note, identity, outside, report);
        }
        if outside.log_keys.is_empty() && !self.heads.is_empty() {
            let note = "signatures of tree heads were not checked: there is no key of this log";
            report.notes.push(note.to_string());
        }
        if report.findings.len() == before {
            for end in self.odd.iter().chain(&self.ends) {
                report.error(format!("tree at seq {end}"), "differs from the entries");
            }
        }
        let missing = self.missing.iter().filter(|end| end.0 <= self.stored_size()).count();
        if missing > 0 {
            // They are computed from the entries where they are needed.
            report.notes.push(format!("subtrees of the tree that are not stored: {missing}"));
        }
        self.unsigned(report);
        if let Err(error) = self.view.signatures() {
            report.error_of_ground("policy on signatures", error.to_string());
        }
        let producers = self.view.producers()?;
        for (key, _) in producers.iter().filter(|(key, _)| NoteKey::parse(key).is_none()) {
            let place = format!("key of a producer `{key}`");
            report.error_of_ground(place, "cannot be read");
        }
        if let Some(mut digests) = self.digests {
            digests.sort_unstable_by_key(|(name, _, _)| *name);
            let mut seen = Seen::default();
            for signed in self.view.statements()? {
                statement(self.view, identity, &signed, (&digests, &mut seen), report)?;
            }
        }
        Ok(())
    }

    fn head(
        &self,
        place: &str,
        note: &str,
        identity: &Identity,
        outside: &Outside,
        report: &mut Report,
    ) {
        let read = Note::parse(note).ok();
        let head = read.as_ref().and_then(|note| TreeHead::parse(note.text));
        let (Some(read), Some(head)) = (read, head) else {
            report.critical_head(place, "cannot be read");
            return;
        };
        if head.origin != TreeHead::origin_of(identity) {
            report.critical_head(place, "is of another log");
        } else if !outside.log_keys.is_empty() && read.verify(&outside.log_keys).is_err() {
            report.critical_head(place, "is not signed by the log's key");
        } else if head.size > self.edge.size() {
            let (signed, stored) = (head.size, self.edge.size());
            let message = format!("covers {signed} entries, and there are {stored}: an older copy");
            report.critical_head(place, message);
        } else if self.roots.get(&head.size) != Some(&Some(head.root)) {
            let message = format!("the first {} entries are not those that were signed", head.size);
            report.critical_head(place, message);
        }
    }

    /// How far the head in the store reaches: what is stored of the tree reaches as far.
    fn stored_size(&self) -> u64 {
        let stored = self.heads.iter().find(|(place, _)| *place == IN_STORE);
        stored.and_then(|(_, note)| head_of(note)).map_or(0, |head| head.size)
    }

    /// What no head covers is no breach.
    fn unsigned(&self, report: &mut Report) {
        let heads = self.heads.iter().filter_map(|(_, note)| head_of(note));
        let size = self.edge.size();
        match heads.map(|head| head.size).max() {
            None if size > 0 => report.notes.push("no tree head is signed yet".to_string()),
            Some(signed) if signed < size => {
                let tail = size - signed;
                report.notes.push(format!("entries past the signed tree head: {tail}"));
            }
            _ => {}
        }
    }
}

/// The entry of a row, if it can be one.
fn entry(raw: &RawEvent) -> Option<Entry> {
    Some(Entry {
        seq: raw.seq,
        event_ref: EventRef(raw.event_ref.as_slice().try_into().ok()?),
        time: Time::from_micros(raw.time)?,
        event_type: String::from_utf8(raw.event_type.clone()).ok()?,
        digest: Digest(raw.digest.as_slice().try_into().ok()?),
    })
}

/// What was met of producers' statements.
#[derive(Default)]
struct Seen {
    /// Numbers by the hash of the envelope.
    envelopes: BTreeMap<[u8; 32], u64>,
    statements: StatementIndex<u64>,
}

/// What a producer signed, whether its key was revoked since or not.
fn statement(
    view: View<'_>,
    identity: &Identity,
    signed: &Signed,
    (digests, seen): (&[(EventRef, Digest, Seq)], &mut Seen),
    report: &mut Report,
) -> Result<(), Error> {
    let place = format!("producer statement {}", signed.number);
    let envelope = view.envelope(signed.number)?;
    if let Some(first) = seen.envelopes.insert(sha256(&[envelope.as_bytes()]), signed.number) {
        report.error_of_ground(place, format!("is statement {first} once more"));
        return Ok(());
    }
    if let Some(first) = seen.statements.add(envelope.as_bytes(), signed.number) {
        // Earlier versions kept such an envelope; no export holds it.
        report.notes.push(format!("{place} is statement {first} in another encoding"));
    }
    match Endorsed::open(&envelope, identity, &registered(&view.producers()?)) {
        Err(error) => report.critical(place, error.to_string()),
        Ok(endorsed) if endorsed.signer() != signed.signer => {
            report.error_of_ground(place, "another producer signed it than is said beside it");
        }
        Ok(endorsed) => {
            let position = |(name, digest): (&EventRef, &[u8; 32])| {
                let found = digests.binary_search_by_key(name, |(name, _, _)| *name).ok()?;
                (digests[found].1.0 == *digest).then_some(digests[found].2)
            };
            let mut seqs: Vec<Seq> = endorsed.events().filter_map(position).collect();
            seqs.sort_unstable();
            seqs.dedup();
            if !signed.covers_exactly(&seqs) {
                let message = "does not name the events that are said to be signed";
                report.error_of_ground(place, message);
            }
        }
    }
    Ok(())
}
