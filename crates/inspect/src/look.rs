//! Queries on an identity's log, for a server, a page or a program.
//!
//! **Invariants:** each query reads one snapshot of the store, on a read-only connection that the
//! next query reuses. The cost depends on the requested page, not on the log. The exception is
//! `explanation`, which walks to its evidence.

use crate::consistency::{ConsistencyAnswer, prove_consistency};
use crate::explain::{ExplainedEvent, Explanation};
use crate::intents::IntentPage;
use crate::log::{LogEntry, LogPage, LogQuery};
use crate::moment::{Moment, Position};
use crate::passes::PassPage;
use crate::plan::{AttemptAdvice, PlannedAttempt, ValueAdvice};
use crate::proof::{Heads, Proof, SignedHead, prove};
use crate::rules::RulesList;
use crate::standing::Standing;
use crate::walk::{StoreRecord, forgotten_since};
use crate::{Diff, DriftSeries, Error, diff, drift};
use ipse_consolidate::days::Day;
use ipse_consolidate::drift::DriftReport;
use ipse_consult::trail::{Found, IntentStanding, Listing, Proposal, Trail};
use ipse_core::{EventRef, FactId, Identity, Micro, Seq, Time};
use ipse_engine::facts::{Chosen, Filter, ScoredFact};
use ipse_engine::{
    AsOf, Claim, FactTable, LogView, RulesReport, Status, chosen_as_of, chosen_as_of_with,
    known_rules, registered, rules_name_at, rules_of,
};
use ipse_ledger::{NoteKey, RuleSetName};
use ipse_plan::{Candidates, Question};
use ipse_store::{Signatures, Store, View};
use std::sync::Arc;

/// The consultation that follows from a checkpoint and a query.
#[derive(Clone, PartialEq, Debug)]
pub enum Derivation {
    /// The consultation, its status and its facts.
    Of {
        /// The consultation.
        claim: Claim,
        /// The status, also after events were forgotten.
        status: Status,
        /// The facts, in the order of the consultation.
        facts: Vec<Arc<ScoredFact>>,
    },
    /// The query chooses this many facts, more than a consultation may name.
    TooMany(usize),
}

/// The facts as of a moment.
#[derive(Clone, PartialEq, Debug)]
pub struct PastFacts {
    /// The position of the moment.
    pub position: Position,
    /// The facts.
    pub chosen: Chosen,
    /// The version of the rules in force there.
    pub rule_version: String,
}

/// Read access to an identity's log.
#[derive(Clone, Debug)]
pub struct Look {
    store: Store,
    identity: Identity,
}

impl Look {
    /// Queries on this identity of a store.
    pub fn at(store: &Store, identity: Identity) -> Self {
        Look { store: store.clone(), identity }
    }

