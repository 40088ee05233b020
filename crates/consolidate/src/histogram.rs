//! The distribution of one parameter: count, exact sum, and fine cells with their successes.
//!
//! **Invariants:** a fine cell has four significant digits, a coarse cell two of those; cells are
//! in ascending order and none is empty; quantiles are nearest-rank cells, never interpolated; the
//! mean comes from the unrounded sum.

use crate::Tally;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use ipse_core::Micro;
use ipse_core::decimal::{rounded, write_digits, write_micro};
use ipse_core::wire::{self, Wire};

pub(crate) const FINE_DIGITS: u32 = 4;
const COARSE_DIGITS: u32 = 2;

/// If a sum has more than this many times the cells of the added sum, cells are inserted one by
/// one.
const FEW: usize = 8;

/// Attempts in one cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    /// The number of attempts.
    pub n: i64,
    /// The number of successes.
    pub successes: i64,
}

impl Cell {
    /// The number of failures.
    pub fn failures(self) -> i64 {
        self.n - self.successes
    }

    /// The sum of two cells.
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
    fine: Vec<(i64, Cell)>,
}

/// The fine cell of a number.
pub fn fine_of(value: Micro) -> i64 {
    value.cell(FINE_DIGITS).get()
}

impl Histogram {
    /// One observation.
    pub fn of(value: Micro, success: bool) -> Self {
        let cell = Cell { n: 1, successes: i64::from(success) };
        Histogram { n: 1, sum: value.get().into(), fine: Vec::from([(fine_of(value), cell)]) }
    }

    /// A sum over many observations, with its cells in ascending order and none of them empty.
    pub(crate) fn from_cells(sum: i128, fine: Vec<(i64, Cell)>) -> Self {
        debug_assert!(fine.is_sorted_by(|a, b| a.0 < b.0), "BUG: cells out of order");
        Histogram { n: fine.iter().map(|(_, cell)| cell.n).sum(), sum, fine }
    }

    /// The sum of several.
    pub fn total<'h>(parts: impl Iterator<Item = &'h Histogram> + Clone) -> Self {
        let mut cells: Vec<(i64, Cell)> =
            Vec::with_capacity(parts.clone().map(|part| part.fine.len()).sum());
        let mut sum = 0;
        for part in parts {
            cells.extend_from_slice(&part.fine);
            sum += part.sum;
        }
        // The parts are sorted, which a stable sort makes use of.
        cells.sort_by_key(|(value, _)| *value);
        let mut fine: Vec<(i64, Cell)> = Vec::new();
        for (value, cell) in cells {
            match fine.last_mut() {
                Some((last, sum)) if *last == value => *sum = sum.plus(cell),
                _ => fine.push((value, cell)),
            }
        }
        Histogram::from_cells(sum, fine)
    }

    /// The number of observations.
    pub fn n(&self) -> i64 {
        self.n
    }

    /// The exact sum of all observations, in micro-units.
    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// The fine cells in ascending order.
    pub fn fine(&self) -> &[(i64, Cell)] {
        &self.fine
    }

    /// The occupied coarse cells in ascending order.
    pub fn coarse(&self) -> Vec<(i64, Cell)> {
        let mut coarse: Vec<(i64, Cell)> = Vec::with_capacity(self.fine.len().min(64));
        // Positive numbers below `same_below` round to the previous coarse cell.
        let mut same_below = i64::MIN;
        for (value, cell) in &self.fine {
            if *value < same_below {
                let last = coarse.len() - 1;
                coarse[last].1 = coarse[last].1.plus(*cell);
                continue;
            }
            let (home, reach) = coarse_of(*value);
            same_below = if *value > 0 { home + reach } else { i64::MIN };
            match coarse.last_mut() {
                Some((last, sum)) if *last == home => *sum = sum.plus(*cell),
                _ => coarse.push((home, *cell)),
            }
        }
        coarse
    }

    /// The fine cells at ranks `⌈n/4⌉`, `⌈n/2⌉` and `⌈3n/4⌉`.
    pub fn quartiles(&self) -> [i64; 3] {
        let ranks = [1, 2, 3].map(|quarters| (self.n * quarters + 3) / 4);
        let mut quartiles = [0; 3];
        let (mut next, mut seen) = (0, 0);
        for (value, cell) in &self.fine {
            seen += cell.n;
            while next < 3 && seen >= ranks[next] {
                quartiles[next] = *value;
                next += 1;
            }
            if next == 3 {
                break;
            }
        }
        quartiles
    }

    /// Observations whose fine cell is within ten per cent of the median cell.
    pub fn near_median(&self) -> i64 {
        let median = i128::from(self.quartiles()[1]);
        let near = |value: i64| 10 * (i128::from(value) - median).abs() <= median.abs();
        self.fine.iter().filter(|(value, _)| near(*value)).map(|(_, cell)| cell.n).sum()
    }

    /// Appends `{"mean":…,"median":…,"n":…,"q1":…,"q3":…` and the output of `more`.
    pub fn write(&self, out: &mut String, more: impl FnOnce(&mut String)) {
        let [q1, median, q3] = self.quartiles();
        out.push_str("{\"mean\":");
        write_micro(rounded(self.sum, self.n), out);
        out.push_str(",\"median\":");
        write_micro(median, out);
        write_integer(",\"n\":", self.n, out);
        out.push_str(",\"q1\":");
        write_micro(q1, out);
        out.push_str(",\"q3\":");
        write_micro(q3, out);
        more(out);
        out.push('}');
    }
}

