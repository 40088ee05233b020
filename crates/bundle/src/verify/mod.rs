//! Verification: everything in a bundle, computed anew and compared.
//!
//! **Invariants**
//! - What is cheap and covers the most comes first: the archive, then the hashes. If those do not
//!   hold, nothing behind them is looked at, and the report says so.
//! - A step that rests on a broken one is left out, not failed: a breach is told once.
//! - Memory is what a line needs, what the facts need, and some fifty bytes an event.

mod derived;
mod ledger;
mod signed;
mod sums;

use crate::archive::Archive;
use crate::open::Opened;
use crate::report::{Report, counted};
use crate::source::Source;
use crate::trust::Trust;
use ipse_consolidate::with_rules;
use ipse_core::Seq;
use ipse_ledger::Bundled;
use std::io;

/// Bytes between two words about how far it is.
const TELL_EVERY: u64 = 1 << 20;

/// Verifies a bundle. `anchors` are tree heads of the same log that were seen before, each a note;
/// `progress` is told how many bytes of how many were looked at. An error is one of reading.
pub fn verify(
    source: &dyn Source,
    trust: &Trust,
    anchors: &[String],
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Report> {
    Ok(run(source, trust, anchors, progress)?.0)
}

/// What `verify` does, with the opened bundle if verification came to its end. Its report is empty.
pub(crate) fn run<'s>(
    source: &'s dyn Source,
    trust: &Trust,
    anchors: &[String],
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<(Report, Option<Opened<'s>>)> {
    let mut report = Report::default();
    // Everything is read for its hash, and most of it once or twice again.
    let (done, total) = (0, source.size()?.saturating_mul(2));
    let found = match Archive::read(source)? {
        Ok(archive) => {
            let report = &mut report;
            Check { archive, trust, anchors, report, done, total, progress }.look()?
        }
        Err(fault) => {
            report.fail(format!("archive, byte {}", fault.at), fault.message);
            None
        }
    };
    report.close(found.is_some());
    Ok((report, found))
}

/// A verification under way.
struct Check<'c, 's> {
    archive: Archive<'s>,
    trust: &'c Trust,
    anchors: &'c [String],
    report: &'c mut Report,
    /// Bytes that were read, the total, and the receiver of the progress.
    done: u64,
    total: u64,
    progress: &'c mut dyn FnMut(u64, u64),
}

impl<'s> Check<'_, 's> {
    fn look(mut self) -> io::Result<Option<Opened<'s>>> {
        let members = counted(self.archive.members().count() as u64, "member");
        self.report.pass("archive", format!("{members} in canonical form, and nothing else"));
        let Some(sums) = self.sums()? else { return Ok(None) };
        let bundled = self.bundled(&sums)?;
        let Some(manifest) = self.manifest()? else { return Ok(None) };
        let identity = manifest.identity();
        self.report.identity = Some(identity);
        self.certificate(&manifest)?;
        let producers = self.keys(&identity)?;
        let head = self.head(&identity)?;
        self.report.size = head.as_ref().map(|head| head.size);
        let known = self.entries(head.as_ref())?;
        let (Some(known), Some(head)) = (known, head) else { return Ok(None) };
        self.anchored(&known, &identity, &head);
        let fits = |bundled: &Bundled| self.fits(bundled, &head, &identity);
        let Some(bundled) = bundled.filter(fits) else { return Ok(None) };
        let rules = self.rules()?;
        let passes = with_rules!(*rules.as_ref().unwrap_or(&Default::default()), |under| {
            let Some(walked) = self.events(under, &known, &bundled)? else { return Ok(None) };
            self.derived(under, &rules, &known, walked, &bundled)?
        });
        self.statements(&known, &identity)?;
        self.limits(&bundled);
        let (archive, manifest, report) = (self.archive, manifest.canonical(), Report::default());
        Ok(Some(Opened { report, identity, manifest, bundled, head, passes, producers, archive }))
    }

    /// Takes down that bytes were looked at.
    fn looked_at(&mut self, bytes: u64) {
        let told = self.done / TELL_EVERY;
        self.done = self.done.saturating_add(bytes);
        if self.done / TELL_EVERY > told {
            (self.progress)(self.done.min(self.total), self.total);
        }
    }

    /// Reports how a check ended; says whether it holds.
    fn tell<M: ToString>(&mut self, place: impl ToString, ended: Result<M, M>) -> bool {
        let holds = ended.is_ok();
        match ended {
            Ok(message) => self.report.pass(place, message),
            Err(message) => self.report.fail(place, message),
        }
        holds
    }

    /// Reports that a check holds, if nothing failed since it began; says whether it does.
    fn holds_since(&mut self, began: u64, place: impl ToString, message: impl ToString) -> bool {
        let holds = self.report.fails() == began;
        if holds {
            self.report.pass(place, message);
        }
        holds
    }

    /// What no verification can know, said each time.
    fn limits(&mut self, Bundled { from, to, size, .. }: &Bundled) {
        if self.anchors.is_empty() {
            let message = "no earlier tree head was given, so an older or another history that the \
                           same key signed would not be noticed; keep tree-head.note, and bring it \
                           next time (--anchors)";
            self.report.limit("anchors", message);
        }
        if *from > Seq(1) {
            let message = format!("begins at seq {from}: no facts are in it, none were derived");
            self.report.limit("bundle", message);
        }
        if to.0 < *size {
            let later = counted(size - to.0, "event");
            let message = format!("ends at seq {to}: {later} after it are not in it");
            self.report.limit("bundle", message);
        }
        self.report.limit("log", "nothing can show what was left out before it was signed");
        self.report.limit("log", "times are what producers said; nobody vouches for their clocks");
    }
}
