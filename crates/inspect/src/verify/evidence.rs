//! Checks the tree, the signed tree heads and the producers' statements against the log.
//!
//! **Invariants:** the root is computed from the entries, never from stored subtrees. A tree head
//! counts only if the log's own key signed it. If the log is damaged, only the damage is reported.

use super::{BESIDE, Check, DERIVED, GROUND, HEAD};
use crate::Error;
use ipse_consolidate::RuleSet;
use ipse_core::{Admitted, EventRef, Seq, sha256};
use ipse_engine::{SignedBatch, head_of, registered};
use ipse_ledger::dsse::StatementIndex;
use ipse_ledger::{ApprovalFault, Note, NoteKey, TreeHead, entry_hash, write_entry};
use ipse_store::{Cosigned, RawEvent, STORED_LEVEL, View};
use std::collections::{BTreeMap, BTreeSet};

/// Evidence about a log from outside its store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExternalEvidence {
    /// The keys that may sign its tree heads.
    pub log_keys: Vec<NoteKey>,
    /// The last signed tree head.
    pub last_head: Option<String>,
    /// The keys that may approve other rules.
    pub operator_keys: Vec<NoteKey>,
}

/// The stored tree and the tree heads, compared during the walk over the log.
#[derive(Default)]
pub(super) struct Tree {
    /// The newest tree heads, in the store and outside, with their places.
    heads: Vec<(&'static str, String)>,
    /// The cosignatures of witnesses, each with its tree head.
    cosigned: Vec<Cosigned>,
    /// The size of the tree head in the store. The stored tree has the same size.
    stored: u64,
    /// Ends of stored subtrees that the walk has not reached, and of those that differ.
    ends: BTreeSet<Seq>,
    odd: Vec<Seq>,
    /// The number of subtrees that are not stored.
    missing: u64,
    /// Whether producers signed events. Only then digests are kept.
    is_signed: bool,
}

impl Tree {
    pub(super) fn new(view: View<'_>, outside: &ExternalEvidence) -> Result<Self, Error> {
        let (stored, ends) = (view.tree_head()?, view.tree_ends()?.into_iter().collect());
        let size = stored.as_deref().and_then(head_of).map_or(0, |head| head.size);
        let last = outside.last_head.clone().map(|note| ("tree head in the key directory", note));
        let heads = stored.map(|note| ("tree head", note)).into_iter().chain(last).collect();
        let cosigned = view.all_cosignatures()?;
        // A read error is reported later, when they are compared.
        let is_signed = view.statements().map_or(true, |statements| !statements.is_empty());
        Ok(Tree { heads, cosigned, stored: size, ends, is_signed, ..Tree::default() })
    }

    /// The sizes of the tree heads.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> {
        let cosigned = self.cosigned.iter().map(|cosigned| &cosigned.note);
        let notes = self.heads.iter().map(|(_, note)| note).chain(cosigned);
        notes.filter_map(|note| Some(head_of(note)?.size))
    }
}

