//! Samples of parameters, collected before they become histograms.
//!
//! All samples are kept in blocks of one vector, whatever the number of facts: adding one is a
//! write after the last of its kind. When the vector is full, all samples are counted and removed.
//!
//! **Invariant:** at most [`MAX_KEPT`] samples are kept, half-empty blocks included, plus those of
//! one chunk.

use crate::days::{Day, Days};
use crate::histogram::{Cell, FINE_DIGITS, Histogram, fine_of};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use ipse_core::Micro;
use ipse_core::chunk::CHUNK_EVENTS;
use ipse_core::decimal::cell_unit;

/// Room for samples before they are counted: 16 MB.
const MAX_KEPT: usize = 1 << 21;
/// The samples of a block, with the end of the previous block before them.
const BLOCK: usize = 64;
/// Added to a value so that it is not negative; usable values are within ±10¹⁵.
const BIAS: i64 = 1 << 50;
/// The bits of a value with its bias, and of the success below it. The day is above them.
const VALUE_BITS: u32 = 52;
/// The most days at a time: the other bits.
const MAX_DAYS: usize = 1 << (64 - VALUE_BITS);
// A chunk whose events are all of different days fits.
const _: () = assert!(MAX_DAYS >= CHUNK_EVENTS);
/// A table may have this many times more cells than samples; beyond that, samples are sorted.
const SPARSE: u64 = 8;

/// A parameter of a fact.
pub(crate) type Home = u32;

/// The samples of all parameters of all facts.
pub(crate) struct Samples {
    blocks: Vec<u64>,
    /// The position of the next sample of each home; at the border of a block, a new block is
    /// started.
    next: Vec<u32>,
    counted: Vec<Days<Histogram>>,
    /// Whether samples have days. Without days, all are of day 0.
    dated: bool,
    /// The days of the kept samples, in the order of first use, and their places.
    days: Vec<Day>,
    numbers: BTreeMap<Day, u32>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    /// The samples of one home, and the begins and ends of its blocks.
    all: Vec<u64>,
    blocks: Vec<(usize, usize)>,
    /// Samples of one day, without the day.
    samples: Vec<u64>,
    /// For each cell the number of samples, and in the lower half the number of successes; all zero
    /// between uses.
    table: Vec<u64>,
    /// The cells of the table that are not zero.
    occupied: Vec<u64>,
}

impl Samples {
    /// No samples yet.
    pub(crate) fn new(dated: bool) -> Self {
        Samples {
            // The first block is never used: nothing can precede it.
            blocks: alloc::vec![0; BLOCK],
            next: Vec::new(),
            counted: Vec::new(),
            dated,
            days: Vec::new(),
            numbers: BTreeMap::new(),
            scratch: Scratch::default(),
        }
    }

    /// Creates a place for the samples of one more parameter.
    pub(crate) fn home(&mut self) -> Home {
        self.next.push(0);
        self.counted.push(Days::default());
        // More than 2³¹ parameters do not fit into memory.
        (self.next.len() - 1) as Home
    }

    /// The number of parameters with a place.
    pub(crate) fn homes(&self) -> usize {
        self.next.len()
    }

    /// The number of a day; `None` if there is no room for it.
    pub(crate) fn day(&mut self, day: Day) -> Option<u32> {
        if let Some(number) = self.numbers.get(&day) {
            return Some(*number);
        }
        let number = self.days.len() as u32;
        (self.days.len() < MAX_DAYS).then(|| {
            self.days.push(day);
            self.numbers.insert(day, number);
            number
        })
    }

    /// Makes room for other days. Numbers of days are no longer valid.
    pub(crate) fn forget_days(&mut self) {
        self.count_all();
        self.days.clear();
        self.numbers.clear();
    }

    /// Adds a sample of the day with this number. A home whose days do not matter uses number 0.
    #[inline(always)]
    pub(crate) fn push(&mut self, home: Home, value: i64, success: bool, day: u32) {
        let mut next = self.next[home as usize];
        if (next as usize).is_multiple_of(BLOCK) {
            next = self.begin_block(next);
        }
        self.blocks[next as usize] =
            u64::from(day) << VALUE_BITS | (value + BIAS).cast_unsigned() << 1 | u64::from(success);
        self.next[home as usize] = next + 1;
    }

