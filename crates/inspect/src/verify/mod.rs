//! Verifying a store: everything that is stored or signed, computed anew and compared.
//!
//! **Invariants**
//! - It reads one moment and writes nothing; a store that others write meanwhile is no finding.
//! - A breach is told where it is, once: what rests on damaged ground is compared with what the
//!   ground said when it was whole, as far as that can be known.

mod derived;
mod evidence;
mod ground;
mod passes;

pub use evidence::Outside;

use crate::answer::{clean, counted};
use crate::{Error, Page};
use evidence::Growing;
use ipse_access::damaged as damaged_tokens;
use ipse_consolidate::{RuleSet, Skip, with_rules};
use ipse_consult::intents::Intents;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Identity, Seq, hex, sha256};
use ipse_engine::rules_of;
use ipse_store::sqlite::Snapshot;
use std::collections::BTreeMap;

/// How bad a breach is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Ground is not what it was: nothing can make it again.
    Critical,
    /// Derived state does not follow from the ground: it can be made again.
    Error,
}

impl Severity {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Error => "error",
        }
    }
}

/// A breach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub place: String,
    /// What.
    pub message: String,
    /// What to do.
    pub hint: &'static str,
}

/// Ground: no repair but a copy from before.
const RESTORE: &str = "keep this file, and restore a backup from before it happened";
/// Derived: it can be made again.
const REMAKE: &str = "keep a copy; derived state can be made again, see docs/guide/operate.md";

/// Unknown rules: only a build that has them can compare the facts.
const NEWER: &str = "use a newer ipse; the facts stay as they are";

/// A head: what was signed is not what is here.
const HEAD: &str = "an older copy, or a log that was changed: put the newer one back, see \
                    docs/guide/operate.md#keys-and-tree-heads";

/// Findings that the text form lists; the JSON has all of them.
const SHOWN: usize = 50;

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Events in the log, housekeeping included.
    pub events: u64,
    /// Facts in the store.
    pub facts: u64,
    /// Breaches, the worst first.
    pub findings: Vec<Finding>,
    /// What is no breach and good to know.
    pub notes: Vec<String>,
}

impl Report {
    fn critical(&mut self, place: impl Into<String>, message: impl Into<String>) {
        let (place, message) = (place.into(), message.into());
        self.findings.push(Finding { severity: Severity::Critical, place, message, hint: RESTORE });
    }

    /// The log is not what was signed.
    fn critical_head(&mut self, place: &str, message: impl Into<String>) {
        let (place, message) = (place.to_string(), message.into());
        self.findings.push(Finding { severity: Severity::Critical, place, message, hint: HEAD });
    }

    /// Not ground itself, but no command makes it again.
    fn error_of_ground(&mut self, place: impl Into<String>, message: impl Into<String>) {
        let (place, message) = (place.into(), message.into());
        self.findings.push(Finding { severity: Severity::Error, place, message, hint: RESTORE });
    }

    /// The facts follow unknown rules.
    fn error_of_rules(&mut self, place: impl Into<String>, message: impl Into<String>) {
        let (place, message) = (place.into(), message.into());
        self.findings.push(Finding { severity: Severity::Error, place, message, hint: NEWER });
    }

    fn error(&mut self, place: impl Into<String>, message: impl Into<String>) {
        let (place, message) = (place.into(), message.into());
        self.findings.push(Finding { severity: Severity::Error, place, message, hint: REMAKE });
    }
}

impl Report {
    /// For programs.
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

