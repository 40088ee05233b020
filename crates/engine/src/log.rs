//! The write handle of an identity's log: append, run passes, forget, sign tree heads.
//!
//! **Invariants**
//! - An acknowledged append is durable, even if the pass after it fails.
//! - After a failed commit nothing more is written: an fsync that failed once may "succeed" later
//!   although the data is lost, so it is never retried.
//! - Nothing is appended to a log with fewer entries than were signed, or with other entries.
//! - A log that follows unknown rules accepts events and runs no pass.
//! - No event of a producer is appended that is dated further ahead of the host's clock than the
//!   log allows.

use crate::Error;
use crate::forget::{ForgetJob, Forgotten, Selection};
use crate::governor::settle;
use crate::head::{Heads, Notary};
use crate::pass::{PassCommitted, PassReport, Trigger};
use crate::rules::{LogRules, rules_history};
use crate::rules_change::{self, RulesChange};
use crate::signed::{SignedEvents, append_all};
use crate::signed_batch::{SignatureError, SignedBatch};
use ipse_consolidate::RuleSet;
use ipse_core::intent::INTENT;
use ipse_core::{Admitted, Event, Identity, Seq, Time, is_housekeeping};
use ipse_door::Salt;
use ipse_ledger::{RulesEvent, RulesHistory};
use ipse_store::{Appended, Batch, Erased, Patience, Store, Stored, View, Writer};
use std::ops::ControlFlow;

/// Clock and randomness, provided by the program.
pub trait Host: Send {
    /// The current time.
    fn now(&self) -> Time;
    /// Fresh random bytes.
    fn salt(&mut self) -> Salt;
}

/// The step after an append, in the same transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// No step.
    Nothing,
    /// A pass over all events after the checkpoint.
    Consolidate(Trigger),
}

/// The result of a durable append.
#[derive(Debug)]
pub struct Acknowledged {
    /// The result for each event, in order.
    pub appended: Vec<Appended>,
    /// The number of events in the log that the producer's signature covers.
    pub signed: u64,
    /// Why the given signature was rejected, if it was.
    pub unkept: Option<SignatureError>,
    /// The report of the pass, if one ran and found new events.
    pub pass: Option<PassReport>,
    /// Why the pass failed, if it did. The events are durable anyway.
    pub pass_error: Option<Error>,
}

/// A read-only view of a log for judging the next event.
pub struct LogView<'v>(View<'v>);

impl<'v> LogView<'v> {
    /// Wraps the view of a reader.
    pub fn of(view: View<'v>) -> Self {
        LogView(view)
    }

    /// The last position of the log.
    pub fn head(&self) -> Result<Seq, Error> {
        Ok(self.0.head()?)
    }

