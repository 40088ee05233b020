//! The handle that programs hold: appends, and passes that come by themselves.
//!
//! **Invariants**
//! - Opening folds what is past the checkpoint; after that a pass comes once enough events are
//!   new or once it has been quiet, and never more often: under load passes coalesce.
//! - The keeper thread only ever starts passes and has heads signed; when it dies, appending goes
//!   on.

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

/// When passes come by themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// A pass follows the append that makes so many events new; 1 renews facts at every append.
    pub every: u64,
    /// A pass follows once so long no event came after some.
    pub quiet: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { every: 64, quiet: Duration::from_secs(1) }
    }
}

/// How many tables from before the last one are kept: what a planner consulted a moment ago.
const KEPT: usize = 64;

/// An identity's log, open for a program that lives long. Clones share it.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
    _keeper: Arc<Keeper>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    policy: Policy,
    /// What is known; swapped after each pass, never changed.
    known: RwLock<Arc<FactTable>>,
    /// What was known before, oldest first; nothing from before something was forgotten.
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
    /// Opens the log of an identity and folds what is past its checkpoint. The notary, if there is
    /// one, signs tree heads after passes, at most one a second. An error, and nothing is appended,
    /// if the log does not continue the last head that the notary keeps: an older copy of a store.
    /// If the log follows unknown rules, the handle serves the stored facts and appends events;
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

    /// What is known, as of the last pass of this handle. Reading takes no part in writing: the
    /// table that is handed out never changes.
    pub fn known(&self) -> Arc<FactTable> {
        // A poisoned lock still holds the last table that was put there whole.
        self.shared.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was known at a checkpoint, if that is now or was not long ago.
    pub fn known_at(&self, checkpoint: Seq) -> Option<Arc<FactTable>> {
        let now = self.known();
        if now.checkpoint() == checkpoint {
            return Some(now);
        }
        let before = self.shared.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.iter().find(|known| known.checkpoint() == checkpoint).cloned()
    }

    /// Calls `subscriber` after every pass that this handle commits. It is called while the log is
    /// held, so it must not come back to it.
    pub fn subscribe(
        &self,
        subscriber: impl FnMut(&PassCommitted) + Send + 'static,
    ) -> Result<(), Error> {
        self.shared.lock()?.log.subscribe(subscriber);
        Ok(())
    }

    /// Lets one event through the door and appends it durably.
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

    /// Appends events as an import does: without a pass at once. Later appends, a quiet moment or
    /// [`Memory::consolidate`] fold them.
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

    /// Appends the event that `judge` makes of the log as it stands, in one transaction with that
    /// look.
    pub fn append_judged<T, J>(
        &self,
        judge: impl FnOnce(&LogView<'_>) -> Result<Result<(Admitted, T), J>, Error>,
    ) -> Result<Result<(Admitted, Appended, T), J>, Error> {
        let done = self.shared.lock()?.log.append_judged(judge)?;
        self.shared.changed.notify_all();
        Ok(done)
    }

    /// Works on the log itself, as an import does that brings its own batches and its own pass.
    /// Other writers of this handle wait; the facts that it has made are known afterwards.
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

    /// Reads what is known anew if somebody else made a pass since, as the store's watch tells;
    /// says whether somebody did.
    pub fn refresh(&self, watch: &Watch) -> Result<bool, Error> {
        if watch.checkpoint(&self.shared.identity)? == self.known().checkpoint() {
            return Ok(false);
        }
        // A pass of this handle that is under way swaps its own table in.
        let _state = self.shared.lock()?;
        self.shared.swap(read_known(&self.shared.store, &self.shared.identity)?, false);
        Ok(true)
    }

    /// Reads what is known anew if another handle or process made a pass or forgot something since;
    /// says whether one did. For a handle that does not [`Watch`] its store.
    pub fn reload_if_moved(&self) -> Result<bool, Error> {
        self.refresh(&Watch::open(&self.shared.store)?)
    }

    /// Takes note of why the last pass that came by itself failed, if it did. The events behind it
    /// are durable; the next pass tries again.
    pub fn take_pass_error(&self) -> Result<Option<Error>, Error> {
        Ok(self.shared.lock()?.pass_error.take())
    }

    /// Forgets events for good: facts become what they would be had the events never been there.
    pub fn forget(&self, which: &Selection) -> Result<Forgotten, Error> {
        let mut state = self.shared.lock()?;
        let done = state.log.forget(which)?;
        if done.pass.is_some() {
            state.pending = 0;
        }
        self.shared.learn(&mut state, done.pass.as_ref());
        Ok(done)
    }

    /// An error if the log is known not to continue the last signed head, as after an older copy
    /// was put in its place: nothing is appended then. If it was so before, the log is compared
    /// again.
    pub fn check_signed(&self) -> Result<(), Error> {
        self.shared.lock()?.log.check_signed()
    }

    /// Signs a tree head now, over everything that is durable, and hands it out; `None` if there is
    /// no notary.
    pub fn sign_head(&self) -> Result<Option<String>, Error> {
        self.shared.lock()?.log.sign_head()
    }

    /// Takes note of why the last tree head could not be signed, if it could not. The events are
    /// durable; the next pass tries again.
    pub fn take_head_error(&self) -> Result<Option<Error>, Error> {
        Ok(self.shared.lock()?.log.take_head_error())
    }

    /// One pass now; `None` if there is nothing new.
    pub fn consolidate(&self) -> Result<Option<PassReport>, Error> {
        let mut state = self.shared.lock()?;
        self.shared.consolidate(&mut state, Trigger::Manual)
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
        // Intents and decisions feed no fact: a pass that came for them would find nothing new.
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

    /// Swaps in what is known after a pass. The pass is durable: if its facts cannot be read, what
    /// was known before stays, and the error waits to be taken.
    fn learn(&self, state: &mut State, pass: Option<&PassReport>) {
        let Some(pass) = pass else { return };
        match self.after(pass) {
            Ok((next, goes_on)) => self.swap(next, goes_on),
            Err(error) => state.pass_error = Some(error),
        }
    }

    /// Puts a table in place of the last one, which is kept unless something may have been
    /// forgotten in between: then nothing from before stays in memory.
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

    /// What is known after a pass, and whether that pass alone made it out of what was known.
    fn after(&self, pass: &PassReport) -> Result<(FactTable, bool), Error> {
        let (first, last) = (pass.committed.first_seq, pass.committed.last_seq);
        let before = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        let follows = before.checkpoint().next() == first && before.checkpoint().0 > 0;
        match &pass.changed {
            Some(changed) if follows => {
                let next = before.after(last, changed.clone(), &pass.gone)?;
                Ok((next, pass.committed.trigger != Trigger::Forget))
            }
            // If another process made a pass in between, its facts are in the store only.
            _ => Ok((read_known(&self.store, &self.identity)?, false)),
        }
    }
}

fn read_known(store: &Store, identity: &Identity) -> Result<FactTable, Error> {
    let reader = store.reader()?;
    let snapshot = reader.view(identity)?;
    FactTable::read(snapshot.view())
}

/// The thread that waits for quiet. Ends with the last handle.
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
            // A keeper that panicked has nothing left to finish.
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
        let left = match state.pending {
            0 if state.log.owes_head() => Some(Duration::from_micros(HEAD_EVERY.unsigned_abs())),
            0 => None,
            _ => Some(shared.policy.quiet.saturating_sub(state.last_append.elapsed())),
        };
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
            // A pass that fails leaves the events where they are: the next append tries again.
            if let Err(error) = shared.consolidate(&mut state, Trigger::Threshold) {
                state.pass_error = Some(error);
                state.pending = 0;
            }
        }
        state.log.sign_head_if_due();
    }
}
