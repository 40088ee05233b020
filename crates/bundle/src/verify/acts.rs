//! The acts of governance in a report.
//!
//! **Invariant:** the walk has reported acts that cannot be read or do not follow. Only the word of
//! an old key about a new one is checked here, because that needs the trusted keys.

use super::Check;
use ipse_core::Identity;
use ipse_ledger::Governance;
use ipse_ledger::act::{Act, OldSignature};

impl Check<'_, '_> {
    /// Prints each act as a note, and checks the signatures of replaced keys that are trusted.
    pub(super) fn acts(&mut self, governance: &Governance, identity: &Identity) {
        for (seq, event) in governance.acts() {
            let place = format!("act at seq {seq}");
            let mut words = event.act.words();
            if let Act::KeyChanged(change) = &event.act {
                match change.old_signature(identity, self.trust.keys()) {
                    OldSignature::Missing => {}
                    OldSignature::Valid => words.push_str(", signed by the old key"),
                    OldSignature::Unchecked => {
                        words.push_str(", with a signature of the old key, which you do not trust");
                    }
                    OldSignature::Wrong => {
                        self.report.fail(&place, "its signature is not the old key's");
                    }
                }
            }
            self.report.note(place, format!("{words} ({})", event.by));
        }
    }
}
