//! The state that requests share: the agents of a store, the tokens, and the limits.
//!
//! **Invariants**
//! - An agent is looked up only by the identity in a token.
//! - A revoked token is rejected after at most a second.
//! - Authentication never waits for a writer: uses are recorded, and agents are opened, elsewhere.

use crate::answers::Answers;
use crate::appender::Appender;
pub(crate) use crate::bearer::Bearer;
use crate::body::{AGENT_ROOM_KIB, ROOM_KIB};
use crate::drift::Alarm;
use crate::host::Hosts;
use crate::in_memory::InMemory;
use crate::metrics::{Metrics, Process, ServerMetrics};
use crate::pace::Paces;
use crate::problem::Problem;
use crate::turns::{Line, Turn, Turns};
use ipse_access::{Owner, Role, Token, Tokens};
use ipse_core::{Identity, Time, hex, sha256};
use ipse_door::Salt;
use ipse_engine::{Error, Host, Memory, Watch};
use ipse_gates::Gates;
use ipse_inspect::Look;
use ipse_intents::Desk;
use ipse_store::{Erased, FileBytes, Patience, Store};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Maximum bytes of a token text.
const MAX_TOKEN_BYTES: usize = 256;
/// The time for which a valid token is cached, in microseconds.
const BELIEVED: i64 = 1_000_000;
/// A ready server has read the store within this time, in microseconds.
const READY: u64 = 10_000_000;
/// KiB of large responses that may be unread.
const UNREAD_KIB: usize = 128 << 10;
/// Limits of long reads (pages, explanations, facts of the past): the number at the same time, for
/// the server and for one log; the number that is reserved for operators and auditors; and the
/// number of each rank that may wait for one log.
const LOOKS: usize = 8;
const LOOKS_KEPT: usize = 2;
const AGENT_LOOKS: usize = 4;
const AGENT_LOOKS_KEPT: usize = 1;
const AGENT_LOOKS_WAITING: usize = 32;
/// The same limits for writes that block a thread while they wait for the log: intents with a rate
/// limit, manual passes, forgetting. With reads and bundles they leave half of the threads free.
const WRITES: usize = 16;
const WRITES_KEPT: usize = 4;
const AGENT_WRITES: usize = 3;
const AGENT_WRITES_KEPT: usize = 1;
const AGENT_WRITES_WAITING: usize = 256;
/// Maximum number of open streams, for the server and for one agent. Half of the connections stay
/// free of streams.
const STREAMS: usize = 256;
const AGENT_STREAMS: usize = 64;
/// Maximum number of requests that wait for a decision, for the server and for one agent. With the
/// streams they leave a quarter of the connections to requests that are answered at once.
const WAITS: usize = 128;
const AGENT_WAITS: usize = 32;
/// Maximum number of bundles that are made or sent at the same time, for the server and for one
/// agent. Each uses a file as large as the log.
const BUNDLES: usize = 8;
const AGENT_BUNDLES: usize = 1;

/// The environment of the server, which its caller provides.
pub trait Platform: Send + Sync {
    /// The current time.
    fn now(&self) -> Time;
    /// The time since the server started. It never decreases.
    fn elapsed(&self) -> Duration;
    /// New random bytes.
    fn random(&self) -> [u8; 16];
    /// Opens the memory of an identity of the store.
    fn open(&self, identity: &Identity) -> Result<Memory, Error>;
    /// Writes a bundle of an identity's whole log to a file that is deleted when it is closed. The
    /// error text is for the server log.
    fn bundle(&self, identity: &Identity) -> Result<File, String>;
    /// The gates that the agent's manifest binds it to; `None` if the files were not given.
    fn gates(&self, identity: &Identity) -> Result<Option<Arc<Gates>>, Error>;
    /// The number of intents that one token may propose per minute.
    fn intents_per_minute(&self) -> u64;
    /// Resource usage of the process; `None` if the system does not report it.
    fn process(&self) -> Option<Process> {
        None
    }
    /// Tokens that are valid while the server runs, and are not in the store.
    fn tokens_in_memory(&self) -> Vec<(Owner, Token)> {
        Vec::new()
    }
    /// The `Host` values that the server accepts.
    fn hosts(&self) -> Hosts;
}

/// The clock and the randomness of the platform, as a [`Host`] of the library.
pub(crate) struct Ambient<'o>(pub(crate) &'o dyn Platform);

