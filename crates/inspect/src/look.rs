//! Looking into an identity's log from outside: the questions that a server, a page or a program
//! asks.
//!
//! **Invariants:** each look is at one moment of the store, on a connection that only reads and
//! that the next look uses again. The cost of a look follows the page that is asked for, not the
//! log (`explanation` aside, which walks to its evidence).

use crate::explain::{ExplainedEvent, Explanation};
use crate::intents::IntentPage;
use crate::log::{LogEntry, LogPage};
use crate::passes::PassPage;
use crate::proof::{Heads, Proof, SignedHead, prove};
use crate::standing::Standing;
use crate::walk::{StoreRecord, forgotten_since};
use crate::{Diff, Error, diff};
use ipse_consolidate::with_rules;
use ipse_consult::trail::{Found, IntentStanding, Listing, Proposal, Trail};
use ipse_core::{EventRef, FactId, Identity, Seq, Time};
use ipse_engine::facts::{Filter, ScoredFact};
use ipse_engine::{
    Claim, FactTable, LogView, Status, chosen_as_of, chosen_as_of_under, registered, rules_of,
};
use ipse_ledger::NoteKey;
use ipse_store::{Signatures, Store, View};
use std::sync::Arc;

/// An identity in a store, to be looked at.
#[derive(Clone, Debug)]
pub struct Look {
    store: Store,
    identity: Identity,
}

impl Look {
    /// At this identity of that store.
    pub fn at(store: &Store, identity: Identity) -> Self {
        Look { store: store.clone(), identity }
    }

