//! The resource usage of this process, as Linux reports it.
//!
//! **Invariants:** only files about this process are read, which a confined service can read too. A
//! system without these files reports no figures; that is not an error.

use crate::cpu_time::cpu_micros;
use ipse_http::Process;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The start time in `/proc/self/stat`: the index of the field after the program name.
const START_FIELD: usize = 19;

/// Reads the figures; `None` if the system does not have them.
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

/// Reads a KiB value of the status, in bytes.
fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The start time of the process, computed from the current time, the uptime of the machine and the
/// start ticks of the process.
fn start_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name is in parentheses and may contain any character.
    let ticks = stat.rsplit_once(')')?.1.split_whitespace().nth(START_FIELD)?;
    let ticks = ticks.parse::<f64>().ok()? / rustix::param::clock_ticks_per_second() as f64;
    let booted = clock_gettime(ClockId::Boottime);
    let uptime = booted.tv_sec as f64 + booted.tv_nsec as f64 / 1e9;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    // Round to hundredths, the resolution of the kernel's ticks.
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