    /// Passes intents after a position to `look`, newest first, until it returns false. Returns the
    /// last position of the log.
    pub fn intents(&self, after: Seq, mut look: impl FnMut(&Stored) -> bool) -> Result<Seq, Error> {
        let head = self.0.head()?;
        self.0.house_back(INTENT, after.next()..=head, |stored| {
            let more = look(&stored);
            Ok::<_, Error>(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(head)
    }

    /// Passes the events after a position to `each`, in order. Returns the last position of the
    /// log.
    pub fn events(&self, after: Seq, mut each: impl FnMut(Seq, &Event<'_>)) -> Result<Seq, Error> {
        let head = self.0.head()?;
        self.0.each_event(after.next()..=head, |seq, event| {
            each(seq, event);
            Ok::<_, Error>(())
        })?;
        Ok(head)
    }
}

type Subscriber = Box<dyn FnMut(&PassCommitted) + Send>;

/// One identity's log, open for appending and for passes.
pub struct Log {
    writer: Writer,
    identity: Identity,
    rules: LogRules,
    host: Box<dyn Host>,
    subscribers: Vec<Subscriber>,
    broken: bool,
    /// Signs tree heads, if a notary is set.
    heads: Option<Heads>,
    erase_pending: bool,
}

impl Log {
    /// Opens the log of an identity. A pass applies the rules that the log follows when it begins.
    pub fn open(store: &Store, identity: Identity, host: Box<dyn Host>) -> Result<Self, Error> {
        Self::following(store, identity, LogRules::log(), host)
    }

    /// Opens the log of an identity under rules of the caller's choice, which need not be among
    /// those of this build. A pass deletes the facts of other rules and starts over.
    #[doc(hidden)]
    pub fn open_under<R>(
        store: &Store,
        identity: Identity,
        rules: R,
        host: Box<dyn Host>,
    ) -> Result<Self, Error>
    where
        R: RuleSet<Tally: Send> + Send + 'static,
    {
        Self::following(store, identity, LogRules::chosen(rules), host)
    }

    fn following(
        store: &Store,
        identity: Identity,
        rules: LogRules,
        host: Box<dyn Host>,
    ) -> Result<Self, Error> {
        let writer = store.writer(&identity)?;
        // If another process holds a lock, or the disk is full, the bytes stay for now.
        let erased = store.finish_erasing(Patience::None);
        let erase_pending = !erased.is_ok_and(|erased| erased == Erased::Gone);
        let (subscribers, broken, heads) = (Vec::new(), false, None);
        Ok(Log { writer, identity, rules, host, subscribers, broken, heads, erase_pending })
    }

    /// Signs tree heads from now on: after passes, at most one per second. A caller that ends
    /// signs the last one with [`Log::sign_owed_head`]. Fails if the log does not continue the last
    /// tree head of the notary.
    pub fn set_notary(&mut self, notary: Box<dyn Notary>) -> Result<(), Error> {
        let (store, view) = (self.writer.store(), self.writer.view());
        self.heads = Some(Heads::open(store, self.identity, notary, view)?);
        Ok(())
    }

    /// Fails if the log is known not to continue the last signed tree head. Nothing is appended
    /// then. If an earlier check failed, the log is compared again.
    pub fn check_signed(&mut self) -> Result<(), Error> {
        let Some(heads) = &mut self.heads else { return Ok(()) };
        let view = self.writer.view();
        heads.allow(view.head()?).or_else(|_| heads.check(view))
    }

    /// Signs a tree head now, if a notary is set.
    pub fn sign_head(&mut self) -> Result<Option<String>, Error> {
        self.heads.as_mut().map(|heads| heads.sign(self.host.now())).transpose()
    }

    /// Signs a tree head if one is owed and the last one is at least [`crate::HEAD_EVERY`] old.
    pub fn sign_head_if_due(&mut self) {
        if let Some(heads) = &mut self.heads {
            heads.sign_if_due(self.host.now());
        }
    }

    /// Signs a tree head if one is owed.
    pub fn sign_owed_head(&mut self) {
        if let Some(heads) = &mut self.heads {
            heads.sign_owed(self.host.now());
        }
    }

    /// Whether a tree head is owed: something was committed after the last one.
    pub fn owes_head(&self) -> bool {
        self.heads.as_ref().is_some_and(Heads::owed)
    }

    /// Takes the error of the last failed signing, if any. The events are durable anyway.
    pub fn take_head_error(&mut self) -> Option<Error> {
        self.heads.as_mut().and_then(Heads::take_error)
    }

    /// Saves sums after this many events, so that a test reaches the limit with few events.
    #[doc(hidden)]
    pub fn save_every(&mut self, events: u64) {
        self.rules.limit(|it| it.save_every = events);
    }

    /// Folds in smaller slices, so that a test gets several with few facts.
    #[doc(hidden)]
    pub fn slice_at(&mut self, weight: usize) {
        self.rules.limit(|it| it.slice = weight);
    }

    /// Keeps fewer sums in memory between passes, so that a test evicts some of them.
    #[doc(hidden)]
    pub fn keep_sums(&mut self, most: usize) {
        self.rules.limit(|it| it.most = most);
    }

    /// The number of events with cached typed columns, for a test.
    #[doc(hidden)]
    pub fn held(&self) -> usize {
        self.writer.held()
    }

    /// Clock and randomness of this log.
    pub fn host(&mut self) -> &mut dyn Host {
        &mut *self.host
    }

    /// Calls `subscriber` after every pass that this handle commits. The log is locked during the
    /// call, so the subscriber must not use it.
    pub fn subscribe(&mut self, subscriber: impl FnMut(&PassCommitted) + Send + 'static) {
        self.subscribers.push(Box::new(subscriber));
    }

    /// Runs one pass; `None` if no event is new.
    pub fn consolidate(&mut self, trigger: Trigger) -> Result<Option<PassReport>, Error> {
        let done = self.append(&[], NextStep::Consolidate(trigger))?;
        match done.pass_error {
            Some(error) => Err(error),
            None => Ok(done.pass),
        }
    }

    /// Appends a batch durably, in one transaction with the next step.
    pub fn append(&mut self, events: &[Admitted], then: NextStep) -> Result<Acknowledged, Error> {
        self.append_signed(events, None, then)
    }

    /// The same for events that a producer signed.
    pub fn append_signed(
        &mut self,
        events: &[Admitted],
        endorsed: Option<&SignedBatch>,
        then: NextStep,
    ) -> Result<Acknowledged, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        let mut batch = begin(&mut self.writer, &mut self.heads)?;
        let settled = settle(&mut batch, &mut *self.host)?;
        let (appended, signed) = append_all(&mut batch, events, endorsed, self.host.now())?;
        let pass = match then {
            NextStep::Nothing => Ok(None),
            NextStep::Consolidate(trigger) => {
                self.rules.pass(&mut batch, &self.identity, &mut *self.host, trigger)
            }
        };
        // A failed pass has rolled back to its savepoint, so the sums in memory are wrong.
        if pass.is_err() {
            self.rules.cool();
        }
        let changed = settled
            || signed.kept
            || appended.iter().any(|event| matches!(event, Appended::New(_)))
            || matches!(pass, Ok(Some(_)));
        let committed = if changed {
            batch.commit()
        } else {
            drop(batch);
            Ok(())
        };
        if let Err(error) = committed {
            self.rules.cool();
            self.broken = true;
            return Err(error.into());
        }
        let (pass, pass_error) = match pass {
            Ok(pass) => (pass, None),
            Err(error) => (None, Some(error)),
        };
        if let Some(heads) = &mut self.heads {
            heads.grow_behind(appended.len());
            // Intents and decisions need a proof too, although no pass follows them.
            let of_house = || events.iter().any(|event| is_housekeeping(&event.event_type));
            if settled || changed && of_house() {
                heads.owe();
            }
        }
        self.passed(pass.as_ref());
        let SignedEvents { events: signed, unkept, .. } = signed;
        Ok(Acknowledged { appended, signed, unkept, pass, pass_error })
    }

    /// Appends the event that `judge` makes from the current log, durably and in the same
    /// transaction: no event of another writer comes in between. If `judge` returns an error,
    /// nothing is stored and the error is returned.
    pub fn append_judged<T, J>(
        &mut self,
        judge: impl FnOnce(&LogView<'_>) -> Result<Result<(Admitted, T), J>, Error>,
    ) -> Result<Result<(Admitted, Appended, T), J>, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        let mut batch = begin(&mut self.writer, &mut self.heads)?;
        settle(&mut batch, &mut *self.host)?;
        let (event, reported) = match judge(&LogView(batch.view()))? {
            Ok(made) => made,
            Err(refused) => return Ok(Err(refused)),
        };
        let appended = batch.append(&event)?;
        if let Err(error) = batch.commit() {
            return Err(self.lost(error.into()));
        }
        self.owe_head();
        Ok(Ok((event, appended, reported)))
    }

    /// After a commit that failed it is unknown what the store has: the handle stops.
    fn lost(&mut self, error: Error) -> Error {
        self.rules.cool();
        self.broken = true;
        error
    }

    /// The newest event needs a tree head.
    fn owe_head(&mut self) {
        if let Some(heads) = &mut self.heads {
            heads.owe();
        }
    }

    /// The identity of the log.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Appends the change of rules that `make` derives from the log. If other rules are in force
    /// then, all facts are derived again in the same transaction.
    pub(crate) fn change_rules(
        &mut self,
        make: impl FnOnce(View<'_>, &RulesHistory) -> Result<RulesEvent, Error>,
    ) -> Result<RulesChange, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        let mut batch = begin(&mut self.writer, &mut self.heads)?;
        settle(&mut batch, &mut *self.host)?;
        let history = rules_history(batch.view())?;
        let event = make(batch.view(), &history)?;
        let seq = batch.head().next();
        let to = rules_change::checked(&history, seq, &event)?;
        batch.append(&rules_change::stored_event(seq, &event, &mut *self.host))?;
        let pass = to.map(|to| self.rules.change(&mut batch, &self.identity, &mut *self.host, to));
        let pass = match pass.transpose() {
            Ok(pass) => pass.flatten(),
            Err(error) => {
                drop(batch);
                self.rules = LogRules::log();
                return Err(error);
            }
        };
        if let Err(error) = batch.commit() {
            return Err(self.lost(error.into()));
        }
        self.owe_head();
        self.passed(pass.as_ref());
        Ok(RulesChange { seq, event, pass })
    }

    /// Forgets events permanently. Facts become equal to those of a log that never had the events.
    pub fn forget(&mut self, which: &Selection) -> Result<Forgotten, Error> {
        let done = self.forgetting()?.run(which);
        // The content must not stay in memory, even after an error.
        self.rules.cool();
        self.writer.release();
        let done = done.map_err(|(error, in_commit)| {
            self.broken |= in_commit;
            error
        })?;
        self.passed(done.pass.as_ref());
        Ok(done)
    }

    /// Notifies subscribers of a durable pass, and signs a tree head if due.
    fn passed(&mut self, pass: Option<&PassReport>) {
        let Some(report) = pass else { return };
        self.subscribers.iter_mut().for_each(|tell| tell(&report.committed));
        if let Some(heads) = &mut self.heads {
            heads.owe();
        }
        self.sign_head_if_due();
    }

    /// Whether forgotten content was still in the store's files after opening.
    pub fn erase_pending(&self) -> bool {
        self.erase_pending
    }

    fn forgetting(&mut self) -> Result<ForgetJob<'_>, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        self.check_signed()?;
        self.rules.cool();
        let Log { writer, identity, rules, host, .. } = self;
        Ok(ForgetJob { store: writer.store(), identity, rules, host: &mut **host })
    }
}

/// Begins a batch. Fails if the log is known to contradict a signed tree head.
fn begin<'w>(writer: &'w mut Writer, heads: &mut Option<Heads>) -> Result<Batch<'w>, Error> {
    let batch = writer.begin()?;
    if let Some(heads) = heads {
        heads.allow(batch.head())?;
    }
    Ok(batch)
}
