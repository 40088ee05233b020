//! JSON reports of passes and of forgetting, with the same members on the command line and over
//! HTTP.

use crate::forget::Forgotten;
use crate::pass::PassReport;
use ipse_core::Seq;
use ipse_core::json::Members;

impl PassReport {
    /// The report as a JSON object.
    pub fn json(&self) -> String {
        let committed = &self.committed;
        Members::new()
            .text("trigger", committed.trigger.name())
            .text("rule_version", committed.rule_version)
            .raw("first_seq", committed.first_seq)
            .raw("last_seq", committed.last_seq)
            .raw("rows_touched", committed.rows_touched)
            .raw("events_processed", self.events_processed)
            .raw("events_skipped", self.events_skipped)
            .finish()
    }
}

/// The report of a pass as JSON; `null` if no event was new.
pub fn pass_json(pass: Option<&PassReport>) -> String {
    pass.map_or_else(|| "null".to_owned(), PassReport::json)
}

/// The report of a requested pass and the checkpoint after it, as JSON.
pub fn consolidated_json(pass: Option<&PassReport>, checkpoint: Seq) -> String {
    Members::new().raw("checkpoint", checkpoint).raw("pass", pass_json(pass)).finish()
}

impl Forgotten {
    /// The report as JSON members.
    pub fn json(&self) -> Members {
        let json = Members::new().raw("pass", pass_json(self.pass.as_ref()));
        let json = json.raw("forgotten", self.events).raw("already", self.already);
        json.raw("erase_pending", self.erase_pending)
    }
}
