//! The value to try next: the candidate that could still be the best, given the newest evidence.
//!
//! A planner that always takes the recommended value learns nothing about others. This rule tries
//! where little is known and stops where enough is known.
//!
//! **Invariant:** a function of one parameter's values by day, the candidates and the preference.
//! Only days inside the window count, so an old success cannot hide a change for ever.

use crate::candidates::{Candidates, micro};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use ipse_consolidate::confidence::BASE;
use ipse_consolidate::days::{Day, Days, Rate};
use ipse_consolidate::histogram::{Cell, Histogram};
use ipse_consolidate::stretch::bounds;
use ipse_core::Micro;

/// The values that fill the window. A smaller window follows a slow change better and settles
/// worse.
pub const WINDOW_VALUES: i64 = 512;

/// The next value to try, and what is known about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suggestion {
    /// The candidate to try.
    pub value: Micro,
    /// Its attempts in the window.
    pub rate: Rate,
    /// The upper bound of its success rate, in steps of 1/10⁴.
    pub high: i64,
    /// The value that worked most often on the newest day; without one the preferred value, else
    /// the lower middle candidate.
    pub anchor: Micro,
    /// The candidate nearest to the anchor, and its attempts in the window.
    pub settled: (Micro, Rate),
    /// The days that were looked at.
    pub window: Window,
}

/// The newest days that hold enough values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The first day; `None` without values.
    pub since: Option<Day>,
    /// The number of values.
    pub n: i64,
}

impl Suggestion {
    /// The reason in words.
    pub fn why(&self) -> String {
        let tried = |(value, rate): (Micro, Rate)| {
            format!("{value} was tried {} times, {} worked", rate.n, rate.s)
        };
        let settled = tried(self.settled);
        if self.value == self.settled.0 {
            return settled;
        }
        let value = match self.rate.n {
            0 => format!("{} was never tried", self.value),
            _ => tried((self.value, self.rate)),
        };
        format!("{settled}; {value} and could be better")
    }
}

/// The candidate to try next.
///
/// ```
/// use ipse_consolidate::days::Days;
/// use ipse_consolidate::histogram::Histogram;
/// use ipse_core::Micro;
/// use ipse_plan::{Candidates, suggest};
///
/// let micro = |text| Micro::from_decimal(text).unwrap();
/// let candidates = Candidates::list(&[micro("20"), micro("25"), micro("30")])?;
/// let one_failure = Days::one(20_000, Histogram::of(micro("25"), false));
/// let found = suggest(&one_failure, &candidates, None);
/// assert_eq!(found.value, micro("20"));
/// # Ok::<(), ipse_plan::BadCandidates>(())
/// ```
pub fn suggest(
    days: &Days<Histogram>,
    candidates: &Candidates,
    prefer: Option<Micro>,
) -> Suggestion {
    let (window, days) = window(days.all());
    let mut rates = vec![Rate::default(); candidates.cells().len()];
    for (value, cell) in days.iter().flat_map(|(_, histogram)| histogram.fine()) {
        if let Some(place) = candidates.counts_for(*value) {
            rates[place] = rates[place].plus(Rate { n: cell.n, s: cell.successes });
        }
    }
    let anchor = newest_hit(days).or(prefer.map(Micro::get)).unwrap_or_else(|| candidates.middle());
    let known = candidates.cells().iter().zip(&rates);
    let known = known.map(|(value, rate)| (bounds(*rate, BASE).1, *value, *rate));
    let best = known.min_by_key(|(high, value, _)| (-high, value.abs_diff(anchor), *value));
    let (high, value, rate) = best.expect("BUG: there is no candidate");
    let nearest = candidates.nearest(anchor);
    Suggestion {
        value: micro(value),
        rate,
        high,
        anchor: micro(anchor),
        settled: (micro(candidates.cells()[nearest]), rates[nearest]),
        window,
    }
}

/// The newest whole days that hold [`WINDOW_VALUES`] values, or all days.
fn window(days: &[(Day, Histogram)]) -> (Window, &[(Day, Histogram)]) {
    let (mut n, mut first) = (0, days.len());
    while first > 0 && n < WINDOW_VALUES {
        first -= 1;
        n += days[first].1.n();
    }
    (Window { since: days.get(first).map(|(day, _)| *day), n }, &days[first..])
}

/// The value that worked most often on the newest day with a success; of equals the lower.
fn newest_hit(days: &[(Day, Histogram)]) -> Option<i64> {
    let best = |(_, histogram): &(Day, Histogram)| {
        let hits = histogram.fine().iter().filter(|(_, cell)| cell.successes > 0);
        let rank = |(value, cell): &&(i64, Cell)| (-cell.successes, *value);
        hits.min_by_key(rank).map(|(value, _)| *value)
    };
    days.iter().rev().find_map(best)
}
