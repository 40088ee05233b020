//! The safety clamp of V3: the gates, with three files that are the same for every planner.
//!
//! **Invariants:** every attempt of every planner, also of the one without memory, is an intent
//! that the gates judge, and no planner attempts what they do not admit. A verdict is a function of
//! the files and the intent, so facts cannot change it. The hashes of the files are in the
//! manifest of each agent.

use crate::scene::{ENVIRONMENT, SKILL, Target};
use ipse_core::json::Members;
use ipse_core::{hex, sha256};
use ipse_gates::{Gates, Intent, Past, Ruling};
use ipse_manifest::{Manifest, ManifestError};

/// The fields of the manifest that hold the hashes of the files, and the files.
pub const FILES: [(&str, &str); 3] = [
    ("ecm_registry_hash", include_str!("ecm-registry.toml")),
    ("policy_hash", include_str!("policy.toml")),
    ("temperament_hash", include_str!("temperament.toml")),
];
/// The force that every planner proposes, in newtons. The policy allows less for each target, so
/// that every attempt is clamped.
const FORCE: u32 = 55;

/// The manifest of an agent that is judged by these files.
pub(crate) fn manifest(name: &str) -> Result<Manifest, ManifestError> {
    Manifest::new(|field| {
        let file = FILES.into_iter().find(|(hash, _)| *hash == field);
        Some(match (field, file) {
            (_, Some((_, text))) => hex::encode(&sha256(&[text.as_bytes()])),
            ("agent_id", _) => name.to_owned(),
            ("commissioned_at", _) => "2026-05-01T00:00:00Z".to_owned(),
            _ => "ipse reproduce".to_owned(),
        })
    })
}

/// The number of judged intents, by verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// All intents.
    pub intents: u64,
    /// Intents that were admitted with less force than proposed.
    pub clamped: u64,
    /// Intents that were not admitted.
    pub denied: u64,
}

/// The gates with the files of V3, and the intents of its planners.
pub struct Clamp {
    gates: Gates,
    intents: [(Target, String); 2],
}

impl Default for Clamp {
    fn default() -> Self {
        Self::new()
    }
}

impl Clamp {
    /// Reads the files.
    pub fn new() -> Self {
        let [registry, policy, temperament] = FILES.map(|(_, text)| text);
        let gates = Gates::new(registry, policy, temperament).expect("BUG: the files of V3 fit");
        Clamp { gates, intents: Target::ALL.map(|target| (target, intent(target))) }
    }

    /// Judges an attempt at a target; returns whether a planner may make it.
    pub fn admits(&self, target: Target, judged: &mut Judged) -> bool {
        let intent = self.intents.iter().find(|(of, _)| *of == target);
        let (_, intent) = intent.expect("BUG: every target has an intent");
        let intent = Intent::read(intent.as_bytes()).expect("BUG: an intent of V3 is valid");
        let ruling = self.gates.judge(&intent, &Past::default()).ruling;
        let admitted = matches!(ruling, Ruling::Admitted | Ruling::Clamped);
        judged.intents += 1;
        judged.clamped += u64::from(ruling == Ruling::Clamped);
        judged.denied += u64::from(!admitted);
        admitted
    }
}

fn intent(target: Target) -> String {
    Members::new()
        .text("skill_id", SKILL)
        .text("target_class", target.name())
        .text("environment", ENVIRONMENT)
        .raw("params", Members::new().raw("force_n", FORCE).finish())
        .finish()
}
