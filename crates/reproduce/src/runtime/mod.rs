//! G: the cost of a pass, from 10² to 10⁶ events.
//!
//! Two streams: the two skills of V3, as in the paper, and one with a thousand keys.
//!
//! **Invariants**
//! - The timer covers exactly one pass, including its durable commit. Each pass runs on its own
//!   copy of a store that was closed and synced before.
//! - Clock and memory gauge are arguments. No test result depends on a measured time.
//! - Facts are counted, and requests answered, from the table that planners read. Requests over
//!   HTTP go through the server that planners use.

mod report;
mod stream;
mod trial;

use crate::Error;
use crate::lab::Lab;
use ipse_core::Identity;
use ipse_engine::facts::Filter;
use ipse_store::Store;
use stream::Stream;

/// The paper's measurements as printed: events of the log, median and p90 of a pass in
/// milliseconds.
pub(crate) const PAPER: [(u64, &str, &str); 4] = [
    (100, "39.9", "46.9"),
    (1000, "38.8", "42.0"),
    (10_000, "67.9", "74.8"),
    (100_000, "309.0", "324.5"),
];
/// The number of facts in the paper after each of these passes.
pub(crate) const PAPER_FACTS: &str = "2";
/// The time budget of a planner's loop in the paper, in milliseconds.
pub(crate) const BUDGET_MS: u64 = 200;

/// The measuring instruments; the binary provides them.
pub trait Instruments {
    /// Nanoseconds of a monotonic clock.
    fn nanos(&self) -> u64;
    /// Resident memory of the process in bytes; `None` if the machine does not report it.
    fn resident(&self) -> Option<u64>;
    /// The peak of resident memory since the last reset; `None` if the machine does not report it.
    fn peak(&self) -> Option<u64>;
    /// Resets the peak of resident memory.
    fn reset_peak(&self);
    /// Serves a store over HTTP on this machine to one planner of an identity.
    fn serve(&self, store: &Store, identity: &Identity) -> Result<Box<dyn Endpoint>, String>;
}

/// A planner's connection to a server. The server stops when it is dropped.
pub trait Endpoint {
    /// Queries facts and waits for the complete JSON response.
    fn ask(&mut self, filter: &Filter) -> Result<String, String>;
}

/// The amount of work: log sizes, trials and requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale<'s> {
    /// The sizes of the log in events, ascending.
    pub sizes: &'s [u64],
    /// Passes at each size. One more runs first and is discarded, because its caches may be cold.
    pub trials: usize,
    /// The number of planner requests of each kind.
    pub requests: usize,
}

impl Scale<'static> {
    /// All sizes: the paper's four, and 10⁶.
    pub const FULL: Scale<'static> =
        Scale { sizes: &[100, 1000, 10_000, 100_000, 1_000_000], trials: 9, requests: 1000 };
    /// The sizes that take only seconds.
    pub const QUICK: Scale<'static> = Scale { sizes: &[100, 1000, 10_000], ..Scale::FULL };
}

/// The measurements at one size of the log.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Distinct keys of the stream.
    pub keys: u64,
    /// Events of the log.
    pub events: u64,
    /// Wall time of a pass over all events, each trial in nanoseconds, ascending.
    pub pass: Vec<u64>,
    /// Facts after the pass.
    pub facts: u64,
    /// Bytes by which the pass made the file grow.
    pub grown: u64,
    /// Wall time of a planner's query for all facts of a kind, like the paper's SQL statement, each
    /// in nanoseconds, ascending.
    pub query: Vec<u64>,
    /// Wall time of a query for one skill, target and environment.
    pub choice: Vec<u64>,
    /// Wall time of a lookup by key.
    pub lookup: Vec<u64>,
    /// Wall time of a query for one skill, target and environment over HTTP, from the request to
    /// the end of the response, over a persistent connection.
    pub http: Vec<u64>,
    /// Resident memory before the pass and at its peak, in bytes; `None` if the machine does not
    /// report it. The minimum before any trial and the maximum in any, including the discarded one.
    pub resident: Option<[u64; 2]>,
}

/// The measured cost of passes and requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Runtime {
    /// The measurements, ordered by keys and then by events.
    pub points: Vec<Point>,
}

/// Measures both streams. `progress` receives the work done and the total.
pub fn measure(
    lab: &Lab<'_>,
    instruments: &dyn Instruments,
    quick: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Runtime, Error> {
    let scale = if quick { Scale::QUICK } else { Scale::FULL };
    measure_at(lab, instruments, scale, progress)
}

/// Like [`measure`], at any scale.
pub fn measure_at(
    lab: &Lab<'_>,
    instruments: &dyn Instruments,
    scale: Scale<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Runtime, Error> {
    let mut work = Work { done: 0, of: Work::all(scale), tell: progress };
    let mut points = Vec::new();
    for keys in stream::KEYS {
        let mut stream = Stream::begin(lab, keys)?;
        for events in scale.sizes {
            stream.grow(*events, &mut work)?;
            points.push(trial::point(&stream, instruments, scale, &mut work)?);
        }
    }
    Ok(Runtime { points })
}

/// The smallest value that at least `percent` percent of an ascending list do not exceed (nearest
/// rank); 0 if the list is empty.
pub fn nearest_rank<T: Copy + Default>(ascending: &[T], percent: usize) -> T {
    let rank = (ascending.len() * percent).div_ceil(100).max(1);
    ascending.get(rank - 1).copied().unwrap_or_default()
}

/// The progress of the work. Its unit is the time to append one event.
struct Work<'w> {
    done: u64,
    of: u64,
    tell: &'w mut dyn FnMut(u64, u64),
}

impl Work<'_> {
    /// The cost of a pass over `events` events, including the copy of the store that it runs on.
    fn trial(events: u64) -> u64 {
        events / 20
    }

    fn all(scale: Scale<'_>) -> u64 {
        let trials = (scale.trials + 1) as u64;
        let appended = scale.sizes.last().copied().unwrap_or(0);
        let passes: u64 = scale.sizes.iter().map(|events| trials * Work::trial(*events)).sum();
        (appended + passes) * stream::KEYS.len() as u64
    }

    fn did(&mut self, work: u64) {
        self.done += work;
        (self.tell)(self.done, self.of);
    }
}
