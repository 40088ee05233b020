//! The handle of a long-running program: appends, and automatic passes.
//!
//! **Invariants**
//! - Opening folds the events after the checkpoint. After that a pass runs when enough events are
//!   new or after a quiet time, and not more often: under load several appends share one pass.
//! - The keeper thread only starts passes and signs tree heads. If it dies, appending continues.

use crate::log::{Acknowledged, Host, Log, LogView, NextStep};
use crate::pass::{PassCommitted, PassReport, Trigger};
use crate::{Error, FactTable, Forgotten, HEAD_EVERY, Notary, Selection, SignedBatch, Watch};
use ipse_core::{Admitted, Identity, Seq, is_housekeeping};
use ipse_door::{Origin, Refusal, admit};
use ipse_store::{Appended, Store};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When automatic passes run. Default: after 64 new events, and after one second without a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Run a pass after this many new events; 1 updates facts at every append.
    pub every: u64,
    /// Run a pass when no event came for this long after a new one.
    pub quiet: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { every: 64, quiet: Duration::from_secs(1) }
    }
}

/// Number of earlier fact tables in memory, for planners that consulted one recently.
const KEPT: usize = 64;

/// An identity's log, open for a long-running program. Clones share it.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
    _keeper: Arc<Keeper>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    policy: Policy,
    /// The current facts. The table is immutable; each pass replaces it.
    known: RwLock<Arc<FactTable>>,
    /// Earlier tables, oldest first. Forgetting clears them.
    before: Mutex<VecDeque<Arc<FactTable>>>,
    store: Store,
    identity: Identity,
}

struct State {
    log: Log,
    /// Events appended since the last pass of this handle.
    pending: u64,
    last_append: Instant,
    /// Why the last pass failed, if it did.
    pass_error: Option<Error>,
    closing: bool,
}

impl Memory {
    /// Opens the log of an identity and folds the events after its checkpoint. The notary, if any,
    /// signs tree heads after passes, at most one per second. Fails without an append if the log
    /// does not continue the last tree head of the notary, as in an older copy of a store. If the
    /// log follows unknown rules, the handle serves the stored facts and appends events;
    /// [`Memory::take_pass_error`] returns the error.
    pub fn open(
        store: &Store,
        identity: Identity,
        policy: Policy,
        host: Box<dyn Host>,
        notary: Option<Box<dyn Notary>>,
    ) -> Result<Self, Error> {
        let mut log = Log::open(store, identity, host)?;
        if let Some(notary) = notary {
            log.set_notary(notary)?;
        }
        let pass_error = match log.consolidate(Trigger::Startup) {
            // The stored facts can be served, and events can be appended.
            Err(error @ Error::UnknownRules { .. }) => Some(error),
            done => done.map(|_| None)?,
        };
        let (pending, last_append, closing) = (0, Instant::now(), false);
        let state = State { log, pending, last_append, pass_error, closing };
        let known = RwLock::new(Arc::new(read_known(store, &identity)?));
        let store = store.clone();
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let before = Mutex::default();
        let shared = Arc::new(Shared { state, changed, policy, known, before, store, identity });
        let keeper = Arc::new(Keeper::start(shared.clone()));
        Ok(Memory { shared, _keeper: keeper })
    }

