//! One measured run, and the figures of many.

use crate::cpu_time::cpu_micros;
use ipse_core::decimal::quotient;
use ipse_core::json::Members;
use ipse_reproduce::runtime::nearest_rank;
use std::time::Instant;

/// One measured run: CPU and wall time in nanoseconds, and the number of operations.
pub(super) struct Run {
    pub(super) cpu: i128,
    pub(super) wall: i128,
    pub(super) count: u64,
}

impl Run {
    pub(super) fn of<T>(
        count: u64,
        job: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<Run> {
        let (cpu, wall) = (cpu_micros(), Instant::now());
        job()?;
        let wall = i128::try_from(wall.elapsed().as_nanos()).unwrap_or(i128::MAX);
        Ok(Run { cpu: (cpu_micros() - cpu) * 1000, wall, count })
    }
}

/// Nearest-rank figures of many runs, in nanoseconds.
pub(super) struct Spread {
    median: i128,
    p90: i128,
    p99: i128,
}

impl Spread {
    pub(super) fn of(values: impl Iterator<Item = i128>) -> Self {
        let mut values: Vec<i128> = values.collect();
        values.sort_unstable();
        let [median, p90, p99] = [50, 90, 99].map(|percent| nearest_rank(&values, percent));
        Spread { median, p90, p99 }
    }

    pub(super) fn json(&self) -> String {
        let figure = |nanos: i128| quotient(nanos, 1_000_000, 6);
        Members::new()
            .raw("median", figure(self.median))
            .raw("p90", figure(self.p90))
            .raw("p99", figure(self.p99))
            .finish()
    }

    pub(super) fn words(&self) -> String {
        let figure = |nanos: i128| match nanos {
            0..10_000 => format!("{nanos} ns"),
            10_000..10_000_000 => format!("{} µs", nanos / 1000),
            _ => format!("{} ms", nanos / 1_000_000),
        };
        let (median, p90, p99) = (figure(self.median), figure(self.p90), figure(self.p99));
        format!("median {median}, p90 {p90}, p99 {p99}")
    }
}
