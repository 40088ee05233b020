//! Writing: batches of events.
//!
//! **Invariants**
//! - A [`Batch`] is one transaction: after `commit` all of it is stored, otherwise nothing.
//! - Positions have no gaps: the next one is the last position plus one, read inside the
//!   transaction.
//! - An event that is in the log, or was and is forgotten, is never stored again.
//! - The typed columns of recent events are cached in memory for the next chunk. The cache is
//!   trusted only after a commit: a rolled-back batch clears it.

use crate::pass::Pass;
use crate::read::{View, known_log};
use crate::seal;
use crate::session::{Access, Duty, Log, Result, Session, StatementRow, Typed};
use crate::statement::encode_runs;
use crate::store::Writing;
use crate::{Appended, Error, Store};
use ipse_core::chunk::CHUNK_EVENTS;
use ipse_core::{Admitted, EventRef, Identity, Seq};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The handle that appends to one identity's log.
pub struct Writer {
    session: Writing,
    log: Log,
    recent: Recent,
}

/// A cache of the newest events of a log that this process appended.
#[derive(Default)]
pub(crate) struct Recent {
    /// The events after the last full chunk, for the next chunk.
    pub(crate) rows: Vec<Typed>,
    /// The last position for which all chunks were found to exist; `None` before the first check
    /// and after a rollback.
    checked: Option<Seq>,
}

impl Recent {
    /// The cached events of a range that ends at the last position; `None` if any is not cached.
    pub(crate) fn at_hand(&self, range: RangeInclusive<Seq>, head: Seq) -> Option<&[Typed]> {
        let wanted = usize::try_from((head.0 + 1).checked_sub(range.start().0)?).ok()?;
        let ends_at_head = *range.end() == head && self.checked == Some(head);
        let first = self.rows.len().checked_sub(wanted).filter(|_| ends_at_head)?;
        Some(&self.rows[first..])
    }

    /// Clears the cache, after another process wrote or a batch was rolled back.
    pub(crate) fn clear(&mut self) {
        *self = Recent::default();
    }
}

impl Writer {
    pub(crate) fn open(store: &Store, identity: &Identity, duty: Duty) -> Result<Self> {
        let session = store.writing(duty)?;
        let log = known_log(&*session, identity)?;
        Ok(Writer { session, log, recent: Recent::default() })
    }

    /// Begins a batch. Waits while another process is writing.
    pub fn begin(&mut self) -> Result<Batch<'_>> {
        self.session.begin(Access::Write)?;
        let session = &*self.session;
        let head = head_of(session, self.log).inspect_err(|_| session.rollback())?;
        let (log, recent) = (self.log, &mut self.recent);
        Ok(Batch { session, log, recent, head, wrote: false, state: State::Open })
    }

    /// The current log and facts. Each read sees the state at the time of that read.
    pub fn view(&self) -> View<'_> {
        View { session: &*self.session, log: self.log }
    }

    /// The store of this log.
    pub fn store(&self) -> &Store {
        self.session.store()
    }

    /// Clears the cached typed columns of recent events. They must not stay in memory once one of
    /// the events is forgotten.
    pub fn release(&mut self) {
        self.recent.clear();
    }

    /// The number of events with cached typed columns, for a test.
    #[doc(hidden)]
    pub fn held(&self) -> usize {
        self.recent.rows.len()
    }
}

/// The state of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// A pass without a savepoint failed, which rolled the whole batch back.
    RolledBack,
    Committed,
}

/// An open write transaction on a log.
#[must_use = "a batch that is not committed is rolled back"]
pub struct Batch<'w> {
    session: &'w dyn Session,
    log: Log,
    recent: &'w mut Recent,
    head: Seq,
    /// Whether anything was written.
    wrote: bool,
    state: State,
}

/// The end of a log in an open transaction: the place where events are appended.
pub(crate) struct Tail<'t> {
    pub(crate) session: &'t dyn Session,
    pub(crate) log: Log,
    pub(crate) recent: &'t mut Recent,
    pub(crate) head: &'t mut Seq,
    pub(crate) wrote: &'t mut bool,
}

