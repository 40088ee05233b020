//! `GET /metrics`: the metrics of the server and its agents.
//!
//! **Invariants**
//! - A caller gets the metrics of the server and of the agent in its token, and of no other agent.
//! - An observer gets the metrics of the server and of all agents, labelled with the identity.

use crate::exposition::{self, Family as Shown, Format};
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::Route;
use crate::service::{Agent, Caller, Service};
use crate::{away, text};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{ACCEPT, HeaderMap, HeaderValue, VARY};
use axum::response::Response;
use ipse_engine::PassCommitted;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// The value of an alarm that is not watched.
const UNWATCHED: u8 = 2;
/// The label with the identity, for observers.
const IDENTITY: &str = "identity";
/// Histogram buckets in seconds: from a read of the snapshot to a slow disk.
const SECONDS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0,
    5.0,
];

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct ResponseLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Result {
    result: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Trigger {
    trigger: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct StoreFile {
    file: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Verdict {
    verdict: &'static str,
}

type Seconds = Family<RequestLabels, Histogram, fn() -> Histogram>;

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

/// The metrics of one agent.
pub(crate) struct Metrics {
    registry: Registry,
    answers: Family<ResponseLabels, Counter>,
    latency: Seconds,
    events: Family<Result, Counter>,
    intents: Family<Verdict, Counter>,
    durable: Histogram,
    queue: Gauge,
    passes: Family<Trigger, Counter>,
    rows_touched: Counter,
    log_size: Gauge,
    tree_size: Gauge,
    checkpoint: Gauge,
    facts: Gauge,
    /// The drift alarm: off, on, or [`UNWATCHED`].
    drift: AtomicU8,
    snapshot_age: Gauge<f64, AtomicU64>,
    /// The time when facts were last renewed, in microseconds since the server started.
    renewed: AtomicU64,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("ipse"),
            answers: Family::default(),
            latency: Family::new_with_constructor(seconds),
            events: Family::default(),
            intents: Family::default(),
            durable: seconds(),
            queue: Gauge::default(),
            passes: Family::default(),
            rows_touched: Counter::default(),
            log_size: Gauge::default(),
            tree_size: Gauge::default(),
            checkpoint: Gauge::default(),
            facts: Gauge::default(),
            drift: AtomicU8::new(UNWATCHED),
            snapshot_age: Gauge::default(),
            renewed: AtomicU64::new(0),
        };
        metrics.register();
        // Start counters at zero, so that their first increment is visible.
        for result in ["appended", "duplicate", "conflict", "refused"] {
            metrics.events(result, 0);
        }
        for trigger in ["startup", "threshold", "manual", "forget"] {
            metrics.passes.get_or_create(&Trigger { trigger }).inc_by(0);
        }
        metrics
    }

    fn register(&mut self) {
        let all = &mut self.registry;
        all.register("requests", "Requests by route and status", self.answers.clone());
        let latency = self.latency.clone();
        let help = "Duration of a request without its authorisation";
        all.register_with_unit("request", help, Unit::Seconds, latency);
        all.register("events", "Events that producers sent, by result", self.events.clone());
        all.register("intents", "Intents that were judged, by verdict", self.intents.clone());
        let help = "Time that a request waited until its events were durable";
        all.register_with_unit("append", help, Unit::Seconds, self.durable.clone());
        all.register("queue", "Requests that wait for the log", self.queue.clone());
        all.register("passes", "Passes of this process, by trigger", self.passes.clone());
        let help = "Facts that passes of this process changed or removed";
        all.register("rows_touched", help, self.rows_touched.clone());
        all.register("log_size", "Events in the log: its last seq", self.log_size.clone());
        let help = "Events under the newest signed tree head";
        all.register("tree_size", help, self.tree_size.clone());
        let help = "Checkpoint of the snapshot";
        all.register("checkpoint", help, self.checkpoint.clone());
        all.register("facts", "Facts in the snapshot", self.facts.clone());
        let help = "Time since the snapshot was renewed";
        all.register_with_unit("snapshot_age", help, Unit::Seconds, self.snapshot_age.clone());
    }

    /// Counts a response.
    pub(crate) fn answered(&self, route: &'static Route, status: StatusCode, took: Duration) {
        let (method, route) = (route.method.as_str(), route.path);
        self.answers
            .get_or_create(&ResponseLabels { method, route, status: status.as_u16() })
            .inc();
        self.latency.get_or_create(&RequestLabels { method, route }).observe(took.as_secs_f64());
    }

    /// Counts events of a request with this result.
    pub(crate) fn events(&self, result: &'static str, count: u64) {
        self.events.get_or_create(&Result { result }).inc_by(count);
    }

    /// Counts an intent with this verdict.
    pub(crate) fn judged(&self, verdict: &'static str) {
        self.intents.get_or_create(&Verdict { verdict }).inc();
    }

    /// Counts a request that waits for the log, until the guard is dropped.
    pub(crate) fn waits(&self) -> WaitGuard<'_> {
        self.queue.inc();
        WaitGuard(&self.queue)
    }

    /// Records the time that a request waited for the log.
    pub(crate) fn waited(&self, long: Duration) {
        self.durable.observe(long.as_secs_f64());
    }

    /// Counts a durable pass.
    pub(crate) fn passed(&self, pass: &PassCommitted) {
        self.passes.get_or_create(&Trigger { trigger: pass.trigger.name() }).inc();
        self.rows_touched.inc_by(pass.rows_touched);
    }

    /// Records the drift alarm; `None` if the rules are not watched.
    pub(crate) fn drift(&self, alarm: Option<bool>) {
        self.drift.store(alarm.map_or(UNWATCHED, u8::from), Ordering::Relaxed);
    }

    /// All families. The alarm is one of them only if it is watched.
    fn families(&self) -> std::result::Result<Vec<Shown>, Problem> {
        let mut families = written(&self.registry)?;
        let help = "1 if the success rates of the last week left those of the weeks before.";
        let alarm = Some(self.drift.load(Ordering::Relaxed)).filter(|alarm| *alarm != UNWATCHED);
        families.extend(alarm.map(|alarm| Shown::gauge("ipse_drift", help, alarm)));
        Ok(families)
    }

    /// Records that facts were renewed.
    pub(crate) fn renewed(&self, now: Duration) {
        self.renewed.store(micros(now), Ordering::Relaxed);
    }

    /// Updates the gauges that are read on demand.
    fn look(&self, agent: &Agent, now: Duration) -> std::result::Result<(), ipse_engine::Error> {
        let heads = agent.look.heads()?;
        let known = agent.memory.known();
        let signed = heads.signed.map_or(0, |signed| signed.size);
        set(&self.log_size, heads.head.0);
        set(&self.tree_size, signed);
        set(&self.checkpoint, known.checkpoint().0);
        set(&self.facts, known.len() as u64);
        let age = micros(now).saturating_sub(self.renewed.load(Ordering::Relaxed));
        self.snapshot_age.set(Duration::from_micros(age).as_secs_f64());
        Ok(())
    }
}

