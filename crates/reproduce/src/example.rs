//! The worked example: a week with a glass cup, as the paper tells it in its text and draws it in
//! its figure.
//!
//! **Invariant:** every figure of it is read from the fact that a real store holds.

use crate::Error;
use crate::attempt::Attempt;
use crate::lab::Lab;
use crate::printed::like;
use crate::scene::Target;
use crate::table::{Row, Table, Verdict};
use ipse_core::json::{Members, Object, Value};
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
    /// How sure it is of that force: what a planner should gate on.
    pub recommended_confidence: Micro,
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
    /// The identity after the pass, computed again from the manifest in the store.
    pub after: Identity,
}

impl Example {
    /// Lives through a week.
    pub fn live(lab: &Lab<'_>, name: &str, attempts: &[Attempts]) -> Result<Self, Error> {
        let mut agent = lab.agent(&lab.store("example"), name)?;
        let each = attempts
            .iter()
            .flat_map(|(force, n, held)| std::iter::repeat_n((*force, *held), *n as usize));
        let one = |(number, (force, success))| {
            let (target, force) = (Some(Target::Glass.name()), Some(force));
            Attempt { number, target, success, force }.line()
        };
        let lines: Vec<String> = (1..).zip(each).map(one).collect();
        agent.learn(&lines)?;
        let known = agent.known();
        let fact = known.get(&Target::Glass.key()).ok_or(Error::NoFact)?;
        let value = fact.value();
        let recommended = ["params", "force_n", "recommended"]
            .iter()
            .try_fold(&value, |object: &Object<'_>, name| object.get(name)?.as_object())
            .ok_or(Error::NoFact)?;
        let figure = |object: &Object<'_>, name: &str| {
            object.get(name).and_then(Value::as_micro).ok_or(Error::NoFact)
        };
        Ok(Example {
            attempts: attempts.to_vec(),
            fact_key: fact.fact.key.text().to_owned(),
            recommended: figure(recommended, "value")?,
            recommended_confidence: figure(recommended, "confidence")?,
            confidence: fact.confidence,
            n_observations: fact.n_observations,
            success_rate: figure(&value, "success_rate")?,
            last_event: fact.fact.last.event_ref,
            before: agent.identity,
            after: agent.recomputed_identity()?,
        })
    }

    /// For programs.
    pub fn json(&self) -> String {
        Members::new()
            .text("fact_key", &self.fact_key)
            .raw("recommended_force_n", self.recommended)
            .raw("recommended_confidence", self.recommended_confidence)
            .raw("confidence", self.confidence)
            .raw("n_observations", self.n_observations)
            .raw("success_rate", self.success_rate)
            .text("last_supporting_event_id", &self.last_event.to_string())
            .text("identity_before", &self.before.to_string())
            .text("identity_after", &self.after.to_string())
            .finish()
    }
}

/// The paper's figures of the example beside ours: as told, and as drawn.
pub fn table(examples: &[Example; 2]) -> Table {
    let [text, figure] = examples;
    let newtons = |example: &Example| example.recommended.to_string();
    let confidence = |example: &Example| {
        // The paper prints two decimals.
        like("0.83", example.confidence.get() as f64 / 1e6)
    };
    let same = |example: &Example| {
        if example.before == example.after { "byte-equal" } else { "moved" }
    };
    let rows = vec![
        Row::compared("observations, as told", "15", text.n_observations.to_string()),
        Row::compared("confidence, as told", "0.83", confidence(text)),
        Row::compared("recommended force, as told", "25", newtons(text)),
        Row::with(
            Verdict::Erratum(8),
            "observations, as drawn",
            "15",
            figure.n_observations.to_string(),
        ),
        Row::with(Verdict::Erratum(8), "confidence, as drawn", "0.83", confidence(figure)),
        Row::compared("recommended force, as drawn", "25", newtons(figure)),
        Row::compared("identity after the pass", "byte-equal", same(text)),
    ];
    let title = "The worked example: a week with a glass cup".to_owned();
    let note = "The text tells of 15 attempts, the figure draws 16.";
    Table { name: "worked-example", title, rows, note: note.to_owned(), errata: &[], timed: false }
}
