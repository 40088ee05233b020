//! Samples of one parameter on their way to a histogram.
//!
//! Few samples are kept and sorted at the end: their vector is written in sequence, whatever the
//! number of facts. Many are counted in a table that fits the cache.

use crate::histogram::{Cell, Histogram};
use alloc::vec::Vec;

/// Samples that are kept before they are counted.
const KEPT: usize = 2048;
/// Room that is made at first: growing from nothing copies too often.
const FIRST: usize = 32;
/// Added to a cell so that its number is not negative; cells are within ±10¹⁵.
const BIAS: i64 = 1 << 51;

#[derive(Default)]
pub(crate) struct Samples {
    sum: i128,
    /// Cell and success, in one integer that sorts by cell.
    kept: Vec<u64>,
    counted: Counted,
}

impl Samples {
    #[inline]
    pub(crate) fn push(&mut self, value: i64, fine: i64, success: bool) {
        self.sum += i128::from(value);
        if self.kept.capacity() == 0 {
            self.kept.reserve(FIRST);
        }
        self.kept.push((fine + BIAS).cast_unsigned() << 1 | u64::from(success));
        if self.kept.len() == KEPT {
            self.count();
        }
    }

    fn count(&mut self) {
        for sample in self.kept.drain(..) {
            self.counted.add(sample);
        }
    }

    pub(crate) fn finish(mut self) -> Histogram {
        if !self.counted.slots.is_empty() {
            self.count();
            return Histogram::from_cells(self.sum, self.counted.finish());
        }
        self.kept.sort_unstable();
        let mut cells: Vec<(i64, Cell)> = Vec::new();
        for sample in self.kept {
            let (fine, success) = parts(sample);
            let one = Cell { n: 1, successes: success };
            match cells.last_mut() {
                Some((last, cell)) if *last == fine => *cell = cell.plus(one),
                _ => cells.push((fine, one)),
            }
        }
        Histogram::from_cells(self.sum, cells)
    }
}

fn parts(sample: u64) -> (i64, i64) {
    ((sample >> 1).cast_signed() - BIAS, (sample & 1).cast_signed())
}

/// Cells by open addressing, at most half full; a count of zero marks an empty slot.
#[derive(Default)]
struct Counted {
    slots: Vec<(i64, Cell)>,
    used: usize,
}

const LEAST_SLOTS: usize = 1024;

impl Counted {
    #[inline]
    fn add(&mut self, sample: u64) {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let (fine, success) = parts(sample);
        let slot = self.slot(fine);
        let (key, cell) = &mut self.slots[slot];
        self.used += usize::from(cell.n == 0);
        *key = fine;
        *cell = cell.plus(Cell { n: 1, successes: success });
    }

    #[inline]
    fn slot(&self, fine: i64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (fine.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        loop {
            slot &= mask;
            let (key, cell) = &self.slots[slot];
            if cell.n == 0 || *key == fine {
                return slot;
            }
            slot += 1;
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(LEAST_SLOTS);
        let old = core::mem::replace(&mut self.slots, alloc::vec![(0, Cell::default()); size]);
        for (fine, cell) in old.into_iter().filter(|(_, cell)| cell.n > 0) {
            let slot = self.slot(fine);
            self.slots[slot] = (fine, cell);
        }
    }

    fn finish(self) -> Vec<(i64, Cell)> {
        let mut cells: Vec<_> = self.slots.into_iter().filter(|(_, cell)| cell.n > 0).collect();
        cells.sort_unstable_by_key(|(fine, _)| *fine);
        cells
    }
}