impl<R: RuleSet> Check<'_, R> {
    /// Adds the next entry to the tree.
    pub(super) fn grow(&mut self, raw: &RawEvent, row: Option<&Admitted>) -> Result<(), Error> {
        let (tree, seq) = (&mut self.log.tree, raw.seq);
        let is_next = seq.0 == self.log.index.edge.size() + 1;
        let fits = is_next && raw.event_ref.len() == 16 && raw.digest.len() == 32;
        let Some(row) = row.filter(|_| fits) else { return Ok(()) };
        let Admitted { event_ref, time, event_type, digest, .. } = row;
        self.log.index.digests.extend(tree.is_signed.then_some(*digest));
        let (mut entry, mut ending) = (String::with_capacity(256), Vec::new());
        write_entry(seq, event_ref, *time, event_type, digest, &mut entry);
        self.log.index.grow(entry_hash(entry.as_bytes()), |level, _, hash| {
            if level >= STORED_LEVEL {
                ending.push(*hash);
            }
        });
        match tree.ends.remove(&seq) {
            true if self.view.stored_nodes(seq)?.as_ref() != Some(&ending) => tree.odd.push(seq),
            false if !ending.is_empty() && seq.0 <= tree.stored => tree.missing += 1,
            _ => {}
        }
        Ok(())
    }

    /// Compares the stored tree and the signatures with the tree over the entries.
    pub(super) fn evidence(&mut self) -> Result<(), Error> {
        let tree = std::mem::take(&mut self.log.tree);
        let (keys, size) = (&self.outside.log_keys, self.log.index.edge.size());
        // The tree ends where an entry could not be read.
        if self.report.is_damaged() || size < self.report.events {
            let note = "tree, tree head and signatures were not compared: the log is damaged";
            self.report.note(note);
            return Ok(());
        }
        let before = self.report.findings.len();
        let signed = |note: &str| Note::parse(note).is_ok_and(|note| note.verify(keys).is_ok());
        for (place, note) in &tree.heads {
            let fault = match head_of(note) {
                None => "cannot be read".to_string(),
                Some(head) if head.origin != TreeHead::origin_of(self.identity) => {
                    "belongs to another log".to_string()
                }
                Some(_) if !keys.is_empty() && !signed(note) => {
                    "is not signed by the log's key".to_string()
                }
                Some(TreeHead { size: covered, .. }) if covered > size => {
                    format!("covers {covered} entries, but there are {size}: an older copy")
                }
                Some(head) if !self.log.index.continues(&head) => {
                    format!("the first {} entries are not those that were signed", head.size)
                }
                Some(_) => continue,
            };
            self.report.add(HEAD, *place, fault);
        }
        self.cosigned(&tree.cosigned);
        if keys.is_empty() && !tree.heads.is_empty() {
            let note = "signatures of tree heads were not checked: no key of this log was found";
            self.report.note(note);
        }
        if self.report.findings.len() == before {
            let odd = tree.odd.iter().chain(tree.ends.iter().rev());
            let odd = odd.map(|end| (format!("tree at seq {end}"), "differs from the entries"));
            self.report.all(DERIVED, odd);
        }
        // Missing subtrees are computed from the entries when they are needed.
        self.report.note_count("subtrees of the tree that are not stored", tree.missing);
        // Entries that no tree head covers are not a finding.
        match tree.sizes().max() {
            None if size > 0 => self.report.note("no tree head is signed yet"),
            signed => {
                let tail = size.saturating_sub(signed.unwrap_or(size));
                self.report.note_count("entries past the signed tree head", tail);
            }
        }
        self.approvals();
        self.signatures()
    }

    /// Checks the approvals of rules.
    fn approvals(&mut self) {
        let (walk, keys) = (&self.log.walk, &self.outside.operator_keys);
        for (place, fault) in walk.approval_faults(self.identity, keys) {
            match &fault {
                // The operator's key was replaced, or the log came from another operator.
                ApprovalFault::Untrusted(ids) => {
                    let note = format!("{place}: the operator key here did not approve it: {ids}");
                    self.report.note(note);
                }
                ApprovalFault::Wrong(_) => self.report.add(GROUND, place, fault.to_string()),
            }
        }
        if keys.is_empty() && !walk.approvals.is_empty() {
            let note = "approvals of rules were not checked: no key of an operator was found";
            self.report.note(note);
        }
    }

    /// Checks producers' keys and statements, including those of revoked keys.
    fn signatures(&mut self) -> Result<(), Error> {
        if let Err(error) = self.view.signatures() {
            self.report.add(BESIDE, "signature requirement", error.to_string());
        }
        if let Err(error) = self.view.max_ahead() {
            self.report.add(BESIDE, "setting max-ahead", error.to_string());
        }
        let producers = self.view.producers()?;
        for producer in &producers {
            if NoteKey::parse(&producer.key).is_none() {
                let place = format!("key of a producer `{}`", producer.key);
                self.report.add(BESIDE, place, "cannot be read");
            }
        }
        let (keys, mut envelopes) = (registered(&producers), BTreeMap::new());
        let mut statements = StatementIndex::default();
        for signed in self.view.statements()? {
            let place = format!("producer statement {}", signed.number);
            let envelope = self.view.envelope(signed.number)?;
            let hash = sha256(&[envelope.as_bytes()]);
            if let Some(first) = envelopes.insert(hash, signed.number) {
                self.report.add(BESIDE, place, format!("is a duplicate of statement {first}"));
                continue;
            }
            if let Some(first) = statements.add(envelope.as_bytes(), signed.number) {
                // Earlier versions stored such an envelope. No export includes it.
                self.report.note(format!("{place} is statement {first} in another encoding"));
            }
            let (kind, fault) = match SignedBatch::open(&envelope, self.identity, &keys) {
                Err(error) => (GROUND, error.to_string()),
                Ok(endorsed) if endorsed.signer() != signed.signer => {
                    (BESIDE, "its signer is not the stored one".to_string())
                }
                Ok(endorsed) if !signed.covers_exactly(&self.positions(&endorsed)) => {
                    (BESIDE, "does not name the events that are stored as signed".to_string())
                }
                Ok(_) => continue,
            };
            self.report.add(kind, place, fault);
        }
        Ok(())
    }

    /// The positions of the events in a statement that have the signed digest.
    fn positions(&self, endorsed: &SignedBatch) -> Vec<Seq> {
        let position = |(name, signed): (&EventRef, &[u8; 32])| {
            let (seq, digest) = self.log.index.look_up(name)?;
            (digest.0 == *signed).then_some(seq)
        };
        let seqs: BTreeSet<Seq> = endorsed.events().filter_map(position).collect();
        seqs.into_iter().collect()
    }
}
