//! JSON answers, the same on the command line and over HTTP.
//!
//! **Invariant:** an answer copies stored data and computes nothing. Names are those of the paper's
//! interface.

use crate::Consultation;
use crate::facts::{Chosen, Filter, ScoredFact};
use crate::grounding::{escaped_controls, grounding};
use ipse_core::json::{Members, Value, list, write_text};
use ipse_core::{Identity, Seq};
use ipse_ledger::{Entry, ProofFile};

/// Facts at a checkpoint.
pub fn facts(identity: &Identity, checkpoint: Seq, rule_version: &str, chosen: &Chosen) -> Members {
    let facts = chosen.facts.iter().map(|consulted| consulted.said(identity).json.clone());
    Members::new()
        .text("identity_hash", &identity.to_string())
        .raw("checkpoint", checkpoint)
        .text("rule_version", rule_version)
        .raw("facts", list(facts))
        .raw("total", chosen.total)
}

/// The answer to a planner: the facts with their consultation and grounding. Written directly in
/// canonical order without copies, because planners wait for it.
pub fn consulted(
    identity: &Identity,
    checkpoint: Seq,
    rule_version: &str,
    filter: &Filter,
    chosen: &Chosen,
) -> String {
    let facts = &chosen.facts;
    let consultation = Consultation::of(identity, checkpoint, rule_version, filter, facts);
    let grounding = grounding(identity, rule_version, chosen);
    let size: usize = facts.iter().map(|fact| fact.fact.value.len() + 512).sum();
    let mut out = String::with_capacity(size + 2 * grounding.len() + 512);
    out.push_str(&format!("{{\"checkpoint\":{checkpoint},\"consultation\":"));
    out.push_str(&consultation.json);
    out.push_str(&format!(",\"consultation_id\":\"{}\",\"facts\":[", consultation.id()));
    for (place, fact) in facts.iter().enumerate() {
        out.push_str(if place == 0 { "" } else { "," });
        out.push_str(&fact.said(identity).json);
    }
    out.push_str("],\"grounding\":");
    write_text(&grounding, &mut out);
    out.push_str(&format!(",\"identity_hash\":\"{identity}\",\"rule_version\":"));
    write_text(rule_version, &mut out);
    out.push_str(&format!(",\"total\":{}}}", chosen.total));
    out
}

/// One fact with its id.
pub(crate) fn fact(id: &str, fact: &ScoredFact) -> Members {
    let value = fact.value();
    let copied = |name: &str| value.get(name).map(written).unwrap_or_default();
    Members::new()
        .text("fact_id", id)
        .text("fact_kind", fact.fact.key.kind().name())
        .text("fact_key", fact.fact.key.text())
        .raw("confidence", copied("confidence"))
        .raw("n_observations", fact.n_observations)
        .raw("last_supporting_event_id", copied("last_supporting_event_id"))
        .text("last_updated", &fact.fact.last.time.to_string())
        .raw("rule_version", copied("rule_version"))
        .raw("value", &fact.fact.value)
}

/// The proof that an entry is in the signed log.
pub fn proof(entry: &Entry, proof: &ProofFile) -> String {
    proof_members(entry, proof).finish()
}

pub(crate) fn proof_members(entry: &Entry, proof: &ProofFile) -> Members {
    Members::new()
        .raw("index", proof.index)
        .text("entry", &entry.canonical())
        .text("proof", &proof.text())
}

/// A value as JSON.
pub fn written(value: &Value<'_>) -> String {
    let mut text = String::new();
    value.write(&mut text);
    text
}

/// A text for a table or a terminal: every character that is not visible is escaped.
pub fn clean(text: &str) -> String {
    escaped_controls(text)
}

/// `1 event`, `2 events`, `2 entries`.
pub fn counted(n: u64, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) if !noun.ends_with("ey") => format!("{n} {stem}ies"),
        _ if noun.ends_with("ss") => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_core::{EventRef, Fact, FactKey, FactKind, Support, Time, json_parse};

    #[test]
    fn what_was_consulted_is_canonical_and_holds_the_rest() {
        let fact = |zone: &str| Fact {
            key: FactKey::new(FactKind::ZoneRisk, &[zone]),
            last: Support {
                time: Time::from_micros(0).unwrap(),
                event_ref: EventRef::new("s", "i"),
                worked: false,
            },
            value: "{\"confidence\":0.5,\"last_supporting_event_id\":\"ev\",\
                \"n_observations\":3,\"risk\":1,\"rule_version\":\"v1\"}"
                .to_owned(),
        };
        let identity = Identity([7; 32]);
        let filter = Filter { zone: Some("a \"b\"\n".to_owned()), ..Filter::default() };
        for facts in [vec![], vec![fact("a \"b\"\n")], vec![fact("a \"b\"\n"), fact("c")]] {
            let chosen = Filter { limit: Some(1), ..Filter::default() }.chosen(facts).unwrap();
            let facts = &chosen.facts;
            let text = consulted(&identity, Seq(9), "v1", &filter, &chosen);
            let value = json_parse::parse(text.as_bytes(), 16).unwrap();
            assert_eq!(written(&value), text, "canonical");
            let consultation = Consultation::of(&identity, Seq(9), "v1", &filter, facts);
            let whole = super::facts(&identity, Seq(9), "v1", &chosen)
                .text("consultation_id", &consultation.id())
                .raw("consultation", &consultation.json)
                .text("grounding", &grounding(&identity, "v1", &chosen));
            assert_eq!(whole.finish(), text);
        }
    }
}
