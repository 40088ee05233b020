//! Checks the stored cosignatures of witnesses: each belongs to a tree head of this log.
//!
//! **Invariant:** the keys of witnesses are with auditors, so no signature is verified here.

use super::Check;
use crate::report::{BESIDE, HEAD};
use ipse_consolidate::RuleSet;
use ipse_engine::head_of;
use ipse_ledger::{Cosignature, TreeHead};

impl<R: RuleSet> Check<'_, R> {
    /// Compares cosignatures, and the tree heads under them, with the tree over the entries.
    pub(super) fn cosigned(&mut self) {
        for cosigned in &self.log.cosigned {
            let line = Cosignature::parse(&cosigned.line);
            let (kind, fault) = match head_of(&cosigned.note) {
                _ if line.is_none_or(|line| line.key_id() != cosigned.key) => {
                    (BESIDE, "cannot be read".to_string())
                }
                None => (BESIDE, "its tree head cannot be read".to_string()),
                Some(head) if head.origin != TreeHead::origin_of(self.identity) => {
                    (BESIDE, "its tree head belongs to another log".to_string())
                }
                Some(head) if head.size != cosigned.size => {
                    (BESIDE, format!("its tree head covers {} entries", head.size))
                }
                Some(head) => match self.log.index.continues(&head) {
                    Err(fault) => (HEAD, fault),
                    Ok(()) => continue,
                },
            };
            let place = format!("cosignature under {} by {}", cosigned.size, cosigned.key);
            self.report.add(kind, place, fault);
        }
        self.report.note_count("cosignatures of witnesses", self.log.cosigned.len() as u64);
    }
}
