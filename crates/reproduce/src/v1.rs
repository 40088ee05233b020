//! V1: one pass over attempts at one skill produces exactly one fact, in any order of events.

use crate::attempt::four_of_five;
use crate::lab::{Agent, Lab};
use crate::random::Python;
use crate::scene::SKILL;
use crate::table::{Row, Table};
use crate::{Error, v3};
use ipse_core::json::{Members, Value};
use ipse_core::{EvidenceKey, FactKey, FactKind};
use ipse_inspect::explain::evidence;

/// The number of events in the paper.
pub const EVENTS: u32 = 1000;

/// The results of V1.
#[derive(Clone, PartialEq, Debug)]
pub struct V1 {
    /// The number of facts after one pass.
    pub facts: usize,
    /// The kind of the first fact.
    pub kind: String,
    /// The fact's `n_observations`.
    pub n: u64,
    /// The fact's `successes`.
    pub successes: u64,
    /// The fact's `success_rate`, as stored.
    pub rate: String,
    /// The number of events in its evidence.
    pub evidence: usize,
    /// Whether a second pass wrote nothing and left the snapshot byte-equal.
    pub idempotent: bool,
    /// Whether the same events in another order give a byte-equal snapshot in a new store.
    pub order_free: bool,
}

impl V1 {
    /// Runs the experiment.
    pub fn run(lab: &Lab<'_>) -> Result<Self, Error> {
        let mut lines = four_of_five(1..=EVENTS);
        let agent = consolidated(lab, "v1", &lines)?;
        let snapshot = agent.snapshot()?;
        let again = agent.consolidate()?;
        let idempotent = again.is_none() && agent.snapshot()? == snapshot;

        Python::new(v3::SEEDS[0]).shuffle(&mut lines);
        let shuffled = consolidated(lab, "v1-shuffled", &lines)?;
        let order_free = shuffled.snapshot()? == snapshot;

        let known = agent.known();
        let fact = known.iter().next().ok_or(Error::NoFact)?;
        let value = fact.value();
        let mut rate = String::new();
        value.get("success_rate").ok_or(Error::NoFact)?.write(&mut rate);
        Ok(V1 {
            facts: known.len(),
            kind: fact.fact.key.kind().to_string(),
            n: fact.n_observations,
            successes: value.get("successes").and_then(Value::as_count).ok_or(Error::NoFact)?,
            rate,
            evidence: evidence_of(&agent)?,
            idempotent,
            order_free,
        })
    }

    /// The table of the checks of fields, idempotence and order.
    pub fn table(&self) -> Table {
        let yes = |holds: bool| if holds { "byte-equal" } else { "different" };
        let rows = vec![
            Row::compared("facts after one pass", "1", self.facts.to_string()),
            Row::compared("kind of the fact", "skill_success_rate", &self.kind),
            Row::compared("observations", "1000", self.n.to_string()),
            Row::compared("successes", "800", self.successes.to_string()),
            Row::compared("success rate", "0.8", &self.rate),
            Row::compared("events behind the fact", "1000", self.evidence.to_string()),
            Row::compared("snapshot after a second pass", "byte-equal", yes(self.idempotent)),
            Row::compared("snapshot of a shuffled log", "byte-equal", yes(self.order_free)),
        ];
        let title = "V1: one pass over 1000 attempts, 800 of them successful".to_owned();
        let note = "A second pass finds nothing new and writes nothing. The paper compares the \
                    shuffled log modulo the order of source ids; here all bytes are equal.";
        Table { name: "v1", title, rows, note: note.to_owned(), errata: &[15, 29], timed: false }
    }

    /// The results as JSON.
    pub fn json(&self) -> String {
        Members::new()
            .raw("events", EVENTS)
            .raw("facts", self.facts)
            .text("fact_kind", &self.kind)
            .raw("n_observations", self.n)
            .raw("successes", self.successes)
            .raw("success_rate", &self.rate)
            .raw("evidence", self.evidence)
            .raw("idempotent", self.idempotent)
            .raw("order_invariant", self.order_free)
            .finish()
    }
}

/// An agent in a new store, after the lines were recorded and a pass ran.
fn consolidated(lab: &Lab<'_>, store: &str, lines: &[String]) -> Result<Agent, Error> {
    let mut agent = lab.agent(&lab.store(store), "v1")?;
    agent.learn(lines)?;
    Ok(agent)
}

fn evidence_of(agent: &Agent) -> Result<usize, Error> {
    let key = FactKey::new(FactKind::SkillSuccessRate, &[SKILL, "*", "*"]);
    let reader = agent.reader()?;
    let snapshot = reader.view(&agent.identity)?;
    let checkpoint = agent.known().checkpoint();
    Ok(evidence(snapshot.view(), &EvidenceKey::all(key), checkpoint, 0, usize::MAX)?.len())
}
