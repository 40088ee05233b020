//! Reading: a handle that cannot write, and one consistent view of one log.
//!
//! **Invariants:** all reads through one [`Snapshot`] see the same state, whatever other processes
//! write meanwhile; corrupt bytes are an error that names the place, never a guess; a range is read
//! in pages, so memory does not grow with its length.

use crate::session::{Access, Kind, Log, Order, Pick, Result, Session};
use crate::{Error, Producer, Progress, Store, Stored, TokenRow};
use ipse_core::event::{FORGET, PASS_RECORD};
use ipse_core::{Digest, Event, EventRef, Fact, FactId, FactKey, Identity, Seq, Time};
use ipse_ledger::Entry;
use std::ops::{ControlFlow, RangeInclusive};

/// Rows per page without content.
pub(crate) const PAGE: usize = 1024;
/// Rows per page with content: the content of an event has at most 256 KiB.
pub(crate) const CONTENT_PAGE: usize = 256;
/// All positions.
pub(crate) const ALL: RangeInclusive<Seq> = Seq(1)..=Seq::MAX;

/// A read-only handle on a store. Dropping it returns its connection to the store.
pub struct Reader {
    store: Store,
    /// `None` only during the drop.
    session: Option<Box<dyn Session>>,
}

impl Reader {
    pub(crate) fn new(store: Store, session: Box<dyn Session>) -> Self {
        Reader { store, session: Some(session) }
    }

    pub(crate) fn session(&self) -> &dyn Session {
        self.session.as_deref().expect("BUG: a reader has its session until it is dropped")
    }

    /// All registered identities with their canonical manifests, oldest first.
    pub fn manifests(&self) -> Result<Vec<(String, String)>> {
        self.session().manifests()
    }

    /// Whether forgotten content may still be in the store's files.
    pub fn erase_pending(&self) -> Result<bool> {
        self.session().erase_pending()
    }

    /// The tokens of the store itself, oldest first, with expired and revoked ones.
    pub fn store_tokens(&self) -> Result<Vec<TokenRow>> {
        self.session().tokens(None)
    }

    /// The keys of an identity's producers, including revoked ones.
    pub fn producers(&self, identity: &Identity) -> Result<Vec<Producer>> {
        self.view(identity)?.view().producers()
    }

    /// The retention setting of an identity.
    pub fn retention(&self, identity: &Identity) -> Result<Option<String>> {
        let snapshot = self.view(identity)?;
        snapshot.session.retention(snapshot.log)
    }

    /// A consistent view of the current log and facts of one identity.
    pub fn view(&self, identity: &Identity) -> Result<Snapshot<'_>> {
        let session = self.session();
        session.begin(Access::Read)?;
        match known_log(session, identity) {
            Ok(log) => Ok(Snapshot { session, log }),
            Err(error) => {
                session.rollback();
                Err(error)
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.store.keep(session);
        }
    }
}

/// The log of an identity; an error if it is not registered.
pub(crate) fn known_log(session: &dyn Session, identity: &Identity) -> Result<Log> {
    session.log(identity)?.ok_or_else(|| Error::UnknownIdentity(identity.to_string()))
}

/// A read transaction, opened by [`Reader::view`].
pub struct Snapshot<'r> {
    pub(crate) session: &'r dyn Session,
    log: Log,
}

impl Snapshot<'_> {
    /// The readable state of the log.
    pub fn view(&self) -> View<'_> {
        View { session: self.session, log: self.log }
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.session.rollback();
    }
}

/// One log, as of one moment.
#[derive(Clone, Copy)]
pub struct View<'c> {
    pub(crate) session: &'c dyn Session,
    pub(crate) log: Log,
}

