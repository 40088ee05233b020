//! What was known: the consultation that an intent echoes, and its facts as of then.

use super::{MAX_EVIDENCE, Record};
use crate::answer::written;
use crate::facts::Consulted;
use crate::{Claim, Status};
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, FactId, FactKey, Identity, Seq, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Pieces of evidence of a trail at most, over all of its facts: each is proven, and a proof of a
/// long log has a kilobyte.
const MAX_LISTED: usize = 10_000;

/// What an intent says was consulted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claimed {
    /// None if what is echoed is no consultation.
    pub(super) id: Option<String>,
    /// As it stands in the intent, as JSON.
    pub(super) json: String,
    pub(super) checkpoint: Option<Seq>,
    /// What the audit gate wrote down.
    pub(super) recorded: String,
    /// What is true of it now.
    pub(super) now: Status,
    /// Facts that it names and that the log does not give at its checkpoint.
    pub(super) missing: Vec<FactId>,
}

/// A fact as of then.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Known {
    pub(super) id: FactId,
    pub(super) fact: Consulted,
    /// The newest events behind it.
    pub(super) evidence: Vec<Evidence>,
}

/// An event that a fact rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Evidence {
    pub(super) event_ref: EventRef,
    pub(super) seq: Seq,
    pub(super) time: Time,
}

/// What an intent with this data says was consulted, by a planner that could read up to `latest`;
/// and those facts.
pub(super) fn of<R: Record>(
    record: &R,
    identity: &Identity,
    data: &Object<'_>,
    latest: Seq,
    evidence: usize,
) -> Result<(Option<Claimed>, Vec<Known>), R::Error> {
    let Some(echoed) = data.get("consultation").filter(|value| **value != Value::Null) else {
        return Ok((None, Vec::new()));
    };
    let mut claimed = Claimed {
        id: None,
        json: written(echoed),
        checkpoint: None,
        recorded: recorded(data),
        now: Status::Unverified,
        missing: Vec::new(),
    };
    let claim = echoed.as_object().and_then(|object| Claim::read(object).ok());
    let Some(claim) = claim else { return Ok((Some(claimed), Vec::new())) };
    claimed.id = Some(claim.id());
    claimed.checkpoint = Some(claim.checkpoint());
    if !claim.is_possible(latest) {
        claimed.missing = distinct(claim.fact_ids());
        return Ok((Some(claimed), Vec::new()));
    }
    let all = record.facts_at(claim.checkpoint())?;
    let wanted = distinct(claim.fact_ids());
    let named: BTreeSet<FactId> = wanted.iter().copied().collect();
    let mut found: BTreeMap<FactId, Consulted> = BTreeMap::new();
    for fact in &all {
        let id = FactId::new(identity, &fact.key);
        if named.contains(&id) {
            found.insert(id, Consulted::new(fact.clone())?);
        }
    }
    let chosen = claim.filter().choose(all)?;
    let since = || record.forgotten_since(claim.checkpoint());
    claimed.now = claim.status(identity, &chosen, latest, since)?;
    let mut known = Vec::new();
    for id in wanted {
        match found.remove(&id) {
            Some(fact) => known.push(Known { id, fact, evidence: Vec::new() }),
            None => claimed.missing.push(id),
        }
    }
    supported(record, &mut known, claim.checkpoint(), evidence)?;
    Ok((Some(claimed), known))
}

/// Each id once, where it stands first.
fn distinct(ids: &[FactId]) -> Vec<FactId> {
    let mut seen = BTreeSet::new();
    ids.iter().copied().filter(|id| seen.insert(*id)).collect()
}

/// Lists the evidence of facts, in one look over the log.
fn supported<R: Record>(
    record: &R,
    known: &mut [Known],
    checkpoint: Seq,
    evidence: usize,
) -> Result<(), R::Error> {
    if known.is_empty() {
        return Ok(());
    }
    let wanted = evidence.min(MAX_EVIDENCE).min((MAX_LISTED / known.len()).max(1));
    let keys: Vec<FactKey> = known.iter().map(|known| known.fact.fact.key.clone()).collect();
    let found = record.evidence(&keys, checkpoint, wanted)?;
    for (known, seqs) in known.iter_mut().zip(found) {
        for seq in seqs {
            let told = record.event(seq)?;
            known.evidence.extend(told.map(|told| Evidence {
                event_ref: told.event_ref,
                seq,
                time: told.time,
            }));
        }
    }
    Ok(())
}

/// What the audit gate wrote down about the consultation.
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