/// Counts a waiting request until it is dropped.
pub(crate) struct WaitGuard<'m>(&'m Gauge);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The metrics of the server as a whole.
pub(crate) struct ServerMetrics {
    registry: Registry,
    /// The build info. It has another prefix.
    build: Registry,
    pub(crate) connections: Gauge,
    pub(crate) turned_away: Counter,
    pub(crate) closed: Counter,
    uptime: Gauge<f64, AtomicU64>,
    streams: Gauge,
    waits: Gauge,
    store_bytes: Family<StoreFile, Gauge>,
}

impl ServerMetrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("ipse_server");
        let (connections, turned_away) = (Gauge::default(), Counter::default());
        let (closed, uptime) = (Counter::default(), Gauge::default());
        let (streams, waits) = (Gauge::default(), Gauge::default());
        let store_bytes = Family::<StoreFile, Gauge>::default();
        registry.register("connections", "Connections that are open", connections.clone());
        let help = "Requests without a valid token";
        registry.register("unauthorized", help, turned_away.clone());
        let help = "Connections closed because all places were taken";
        registry.register("closed_connections", help, closed.clone());
        let help = "Time since the server started";
        registry.register_with_unit("uptime", help, Unit::Seconds, uptime.clone());
        registry.register("streams", "Streams that are open", streams.clone());
        let help = "Requests that wait for a decision about an intent";
        registry.register("waiting_requests", help, waits.clone());
        let help = "Bytes of the store and of its write-ahead log";
        registry.register_with_unit("store", help, Unit::Bytes, store_bytes.clone());
        let mut build = Registry::with_prefix("ipse");
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        build.register("build", "The version of this server", version);
        ServerMetrics {
            registry,
            build,
            connections,
            turned_away,
            closed,
            uptime,
            streams,
            waits,
            store_bytes,
        }
    }

    /// Updates the gauges that are read on demand.
    fn look(&self, service: &Service) {
        self.uptime.set(service.outside().elapsed().as_secs_f64());
        let [streams, waits] = service.held_open();
        set(&self.streams, streams as u64);
        set(&self.waits, waits as u64);
        let bytes = service.file_bytes();
        for (file, bytes) in [("store", bytes.store), ("wal", bytes.wal)] {
            set(&self.store_bytes.get_or_create(&StoreFile { file }), bytes);
        }
    }

    /// The metrics of the server and of its process.
    fn families(&self, process: Option<Process>) -> std::result::Result<Vec<Shown>, Problem> {
        let mut families = written(&self.registry)?;
        families.extend(written(&self.build)?);
        families.extend(process.iter().flat_map(Process::families));
        Ok(families)
    }
}