    /// The facts as of the last pass of this handle. The returned table never changes, so readers
    /// do not block writers.
    pub fn known(&self) -> Arc<FactTable> {
        // A poisoned lock still holds the last complete table.
        self.shared.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The facts at the current checkpoint or at a recent one; `None` if it is not in memory.
    pub fn known_at(&self, checkpoint: Seq) -> Option<Arc<FactTable>> {
        let now = self.known();
        if now.checkpoint() == checkpoint {
            return Some(now);
        }
        let before = self.shared.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.iter().find(|known| known.checkpoint() == checkpoint).cloned()
    }

    /// Calls `subscriber` after every pass that this handle commits. The log is locked during the
    /// call: the subscriber must not append, forget or run a pass, and it must return soon. If it
    /// panics, the pass is durable and this handle writes no more ([`Error::Poisoned`]).
    pub fn subscribe(
        &self,
        subscriber: impl FnMut(&PassCommitted) + Send + 'static,
    ) -> Result<(), Error> {
        self.shared.lock()?.log.subscribe(subscriber);
        Ok(())
    }

    /// Validates one event at the door and appends it durably.
    pub fn append(&self, event: &[u8]) -> Result<Result<Appended, Refusal>, Error> {
        let mut state = self.shared.lock()?;
        let event = match admit(event, Origin::Producer, || state.log.host().salt()) {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let done = self.shared.append(&mut state, &[event], None)?;
        state.pass_error = done.pass_error.or(state.pass_error.take());
        Ok(Ok(done.appended[0]))
    }

    /// Appends events that passed the door, durably and in one transaction.
    pub fn append_all(&self, events: &[Admitted]) -> Result<Acknowledged, Error> {
        let mut state = self.shared.lock()?;
        self.shared.append(&mut state, events, None)
    }

    /// The same for events that a producer signed.
    pub fn append_signed(
        &self,
        events: &[Admitted],
        endorsed: &SignedBatch,
    ) -> Result<Acknowledged, Error> {
        let mut state = self.shared.lock()?;
        self.shared.append(&mut state, events, Some(endorsed))
    }

    /// Appends events without a pass, for an import. A later append, a quiet time or
    /// [`Memory::consolidate`] folds them.
    pub fn append_batch(
        &self,
        events: &[Admitted],
        endorsed: Option<&SignedBatch>,
    ) -> Result<Acknowledged, Error> {
        let mut state = self.shared.lock()?;
        let done = state.log.append_signed(events, endorsed, NextStep::Nothing)?;
        let new = done.appended.iter().filter(|done| matches!(done, Appended::New(_))).count();
        if new > 0 {
            state.pending += new as u64;
            state.last_append = Instant::now();
        }
        self.shared.changed.notify_all();
        Ok(done)
    }

    /// Appends the event that `judge` makes from the current log, in the same transaction.
    pub fn append_judged<T, J>(
        &self,
        judge: impl FnOnce(&LogView<'_>) -> Result<Result<(Admitted, T), J>, Error>,
    ) -> Result<Result<(Admitted, Appended, T), J>, Error> {
        let done = self.shared.lock()?.log.append_judged(judge)?;
        self.shared.changed.notify_all();
        Ok(done)
    }

    /// Runs `work` on the log itself, for an import with its own batches and its own pass. Other
    /// writers of this handle wait. Afterwards the handle serves the new facts.
    pub fn work<T>(&self, work: impl FnOnce(&mut Log) -> T) -> Result<T, Error> {
        let mut state = self.shared.lock()?;
        let done = work(&mut state.log);
        let known = read_known(&self.shared.store, &self.shared.identity)?;
        if known.checkpoint() != self.known().checkpoint() {
            state.pending = 0;
            self.shared.swap(known, false);
        }
        self.shared.changed.notify_all();
        Ok(done)
    }

    /// Reads the facts again if another handle or process ran a pass, as detected by `watch`.
    /// Returns whether one did.
    pub fn refresh(&self, watch: &Watch) -> Result<bool, Error> {
        if watch.checkpoint(&self.shared.identity)? == self.known().checkpoint() {
            return Ok(false);
        }
        // The lock waits for a running pass of this handle, which swaps in its own table.
        let _state = self.shared.lock()?;
        self.shared.swap(read_known(&self.shared.store, &self.shared.identity)?, false);
        Ok(true)
    }

    /// Reads the facts again if another handle or process ran a pass or forgot events. Returns
    /// whether one did. For a handle that does not [`Watch`] its store.
    pub fn reload_if_moved(&self) -> Result<bool, Error> {
        self.refresh(&Watch::open(&self.shared.store)?)
    }

    /// Takes the error of the last failed automatic pass, if any. Its events are durable; the next
    /// pass retries.
    pub fn take_pass_error(&self) -> Result<Option<Error>, Error> {
        Ok(self.shared.lock()?.pass_error.take())
    }

    /// Forgets events permanently. Facts become equal to those of a log that never had the events.
    pub fn forget(&self, which: &Selection) -> Result<Forgotten, Error> {
        let mut state = self.shared.lock()?;
        let done = state.log.forget(which)?;
        if done.pass.is_some() {
            state.pending = 0;
        }
        self.shared.learn(&mut state, done.pass.as_ref());
        Ok(done)
    }

    /// Fails if the log is known not to continue the last signed tree head, for example after an
    /// older copy replaced it. Nothing is appended then. If an earlier check failed, the log is
    /// compared again.
    pub fn check_signed(&self) -> Result<(), Error> {
        self.shared.lock()?.log.check_signed()
    }

    /// Signs a tree head over all durable events and returns it; `None` without a notary.
    pub fn sign_head(&self) -> Result<Option<String>, Error> {
        self.shared.lock()?.log.sign_head()
    }

    /// Takes the error of the last failed signing, if any. The events are durable; the next pass
    /// retries.
    pub fn take_head_error(&self) -> Result<Option<Error>, Error> {
        Ok(self.shared.lock()?.log.take_head_error())
    }

    /// Runs one pass now; `None` if no event is new.
    pub fn consolidate(&self) -> Result<Option<PassReport>, Error> {
        let mut state = self.shared.lock()?;
        let report = self.shared.consolidate(&mut state, Trigger::Manual)?;
        // The keeper signs the tree head of the pass, if that was not due yet.
        self.shared.changed.notify_all();
        Ok(report)
    }
}

impl Shared {
    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        self.state.lock().map_err(|_| Error::Poisoned)
    }

    fn append(
        &self,
        state: &mut State,
        events: &[Admitted],
        endorsed: Option<&SignedBatch>,
    ) -> Result<Acknowledged, Error> {
        // Intents and decisions feed no fact: a pass for them would find nothing new.
        let lived = |event: &Admitted| !is_housekeeping(&event.event_type);
        let more = events.iter().filter(|event| lived(event)).count() as u64;
        let due = more > 0 && state.pending + more >= self.policy.every;
        let then = if due { NextStep::Consolidate(Trigger::Threshold) } else { NextStep::Nothing };
        let done = state.log.append_signed(events, endorsed, then)?;
        self.learn(state, done.pass.as_ref());
        let new = events.iter().zip(&done.appended);
        let new = new.filter(|(event, done)| lived(event) && matches!(done, Appended::New(_)));
        let new = new.count() as u64;
        state.pending = if due && done.pass_error.is_none() { 0 } else { state.pending + new };
        if new > 0 {
            state.last_append = Instant::now();
        }
        self.changed.notify_all();
        Ok(done)
    }
}

impl Shared {
    fn consolidate(
        &self,
        state: &mut State,
        trigger: Trigger,
    ) -> Result<Option<PassReport>, Error> {
        let report = state.log.consolidate(trigger)?;
        state.pending = 0;
        self.learn(state, report.as_ref());
        Ok(report)
    }

    /// Swaps in the facts after a pass. The pass is durable: if its facts cannot be read, the old
    /// table stays and the error is stored for [`Memory::take_pass_error`].
    fn learn(&self, state: &mut State, pass: Option<&PassReport>) {
        let Some(pass) = pass else { return };
        match self.after(pass) {
            Ok((next, goes_on)) => self.swap(next, goes_on),
            Err(error) => state.pass_error = Some(error),
        }
    }

    /// Replaces the current table. The old one is kept, unless events may have been forgotten in
    /// between (`goes_on` is false): then all earlier tables are dropped.
    fn swap(&self, next: FactTable, goes_on: bool) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut *known, Arc::new(next));
        if !goes_on {
            before.clear();
            return;
        }
        if before.len() == KEPT {
            before.pop_front();
        }
        before.push_back(last);
    }