impl View<'_> {
    /// The identity that owns the log.
    pub fn identity(&self) -> Identity {
        self.log.identity
    }

    /// The last position; 0 if the log is empty.
    pub fn head(&self) -> Result<Seq> {
        self.session.head(self.log)
    }

    /// The number of pass records.
    pub fn pass_count(&self) -> Result<u64> {
        self.session.pass_count(self.log)
    }

    /// How far the passes have come.
    pub fn progress(&self) -> Result<Progress> {
        let newest = self.session.passes(self.log, ALL, Order::NewestFirst, 1)?;
        let Some(pass) = newest.into_iter().next() else { return Ok(Progress::default()) };
        let rule_set = pass.rule_set.try_into().map_err(|_| {
            Error::Corrupt(format!("the rule set of the pass at seq {} is no hash", pass.seq))
        })?;
        let (checkpoint, tallied, rule_version) = (pass.last, pass.tallied, pass.rule_version);
        Ok(Progress { checkpoint, tallied, rule_version, rule_set })
    }

    /// Passes each event of a range to `each`, in order, in the form that rules read.
    pub fn each_event<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Seq, &Event<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let read = |range| self.session.typed(self.log, range, CONTENT_PAGE);
        pages(range, CONTENT_PAGE, read, |row| row.seq, |row| each(row.seq, &row.event()?))
    }

    /// Passes the events at these positions to `each`, in the given order, in the form that rules
    /// read.
    pub fn each_event_at<E: From<Error>>(
        &self,
        seqs: &[Seq],
        mut each: impl FnMut(Seq, &Event<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for page in seqs.chunks(CONTENT_PAGE) {
            for row in self.session.typed_at(self.log, page)? {
                each(row.seq, &row.event()?)?;
            }
        }
        Ok(())
    }

    /// Passes the entries of a range to `each`, in order. The flag says whether the event was
    /// forgotten.
    pub fn each_entry<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Entry, bool) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let read = |range| self.session.entries(self.log, range, PAGE);
        pages(range, PAGE, read, |(entry, _)| entry.seq, |(entry, gone)| each(entry, gone))
    }

    /// The entries at these positions. The flag says whether the event was forgotten.
    pub fn entries_at(&self, seqs: &[Seq]) -> Result<Vec<(Entry, bool)>> {
        self.session.entries_at(self.log, seqs)
    }

    /// Passes the newest events, at most `limit`, to `each`, the newest last, until it breaks.
    pub fn each_stored<E: From<Error>>(
        &self,
        passes_only: bool,
        limit: Option<u64>,
        each: impl FnMut(Stored) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<(), E> {
        let limit = limit.unwrap_or(Seq::MAX.0).min(Seq::MAX.0);
        if limit == 0 {
            return Ok(());
        }
        // Positions have no gaps, so the newest events are a range. Passes are few.
        let (first, kind) = match passes_only {
            false => ((self.head()?.0 + 1).saturating_sub(limit).max(1), Kind::Any),
            true => {
                let most = usize::try_from(limit).unwrap_or(usize::MAX);
                let newest = self.session.passes(self.log, ALL, Order::NewestFirst, most)?;
                (newest.last().map_or(1, |pass| pass.seq.0), Kind::PassRecord)
            }
        };
        self.each_picked(Pick::all(Seq(first)..=Seq::MAX).kind(kind), each)
    }

    /// Passes the selected events to `each`, page by page, until it breaks.
    pub(crate) fn each_picked<E: From<Error>>(
        &self,
        mut pick: Pick<'_>,
        mut each: impl FnMut(Stored) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<(), E> {
        loop {
            let page = self.session.stored(self.log, &pick, CONTENT_PAGE)?;
            let whole = page.len() == CONTENT_PAGE;
            let last = page.last().map(|stored| stored.seq);
            for stored in page {
                if each(stored)?.is_break() {
                    return Ok(());
                }
            }
            let Some(last) = last.filter(|_| whole) else { return Ok(()) };
            let (first, end) = (*pick.range.start(), *pick.range.end());
            pick.range = match pick.order {
                Order::OldestFirst => last.next()..=end,
                Order::NewestFirst => first..=Seq(last.0 - 1),
            };
        }
    }

    /// Passes the canonical bytes of a range to `each`, in order, without forgotten events.
    pub fn each_content<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(&str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let pick = Pick { kept_only: true, ..Pick::all(range) };
        self.each_picked(pick, |stored| each(&stored.canonical).map(ControlFlow::Continue))
    }

    /// Passes the position and canonical bytes of each event of a range that contains a text to
    /// `each`, in order. This scans every event: no text is indexed.
    pub fn each_holding<E: From<Error>>(
        &self,
        text: &str,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(Seq, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let pick = Pick { holding: Some(text), ..Pick::all(range) };
        self.each_picked(pick, |stored| {
            each(stored.seq, &stored.canonical).map(ControlFlow::Continue)
        })
    }

    /// The newest event of a type in a range.
    pub fn last_of_type(
        &self,
        event_type: &str,
        range: RangeInclusive<Seq>,
    ) -> Result<Option<Stored>> {
        let pick = Pick::all(range).kind(Kind::Of(event_type)).newest_first();
        Ok(self.session.stored(self.log, &pick, 1)?.pop())
    }

    /// The event at a position, as it is stored.
    pub fn stored(&self, seq: Seq) -> Result<Option<Stored>> {
        Ok(self.session.stored(self.log, &Pick::all(seq..=seq), 1)?.pop())
    }

    /// The newest event that ipse itself wrote with a time of at most `by`: its position and its
    /// time. Such events have the recorder's clock, also after they were forgotten. The cost
    /// depends on the number of such events, not on the log.
    pub fn last_recorded(&self, by: Time) -> Result<Option<(Seq, Time)>> {
        self.session.last_recorded(self.log, by)
    }

    /// The events of a short range, as they are stored. The caller bounds the range, because all of
    /// them are in memory together.
    pub fn stored_in(&self, range: RangeInclusive<Seq>) -> Result<Vec<Stored>> {
        self.session.stored(self.log, &Pick::all(range), CONTENT_PAGE)
    }

    /// Passes the events of a housekeeping type in a range to `each`, newest first, until it
    /// breaks. The cost depends on the events found, not on the range. For `consolidation_run` use
    /// [`View::passes_back`].
    pub fn house_back<E: From<Error>>(
        &self,
        event_type: &str,
        range: RangeInclusive<Seq>,
        each: impl FnMut(Stored) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<(), E> {
        debug_assert!(event_type != PASS_RECORD, "BUG: pass records are not indexed by type");
        self.each_picked(Pick::all(range).kind(Kind::Of(event_type)).newest_first(), each)
    }

    /// Passes the pass records in a range to `each`, newest first, until it breaks.
    pub fn passes_back<E: From<Error>>(
        &self,
        range: RangeInclusive<Seq>,
        each: impl FnMut(Stored) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<(), E> {
        self.each_picked(Pick::all(range).kind(Kind::PassRecord).newest_first(), each)
    }

    /// Passes the canonical bytes of the events of a housekeeping type in a range to `each`, in
    /// order, without forgotten events.
    pub fn house_content<E: From<Error>>(
        &self,
        event_type: &str,
        range: RangeInclusive<Seq>,
        mut each: impl FnMut(&str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let pick = Pick::all(range).kind(Kind::Of(event_type));
        let pick = Pick { kept_only: true, ..pick };
        self.each_picked(pick, |stored| each(&stored.canonical).map(ControlFlow::Continue))
    }

    /// The position of the `forget` event that names this event, if one exists.
    pub fn forgotten_by(&self, entry: &EventRef, seq: Seq) -> Result<Option<Seq>> {
        let (range, name) = (seq.next().min(Seq::MAX)..=Seq::MAX, entry.to_string());
        let pick = Pick { holding: Some(&name), ..Pick::all(range).kind(Kind::Of(FORGET)) };
        Ok(self.session.stored(self.log, &pick, 1)?.first().map(|stored| stored.seq))
    }

    /// The names of the events of the full chunk that ends at a position; none for a small chunk.
    pub fn sealed_refs(&self, last: Seq) -> Result<Vec<EventRef>> {
        self.session.chunk_names(self.log, last)
    }

    /// The digest of the event at a position.
    pub fn digest(&self, seq: Seq) -> Result<Digest> {
        Ok(self.entries_at(&[seq])?[0].0.digest)
    }

    /// The name of the event at a position.
    pub fn event_ref(&self, seq: Seq) -> Result<EventRef> {
        Ok(self.session.names(self.log, &[seq])?[0])
    }

    /// The names of the events at positions, in the order of the positions.
    pub fn event_refs(&self, seqs: &[Seq]) -> Result<Vec<EventRef>> {
        let mut names = Vec::with_capacity(seqs.len());
        for page in seqs.chunks(PAGE) {
            names.extend(self.session.names(self.log, page)?);
        }
        Ok(names)
    }

    /// The position of the event with this name.
    pub fn find(&self, event_ref: &EventRef) -> Result<Option<Seq>> {
        Ok(self.session.find(self.log, &[*event_ref])?[0])
    }

    /// The positions of events by name, in the order of the names.
    pub fn find_all(&self, names: &[EventRef]) -> Result<Vec<Option<Seq>>> {
        self.session.find(self.log, names)
    }

    /// All facts, in no particular order.
    pub fn facts(&self) -> Result<Vec<Fact>> {
        let mut facts = Vec::new();
        self.each_fact(
            |_| true,
            |fact| {
                facts.push(fact);
                Ok::<_, Error>(())
            },
        )?;
        Ok(facts)
    }

    /// Passes the facts with wanted keys to `each`, in no particular order.
    pub fn each_fact<E: From<Error>>(
        &self,
        wanted: impl Fn(&FactKey) -> bool,
        mut each: impl FnMut(Fact) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut next = Some(0);
        while let Some(from) = next {
            let page = self.session.facts(self.log, from, PAGE, &wanted)?;
            page.rows.into_iter().try_for_each(&mut each)?;
            next = page.next;
        }
        Ok(())
    }

    /// One fact by its id. Facts of other identities are never returned.
    pub fn fact(&self, id: &FactId) -> Result<Option<Fact>> {
        Ok(self.facts_by_id(&[*id])?.pop().flatten())
    }

    /// Facts by their ids, in the order of the ids.
    pub fn facts_by_id(&self, ids: &[FactId]) -> Result<Vec<Option<Fact>>> {
        self.session.facts_by_id(self.log, ids)
    }

    /// The number of observations of a fact that were forgotten.
    pub fn forgotten_of(&self, id: &FactId) -> Result<u64> {
        Ok(self.session.forgotten_of(self.log, &[*id])?[0])
    }

    /// The size of all stored tallies in bytes.
    pub fn tally_bytes(&self) -> Result<u64> {
        self.session.tally_bytes(self.log)
    }

    /// The stored tallies of facts, in the order of the ids.
    pub fn tallies(&self, ids: &[FactId]) -> Result<Vec<Option<Vec<u8>>>> {
        self.session.tallies(self.log, ids)
    }

    /// The stored tally of one fact.
    pub fn tally(&self, id: &FactId) -> Result<Option<Vec<u8>>> {
        Ok(self.tallies(&[*id])?.pop().flatten())
    }
}

/// Reads a range page by page, in order, and passes each row to `each`.
pub(crate) fn pages<T, E: From<Error>>(
    range: RangeInclusive<Seq>,
    limit: usize,
    read: impl Fn(RangeInclusive<Seq>) -> Result<Vec<T>>,
    seq_of: impl Fn(&T) -> Seq,
    mut each: impl FnMut(T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (mut next, end) = range.into_inner();
    while next <= end {
        let page = read(next..=end)?;
        let whole = page.len() == limit;
        next = page.last().map_or(end, &seq_of).next();
        page.into_iter().try_for_each(&mut each)?;
        if !whole {
            break;
        }
    }
    Ok(())
}
