//! The recommended value of a parameter: a window that works and contains no clearly failing run.
//!
//! **Invariants:** a window never contains a confidently failing run of cells, so a value is not
//! recommended merely because it is between two good ones; and the more places were searched, the
//! more evidence a window needs.

use crate::confidence::{self, BASE, lg, significant, wilson};
use crate::days::{Day, day_text};
use crate::histogram::{Cell, Histogram, coarse_of, ranked, write_integer};
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::decimal::write_micro;
use ipse_core::json::write_text;

/// A recommended window of one parameter.
pub struct Recommended {
    inside: Cell,
    /// The first and the last coarse cell of the window.
    cells: (i64, i64),
    value: i64,
    low: i64,
    high: i64,
    confidence: i64,
}

/// The observations that a recommendation of `v2` rests on.
pub struct UsedDays {
    /// The number of them outside the window.
    pub outside: i64,
    /// The first day that was used, if not all days were.
    pub since: Option<Day>,
}

impl Recommended {
    /// Searches a parameter's histogram. `competitors` is the number of parameters to choose from.
    pub fn search(histogram: &Histogram, competitors: usize) -> Option<Self> {
        let coarse = histogram.coarse();
        let k = BASE + 2 * (lg(competitors) + lg(coarse.len()));
        let window = best_window(&coarse, k)?;
        let good = |cell: Cell| cell.successes > cell.failures();
        let inside = |value: i64| {
            let home = coarse_of(value).0;
            let place = window.cells.binary_search_by_key(&home, |(value, _)| *value);
            place.is_ok_and(|place| good(window.cells[place].1))
        };
        let kept: Vec<(i64, i64)> = histogram
            .fine()
            .iter()
            .filter(|(value, cell)| good(*cell) && inside(*value))
            .map(|(value, cell)| (*value, cell.successes))
            .collect();
        let successes: i64 = kept.iter().map(|(_, successes)| successes).sum();
        Some(Recommended {
            inside: window.sum,
            cells: (window.cells.first()?.0, window.cells.last()?.0),
            value: ranked(kept.iter().copied(), (successes + 1) / 2),
            low: kept.first()?.0,
            high: kept.last()?.0,
            confidence: wilson(window.sum.successes, window.sum.n, k),
        })
    }

    /// The confidence that attempts work inside and fail outside, over all `n` observations.
    pub fn agreement(&self, failures: i64, n: i64, competitors: usize) -> i64 {
        let outside = failures - self.inside.failures();
        wilson(self.inside.successes + outside, n, BASE + 2 * lg(competitors))
    }

    /// Whether a fine cell is in the window.
    pub fn holds(&self, fine: i64) -> bool {
        (self.cells.0..=self.cells.1).contains(&coarse_of(fine).0)
    }

    /// The attempts inside the window.
    pub fn inside(&self) -> Cell {
        self.inside
    }

    /// The recommended value.
    pub fn value(&self) -> i64 {
        self.value
    }

    /// The least and the greatest value inside the window that mostly worked.
    pub fn window(&self) -> (i64, i64) {
        (self.low, self.high)
    }

    /// Appends the published member.
    pub(crate) fn write(&self, used: Option<&UsedDays>, out: &mut String) {
        out.push_str(",\"recommended\":{\"confidence\":");
        confidence::write(self.confidence, out);
        write_integer(",\"failures\":", self.inside.failures(), out);
        out.push_str(",\"high\":");
        write_micro(self.high, out);
        out.push_str(",\"low\":");
        write_micro(self.low, out);
        if let Some(UsedDays { outside, since }) = used {
            write_integer(",\"outside\":", *outside, out);
            if let Some(since) = since {
                out.push_str(",\"since\":");
                write_text(&day_text(*since), out);
            }
        }
        write_integer(",\"successes\":", self.inside.successes, out);
        out.push_str(",\"value\":");
        write_micro(self.value, out);
        out.push('}');
    }
}

/// A run of adjacent coarse cells.
pub(crate) struct Window<'c> {
    cells: &'c [(i64, Cell)],
    sum: Cell,
}

