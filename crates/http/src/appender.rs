//! Appending for many requests at once: one thread for each log, one commit for whatever waits.
//!
//! **Invariants**
//! - A request is answered only after its events are durable, or with the reason why they are not.
//! - What waits is bounded, by jobs here and by bytes where bodies are read; beyond that a request
//!   is turned away, not kept.
//! - Whatever was taken in is finished before the thread ends.

use ipse_core::{Admitted, Identity};
use ipse_engine::{Appended, Endorsed, Memory, SignatureError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Requests that may wait for the log.
const MAX_WAITING: usize = 256;
/// Events that become durable together, if so many wait.
const MAX_TOGETHER: usize = 4096;

/// What became of a request's events.
#[derive(Debug)]
pub(crate) struct Done {
    /// Each event, in order.
    pub(crate) appended: Vec<Appended>,
    /// How many stand in the log under the producer's signature.
    pub(crate) signed: u64,
    /// Why a signature that was given counts for nothing after all.
    pub(crate) unkept: Option<SignatureError>,
}

/// A request's events are not known to be durable. Why is for the log of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NotDurable;

type Answer = Result<Done, NotDurable>;

struct Job {
    /// How many events it has.
    count: usize,
    events: Vec<Admitted>,
    endorsed: Option<Endorsed>,
    answer: oneshot::Sender<Answer>,
}

/// The door to the thread.
pub(crate) struct Appender {
    /// Whether something could not be made durable: the log has to be opened anew.
    broken: Arc<AtomicBool>,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// Why a job was not taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turned {
    /// Too many wait.
    Full,
    /// Nobody appends any more.
    Closed,
}

impl Appender {
    /// Starts the thread of an identity's memory.
    pub(crate) fn start(memory: Memory, identity: Identity) -> Self {
        let (jobs, waiting) = sync_channel(MAX_WAITING);
        let broken = Arc::new(AtomicBool::new(false));
        let mark = broken.clone();
        let thread = std::thread::spawn(move || run(&memory, &identity, &waiting, &mark));
        Appender { broken, jobs: Some(jobs), thread: Some(thread) }
    }

    /// Whether the log has to be opened anew before anything can be appended.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Has the log opened anew, as something could not be written.
    pub(crate) fn breaks(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Hands events over; the answer comes when they are durable.
    pub(crate) fn append(
        &self,
        events: Vec<Admitted>,
        endorsed: Option<Endorsed>,
    ) -> Result<oneshot::Receiver<Answer>, Turned> {
        let (answer, received) = oneshot::channel();
        let job = Job { count: events.len(), events, endorsed, answer };
        let jobs = self.jobs.as_ref().ok_or(Turned::Closed)?;
        match jobs.try_send(job) {
            Ok(()) => Ok(received),
            Err(TrySendError::Full(_)) => Err(Turned::Full),
            Err(TrySendError::Disconnected(_)) => Err(Turned::Closed),
        }
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has answered nobody; its requests end with an error.
            let _ = thread.join();
        }
    }
}

fn run(memory: &Memory, identity: &Identity, waiting: &Receiver<Job>, broken: &AtomicBool) {
    let mut next = waiting.recv().ok();
    while let Some(first) = next.take() {
        let mut jobs = vec![first];
        // What is signed goes alone: a signature is kept with all of its events or not at all.
        while jobs[0].endorsed.is_none() && count(&jobs) < MAX_TOGETHER {
            let Ok(job) = waiting.try_recv() else { break };
            if job.endorsed.is_some() {
                next = Some(job);
                break;
            }
            jobs.push(job);
        }
        append(memory, identity, jobs, broken);
        next = next.or_else(|| waiting.recv().ok());
    }
}

fn count(jobs: &[Job]) -> usize {
    jobs.iter().map(|job| job.count).sum()
}

fn append(memory: &Memory, identity: &Identity, mut jobs: Vec<Job>, broken: &AtomicBool) {
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
                // Whoever asked may have gone; the events are durable all the same.
                let _ = job.answer.send(Ok(Done { appended, signed, unkept }));
            }
        }
        Err(error) => {
            tracing::error!(%identity, %error, "events could not be appended");
            broken.store(true, Ordering::Relaxed);
            for job in jobs {
                let _ = job.answer.send(Err(NotDurable));
            }
        }
    }
}
