//! What this process takes of its machine, as Linux says.
//!
//! **Invariants:** only files about this very process are read, which a confined service can read
//! too. A system without them has no figures, and nothing fails.

use crate::cpu_time::cpu_micros;
use ipse_http::Process;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The field of `/proc/self/stat` behind the name of the program that says when it began.
const START_FIELD: usize = 19;

/// The figures; `None` if the system does not have them.
pub(crate) fn figures() -> Option<Process> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(Process {
        cpu_seconds: cpu_micros() as f64 / 1e6,
        resident_bytes: kib(&status, "VmRSS:")?,
        virtual_bytes: kib(&status, "VmSize:")?,
        // The directory itself is open while it is read.
        open_fds: (fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1),
        max_fds: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        start_seconds: start_seconds()?,
    })
}

/// A line of the status that is in KiB, in bytes.
fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// When the process began: its age by the clock that counts from the start of the machine, taken
/// from the time now.
fn start_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name stands in parentheses and may hold anything.
    let ticks = stat.rsplit_once(')')?.1.split_whitespace().nth(START_FIELD)?;
    let ticks = ticks.parse::<f64>().ok()? / rustix::param::clock_ticks_per_second() as f64;
    let booted = clock_gettime(ClockId::Boottime);
    let uptime = booted.tv_sec as f64 + booted.tv_nsec as f64 / 1e9;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    // To a hundredth, as the system counts.
    Some(((now - uptime + ticks) * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_figures_are_of_this_process() {
        let before = figures().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(before.start_seconds <= now && before.start_seconds > now - 3600.0, "{before:?}");
        assert!(before.resident_bytes > 1 << 20 && before.virtual_bytes >= before.resident_bytes);
        let files: Vec<_> = (0..8).map(|_| fs::File::open("/proc/self/status").unwrap()).collect();
        let after = figures().unwrap();
        assert!(after.open_fds >= before.open_fds + files.len() as u64, "{before:?} {after:?}");
        assert!(after.max_fds > after.open_fds && after.cpu_seconds >= before.cpu_seconds);
    }
}
