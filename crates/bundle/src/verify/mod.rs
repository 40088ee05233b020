//! Verification: everything in a bundle, computed anew and compared.
//!
//! **Invariants**
//! - What is cheap and covers the most comes first: the archive, then the hashes. If those do not
//!   hold, nothing behind them is looked at, and the report says so.
//! - A step that rests on a broken one is left out, not failed: a breach is told once.
//! - Memory is what a line needs, what the facts need, and some fifty bytes an event.

mod account;
mod entries;
mod events;
mod facts;
mod signed;
mod statements;
mod sums;

use crate::archive::Archive;
use crate::report::{Report, counted};
use crate::source::Source;
use crate::trust::Trust;
use entries::Known;
use ipse_consolidate::with_rules;
use ipse_core::Seq;
use ipse_ledger::account::Claimed;
use ipse_ledger::{Bundled, NoteKey, TreeHead};
use std::io;

/// Bytes between two words about how far it is.
const TELL_EVERY: u64 = 1 << 20;

/// How far it is.
pub(crate) struct Meter<'p> {
    done: u64,
    told: u64,
    total: u64,
    tell: &'p mut dyn FnMut(u64, u64),
}

impl Meter<'_> {
    fn add(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
        if self.done - self.told >= TELL_EVERY {
            self.told = self.done;
            (self.tell)(self.done.min(self.total), self.total);
        }
    }
}

/// What verification learns on its way.
pub(crate) struct Found<'s> {
    pub(crate) archive: Archive<'s>,
    pub(crate) manifest: String,
    pub(crate) bundled: Bundled,
    pub(crate) head: TreeHead,
    pub(crate) passes: Vec<Claimed>,
    pub(crate) producers: Vec<NoteKey>,
}

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

pub(crate) fn run<'s>(
    source: &'s dyn Source,
    trust: &Trust,
    anchors: &[String],
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<(Report, Option<Found<'s>>)> {
    let mut report = Report::default();
    // Everything is read for its hash, and most of it once or twice again.
    let total = source.size()?.saturating_mul(2);
    let mut meter = Meter { done: 0, told: 0, total, tell: progress };
    let found = look(source, trust, anchors, &mut meter, &mut report)?;
    report.close(found.is_some());
    Ok((report, found))
}

fn look<'s>(
    source: &'s dyn Source,
    trust: &Trust,
    anchors: &[String],
    meter: &mut Meter<'_>,
    report: &mut Report,
) -> io::Result<Option<Found<'s>>> {
    let archive = match Archive::read(source)? {
        Ok(archive) => archive,
        Err(fault) => {
            report.fail(format!("archive, byte {}", fault.at), fault.message);
            return Ok(None);
        }
    };
    let members = counted(archive.members().count() as u64, "member");
    report.pass("archive", format!("{members} in canonical form, and nothing else"));
    let Some(sums) = sums::check(&archive, meter, report)? else { return Ok(None) };
    let bundled = signed::bundled(&archive, &sums, trust, report)?;
    let Some(manifest) = signed::manifest(&archive, report)? else { return Ok(None) };
    let identity = manifest.identity();
    report.identity = Some(identity);
    signed::certificate(&archive, &manifest, trust, report)?;
    let producers = signed::keys(&archive, &identity, trust, report)?;
    let head = signed::head(&archive, &identity, trust, report)?;
    report.size = head.as_ref().map(|head| head.size);
    let sizes = entries::sizes(anchors);
    let known = entries::walk(&archive, &sizes, meter, report)?;
    let (Some(head), Some(known)) = (head, known) else { return Ok(None) };
    if !entries::rooted(&known, &head, report) {
        return Ok(None);
    }
    entries::anchored(&known, anchors, &identity, &head, trust, report);
    let Some(bundled) =
        bundled.filter(|bundled| signed::fits(bundled, &archive, &head, &identity, report))
    else {
        return Ok(None);
    };
    let parts = (&archive, &known, &bundled);
    let Some(passes) = check_events(parts, meter, report)? else { return Ok(None) };
    statements::check(&archive, &known, &identity, trust, report)?;
    limits(&bundled, anchors, report);
    let manifest = manifest.canonical();
    Ok(Some(Found { archive, manifest, bundled, head, passes, producers }))
}

/// Checks events, passes, intents and facts under the rules in the bundle; returns the claims of
/// the pass records. If the rules are unknown, everything but the facts is checked.
fn check_events(
    (archive, known, bundled): (&Archive<'_>, &Known, &Bundled),
    meter: &mut Meter<'_>,
    report: &mut Report,
) -> io::Result<Option<Vec<Claimed>>> {
    let rules = signed::rules(archive)?;
    with_rules!(rules.unwrap_or_default(), |under| {
        let Some(walked) = events::walk(under, archive, known, bundled, meter, report)? else {
            return Ok(None);
        };
        let passes = account::check(archive, rules, known, &walked, bundled, report)?;
        account::check_intents(&walked.intents, report);
        match bundled.checkpoint {
            Some(checkpoint) if rules.is_some() => {
                facts::check(under, archive, walked, checkpoint, report)?;
            }
            Some(_) => report.limit("facts.jsonl", "not derived again: its rules are unknown"),
            None => {}
        }
        Ok(Some(passes))
    })
}

/// What no verification can know, said each time.
fn limits(bundled: &Bundled, anchors: &[String], report: &mut Report) {
    if anchors.is_empty() {
        report.limit(
            "anchors",
            "no earlier tree head was given, so an older or another history that the same key \
             signed would not be noticed; keep tree-head.note, and bring it next time (--anchors)",
        );
    }
    if bundled.from > Seq(1) {
        let message =
            format!("begins at seq {}: no facts are in it, none were derived", bundled.from);
        report.limit("bundle", message);
    }
    if bundled.to.0 < bundled.size {
        let later = counted(bundled.size - bundled.to.0, "event");
        report
            .limit("bundle", format!("ends at seq {}: {later} after it are not in it", bundled.to));
    }
    report.limit("log", "nothing can show what was left out before it was signed");
    report.limit("log", "times are what producers said; nobody vouches for their clocks");
}
