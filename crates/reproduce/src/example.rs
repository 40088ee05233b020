//! The worked example: a week with a glass cup, as the paper tells it in its text and draws it in its
//! figure.
//!
//! **Invariant:** every figure of it is read from the fact that a real store holds.

use crate::Error;
use crate::lab::Lab;
use crate::scene::{Target, attempt_with};
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, Identity, Micro};

/// Attempts at one force: newtons, how many, and whether they held.
pub type Attempts = (u32, u32, bool);

/// As the introduction tells it: 15 attempts.
pub const TEXT: &[Attempts] = &[(15, 3, false), (25, 12, true)];
/// As the figure draws it: 16 attempts.
pub const FIGURE: &[Attempts] = &[(5, 3, false), (15, 1, false), (25, 12, true)];

/// What was learned from a week.
#[derive(Clone, PartialEq, Debug)]
pub struct Example {
    /// What was lived through.
    pub attempts: Vec<Attempts>,
    /// The key of the one fact.
    pub fact_key: String,
    /// The recommended force.
    pub recommended: Micro,
    /// How far the observations agree.
    pub confidence: Micro,
    /// How many there are.
    pub n_observations: u64,
    /// The share that held.
    pub success_rate: Micro,
    /// The last event behind it.
    pub last_event: EventRef,
    /// The identity before anything was learned.
    pub before: Identity,
    /// The identity after the pass, computed anew from the manifest in the store.
    pub after: Identity,
}

impl Example {
    /// Lives through a week.
    pub fn live(lab: &Lab<'_>, name: &str, attempts: &[Attempts]) -> Result<Self, Error> {
        let mut agent = lab.agent(&lab.store("example"), name)?;
        let each = attempts
            .iter()
            .flat_map(|(force, n, held)| std::iter::repeat_n((*force, *held), *n as usize));
        let lines: Vec<String> = (1..)
            .zip(each)
            .map(|(number, (force, held))| {
                attempt_with(number, Target::Glass.name(), held, Some(force))
            })
            .collect();
        let events = agent.admit(&lines)?;
        agent.live(&events)?;
        agent.consolidate()?;
        let known = agent.known();
        let fact = known.get(&Target::Glass.key()).ok_or(Error::NoFact)?;
        let value = fact.value();
        let recommended = ["params", "force_n", "recommended"]
            .iter()
            .try_fold(&value, |object: &Object<'_>, name| object.get(name)?.as_object())
            .and_then(|recommended| recommended.get("value")?.as_micro());
        Ok(Example {
            attempts: attempts.to_vec(),
            fact_key: fact.fact.key.text().to_owned(),
            recommended: recommended.ok_or(Error::NoFact)?,
            confidence: fact.confidence,
            n_observations: fact.n_observations,
            success_rate: value
                .get("success_rate")
                .and_then(Value::as_micro)
                .ok_or(Error::NoFact)?,
            last_event: fact.fact.last.event_ref,
            before: agent.identity,
            after: agent.recomputed_identity()?,
        })
    }
}