impl Tail<'_> {
    pub(crate) fn append_all(
        &mut self,
        events: &[&Admitted],
        refuses: impl Fn(&Admitted) -> Option<Appended>,
    ) -> Result<Vec<Appended>> {
        self.make_ready()?;
        let names: Vec<EventRef> = events.iter().map(|event| event.event_ref).collect();
        let found = self.session.find(self.log, &names)?;
        let mut all = compare_stored(self.session, self.log, events, &found)?;
        let mut new: Vec<&Admitted> = Vec::new();
        let mut places: BTreeMap<EventRef, usize> = BTreeMap::new();
        for (event, place) in events.iter().zip(&mut all) {
            if place.is_some() {
                continue;
            }
            // An earlier event of this set may have the same name.
            *place = Some(match places.get(&event.event_ref) {
                Some(earlier) => compare(event, &new[*earlier].canonical, self.behind(*earlier)),
                None => refuses(event).unwrap_or_else(|| {
                    places.insert(event.event_ref, new.len());
                    new.push(event);
                    Appended::New(self.behind(new.len() - 1))
                }),
            });
        }
        self.insert(&new)?;
        Ok(all.into_iter().flatten().collect())
    }

    /// The position after the last one and this number of new events.
    fn behind(&self, new: usize) -> Seq {
        Seq(self.head.0 + 1 + new as u64)
    }

    /// Inserts new events, and seals each chunk that becomes full.
    fn insert(&mut self, mut new: &[&Admitted]) -> Result<()> {
        if self.head.0 + new.len() as u64 > Seq::MAX.0 {
            return Err(Error::Limit("a log holds at most 2^40 - 1 events"));
        }
        while !new.is_empty() {
            let room = CHUNK_EVENTS - self.head.0 as usize % CHUNK_EVENTS;
            let (now, later) = new.split_at(room.min(new.len()));
            let first = self.head.next();
            *self.wrote = true;
            // If one of the next steps fails, the cache does not match the store.
            self.recent.checked = None;
            self.session.insert(self.log, first, now)?;
            let seqs = (first.0..).map(Seq);
            self.recent.rows.extend(now.iter().zip(seqs).map(|(event, seq)| Typed::of(event, seq)));
            *self.head = Seq(self.head.0 + now.len() as u64);
            if self.head.0.is_multiple_of(CHUNK_EVENTS as u64) {
                let newest = std::mem::take(&mut self.recent.rows);
                seal::full_chunk(self.session, self.log, *self.head, &newest)?;
            }
            self.recent.checked = Some(*self.head);
            new = later;
        }
        Ok(())
    }

    /// Creates missing chunks if another process or a rollback changed the last position.
    fn make_ready(&mut self) -> Result<()> {
        if self.recent.checked != Some(*self.head) {
            self.recent.clear();
            *self.wrote |= seal::missing_chunks(self.session, self.log, *self.head)?;
            self.recent.checked = Some(*self.head);
        }
        Ok(())
    }
}