    #[inline(never)]
    fn begin_block(&mut self, before: u32) -> u32 {
        let begin = self.blocks.len();
        self.blocks.resize(begin + BLOCK, 0);
        self.blocks[begin] = u64::from(before);
        begin as u32 + 1
    }

    /// Counts all samples if there are many.
    pub(crate) fn settle(&mut self) {
        if self.blocks.len() > MAX_KEPT {
            self.count_all();
        }
    }

    fn count_all(&mut self) {
        (0..self.next.len()).for_each(|home| self.count(home));
        self.blocks.truncate(BLOCK);
    }

    /// Returns the histograms of one parameter by day and removes its samples.
    pub(crate) fn take(&mut self, home: Home) -> Days<Histogram> {
        self.count(home as usize);
        core::mem::take(&mut self.counted[home as usize])
    }

    /// Returns the histogram of one parameter over all days and removes its samples.
    pub(crate) fn take_all(&mut self, home: Home) -> Histogram {
        self.take(home).into_total()
    }

    fn count(&mut self, home: usize) {
        self.collect(home);
        if self.scratch.all.is_empty() {
            return;
        }
        if !self.dated {
            core::mem::swap(&mut self.scratch.all, &mut self.scratch.samples);
            let histogram = self.scratch.histogram();
            self.counted[home].put(0, &histogram);
            return;
        }
        let mut all = core::mem::take(&mut self.scratch.all);
        let number = |sample: &u64| sample >> VALUE_BITS;
        // Most events are newer than those before them, and so are their days.
        if !all.is_sorted_by_key(number) {
            all.sort_unstable_by_key(number);
        }
        let mut days: Vec<(Day, Histogram)> = Vec::new();
        for some in all.chunk_by(|a, b| number(a) == number(b)) {
            let day = self.days[number(&some[0]) as usize];
            self.scratch.samples.clear();
            let value = |sample: &u64| sample & ((1 << VALUE_BITS) - 1);
            self.scratch.samples.extend(some.iter().map(value));
            days.push((day, self.scratch.histogram()));
        }
        self.scratch.all = all;
        days.sort_by_key(|(day, _)| *day);
        self.counted[home].extend(days);
    }

    /// Moves the samples of a home into the scratch, the oldest first.
    fn collect(&mut self, home: usize) {
        let mut end = core::mem::take(&mut self.next[home]) as usize;
        let Scratch { all, blocks, .. } = &mut self.scratch;
        all.clear();
        blocks.clear();
        while end > 0 {
            let begin = (end - 1) / BLOCK * BLOCK;
            blocks.push((begin + 1, end));
            end = self.blocks[begin] as usize;
        }
        for (begin, end) in blocks.iter().rev() {
            all.extend_from_slice(&self.blocks[*begin..*end]);
        }
    }
}

fn value_of(sample: u64) -> i64 {
    (sample >> 1).cast_signed() - BIAS
}

impl Scratch {
    fn histogram(&mut self) -> Histogram {
        let (mut least, mut greatest, mut sum) = (i64::MAX, i64::MIN, 0);
        for some in self.samples.chunks(BLOCK) {
            let mut part = 0;
            for sample in some {
                let value = value_of(*sample);
                (least, greatest) = (least.min(value), greatest.max(value));
                part += value;
            }
            sum += i128::from(part);
        }
        let range = (least, greatest);
        // Each call has a constant unit: dividing by a variable takes several times as long.
        let cells = self.cells::<1_000_000>(range);
        let cells = cells.or_else(|| self.cells::<100_000>(range));
        let cells = cells.or_else(|| self.cells::<10_000>(range));
        let cells = cells.or_else(|| self.cells::<1000>(range));
        let cells = cells.or_else(|| self.cells::<100>(range));
        let cells = cells.or_else(|| self.cells::<10>(range));
        let cells = cells.or_else(|| self.cells::<1>(range));
        Histogram::from_cells(sum, cells.unwrap_or_else(|| self.sorted()))
    }

