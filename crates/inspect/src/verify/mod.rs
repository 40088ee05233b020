//! Verifying a store: computes all stored and signed data again and compares.
//!
//! **Invariants**
//! - It reads one snapshot and writes nothing. Concurrent writes to the store are not findings.
//! - A mismatch is reported once, at its place. Data that depends on damaged ground data is
//!   compared with the ground data before the damage, as far as that is known.

mod derived;
mod evidence;
mod gates;
mod ground;

pub use evidence::ExternalEvidence;

use crate::answer::{clean, counted};
use crate::{Error, Page};
use evidence::Tree;
use gates::Gates;
use ground::Chunks;
use ipse_access::damaged as damaged_tokens;
use ipse_audit::{Index, JudgingAgain, Walk};
use ipse_consolidate::{Groups, RuleSet, with_rules};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Identity, Seq, hex, sha256};
use ipse_engine::rules_of;
use ipse_store::{Progress, Snapshot, View};

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
type Kind = (Severity, &'static str);

const RESTORE: &str = "keep this file, and restore a backup from before the damage";
/// Ground data: only a backup repairs it.
const GROUND: Kind = (Severity::Critical, RESTORE);
/// Not ground data, but no command recomputes it.
const BESIDE: Kind = (Severity::Error, RESTORE);
/// Derived data: it can be recomputed.
const REMAKE: &str = "keep a copy; derived data can be rebuilt, see docs/guide/operate.md";
const DERIVED: Kind = (Severity::Error, REMAKE);
/// Unknown rules: only a version that has them can compare the facts.
const RULES: Kind = (Severity::Error, "use a newer ipse; the facts stay as they are");
/// A tree head: the log is not the signed one.
const HEAD: Kind = (
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
    fn add(&mut self, kind: Kind, place: impl Into<String>, message: impl Into<String>) {
        let ((severity, hint), place, message) = (kind, place.into(), message.into());
        self.findings.push(Finding { severity, place, message, hint });
    }

    fn all<M: Into<String>>(&mut self, kind: Kind, found: impl IntoIterator<Item = (String, M)>) {
        found.into_iter().for_each(|(place, message)| self.add(kind, place, message));
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a note with a count, unless it is zero.
    fn note_count(&mut self, what: &str, count: u64) {
        if count > 0 {
            self.note(format!("{what}: {count}"));
        }
    }

    /// Whether ground data was changed.
    fn is_damaged(&self) -> bool {
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

/// Verifies one identity's part of a store, and the file. `progress` is called with the number of
/// checked events and the total. Facts that follow unknown rules are a finding and are not
/// compared; everything else is.
pub fn verify(
    snapshot: &Snapshot<'_>,
    identity: &Identity,
    manifest: &str,
    outside: &ExternalEvidence,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, Error> {
    // Unknown or unreadable rules are reported with the passes.
    let rules = rules_of(snapshot.view()).unwrap_or_default();
    with_rules!(rules, |rules| {
        run(snapshot, rules, Walk::default(), identity, manifest, outside, progress)
    })
}

/// Like [`verify`], with the caller's rules, which hold from the begin of the log.
pub fn verify_under<R: RuleSet>(
    snapshot: &Snapshot<'_>,
    rules: &R,
    identity: &Identity,
    manifest: &str,
    outside: &ExternalEvidence,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, Error> {
    run(snapshot, rules, Walk::new(rules), identity, manifest, outside, progress)
}

fn run<R: RuleSet>(
    snapshot: &Snapshot<'_>,
    rules: &R,
    walk: Walk,
    identity: &Identity,
    manifest: &str,
    outside: &ExternalEvidence,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, Error> {
    let (view, log) = (snapshot.view(), Log { walk, ..Log::default() });
    let (reached, mut report, sums): (_, Report, _) = Default::default();
    let judge = gates::judge(view, manifest, &mut report);
    let again = judge.as_ref().ok().map(|judge| JudgingAgain::new(&**judge));
    let gates = Gates { again, why_not: judge.as_ref().err().cloned() };
    let mut check = Check {
        view,
        rules,
        identity,
        manifest,
        outside,
        progress,
        report,
        log,
        reached,
        sums,
        gates,
    };
    match check.look(snapshot) {
        // An unreadable part is damage and cannot be compared.
        Err(Error::Store(error)) if error.is_damage() => {
            let why = std::error::Error::source(&error).map(|why| format!(": {why}"));
            let message = format!("cannot be read any further: {error}{}", why.unwrap_or_default());
            check.report.add(GROUND, "file", message);
        }
        ended => ended?,
    }
    check.report.findings.sort_by_key(|finding| finding.severity);
    Ok(check.report)
}

/// A running verification.
struct Check<'c, R: RuleSet> {
    view: View<'c>,
    rules: &'c R,
    identity: &'c Identity,
    manifest: &'c str,
    outside: &'c ExternalEvidence,
    progress: &'c mut dyn FnMut(u64, u64),
    report: Report,
    log: Log,
    reached: Progress,
    /// The sums at the checkpoint, and at the position of the stored tallies.
    sums: [Groups<R::Tally>; 2],
    gates: Gates<'c>,
}

/// The data that is kept during the walk over the log.
#[derive(Default)]
struct Log {
    walk: Walk,
    index: Index,
    /// The position of the last event.
    head: Seq,
    /// Whether positions are missing.
    is_missing: bool,
    chunks: Chunks,
    tree: Tree,
}

impl<R: RuleSet> Check<'_, R> {
    fn look(&mut self, snapshot: &Snapshot<'_>) -> Result<(), Error> {
        if !self.file(snapshot)? {
            return Ok(());
        }
        let torn = snapshot.wal_damage()?;
        let hash = sha256(&[self.manifest.as_bytes()]);
        if hash != self.identity.0 {
            let message =
                format!("hashes to {}, registered as {}", hex::encode(&hash), self.identity);
            self.report.add(GROUND, "manifest", message);
        }
        self.report.facts = self.view.raw_facts()?.len() as u64;
        self.ground()?;
        let damaged = self.report.is_damaged();
        self.report.note_count("events forgotten", self.log.walk.forgets.len());
        if snapshot.erase_pending()? {
            let note = "forgotten content may still be in the file; \
                        the next command that writes erases it";
            self.report.note(note);
        }
        self.derived()?;
        self.evidence()?;
        // In a damaged log a decision may lack its intent.
        if !damaged {
            self.report.all(GROUND, self.log.walk.intents.faults().iter().cloned());
            self.judged_again();
        } else if self.log.walk.intents.counts() != (0, 0) {
            self.report.note("intents and decisions were not compared: the log is damaged");
        }
        let tokens = damaged_tokens(self.view)?.into_iter().map(|id| format!("token {id}"));
        let message = "id, hash and role do not match";
        self.report.all(BESIDE, tokens.map(|token| (token, message)));
        // A process that was just writing the damaged frame has finished it by now.
        if let Some(frames) = torn
            && snapshot.wal_damage()? == torn
        {
            self.report.note(format!(
                "the write-ahead log is damaged after {frames} complete frames, and later writes \
                 are not in the store; a write that a crash interrupted before it was acknowledged \
                 looks the same"
            ));
        }
        Ok(())
    }

    /// Checks the file and its schema; returns whether the rest can be read.
    fn file(&mut self, snapshot: &Snapshot<'_>) -> Result<bool, Error> {
        for line in snapshot.file_damage()? {
            self.report.add(GROUND, "file", line.lines().last().unwrap_or_default());
        }
        let schema = snapshot.schema_damage()?;
        let is_lost =
            schema.iter().any(|(place, what)| place.starts_with("table") && *what == "missing");
        let schema = schema.into_iter().map(|(place, what)| (format!("schema: {place}"), what));
        self.report.all(BESIDE, schema);
        if is_lost {
            self.report.note("nothing else was compared: a table is missing");
            return Ok(false);
        }
        for (table, count) in snapshot.rows_of_nobody()? {
            let message = format!("rows that belong to no registered identity: {count}");
            let kind = if table == "event" { GROUND } else { DERIVED };
            self.report.add(kind, format!("table {table}"), message);
        }
        Ok(true)
    }
}
