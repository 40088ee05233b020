//! The result of verifying a store: findings with severity and hint, and notes.
//!
//! **Invariant:** the severity and the hint of a finding follow from its kind. Findings are sorted
//! by severity when the report ends.

use crate::Page;
use crate::answer::{clean, counted};
use ipse_core::Identity;
use ipse_core::json::{Members, list, quoted};

/// The severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Ground data was changed. It cannot be recomputed.
    Critical,
    /// Derived data does not match the ground data. It can be recomputed.
    Error,
}

impl Severity {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Error => "error",
        }
    }
}

/// A mismatch, with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The place, such as `seq 7`.
    pub place: String,
    /// The mismatch, as text.
    pub message: String,
    /// The action for the operator.
    pub hint: &'static str,
}

/// A kind of finding: its severity and its hint.
pub(crate) type Kind = (Severity, &'static str);

const RESTORE: &str = "keep this file, and restore a backup from before the damage";
/// Ground data: only a backup repairs it.
pub(crate) const GROUND: Kind = (Severity::Critical, RESTORE);
/// Not ground data, but no command recomputes it.
pub(crate) const BESIDE: Kind = (Severity::Error, RESTORE);
/// Derived data: it can be recomputed.
const REMAKE: &str = "keep a copy; derived data can be rebuilt, see docs/guide/operate.md";
pub(crate) const DERIVED: Kind = (Severity::Error, REMAKE);
/// Unknown rules: only a version that has them can compare the facts.
pub(crate) const RULES: Kind = (Severity::Error, "use a newer ipse; the facts stay as they are");
/// A tree head: the log is not the signed one.
pub(crate) const HEAD: Kind = (
    Severity::Critical,
    "this is an older copy, or the log was changed: restore the newer copy, see \
     docs/guide/operate.md#keys-and-tree-heads",
);

/// The maximum number of findings in the text form. The JSON has all of them.
pub const SHOWN: usize = 50;

/// The result of a verification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The number of checked positions: all events of producers and of ipse, including forgotten
    /// ones.
    pub events: u64,
    /// The number of facts in the store.
    pub facts: u64,
    /// The mismatches, the most severe first.
    pub findings: Vec<Finding>,
    /// Remarks that are not mismatches, and checks that were not made.
    pub notes: Vec<String>,
}

impl Report {
    pub(crate) fn add(&mut self, kind: Kind, place: impl Into<String>, message: impl Into<String>) {
        let ((severity, hint), place, message) = (kind, place.into(), message.into());
        self.findings.push(Finding { severity, place, message, hint });
    }

    pub(crate) fn all<M: Into<String>>(
        &mut self,
        kind: Kind,
        found: impl IntoIterator<Item = (String, M)>,
    ) {
        found.into_iter().for_each(|(place, message)| self.add(kind, place, message));
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a note with a count, unless it is zero.
    pub(crate) fn note_count(&mut self, what: &str, count: u64) {
        if count > 0 {
            self.note(format!("{what}: {count}"));
        }
    }

    /// Whether ground data was changed.
    pub(crate) fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Critical)
    }

    /// The report as JSON.
    pub fn json(&self, identity: &Identity) -> String {
        let finding = |finding: &Finding| {
            Members::new()
                .text("severity", finding.severity.name())
                .text("place", &finding.place)
                .text("message", &finding.message)
                .text("hint", finding.hint)
                .finish()
        };
        Members::new()
            .text("identity_hash", &identity.to_string())
            .raw("events", self.events)
            .raw("facts", self.facts)
            .raw("findings", list(self.findings.iter().map(finding)))
            .raw("notes", list(self.notes.iter().map(|note| quoted(note))))
            .finish()
    }

    /// The report as text.
    pub fn page(&self, identity: &Identity) -> Page {
        let mut page = Page::new();
        for finding in self.findings.iter().take(SHOWN) {
            let (severity, place) = (finding.severity.name(), clean(&finding.place));
            page.line(format!("{severity}: {place}: {}", clean(&finding.message)));
        }
        if let Some(more) = self.findings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let more = counted(more as u64, "more finding");
            page.line(format!("… and {more}"));
        }
        for severity in [Severity::Critical, Severity::Error] {
            let hint = self.findings.iter().find(|it| it.severity == severity).map(|it| it.hint);
            hint.into_iter().for_each(|it| page.note(format!("hint ({}): {it}", severity.name())));
        }
        self.notes.iter().for_each(|note| page.line(format!("note: {}", clean(note))));
        let (events, facts) = (counted(self.events, "event"), counted(self.facts, "fact"));
        let findings = match self.findings.len() {
            0 => "no findings".to_string(),
            n => counted(n as u64, "finding"),
        };
        page.line(format!("{identity}\n{events}, {facts}: {findings}"));
        page
    }
}
