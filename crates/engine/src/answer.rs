//! Answers for programs: the same JSON on the command line and over HTTP.
//!
//! **Invariant:** an answer copies what is stored and computes nothing; names are those of the
//! paper's interface.

use ipse_core::json::{Members, Object, list, quoted};
use ipse_store::Stored;
use std::collections::BTreeSet;

pub use ipse_consult::answer::{clean, consulted, counted, facts, proof, rule_version, written};

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
