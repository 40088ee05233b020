//! What an auditor reads: rows as they are, believed in nothing.
//!
//! **Invariants:** nothing here writes; a row that cannot be read as what it should be is handed
//! out as bytes, or reported as a difference, never skipped.

use crate::Error;
use crate::read::{ALL, CONTENT_PAGE, PAGE, Snapshot, View, pages};
use crate::session::{Order, Page, Result};
use ipse_core::{EventRef, Seq};

/// An event's row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawEvent {
    /// Its position.
    pub seq: Seq,
    /// What should be its name.
    pub event_ref: Vec<u8>,
    /// What should be its time, in microseconds.
    pub time: i64,
    /// What should be its type.
    pub event_type: Vec<u8>,
    /// What should be its digest.
    pub digest: Vec<u8>,
    /// What should be its typed columns.
    pub columns: Vec<u8>,
    /// What should be its canonical bytes.
    pub payload: Vec<u8>,
}

/// A fact's row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawFact {
    /// What should be its id.
    pub fact_id: Vec<u8>,
    /// What should be the name of its kind.
    pub kind: String,
    /// What should be its key.
    pub key: String,
    /// What should be its value.
    pub value: String,
    /// How many of its past observations should have been forgotten.
    pub forgotten: i64,
    /// The time of its last supporting event, in microseconds.
    pub last_us: i64,
    /// The name of that event.
    pub last_ref: Vec<u8>,
}

/// A pass's row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawPass {
    /// Where its record should stand.
    pub seq: Seq,
    /// The first seq of its range.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
    /// How far the tallies reached after it.
    pub tallied: Seq,
    /// The rules.
    pub rule_version: String,
    /// Their hash.
    pub rule_set: Vec<u8>,
}

/// Two columns of bytes.
pub type Pair = (Vec<u8>, Vec<u8>);

impl Snapshot<'_> {
    /// What the engine itself finds wrong with the store's files.
    pub fn file_damage(&self) -> Result<Vec<String>> {
        self.session.file_damage()
    }

    /// Tables, indexes, views and guards that are missing, changed or not ours.
    pub fn schema_damage(&self) -> Result<Vec<(String, &'static str)>> {
        self.session.schema_damage()
    }

    /// After how many whole frames the write-ahead log is damaged, if it is. What was written after
    /// them is not in the store.
    pub fn wal_damage(&self) -> Result<Option<u64>> {
        self.session.journal_damage()
    }

    /// Whether what was forgotten may still be in the store's files.
    pub fn erase_pending(&self) -> Result<bool> {
        self.session.erase_pending()
    }

    /// Rows that belong to no registered identity: a table, and how many.
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
        // A row at position 0 would be an error, and must be seen.
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

    /// The pass that folded the event at a position: the first whose record stands after it.
    pub fn pass_over(&self, seq: Seq) -> Result<Option<RawPass>> {
        if seq >= Seq::MAX {
            return Ok(None);
        }
        let after = seq.next()..=Seq::MAX;
        Ok(self.session.passes(self.log, after, Order::OldestFirst, 1)?.pop())
    }

    /// The last pass whose record stands at or before a position.
    pub fn pass_before(&self, seq: Seq) -> Result<Option<RawPass>> {
        Ok(self.session.passes(self.log, Seq(0)..=seq, Order::NewestFirst, 1)?.pop())
    }

    /// Where chunks end, ascending.
    pub fn chunk_ends(&self) -> Result<Vec<Seq>> {
        self.session.chunk_ends(self.log, Seq(0)..=*ALL.end())
    }

    /// Body and refs of the chunk that ends at a position.
    pub fn raw_chunk(&self, last: Seq) -> Result<Option<Pair>> {
        Ok(self.session.raw_chunks(self.log, &[last])?.pop().flatten())
    }

    /// What is wrong with the index of refs, given the names of all events in order: a place, and
    /// what it is.
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