/// Appends the opening of a member and an integer.
pub(crate) fn write_integer(opening: &str, n: i64, out: &mut String) {
    out.push_str(opening);
    if n < 0 {
        out.push('-');
    }
    write_digits(n.unsigned_abs(), 1, out);
}

/// The coarse cell that a fine cell falls into.
pub fn coarse_cell(fine: Micro) -> i64 {
    fine.cell(COARSE_DIGITS).get()
}

/// The coarse cell that a fine cell falls into, and half of its width.
pub(crate) fn coarse_of(fine: i64) -> (i64, i64) {
    // A fine cell is a usable number rounded, so it is within the limit, which is itself a cell.
    let home = Micro::new(fine).map_or(fine, coarse_cell);
    let length = fine.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    (home, 10_i64.pow(length.saturating_sub(COARSE_DIGITS)) / 2)
}

/// The first value at which the running count reaches `rank`.
pub(crate) fn ranked(counted: impl Iterator<Item = (i64, i64)>, rank: i64) -> i64 {
    let (mut seen, mut last) = (0, 0);
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
        if other.fine.len() * FEW < self.fine.len() {
            other.fine.iter().for_each(|(value, cell)| put(&mut self.fine, *value, *cell));
        } else {
            self.fine = merged(&self.fine, &other.fine);
        }
    }

    fn negated(&self) -> Self {
        let negated = |cell: &Cell| Cell { n: -cell.n, successes: -cell.successes };
        let fine = self.fine.iter().map(|(value, cell)| (*value, negated(cell))).collect();
        Histogram { n: -self.n, sum: -self.sum, fine }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        wire::write_i128(self.n.into(), out);
        wire::write_i128(self.sum, out);
        wire::write_len(self.fine.len(), out);
        let mut previous = 0;
        for (value, cell) in &self.fine {
            wire::write_i128(i128::from(*value) - previous, out);
            wire::write_i128(cell.n.into(), out);
            wire::write_i128(cell.successes.into(), out);
            previous = i128::from(*value);
        }
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        let (n, sum, count) = (wire.i64()?, wire.i128()?, wire.length()?);
        let mut fine: Vec<(i64, Cell)> = Vec::new();
        let mut value: i64 = 0;
        for _ in 0..count {
            let step = wire.i64()?;
            value = value.checked_add(step)?;
            if fine.last().is_some_and(|(last, _)| *last >= value) {
                return None;
            }
            fine.push((value, Cell { n: wire.i64()?, successes: wire.i64()? }));
        }
        Some(Histogram { n, sum, fine })
    }
}

/// Adds one cell; a cell that reaches zero is removed.
fn put(fine: &mut Vec<(i64, Cell)>, value: i64, cell: Cell) {
    match fine.binary_search_by_key(&value, |(value, _)| *value) {
        Ok(place) => {
            fine[place].1 = fine[place].1.plus(cell);
            if fine[place].1 == Cell::default() {
                fine.remove(place);
            }
        }
        Err(place) => fine.insert(place, (value, cell)),
    }
}

fn merged(a: &[(i64, Cell)], b: &[(i64, Cell)]) -> Vec<(i64, Cell)> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        match x.0.cmp(&y.0) {
            Ordering::Less => all.extend(a.next()),
            Ordering::Greater => all.extend(b.next()),
            Ordering::Equal => {
                let sum = x.1.plus(y.1);
                if sum != Cell::default() {
                    all.push((x.0, sum));
                }
                a.next();
                b.next();
            }
        }
    }
    all.extend(a.chain(b));
    all
}
