//! A trail as JSON.

use super::Trail;
use super::attempt::{Attempt, Deviation};
use super::intent::{Confirmation, Verdict};
use super::known::{ConsultationClaim, Evidence, KnownFact};
use crate::answer;
use ipse_core::Ruling;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{EventRef, Seq, Time};

const NULL: &str = "null";

impl Trail {
    /// The trail as canonical JSON.
    pub fn json(&self) -> String {
        let proof = |(entry, proof): &(_, _)| answer::proof_members(entry, proof);
        let proofs = self.proofs.iter().map(|proven| {
            proof(proven).text("event_ref", &proven.0.event_ref.to_string()).finish()
        });
        let intent = self.intent.as_ref().map(|it| {
            let event = it.canonical.as_deref().unwrap_or(NULL);
            place(&it.event_ref, it.seq, it.time).raw("event", event).finish()
        });
        let unproven = self.unproven.iter().map(|name| quoted(&name.to_string()));
        Members::new()
            .text("event_ref", &self.asked.to_string())
            .raw("attempts", list(self.attempts.iter().map(attempt)))
            .optional("attempts_left_out", Some(self.left_out).filter(|n| *n > 0))
            .raw("intent", or_null(intent))
            .raw("verdict", or_null(self.verdict.as_ref().map(verdict)))
            .raw("consultation", or_null(self.consultation.as_ref().map(consultation)))
            .raw("facts", list(self.facts.listed.iter().map(fact)))
            .optional("next_page", self.facts.next_page)
            .raw("proofs", list(proofs))
            .raw("unproven", list(unproven))
            .finish()
    }
}

pub(super) fn or_null(json: Option<String>) -> String {
    json.unwrap_or_else(|| NULL.to_owned())
}

fn text_or_null(text: Option<&str>) -> String {
    or_null(text.map(quoted))
}

/// The members that every event has.
pub(super) fn place(name: &EventRef, seq: Seq, time: Time) -> Members {
    Members::new()
        .text("event_ref", &name.to_string())
        .raw("seq", seq)
        .text("time", &time.to_string())
}

fn attempt(attempt: &Attempt) -> String {
    let deviation = |it: &Deviation| {
        Members::new()
            .text("field", &it.field)
            .raw("admitted", it.admitted.as_deref().unwrap_or(NULL))
            .raw("acted", &it.acted)
            .finish()
    };
    let reported = &attempt.reported;
    place(&reported.event_ref, reported.seq, reported.time)
        .text("type", &reported.event_type)
        .raw("event", reported.canonical.as_deref().unwrap_or(NULL))
        .optional("outcome", reported.outcome.map(|outcome| quoted(outcome.name())))
        .text("standing", attempt.standing.name())
        .raw("deviations", list(attempt.deviations.iter().map(deviation)))
        .finish()
}

fn verdict(verdict: &Verdict) -> String {
    Members::new()
        .raw("verdict", text_or_null(verdict.ruling.map(Ruling::name)))
        .text("standing", verdict.standing())
        .optional("admitted_params", verdict.admitted_params.as_ref())
        .raw("gates", list(verdict.gates.iter().cloned()))
        .raw("token_id", text_or_null(verdict.token_id.as_deref()))
        .raw("confirmation", or_null(verdict.confirmation.as_ref().map(confirmation)))
        .finish()
}

pub(super) fn confirmation(it: &Confirmation) -> String {
    place(&it.event_ref, it.seq, it.time)
        .text("decision", it.decision())
        .raw("token_id", text_or_null(it.token_id.as_deref()))
        .finish()
}

fn consultation(claimed: &ConsultationClaim) -> String {
    let missing = claimed.missing.iter().map(|id| quoted(&id.to_string()));
    Members::new()
        .raw("consultation_id", text_or_null(claimed.id.as_deref()))
        .raw("consultation", &claimed.json)
        .optional("consultation_basis", claimed.basis.as_deref().map(quoted))
        .text("recorded", &claimed.recorded)
        .text("now", claimed.now.name())
        .raw("missing_fact_ids", list(missing))
        .finish()
}

fn fact(known: &KnownFact) -> String {
    let evidence = |it: &Evidence| place(&it.event_ref, it.seq, it.time).finish();
    answer::fact(&known.id.to_string(), &known.fact)
        .raw("evidence", list(known.evidence.iter().map(evidence)))
        .raw("evidence_total", known.fact.n_observations)
        .finish()
}
