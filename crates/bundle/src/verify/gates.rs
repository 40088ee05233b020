//! The files of the gates, and the verdicts judged again with them.
//!
//! **Invariants**
//! - Only files that hash to the fields of the manifest judge.
//! - The gates themselves are an argument: this crate cannot name them.

use super::Check;
use crate::name::Name;
use crate::open::MAX_GATE_FILE;
use ipse_audit::JudgingAgain;
use ipse_consult::answer::counted;
use ipse_core::judge::{GATE_FIELDS, Judge, ReadGates};
use ipse_core::{hex, sha256};
use ipse_manifest::Manifest;
use std::io;

/// The gates of the caller: how gate files are read, and files that a bundle may lack.
#[derive(Clone, Default)]
pub struct GatesInput<'g> {
    /// Reads registry, policy and temperament. Without it, no intent is judged again.
    pub read: Option<ReadGates<'g>>,
    /// Files that may replace missing members: registry, policy and temperament.
    pub files: [Option<Vec<u8>>; 3],
}

impl Check<'_, '_> {
    /// The judge of this agent, or the reason why there is none.
    pub(super) fn judge(
        &mut self,
        manifest: &Manifest,
    ) -> io::Result<Result<Box<dyn Judge>, String>> {
        let mut files: [Option<Vec<u8>>; 3] = Default::default();
        for (index, (name, field)) in Name::GATES.into_iter().zip(GATE_FIELDS).enumerate() {
            let named = manifest.field(field);
            let is_named = |bytes: &[u8]| Some(&*hex::encode(&sha256(&[bytes]))) == named;
            let Some(part) = self.archive.part(name) else {
                files[index] = self.given(index, name, is_named);
                continue;
            };
            let bytes = part.whole(MAX_GATE_FILE)?.filter(|bytes| is_named(bytes));
            let ended = match bytes.is_some() {
                true => Ok("is the file that the manifest names".to_owned()),
                false => Err(format!("is not the file that the manifest names in {field}")),
            };
            self.report.tell(name, ended);
            files[index] = bytes;
        }
        Ok(self.read_gates(&files))
    }

    /// A file of the caller that replaces a missing member.
    fn given(
        &mut self,
        index: usize,
        name: Name,
        is_named: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let file = self.gates.files[index].clone()?;
        if is_named(&file) {
            return Some(file);
        }
        let hash = hex::encode(&sha256(&[&file]));
        let message = format!("the given file is not the one that the manifest names: {hash}");
        self.report.limit(name, message);
        None
    }

    fn read_gates(&self, files: &[Option<Vec<u8>>; 3]) -> Result<Box<dyn Judge>, String> {
        let [Some(registry), Some(policy), Some(temperament)] = files else {
            let missing = Name::GATES.iter().zip(files).filter(|(_, file)| file.is_none());
            let missing: Vec<String> = missing.map(|(name, _)| name.to_string()).collect();
            return Err(match missing.len() {
                3 => "no files of the gates".to_owned(),
                _ => format!("without {}", missing.join(", ")),
            });
        };
        let read = self.gates.read.ok_or("this program judges no intent")?;
        read([registry, policy, temperament])
    }

    /// Reports the verdicts that were judged again, or why they were not.
    pub(super) fn judged_again(
        &mut self,
        again: Option<JudgingAgain<'_>>,
        intents: u64,
        why_not: Option<&String>,
    ) {
        if let Some(why_not) = why_not.filter(|_| intents > 0) {
            let verb = if intents == 1 { "is" } else { "are" };
            let verdicts = counted(intents, "verdict");
            let message = format!("{why_not}: {verdicts} {verb} as recorded");
            self.report.limit("gates", message);
        }
        let Some(again) = again else { return };
        let judged = again.judged();
        let faults = again.faults().iter();
        faults.for_each(|(place, message)| self.report.fail(place, message));
        if judged > 0 && again.faults().is_empty() {
            let intents = counted(judged, "intent");
            self.report.pass("gates", format!("{intents} judged again: every verdict follows"));
        }
        again.limits().lines().for_each(|line| self.report.limit("gates", line));
        self.report.again = again.into_results();
    }
}
