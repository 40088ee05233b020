//! Verification: computes everything in a bundle again and compares.
//!
//! **Invariants**
//! - Cheap checks that cover the most run first: the archive, then the hashes. If they fail, later
//!   checks do not run, and the report says so.
//! - A check that depends on a failed one is skipped, not failed: each fault is reported once.
//! - Memory: one line, the facts, and about fifty bytes per event.

mod acts;
mod derived;
mod gates;
mod ledger;
mod signed;
mod sums;
mod witnesses;

use crate::archive::Archive;
use crate::open::Opened;
use crate::report::Report;
use crate::source::Source;
use crate::trust::{OPERATOR, Trust};
pub use gates::GatesInput;
use ipse_audit::JudgingAgain;
use ipse_consolidate::with_rules;
use ipse_consult::answer::counted;
use ipse_core::Seq;
use ipse_ledger::Bundled;
use std::io;

/// The number of bytes between two progress reports.
const TELL_EVERY: u64 = 1 << 20;

/// Verifies a bundle, and judges no intent again. `anchors` are earlier tree heads of the same log,
/// each as a note. `progress`
/// is called with the bytes that were read and the total. An error is a read error.
pub fn verify(
    source: &dyn Source,
    trust: &Trust,
    anchors: &[String],
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Report> {
    verify_judged(source, trust, anchors, &GatesInput::default(), progress)
}

/// Like [`verify`], and judges the intents again.
pub fn verify_judged(
    source: &dyn Source,
    trust: &Trust,
    anchors: &[String],
    gates: &GatesInput<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Report> {
    Ok(run(source, trust, anchors, gates, progress)?.0)
}

/// Verifies a bundle, and opens it if verification reached its end. The opened bundle has an empty
/// report.
pub(crate) fn run<'s>(
    source: &'s dyn Source,
    trust: &Trust,
    anchors: &[String],
    gates: &GatesInput<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<(Report, Option<Opened<'s>>)> {
    let mut report = Report::default();
    // Everything is read once for its hash, and most of it once or twice more.
    let (done, total) = (0, source.size()?.saturating_mul(2));
    let found = match Archive::read(source)? {
        Ok(archive) => {
            let report = &mut report;
            let trust = &trust.narrowed(signed::named_key(&archive)?);
            Check { archive, trust, anchors, gates, report, done, total, progress }.look()?
        }
        Err(fault) => {
            report.fail(format!("archive, byte {}", fault.at), fault.message);
            None
        }
    };
    report.close(found.is_some());
    Ok((report, found))
}

/// A running verification.
struct Check<'c, 's> {
    archive: Archive<'s>,
    trust: &'c Trust,
    anchors: &'c [String],
    gates: &'c GatesInput<'c>,
    report: &'c mut Report,
    /// The bytes that were read, the total, and the progress callback.
    done: u64,
    total: u64,
    progress: &'c mut dyn FnMut(u64, u64),
}

impl<'s> Check<'_, 's> {
    fn look(mut self) -> io::Result<Option<Opened<'s>>> {
        let members = counted(self.archive.members().count() as u64, "member");
        self.report.pass("archive", format!("{members} in canonical form, nothing else"));
        let Some(sums) = self.sums()? else { return Ok(None) };
        let bundled = self.bundled(&sums)?;
        let Some(manifest) = self.manifest()? else { return Ok(None) };
        let identity = manifest.identity();
        self.report.identity = Some(identity);
        self.certificate(&manifest)?;
        if let Some((verdict, message)) = self.trust.operator_of(&manifest) {
            self.report.add(verdict, OPERATOR, message);
        }
        let producers = self.keys(&identity)?;
        let head = self.head(&identity)?;
        self.witnesses(head.as_ref())?;
        self.report.size = head.as_ref().map(|head| head.size);
        let known = self.entries(head.as_ref())?;
        let (Some(known), Some(head)) = (known, head) else { return Ok(None) };
        self.anchored(&known, &identity);
        let fits = |bundled: &Bundled| self.fits(bundled, &head, &identity);
        let Some(bundled) = bundled.filter(fits) else { return Ok(None) };
        let rules = self.rules()?;
        let judge = self.judge(&manifest)?;
        let mut again = judge.as_ref().ok().map(|judge| JudgingAgain::new(&**judge));
        let (intents, (passes, history, governance)) =
            with_rules!(*rules.as_ref().unwrap_or(&Default::default()), |under| {
                let Some(walked) = self.events(under, &known, &bundled, &mut again)? else {
                    return Ok(None);
                };
                let intents = walked.walk.intents.counts().0;
                (intents, self.derived(under, &rules, &known, walked, &bundled)?)
            });
        self.judged_again(again, intents, judge.as_ref().err());
        self.acts(&governance, &identity);
        self.statements(&known, &identity, &governance)?;
        self.limits(&bundled);
        let (archive, manifest, report) = (self.archive, manifest.canonical(), Report::default());
        Ok(Some(Opened {
            report,
            identity,
            manifest,
            bundled,
            head,
            passes,
            rules: history,
            governance,
            producers,
            archive,
        }))
    }

    /// Counts bytes that were read, and reports progress.
    fn looked_at(&mut self, bytes: u64) {
        let reported = self.done / TELL_EVERY;
        self.done = self.done.saturating_add(bytes);
        if self.done / TELL_EVERY > reported {
            (self.progress)(self.done.min(self.total), self.total);
        }
    }

    /// Reports what no verification of this bundle can check.
    fn limits(&mut self, Bundled { from, to, size, .. }: &Bundled) {
        if self.anchors.is_empty() {
            let message = "no earlier tree head was given, so an older or another history that the \
                           same key signed cannot be detected; keep tree-head.note, and give it \
                           next time (--anchors)";
            self.report.limit("anchors", message);
        }
        if *from > Seq(1) {
            let message = format!("begins at seq {from}: it holds no facts, none were derived");
            self.report.limit("bundle", message);
        }
        if to.0 < *size {
            let later = counted(size - to.0, "event");
            let message = format!("ends at seq {to}: {later} after it not included");
            self.report.limit("bundle", message);
        }
        self.report.limit("log", "events that were left out before signing cannot be detected");
        self.report.limit("log", "times come from the producers; their clocks were not checked");
    }
}