/// Resource usage of the process, with the metric names that Prometheus defines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Process {
    /// CPU time of all threads.
    pub cpu_seconds: f64,
    /// Resident memory.
    pub resident_bytes: u64,
    /// Virtual memory.
    pub virtual_bytes: u64,
    /// Open file descriptors.
    pub open_fds: u64,
    /// Maximum number of open file descriptors.
    pub max_fds: u64,
    /// Start time of the process, in seconds since 1970.
    pub start_seconds: f64,
}

impl Process {
    fn families(&self) -> [Shown; 6] {
        [
            Shown::counter("process_cpu_seconds", "CPU time in seconds.", self.cpu_seconds),
            Shown::gauge(
                "process_resident_memory_bytes",
                "Resident memory in bytes.",
                self.resident_bytes,
            ),
            Shown::gauge(
                "process_virtual_memory_bytes",
                "Virtual memory in bytes.",
                self.virtual_bytes,
            ),
            Shown::gauge("process_open_fds", "Open file descriptors.", self.open_fds),
            Shown::gauge("process_max_fds", "Maximum open file descriptors.", self.max_fds),
            Shown::gauge(
                "process_start_time_seconds",
                "Start of the process in seconds since 1970.",
                self.start_seconds,
            ),
        ]
    }
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
}

fn written(registry: &Registry) -> std::result::Result<Vec<Shown>, Problem> {
    let mut page = String::new();
    encode_registry(&mut page, registry).map_err(|_| Problem::internal())?;
    Ok(Shown::parse(&page))
}

pub(crate) async fn metrics(
    State(service): State<Arc<Service>>,
    caller: Option<Extension<Caller>>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> std::result::Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let format = accepted(&headers);
    // Only an observer has no agent.
    let shown = match caller {
        Some(Extension(caller)) => Scope::Agent(caller.agent),
        None => Scope::Server(service.agents()),
    };
    let families = away(move || families(&service, &shown)).await??;
    let mut response = text(format.media_type(), exposition::page(&families, format));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// The agents whose metrics are shown.
enum Scope {
    Agent(Arc<Agent>),
    Server(Vec<Arc<Agent>>),
}

fn families(service: &Service, scope: &Scope) -> std::result::Result<Vec<Shown>, Problem> {
    service.metrics.look(service);
    let mut families = service.metrics.families(service.outside().process())?;
    let now = service.outside().elapsed();
    let of_agent = |agent: &Agent| {
        agent.metrics.look(agent, now)?;
        agent.metrics.families()
    };
    match scope {
        Scope::Agent(agent) => families.extend(of_agent(agent)?),
        Scope::Server(agents) => {
            let pages = agents.iter().map(|agent| Ok((agent.name.clone(), of_agent(agent)?)));
            let pages = pages.collect::<std::result::Result<_, Problem>>()?;
            families.extend(Shown::merged(IDENTITY, pages));
        }
    }
    Ok(families)
}

/// The format that a request accepts.
fn accepted(headers: &HeaderMap) -> Format {
    let given = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    Format::accepted(&given.collect::<Vec<_>>().join(","))
}