    /// The identity of the log.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    fn view<T>(&self, look: impl FnOnce(View<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let reader = self.store.reader()?;
        let snapshot = reader.view(&self.identity)?;
        look(snapshot.view())
    }

    /// The manifest of the agent, and the counts of its log.
    pub fn standing(&self) -> Result<Standing, Error> {
        Standing::read(&self.store.reader()?, &self.identity)
    }

    /// The last position of the log.
    pub fn head(&self) -> Result<Seq, Error> {
        self.view(|view| Ok(view.head()?))
    }

    /// The position that a moment means; `None` if the log is shorter.
    pub fn position(&self, moment: Moment) -> Result<Option<Position>, Error> {
        self.view(|view| moment.resolve(view))
    }

    /// The facts as of a moment that a filter chooses, with its position and the version of the
    /// rules in force there. `None` if the log is shorter. A table of the current facts avoids
    /// reading them from the store.
    pub fn as_of(
        &self,
        moment: Moment,
        filter: &Filter,
        known: Option<&FactTable>,
    ) -> Result<Option<PastFacts>, Error> {
        self.view(|view| {
            let Some(position) = moment.resolve(view)? else { return Ok(None) };
            let AsOf { facts, total, .. } = chosen_as_of(view, position.seq, filter, known)?;
            let rule_version = rules_name_at(view, position.seq)?.version;
            Ok(Some(PastFacts { position, chosen: Chosen { facts, total }, rule_version }))
        })
    }

    /// The changes of the facts between two moments; `None` if the log is shorter.
    pub fn diff(&self, from: Moment, to: Moment) -> Result<Option<Diff>, Error> {
        self.view(|view| {
            let Some((from, to)) = from.resolve(view)?.zip(to.resolve(view)?) else {
                return Ok(None);
            };
            Ok(Some(diff(view, from.seq, to.seq)?))
        })
    }

    /// Checks a consultation that a planner echoes with its next intent against the log. Also
    /// returns the facts that its query chooses at its checkpoint, `None` if the log is shorter.
    pub fn claim(
        &self,
        claim: &Claim,
        known: Option<&FactTable>,
    ) -> Result<(Status, Vec<Arc<ScoredFact>>), Error> {
        self.view(|view| {
            let (checkpoint, head) = (claim.checkpoint(), view.head()?);
            let rules = rules_name_at(view, checkpoint)?;
            let facts = chosen_at(view, &rules, checkpoint, claim.filter(), known)?;
            let (version, forgotten) = (&rules.version, || forgotten_since(view, checkpoint));
            Ok((claim.status(&self.identity, &facts, head, version, forgotten)?, facts))
        })
    }

    /// Derives the consultation of a planner that gives only checkpoint and query. It is unverified
    /// and without facts if the log is shorter.
    pub fn derived(
        &self,
        checkpoint: Seq,
        filter: &Filter,
        known: Option<&FactTable>,
    ) -> Result<Derivation, Error> {
        self.view(|view| {
            let (head, rules) = (view.head()?, rules_name_at(view, checkpoint)?);
            let facts = chosen_at(view, &rules, checkpoint, filter, known)?;
            let (identity, version) = (&self.identity, &rules.version);
            let Some(claim) = Claim::derived(identity, checkpoint, version, filter, &facts) else {
                return Ok(Derivation::TooMany(facts.len()));
            };
            let forgotten = || forgotten_since(view, checkpoint);
            let status = claim.status(identity, &facts, head, version, forgotten)?;
            Ok(Derivation::Of { claim, status, facts })
        })
    }

    /// The report of the drift monitor for a day, or for the newest day with an attempt.
    pub fn drift(&self, day: Option<Day>) -> Result<DriftReport, Error> {
        self.view(|view| drift(view, &self.identity, day))
    }

    /// The skill facts week by week.
    pub fn drift_series(&self) -> Result<DriftSeries, Error> {
        self.view(|view| DriftSeries::read(view, &self.identity))
    }

    /// Whether to make an attempt, as of the checkpoint. A table of the current facts avoids
    /// reading the store.
    pub fn may_attempt(
        &self,
        planned: &PlannedAttempt,
        question: &Question,
        known: Option<&FactTable>,
    ) -> Result<AttemptAdvice, Error> {
        let identity = &self.identity;
        let known =
            known.and_then(|table| AttemptAdvice::known(identity, table, planned, question));
        match known {
            Some(advice) => Ok(advice),
            None => self.view(|view| AttemptAdvice::read(view, identity, planned, question)),
        }
    }

    /// The value of a parameter to try next, as of the checkpoint.
    pub fn suggest(
        &self,
        planned: &PlannedAttempt,
        param: &str,
        candidates: &Candidates,
        prefer: Option<Micro>,
    ) -> Result<ValueAdvice, Error> {
        let identity = &self.identity;
        self.view(|view| ValueAdvice::read(view, identity, planned, param, candidates, prefer))
    }

    /// The rules of the log, with what happened before and since each activation.
    pub fn rules(&self) -> Result<RulesList, Error> {
        self.view(|view| RulesList::with_activity(view, &self.identity))
    }

    /// The rules of the log alone.
    pub fn rule_sets(&self) -> Result<RulesList, Error> {
        self.view(RulesList::read)
    }

    /// The report on a change to other rules, as of a moment or of the stored facts. `None` if
    /// the log is shorter, or this build does not have the rules.
    pub fn rules_report(
        &self,
        to: &RuleSetName,
        moment: Option<Moment>,
    ) -> Result<Option<RulesReport>, Error> {
        self.view(|view| {
            let moment = match moment {
                Some(moment) => moment,
                None => Moment::Position(view.progress()?.checkpoint),
            };
            let (from, to) = (rules_of(view)?, known_rules(to).ok());
            let Some((to, position)) = to.zip(moment.resolve(view)?) else { return Ok(None) };
            Ok(Some(RulesReport::compute(view, &self.identity, position.seq, from, to)?))
        })
    }

    /// The keys of the producers that may sign; `None` if signatures are ignored for this log.
    pub fn producers(&self) -> Result<Option<Vec<NoteKey>>, Error> {
        self.view(|view| {
            let off = view.signatures()? == Signatures::Off;
            Ok(if off { None } else { Some(registered(&view.producers()?)) })
        })
    }

    /// A fact by its id.
    pub fn fact(&self, id: &FactId) -> Result<Option<ScoredFact>, Error> {
        self.view(|view| {
            let Some(fact) = view.fact(id)? else { return Ok(None) };
            Ok(Some(ScoredFact::new(fact)?))
        })
    }

    /// Explains a fact, with a page of its evidence. `None` if the fact or the page does not exist.
    pub fn explanation(&self, id: &FactId, page: usize) -> Result<Option<Explanation>, Error> {
        self.view(|view| {
            let Some(fact) = view.fact(id)? else { return Ok(None) };
            let explanation = Explanation::of(view, &self.identity, &fact, Some(page))?;
            Ok(Some(explanation).filter(|explanation| page as u64 <= explanation.pages()))
        })
    }

    /// An event, the facts that it feeds, and its trail if it is an action.
    pub fn event(
        &self,
        event_ref: &EventRef,
        listing: Listing,
    ) -> Result<Option<ExplainedEvent>, Error> {
        self.view(|view| ExplainedEvent::of(view, &self.identity, event_ref, listing))
    }

    /// The trail of an action.
    pub fn action(&self, event_ref: &EventRef, listing: Listing) -> Result<Found, Error> {
        self.view(|view| Trail::of(&StoreRecord(view), &self.identity, event_ref, listing))
    }

    /// A page of the log: the events after a position that match, in order. The page has bounded
    /// work: it may be short, or empty, and say where to continue.
    pub fn log(&self, query: &LogQuery) -> Result<LogPage, Error> {
        self.view(|view| LogPage::read(view, query))
    }

    /// Up to `limit` events after a position for a reader that follows the log; and the newest
    /// signed tree head.
    pub fn news(
        &self,
        after: Seq,
        limit: u64,
    ) -> Result<(Vec<LogEntry>, Option<SignedHead>), Error> {
        self.view(|view| Ok((LogEntry::after(view, after, limit)?, SignedHead::newest(view)?)))
    }

    /// Up to `limit` passes before a position, newest first.
    pub fn passes(&self, before: Seq, limit: u64) -> Result<PassPage, Error> {
        self.view(|view| PassPage::read(view, before, limit))
    }

    /// Reads the current log, outside of any write transaction.
    pub fn past<T>(&self, look: impl FnOnce(&LogView<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.view(|view| look(&LogView::of(view)))
    }

    /// An intent by its name; `None` if it does not exist or is forgotten.
    pub fn intent(&self, name: &EventRef) -> Result<Option<Proposal>, Error> {
        self.view(|view| Proposal::named(&StoreRecord(view), name))
    }

    /// The time of an event; `None` if no event has this name. A forgotten event keeps its time.
    pub fn time_of(&self, name: &EventRef) -> Result<Option<Time>, Error> {
        self.view(|view| {
            let Some(seq) = view.find(name)? else { return Ok(None) };
            Ok(view.stored(seq)?.map(|stored| stored.time))
        })
    }

    /// Up to `limit` intents of a standing before a position, newest first. An intent that can no
    /// longer be confirmed `now` is not listed as waiting.
    pub fn intents(
        &self,
        before: Seq,
        limit: u64,
        standing: Option<IntentStanding>,
        now: Time,
    ) -> Result<IntentPage, Error> {
        self.view(|view| IntentPage::read(view, before, limit, standing, now))
    }

    /// The last position of the log, and its newest signed tree head.
    pub fn heads(&self) -> Result<Heads, Error> {
        self.view(|view| Ok(Heads { head: view.head()?, signed: SignedHead::newest(view)? }))
    }

    /// The newest signed tree head.
    pub fn tree_head(&self) -> Result<Option<SignedHead>, Error> {
        self.view(SignedHead::newest)
    }

    /// The proof that an event is under the newest tree head. The outer `None` means that the event
    /// does not exist, the inner one that no tree head covers it yet.
    pub fn proof(&self, event_ref: &EventRef) -> Result<Option<Option<Proof>>, Error> {
        self.view(|view| {
            let Some(seq) = view.find(event_ref)? else { return Ok(None) };
            Ok(Some(prove(view, seq)?))
        })
    }

    /// The proof that the first `from` entries are the beginning of the first `to`, or of those
    /// under the newest tree head.
    pub fn consistency(&self, from: u64, to: Option<u64>) -> Result<ConsistencyAnswer, Error> {
        self.view(|view| prove_consistency(view, from, to))
    }
}

/// The facts that a query chooses at a position under the rules in force there; none if the log is
/// shorter. Without those rules only the stored facts are known.
fn chosen_at(
    view: View<'_>,
    rules: &RuleSetName,
    seq: Seq,
    filter: &Filter,
    known: Option<&FactTable>,
) -> Result<Vec<Arc<ScoredFact>>, Error> {
    if seq > view.head()? {
        return Ok(Vec::new());
    }
    match known_rules(rules) {
        Ok(rules) => Ok(chosen_as_of_with(view, rules, seq, filter, known)?.facts),
        Err(_) if view.progress()?.checkpoint == seq => Ok(filter.choose(view.facts()?)?),
        Err(_) => Ok(Vec::new()),
    }
}
