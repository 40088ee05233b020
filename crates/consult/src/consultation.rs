//! Consultations: the record of what a planner read. Its intent refers to it, and an auditor checks
//! it.
//!
//! **Invariants:** a consultation names facts and a checkpoint, and holds no value of a fact. It
//! reveals nothing of an event that is forgotten later. Its id is a hash of its canonical bytes.

use crate::facts::{Filter, ScoredFact};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Identity, Seq, hex, sha256};
use std::sync::Arc;

/// The number of bytes in an id.
const ID_BYTES: usize = 16;

/// A record of the facts that a planner read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consultation {
    /// The canonical bytes.
    pub json: String,
}

impl Consultation {
    /// The consultation of facts that a filter chose at a checkpoint.
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

/// The members of a consultation other than the fact ids.
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

/// The id of a consultation from its canonical bytes.
pub(crate) fn id_of(json: &str) -> String {
    format!("co_{}", hex::encode(&sha256(&[json.as_bytes()])[..ID_BYTES]))
}

/// The query as JSON, with the parameter names of the HTTP interface.
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
