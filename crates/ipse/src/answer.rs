//! The answer to a planner's query: facts, and a consultation that proves what it read.

use crate::fact::{Fact, Query};
use ipse_core::{Identity, Seq};
use ipse_engine::Consultation;
use ipse_engine::facts::Chosen;
use ipse_engine::grounding::grounding;

/// The answer to a query.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The facts, the most confident first.
    pub facts: Vec<Fact>,
    /// The position up to which the log was read for them.
    pub checkpoint: Seq,
    /// The number of facts that match the query, with those beyond its limit.
    pub total: u64,
    consultation: String,
    id: String,
    grounding: String,
}

impl Answer {
    pub(crate) fn new(
        identity: &Identity,
        checkpoint: Seq,
        version: &str,
        query: &Query,
        chosen: Chosen,
    ) -> Self {
        let consultation = Consultation::of(identity, checkpoint, version, &query.0, &chosen.facts);
        Answer {
            checkpoint,
            total: chosen.total,
            id: consultation.id(),
            grounding: grounding(identity, version, &chosen),
            consultation: consultation.json,
            facts: chosen.facts.into_iter().map(|fact| Fact::new(identity, fact)).collect(),
        }
    }

    /// The text for the prompt of a planner: one line for each fact. Its bytes change only when a
    /// fact in it changes, or the number of facts beyond the limit.
    pub fn grounding(&self) -> &str {
        &self.grounding
    }

    /// The id of the consultation.
    pub fn consultation_id(&self) -> &str {
        &self.id
    }

    /// The consultation as JSON; an intent echoes it.
    pub(crate) fn consultation(&self) -> &str {
        &self.consultation
    }
}