/// The admissible, significant window with the greatest surplus of successes; then with the fewest
/// failures; then with the lowest start.
pub(crate) fn best_window(coarse: &[(i64, Cell)], k: i128) -> Option<Window<'_>> {
    let failing_from = latest_failing_starts(coarse);
    let surplus = |cell: Cell| cell.successes - cell.failures();
    // The greatest surplus of any window that begins at each cell.
    let mut reach = alloc::vec![0; coarse.len() + 1];
    for start in (0..coarse.len()).rev() {
        reach[start] = surplus(coarse[start].1) + i64::max(reach[start + 1], 0);
    }
    let mut best: Option<Window<'_>> = None;
    for start in 0..coarse.len() {
        // A window whose first cell has no surplus is better without it: at least as much surplus,
        // fewer failures, no less significant.
        let no_gain = surplus(coarse[start].1) <= 0;
        if no_gain || best.as_ref().is_some_and(|best| reach[start] < surplus(best.sum)) {
            continue;
        }
        let mut sum = Cell::default();
        for end in start..coarse.len() {
            if failing_from[end].is_some_and(|from| from >= start) {
                break;
            }
            sum = sum.plus(coarse[end].1);
            let rank = |sum: Cell| (surplus(sum), -sum.failures());
            let better = best.as_ref().is_none_or(|best| rank(sum) > rank(best.sum));
            if better && significant(sum.successes, sum.failures(), k) {
                best = Some(Window { cells: &coarse[start..=end], sum });
            }
        }
    }
    best
}

/// For each cell, the latest start of a confidently failing run that ends there.
fn latest_failing_starts(coarse: &[(i64, Cell)]) -> Vec<Option<usize>> {
    // The greatest surplus of failures of any run that ends here: without one, none can fail.
    let mut greatest = 0;
    let latest = |end: usize| {
        let cell = coarse[end].1;
        greatest = i64::max(greatest, 0) + cell.failures() - cell.successes;
        if !significant(greatest.max(0), 0, BASE) {
            return None;
        }
        let mut sum = Cell::default();
        (0..=end).rev().find(|start| {
            sum = sum.plus(coarse[*start].1);
            significant(sum.failures(), sum.successes, BASE)
        })
    };
    (0..coarse.len()).map(latest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rules as they are written, run by run.
    fn by_the_book(coarse: &[(i64, Cell)], k: i128) -> Option<(i64, Cell)> {
        let sum = |start: usize, end: usize| {
            coarse[start..=end].iter().fold(Cell::default(), |sum, (_, cell)| sum.plus(*cell))
        };
        let runs =
            || (0..coarse.len()).flat_map(|start| (start..coarse.len()).map(move |e| (start, e)));
        let fails = |run: Cell| significant(run.failures(), run.successes, BASE);
        let failing: Vec<_> = runs().filter(|(start, end)| fails(sum(*start, *end))).collect();
        let inside = |start, end| failing.iter().any(|(from, to)| start <= *from && *to <= end);
        let mut best: Option<(usize, Cell)> = None;
        for (start, end) in runs().filter(|(start, end)| !inside(*start, *end)) {
            let window = sum(start, end);
            let rank = |cell: Cell| (cell.successes - cell.failures(), -cell.failures());
            let better = best.is_none_or(|(_, best)| rank(window) > rank(best));
            if better && significant(window.successes, window.failures(), k) {
                best = Some((start, window));
            }
        }
        best.map(|(start, window)| (coarse[start].0, window))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_window_is_the_one_by_the_book(
            cells in proptest::collection::vec((0_i64..9, 0_i64..5), 0..14),
            price in 0_i128..4
        ) {
            let cell = |(s, f): &(i64, i64)| Cell { n: s + f, successes: *s };
            let occupied = cells.iter().filter(|(s, f)| s + f > 0).map(cell);
            let coarse: Vec<(i64, Cell)> = (1..).zip(occupied).collect();
            let found = best_window(&coarse, BASE + 2 * price);
            let found = found.map(|window| (window.cells[0].0, window.sum));
            prop_assert_eq!(found, by_the_book(&coarse, BASE + 2 * price));
        }
    }
}
