//! Raw rows for an auditor, without any validation.
//!
//! **Invariants:** nothing here writes; a row that cannot be decoded is returned as bytes or
//! reported as a difference, never skipped.

use crate::Error;
use crate::read::{ALL, CONTENT_PAGE, PAGE, Snapshot, View, pages};
use crate::session::{Order, Page, Result};
use ipse_core::{Admitted, Digest, EventRef, FactKey, FactKind, Seq, Time, hex};
use ipse_ledger::account::PassClaim;

/// The row of an event. No column is validated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawEvent {
    /// The position.
    pub seq: Seq,
    /// The event ref: 16 bytes if the row is intact.
    pub event_ref: Vec<u8>,
    /// The time in microseconds since 1970.
    pub time: i64,
    /// The event type: UTF-8 if the row is intact.
    pub event_type: Vec<u8>,
    /// The digest: 32 bytes if the row is intact.
    pub digest: Vec<u8>,
    /// The encoded typed columns.
    pub columns: Vec<u8>,
    /// The canonical bytes.
    pub payload: Vec<u8>,
}

impl RawEvent {
    /// The event as the row has it, without content. Columns of the wrong length become zeros.
    /// `None` if its type or its time cannot be read.
    pub fn unchecked(&self) -> Option<Admitted> {
        Some(Admitted {
            event_ref: EventRef(self.event_ref.as_slice().try_into().unwrap_or_default()),
            event_type: String::from_utf8(self.event_type.clone()).ok()?,
            time: Time::from_micros(self.time)?,
            digest: Digest(self.digest.as_slice().try_into().unwrap_or_default()),
            canonical: String::new(),
            salt_at: 0..0,
            columns: self.columns.clone(),
        })
    }
}

/// The row of a fact. No column is validated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawFact {
    /// The fact id: 16 bytes if the row is intact.
    pub fact_id: Vec<u8>,
    /// The name of the fact kind.
    pub kind: String,
    /// The text of the fact key.
    pub key: String,
    /// The value as JSON.
    pub value: String,
    /// The number of observations that were forgotten.
    pub forgotten: i64,
    /// The time of the last supporting event, in microseconds since 1970.
    pub last_us: i64,
    /// The event ref of the last supporting event.
    pub last_ref: Vec<u8>,
}

impl RawFact {
    /// The key, if the kind is known.
    pub fn fact_key(&self) -> Option<FactKey> {
        FactKind::parse(&self.kind).map(|kind| FactKey::from_text(kind, self.key.clone()))
    }
}

/// The row of a pass. No column is validated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawPass {
    /// The position of the pass record.
    pub seq: Seq,
    /// The first position of the range.
    pub first: Seq,
    /// The last position of the range.
    pub last: Seq,
    /// The last position that the stored tallies included after the pass.
    pub tallied: Seq,
    /// The rule version.
    pub rule_version: String,
    /// The hash of the rule set.
    pub rule_set: Vec<u8>,
}

impl RawPass {
    /// Whether it is the row of a record.
    pub fn is_of(&self, record: &PassClaim) -> bool {
        (self.first, self.last) == (record.first, record.last)
            && self.rule_version == record.rule_version
            && hex::encode(&self.rule_set) == record.rule_set
    }
}

/// Two columns of bytes.
pub type Pair = (Vec<u8>, Vec<u8>);

impl Snapshot<'_> {
    /// Damage that the engine's own integrity check finds in the store's files.
    pub fn file_damage(&self) -> Result<Vec<String>> {
        self.session.file_damage()
    }

    /// Tables, indexes, views and triggers that are missing, changed or foreign.
    pub fn schema_damage(&self) -> Result<Vec<(String, &'static str)>> {
        self.session.schema_damage()
    }

    /// The number of intact frames before the first damaged one in the write-ahead log, if it is
    /// damaged. Later frames are not in the store.
    pub fn wal_damage(&self) -> Result<Option<u64>> {
        self.session.journal_damage()
    }

    /// Whether forgotten content may still be in the store's files.
    pub fn erase_pending(&self) -> Result<bool> {
        self.session.erase_pending()
    }

    /// Rows that belong to no registered identity: the table and the number of rows.
    pub fn rows_of_nobody(&self) -> Result<Vec<(&'static str, u64)>> {
        self.session.rows_of_nobody()
    }
}

impl View<'_> {
    /// Passes every row of the log to `each`, in order.
    pub fn each_raw_event<E: From<Error>>(
        &self,
        each: impl FnMut(RawEvent) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let read = |range| self.session.raw_events(self.log, range, CONTENT_PAGE);
        // A row at position 0 is damage, and must be reported.
        pages(Seq(0)..=Seq::MAX, CONTENT_PAGE, read, |row| row.seq, each)
    }

    /// Every fact row, in no particular order.
    pub fn raw_facts(&self) -> Result<Vec<RawFact>> {
        all_of(|from| self.session.raw_facts(self.log, from, PAGE))
    }

    /// Every tally row: fact id and state.
    pub fn raw_tallies(&self) -> Result<Vec<Pair>> {
        all_of(|from| self.session.raw_tallies(self.log, from, PAGE))
    }

    /// Every pass row, oldest first.
    pub fn raw_passes(&self) -> Result<Vec<RawPass>> {
        let mut all = Vec::new();
        let read = |range| self.session.passes(self.log, range, Order::OldestFirst, PAGE);
        pages(
            Seq(0)..=Seq::MAX,
            PAGE,
            read,
            |pass: &RawPass| pass.seq,
            |pass| {
                all.push(pass);
                Ok::<_, Error>(())
            },
        )?;
        Ok(all)
    }

    /// The pass that folded the event at a position: the first whose record is after it.
    pub fn pass_over(&self, seq: Seq) -> Result<Option<RawPass>> {
        if seq >= Seq::MAX {
            return Ok(None);
        }
        let after = seq.next()..=Seq::MAX;
        Ok(self.session.passes(self.log, after, Order::OldestFirst, 1)?.pop())
    }

    /// The last pass whose record is at or before a position.
    pub fn pass_before(&self, seq: Seq) -> Result<Option<RawPass>> {
        Ok(self.session.passes(self.log, Seq(0)..=seq, Order::NewestFirst, 1)?.pop())
    }

    /// The last positions of all chunks, ascending.
    pub fn chunk_ends(&self) -> Result<Vec<Seq>> {
        self.session.chunk_ends(self.log, Seq(0)..=*ALL.end())
    }

    /// The body and the event refs of the chunk that ends at a position.
    pub fn raw_chunk(&self, last: Seq) -> Result<Option<Pair>> {
        Ok(self.session.raw_chunks(self.log, &[last])?.pop().flatten())
    }

    /// Damage of the index of event refs, given the names of all events in order: the place and the
    /// problem.
    pub fn index_damage(&self, names: &[EventRef]) -> Result<Vec<(String, String)>> {
        self.session.index_damage(self.log, names)
    }
}

fn all_of<T>(read: impl Fn(u64) -> Result<Page<T>>) -> Result<Vec<T>> {
    let (mut all, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next {
        let page = read(from)?;
        all.extend(page.rows);
        next = page.next;
    }
    Ok(all)
}
