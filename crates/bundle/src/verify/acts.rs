//! The acts of governance in a report.
//!
//! **Invariant:** nothing is judged here: the walk has reported acts that cannot be read or do not
//! follow.

use super::Check;
use crate::report::counted;
use ipse_ledger::Governance;

impl Check<'_, '_> {
    /// Prints each act as a note, and the settings that they give.
    pub(super) fn acts(&mut self, governance: &Governance) {
        for (seq, event) in governance.acts() {
            let by = &event.by;
            self.report.note(format!("act at seq {seq}"), format!("{} ({by})", event.act.words()));
        }
        let acts = governance.acts().len() as u64;
        if acts > 0 && !governance.is_incomplete() {
            let signatures = &governance.settings().signatures;
            let message = format!(
                "{}: each follows from the ones before; signatures: {signatures}",
                counted(acts, "act")
            );
            self.report.pass("acts", message);
        }
    }
}
