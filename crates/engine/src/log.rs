//! The writing half of an identity's log: append, consolidate, forget, have heads signed.
//!
//! **Invariants**
//! - An append that was acknowledged is durable, whatever becomes of the pass that follows it.
//! - After a commit has failed nothing more is written: an fsync that failed once may "succeed"
//!   later with the data gone, so it is never retried.
//! - A log that has fewer entries than were signed, or others, takes none.
//! - A log that follows unknown rules accepts events, and runs no pass.

use crate::Error;
use crate::forget::{ForgetJob, Forgotten, Selection};
use crate::head::{Heads, Notary};
use crate::pass::{PassCommitted, PassReport, Trigger};
use crate::rules::LogRules;
use crate::signed::{SignedEvents, append_all};
use crate::signed_batch::{SignatureError, SignedBatch};
use ipse_consolidate::RuleSet;
use ipse_core::intent::INTENT;
use ipse_core::{Admitted, Identity, Seq, Time, is_housekeeping};
use ipse_door::Salt;
use ipse_store::{Appended, Batch, Erased, Patience, Store, Stored, View, Writer};
use std::ops::ControlFlow;

/// Clock and randomness, handed down from the binary.
pub trait Host: Send {
    /// The time now.
    fn now(&self) -> Time;
    /// Fresh random bytes.
    fn salt(&mut self) -> Salt;
}

/// What follows an append, in the same transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// Nothing.
    Nothing,
    /// A pass over all that is past the checkpoint.
    Consolidate(Trigger),
}

/// What became of a batch that is durable now.
#[derive(Debug)]
pub struct Acknowledged {
    /// What became of each event, in order.
    pub appended: Vec<Appended>,
    /// How many of them stand in the log under a producer's signature.
    pub signed: u64,
    /// Why a signature that was given counts for nothing after all.
    pub unkept: Option<SignatureError>,
    /// What the pass did, if there was one and it found anything new.
    pub pass: Option<PassReport>,
    /// Why the pass failed, if it did; the events are durable all the same.
    pub pass_error: Option<Error>,
}

/// A log at one moment: while the next event is made, or before.
pub struct LogView<'v>(View<'v>);

impl<'v> LogView<'v> {
    /// The log as a reader sees it.
    pub fn of(view: View<'v>) -> Self {
        LogView(view)
    }

