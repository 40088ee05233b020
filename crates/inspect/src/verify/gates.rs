//! The stored files of the gates, and the verdicts judged again with them.

use super::Check;
use crate::report::{BESIDE, GROUND, Report};
use ipse_audit::JudgingAgain;
use ipse_consolidate::RuleSet;
use ipse_consult::answer::counted;
use ipse_core::judge::{GATE_FILES, Judge, gate_hashes};
use ipse_core::{Digest, sha256};
use ipse_gates::read_gates;
use ipse_store::View;

/// The judging of a log again, or the reason why its verdicts are not judged.
pub(super) struct Gates<'j> {
    pub(super) again: Option<JudgingAgain<'j>>,
    pub(super) why_not: Option<String>,
}

/// Checks the stored files and reads them as a judge.
pub(super) fn judge(
    view: View<'_>,
    manifest: &str,
    report: &mut Report,
) -> Result<Box<dyn Judge>, String> {
    let hashes = gate_hashes(manifest);
    let mut files: [Option<Vec<u8>>; 3] = Default::default();
    // A table that cannot be read is reported with the file.
    for name in view.artefacts().unwrap_or_default() {
        let digest = <[u8; 32]>::try_from(&*name).ok().map(Digest);
        let place = digest.as_ref().map_or("stored file".to_owned(), |it| format!("file {it}"));
        let bytes = digest.and_then(|digest| view.artefact(&digest).ok()?);
        let bytes = bytes.filter(|bytes| Some(Digest(sha256(&[bytes]))) == digest);
        let Some(bytes) = bytes else {
            report.add(GROUND, place, "does not match its hash: it was changed");
            continue;
        };
        let mut named = false;
        for (file, _) in files.iter_mut().zip(&hashes).filter(|(_, hash)| **hash == digest) {
            *file = Some(bytes.clone());
            named = true;
        }
        if !named {
            report.add(BESIDE, place, "is stored, but the manifest does not name it");
        }
    }
    let [Some(registry), Some(policy), Some(temperament)] = &files else {
        let missing = GATE_FILES.iter().zip(&files).filter(|(_, file)| file.is_none());
        let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
        return Err(match missing.len() {
            3 => "no files of the gates are stored".to_owned(),
            _ => format!("not stored: {}", missing.join(", ")),
        });
    };
    read_gates([registry, policy, temperament])
}

impl<R: RuleSet> Check<'_, R> {
    /// Reports the verdicts that do not follow from the files, and those that were not judged.
    pub(super) fn judged_again(&mut self) {
        let intents = self.log.walk.intents.counts().0;
        if self.report.is_damaged() {
            // What a verdict rests on may be missing.
            if intents > 0 {
                self.report.note("no intent was judged again: the log is damaged");
            }
            return;
        }
        if let Some(why_not) = self.gates.why_not.as_ref().filter(|_| intents > 0) {
            let verdicts = counted(intents, "verdict");
            self.report.note(format!("{why_not}: {verdicts} not judged again"));
        }
        let Some(again) = &self.gates.again else { return };
        self.report.all(GROUND, again.faults().iter().cloned());
        if again.judged() > 0 && again.faults().is_empty() {
            let intents = counted(again.judged(), "intent");
            self.report.note(format!("{intents} judged again: every verdict follows"));
        }
        again.limits().lines().for_each(|line| self.report.note(line));
    }
}
