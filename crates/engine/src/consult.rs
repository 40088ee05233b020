//! Consultations: what a planner read, so that its intent can say so and an auditor can check it.
//!
//! **Invariants:** a consultation names facts and a checkpoint, and holds no value of a fact: what
//! is forgotten later is not betrayed by it. Its id is a hash of its canonical bytes.

use crate::facts::{Consulted, Filter};
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
        facts: &[Arc<Consulted>],
    ) -> Self {
        let id = |fact: &Arc<Consulted>| quoted(&fact.said(identity).id);
        let json = Members::new()
            .raw("checkpoint", checkpoint)
            .text("rule_version", rule_version)
            .raw("query", query(filter))
            .raw("fact_ids", list(facts.iter().map(id)))
            .finish();
        Consultation { json }
    }

    /// `co_` and the first 32 digits of the hash of its bytes.
    pub fn id(&self) -> String {
        let hash = sha256(&[self.json.as_bytes()]);
        format!("co_{}", hex::encode(&hash[..ID_BYTES]))
    }
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
