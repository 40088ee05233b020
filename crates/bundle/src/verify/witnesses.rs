//! Cosignatures of witnesses under the tree head.
//!
//! **Invariant:** a required witness must have cosigned exactly this tree head. Cosignatures of
//! other witnesses are ignored, as C2SP requires.

use super::Check;
use crate::name::Name;
use ipse_consult::answer::counted;
use ipse_ledger::cosignature::cosignatures;
use ipse_ledger::{Cosignature, TreeHead, WitnessKey};
use std::io;

/// The place in a report.
const WITNESS: &str = "witness";

impl Check<'_, '_> {
    /// Checks the cosignatures under a signed tree head.
    pub(super) fn witnesses(&mut self, head: Option<&TreeHead>) -> io::Result<()> {
        let Some(head) = head else { return Ok(()) };
        let note = self.small(Name::TreeHead)?.unwrap_or_default();
        let found = cosignatures(std::str::from_utf8(&note).unwrap_or_default());
        for witness in self.trust.witnesses() {
            self.report.tell(WITNESS, cosigned(head, &found, witness));
        }
        if self.trust.witnesses().is_empty() {
            let message = match found.len() as u64 {
                0 => "none is required, and none cosigned: an operator who signs alone could show \
                      others a second history"
                    .to_owned(),
                n => format!(
                    "{} not checked: without --witness, an operator who signs alone could show \
                     others a second history",
                    counted(n, "cosignature")
                ),
            };
            self.report.limit(WITNESS, message);
        }
        Ok(())
    }
}

/// Whether a witness cosigned a tree head, as text.
fn cosigned(
    head: &TreeHead,
    found: &[Cosignature],
    witness: &WitnessKey,
) -> Result<String, String> {
    let (key, text) = (witness.key_id(), head.text());
    let mut named = found.iter().filter(|one| one.names(witness)).peekable();
    if named.peek().is_none() {
        return Err(format!("{key} did not cosign this tree head"));
    }
    match named.clone().find(|one| !one.verifies(&text, witness)) {
        Some(_) => Err(format!("the cosignature by {key} is not one of this tree head")),
        None => {
            let (entries, last) = (counted(head.size, "entry"), named.max_by_key(|one| one.time()));
            let when = last.map(Cosignature::when).unwrap_or_default();
            Ok(format!("{key} cosigned these {entries} at {when}"))
        }
    }
}
