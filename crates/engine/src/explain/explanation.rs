//! An explanation: a fact with its evidence, the passes that folded it, and its arithmetic.

use super::words;
use super::{Planned, evidence, group};
use crate::Error;
use crate::answer;
use crate::facts::Consulted;
use crate::signers::{SignedBy, Signers};
use crate::walk::Walked;
use ipse_consolidate::V1;
use ipse_consult::trail::{AttemptStanding, Standings, Trail};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{EventRef, Fact, FactId, FactKey, Identity, Seq, json_parse};
use ipse_store::Stored;
use ipse_store::sqlite::{RawPass, View};
use std::collections::BTreeSet;

/// Events of a page.
pub const PAGE: usize = 100;
/// Parameters that are drawn at most.
const CHARTS: usize = 8;

/// A fact and everything that is told of it.
#[derive(Debug)]
pub struct Explanation {
    /// The fact.
    pub fact: Consulted,
    /// Events that it rests on, latest in the log first: a page of them, or all.
    pub evidence: Vec<Stored>,
    /// The intent that each of them names, and how it stands to the gates.
    pub standings: Vec<(Option<EventRef>, AttemptStanding)>,
    /// How many of all observations were planned.
    pub planned: Planned,
    /// The passes that folded these.
    pub passes: Vec<RawPass>,
    /// Its arithmetic, sentence by sentence.
    pub words: Vec<String>,
    /// Its parameters, drawn.
    pub charts: Vec<String>,
    /// Past observations that were forgotten since.
    pub forgotten: u64,
    /// Observations that producers signed.
    pub signed: SignedBy,
    /// Whether the stored value is what the sum gives.
    pub true_to_sum: bool,
}

impl Explanation {
    /// How many pages its evidence has.
    pub fn pages(&self) -> u64 {
        self.fact.n_observations.div_ceil(PAGE as u64)
    }

    /// Explains a fact, with a page of its evidence (from 1) or all of it.
    pub fn of(
        view: View<'_>,
        identity: &Identity,
        fact: &Fact,
        page: Option<usize>,
    ) -> Result<Self, Error> {
        let checkpoint = view.progress()?.checkpoint;
        let (skipped, wanted) = match page {
            Some(page) => (page.saturating_sub(1).saturating_mul(PAGE), PAGE),
            None => (0, usize::MAX),
        };
        let seqs = evidence(view, &V1, &fact.key, checkpoint, skipped, wanted)?;
        let mut shown = Vec::with_capacity(seqs.len());
        let record = Walked(view);
        let (mut plans, mut standings) = (Standings::new(&record), Vec::new());
        // Positions descend, so a pass that no longer holds one holds none of those that follow.
        let mut passes: Vec<RawPass> = Vec::new();
        for seq in seqs {
            if let Some(stored) = view.stored(seq)? {
                let canonical = (!stored.is_forgotten()).then_some(&*stored.canonical);
                standings.push(plans.of(seq, canonical)?);
                shown.push(stored);
            }
            if passes.last().is_none_or(|pass| !(pass.first..=pass.last).contains(&seq)) {
                passes.extend(view.pass_over(seq)?);
            }
        }
        let group = group(view, &V1, identity, &fact.key)?;
        let published = group.publish(&V1, &fact.key).ok().flatten();
        let true_to_sum = published.is_some_and(|published| published.value == fact.value);
        let tally = group.tally;
        let words = words::arithmetic(fact.key.kind(), &tally);
        let numbers = tally.numbers.iter().filter(|(name, _)| !name.is_empty());
        let charts = numbers.map(|(name, histogram)| words::strip(name, histogram));
        let charts = charts.take(CHARTS).collect();
        Ok(Explanation {
            fact: Consulted::new(fact.clone())?,
            evidence: shown,
            standings,
            planned: Planned::among(view, || {
                evidence(view, &V1, &fact.key, checkpoint, 0, usize::MAX)
            })?,
            passes,
            words,
            charts,
            forgotten: view.forgotten_of(&FactId::new(identity, &fact.key))?,
            signed: signed_observations(view, &fact.key, checkpoint)?,
            true_to_sum,
        })
    }

