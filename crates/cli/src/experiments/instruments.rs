//! The machine's clock and memory gauge, as experiments and `bench` read them.
//!
//! **Invariant:** what the kernel does not tell is `None` and never a guess: a peak that could not
//! be reset is that of another time.

use super::endpoint;
use ipse_core::Identity;
use ipse_reproduce::runtime::{Endpoint, Instruments};
use ipse_store::Store;
use std::cell::Cell;
use std::time::Instant;

/// What tells a process about its memory.
const STATUS: &str = "/proc/self/status";
/// Takes the order to reset the peak.
const CLEAR_REFS: &str = "/proc/self/clear_refs";
const RESET_PEAK: &str = "5";

/// The machine that this process runs on.
pub(crate) struct Machine {
    begun: Instant,
    /// Whether the peak is that since the last reset, or since the process began if there was none.
    peak_holds: Cell<bool>,
}

impl Machine {
    /// A clock that begins now.
    pub(crate) fn new() -> Self {
        Machine { begun: Instant::now(), peak_holds: Cell::new(true) }
    }
}

impl Instruments for Machine {
    fn nanos(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn resident(&self) -> Option<u64> {
        status("VmRSS:")
    }

    fn peak(&self) -> Option<u64> {
        status("VmHWM:").filter(|_| self.peak_holds.get())
    }

    fn reset_peak(&self) {
        self.peak_holds.set(std::fs::write(CLEAR_REFS, RESET_PEAK).is_ok());
    }

    fn serve(&self, store: &Store, identity: &Identity) -> Result<Box<dyn Endpoint>, String> {
        let served = endpoint::PlannerClient::begin(store, identity);
        served.map(|asking| Box::new(asking) as Box<dyn Endpoint>).map_err(|why| format!("{why:#}"))
    }
}

/// A figure of the kernel's about this process, in bytes.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(STATUS).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