impl Host for Ambient<'_> {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn salt(&mut self) -> Salt {
        self.0.random()
    }
}

/// One agent of the store.
pub(crate) struct Agent {
    pub(crate) identity: Identity,
    /// The identity as text.
    pub(crate) name: String,
    pub(crate) memory: Memory,
    pub(crate) answers: Answers,
    pub(crate) appender: Appender,
    pub(crate) look: Look,
    pub(crate) metrics: Arc<Metrics>,
    /// Judges intents; `None` if the server has no gate files for this agent.
    pub(crate) desk: Option<Arc<Desk>>,
    /// Long reads of this log, and writes that block a thread.
    pub(crate) looks: Line,
    writes: Line,
    /// Free KiB of memory for bodies of this agent.
    pub(crate) room: Arc<Semaphore>,
    /// Free streams of this agent.
    pub(crate) streams: Arc<Semaphore>,
    /// Free places of this agent for requests that wait for a decision.
    pub(crate) waits: Arc<Semaphore>,
    /// Free bundle slots of this agent.
    pub(crate) bundles: Arc<Semaphore>,
    /// Changes whenever the log may have grown.
    pub(crate) grown: watch::Sender<u64>,
    /// The drift alarm.
    pub(crate) alarm: Alarm,
}

/// The token of a request and the agent that it names.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) agent: Arc<Agent>,
    pub(crate) token: Arc<Token>,
}

impl Caller {
    pub(crate) fn role(&self) -> Role {
        self.token.role
    }

    /// Runs a long read of the log when it gets a turn. Keep the turn until the response is
    /// written: until then the result uses memory.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<(T, Turn), Problem> {
        let (found, turn) = self.agent.looks.run(self.role().into(), work).await?;
        Ok((found?, turn))
    }

    /// Runs a write to the log when it gets a turn.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let (written, _) = self.agent.writes.run(self.role().into(), work).await?;
        Ok(written)
    }
}

/// A valid token, and the time of its lookup.
type CachedToken = (Bearer, Time);

/// The state behind the routes.
pub struct Service {
    store: Store,
    /// Read-only, so it must be dropped before the handles that write: the last handle to close a
    /// store must be able to empty the write-ahead log into it.
    watch: Mutex<Watch>,
    outside: Arc<dyn Platform>,
    agents: RwLock<BTreeMap<Identity, Arc<Agent>>>,
    /// Tokens that are not in the store. Their uses are not recorded.
    in_memory: InMemory,
    /// For token lookups, which never wait for a writer.
    tokens: Mutex<Tokens>,
    /// The cache of valid tokens, by their hash.
    believed: RwLock<BTreeMap<[u8; 32], CachedToken>>,
    /// Tokens whose use is to be recorded, and the handle that does it, which may wait.
    used: Mutex<BTreeMap<[u8; 32], Bearer>>,
    noting: Mutex<Tokens>,
    /// The time of the last successful read of the store, in microseconds since the server started.
    seen: AtomicU64,
    closing: watch::Sender<bool>,
    /// Free KiB of memory for bodies.
    pub(crate) room: Arc<Semaphore>,
    /// Free KiB for large unread responses.
    pub(crate) unread: Arc<Semaphore>,
    /// Long reads of logs, and writes that block a thread, of all agents.
    looks: Arc<Turns>,
    writes: Arc<Turns>,
    /// Free streams.
    pub(crate) streams: Arc<Semaphore>,
    /// Free places for requests that wait for a decision.
    pub(crate) waits: Arc<Semaphore>,
    /// Free bundle slots.
    pub(crate) bundles: Arc<Semaphore>,
    pub(crate) metrics: ServerMetrics,
    /// The rate limits of intents.
    pub(crate) paces: Paces,
    /// The `Host` values that the server accepts.
    pub(crate) hosts: Hosts,
    /// The prefix of request ids of this process, and the number of requests.
    session: String,
    requests: AtomicU64,
}

