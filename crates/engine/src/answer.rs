//! Answers for programs: the same JSON on the command line and over HTTP.
//!
//! **Invariant:** an answer copies what is stored and computes nothing; names are those of the
//! paper's interface.

use crate::facts::Consulted;
use crate::grounding::escaped_controls;
use ipse_consolidate::{RuleSet, V1};
use ipse_core::json::{Members, Object, Value, list, quoted};
use ipse_core::{FactId, Identity, Seq};
use ipse_ledger::{Entry, ProofFile};
use ipse_store::Stored;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Facts at a checkpoint.
pub fn facts(
    identity: &Identity,
    checkpoint: Seq,
    rule_version: &str,
    facts: &[Arc<Consulted>],
) -> Members {
    let facts = facts.iter().map(|consulted| fact(identity, consulted).finish());
    Members::new()
        .text("identity_hash", &identity.to_string())
        .raw("checkpoint", checkpoint)
        .text("rule_version", rule_version)
        .raw("facts", list(facts))
}

/// One fact.
pub fn fact(identity: &Identity, fact: &Consulted) -> Members {
    let value = fact.value();
    let copied = |name: &str| value.get(name).map(written).unwrap_or_default();
    Members::new()
        .text("fact_id", &FactId::new(identity, &fact.fact.key).to_string())
        .text("fact_kind", fact.fact.key.kind().name())
        .text("fact_key", fact.fact.key.text())
        .raw("confidence", copied("confidence"))
        .raw("n_observations", fact.n_observations)
        .raw("last_supporting_event_id", copied("last_supporting_event_id"))
        .text("last_updated", &fact.fact.last.time.to_string())
        .raw("rule_version", copied("rule_version"))
        .raw("value", &fact.fact.value)
}

/// An event of the log; the content of a forgotten one is null.
pub fn event(stored: &Stored, signers: &BTreeSet<&str>) -> Members {
    let content = if stored.is_forgotten() { "null" } else { &stored.canonical };
    Members::new()
        .raw("seq", stored.seq)
        .text("event_ref", &stored.event_ref.to_string())
        .text("type", &stored.event_type)
        .text("time", &stored.time.to_string())
        .text("digest", &stored.digest.to_string())
        .raw("signers", list(signers.iter().map(|name| quoted(name))))
        .raw("event", content)
}

/// A pass, by its record and the record's `data`.
pub fn pass(stored: &Stored, data: &Object<'_>) -> Members {
    let record = Members::new()
        .raw("seq", stored.seq)
        .text("event_ref", &stored.event_ref.to_string())
        .text("time", &stored.time.to_string());
    data.iter().fold(record, |record, (name, value)| record.raw(name, written(value)))
}

/// The proof that an entry is in the signed log.
pub fn proof(entry: &Entry, proof: &ProofFile) -> String {
    Members::new()
        .raw("index", proof.index)
        .text("entry", &entry.canonical())
        .text("proof", &proof.text())
        .finish()
}

/// The rules that facts follow; those of the next pass before the first one.
pub fn rule_version(recorded: &str) -> &str {
    if recorded.is_empty() { V1.version() } else { recorded }
}

/// A value as JSON.
pub fn written(value: &Value<'_>) -> String {
    let mut text = String::new();
    value.write(&mut text);
    text
}

/// A text for a table: control characters escaped, and those that JSON lets pass replaced.
pub fn clean(text: &str) -> String {
    let other = |c: char| c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c);
    escaped_controls(text).replace(other, "\u{fffd}")
}

/// `1 event`, `2 events`.
pub fn counted(n: u64, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        _ if noun.ends_with("ss") => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
    }
}
