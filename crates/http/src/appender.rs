//! Appending for many requests at once: one thread for each identity, one commit for whatever waits.
//!
//! **Invariants**
//! - A request is answered only after its events are durable, or with the reason why they are not.
//! - What waits is bounded, by jobs here and by bytes where bodies are read; beyond that a request
//!   is turned away, not kept.
//! - Whatever was taken in is finished before the thread ends.

use ipse_core::Admitted;
use ipse_engine::{Endorsed, Error, Memory, SignatureError};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Requests that may wait for the log.
pub const MAX_WAITING: usize = 256;
/// Events that become durable together, if so many wait.
const MAX_TOGETHER: usize = 4096;

/// What became of one event.
pub use ipse_engine::Appended;

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

/// Why a request's events are not known to be durable.
#[derive(Clone, Debug)]
pub(crate) struct NotDurable(pub(crate) String);

type Answer = Result<Done, NotDurable>;

struct Job {
    events: Vec<Admitted>,
    endorsed: Option<Endorsed>,
    answer: oneshot::Sender<Answer>,
}

/// The door to the thread.
pub(crate) struct Appender {
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
    /// Starts the thread of a memory.
    pub(crate) fn start(memory: Memory) -> Self {
        let (jobs, waiting) = sync_channel(MAX_WAITING);
        let thread = std::thread::spawn(move || run(&memory, &waiting));
        Appender { jobs: Some(jobs), thread: Some(thread) }
    }

    /// Hands events over; the answer comes when they are durable.
    pub(crate) fn append(
        &self,
        events: Vec<Admitted>,
        endorsed: Option<Endorsed>,
    ) -> Result<oneshot::Receiver<Answer>, Turned> {
        let (answer, received) = oneshot::channel();
        let job = Job { events, endorsed, answer };
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

fn run(memory: &Memory, waiting: &Receiver<Job>) {
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
        append(memory, jobs);
        next = next.or_else(|| waiting.recv().ok());
    }
}

fn count(jobs: &[Job]) -> usize {
    jobs.iter().map(|job| job.events.len()).sum()
}

fn append(memory: &Memory, mut jobs: Vec<Job>) {
    let done = match &mut jobs[..] {
        [Job { events, endorsed: Some(endorsed), .. }] => memory.append_signed(events, endorsed),
        jobs => {
            let events = jobs.iter_mut().flat_map(|job| job.events.iter().cloned());
            memory.append_all(&events.collect::<Vec<_>>())
        }
    };
    match done {
        Ok(done) => {
            let (signed, unkept) = (done.signed, done.unkept);
            let mut appended = done.appended.into_iter();
            for job in jobs {
                let appended = appended.by_ref().take(job.events.len()).collect();
                // Whoever asked may have gone; the events are durable all the same.
                let _ = job.answer.send(Ok(Done { appended, signed, unkept }));
            }
        }
        Err(error) => {
            let why = NotDurable(words(&error));
            for job in jobs {
                let _ = job.answer.send(Err(why.clone()));
            }
        }
    }
}

/// An error with its causes.
pub(crate) fn words(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
