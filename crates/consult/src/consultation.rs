//! Consultations: what a planner read, so that its intent can say so and an auditor can check it.
//!
//! **Invariants:** a consultation names facts and a checkpoint, and holds no value of a fact: what
//! is forgotten later is not betrayed by it. Its id is a hash of its canonical bytes.

use crate::facts::{Filter, ScoredFact};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Identity, Seq, hex, sha256};
use std::sync::Arc;

/// Digits of an id.
const ID_BYTES: usize = 16;

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consultation {
    /// Its canonical bytes.
    pub json: String,
}

impl Consultation {
    /// Of facts that a filter chose at a checkpoint.
    pub fn of(
        identity: &Identity,
        checkpoint: Seq,
        rule_version: &str,
        filter: &Filter,
        facts: &[Arc<ScoredFact>],
    ) -> Self {
        let ids = facts.iter().map(|fact| quoted(&fact.said(identity).id));
        Consultation { json: Parts { checkpoint, rule_version, filter }.json(ids) }
    }

    /// `co_` and the first 32 digits of the hash of its bytes.
    pub fn id(&self) -> String {
        id_of(&self.json)
    }
}

/// What a consultation says beside the names of its facts.
pub(crate) struct Parts<'p> {
    pub(crate) checkpoint: Seq,
    pub(crate) rule_version: &'p str,
    pub(crate) filter: &'p Filter,
}

impl Parts<'_> {
    /// The canonical bytes, with the ids of facts as JSON.
    pub(crate) fn json(&self, fact_ids: impl Iterator<Item = String>) -> String {
        Members::new()
            .raw("checkpoint", self.checkpoint)
            .text("rule_version", self.rule_version)
            .raw("query", query(self.filter))
            .raw("fact_ids", list(fact_ids))
            .finish()
    }
}

/// The id of the consultation of these bytes.
pub(crate) fn id_of(json: &str) -> String {
    format!("co_{}", hex::encode(&sha256(&[json.as_bytes()])[..ID_BYTES]))
}

/// What was asked for, under the names of the interface.
fn query(filter: &Filter) -> String {
    let text = |part: &Option<String>| part.as_deref().map(quoted);
    Members::new()
        .optional("skill_id", text(&filter.skill))
        .optional("target_class", text(&filter.target))
        .optional("env", text(&filter.environment))
        .optional("zone", text(&filter.zone))
        .optional("kind", filter.kind.map(|kind| quoted(kind.name())))
        .optional("limit", filter.limit)
        .finish()
}
