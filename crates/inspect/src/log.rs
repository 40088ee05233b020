//! The events of a log, page by page.
//!
//! **Invariant:** a row copies stored data. A forgotten event has no content.

use crate::answer::clean;
use crate::{Error, Page, Signers};
use ipse_core::event::ACT;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{EventRef, Seq, Time, is_housekeeping};
use ipse_ledger::ActEvent;
use ipse_store::Stored;
use ipse_store::View;
use std::collections::BTreeSet;

/// A page ends after this many bytes of events.
const PAGE_BYTES: usize = 4 << 20;

/// An event of the log, and the producers that signed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogRow {
    /// The event as it is stored.
    pub stored: Stored,
    /// The names of the producers that signed it.
    pub signers: BTreeSet<String>,
}

impl LogRow {
    /// A row with an event and its signers.
    pub fn new(stored: Stored, signers: &Signers) -> Self {
        let names = signers.names(stored.seq).into_iter().map(str::to_owned).collect();
        LogRow { stored, signers: names }
    }

    /// The row as JSON members. The content of a forgotten event is null.
    pub fn json(&self) -> Members {
        let LogRow { stored, signers } = self;
        let content = if stored.is_forgotten() { "null" } else { &stored.canonical };
        Members::new()
            .raw("seq", stored.seq)
            .text("event_ref", &stored.event_ref.to_string())
            .text("type", &stored.event_type)
            .text("time", &stored.time.to_string())
            .text("digest", &stored.digest.to_string())
            .raw("signers", list(signers.iter().map(|name| quoted(name))))
            .raw("event", content)
    }

    /// The row as one line; `width` is that of the position.
    pub fn line(&self, width: usize) -> String {
        let LogRow { stored, signers } = self;
        let gone = if stored.is_forgotten() { " (forgotten)" } else { "" };
        let names: Vec<String> = signers.iter().map(|name| clean(name)).collect();
        let signed = match names.is_empty() {
            true => String::new(),
            false => format!(" (signed by {})", names.join(", ")),
        };
        let act = (stored.event_type == ACT)
            .then(|| ActEvent::read(stored.seq, stored.canonical.as_bytes()))
            .flatten();
        let act = act.map(|event| format!(" ({})", clean(&event.act.words()))).unwrap_or_default();
        let Stored { seq, time, event_type, event_ref, .. } = stored;
        let (seq, time, kind) = (seq.to_string(), to_seconds(*time), clean(event_type));
        format!("{seq:>width$} {event_ref} {time:<20} {kind}{act}{gone}{signed}")
    }

    /// The names of the columns of [`LogRow::line`].
    pub fn header(width: usize) -> String {
        format!("{:>width$} {:<35} {:<20} TYPE", "SEQ", "EVENT", "TIME")
    }
}

/// A time as text, truncated to seconds. JSON has the full time.
pub fn to_seconds(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// A page of events, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogPage {
    /// The last position of the log.
    pub head: Seq,
    /// The events.
    pub rows: Vec<LogRow>,
    /// The `after` of the next page, if there are more.
    pub next_after: Option<Seq>,
}

impl LogPage {
    /// Up to `limit` events after a position, and not much more than 4 MiB.
    pub(crate) fn read(view: View<'_>, after: Seq, limit: u64) -> Result<Self, Error> {
        let head = view.head()?;
        let signers = Signers::of(view)?;
        let mut last = Seq(after.0.saturating_add(limit)).min(head);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for seq in after.0.saturating_add(1)..=last.0 {
            let Some(stored) = view.stored(Seq(seq))? else { break };
            bytes += stored.canonical.len();
            rows.push(LogRow::new(stored, &signers));
            if bytes > PAGE_BYTES {
                last = Seq(seq);
                break;
            }
        }
        Ok(LogPage { head, rows, next_after: (last < head).then_some(last) })
    }

    /// The events as JSON.
    pub fn json(&self) -> String {
        let rows = self.rows.iter().map(|row| row.json().finish());
        let page = Members::new().raw("head", self.head).raw("events", list(rows));
        page.optional("next_after", self.next_after).finish()
    }

    /// The events as text.
    pub fn page(&self) -> Page {
        let (mut page, width) = (Page::new(), self.head.to_string().len().max(3));
        page.line(LogRow::header(width));
        self.rows.iter().for_each(|row| page.line(row.line(width)));
        page
    }
}

/// An event of the log for a reader that follows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// The position in the log.
    pub seq: Seq,
    /// The name of the event.
    pub event_ref: EventRef,
    /// The CloudEvents type.
    pub event_type: String,
    /// The time of the event.
    pub time: Time,
    /// The `data` as JSON, if ipse wrote the event.
    pub data: Option<String>,
}

impl LogEntry {
    /// Up to `limit` events after a position, in order.
    pub(crate) fn after(view: View<'_>, after: Seq, limit: u64) -> Result<Vec<Self>, Error> {
        let last = Seq(after.0.saturating_add(limit)).min(view.head()?);
        let mut entries = Vec::new();
        for seq in after.0.saturating_add(1)..=last.0 {
            let Some(stored) = view.stored(Seq(seq))? else { break };
            entries.push(LogEntry::of(stored));
        }
        Ok(entries)
    }

    fn of(stored: Stored) -> Self {
        let own = is_housekeeping(&stored.event_type);
        let data = own.then(|| crate::answer::data_of(&stored.canonical)).flatten();
        let Stored { seq, event_ref, event_type, time, .. } = stored;
        LogEntry { seq, event_ref, event_type, time, data }
    }
}
