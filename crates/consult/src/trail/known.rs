//! The knowledge behind an intent: the consultation that it echoes, and its facts as of then.

use super::{EvidenceQuery, FACTS, Listing, MAX_EVIDENCE, Record};
use crate::answer::written;
use crate::facts::ScoredFact;
use crate::{Claim, Damaged, Status};
use ipse_consolidate::Rules;
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, EvidenceKey, Fact, FactId, Identity, Seq, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The consultation that an intent claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConsultationClaim {
    /// `None` if the echoed value is not a consultation.
    pub(super) id: Option<String>,
    /// The JSON in the intent.
    pub(super) json: String,
    pub(super) checkpoint: Option<Seq>,
    /// The part that the planner gave; `None` if it echoed the whole.
    pub(super) basis: Option<String>,
    /// The status that the audit gate recorded.
    pub(super) recorded: String,
    /// The status now.
    pub(super) now: Status,
    /// Named facts that the log does not give at the checkpoint.
    pub(super) missing: Vec<FactId>,
}

/// A page of the facts that were known.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Facts {
    pub(super) listed: Vec<KnownFact>,
    /// The number of facts before this page, and the total.
    pub(super) before: usize,
    pub(super) total: usize,
    /// The next page, if any.
    pub(super) next_page: Option<usize>,
}

/// A fact as of the checkpoint of the consultation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KnownFact {
    pub(super) id: FactId,
    pub(super) fact: ScoredFact,
    /// The newest events that it rests on.
    pub(super) evidence: Vec<Evidence>,
}

/// An event that a fact rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Evidence {
    pub(super) event_ref: EventRef,
    pub(super) seq: Seq,
    pub(super) time: Time,
}

/// The consultation that an intent with this data claims, by a planner that could read up to
/// `latest`; and a page of its facts.
pub(super) fn of<R: Record>(
    record: &R,
    identity: &Identity,
    data: &Object<'_>,
    latest: Seq,
    listing: Listing,
) -> Result<(Option<ConsultationClaim>, Facts), R::Error> {
    let Some(echoed) = data.get("consultation").filter(|value| **value != Value::Null) else {
        return Ok((None, Facts::default()));
    };
    let mut claimed = ConsultationClaim {
        id: None,
        json: written(echoed),
        checkpoint: None,
        basis: data.get("consultation_basis").and_then(Value::as_text).map(str::to_owned),
        recorded: recorded(data),
        now: Status::Unverified,
        missing: Vec::new(),
    };
    let claim = echoed.as_object().and_then(|object| Claim::read(object).ok());
    let Some(claim) = claim else { return Ok((Some(claimed), Facts::default())) };
    claimed.id = Some(claim.id());
    claimed.checkpoint = Some(claim.checkpoint());
    let in_force = record.rules_at(claim.checkpoint())?;
    let possible = |rules: &Rules| claim.is_possible(latest, rules.version());
    let Some(rules) = in_force.filter(possible) else {
        claimed.missing = distinct(claim.fact_ids());
        return Ok((Some(claimed), Facts::default()));
    };
    let all = record.facts_at(claim.checkpoint(), rules)?;
    let mut places: BTreeMap<FactId, Option<usize>> =
        claim.fact_ids().iter().map(|id| (*id, None)).collect();
    for (place, fact) in all.iter().enumerate() {
        if let Some(found) = places.get_mut(&FactId::new(identity, &fact.key)) {
            *found = Some(place);
        }
    }
    let mut found = Vec::new();
    for id in distinct(claim.fact_ids()) {
        match places.get(&id).copied().flatten() {
            Some(place) => found.push((id, place)),
            None => claimed.missing.push(id),
        }
    }
    let mut facts = Facts::page(&found, &all, listing.page)?;
    let chosen = claim.filter().choose(all)?;
    let since = || record.forgotten_since(claim.checkpoint());
    claimed.now = claim.status(identity, &chosen, latest, rules.version(), since)?;
    let (up_to, wanted) = (claim.checkpoint(), listing.evidence.min(MAX_EVIDENCE));
    supported(record, rules, &mut facts.listed, up_to, wanted)?;
    Ok((Some(claimed), facts))
}

impl Facts {
    /// A page of the found facts, given by their ids and their indexes in `all`.
    fn page(found: &[(FactId, usize)], all: &[Fact], page: usize) -> Result<Self, Damaged> {
        let total = found.len();
        let before = page.saturating_sub(1).saturating_mul(FACTS).min(total);
        let after = (before + FACTS).min(total);
        let mut listed = Vec::new();
        for (id, place) in &found[before..after] {
            let fact = ScoredFact::new(all[*place].clone())?;
            listed.push(KnownFact { id: *id, fact, evidence: Vec::new() });
        }
        let next_page = (after < total).then(|| page.saturating_add(1));
        Ok(Facts { listed, before, total, next_page })
    }
}

/// The ids without duplicates, in the order of their first occurrence.
fn distinct(ids: &[FactId]) -> Vec<FactId> {
    let mut seen = BTreeSet::new();
    ids.iter().copied().filter(|id| seen.insert(*id)).collect()
}

/// Lists the evidence of facts, in one walk over the log.
fn supported<R: Record>(
    record: &R,
    rules: Rules,
    known: &mut [KnownFact],
    up_to: Seq,
    wanted: usize,
) -> Result<(), R::Error> {
    if known.is_empty() {
        return Ok(());
    }
    let facts: Vec<EvidenceKey> =
        known.iter().map(|known| known.fact.fact.evidence_key()).collect();
    let found = record.evidence(&EvidenceQuery { rules, facts: &facts, up_to, wanted })?;
    for (known, seqs) in known.iter_mut().zip(found) {
        for seq in seqs {
            let reported = record.event(seq)?;
            known.evidence.extend(reported.map(|reported| Evidence {
                event_ref: reported.event_ref,
                seq,
                time: reported.time,
            }));
        }
    }
    Ok(())
}

/// The status of the consultation that the audit gate recorded.
fn recorded(data: &Object<'_>) -> String {
    let text = |gate: &Value<'_>, name: &str| {
        gate.as_object().and_then(|gate| gate.get(name)?.as_text().map(str::to_owned))
    };
    let gates = match data.get("gates") {
        Some(Value::Array(gates)) => gates.as_slice(),
        _ => &[],
    };
    let audit = gates.iter().rfind(|gate| text(gate, "gate").as_deref() == Some("audit"));
    audit.and_then(|gate| text(gate, "result")).unwrap_or_else(|| "none".to_owned())
}