impl Service {
    /// Opens the logs of all agents of a store.
    pub fn open(store: &Store, outside: Arc<dyn Platform>) -> Result<Arc<Self>, Error> {
        let (tokens, noting) = (Mutex::new(Tokens::open(store)?), Mutex::new(Tokens::open(store)?));
        let service = Service {
            store: store.clone(),
            session: hex::encode(&outside.random()[..8]),
            paces: Paces::of(outside.intents_per_minute()),
            hosts: outside.hosts(),
            in_memory: InMemory(outside.tokens_in_memory()),
            outside,
            agents: RwLock::default(),
            tokens,
            believed: RwLock::default(),
            used: Mutex::default(),
            noting,
            watch: Mutex::new(Watch::open(store)?),
            seen: AtomicU64::new(0),
            closing: watch::Sender::new(false),
            room: Arc::new(Semaphore::new(ROOM_KIB)),
            unread: Arc::new(Semaphore::new(UNREAD_KIB)),
            looks: Arc::new(Turns::new(LOOKS, LOOKS_KEPT)),
            writes: Arc::new(Turns::new(WRITES, WRITES_KEPT)),
            streams: Arc::new(Semaphore::new(STREAMS)),
            waits: Arc::new(Semaphore::new(WAITS)),
            bundles: Arc::new(Semaphore::new(BUNDLES)),
            metrics: ServerMetrics::new(),
            requests: AtomicU64::new(0),
        };
        service.look()?;
        Ok(Arc::new(service))
    }

    pub(crate) fn outside(&self) -> &dyn Platform {
        &*self.outside
    }

