//! G: what a pass costs, from 10² to 10⁶ events.
//!
//! Two streams: the two skills of V3, as in the paper, and a thousand keys.
//!
//! **Invariants**
//! - A pass is timed alone and whole, its durable commit included, each time on a store of its own
//!   that was closed and synced before.
//! - Clock and memory gauge are arguments, and no time makes anything pass or fail.
//! - Facts are counted, and planners' requests answered, from the table that planners read; those
//!   over HTTP by the server that planners ask.

mod report;
mod stream;
mod trial;

use crate::Error;
use crate::lab::Lab;
use ipse_core::Identity;
use ipse_engine::facts::Filter;
use ipse_store::Store;
use stream::Stream;

/// What the paper measured: events of the log, median and p90 of a pass in milliseconds, as
/// printed.
pub(crate) const PAPER: [(u64, &str, &str); 4] = [
    (100, "39.9", "46.9"),
    (1000, "38.8", "42.0"),
    (10_000, "67.9", "74.8"),
    (100_000, "309.0", "324.5"),
];
/// The paper's facts after each of these passes.
pub(crate) const PAPER_FACTS: &str = "2";
/// What the paper gives a planner's loop, in milliseconds.
pub(crate) const BUDGET_MS: u64 = 200;

/// What measures, handed down from the binary.
pub trait Instruments {
    /// Nanoseconds of a clock that never goes back.
    fn nanos(&self) -> u64;
    /// Bytes of memory that the process holds now; `None` if the machine does not tell.
    fn resident(&self) -> Option<u64>;
    /// The most that it held since the last reset; `None` if the machine does not tell.
    fn peak(&self) -> Option<u64>;
    /// Resets the peak.
    fn reset_peak(&self);
    /// Serves a store over HTTP, on this machine, to one planner of an identity.
    fn serve(&self, store: &Store, identity: &Identity) -> Result<Box<dyn Endpoint>, String>;
}

/// A planner's connection to a server, which ends with it.
pub trait Endpoint {
    /// Asks for facts and waits for the whole answer, which is JSON.
    fn ask(&mut self, filter: &Filter) -> Result<String, String>;
}

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale<'s> {
    /// Events of the log, ascending.
    pub sizes: &'s [u64],
    /// Passes at each size; one more comes first and is discarded, as it may find caches cold.
    pub trials: usize,
    /// Requests of each sort that a planner makes.
    pub requests: usize,
}

impl Scale<'static> {
    /// All sizes: the paper's four, and 10⁶.
    pub const FULL: Scale<'static> =
        Scale { sizes: &[100, 1000, 10_000, 100_000, 1_000_000], trials: 9, requests: 1000 };
    /// Those that take seconds.
    pub const QUICK: Scale<'static> = Scale { sizes: &[100, 1000, 10_000], ..Scale::FULL };
}

/// What was measured at one size of the log.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// Distinct keys of the stream.
    pub keys: u64,
    /// Events of the log.
    pub events: u64,
    /// Wall time of a pass over all of them, each trial in nanoseconds, ascending.
    pub pass: Vec<u64>,
    /// Facts after the pass.
    pub facts: u64,
    /// By how much the pass made the file grow, in bytes.
    pub grown: u64,
    /// Wall time of a planner's query for all facts of a kind, which is what the paper's statement
    /// asks, each in nanoseconds, ascending.
    pub query: Vec<u64>,
    /// The same of a query for one skill, target and environment.
    pub choice: Vec<u64>,
    /// The same of a lookup by key.
    pub lookup: Vec<u64>,
    /// The same of a query for one skill, target and environment over HTTP: asked, answered and
    /// read, over a connection that stays.
    pub http: Vec<u64>,
    /// Resident memory before the pass and at its most, in bytes; `None` if the machine does not
    /// tell. The least before any trial and the most in any, the discarded one included.
    pub resident: Option<[u64; 2]>,
}

/// What a pass costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Runtime {
    /// The sizes, by keys and then by events.
    pub points: Vec<Point>,
}

/// Measures both streams; `progress` gets the work done and the total.
pub fn measure(
    lab: &Lab<'_>,
    instruments: &dyn Instruments,
    quick: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Runtime, Error> {
    let scale = if quick { Scale::QUICK } else { Scale::FULL };
    measure_at(lab, instruments, scale, progress)
}

/// The same at any scale.
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

/// The value that `percent` percent of an ascending list do not exceed, by nearest rank; 0 if the
/// list is empty.
pub fn nearest_rank<T: Copy + Default>(ascending: &[T], percent: usize) -> T {
    let rank = (ascending.len() * percent).div_ceil(100).max(1);
    ascending.get(rank - 1).copied().unwrap_or_default()
}

/// How far the work is. Its unit is the time that an event takes to be appended.
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
