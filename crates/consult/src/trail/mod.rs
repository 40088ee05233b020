//! The trail: from an action back to its intent, what the gates said, what the planner knew then,
//! the evidence behind that, and the proofs that all of it is in the signed log.
//!
//! **Invariants**
//! - A trail is a function of the log and the signed tree head. A store and a bundle that have the
//!   same ones tell the same trail, byte for byte.
//! - What an event says about itself is shown and not believed: standings, deviations and the
//!   status of a consultation are made anew each time.
//! - Whatever stands in an intent, nothing here panics; what cannot be read is told as such.

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
use ipse_core::{EventRef, Fact, FactKey, Identity, Outcome, Seq, Time, is_housekeeping};
use ipse_ledger::{Entry, ProofFile};
use known::{ConsultationClaim, Facts};
use std::collections::BTreeMap;

/// Evidence of each fact that is listed if nobody says how much, and at most.
pub const EVIDENCE: usize = 10;
/// See [`EVIDENCE`].
pub const MAX_EVIDENCE: usize = 100;
/// Facts of a page: with their evidence and its proofs they take about a megabyte at most, unless
/// more evidence is asked for.
pub const FACTS: usize = 50;
/// Attempts that are listed at most: one intent is for one action, so more are a fault already.
pub const MAX_ATTEMPTS: usize = 256;

/// The facts whose evidence is asked for.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceQuery<'k> {
    /// The rules that the facts follow.
    pub rules: Rules,
    /// Their keys.
    pub keys: &'k [FactKey],
    /// The last position that counts.
    pub up_to: Seq,
    /// How many events of each at most.
    pub wanted: usize,
}

/// A log, as a walk needs it.
pub trait Record {
    /// Why something could not be had.
    type Error: From<Damaged>;

    /// The position of the event of that name.
    fn find(&self, name: &EventRef) -> Result<Option<Seq>, Self::Error>;

    /// The event at a position.
    fn event(&self, seq: Seq) -> Result<Option<EventRecord>, Self::Error>;

    /// The facts that the log up to a position gives under some rules.
    fn facts_at(&self, seq: Seq, rules: Rules) -> Result<Vec<Fact>, Self::Error>;

    /// The positions of the newest events behind each fact, newest first.
    fn evidence(&self, behind: &EvidenceQuery<'_>) -> Result<Vec<Vec<Seq>>, Self::Error>;

    /// The positions after another one of producers' events that name an intent, in order.
    fn naming(&self, intent: &EventRef, after: Seq) -> Result<Vec<Seq>, Self::Error>;

    /// Whether an event up to a position that may have fed a fact was forgotten after it.
    fn forgotten_since(&self, seq: Seq) -> Result<bool, Self::Error>;

    /// The entry at a position, and the proof that it is under the signed tree head; `None` if it
    /// is under none.
    fn proof(&self, seq: Seq) -> Result<Option<(Entry, ProofFile)>, Self::Error>;
}

/// Which part of a walk is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listing {
    /// Pieces of evidence of each fact, up to [`MAX_EVIDENCE`].
    pub evidence: usize,
    /// Which [`FACTS`] of the facts, from 1 on. A page after the last one holds none.
    pub page: usize,
}

impl Default for Listing {
    fn default() -> Self {
        Listing { evidence: EVIDENCE, page: 1 }
    }
}

/// An event, as a record tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventRecord {
    /// Its position.
    pub seq: Seq,
    /// Its name.
    pub event_ref: EventRef,
    /// Its type.
    pub event_type: String,
    /// When it happened.
    pub time: Time,
    /// How it ended, if it was an attempt and says so.
    pub outcome: Option<Outcome>,
    /// Its canonical bytes; `None` once it is forgotten.
    pub canonical: Option<String>,
}

/// What was found under a name.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// The walk back from it.
    Action(Box<Trail>),
    /// An event that is no action: its type.
    NoAction(String),
    /// No event.
    Nothing,
}

/// The walk back from an action.
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
    /// A page of what was known, in the order in which it was told.
    facts: Facts,
    /// Of the events above, by position.
    proofs: Vec<(Entry, ProofFile)>,
    /// Those that are under no signed tree head yet.
    unproven: Vec<EventRef>,
}

/// Where a walk begins.
struct Start {
    asked: EventRecord,
    intent: Option<Intent>,
}

impl Trail {
    /// Walks back from an intent, a confirmation, or any event of a producer.
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
            intent: intent.map(|intent| intent.told),
            verdict,
            consultation,
            facts,
            proofs: Vec::new(),
            unproven: Vec::new(),
        };
        trail.prove(record, &asked)?;
        Ok(trail)
    }

    /// How the attempt stands that was asked about, if it was one.
    pub fn standing(&self) -> Option<AttemptStanding> {
        let asked = self.attempts.iter().find(|attempt| attempt.told.event_ref == self.asked);
        asked.map(|attempt| attempt.standing)
    }

    /// Proves every event that is named.
    fn prove<R: Record>(&mut self, record: &R, asked: &EventRecord) -> Result<(), R::Error> {
        let mut named = BTreeMap::from([(asked.seq, asked.event_ref)]);
        named.extend(self.attempts.iter().map(|it| (it.told.seq, it.told.event_ref)));
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
    /// The intent that an event is, decides about, or names.
    fn at<R: Record>(record: &R, asked: EventRecord) -> Result<Self, R::Error> {
        let intent = match asked.event_type.as_str() {
            INTENT => Some(Intent::new(record, asked.clone())?),
            _ => match attempt::mention(asked.canonical.as_deref()) {
                Mention::Of(name) => {
                    Intent::named(record, &name)?.filter(|intent| intent.told.seq < asked.seq)
                }
                _ => None,
            },
        };
        Ok(Start { asked, intent })
    }

    /// The attempts at the intent, or the one that was asked about; and how many are not listed.
    fn attempts<R: Record>(&self, record: &R) -> Result<(Vec<Attempt>, u64), R::Error> {
        let mut attempts = Vec::new();
        let mut seqs = match &self.intent {
            Some(intent) => record.naming(&intent.told.event_ref, intent.told.seq)?,
            None => Vec::new(),
        };
        let asked = (!is_housekeeping(&self.asked.event_type)).then_some(self.asked.seq);
        // The one that was asked about is always there; of the others the first ones are.
        let others = seqs.iter().filter(|seq| Some(**seq) != asked).count();
        let room = MAX_ATTEMPTS - usize::from(asked.is_some());
        let last = seqs.iter().filter(|seq| Some(**seq) != asked).nth(room).copied();
        seqs.retain(|seq| Some(*seq) != asked && last.is_none_or(|last| *seq < last));
        let left_out = others - seqs.len();
        seqs.extend(asked);
        seqs.sort_unstable();
        for seq in seqs {
            let told = match asked == Some(seq) {
                true => Some(self.asked.clone()),
                false => record.event(seq)?,
            };
            attempts.extend(told.map(|told| Attempt::at(told, self.intent.as_ref())));
        }
        Ok((attempts, left_out as u64))
    }
}