    /// The unique name of this process.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// A unique name for a request.
    pub(crate) fn request_id(&self) -> String {
        format!("{}{:016x}", self.session, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Starts the shutdown: ends streams and waiting connections.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Becomes true when the server shuts down.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Adds to the number of open connections.
    pub(crate) fn connected(&self, more: i64) {
        self.metrics.connections.inc_by(more);
    }

    /// The sizes of the files of the store.
    pub(crate) fn file_bytes(&self) -> FileBytes {
        self.store.file_bytes()
    }

    /// The number of open streams, and of requests that wait for a decision.
    pub(crate) fn held_open(&self) -> [usize; 2] {
        [STREAMS - self.streams.available_permits(), WAITS - self.waits.available_permits()]
    }

    /// The number of agents.
    pub fn agent_count(&self) -> usize {
        self.agents().len()
    }

    /// Whether the store has any valid token.
    pub fn has_tokens(&self) -> Result<bool, Error> {
        if !self.in_memory.is_empty() {
            return Ok(true);
        }
        let tokens = self.tokens.lock().map_err(|_| Error::Poisoned)?;
        Ok(tokens.any_live(self.outside.now())?)
    }

    /// Periodic work outside of requests: opens new agents, reads the changes of other processes,
    /// records uses of tokens, and logs errors of background work.
    ///
    /// After an error the server must stop: the store was removed, replaced or emptied, and the
    /// state of this process is no longer valid.
    pub fn refresh(&self) -> Result<(), Error> {
        match self.look() {
            Err(error) if error.is_gone() => return Err(error),
            Err(error) => tracing::warn!(%error, "the store could not be read"),
            Ok(()) => {}
        }
        for agent in self.agents() {
            agent.tell_errors();
            if let Some(gone) = agent.appender.take_gone() {
                return Err(gone);
            }
            if agent.appender.is_broken() {
                self.open_anew(&agent);
            } else if agent.appender.is_rolled_back() {
                agent.check_signed();
            }
        }
        self.note_uses();
        Ok(())
    }

    /// Computes the drift alarms of agents whose facts changed. Call it from a thread that may
    /// block, at intervals.
    pub fn watch_drift(&self) {
        for agent in self.agents() {
            agent.watch_drift(|| self.outside.elapsed());
        }
    }

    /// Opens a log again after a failed write. Until that succeeds, the old facts are served, and
    /// the server is not ready.
    fn open_anew(&self, broken: &Agent) {
        let identity = broken.identity;
        match self.opened(identity) {
            Ok(agent) => {
                let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
                agents.insert(identity, Arc::new(agent));
                drop(agents);
                self.believed.write().unwrap_or_else(PoisonError::into_inner).clear();
                tracing::warn!(%identity, "the log was opened again after a failed write");
            }
            Err(error) if error.is_rolled_back() => broken.failed(&error),
            Err(error) => tracing::warn!(%identity, %error, "the log cannot be opened again yet"),
        }
    }

    /// Tries to erase forgotten content whose erasure is pending.
    fn erase(&self, watch: &Watch) -> Result<(), Error> {
        if !watch.erase_pending()? {
            return Ok(());
        }
        match self.store.finish_erasing(Patience::None)? {
            Erased::Pending => {
                tracing::warn!("forgotten bytes are still in the store: another process reads it");
            }
            Erased::Gone => tracing::info!("forgotten bytes are gone from the store"),
        }
        Ok(())
    }

    /// Reads the changes that other processes made to the store.
    fn look(&self) -> Result<(), Error> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut followed = Ok(());
        for identity in watch.changed()? {
            if let Err(error) = self.follow(identity, &watch) {
                watch.again(&identity);
                followed = Err(error);
            }
        }
        followed?;
        self.erase(&watch)?;
        self.seen.store(self.micros(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns an error unless the store was readable a moment ago, and every log accepts events.
    pub(crate) fn ready(&self) -> Result<(), Problem> {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        if agents.values().any(|agent| agent.appender.is_rolled_back()) {
            return Err(Problem::rolled_back());
        }
        let whole = !agents.values().any(|agent| agent.appender.is_broken());
        let seen = self.micros().saturating_sub(self.seen.load(Ordering::Relaxed)) < READY;
        let detail = "the store cannot be read, or a log does not accept events";
        if whole && seen { Ok(()) } else { Err(Problem::unavailable("not_ready", detail)) }
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.outside.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn note_uses(&self) {
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        let mut noting = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        for guest in used.into_values() {
            let noted = noting.note_use(guest.owner(), guest.token(), self.outside.now());
            if let Err(error) = noted {
                let token_id = guest.token().id;
                tracing::warn!(%error, %token_id, "a use of a token could not be recorded");
            }
        }
    }

    /// Reads the changes of a log, or opens it if it is new.
    fn follow(&self, identity: Identity, watch: &Watch) -> Result<(), Error> {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let served = agents.get(&identity).cloned();
        drop(agents);
        if let Some(agent) = served {
            return agent.refresh(watch, self.outside.elapsed());
        }
        let agent = Arc::new(self.opened(identity)?);
        let mut agents = self.agents.write().unwrap_or_else(PoisonError::into_inner);
        agents.insert(identity, agent);
        Ok(())
    }

    fn opened(&self, identity: Identity) -> Result<Agent, Error> {
        let memory = self.outside.open(&identity)?;
        let (grown, metrics) = (watch::Sender::new(0), Arc::new(Metrics::new()));
        metrics.renewed(self.outside.elapsed());
        let (moved, counted, outside) = (grown.clone(), metrics.clone(), self.outside.clone());
        memory.subscribe(move |pass| {
            tracing::debug!(%identity, trigger = pass.trigger.name(), last_seq = pass.last_seq.0,
                rows_touched = pass.rows_touched, "a pass is durable");
            counted.passed(pass);
            counted.renewed(outside.elapsed());
            moved.send_modify(|times| *times += 1);
        })?;
        let appender = Appender::start(memory.clone(), identity);
        let look = Look::at(&self.store, identity);
        let (name, answers) = (identity.to_string(), Answers::default());
        let room = Arc::new(Semaphore::new(AGENT_ROOM_KIB));
        let streams = Arc::new(Semaphore::new(AGENT_STREAMS));
        let waits = Arc::new(Semaphore::new(AGENT_WAITS));
        let gates = self.outside.gates(&identity)?;
        let desk = gates.map(|gates| Arc::new(Desk::new(memory.clone(), look.clone(), gates)));
        let bundles = Arc::new(Semaphore::new(AGENT_BUNDLES));
        let looks = Line::new(AGENT_LOOKS, AGENT_LOOKS_KEPT, AGENT_LOOKS_WAITING, &self.looks);
        let writes = Line::new(AGENT_WRITES, AGENT_WRITES_KEPT, AGENT_WRITES_WAITING, &self.writes);
        Ok(Agent {
            identity,
            name,
            memory,
            answers,
            appender,
            look,
            metrics,
            desk,
            looks,
            writes,
            room,
            streams,
            waits,
            bundles,
            grown,
            alarm: Alarm::default(),
        })
    }

    /// All agents.
    pub(crate) fn agents(&self) -> Vec<Arc<Agent>> {
        self.agents.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Looks up the token of a request.
    pub(crate) fn admit(&self, text: &str) -> Result<Bearer, Problem> {
        let now = self.outside.now();
        if text.len() > MAX_TOKEN_BYTES {
            return Err(Problem::unauthorized());
        }
        let hash = sha256(&[text.as_bytes()]);
        let believed = self.believed.read().unwrap_or_else(PoisonError::into_inner);
        // A lookup by hash: its duration reveals nothing about the text.
        if let Some((guest, at)) = believed.get(&hash)
            && is_fresh(*at, now)
            && guest.token().lets_in(&hash, now)
        {
            return Ok(guest.clone());
        }
        drop(believed);
        let found = match self.in_memory.valid(&hash, now) {
            Some(found) => Ok(found),
            None => {
                let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
                tokens.admit(text, now).map_err(Error::from)?
            }
        };
        // Unknown, expired and revoked tokens get the same response.
        let (owner, token) = found.map_err(|_| Problem::unauthorized())?;
        let guest = match owner {
            Owner::Store => Bearer::Observer(Arc::new(token)),
            Owner::Identity(identity) => {
                let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
                let agent = agents.get(&identity).cloned().ok_or_else(|| {
                    let detail = "this agent's log is being opened; try again";
                    Problem::unavailable("not_open_yet", detail)
                })?;
                Bearer::Caller(Caller { agent, token: Arc::new(token) })
            }
        };
        self.believe(hash, guest.clone(), now);
        Ok(guest)
    }

    /// Whether the caller's handle on its log is still current. It is replaced after a failed
    /// write, and then gets no more updates.
    pub(crate) fn is_served(&self, caller: &Caller) -> bool {
        let agents = self.agents.read().unwrap_or_else(PoisonError::into_inner);
        let served = agents.get(&caller.agent.identity);
        served.is_some_and(|agent| Arc::ptr_eq(agent, &caller.agent))
    }

    /// Whether the token of a caller is still valid, and its handle on the log is current.
    pub(crate) fn is_welcome(&self, caller: &Caller) -> Result<bool, Error> {
        if !self.is_served(caller) {
            return Ok(false);
        }
        if self.in_memory.holds(&caller.token) {
            return Ok(true);
        }
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(tokens.is_live(&caller.agent.identity, &caller.token.id, self.outside.now())?)
    }

    fn believe(&self, hash: [u8; 32], guest: Bearer, now: Time) {
        if guest.token().use_is_due(now) && !self.in_memory.holds(guest.token()) {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.insert(hash, guest.clone());
        }
        let mut believed = self.believed.write().unwrap_or_else(PoisonError::into_inner);
        believed.retain(|_, (_, at)| is_fresh(*at, now));
        believed.insert(hash, (guest, now));
    }
}

fn is_fresh(at: Time, now: Time) -> bool {
    (0..BELIEVED).contains(&(now.micros() - at.micros()))
}

impl Agent {
    /// Reads the changes of the log, and wakes its streams and waiting requests.
    fn refresh(&self, watch: &Watch, now: Duration) -> Result<(), Error> {
        if self.memory.refresh(watch)? {
            self.metrics.renewed(now);
        }
        if !self.appender.is_broken() {
            self.check_signed();
        }
        self.grown.send_modify(|times| *times += 1);
        Ok(())
    }

    /// Logs errors of background work.
    fn tell_errors(&self) {
        let identity = self.identity;
        let [pass, head] = [self.memory.take_pass_error(), self.memory.take_head_error()];
        for (what, error) in [("a pass failed", pass), ("a tree head was not signed", head)] {
            match error {
                Ok(Some(error)) if error.is_rolled_back() => self.failed(&error),
                Ok(Some(error)) | Err(error) => tracing::warn!(%identity, %error, "{what}"),
                Ok(None) => {}
            }
        }
    }

    /// Checks and records whether the log continues the last signed tree head.
    fn check_signed(&self) {
        let identity = self.identity;
        match self.memory.check_signed() {
            Ok(()) => self.appender.goes_on(&identity),
            Err(error) if error.is_rolled_back() => self.failed(&error),
            Err(error) => tracing::warn!(%identity, %error, "the tree head could not be checked"),
        }
    }

    /// Records the error of a write.
    pub(crate) fn failed(&self, error: &Error) {
        self.appender.failed(&self.identity, error);
    }
}
