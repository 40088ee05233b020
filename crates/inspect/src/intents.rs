//! The intents of a log, newest first.
//!
//! **Invariant:** an intent is listed as waiting only while it can still be confirmed.

use crate::answer::from_data;
use crate::walk::{StoreRecord, reported};
use crate::{Error, Page};
use ipse_consult::trail::{IntentStanding, Proposal};
use ipse_core::intent::{CONFIRMATION, INTENT};
use ipse_core::json::{Members, list};
use ipse_core::{EventRef, Seq, Time};
use ipse_store::Stored;
use ipse_store::View;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// A page of intents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentPage {
    /// The intents.
    pub intents: Vec<Proposal>,
    /// The `before` of the next page, if there are more.
    pub next_before: Option<Seq>,
}

impl IntentPage {
    /// Up to `limit` intents of a standing before a position, newest first.
    pub(crate) fn read(
        view: View<'_>,
        before: Seq,
        limit: u64,
        standing: Option<IntentStanding>,
        now: Time,
    ) -> Result<Self, Error> {
        let end = Seq(before.0.saturating_sub(1)).min(view.head()?);
        let search = Search::new(view, standing, now)?;
        let (mut intents, mut next_before) = (Vec::new(), None);
        view.house_back(INTENT, Seq(1)..=end, |stored| {
            let seq = stored.seq;
            let Some(proposed) = search.found(stored)? else {
                return Ok(ControlFlow::Continue(()));
            };
            if intents.len() as u64 == limit {
                next_before = Some(seq.next());
                return Ok(ControlFlow::Break(()));
            }
            intents.push(proposed);
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        Ok(IntentPage { intents, next_before })
    }

    /// The intents as JSON.
    pub fn json(&self) -> String {
        let intents = self.intents.iter().map(|intent| intent.json().to_owned());
        let page = Members::new().raw("intents", list(intents));
        page.optional("next_before", self.next_before).finish()
    }

    /// The intents as text.
    pub fn page(&self) -> Page {
        let row = |intent: &Proposal| {
            vec![
                intent.seq().to_string(),
                crate::log::to_seconds(intent.time()),
                intent.event_ref().to_string(),
                intent.standing().name().to_owned(),
            ]
        };
        let mut page = Page::new();
        let rows = self.intents.iter().map(row).collect();
        page.table(&["SEQ", "TIME", "INTENT", "STANDING"], rows);
        page
    }
}

/// A query for intents.
struct Search<'v> {
    record: StoreRecord<'v>,
    standing: Option<IntentStanding>,
    /// A text in every intent of the wanted verdict. Intents without it are not parsed.
    verdict: String,
    /// The intents with a decision, if the query needs them.
    decided: Option<BTreeSet<EventRef>>,
    now: Time,
}

impl<'v> Search<'v> {
    fn new(view: View<'v>, standing: Option<IntentStanding>, now: Time) -> Result<Self, Error> {
        let verdict = standing.map(|so| format!("\"verdict\":\"{}\"", so.verdict()));
        let decided = standing.map(|standing| decisions(view, standing)).transpose()?.flatten();
        let verdict = verdict.unwrap_or_default();
        Ok(Search { record: StoreRecord(view), standing, verdict, decided, now })
    }

    fn found(&self, stored: Stored) -> Result<Option<Proposal>, Error> {
        if stored.is_forgotten() || !stored.canonical.contains(&self.verdict) {
            return Ok(None);
        }
        let reported = reported(stored)?;
        // The loaded decisions avoid a lookup for each intent without one.
        let proposed = match &self.decided {
            Some(decided) if !decided.contains(&reported.event_ref) => Proposal::fresh(reported),
            _ => Proposal::at(&self.record, reported)?,
        };
        Ok(proposed.filter(|proposed| self.wants(proposed)))
    }

    fn wants(&self, proposed: &Proposal) -> bool {
        let in_time = || proposed.confirm_by().is_none_or(|until| self.now <= until);
        let stands = self.standing.is_none_or(|wanted| proposed.standing() == wanted);
        stands && (self.standing != Some(IntentStanding::Waiting) || in_time())
    }
}

/// The intents with a decision, if the standing depends on it.
fn decisions(
    view: View<'_>,
    standing: IntentStanding,
) -> Result<Option<BTreeSet<EventRef>>, Error> {
    if standing.verdict() == standing.name() {
        return Ok(None);
    }
    let mut decided = BTreeSet::new();
    view.house_content(CONFIRMATION, Seq(1)..=view.head()?, |payload| {
        let intent = from_data(payload, |data| EventRef::parse(data.get("intent")?.as_text()?));
        decided.extend(intent);
        Ok::<_, Error>(())
    })?;
    Ok(Some(decided))
}
