//! The trail: from an action back to its intent, the results of the gates, the facts that the
//! planner read, their evidence, and the proofs that all of it is in the signed log.
//!
//! **Invariants**
//! - A trail is a function of the log and the signed tree head. A store and a bundle with the same
//!   log and tree head give the same trail, byte for byte.
//! - The statements of an event about itself are shown but not trusted: standings, deviations and
//!   the status of a consultation are computed each time.
//! - No content of an intent causes a panic. Unreadable content is reported as unreadable.

mod attempt;
mod intent;
mod json;
mod known;
mod page;
mod proposed;

pub use attempt::{AttemptStanding, Standings, names_intent, naming_text};
pub use proposed::{IntentStanding, Proposal};

use crate::Damaged;
use attempt::{Attempt, Mention};
use intent::{Intent, Verdict};
use ipse_consolidate::Rules;
use ipse_core::intent::{CONFIRMATION, INTENT};
use ipse_core::{EventRef, EvidenceKey, Fact, Identity, Outcome, Seq, Time, is_housekeeping};
use ipse_ledger::{Entry, ProofFile};
use known::{ConsultationClaim, Facts};
use std::collections::BTreeMap;

/// The default number of events that are listed as evidence of a fact.
pub const EVIDENCE: usize = 10;
/// The maximum number of events that are listed as evidence of a fact.
pub const MAX_EVIDENCE: usize = 100;
/// The number of facts per page. With the default evidence and its proofs, a page takes at most
/// about a megabyte.
pub const FACTS: usize = 50;
/// The maximum number of listed attempts. An intent is for one action, so more are a fault already.
pub const MAX_ATTEMPTS: usize = 256;

/// A query for the evidence of facts.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceQuery<'k> {
    /// The rules of the facts.
    pub rules: Rules,
    /// The facts.
    pub facts: &'k [EvidenceKey],
    /// The last position to read.
    pub up_to: Seq,
    /// The maximum number of events per fact.
    pub wanted: usize,
}

/// Read access to a log, for a trail.
pub trait Record {
    /// An error of reading the log.
    type Error: From<Damaged>;

    /// Looks up the position of an event by its name.
    fn find(&self, name: &EventRef) -> Result<Option<Seq>, Self::Error>;

    /// The event at a position.
    fn event(&self, seq: Seq) -> Result<Option<EventRecord>, Self::Error>;

    /// The rules in force at a position; `None` if this build does not have them.
    fn rules_at(&self, seq: Seq) -> Result<Option<Rules>, Self::Error>;

    /// The facts that the log up to a position gives under some rules.
    fn facts_at(&self, seq: Seq, rules: Rules) -> Result<Vec<Fact>, Self::Error>;

    /// The positions of the newest events that each fact rests on, newest first.
    fn evidence(&self, behind: &EvidenceQuery<'_>) -> Result<Vec<Vec<Seq>>, Self::Error>;

    /// The positions of producers' events after `after` that name an intent, in order.
    fn naming(&self, intent: &EventRef, after: Seq) -> Result<Vec<Seq>, Self::Error>;

    /// Whether an event up to a position was forgotten after it and may have fed a fact.
    fn forgotten_since(&self, seq: Seq) -> Result<bool, Self::Error>;

    /// The entry at a position, and the proof that it is under the signed tree head. `None` if the
    /// tree head does not cover it.
    fn proof(&self, seq: Seq) -> Result<Option<(Entry, ProofFile)>, Self::Error>;
}

/// The part of a trail to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listing {
    /// The number of events to list as evidence of each fact, up to [`MAX_EVIDENCE`].
    pub evidence: usize,
    /// The page of [`FACTS`] facts, from 1. A page after the last one is empty.
    pub page: usize,
}

impl Default for Listing {
    fn default() -> Self {
        Listing { evidence: EVIDENCE, page: 1 }
    }
}

/// An event of a [`Record`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventRecord {
    /// The position in the log.
    pub seq: Seq,
    /// The name of the event.
    pub event_ref: EventRef,
    /// The CloudEvents type.
    pub event_type: String,
    /// The time of the event.
    pub time: Time,
    /// The outcome, if the event is an attempt with an outcome.
    pub outcome: Option<Outcome>,
    /// The canonical bytes; `None` if the event is forgotten.
    pub canonical: Option<String>,
}

/// The result of a lookup by name.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// The trail of the action.
    Action(Box<Trail>),
    /// The event is not an action; this is its type.
    NoAction(String),
    /// No event has this name.
    Nothing,
}

/// The trail of an action.
#[derive(Clone, PartialEq, Debug)]
pub struct Trail {
    identity: Identity,
    asked: EventRef,
    /// By position.
    attempts: Vec<Attempt>,
    /// Attempts that are not listed.
    left_out: u64,
    intent: Option<EventRecord>,
    verdict: Option<Verdict>,
    consultation: Option<ConsultationClaim>,
    /// A page of the facts, in the order of the consultation.
    facts: Facts,
    /// The proofs of the events above, by position.
    proofs: Vec<(Entry, ProofFile)>,
    /// The events that no signed tree head covers yet.
    unproven: Vec<EventRef>,
}

