//! The events of a log, page by page.
//!
//! **Invariants**
//! - A row copies stored data. A forgotten event has no content.
//! - A page has bounded work, also if its filter matches nothing: it then says where to continue.

use crate::answer::clean;
use crate::log_search::{Found, LogFilter, LogSearch};
use crate::log_summary::summary;
use crate::{Error, Page, Signers};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{EventRef, Seq, Time, is_housekeeping};
use ipse_store::Stored;
use ipse_store::View;
use std::collections::BTreeSet;

/// A page ends after this many bytes of events.
const PAGE_BYTES: usize = 4 << 20;
/// A page ends after its columns of this many events were searched: a few milliseconds of work.
const PAGE_POSITIONS: u64 = 1 << 16;
/// A page ends after this many events were read whole to decide whether they match.
const PAGE_EVENTS: u64 = 4096;

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

    /// The row of a list as JSON: its members, and the summary of the event.
    pub fn listed(&self) -> String {
        self.json().text("summary", &summary(&self.stored)).finish()
    }

    /// What happened, and who signed it.
    pub fn what(&self) -> String {
        let names: Vec<String> = self.signers.iter().map(|name| clean(name)).collect();
        let what = summary(&self.stored);
        match names.is_empty() {
            true => what,
            false => format!("{what} (signed by {})", names.join(", ")).trim_start().to_owned(),
        }
    }

    /// The type of the event, for people.
    pub fn kind(&self) -> String {
        clean(&self.stored.event_type)
    }

    /// The row as one line; `width` is that of the position.
    pub fn line(&self, width: usize) -> String {
        let Stored { seq, time, event_ref, .. } = &self.stored;
        let (seq, time, kind) = (seq.to_string(), to_seconds(*time), self.kind());
        let line = format!("{seq:>width$} {event_ref} {time:<20} {kind:<17} {}", self.what());
        line.trim_end().to_owned()
    }

    /// The names of the columns of [`LogRow::line`].
    pub fn header(width: usize) -> String {
        format!("{:>width$} {:<35} {:<20} {:<17} WHAT", "SEQ", "EVENT", "TIME", "TYPE")
    }
}

/// A time as text, truncated to seconds. JSON has the full time.
pub fn to_seconds(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// A query for a page of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogQuery {
    /// Start after this position.
    pub after: Seq,
    /// The greatest number of events.
    pub limit: u64,
    /// The events to find.
    pub filter: LogFilter,
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
    /// Up to `limit` matching events after a position, and not much more than 4 MiB. The page may
    /// be shorter, or empty, if much of the log was searched: `next_after` continues.
    pub(crate) fn read(view: View<'_>, query: &LogQuery) -> Result<Self, Error> {
        let LogQuery { after, limit, filter } = query;
        let head = view.head()?;
        let first = Seq(after.0.saturating_add(1));
        let mut search = LogSearch::new(view, first..=head, filter, false, *limit)?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        loop {
            match search.step()? {
                Found::Row(row) => {
                    bytes += row.stored.canonical.len();
                    rows.push(*row);
                }
                Found::Nothing => {}
                Found::End => return Ok(LogPage { head, rows, next_after: None }),
            }
            let cost = search.cost();
            let is_long = cost.positions >= PAGE_POSITIONS || cost.events >= PAGE_EVENTS;
            if rows.len() as u64 >= *limit || bytes > PAGE_BYTES || is_long {
                let next = search.next_position();
                let next_after = next.map(|next| Seq(next.0.saturating_sub(1)));
                return Ok(LogPage { head, rows, next_after });
            }
        }
    }

    /// The events as JSON.
    pub fn json(&self) -> String {
        let rows = self.rows.iter().map(LogRow::listed);
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
