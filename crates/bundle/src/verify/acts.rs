//! The acts of governance in a report.
//!
//! **Invariant:** nothing is judged here: the walk has reported acts that cannot be read or do not
//! follow.

use super::Check;
use ipse_ledger::Governance;

impl Check<'_, '_> {
    /// Prints each act as a note.
    pub(super) fn acts(&mut self, governance: &Governance) {
        for (seq, event) in governance.acts() {
            let by = &event.by;
            self.report.note(format!("act at seq {seq}"), format!("{} ({by})", event.act.words()));
        }
    }
}