    /// The cells by counting, if all values are multiples of `UNIT` and not too far apart.
    fn cells<const UNIT: u64>(
        &mut self,
        (least, greatest): (i64, i64),
    ) -> Option<Vec<(i64, Cell)>> {
        let width = (greatest - least).unsigned_abs() / UNIT + 1;
        if width > SPARSE * self.samples.len() as u64 || least % UNIT.cast_signed() != 0 {
            return None;
        }
        if !self.fill::<UNIT>((least + BIAS).cast_unsigned(), width as usize) {
            return None;
        }
        let exact = is_cell(UNIT, least) && is_cell(UNIT, greatest);
        let mut cells = Cells { cells: Vec::with_capacity(self.samples.len().min(512)), exact };
        for (word, bits) in self.occupied.iter_mut().take(width.div_ceil(64) as usize).enumerate() {
            while *bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                let count = core::mem::take(&mut self.table[place]);
                let value = least + (place as u64 * UNIT).cast_signed();
                cells.add(value, (count >> 32).cast_signed(), i64::from(count as u32));
            }
        }
        Some(cells.cells)
    }

    /// Counts the samples in the table; fails if one is not a multiple of `UNIT`.
    fn fill<const UNIT: u64>(&mut self, least: u64, width: usize) -> bool {
        self.table.resize(width.max(self.table.len()), 0);
        self.occupied.resize(width.div_ceil(64).max(self.occupied.len()), 0);
        for sample in &self.samples {
            let distance = (sample >> 1) - least;
            let place = distance / UNIT;
            if place * UNIT != distance {
                self.table[..width].fill(0);
                self.occupied[..width.div_ceil(64)].fill(0);
                return false;
            }
            let place = place as usize;
            self.table[place] += 1 << 32 | (sample & 1);
            self.occupied[place / 64] |= 1 << (place % 64);
        }
        true
    }

    /// The cells by sorting.
    fn sorted(&mut self) -> Vec<(i64, Cell)> {
        self.samples.sort_unstable();
        let mut cells = Cells { cells: Vec::new(), exact: false };
        self.samples.iter().for_each(|s| cells.add(value_of(*s), 1, (*s & 1).cast_signed()));
        cells.cells
    }
}

/// Whether rounding multiples of `unit` up to `value` to a fine cell loses nothing.
fn is_cell(unit: u64, value: i64) -> bool {
    unit.cast_signed() % cell_unit(value, FINE_DIGITS) == 0
}

/// Fine cells under construction, from values in ascending order.
struct Cells {
    cells: Vec<(i64, Cell)>,
    exact: bool,
}

impl Cells {
    #[inline]
    fn add(&mut self, value: i64, n: i64, successes: i64) {
        let fine = if self.exact { value } else { fine_of(Micro::new(value).unwrap_or_default()) };
        let cell = Cell { n, successes };
        match self.cells.last_mut() {
            Some((last, sum)) if *last == fine => *sum = sum.plus(cell),
            _ => self.cells.push((fine, cell)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More samples than are kept, so that they are counted in between: none is lost or counted
    /// twice.
    #[test]
    fn samples_that_leave_in_between_are_counted_once() {
        let mut samples = Samples::new(false);
        let homes = [samples.home(), samples.home(), samples.home()];
        // Steps of a hundredth; of a millionth; and far apart.
        let value = |home: usize, n: i64| match home {
            0 => n % 100 * 10_000,
            1 => -(n % 50),
            _ => n % 7 * 100_000_000_000_000,
        };
        let each = 1 << 20;
        for n in 0..each {
            for (number, home) in homes.into_iter().enumerate() {
                samples.push(home, value(number, n), n % 2 == 0, 0);
            }
            if n % 4096 == 0 {
                samples.settle();
                assert!(samples.blocks.len() < 2 * MAX_KEPT, "the kept samples stay bounded");
            }
        }
        for (number, home) in homes.into_iter().enumerate() {
            let histogram = samples.take_all(home);
            assert_eq!(histogram.n(), each);
            let successes: i64 = histogram.fine().iter().map(|(_, cell)| cell.successes).sum();
            assert_eq!(successes, (each + 1) / 2);
            assert_eq!(histogram.fine().len(), [100, 50, 7][number]);
            let sum: i128 = (0..each).map(|n| i128::from(value(number, n))).sum();
            assert_eq!(histogram.sum(), sum);
        }
    }
}
