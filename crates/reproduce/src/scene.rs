//! The synthetic scene of V3: two things to grasp, one that mostly holds and one that mostly does
//! not, and what an agent lived through with both before it plans.
//!
//! **Invariants:** draws come in the order of the paper's driver: the history, then its held-out
//! part; the decisions follow from where these left the generator. The history is in the log of a
//! real store, the held-out part behind the rest, and planners see either through facts alone.

use crate::Error;
use crate::attempt::Attempt;
use crate::lab::{Agent, Lab};
use crate::random::Python;
use ipse_core::json::Value;
use ipse_core::{FactKey, FactKind};
use ipse_engine::FactTable;
use std::path::Path;
use std::sync::Arc;

/// The one skill.
pub const SKILL: &str = "manipulation.grasp";
/// Where it is tried.
pub(crate) const ENVIRONMENT: &str = "sim_relaxed";

/// What can be grasped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Holds four times of five.
    Glass,
    /// Holds once in five.
    Unknown,
}

impl Target {
    /// In the order of the scene's choice.
    pub const ALL: [Target; 2] = [Target::Glass, Target::Unknown];

    /// Its class.
    pub fn name(self) -> &'static str {
        match self {
            Target::Glass => "glass_cup",
            Target::Unknown => "unknown_object",
        }
    }

    /// The chance of a success, which no planner sees.
    fn chance(self) -> f64 {
        match self {
            Target::Glass => 0.8,
            Target::Unknown => 0.2,
        }
    }

    /// One try.
    pub fn holds(self, random: &mut Python) -> bool {
        random.random() < self.chance()
    }

    /// Where its fact stands.
    pub fn key(self) -> FactKey {
        FactKey::new(FactKind::SkillSuccessRate, &[SKILL, self.name(), ENVIRONMENT])
    }
}

/// Attempts of the history, in the order of their draws, and of the fifth of it that is held out.
const HISTORY: [(Target, usize); 2] = [(Target::Glass, 160), (Target::Unknown, 40)];
const HELD_OUT: [(Target, usize); 2] = [(Target::Glass, 40), (Target::Unknown, 10)];

/// What one agent knows of the scene, and the generator that its decisions go on with.
pub struct Scene {
    random: Python,
    /// What it knew before the held-out part was there.
    before: Arc<FactTable>,
    /// What it knows with all of it.
    after: Arc<FactTable>,
}

/// How often something was tried and held, as a fact has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// Attempts.
    pub n: u64,
    /// Those that held.
    pub successes: u64,
}

impl Record {
    /// What the fact under a key says of a skill; `None` if there is no such fact.
    pub fn read(known: &FactTable, key: &FactKey) -> Option<Self> {
        let fact = known.get(key)?;
        let successes = fact.value().get("successes").and_then(Value::as_count)?;
        Some(Record { n: fact.n_observations, successes })
    }

    /// The share that held; nothing tried is not a number.
    pub fn rate(self) -> f64 {
        self.successes as f64 / self.n as f64
    }
}

impl Scene {
    /// Lets an agent live through the history of a seed, in its own log of a store.
    pub fn live(lab: &Lab<'_>, store: &Path, seed: i128) -> Result<Self, Error> {
        let mut random = Python::new(seed);
        let mut agent = lab.agent(store, &format!("v3 with seed {seed}"))?;
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

    /// The generator as the history left it.
    pub fn random(&self) -> Python {
        self.random.fork()
    }

    /// What the fact of the history says of a target, the held-out part aside; `None` if there is
    /// no such fact.
    pub fn known(&self, target: Target) -> Option<Record> {
        Record::read(&self.before, &target.key())
    }

    /// What the held-out part adds to that fact.
    pub fn held_out(&self, target: Target) -> Record {
        let before = self.known(target).unwrap_or_default();
        let after = Record::read(&self.after, &target.key()).unwrap_or_default();
        Record { n: after.n - before.n, successes: after.successes - before.successes }
    }
}