/// The start of a trail.
struct Start {
    asked: EventRecord,
    intent: Option<Intent>,
}

impl Trail {
    /// Computes the trail of an intent, a confirmation, or any event of a producer.
    pub fn of<R: Record>(
        record: &R,
        identity: &Identity,
        name: &EventRef,
        listing: Listing,
    ) -> Result<Found, R::Error> {
        let Some(asked) = record.find(name)?.map(|seq| record.event(seq)).transpose()?.flatten()
        else {
            return Ok(Found::Nothing);
        };
        let is_action = matches!(asked.event_type.as_str(), INTENT | CONFIRMATION);
        if is_housekeeping(&asked.event_type) && !is_action {
            return Ok(Found::NoAction(asked.event_type));
        }
        let start = Start::at(record, asked)?;
        Ok(Found::Action(Box::new(Trail::from(record, identity, start, listing)?)))
    }

    fn from<R: Record>(
        record: &R,
        identity: &Identity,
        start: Start,
        listing: Listing,
    ) -> Result<Self, R::Error> {
        let (attempts, left_out) = start.attempts(record)?;
        let Start { asked, intent } = start;
        let (mut consultation, mut facts) = (None, Facts::default());
        if let Some(data) = intent.as_ref().and_then(Intent::data) {
            let latest = Seq(data.seq.0.saturating_sub(1));
            let data = data.object();
            (consultation, facts) = known::of(record, identity, &data, latest, listing)?;
        }
        let verdict = intent.as_ref().and_then(Intent::verdict);
        let mut trail = Trail {
            identity: *identity,
            asked: asked.event_ref,
            attempts,
            left_out,
            intent: intent.map(|intent| intent.reported),
            verdict,
            consultation,
            facts,
            proofs: Vec::new(),
            unproven: Vec::new(),
        };
        trail.prove(record, &asked)?;
        Ok(trail)
    }

    /// The name of the intent behind the action, if there is one.
    pub fn intent(&self) -> Option<EventRef> {
        self.intent.as_ref().map(|intent| intent.event_ref)
    }

    /// The standing of the requested event, if it is an attempt.
    pub fn standing(&self) -> Option<AttemptStanding> {
        let asked = self.attempts.iter().find(|attempt| attempt.reported.event_ref == self.asked);
        asked.map(|attempt| attempt.standing)
    }

    /// Adds the proofs of all events in the trail.
    fn prove<R: Record>(&mut self, record: &R, asked: &EventRecord) -> Result<(), R::Error> {
        let mut named = BTreeMap::from([(asked.seq, asked.event_ref)]);
        named.extend(self.attempts.iter().map(|it| (it.reported.seq, it.reported.event_ref)));
        named.extend(self.intent.iter().map(|it| (it.seq, it.event_ref)));
        let confirmation = self.verdict.iter().filter_map(|it| it.confirmation.as_ref());
        named.extend(confirmation.map(|it| (it.seq, it.event_ref)));
        let evidence = self.facts.listed.iter().flat_map(|known| &known.evidence);
        named.extend(evidence.map(|it| (it.seq, it.event_ref)));
        for (seq, name) in named {
            match record.proof(seq)? {
                Some(proven) => self.proofs.push(proven),
                None => self.unproven.push(name),
            }
        }
        Ok(())
    }
}

impl Start {
    /// Finds the intent of an event: itself, the intent that it decides about, or that it names.
    fn at<R: Record>(record: &R, asked: EventRecord) -> Result<Self, R::Error> {
        let intent = match asked.event_type.as_str() {
            INTENT => Some(Intent::new(record, asked.clone())?),
            _ => match attempt::mention(asked.canonical.as_deref()) {
                Mention::Of(name) => {
                    Intent::named(record, &name)?.filter(|intent| intent.reported.seq < asked.seq)
                }
                _ => None,
            },
        };
        Ok(Start { asked, intent })
    }

    /// The attempts at the intent, or the requested one; and the number of those not listed.
    fn attempts<R: Record>(&self, record: &R) -> Result<(Vec<Attempt>, u64), R::Error> {
        let mut attempts = Vec::new();
        let mut seqs = match &self.intent {
            Some(intent) => record.naming(&intent.reported.event_ref, intent.reported.seq)?,
            None => Vec::new(),
        };
        let asked = (!is_housekeeping(&self.asked.event_type)).then_some(self.asked.seq);
        // List the requested attempt always, and the first ones of the others.
        let others = seqs.iter().filter(|seq| Some(**seq) != asked).count();
        let room = MAX_ATTEMPTS - usize::from(asked.is_some());
        let last = seqs.iter().filter(|seq| Some(**seq) != asked).nth(room).copied();
        seqs.retain(|seq| Some(*seq) != asked && last.is_none_or(|last| *seq < last));
        let left_out = others - seqs.len();
        seqs.extend(asked);
        seqs.sort_unstable();
        for seq in seqs {
            let reported = match asked == Some(seq) {
                true => Some(self.asked.clone()),
                false => record.event(seq)?,
            };
            attempts.extend(reported.map(|reported| Attempt::at(reported, self.intent.as_ref())));
        }
        Ok((attempts, left_out as u64))
    }
}
