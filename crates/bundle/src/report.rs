//! The result of a verification, in lines that are safe to print on a terminal.
//!
//! **Invariant:** a report has passed only if verification reached its end and no check failed.
//! Texts from a bundle are made printable here, and only here.

use ipse_audit::{Again, Check, Outcome};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{EventRef, Identity};
use std::collections::BTreeMap;

/// The maximum number of lines per verdict. Further lines are only counted.
pub const MAX_LINES: u64 = 100;
/// The longest place or message, in characters. Names in a bundle may be longer.
const MAX_SHOWN: usize = 400;

/// The result of one check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The check passed.
    Pass,
    /// The check failed.
    Fail,
    /// This cannot be checked with this bundle and these keys.
    Limit,
    /// A decision that is on the record of the log. Nothing was checked.
    Note,
}

impl Verdict {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Limit => "LIMIT",
            Verdict::Note => "NOTE",
        }
    }
}

/// One line of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The result of the check.
    pub verdict: Verdict,
    /// The member, line or byte that was checked.
    pub place: String,
    /// The finding, as text.
    pub message: String,
}

/// The result of a verification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The identity of the bundle, if its manifest is valid.
    pub identity: Option<Identity>,
    /// The number of entries under its tree head, if the tree head is signed.
    pub size: Option<u64>,
    /// The checks, in order.
    pub lines: Vec<Line>,
    /// The number of lines of each verdict.
    counts: [u64; 4],
    complete: bool,
    /// The result of judging each intent again.
    pub(crate) again: BTreeMap<EventRef, Again>,
}

impl Report {
    /// Whether every check was made and none failed.
    pub fn passed(&self) -> bool {
        self.complete && self.fails() == 0
    }

    /// The number of failed checks, including those that are not listed.
    pub fn fails(&self) -> u64 {
        self.counts[Verdict::Fail as usize]
    }

    /// The result of judging an intent again; `None` if this is not an intent of the bundle.
    pub fn judged_again(&self, intent: &EventRef) -> Option<Again> {
        self.again.get(intent).copied()
    }

    /// The report as one JSON object.
    pub fn json(&self) -> String {
        self.members().finish()
    }

    /// The report as one JSON object, with the trail of an action as `action`, and the result of
    /// judging its intent again.
    pub fn json_with(&self, action: Option<&str>, again: Option<Again>) -> String {
        let members = self.members().raw("action", action.unwrap_or("null"));
        members.optional("judged_again", again.map(|again| quoted(again.name()))).finish()
    }

    fn members(&self) -> Members {
        let finding = |line: &Line| {
            let verdict = line.verdict.name().to_lowercase();
            let members = Members::new().text("verdict", &verdict).text("place", &line.place);
            members.text("message", &line.message).finish()
        };
        let null = || "null".to_string();
        Members::new()
            .raw("verified", self.passed())
            .raw("identity_hash", self.identity.map_or_else(null, |it| quoted(&it.to_string())))
            .raw("tree_size", self.size.map_or_else(null, |size| size.to_string()))
            .raw("findings", list(self.lines.iter().map(finding)))
    }

    pub(crate) fn pass(&mut self, place: impl ToString, message: impl ToString) {
        self.push(Verdict::Pass, &place.to_string(), &message.to_string());
    }

    pub(crate) fn limit(&mut self, place: impl ToString, message: impl ToString) {
        self.push(Verdict::Limit, &place.to_string(), &message.to_string());
    }

    pub(crate) fn note(&mut self, place: impl ToString, message: impl ToString) {
        self.push(Verdict::Note, &place.to_string(), &message.to_string());
    }

    pub(crate) fn add(&mut self, verdict: Verdict, place: impl ToString, message: impl ToString) {
        self.push(verdict, &place.to_string(), &message.to_string());
    }

    pub(crate) fn fail(&mut self, place: impl ToString, message: impl ToString) {
        self.push(Verdict::Fail, &place.to_string(), &message.to_string());
    }

    /// Reports the result of a check; returns whether it passed.
    pub(crate) fn tell<M: ToString>(&mut self, place: impl ToString, ended: Result<M, M>) -> bool {
        let holds = ended.is_ok();
        match ended {
            Ok(message) => self.pass(place, message),
            Err(message) => self.fail(place, message),
        }
        holds
    }

    /// Reports that a check passed if nothing failed since it began; returns whether it passed.
    pub(crate) fn holds_since(
        &mut self,
        began: u64,
        place: impl ToString,
        message: impl ToString,
    ) -> bool {
        let holds = self.fails() == began;
        if holds {
            self.pass(place, message);
        }
        holds
    }

    /// Reports the result of a check that both verifiers make. What only another key could explain
    /// is a fault here: the keys are the auditor's.
    pub(crate) fn conclude(&mut self, check: Check, found: Outcome) {
        let began = self.fails();
        for (place, message) in found.faults.into_iter().chain(found.untrusted) {
            self.fail(place, message);
        }
        if let Some(message) = found.holds {
            self.holds_since(began, check.name(), message);
        }
        found.limits.into_iter().for_each(|limit| self.limit(check.name(), limit));
    }

    fn push(&mut self, verdict: Verdict, place: &str, message: &str) {
        let count = &mut self.counts[verdict as usize];
        *count += 1;
        if *count <= MAX_LINES {
            let (place, message) = (shown(place), shown(message));
            self.lines.push(Line { verdict, place, message });
        }
    }

    /// Ends the report. `complete` says whether every check was made.
    pub(crate) fn close(&mut self, complete: bool) {
        self.complete = complete;
        for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Limit, Verdict::Note] {
            let more = self.counts[verdict as usize].saturating_sub(MAX_LINES);
            if more > 0 {
                let message = format!("and {more} more that are not listed");
                self.lines.push(Line { verdict, place: "bundle".to_string(), message });
            }
        }
        if !complete {
            let (verdict, place) = (Verdict::Limit, "bundle".to_string());
            let message = "verification stopped here; later checks were not made".to_string();
            self.lines.push(Line { verdict, place, message });
        }
    }
}

/// A text without characters that move the cursor or change the text direction.
fn shown(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}');
    let unsafe_to_print =
        |c: char| c.is_control() || turns(c) || ('\u{2066}'..='\u{2069}').contains(&c);
    let replaced = |c| if unsafe_to_print(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().take(MAX_SHOWN).map(replaced).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_made_printable() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}b"), "a\u{fffd}[31m\u{fffd}b");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), MAX_SHOWN + 1);
    }

    #[test]
    fn a_report_passes_only_at_its_end() {
        let mut report = Report::default();
        assert!(!report.passed());
        report.close(true);
        assert!(report.passed());
        for _ in 0..MAX_LINES + 7 {
            report.fail("there", "that");
        }
        report.close(true);
        assert!(!report.passed());
        assert_eq!(report.lines.len() as u64, MAX_LINES + 1);
        assert!(report.lines.last().is_some_and(|line| line.message.starts_with("and 7 more")));
    }
}
