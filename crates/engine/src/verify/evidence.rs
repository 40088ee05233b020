//! The tree, its signed heads and what producers signed, against the log.
//!
//! **Invariants:** the root is computed from the entries, never from stored subtrees; a head counts
//! only under the log's own key. Where the log itself is damaged, that is what is told.

use super::{Report, Severity};
use crate::{Endorsed, Error, head_of};
use ipse_core::{Digest, EventRef, Identity, Seq, Time};
use ipse_ledger::{Edge, Entry, Hash, Note, NoteKey, TreeHead};
use ipse_store::sqlite::{RawEvent, Signed, View};
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
    /// Ends of subtrees that differ from the entries.
    odd: Vec<Seq>,
    /// Roots at the sizes of heads.
    roots: BTreeMap<u64, Option<Hash>>,
    heads: Vec<(&'static str, String)>,
    /// Digests by position, if anything is signed by producers.
    digests: Option<Vec<Digest>>,
}

/// The level of the smallest subtrees that are stored.
const STORED_LEVEL: u32 = 8;

impl<'v> Growing<'v> {
    pub(super) fn new(view: View<'v>, outside: &Outside) -> Result<Self, Error> {
        let mut ends = view.tree_ends()?;
        ends.reverse();
        let stored = view.tree_head()?.map(|note| ("tree head", note));
        let last = outside.last_head.clone().map(|note| ("tree head in the key directory", note));
        let heads: Vec<_> = stored.into_iter().chain(last).collect();
        let sizes = heads.iter().filter_map(|(_, note)| Some(head_of(note)?.size));
        let mut roots: BTreeMap<u64, Option<Hash>> = sizes.map(|size| (size, None)).collect();
        if let Some(root) = roots.get_mut(&0) {
            *root = Some(Edge::default().root());
        }
        let digests = (view.statement_count()? > 0).then(Vec::new);
        let (edge, whole, ending, odd) = (Edge::default(), true, Vec::new(), Vec::new());
        Ok(Growing { view, edge, whole, ends, ending, odd, roots, heads, digests })
    }

    /// Takes in the next entry.
    pub(super) fn push(&mut self, raw: &RawEvent) -> Result<(), Error> {
        let Some(entry) = entry(raw).filter(|entry| entry.seq.0 == self.edge.size() + 1) else {
            self.whole = false;
            return Ok(());
        };
        if let Some(digests) = &mut self.digests {
            digests.push(entry.digest);
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
        if report.findings.len() == before {
            for end in self.odd.iter().chain(&self.ends) {
                report.error(format!("tree at seq {end}"), "differs from the entries");
            }
        }
        self.unsigned(report);
        if let Some(digests) = &self.digests {
            for signed in self.view.statements()? {
                statement(self.view, identity, &signed, digests, report)?;
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
            report.critical(place, "cannot be read");
            return;
        };
        if head.origin != TreeHead::origin_of(identity) {
            report.critical(place, "is of another log");
        } else if !outside.log_keys.is_empty() && read.verify(&outside.log_keys).is_err() {
            report.critical(place, "is not signed by the log's key");
        } else if head.size > self.edge.size() {
            let (signed, stored) = (head.size, self.edge.size());
            let message = format!("covers {signed} entries, and there are {stored}: an older copy");
            report.critical(place, message);
        } else if self.roots.get(&head.size) != Some(&Some(head.root)) {
            let message = format!("the first {} entries are not those that were signed", head.size);
            report.critical(place, message);
        }
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

/// What a producer signed, whether its key was revoked since or not.
fn statement(
    view: View<'_>,
    identity: &Identity,
    signed: &Signed,
    digests: &[Digest],
    report: &mut Report,
) -> Result<(), Error> {
    let place = format!("producer statement {}", signed.number);
    let registered = view.producers()?;
    let keys: Vec<NoteKey> = registered.iter().filter_map(|(key, _)| NoteKey::parse(key)).collect();
    match Endorsed::open(&view.envelope(signed.number)?, identity, &keys) {
        Err(error) => report.critical(place, error.to_string()),
        Ok(endorsed) if endorsed.signer() != signed.signer => {
            report.error_of_ground(place, "another producer signed it than is said beside it");
        }
        Ok(endorsed) => {
            let mut seqs = signed.events.iter().flat_map(|run| run.start().0..=run.end().0);
            let covered = |seq: u64| {
                let place = usize::try_from(seq).unwrap_or(0).wrapping_sub(1);
                digests.get(place).is_some_and(|digest| endorsed.covers(digest))
            };
            if signed.events.is_empty() || !seqs.all(covered) {
                let message = "does not name the events that are said to be signed";
                report.error_of_ground(place, message);
            }
        }
    }
    Ok(())
}