    /// For people.
    pub fn page(&self, identity: &Identity) -> Page {
        let mut page = Page::new();
        for finding in self.findings.iter().take(SHOWN) {
            let (severity, place) = (finding.severity.name(), clean(&finding.place));
            page.line(format!("{severity}: {place}: {}", clean(&finding.message)));
        }
        if let Some(more) = self.findings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let more = counted(more as u64, "finding");
            page.line(format!("… and {more}; --json lists them all"));
        }
        for severity in [Severity::Critical, Severity::Error] {
            let of_it = self.findings.iter().find(|finding| finding.severity == severity);
            if let Some(finding) = of_it {
                page.note(format!("hint ({}): {}", severity.name(), finding.hint));
            }
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

/// Verifies one identity's part of a store, and the file around it. `progress` is told how many
/// events of how many were looked at. Facts that follow unknown rules are a finding and are not
/// compared; everything else is.
pub fn verify(
    snapshot: &Snapshot<'_>,
    identity: &Identity,
    manifest: &str,
    outside: &Outside,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, Error> {
    // Unknown or unreadable rules are reported with the passes.
    let rules = rules_of(snapshot.view()).unwrap_or_default();
    with_rules!(rules, |rules| {
        verify_under(snapshot, rules, identity, manifest, outside, progress)
    })
}

/// The same under rules of the caller's choice.
pub fn verify_under<R: RuleSet>(
    snapshot: &Snapshot<'_>,
    rules: &R,
    identity: &Identity,
    manifest: &str,
    outside: &Outside,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, Error> {
    let mut report = Report::default();
    match look(snapshot, rules, identity, (manifest, outside), progress, &mut report) {
        // What cannot be read is damage, and there is nothing to compare it with.
        Err(Error::Store(error)) if error.is_damage() => {
            let why = std::error::Error::source(&error).map(|why| format!(": {why}"));
            let why = why.unwrap_or_default();
            report.critical("file", format!("cannot be read any further: {error}{why}"));
        }
        ended => ended?,
    }
    report.findings.sort_by_key(|finding| finding.severity);
    Ok(report)
}

fn look<R: RuleSet>(
    snapshot: &Snapshot<'_>,
    rules: &R,
    identity: &Identity,
    (manifest, outside): (&str, &Outside),
    progress: &mut dyn FnMut(u64, u64),
    report: &mut Report,
) -> Result<(), Error> {
    if !whole_file(snapshot, report)? {
        return Ok(());
    }
    let torn = snapshot.wal_damage()?;
    if sha256(&[manifest.as_bytes()]) != identity.0 {
        let now = hex::encode(&sha256(&[manifest.as_bytes()]));
        report.critical("manifest", format!("hashes to {now}, registered as {identity}"));
    }
    let view = snapshot.view();
    let checkpoint = view.progress()?.checkpoint;
    report.facts = view.raw_facts()?.len() as u64;
    let mut growing = Growing::new(view, outside)?;
    let mut walked = ground::walk(view, rules, &mut growing, report, progress)?;
    let intents = std::mem::take(&mut walked.intents);
    let damaged = report.findings.iter().any(|it| it.severity == Severity::Critical);
    if !walked.forgets.is_empty() {
        report.notes.push(format!("events forgotten: {}", walked.forgets.len()));
    }
    if snapshot.erase_pending()? {
        let note = "what was forgotten may still be in the file: opening it for writing erases it";
        report.notes.push(note.to_string());
    }
    if walked.missing {
        let note = "passes, facts, tallies and the index were not compared: events are missing";
        report.notes.push(note.to_string());
    } else {
        let in_doubt = passes::check(view, rules, &walked, report)?;
        for (place, message) in view.index_damage(&walked.names)? {
            report.error(place, message);
        }
        if walked.forgets.lost(Seq(1)..=walked.head) {
            let note = "facts and tallies were not compared: content they rest on is gone";
            report.notes.push(note.to_string());
        } else if let Some(why) = in_doubt {
            report.notes.push(format!("facts and tallies were not compared: {why}"));
        } else {
            let head = walked.head;
            let skipped = derived::check(view, rules, identity, manifest, walked, report)?;
            notes(checkpoint, head, &skipped, report);
        }
    }
    growing.check(identity, outside, report)?;
    check_intents(&intents, damaged, report);
    for id in damaged_tokens(view)? {
        report.error_of_ground(format!("token {id}"), "id, hash and role do not fit together");
    }
    note_torn_log(snapshot, torn, report)
}

/// Notes that the write-ahead log ends in a damaged frame, if it did before and still does: a
/// process that was just writing that frame has finished it by now.
fn note_torn_log(
    snapshot: &Snapshot<'_>,
    before: Option<u64>,
    report: &mut Report,
) -> Result<(), Error> {
    let Some(frames) = before else { return Ok(()) };
    if snapshot.wal_damage()? == before {
        report.notes.push(format!(
            "the write-ahead log is damaged after {frames} whole frames, and what was written \
             after them is not in the store; a write that a crash interrupted before it was \
             acknowledged looks the same"
        ));
    }
    Ok(())
}

/// Checks what intents and confirmations say. In a damaged log a decision may lack its intent.
fn check_intents(intents: &Intents, damaged: bool, report: &mut Report) {
    if !damaged {
        for (place, message) in intents.faults() {
            report.critical(place, message);
        }
    } else if intents.counts() != (0, 0) {
        let note = "intents and decisions were not compared: the log is damaged";
        report.notes.push(note.to_string());
    }
}

/// Looks at the file and its schema; says whether the rest can be read.
fn whole_file(snapshot: &Snapshot<'_>, report: &mut Report) -> Result<bool, Error> {
    for line in snapshot.file_damage()? {
        report.critical("file", line.lines().last().unwrap_or_default());
    }
    let schema = snapshot.schema_damage()?;
    let lost = schema.iter().any(|(place, what)| place.starts_with("table") && *what == "missing");
    for (place, what) in schema {
        report.error_of_ground(format!("schema: {place}"), what);
    }
    if lost {
        report.notes.push("nothing else was compared: a table is missing".to_string());
        return Ok(false);
    }
    for (table, count) in snapshot.rows_of_nobody()? {
        let message = format!("rows that belong to no registered identity: {count}");
        match table {
            "event" => report.critical("table event", message),
            table => report.error(format!("table {table}"), message),
        }
    }
    Ok(true)
}

/// Skipped events by type and reason.
type SkippedCounts = Vec<(String, Skip, u64)>;

fn notes(checkpoint: Seq, head: Seq, skipped: &SkippedCounts, report: &mut Report) {
    let folded = checkpoint.0 + u64::from(checkpoint.0 > 0);
    if head.0 > folded {
        let lag = head.0 - folded;
        report.notes.push(format!("events past the checkpoint, not folded yet: {lag}"));
    }
    let mut by_type: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, skip, n) in skipped {
        by_type.entry(name).or_default().push(format!("{n} {}", skip.code()));
    }
    for (name, reasons) in by_type {
        let name = ipse_door::printable(name);
        report.notes.push(format!("{name} events that feed no fact: {}", reasons.join(", ")));
    }
}
