//! The machine's clock and memory gauge, as experiments and `bench` read them.
//!
//! **Invariant:** a value that the kernel does not report is `None` and never a guess. A peak that
//! could not be reset is `None` too, because it belongs to an earlier measurement.

use super::endpoint;
use ipse_core::Identity;
use ipse_reproduce::runtime::{Endpoint, Instruments};
use ipse_store::Store;
use std::cell::Cell;
use std::time::Instant;

/// The file that reports the memory of this process.
const STATUS: &str = "/proc/self/status";
/// The file that resets the peak when [`RESET_PEAK`] is written to it.
const CLEAR_REFS: &str = "/proc/self/clear_refs";
const RESET_PEAK: &str = "5";

/// The machine that this process runs on.
pub(crate) struct Machine {
    begun: Instant,
    /// Whether the peak is valid: the last reset succeeded, or there was none.
    peak_holds: Cell<bool>,
}

impl Machine {
    /// Starts the clock at zero.
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

/// Reads a memory figure of this process from the kernel, in bytes.
fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(STATUS).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
