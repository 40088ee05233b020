//! The distribution of one parameter: count, exact sum, and fine cells with their successes.
//!
//! **Invariants:** a fine cell has four significant digits, a coarse cell two of those; quantiles
//! are nearest-rank cells, never interpolated; the mean comes from the unrounded sum.

use crate::Tally;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::decimal::{SCALE, quotient};
use ipse_core::json::Members;
use ipse_core::wire::{self, Wire};
use ipse_core::{Micro, Outcome};

const FINE_DIGITS: u32 = 4;
const COARSE_DIGITS: u32 = 2;

/// Attempts that fell into one cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    /// All of them.
    pub n: i64,
    /// Those that worked.
    pub successes: i64,
}

impl Cell {
    /// Those that did not.
    pub fn failures(self) -> i64 {
        self.n - self.successes
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Cell) -> Cell {
        Cell { n: self.n + other.n, successes: self.successes + other.successes }
    }
}

/// A parameter's observations, summed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    n: i64,
    sum: i128,
    fine: BTreeMap<i64, Cell>,
}

impl Histogram {
    /// One observation.
    pub fn of(value: Micro, outcome: Option<Outcome>) -> Self {
        let successes = i64::from(outcome == Some(Outcome::Success));
        let cell = (value.cell(FINE_DIGITS).get(), Cell { n: 1, successes });
        Histogram { n: 1, sum: value.get().into(), fine: BTreeMap::from([cell]) }
    }

    /// How many observations.
    pub fn n(&self) -> i64 {
        self.n
    }

    /// The fine cells in ascending order.
    pub fn fine(&self) -> impl Iterator<Item = (i64, Cell)> {
        self.fine.iter().map(|(value, cell)| (*value, *cell))
    }

    /// The occupied coarse cells in ascending order.
    pub fn coarse(&self) -> Vec<(i64, Cell)> {
        let mut coarse: Vec<(i64, Cell)> = Vec::new();
        for (value, cell) in self.fine() {
            let value = coarse_of(value);
            match coarse.last_mut() {
                Some((last, sum)) if *last == value => *sum = sum.plus(cell),
                _ => coarse.push((value, cell)),
            }
        }
        coarse
    }

    /// The fine cell at rank `⌈n · quarters / 4⌉`.
    pub fn quantile(&self, quarters: i64) -> i64 {
        ranked(self.fine().map(|(value, cell)| (value, cell.n)), (self.n * quarters + 3) / 4)
    }

    /// Observations whose fine cell is within ten per cent of the median cell.
    pub fn near_median(&self) -> i64 {
        let median = i128::from(self.quantile(2));
        let near = |value: i64| 10 * (i128::from(value) - median).abs() <= median.abs();
        self.fine().filter(|(value, _)| near(*value)).map(|(_, cell)| cell.n).sum()
    }

    /// `n`, `mean` and quartiles, ready for more members.
    pub fn members(&self) -> Members {
        let mean = quotient(self.sum, i128::from(self.n) * i128::from(SCALE), 6);
        Members::new()
            .raw("n", self.n)
            .raw("mean", mean)
            .raw("q1", micro_text(self.quantile(1)))
            .raw("median", micro_text(self.quantile(2)))
            .raw("q3", micro_text(self.quantile(3)))
    }
}

/// The coarse cell that a fine cell falls into.
pub fn coarse_of(fine: i64) -> i64 {
    // A fine cell is a usable number rounded, so it is within the limit, which is itself a cell.
    Micro::new(fine).map_or(fine, |micro| micro.cell(COARSE_DIGITS).get())
}

/// Decimal text of micro-units.
pub fn micro_text(micro: i64) -> String {
    quotient(micro.into(), SCALE.into(), 6)
}

/// The first value at which the running count reaches `rank`.
pub fn ranked(counted: impl Iterator<Item = (i64, i64)>, rank: i64) -> i64 {
    let mut seen = 0;
    let mut last = 0;
    for (value, count) in counted {
        last = value;
        seen += count;
        if seen >= rank {
            break;
        }
    }
    last
}

impl Tally for Histogram {
    fn add(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        for (value, cell) in &other.fine {
            let sum = self.fine.entry(*value).or_default();
            *sum = sum.plus(*cell);
            if *sum == Cell::default() {
                self.fine.remove(value);
            }
        }
    }

    fn negated(&self) -> Self {
        let negated = |cell: &Cell| Cell { n: -cell.n, successes: -cell.successes };
        Histogram {
            n: -self.n,
            sum: -self.sum,
            fine: self.fine.iter().map(|(value, cell)| (*value, negated(cell))).collect(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        wire::write_i128(self.n.into(), out);
        wire::write_i128(self.sum, out);
        wire::write_len(self.fine.len(), out);
        let mut previous = 0;
        for (value, cell) in self.fine() {
            wire::write_i128(i128::from(value) - previous, out);
            wire::write_i128(cell.n.into(), out);
            wire::write_i128(cell.successes.into(), out);
            previous = value.into();
        }
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        let (n, sum, count) = (wire.i64()?, wire.i128()?, wire.length()?);
        let mut fine = BTreeMap::new();
        let mut value = 0;
        for _ in 0..count {
            value = wire.i64()?.checked_add(value)?;
            fine.insert(value, Cell { n: wire.i64()?, successes: wire.i64()? });
        }
        Some(Histogram { n, sum, fine })
    }
}
