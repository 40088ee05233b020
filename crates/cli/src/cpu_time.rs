//! The CPU time of this process.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds of CPU time so far, of all threads.
pub(crate) fn cpu_micros() -> i128 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    i128::from(time.tv_sec) * 1_000_000 + i128::from(time.tv_nsec) / 1000
}
