//! The worked example: a week with a glass cup, once as in the paper's text and once as in its
//! figure.
//!
//! **Invariant:** every value is read from the fact in a real store.

use crate::Error;
use crate::attempt::Attempt;
use crate::lab::Lab;
use crate::printed::like;
use crate::scene::Target;
use crate::table::{Row, Table, Verdict};
use ipse_core::json::{Members, Object, Value};
use ipse_core::{EventRef, Identity, Micro};

/// Attempts at one force: newtons, number of attempts, and whether they succeeded.
pub type Attempts = (u32, u32, bool);

/// The attempts in the introduction's text: 15.
pub const TEXT: &[Attempts] = &[(15, 3, false), (25, 12, true)];
/// The attempts in the figure: 16.
pub const FIGURE: &[Attempts] = &[(5, 3, false), (15, 1, false), (25, 12, true)];

/// The results of the week.
#[derive(Clone, PartialEq, Debug)]
pub struct Example {
    /// The attempts of the week.
    pub attempts: Vec<Attempts>,
    /// The key of the fact.
    pub fact_key: String,
    /// The recommended force.
    pub recommended: Micro,
    /// The confidence in that force, which a planner should check.
    pub recommended_confidence: Micro,
    /// The confidence of the fact.
    pub confidence: Micro,
    /// The number of observations.
    pub n_observations: u64,
    /// The share of successful attempts.
    pub success_rate: Micro,
    /// The last supporting event.
    pub last_event: EventRef,
    /// The identity before the pass.
    pub before: Identity,
    /// The identity after the pass, recomputed from the manifest in the store.
    pub after: Identity,
}

impl Example {
    /// Records the week and runs a pass.
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

    /// The results as JSON.
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

/// The paper's values of the example next to ours, from the text and from the figure.
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
        Row::compared("observations, text", "15", text.n_observations.to_string()),
        Row::compared("confidence, text", "0.83", confidence(text)),
        Row::compared("recommended force, text", "25", newtons(text)),
        Row::with(
            Verdict::Erratum(8),
            "observations, figure",
            "15",
            figure.n_observations.to_string(),
        ),
        Row::with(Verdict::Erratum(8), "confidence, figure", "0.83", confidence(figure)),
        Row::compared("recommended force, figure", "25", newtons(figure)),
        Row::compared("identity after the pass", "byte-equal", same(text)),
    ];
    let title = "The worked example: a week with a glass cup".to_owned();
    let note = "The text has 15 attempts, the figure has 16.";
    Table { name: "worked-example", title, rows, note: note.to_owned(), errata: &[], timed: false }
}
