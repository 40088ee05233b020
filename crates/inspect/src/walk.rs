//! Read access to a store's log, for trails.
//!
//! **Invariant:** there is no index by intent. The events that name an intent are found by a scan
//! of all events after it.

use crate::explain::newest_evidence;
use crate::{Error, prove};
use ipse_consolidate::{Rules, with_rules};
use ipse_consult::trail::{EventRecord, EvidenceQuery, Record, names_intent, naming_text};
use ipse_core::event::FORGET;
use ipse_core::{Columns, EventRef, Fact, Outcome, Seq, is_housekeeping, sha256};
use ipse_engine::{as_of_with, known_rules, rules_name_at};
use ipse_ledger::account::forgotten_names;
use ipse_ledger::{Entry, ProofFile};
use ipse_store::Stored;
use ipse_store::View;

/// A store's log as a [`Record`].
#[derive(Clone, Copy)]
pub struct StoreRecord<'v>(pub View<'v>);

impl Record for StoreRecord<'_> {
    type Error = Error;

    fn find(&self, name: &EventRef) -> Result<Option<Seq>, Error> {
        Ok(self.0.find(name)?)
    }

    fn event(&self, seq: Seq) -> Result<Option<EventRecord>, Error> {
        self.0.stored(seq)?.map(reported).transpose()
    }

    fn rules_at(&self, seq: Seq) -> Result<Option<Rules>, Error> {
        Ok(known_rules(&rules_name_at(self.0, seq)?).ok())
    }

    fn facts_at(&self, seq: Seq, rules: Rules) -> Result<Vec<Fact>, Error> {
        Ok(as_of_with(self.0, rules, seq)?.facts)
    }

    fn evidence(&self, behind: &EvidenceQuery<'_>) -> Result<Vec<Vec<Seq>>, Error> {
        let EvidenceQuery { facts, up_to, wanted, .. } = *behind;
        with_rules!(behind.rules, |rules| newest_evidence(self.0, rules, facts, up_to, wanted))
    }

    fn naming(&self, intent: &EventRef, after: Seq) -> Result<Vec<Seq>, Error> {
        let mut named = Vec::new();
        let text = naming_text(intent);
        self.0.each_holding(&text, after.next()..=self.0.head()?, |seq, canonical| {
            if names_intent(canonical, intent) {
                named.push(seq);
            }
            Ok::<_, Error>(())
        })?;
        Ok(named)
    }

    fn forgotten_since(&self, seq: Seq) -> Result<bool, Error> {
        forgotten_since(self.0, seq)
    }

    fn proof(&self, seq: Seq) -> Result<Option<(Entry, ProofFile)>, Error> {
        Ok(prove(self.0, seq)?.map(|proof| (proof.entry, proof.file)))
    }
}

/// Converts a stored event for a trail. Its content must match its digest, as in its proof.
pub(crate) fn reported(stored: Stored) -> Result<EventRecord, Error> {
    if !is_intact(&stored) {
        return Err(Error::Altered(stored.seq));
    }
    let outcome = outcome(&stored);
    let Stored { seq, event_ref, event_type, time, canonical, .. } = stored;
    let canonical = Some(canonical).filter(|canonical| !canonical.is_empty());
    Ok(EventRecord { seq, event_ref, event_type, time, outcome, canonical })
}

/// Whether an event's content matches its digest, if it has content.
fn is_intact(stored: &Stored) -> bool {
    stored.is_forgotten() || sha256(&[stored.canonical.as_bytes()]) == stored.digest.0
}

/// The outcome of an attempt.
fn outcome(stored: &Stored) -> Option<Outcome> {
    let columns = ipse_door::columns_of(&stored.canonical)?;
    Columns::decode(&columns)?.outcome
}

/// Whether an event up to a position was forgotten after it and may have fed a fact.
pub(crate) fn forgotten_since(view: View<'_>, seq: Seq) -> Result<bool, Error> {
    let mut found = false;
    view.house_content(FORGET, seq.next()..=view.head()?, |payload| {
        for name in forgotten_names(payload.as_bytes()).into_iter().flatten() {
            let place = if found { None } else { view.find(&name)? };
            let Some(place) = place.filter(|place| *place <= seq) else { continue };
            let gone = view.stored(place)?.is_some_and(|gone| !is_housekeeping(&gone.event_type));
            found = found || gone;
        }
        Ok::<_, Error>(())
    })?;
    Ok(found)
}
