//! The passes of a log, from their records.
//!
//! **Invariant:** all values are copied from the pass record. Nothing is computed.

use crate::answer::{clean, written};
use crate::log::to_seconds;
use crate::{Error, Page};
use ipse_core::event::MAX_DEPTH;
use ipse_core::json::{Members, Value, list};
use ipse_core::{EventRef, Seq, Time, json_parse};
use ipse_store::Stored;
use ipse_store::View;
use std::ops::ControlFlow;

/// A pass, read from its record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassEntry {
    /// The position of its record.
    pub seq: Seq,
    /// The name of its record.
    pub event_ref: EventRef,
    /// The time of the pass.
    pub time: Time,
    /// The members of the record's `data`, each with its JSON.
    pub members: Vec<(String, String)>,
    /// The events that fed no fact, as text.
    skipped: String,
}

impl PassEntry {
    /// Reads a pass record; an error if it is damaged.
    pub fn read(stored: &Stored) -> Result<Self, Error> {
        let damaged = || Error::Damaged(format!("pass record at seq {}", stored.seq));
        let value = json_parse::parse(stored.canonical.as_bytes(), MAX_DEPTH);
        let value = value.map_err(|_| damaged())?;
        let data = value.as_object().and_then(|event| event.get("data")?.as_object());
        let data = data.ok_or_else(damaged)?;
        let members = data.iter().map(|(name, value)| (name.to_owned(), written(value))).collect();
        let skipped = skipped(data.get("skipped"));
        let Stored { seq, event_ref, time, .. } = *stored;
        Ok(PassEntry { seq, event_ref, time, members, skipped })
    }

    /// The pass as JSON members.
    pub fn json(&self) -> Members {
        let record = Members::new()
            .raw("seq", self.seq)
            .text("event_ref", &self.event_ref.to_string())
            .text("time", &self.time.to_string());
        self.members.iter().fold(record, |record, (name, json)| record.raw(name, json))
    }

    fn figure(&self, name: &str) -> &str {
        let found = self.members.iter().find(|(member, _)| member == name);
        found.map_or("", |(_, json)| json.trim_matches('"'))
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.seq.to_string(),
            to_seconds(self.time),
            format!("{}..{}", self.figure("first_seq"), self.figure("last_seq")),
            self.figure("events_processed").to_owned(),
            self.figure("rows_touched").to_owned(),
            self.figure("trigger").to_owned(),
            clean(self.figure("rule_version")),
            clean(&self.skipped),
        ]
    }
}

fn skipped(types: Option<&Value<'_>>) -> String {
    let types = types.and_then(Value::as_object).filter(|types| !types.is_empty());
    let Some(types) = types else { return String::from("-") };
    let count = |(name, reasons): (&str, &Value<'_>)| {
        let reasons = reasons.as_object()?.iter();
        let words = reasons.map(|(code, n)| format!("{} {name}: {code}", written(n)));
        Some(words.collect::<Vec<_>>().join(", "))
    };
    types.iter().filter_map(count).collect::<Vec<_>>().join(", ")
}

/// A page of passes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassPage {
    /// The passes.
    pub passes: Vec<PassEntry>,
    /// The `before` of the next page, if there are more.
    pub next_before: Option<Seq>,
}

impl PassPage {
    /// Up to `limit` passes before a position, newest first.
    pub(crate) fn read(view: View<'_>, before: Seq, limit: u64) -> Result<Self, Error> {
        let end = Seq(before.0.saturating_sub(1)).min(view.head()?);
        let (mut passes, mut next_before) = (Vec::new(), None);
        view.passes_back(Seq(1)..=end, |stored| {
            if passes.len() as u64 == limit {
                next_before = Some(stored.seq.next());
                return Ok(ControlFlow::Break(()));
            }
            passes.push(PassEntry::read(&stored)?);
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        Ok(PassPage { passes, next_before })
    }

    /// The passes as JSON.
    pub fn json(&self) -> String {
        let passes = self.passes.iter().map(|pass| pass.json().finish());
        let page = Members::new().raw("passes", list(passes));
        page.optional("next_before", self.next_before).finish()
    }

    /// The passes as text.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        let header = ["SEQ", "TIME", "RANGE", "EVENTS", "FACTS", "TRIGGER", "RULES", "FED NO FACT"];
        page.table(&header, self.passes.iter().map(PassEntry::row).collect());
        page
    }
}
