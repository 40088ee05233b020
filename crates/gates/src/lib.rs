//! The gates: an intent goes in, a verdict comes out, and three files decide.
//!
//! The registry says what the agent can do, the policy what it must never do, the temperament how
//! bold it is. Each of them is hashed into the manifest, so that the same agent is always judged by
//! the same files.
//!
//! **Invariants**
//! - A verdict is a function of the three files, the intent and a count. No fact, clock, file or
//!   store can be named here: what the agent has learned cannot move a verdict.
//! - Numbers are exact micro-units from the text of a file on. Nothing here computes with floats.
//! - What a verdict admits is within the registry's bounds and the policy's clamps, and in no
//!   forbidden range.
//! - Nothing here panics, whatever bytes the files and intents are.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod error;
mod fit;
mod intent;
mod judge;
mod params;
mod policy;
mod registry;
mod scope;
mod temperament;
mod toml_file;
mod verdict;

pub use error::{FileError, GateFile};
pub use intent::Planner;
pub use intent::{BadIntent, Intent, MAX_INTENT_BYTES, MAX_INTENT_DEPTH, MAX_PARAMS};
pub use intent::{MAX_NAME_BYTES, MAX_PARAM_NAME_BYTES, MAX_PARAMS_BYTES};
pub use policy::{Policy, RateLimit};
pub use registry::{ListedParam, MAX_SKILLS, Registry};
pub use temperament::Temperament;
pub use toml_file::{MAX_FILE_BYTES, MAX_LIST, MAX_REASON_BYTES, MAX_RULES};
pub use verdict::{Code, Finding, Gate, MAX_FINDINGS, MAX_GATE_BYTES, Verdict};

pub use ipse_core::Ruling;

use alloc::vec::Vec;
use judge::{admission, contract, policy as policy_gate};
use params::Params;

/// Registry, policy and temperament that fit each other.
#[derive(Clone, Debug)]
pub struct Gates {
    registry: Registry,
    policy: Policy,
    temperament: Temperament,
}

impl Gates {
    /// Reads the three files and checks them against each other; every error has its line.
    pub fn new(registry: &str, policy: &str, temperament: &str) -> Result<Self, Vec<FileError>> {
        let mut errors = Vec::new();
        let registry = kept(Registry::parse(registry), &mut errors);
        let policy = kept(Policy::parse(policy), &mut errors);
        let temperament = kept(Temperament::parse(temperament), &mut errors);
        if let Some(registry) = &registry {
            errors.extend(policy.iter().flat_map(|policy| policy.unfit_for(registry)));
            errors.extend(temperament.iter().flat_map(|it| it.unfit_for(registry)));
        }
        match (registry, policy, temperament) {
            (Some(registry), Some(policy), Some(temperament)) if errors.is_empty() => {
                Ok(Gates { registry, policy, temperament })
            }
            _ => Err(errors),
        }
    }

    /// What the agent can do.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// How many intents of a skill may be let through in how long; `None` for any number.
    pub fn rate_limit(&self, skill_id: &str) -> Option<RateLimit> {
        self.policy.skill(skill_id)?.rate_limit
    }

    /// How many seconds a person has to confirm an intent; `None` for as many as it takes.
    pub fn confirm_within(&self) -> Option<u64> {
        self.temperament.confirm_within
    }

    /// Judges an intent. `recent` is how many intents of its skill were let through within the
    /// window of its rate limit.
    pub fn judge(&self, intent: &Intent<'_>, recent: u64) -> Verdict {
        let mut gates = Vec::new();
        let params = self.pass(intent, recent, &mut gates);
        Verdict::new(gates, params)
    }

    /// Gate by gate: what may be acted with, or `None` as soon as one denies.
    fn pass(&self, intent: &Intent<'_>, recent: u64, gates: &mut Vec<Gate>) -> Option<Params> {
        let (skill, asked) = admission::judge(&self.registry, intent, gates)?;
        let params = policy_gate::judge(&self.policy, intent, asked, recent, gates)?;
        contract::judge(&self.temperament, intent, skill, &params, gates)?;
        Some(params)
    }
}

/// What was read; else its errors are put with the others.
fn kept<T>(read: Result<T, Vec<FileError>>, errors: &mut Vec<FileError>) -> Option<T> {
    read.map_err(|new| errors.extend(new)).ok()
}