    /// Whose log it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    fn view<T>(&self, look: impl FnOnce(View<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let reader = self.store.reader()?;
        let snapshot = reader.view(&self.identity)?;
        look(snapshot.view())
    }

    /// Who the agent is, and how far its log has come.
    pub fn standing(&self) -> Result<Standing, Error> {
        Standing::read(&self.store.reader()?, &self.identity)
    }

    /// The last position of the log.
    pub fn head(&self) -> Result<Seq, Error> {
        self.view(|view| Ok(view.head()?))
    }

    /// The facts that a filter chooses of those that the log up to a position gives; `None` if the
    /// log does not reach so far. A table of what is known now saves reading it.
    pub fn as_of(
        &self,
        seq: Seq,
        filter: &Filter,
        known: Option<&FactTable>,
    ) -> Result<Option<Vec<Arc<ScoredFact>>>, Error> {
        self.view(|view| {
            if seq > view.head()? {
                return Ok(None);
            }
            Ok(Some(chosen_as_of(view, seq, filter, known)?.facts))
        })
    }

    /// How the facts moved between two positions; `None` if the log does not reach so far.
    pub fn diff(&self, from: Seq, to: Seq) -> Result<Option<Diff>, Error> {
        self.view(|view| {
            if from.max(to) > view.head()? {
                return Ok(None);
            }
            Ok(Some(diff(view, from, to)?))
        })
    }

    /// Whether the log confirms the consultation that a planner echoes with its next intent; and
    /// the facts that its query chooses at its checkpoint, none if the log does not reach so far.
    pub fn claim(
        &self,
        claim: &Claim,
        known: Option<&FactTable>,
    ) -> Result<(Status, Vec<Arc<ScoredFact>>), Error> {
        self.view(|view| {
            let (checkpoint, head) = (claim.checkpoint(), view.head()?);
            let mut facts = Vec::new();
            if checkpoint <= head {
                // A claim that names unknown rules is unverified, whatever the facts are.
                let rules = claim.rules().map_or_else(|| rules_of(view), Ok)?;
                facts = with_rules!(rules, |rules| {
                    chosen_as_of_under(view, rules, checkpoint, claim.filter(), known)?.facts
                });
            }
            let forgotten = || forgotten_since(view, checkpoint);
            Ok((claim.status(&self.identity, &facts, head, forgotten)?, facts))
        })
    }

    /// The producers that may sign, as keys; `None` if signatures are ignored for this log.
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

    /// Why a fact says what it says, with a page of its evidence; `None` if there is no such fact,
    /// or no such page.
    pub fn explanation(&self, id: &FactId, page: usize) -> Result<Option<Explanation>, Error> {
        self.view(|view| {
            let Some(fact) = view.fact(id)? else { return Ok(None) };
            let explanation = Explanation::of(view, &self.identity, &fact, Some(page))?;
            Ok(Some(explanation).filter(|explanation| page as u64 <= explanation.pages()))
        })
    }

    /// An event, the facts that it feeds, and the walk back from it if it is an action.
    pub fn event(
        &self,
        event_ref: &EventRef,
        listing: Listing,
    ) -> Result<Option<ExplainedEvent>, Error> {
        self.view(|view| ExplainedEvent::of(view, &self.identity, event_ref, listing))
    }

    /// The walk back from an action.
    pub fn action(&self, event_ref: &EventRef, listing: Listing) -> Result<Found, Error> {
        self.view(|view| Trail::of(&StoreRecord(view), &self.identity, event_ref, listing))
    }

    /// Events after a position, in order, at most so many and not much more than 4 MiB of them.
    pub fn log(&self, after: Seq, limit: u64) -> Result<LogPage, Error> {
        self.view(|view| LogPage::read(view, after, limit))
    }

    /// Events after a position for a reader that follows the log, at most so many; and the newest
    /// signed tree head.
    pub fn news(
        &self,
        after: Seq,
        limit: u64,
    ) -> Result<(Vec<LogEntry>, Option<SignedHead>), Error> {
        self.view(|view| Ok((LogEntry::after(view, after, limit)?, SignedHead::newest(view)?)))
    }

    /// Passes before a position, newest first, at most so many.
    pub fn passes(&self, before: Seq, limit: u64) -> Result<PassPage, Error> {
        self.view(|view| PassPage::read(view, before, limit))
    }

    /// Reads the log as it stands now, outside of any transaction that writes.
    pub fn past<T>(&self, look: impl FnOnce(&LogView<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.view(|view| look(&LogView::of(view)))
    }

    /// An intent; `None` if there is none of that name, or if it was forgotten.
    pub fn intent(&self, name: &EventRef) -> Result<Option<Proposal>, Error> {
        self.view(|view| Proposal::named(&StoreRecord(view), name))
    }

    /// When an event happened; `None` if the log has no event of that name. A forgotten event still
    /// has its time.
    pub fn time_of(&self, name: &EventRef) -> Result<Option<Time>, Error> {
        self.view(|view| {
            let Some(seq) = view.find(name)? else { return Ok(None) };
            Ok(view.stored(seq)?.map(|stored| stored.time))
        })
    }

    /// Intents before a position, newest first, at most so many of that standing. An intent that
    /// waits but can no longer be confirmed `now` is not listed as waiting.
    pub fn intents(
        &self,
        before: Seq,
        limit: u64,
        standing: Option<IntentStanding>,
        now: Time,
    ) -> Result<IntentPage, Error> {
        self.view(|view| IntentPage::read(view, before, limit, standing, now))
    }

    /// How far the log reaches, and how far its newest signed tree head.
    pub fn heads(&self) -> Result<Heads, Error> {
        self.view(|view| Ok(Heads { head: view.head()?, signed: SignedHead::newest(view)? }))
    }

    /// The newest signed tree head.
    pub fn tree_head(&self) -> Result<Option<SignedHead>, Error> {
        self.view(SignedHead::newest)
    }

    /// The proof that an event is under that head. The outer `None` means that there is no such
    /// event, the inner one that no head covers it yet.
    pub fn proof(&self, event_ref: &EventRef) -> Result<Option<Option<Proof>>, Error> {
        self.view(|view| {
            let Some(seq) = view.find(event_ref)? else { return Ok(None) };
            Ok(Some(prove(view, seq)?))
        })
    }
}