impl Batch<'_> {
    fn tail(&mut self) -> Result<Tail<'_>> {
        if self.state == State::RolledBack {
            return Err(Error::Limit("a batch ends with a pass that fails and is alone in it"));
        }
        let Batch { session, log, recent, head, wrote, .. } = self;
        Ok(Tail { session: *session, log: *log, recent, head, wrote })
    }

    /// Appends an event, unless it is a duplicate or a conflict.
    pub fn append(&mut self, event: &Admitted) -> Result<Appended> {
        Ok(self.tail()?.append_all(&[event], |_| None)?[0])
    }

    /// Appends events in order, except duplicates and conflicts. A new event for which `refuses`
    /// returns a result has that result and is not stored.
    pub fn append_all(
        &mut self,
        events: &[Admitted],
        refuses: impl Fn(&Admitted) -> Option<Appended>,
    ) -> Result<Vec<Appended>> {
        self.tail()?.append_all(&events.iter().collect::<Vec<_>>(), refuses)
    }

    /// The position of the event with this name, if it is in the log.
    pub fn find(&mut self, event_ref: &EventRef) -> Result<Option<Seq>> {
        Ok(self.find_all(&[*event_ref])?[0])
    }

    /// The positions of events by name, in the order of the names.
    pub fn find_all(&mut self, names: &[EventRef]) -> Result<Vec<Option<Seq>>> {
        self.tail()?.make_ready()?;
        self.session.find(self.log, names)
    }

    /// The position of the last event.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// The log and the facts as this batch sees them.
    pub fn view(&self) -> View<'_> {
        View { session: self.session, log: self.log }
    }

    /// Begins a pass.
    pub fn pass(&mut self) -> Result<Pass<'_>> {
        // If the batch has written nothing, rolling it back undoes the pass only.
        let alone = !self.wrote;
        if !alone {
            self.session.savepoint()?;
        }
        let Batch { session, log, recent, head, wrote, state } = self;
        let tail = Tail { session: *session, log: *log, recent, head, wrote };
        Ok(Pass::new(tail, state, alone))
    }

    /// The session, the log and its last position, for a change that is not an append.
    pub(crate) fn changing(&mut self) -> (&dyn Session, Log, Seq) {
        self.wrote = true;
        (self.session, self.log, self.head)
    }

    /// Stores the statement of a producer about the events at these positions, which ascend.
    pub fn put_statement(&mut self, signer: &str, seqs: &[Seq], envelope: &str) -> Result<()> {
        let number = self.session.statement_count(self.log)? + 1;
        if number > Seq::MAX.0 {
            return Err(Error::Limit("a log holds at most 2^40 - 1 signed statements"));
        }
        let (signer, events) = (signer.to_owned(), encode_runs(seqs));
        self.tail()?;
        self.wrote = true;
        self.session.put_statement(self.log, &StatementRow { number, signer, events }, envelope)
    }

    /// Makes the batch durable. If the process dies before this returns, a reopened store has all
    /// of the batch or none of it. After this returns, it has all of it.
    pub fn commit(mut self) -> Result<()> {
        self.tail()?;
        self.session.commit()?;
        self.state = State::Committed;
        Ok(())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.state == State::Committed {
            return;
        }
        if self.wrote {
            self.recent.clear();
        }
        self.session.rollback();
    }
}

/// The last position of a log whose identity is still registered: it may have been removed since
/// the handle was opened.
fn head_of(session: &dyn Session, log: Log) -> Result<Seq> {
    match session.log(&log.identity)? == Some(log) {
        true => session.head(log),
        false => Err(Error::UnknownIdentity(log.identity.to_string())),
    }
}

/// Compares each event that is already in the log with the stored content.
fn compare_stored(
    session: &dyn Session,
    log: Log,
    events: &[&Admitted],
    found: &[Option<Seq>],
) -> Result<Vec<Option<Appended>>> {
    let seqs: Vec<Seq> = found.iter().flatten().copied().collect();
    if seqs.is_empty() {
        return Ok(vec![None; events.len()]);
    }
    let mut stored = session.contents(log, &seqs)?.into_iter();
    let one = |(event, seq): (&&Admitted, &Option<Seq>)| {
        let seq = (*seq)?;
        Some(compare(event, &stored.next()?, seq))
    };
    Ok(events.iter().zip(found).map(one).collect())
}

impl View<'_> {
    /// What an append of each event would give: a duplicate, a conflict or a forgotten event;
    /// `None` for an event that is not in the log.
    pub fn compare(&self, events: &[&Admitted]) -> Result<Vec<Option<Appended>>> {
        let names: Vec<EventRef> = events.iter().map(|event| event.event_ref).collect();
        compare_stored(self.session, self.log, events, &self.session.find(self.log, &names)?)
    }
}

/// Distinguishes a duplicate, a conflict and an event that was forgotten.
fn compare(event: &Admitted, stored: &str, seq: Seq) -> Appended {
    match stored {
        "" => Appended::Forgotten(seq),
        stored if event.says_the_same_as(stored) => Appended::Duplicate(seq),
        _ => Appended::Conflict(seq),
    }
}
