//! The gates as a judge of recorded intents.
//!
//! **Invariant:** it judges with the function that judged the intent, and adds nothing.

use crate::verdict::{Gate, Verdict};
use crate::{GateFile, Gates, Intent};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::Ruling;
use ipse_core::judge::{Judge, Judged, Past, Precondition};

/// Reads registry, policy and temperament as a judge. The error names the first fault.
pub fn read_gates(files: [&[u8]; 3]) -> Result<Box<dyn Judge>, String> {
    let mut texts = [""; 3];
    for ((text, bytes), which) in texts.iter_mut().zip(files).zip(GateFile::ALL) {
        *text = core::str::from_utf8(bytes)
            .map_err(|_| format!("the {} is not valid UTF-8", which.name()))?;
    }
    let [registry, policy, temperament] = texts;
    match Gates::new(registry, policy, temperament) {
        Ok(gates) => Ok(Box::new(gates)),
        Err(errors) => Err(errors.first().map_or_else(String::new, |error| {
            format!("the {} cannot be read: {error}", error.file.name())
        })),
    }
}

impl Judge for Gates {
    fn rate_window(&self, skill_id: &str) -> Option<u64> {
        self.rate_limit(skill_id).map(|limit| limit.seconds)
    }

    fn contract(&self, skill_id: &str) -> &[Precondition] {
        self.contract(skill_id)
    }

    fn preceding_skills(&self) -> Vec<String> {
        self.preceding_skills().map(ToOwned::to_owned).collect()
    }

    fn confirm_within(&self) -> Option<u64> {
        self.confirm_within()
    }

    fn judge(&self, intent: &[u8], past: &Past<'_>) -> Option<Judged> {
        let intent = Intent::read(intent).ok()?;
        let verdict = self.judge(&intent, past);
        Some(Judged {
            ruling: verdict.ruling,
            admitted_params: verdict.admitted_params(),
            gates: verdict.gates().collect(),
            reason: reason(&verdict),
        })
    }
}

/// The finding that decides the ruling: `admission: out_of_range force_n`.
fn reason(verdict: &Verdict) -> Option<String> {
    let decides = |gate: &&Gate| verdict.ruling > Ruling::Admitted && gate.ruling == verdict.ruling;
    let gate = verdict.ran().iter().find(decides)?;
    let finding = gate.findings.iter().find(|it| it.code.ruling() == verdict.ruling)?;
    let about = finding.param.as_ref().or(finding.rule.as_ref());
    let about = about.map(|about| format!(" {about}")).unwrap_or_default();
    Some(format!("{}: {}{about}", gate.name, finding.code.name()))
}
