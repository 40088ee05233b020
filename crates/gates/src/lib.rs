//! The gates: three files judge an intent and give a verdict.
//!
//! The registry lists the skills of the agent, the policy limits them, and the temperament sets the
//! thresholds for risk and confirmation. The manifest contains the hash of each file, so that the
//! same agent is always judged by the same files.
//!
//! **Invariants**
//! - A verdict is a function of the three files, the intent and its past. No fact, clock, file or
//!   store can be named here: learned facts cannot change a verdict.
//! - Numbers are exact micro-units from the text of a file on. Nothing here computes with floats.
//! - Admitted parameters are within the registry's bounds and the policy's clamps, and in no
//!   forbidden range.
//! - Nothing here panics, whatever bytes the files and intents are.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod again;
mod contract;
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

pub use contract::{MAX_CONTRACT_LINES, MAX_WITHIN_S};
pub use error::{FileError, GateFile};
pub use intent::Planner;
pub use intent::{BadIntent, Intent, MAX_INTENT_BYTES, MAX_INTENT_DEPTH, MAX_PARAMS};
pub use intent::{MAX_NAME_BYTES, MAX_PARAM_NAME_BYTES, MAX_PARAMS_BYTES};
pub use policy::{Policy, RateLimit};
pub use registry::{ListedParam, MAX_SKILLS, Registry};
pub use temperament::Temperament;
pub use toml_file::{MAX_FILE_BYTES, MAX_LIST, MAX_REASON_BYTES, MAX_RULES};
pub use verdict::{Code, Finding, Gate, MAX_FINDINGS, MAX_GATE_BYTES, Verdict};

pub use again::read_gates;
pub use ipse_core::judge::{Past, Precondition};
pub use ipse_core::{Micro, Ruling};

use alloc::vec::Vec;
use judge::{admission, contract as contract_gate, policy as policy_gate};
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

    /// The skills of the agent.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The rate limit of a skill; `None` if it has none.
    pub fn rate_limit(&self, skill_id: &str) -> Option<RateLimit> {
        self.policy.skill(skill_id)?.rate_limit
    }

    /// The seconds in which a person can confirm an intent; `None` without a limit.
    pub fn confirm_within(&self) -> Option<u64> {
        self.temperament.confirm_within
    }

    /// Whether the policy lets a number of an intent through unchanged: it denies neither the skill
    /// nor the number, and clamps nothing. Rate limits and other parameters are not looked at.
    pub fn keeps(&self, intent: &Intent<'_>, param: &str, number: Micro) -> bool {
        policy_gate::keeps(&self.policy, intent, param, number)
    }

    /// The lines of a skill's contract; none if there is no such skill.
    pub fn contract(&self, skill_id: &str) -> &[Precondition] {
        self.registry.skill(skill_id).map_or(&[], |skill| skill.contract.lines())
    }

    /// The skills that contracts name.
    pub fn preceding_skills(&self) -> impl Iterator<Item = &str> {
        let lines = self.registry.skills.values().flat_map(|skill| skill.contract.lines());
        lines.map(|line| line.skill.as_str())
    }

    /// Judges an intent with its past.
    pub fn judge(&self, intent: &Intent<'_>, past: &Past<'_>) -> Verdict {
        let mut gates = Vec::new();
        let params = self.pass(intent, past, &mut gates);
        Verdict::new(gates, params)
    }

    /// Runs the gates: the admitted parameters, or `None` as soon as one denies.
    fn pass(&self, intent: &Intent<'_>, past: &Past<'_>, gates: &mut Vec<Gate>) -> Option<Params> {
        let (skill, asked) = admission::judge(&self.registry, intent, gates)?;
        let params = policy_gate::judge(&self.policy, intent, asked, past.recent, gates)?;
        contract_gate::judge(&self.temperament, intent, skill, &params, past, gates)?;
        Some(params)
    }
}

/// Returns the value, or adds its errors to the others.
fn kept<T>(read: Result<T, Vec<FileError>>, errors: &mut Vec<FileError>) -> Option<T> {
    read.map_err(|new| errors.extend(new)).ok()
}
