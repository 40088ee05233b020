//! Checks the tree, the signed tree heads and the producers' statements against the log.
//!
//! **Invariants:** the root is computed from the entries, never from stored subtrees. A tree head
//! counts only if the log's own key signed it. If the log is damaged, only the damage is reported.

use super::Check;
use crate::Error;
use crate::report::{BESIDE, DERIVED, GROUND, HEAD};
use ipse_consolidate::RuleSet;
use ipse_core::{Seq, sha256};
use ipse_engine::{SignedBatch, head_of, registered};
use ipse_ledger::dsse::StatementIndex;
use ipse_ledger::{NoteKey, TreeHead};
use ipse_store::{Cosigned, TreeComparison, View};
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

/// The newest tree heads, in the store and outside, with their places.
pub(super) type Heads = Vec<(&'static str, String)>;

pub(super) fn heads(view: View<'_>, outside: &ExternalEvidence) -> Result<Heads, Error> {
    let last = outside.last_head.clone().map(|note| ("tree head in the key directory", note));
    Ok(view.tree_head()?.map(|note| ("tree head", note)).into_iter().chain(last).collect())
}

/// The sizes of tree heads.
pub(super) fn sizes(heads: &Heads) -> impl Iterator<Item = u64> {
    heads.iter().filter_map(|(_, note)| Some(head_of(note)?.size))
}

/// The sizes of the tree heads under cosignatures.
pub(super) fn cosigned_sizes(cosigned: &[Cosigned]) -> impl Iterator<Item = u64> {
    cosigned.iter().filter_map(|one| Some(head_of(&one.note)?.size))
}

impl<R: RuleSet> Check<'_, R> {
    /// Compares the stored tree and the signatures with the tree over the entries.
    pub(super) fn evidence(&mut self, tree: &TreeComparison<'_>) -> Result<(), Error> {
        let (keys, size) = (&self.outside.log_keys, self.log.index.edge.size());
        // The tree ends where an entry could not be read.
        if self.report.is_damaged() || size < self.report.events {
            let note =
                "tree, tree head, signatures and approvals were not compared: the log is damaged";
            self.report.note(note);
            return Ok(());
        }
        let before = self.report.findings.len();
        let heads = &self.log.heads;
        for (place, note) in heads {
            let head = match keys.is_empty() {
                true => TreeHead::of(note, self.identity),
                false => TreeHead::signed(note, self.identity, keys).map(|(head, _)| head),
            };
            if let Err(fault) = head.and_then(|head| self.log.index.continues(&head)) {
                self.report.add(HEAD, *place, fault);
            }
        }
        let unsigned = keys.is_empty() && !heads.is_empty();
        let covered = sizes(heads).max();
        self.cosigned();
        if unsigned {
            let note = "signatures of tree heads were not checked: no key of this log was found";
            self.report.note(note);
        }
        if self.report.findings.len() == before {
            let odd =
                tree.odd().map(|end| (format!("tree at seq {end}"), "differs from the entries"));
            self.report.all(DERIVED, odd);
        }
        self.report.note_count("subtrees of the tree that are not stored", tree.missing());
        // Entries that no tree head covers are not a finding.
        match covered {
            None if size > 0 => self.report.note("no tree head is signed yet"),
            signed => {
                let tail = size.saturating_sub(signed.unwrap_or(size));
                self.report.note_count("entries past the signed tree head", tail);
            }
        }
        self.signatures()
    }

    /// Checks producers' keys and statements, including those of revoked keys.
    fn signatures(&mut self) -> Result<(), Error> {
        let settings = [
            ("signature requirement", self.view.signatures().err()),
            ("setting max-ahead", self.view.max_ahead().err()),
        ];
        let broken = settings.into_iter().filter_map(|(name, error)| Some((name, error?)));
        broken.for_each(|(name, error)| self.report.add(BESIDE, name, error.to_string()));
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
                Ok(endorsed) if let Some(fault) = self.misplaced(&endorsed) => (GROUND, fault),
                Ok(_) => continue,
            };
            self.report.add(kind, place, fault);
        }
        Ok(())
    }

    /// The contradiction of a statement to the acts that registered and revoked its key.
    fn misplaced(&self, endorsed: &SignedBatch) -> Option<String> {
        let (by, seqs) = (endorsed.signer().to_owned(), self.positions(endorsed));
        let (seq, fault) = self.log.walk.governance.statement_fault([by], &seqs)?;
        Some(format!("signs the event at seq {seq}, but {fault}"))
    }

    /// The positions of the events in a statement that have the signed digest.
    fn positions(&self, endorsed: &SignedBatch) -> Vec<Seq> {
        let found = endorsed.events().filter_map(|(name, signed)| {
            let (seq, digest) = self.log.index.look_up(name)?;
            (digest.0 == *signed).then_some(seq)
        });
        let seqs: BTreeSet<Seq> = found.collect();
        seqs.into_iter().collect()
    }
}
