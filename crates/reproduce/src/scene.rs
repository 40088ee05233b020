//! The synthetic scene of V3: two objects to grasp, one with many successes and one with few, and
//! the history of an agent with both.
//!
//! **Invariants:** draws have the order of the paper's driver: the history, its held-out part, then
//! the decisions. The history is in the log of a real store and the held-out part follows it.
//! Planners see both only through facts.

use crate::Error;
use crate::attempt::Attempt;
use crate::clamp;
use crate::lab::{Agent, Lab};
use crate::random::Python;
use ipse_core::json::Value;
use ipse_core::{FactKey, FactKind};
use ipse_engine::FactTable;
use std::path::Path;
use std::sync::Arc;

/// The only skill of the scene.
pub const SKILL: &str = "manipulation.grasp";
/// The environment of all attempts.
pub(crate) const ENVIRONMENT: &str = "sim_relaxed";

/// The objects of the scene.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Succeeds in four of five attempts.
    Glass,
    /// Succeeds in one of five attempts.
    Unknown,
}

impl Target {
    /// All targets, in the order in which the scene chooses.
    pub const ALL: [Target; 2] = [Target::Glass, Target::Unknown];

    /// The class name of the object.
    pub fn name(self) -> &'static str {
        match self {
            Target::Glass => "glass_cup",
            Target::Unknown => "unknown_object",
        }
    }

    /// The chance of a success. No planner sees it.
    fn chance(self) -> f64 {
        match self {
            Target::Glass => 0.8,
            Target::Unknown => 0.2,
        }
    }

    /// Draws whether one attempt succeeds.
    pub fn holds(self, random: &mut Python) -> bool {
        random.random() < self.chance()
    }

    /// The key of the fact about this target.
    pub fn key(self) -> FactKey {
        FactKey::new(FactKind::SkillSuccessRate, &[SKILL, self.name(), ENVIRONMENT])
    }
}

/// Attempts of the history, in the order of their draws; then those of the held-out fifth.
const HISTORY: [(Target, usize); 2] = [(Target::Glass, 160), (Target::Unknown, 40)];
const HELD_OUT: [(Target, usize); 2] = [(Target::Glass, 40), (Target::Unknown, 10)];

/// The facts of one agent about the scene, and the random generator for its decisions.
pub struct Scene {
    random: Python,
    /// The facts before the held-out part.
    before: Arc<FactTable>,
    /// The facts after the held-out part.
    after: Arc<FactTable>,
}

/// The attempts and successes in a fact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// The number of attempts.
    pub n: u64,
    /// The number of successful attempts.
    pub successes: u64,
}

impl Record {
    /// Reads the fact with a key; `None` if it does not exist.
    pub fn read(known: &FactTable, key: &FactKey) -> Option<Self> {
        let fact = known.get(key)?;
        let successes = fact.value().get("successes").and_then(Value::as_count)?;
        Some(Record { n: fact.n_observations, successes })
    }

    /// The success rate; NaN without attempts.
    pub fn rate(self) -> f64 {
        self.successes as f64 / self.n as f64
    }
}

impl Scene {
    /// Records the history of a seed in an agent's own log of a store.
    pub fn live(lab: &Lab<'_>, store: &Path, seed: i128) -> Result<Self, Error> {
        let mut random = Python::new(seed);
        let manifest = clamp::manifest(&format!("v3 with seed {seed}"))?;
        let mut agent = lab.agent_of(store, &manifest)?;
        let mut number = 0;
        let mut live = |agent: &mut Agent, attempts: [(Target, usize); 2]| {
            let all = attempts.into_iter().flat_map(|(target, n)| std::iter::repeat_n(target, n));
            let lines: Vec<String> = all
                .map(|target| {
                    number += 1;
                    let (name, success) = (Some(target.name()), target.holds(&mut random));
                    Attempt { number, target: name, success, force: None }.line()
                })
                .collect();
            agent.learn(&lines)?;
            Ok::<_, Error>(agent.known())
        };
        let before = live(&mut agent, HISTORY)?;
        let after = live(&mut agent, HELD_OUT)?;
        Ok(Scene { random, before, after })
    }

    /// The generator in its state after the history.
    pub fn random(&self) -> Python {
        self.random.fork()
    }

    /// The record of a target in the history, without the held-out part; `None` if it has no fact.
    pub fn known(&self, target: Target) -> Option<Record> {
        Record::read(&self.before, &target.key())
    }

    /// The attempts that the held-out part adds to that record.
    pub fn held_out(&self, target: Target) -> Record {
        let before = self.known(target).unwrap_or_default();
        let after = Record::read(&self.after, &target.key()).unwrap_or_default();
        Record { n: after.n - before.n, successes: after.successes - before.successes }
    }
}
