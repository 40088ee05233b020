//! Group commit: one thread for each log appends the events of all waiting requests in one commit.
//!
//! **Invariants**
//! - A request is answered only after its events are durable, or with the reason why they are not.
//! - The queue is bounded, by jobs here and by bytes where bodies are read. Further requests are
//!   rejected.
//! - All queued jobs are finished before the thread ends.
//! - A log that was rolled back is logged once, not once for each rejected request.

use ipse_core::{Admitted, Identity};
use ipse_engine::{Appended, Error, Memory, SignatureError, SignedBatch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Maximum number of requests that wait for the log.
const MAX_WAITING: usize = 256;
/// Events after which no further job is added to a commit.
const MAX_TOGETHER: usize = 4096;

/// The result of appending a request's events.
#[derive(Debug)]
pub(crate) struct AppendResult {
    /// The result of each event, in order.
    pub(crate) appended: Vec<Appended>,
    /// The number of events that are stored under the producer's signature.
    pub(crate) signed: u64,
    /// The reason why the signature was rejected after all.
    pub(crate) unkept: Option<SignatureError>,
}

/// A request's events are not known to be durable. The server log has the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotDurable {
    /// They may be stored or not.
    Unsure,
    /// They are not stored: the log does not continue the last signed tree head.
    RolledBack,
}

type Answer = Result<AppendResult, NotDurable>;

struct Job {
    /// The number of events.
    count: usize,
    events: Vec<Admitted>,
    endorsed: Option<SignedBatch>,
    answer: oneshot::Sender<Answer>,
}

/// The errors of a log.
#[derive(Default)]
struct State {
    /// Whether a write failed: the log has to be opened again.
    broken: AtomicBool,
    /// The error of an append to a store that is gone. Opening the log again may not return it.
    gone: Mutex<Option<Error>>,
    /// Whether the log does not continue the last signed tree head.
    rolled_back: AtomicBool,
}

impl State {
    fn failed(&self, identity: &Identity, error: &Error) -> NotDurable {
        if !error.is_rolled_back() {
            tracing::error!(%identity, %error, "events could not be appended");
            if let Some(gone) = error.gone() {
                *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = Some(gone);
            }
            self.broken.store(true, Ordering::Relaxed);
            return NotDurable::Unsure;
        }
        if !self.rolled_back.swap(true, Ordering::Relaxed) {
            tracing::error!(%identity, %error, "the log was rolled back: appends are rejected");
        }
        NotDurable::RolledBack
    }
}

/// A handle on the thread.
pub(crate) struct Appender {
    state: Arc<State>,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// The reason why a job was not queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueueError {
    /// The queue is full.
    Full,
    /// The thread has ended.
    Closed,
}

impl Appender {
    /// Starts the thread that appends to an identity's log.
    pub(crate) fn start(memory: Memory, identity: Identity) -> Self {
        let (jobs, waiting) = sync_channel(MAX_WAITING);
        let state = Arc::new(State::default());
        let shared = state.clone();
        let thread = std::thread::spawn(move || run(&memory, &identity, &waiting, &shared));
        Appender { state, jobs: Some(jobs), thread: Some(thread) }
    }

    /// Whether the log has to be opened again before events can be appended.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.broken.load(Ordering::Relaxed)
    }

    /// The error of an append that found the store gone. The server must then stop.
    pub(crate) fn take_gone(&self) -> Option<Error> {
        self.state.gone.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the log does not continue the last signed tree head.
    pub(crate) fn is_rolled_back(&self) -> bool {
        self.state.rolled_back.load(Ordering::Relaxed)
    }

    /// Records the error of a write. The log is opened again later, unless it was rolled back.
    pub(crate) fn failed(&self, identity: &Identity, error: &Error) -> NotDurable {
        self.state.failed(identity, error)
    }

    /// Records that the log continues the last signed tree head.
    pub(crate) fn goes_on(&self, identity: &Identity) {
        if self.state.rolled_back.swap(false, Ordering::Relaxed) {
            tracing::info!(%identity, "the log continues the last signed tree head again");
        }
    }

    /// Queues events. The receiver gets the result when they are durable.
    pub(crate) fn append(
        &self,
        events: Vec<Admitted>,
        endorsed: Option<SignedBatch>,
    ) -> Result<oneshot::Receiver<Answer>, QueueError> {
        let (answer, received) = oneshot::channel();
        let job = Job { count: events.len(), events, endorsed, answer };
        let jobs = self.jobs.as_ref().ok_or(QueueError::Closed)?;
        match jobs.try_send(job) {
            Ok(()) => Ok(received),
            Err(TrySendError::Full(_)) => Err(QueueError::Full),
            Err(TrySendError::Disconnected(_)) => Err(QueueError::Closed),
        }
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its requests get an error: their channels are closed.
            let _ = thread.join();
        }
    }
}

fn run(memory: &Memory, identity: &Identity, waiting: &Receiver<Job>, state: &State) {
    let mut next = waiting.recv().ok();
    while let Some(first) = next.take() {
        let mut jobs = vec![first];
        // A signed batch is committed alone: a signature is stored with all its events or not at
        // all.
        while jobs[0].endorsed.is_none() && count(&jobs) < MAX_TOGETHER {
            let Ok(job) = waiting.try_recv() else { break };
            if job.endorsed.is_some() {
                next = Some(job);
                break;
            }
            jobs.push(job);
        }
        append(memory, identity, jobs, state);
        next = next.or_else(|| waiting.recv().ok());
    }
}

fn count(jobs: &[Job]) -> usize {
    jobs.iter().map(|job| job.count).sum()
}

fn append(memory: &Memory, identity: &Identity, mut jobs: Vec<Job>, state: &State) {
    let done = match &mut jobs[..] {
        [Job { events, endorsed: Some(endorsed), .. }] => memory.append_signed(events, endorsed),
        jobs => {
            let events = jobs.iter_mut().flat_map(|job| job.events.drain(..));
            memory.append_all(&events.collect::<Vec<_>>())
        }
    };
    match done {
        Ok(done) => {
            if let Some(error) = done.pass_error {
                tracing::warn!(%identity, %error, "a pass failed; the events are durable");
            }
            let (signed, unkept) = (done.signed, done.unkept);
            let mut appended = done.appended.into_iter();
            for job in jobs {
                let appended = appended.by_ref().take(job.count).collect();
                // The client may be gone; the events are durable anyway.
                let unkept = unkept.clone();
                let _ = job.answer.send(Ok(AppendResult { appended, signed, unkept }));
            }
        }
        Err(error) => {
            let why = state.failed(identity, &error);
            for job in jobs {
                let _ = job.answer.send(Err(why));
            }
        }
    }
}
