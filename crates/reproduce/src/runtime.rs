//! G: what a pass costs, from 10² to 10⁶ events.

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
    /// Wall time of a planner's query, each in nanoseconds, ascending.
    pub query: Vec<u64>,
    /// Resident memory before the pass and at its most, in bytes; `None` if the machine does not
    /// tell.
    pub resident: Option<[u64; 2]>,
}

/// What a pass costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Runtime {
    /// The sizes, by keys and then by events.
    pub points: Vec<Point>,
}
