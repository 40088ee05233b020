//! Explaining an event: its entry, its content, the facts that it feeds, and its trail if it is an
//! action.
//!
//! **Invariant:** the content of a forgotten event is not shown.

use super::feeds;
use crate::answer::clean;
use crate::log::LogRow;
use crate::walk::StoreRecord;
use crate::{Error, Page, Signers};
use ipse_consult::trail::{AttemptStanding, Found, Listing, Trail};
use ipse_core::event::MAX_DEPTH;
use ipse_core::json::{Members, Value, list};
use ipse_core::{
    EventKind, EventRef, FactId, FactKey, Identity, Seq, Time, is_housekeeping, json_parse,
};
use ipse_store::Stored;
use ipse_store::{RawPass, View};

/// An event with its explanation.
#[derive(Debug)]
pub struct ExplainedEvent {
    identity: Identity,
    /// The event.
    pub row: LogRow,
    /// The facts that it feeds, and whether it is an observation of each.
    pub feeds: Vec<(FactKey, bool)>,
    /// The position and time of the `forget` event that names this one.
    pub forgotten_by: Option<(Seq, Time)>,
    /// The trail, if the event is an action.
    pub action: Option<Box<Trail>>,
    /// The pass that folded it.
    pass: Option<RawPass>,
}

impl ExplainedEvent {
    /// Explains an event; `None` if it is not in the log.
    pub fn of(
        view: View<'_>,
        identity: &Identity,
        event_ref: &EventRef,
        listing: Listing,
    ) -> Result<Option<Self>, Error> {
        let Some(seq) = view.find(event_ref)? else { return Ok(None) };
        let Some(stored) = view.stored(seq)? else { return Ok(None) };
        let action = match Trail::of(&StoreRecord(view), identity, event_ref, listing)? {
            Found::Action(trail) => Some(trail),
            _ => None,
        };
        let forgotten_by = forgotten_by(view, &stored)?;
        let (feeds, pass) = (feeds(view, seq)?, view.pass_over(seq)?);
        let (identity, row) = (*identity, LogRow::new(stored, &Signers::of(view)?));
        Ok(Some(ExplainedEvent { identity, row, feeds, forgotten_by, action, pass }))
    }

    /// Whether the event is sound: if it is forgotten, a `forget` event names it.
    pub fn is_sound(&self) -> bool {
        !self.row.stored.is_forgotten() || self.forgotten_by.is_some()
    }

    /// The explanation as JSON.
    pub fn json(&self) -> String {
        let fact = |(key, supports): &(FactKey, bool)| {
            Members::new()
                .text("fact_id", &FactId::new(&self.identity, key).to_string())
                .text("fact_kind", key.kind().name())
                .text("fact_key", key.text())
                .raw("supports", supports)
                .finish()
        };
        let forgotten = match self.forgotten_by {
            Some((seq, time)) => {
                Members::new().raw("seq", seq).text("time", &time.to_string()).finish()
            }
            None => "null".to_string(),
        };
        Members::new()
            .raw("event", self.row.json().finish())
            .raw("facts", list(self.feeds.iter().map(fact)))
            .raw("forgotten", forgotten)
            .optional("action", self.action.as_deref().map(Trail::json))
            .finish()
    }

    /// The explanation as text.
    pub fn page(&self) -> Page {
        let (mut page, stored) = (Page::new(), &self.row.stored);
        page.line(format!("{} at seq {}", stored.event_ref, stored.seq));
        page.line(format!("  type    {}", clean(&stored.event_type)));
        page.line(format!("  time    {}", stored.time));
        page.line(format!("  digest  {}", stored.digest));
        let names: Vec<String> = self.row.signers.iter().map(|name| clean(name)).collect();
        if !names.is_empty() {
            page.line(format!("  signed  by {}", names.join(", ")));
        }
        if stored.is_forgotten() {
            self.tell_forgotten(&mut page);
            self.tell_action(&mut page);
            return page;
        }
        self.tell_pass(&mut page);
        page.line("\nContent");
        if let Ok(value) = json_parse::parse(stored.canonical.as_bytes(), MAX_DEPTH) {
            indented(&mut page, &value, 1);
        }
        self.tell_action(&mut page);
        let is_own_action = self.told_action().is_some() && is_housekeeping(&stored.event_type);
        if !is_own_action {
            self.tell_feeds(&mut page);
        }
        page
    }

    /// The trail, unless it is empty: a forgotten event and an event without an intent have none.
    fn told_action(&self) -> Option<&Trail> {
        self.action.as_deref().filter(|trail| match trail.standing() {
            Some(AttemptStanding::Unplanned) => false,
            Some(AttemptStanding::Forgotten) => !self.row.stored.is_forgotten(),
            _ => true,
        })
    }

    fn tell_action(&self, page: &mut Page) {
        if let Some(trail) = self.told_action() {
            page.line("");
            trail.text().lines().for_each(|line| page.line(line));
        }
    }

    fn tell_forgotten(&self, page: &mut Page) {
        match self.forgotten_by {
            Some((seq, time)) => page.line(format!("  forgotten at seq {seq}, {time}")),
            None => page.line("  forgotten, but no forget event names it: the log was changed"),
        }
        page.line(
            "\nIts content was erased and feeds no fact. Its entry above stays, so that the log \
             has no gap.",
        );
    }

    fn tell_pass(&self, page: &mut Page) {
        let event_type = &self.row.stored.event_type;
        match &self.pass {
            _ if is_housekeeping(event_type) => {
                page.line("  folded  never: ipse wrote it about itself");
            }
            Some(RawPass { first, last, seq, .. }) => {
                page.line(format!("  folded  by the pass at seq {seq}, range {first}..{last}"));
            }
            None => page.line("  folded  not yet: the next pass will fold it"),
        }
        let is_attempt = EventKind::of(event_type) == EventKind::ExecutionResult;
        if is_attempt && self.told_action().is_none() {
            page.line("  planned no: it names no intent");
        }
    }

    fn tell_feeds(&self, page: &mut Page) {
        page.line("\nFacts it feeds");
        for (key, supports) in &self.feeds {
            let id = FactId::new(&self.identity, key);
            let role = if *supports { "" } else { " (counted separately, not an observation)" };
            page.line(format!("  {id} {}{role}", key.kind()));
            page.prose(2, format!("  {}", clean(key.text())));
        }
        if self.feeds.is_empty() {
            let own = is_housekeeping(&self.row.stored.event_type);
            page.line(match own {
                true => "  none",
                false => "  none; the record of the pass says why events feed no fact",
            });
        }
    }
}

/// The `forget` event that names this one, if any.
fn forgotten_by(view: View<'_>, stored: &Stored) -> Result<Option<(Seq, Time)>, Error> {
    if !stored.is_forgotten() {
        return Ok(None);
    }
    let by = view.forgotten_by(&stored.event_ref, stored.seq)?;
    let by = by.map(|seq| view.stored(seq)).transpose()?.flatten();
    Ok(by.map(|by| (by.seq, by.time)))
}

/// Writes a value, one member per line.
fn indented(page: &mut Page, value: &Value<'_>, depth: usize) {
    let Some(object) = value.as_object() else { return };
    let space = "  ".repeat(depth);
    for (name, value) in object.iter() {
        if value.as_object().is_some_and(|object| !object.is_empty()) {
            page.line(format!("{space}{}", clean(name)));
            indented(page, value, depth + 1);
        } else {
            let text = crate::answer::written(value);
            page.line(format!("{space}{}: {}", clean(name), clean(&text)));
        }
    }
}