    /// For programs.
    pub fn json(&self, identity: &Identity) -> String {
        let fact = Members::new()
            .text("fact_id", &FactId::new(identity, &self.fact.fact.key).to_string())
            .text("fact_kind", self.fact.fact.key.kind().name())
            .text("fact_key", self.fact.fact.key.text())
            .text("last_updated", &self.fact.fact.last.time.to_string())
            .raw("value", &self.fact.fact.value)
            .finish();
        let event = |(stored, (intent, standing)): (&Stored, &(Option<EventRef>, _))| {
            let (source, id) = source_and_id(stored);
            let intent = intent.map_or("null".to_owned(), |name| quoted(&name.to_string()));
            Members::new()
                .text("event_ref", &stored.event_ref.to_string())
                .raw("seq", stored.seq)
                .text("time", &stored.time.to_string())
                .text("type", &stored.event_type)
                .text("source", &source)
                .text("id", &id)
                .raw("intent", intent)
                .text("standing", AttemptStanding::name(*standing))
                .finish()
        };
        let pass = |pass: &RawPass| {
            Members::new()
                .raw("seq", pass.seq)
                .raw("first_seq", pass.first)
                .raw("last_seq", pass.last)
                .text("rule_version", &pass.rule_version)
                .finish()
        };
        Members::new()
            .raw("fact", fact)
            .raw("evidence", list(self.evidence.iter().zip(&self.standings).map(event)))
            .raw("evidence_total", self.fact.n_observations)
            .raw("forgotten", self.forgotten)
            .raw("planned", self.planned.planned)
            .raw("signed", self.signed.events)
            .raw("signers", list(self.signed.producers.iter().map(|name| quoted(name))))
            .raw("passes", list(self.passes.iter().map(pass)))
            .raw("words", list(self.words.iter().map(|line| quoted(line))))
            .finish()
    }
}

/// How many of a fact's observations are signed: all of its evidence is looked at, if anything is
/// signed at all.
fn signed_observations(view: View<'_>, key: &FactKey, up_to: Seq) -> Result<SignedBy, Error> {
    let signers = Signers::of(view)?;
    if signers.is_empty() {
        return Ok(SignedBy::default());
    }
    Ok(signers.count(&evidence(view, &V1, key, up_to, 0, usize::MAX)?))
}

/// The names under which a producer knows an event.
pub fn source_and_id(stored: &Stored) -> (String, String) {
    let value = json_parse::parse(stored.canonical.as_bytes(), ipse_door::MAX_DEPTH).ok();
    let text = |name: &str| {
        let text = value.as_ref().and_then(|value| value.as_object()?.get(name)?.as_text());
        text.unwrap_or_default().to_string()
    };
    (text("source"), text("id"))
}

/// An event for programs, with the facts that it feeds, who says that it is forgotten, and what it
/// goes back to if it is an action.
pub fn explained_event(
    view: View<'_>,
    identity: &Identity,
    stored: &Stored,
    signers: &BTreeSet<&str>,
    fed: &[(FactKey, bool)],
    action: Option<&Trail>,
) -> Result<String, Error> {
    let fact = |(key, supports): &(FactKey, bool)| {
        Members::new()
            .text("fact_id", &FactId::new(identity, key).to_string())
            .text("fact_kind", key.kind().name())
            .text("fact_key", key.text())
            .raw("supports", supports)
            .finish()
    };
    let forgotten = match said_by(view, stored)? {
        Some(said) => {
            Members::new().raw("seq", said.seq).text("time", &said.time.to_string()).finish()
        }
        None => "null".to_string(),
    };
    Ok(Members::new()
        .raw("event", answer::event(stored, signers).finish())
        .raw("facts", list(fed.iter().map(fact)))
        .raw("forgotten", forgotten)
        .optional("action", action.map(Trail::json))
        .finish())
}

/// The event that says that this one is forgotten, if it is.
pub fn said_by(view: View<'_>, stored: &Stored) -> Result<Option<Stored>, Error> {
    if !stored.is_forgotten() {
        return Ok(None);
    }
    let by = view.forgotten_by(&stored.event_ref, stored.seq)?;
    Ok(by.map(|seq| view.stored(seq)).transpose()?.flatten())
}