    /// Shows intents after a position, newest first, until `look` says that it has seen enough;
    /// hands back how far the log reaches.
    pub fn intents(&self, after: Seq, mut look: impl FnMut(&Stored) -> bool) -> Result<Seq, Error> {
        let head = self.0.head()?;
        self.0.house_back(INTENT, after.next()..=head, |stored| {
            let more = look(&stored);
            Ok::<_, Error>(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
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
    /// What signs tree heads, if anything does.
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
        // If another process is in the way, or the disk is full, the bytes stay for now.
        let erased = store.finish_erasing(Patience::None);
        let erase_pending = !erased.is_ok_and(|erased| erased == Erased::Gone);
        let (subscribers, broken, heads) = (Vec::new(), false, None);
        Ok(Log { writer, identity, rules, host, subscribers, broken, heads, erase_pending })
    }

    /// Has tree heads signed from now on: after passes, at most one a second. An error if the log
    /// does not continue the last head that the notary keeps.
    pub fn set_notary(&mut self, notary: Box<dyn Notary>) -> Result<(), Error> {
        let (store, view) = (self.writer.store(), self.writer.view());
        self.heads = Some(Heads::open(store, self.identity, notary, view)?);
        Ok(())
    }

    /// An error if the log is known not to continue the last signed head: nothing is appended then.
    /// If it was so before, the log is compared again.
    pub fn check_signed(&mut self) -> Result<(), Error> {
        let Some(heads) = &mut self.heads else { return Ok(()) };
        let view = self.writer.view();
        heads.allow(view.head()?).or_else(|_| heads.check(view))
    }

    /// Signs a tree head now, if there is a notary.
    pub fn sign_head(&mut self) -> Result<Option<String>, Error> {
        self.heads.as_mut().map(|heads| heads.sign(self.host.now())).transpose()
    }

    /// Signs a head if a pass came after the last one and that was long enough ago.
    pub fn sign_head_if_due(&mut self) {
        if let Some(heads) = &mut self.heads {
            heads.sign_if_due(self.host.now());
        }
    }

    /// Signs a head if a pass came after the last one.
    pub fn sign_owed_head(&mut self) {
        if let Some(heads) = &mut self.heads {
            heads.sign_owed(self.host.now());
        }
    }

    /// Whether a head is to be signed that was not due yet.
    pub fn owes_head(&self) -> bool {
        self.heads.as_ref().is_some_and(Heads::owed)
    }

    /// Why the last head could not be signed, if it could not. The events are durable all the same.
    pub fn take_head_error(&mut self) -> Option<Error> {
        self.heads.as_mut().and_then(Heads::take_error)
    }

    /// Saves sums more often, so that a test crosses the boundary with few events.
    #[doc(hidden)]
    pub fn save_every(&mut self, events: u64) {
        self.rules.limit(|it| it.save_every = events);
    }

    /// Folds in smaller slices, so that a test has several with few facts.
    #[doc(hidden)]
    pub fn slice_at(&mut self, weight: usize) {
        self.rules.limit(|it| it.slice = weight);
    }

    /// Keeps fewer sums in memory between passes, so that a test evicts some of them.
    #[doc(hidden)]
    pub fn keep_sums(&mut self, most: usize) {
        self.rules.limit(|it| it.most = most);
    }

    /// How many events have their typed columns in memory, for a test.
    #[doc(hidden)]
    pub fn held(&self) -> usize {
        self.writer.held()
    }

    /// Clock and randomness of this log.
    pub fn host(&mut self) -> &mut dyn Host {
        &mut *self.host
    }

    /// Calls `subscriber` after every pass that this handle commits. It is called while the log is
    /// held, so it must not come back to it.
    pub fn subscribe(&mut self, subscriber: impl FnMut(&PassCommitted) + Send + 'static) {
        self.subscribers.push(Box::new(subscriber));
    }

    /// One pass by itself; `None` if there is nothing new.
    pub fn consolidate(&mut self, trigger: Trigger) -> Result<Option<PassReport>, Error> {
        let done = self.append(&[], NextStep::Consolidate(trigger))?;
        match done.pass_error {
            Some(error) => Err(error),
            None => Ok(done.pass),
        }
    }

    /// Appends a batch durably, in one transaction, and lets a pass follow.
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
        let (appended, signed) = append_all(&mut batch, events, endorsed)?;
        let pass = match then {
            NextStep::Nothing => Ok(None),
            NextStep::Consolidate(trigger) => {
                self.rules.pass(&mut batch, &self.identity, &mut *self.host, trigger)
            }
        };
        // A failed pass has rolled back to its savepoint; its hot sums are no longer to be trusted.
        if pass.is_err() {
            self.rules.cool();
        }
        let changed = signed.kept
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
            // No pass follows intents and decisions, and they are to be proven all the same.
            if changed && events.iter().any(|event| is_housekeeping(&event.event_type)) {
                heads.owe();
            }
        }
        self.passed(pass.as_ref());
        let SignedEvents { events: signed, unkept, .. } = signed;
        Ok(Acknowledged { appended, signed, unkept, pass, pass_error })
    }

    /// Appends the event that `judge` makes of the log as it stands, durably, and in one
    /// transaction with that look: nobody else's event comes in between. What it refuses to make is
    /// handed back, and nothing is stored.
    pub fn append_judged<T, J>(
        &mut self,
        judge: impl FnOnce(&LogView<'_>) -> Result<Result<(Admitted, T), J>, Error>,
    ) -> Result<Result<(Admitted, Appended, T), J>, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        let mut batch = begin(&mut self.writer, &mut self.heads)?;
        let (event, told) = match judge(&LogView(batch.view()))? {
            Ok(made) => made,
            Err(refused) => return Ok(Err(refused)),
        };
        let appended = batch.append(&event)?;
        if let Err(error) = batch.commit() {
            self.rules.cool();
            self.broken = true;
            return Err(error.into());
        }
        if let Some(heads) = &mut self.heads {
            heads.owe();
        }
        Ok(Ok((event, appended, told)))
    }

    /// Forgets events for good: facts become what they would be had the events never been there.
    pub fn forget(&mut self, which: &Selection) -> Result<Forgotten, Error> {
        let done = self.forgetting()?.run(which);
        // Whatever came of it, nothing of them stays in memory.
        self.rules.cool();
        self.writer.release();
        let done = done.map_err(|(error, in_commit)| {
            self.broken |= in_commit;
            error
        })?;
        self.passed(done.pass.as_ref());
        Ok(done)
    }

    /// What follows a pass that is durable.
    fn passed(&mut self, pass: Option<&PassReport>) {
        let Some(report) = pass else { return };
        self.subscribers.iter_mut().for_each(|tell| tell(&report.committed));
        if let Some(heads) = &mut self.heads {
            heads.owe();
        }
        self.sign_head_if_due();
    }

    /// Whether forgotten bytes were still in the store's files when it was opened, and had to stay.
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

/// Begins a batch of a log that is not known to contradict what was signed.
fn begin<'w>(writer: &'w mut Writer, heads: &mut Option<Heads>) -> Result<Batch<'w>, Error> {
    let batch = writer.begin()?;
    if let Some(heads) = heads {
        heads.allow(batch.head())?;
    }
    Ok(batch)
}