    /// The facts after a pass, and whether the earlier tables may be kept: this pass alone changed
    /// the facts, and it forgot nothing.
    fn after(&self, pass: &PassReport) -> Result<(FactTable, bool), Error> {
        let (first, last) = (pass.committed.first_seq, pass.committed.last_seq);
        let before = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        let follows = before.checkpoint().next() == first && before.checkpoint().0 > 0;
        match &pass.changed {
            Some(changed) if follows => {
                let next = before.after(last, changed.clone(), &pass.gone)?;
                Ok((next, pass.committed.trigger != Trigger::Forget))
            }
            // If another process ran a pass in between, its facts are in the store only.
            _ => Ok((read_known(&self.store, &self.identity)?, false)),
        }
    }
}

fn read_known(store: &Store, identity: &Identity) -> Result<FactTable, Error> {
    let reader = store.reader()?;
    let snapshot = reader.view(identity)?;
    FactTable::read(snapshot.view())
}

/// The thread that runs passes after a quiet time. It ends with the last handle.
struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(shared: Arc<Shared>) -> Self {
        let watched = shared.clone();
        let thread = std::thread::spawn(move || watch(&watched));
        Keeper { shared, thread: Some(thread) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Ok(mut state) = self.shared.state.lock() {
            state.closing = true;
        }
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A keeper that panicked has nothing to finish.
            let _ = thread.join();
        }
        if let Ok(mut state) = self.shared.state.lock() {
            state.log.sign_owed_head();
        }
    }
}

fn watch(shared: &Shared) {
    let Ok(mut state) = shared.state.lock() else { return };
    while !state.closing {
        let until_signed =
            state.log.owes_head().then(|| Duration::from_micros(HEAD_EVERY.unsigned_abs()));
        let until_pass = (state.pending > 0)
            .then(|| shared.policy.quiet.saturating_sub(state.last_append.elapsed()));
        let left = [until_signed, until_pass].into_iter().flatten().min();
        let waited = match left {
            None => shared.changed.wait(state).map_err(drop),
            Some(left) => {
                shared.changed.wait_timeout(state, left).map(|(state, _)| state).map_err(drop)
            }
        };
        let Ok(woken) = waited else { return };
        state = woken;
        let quiet = state.last_append.elapsed() >= shared.policy.quiet;
        if state.pending > 0 && quiet && !state.closing {
            // A failed pass leaves the events unfolded: the next append retries.
            if let Err(error) = shared.consolidate(&mut state, Trigger::Threshold) {
                state.pass_error = Some(error);
                state.pending = 0;
            }
        }
        state.log.sign_head_if_due();
    }
}
