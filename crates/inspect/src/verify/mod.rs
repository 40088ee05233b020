//! Verifying a store: computes all stored and signed data again and compares.
//!
//! **Invariants**
//! - It reads one snapshot and writes nothing. Concurrent writes to the store are not findings.
//! - A mismatch is reported once, at its place. Data that depends on damaged ground data is
//!   compared with the ground data before the damage, as far as that is known.

mod acts;
mod cosigned;
mod derived;
mod evidence;
mod gates;
mod ground;

pub use crate::report::{Finding, Report, SHOWN, Severity};
pub use evidence::ExternalEvidence;

use crate::Error;
use crate::report::{BESIDE, DERIVED, GROUND};
use evidence::Heads;
use gates::Gates;
use ipse_access::damaged as damaged_tokens;
use ipse_audit::{Index, JudgingAgain, Walk};
use ipse_consolidate::{Groups, RuleSet, with_rules};
use ipse_core::{Identity, Seq, hex, sha256};
use ipse_engine::rules_of;
use ipse_store::{Cosigned, Progress, Snapshot, View};

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
        run(snapshot, rules, (Walk::default(), true), identity, manifest, outside, progress)
    })
}

/// Like [`verify`], with the caller's rules, which hold from the begin of the log. The caller may
/// have chosen settings too, so they are not compared with the acts.
pub fn verify_under<R: RuleSet>(
    snapshot: &Snapshot<'_>,
    rules: &R,
    identity: &Identity,
    manifest: &str,
    outside: &ExternalEvidence,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, Error> {
    run(snapshot, rules, (Walk::new(rules), false), identity, manifest, outside, progress)
}

fn run<R: RuleSet>(
    snapshot: &Snapshot<'_>,
    rules: &R,
    (walk, governed): (Walk, bool),
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
        governed,
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
    /// Whether settings are compared with the acts.
    governed: bool,
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
    heads: Heads,
    /// The cosignatures of witnesses, each with its tree head.
    cosigned: Vec<Cosigned>,
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
        let tree = self.ground()?;
        self.report.note_count("events forgotten", self.log.walk.forgets.len());
        if snapshot.erase_pending()? {
            let note = "forgotten content may still be in the file; \
                        the next command that writes erases it";
            self.report.note(note);
        }
        self.derived()?;
        self.judged_again();
        self.evidence(&tree)?;
        if !self.report.is_damaged() && self.governed {
            self.governed()?;
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
