//! How far a parameter is from a recommendation: the fewest further successes at one value that
//! make the rules publish one.
//!
//! **Invariants:** the answer comes from the functions that publish ([`Recommended::search`] and
//! the search over days of `v2`), called with the successes added. So that many successes are
//! enough, and one fewer is not. Nothing here changes a fact.

use crate::confidence::{BASE, lg, significant};
use crate::days::{Day, Days};
use crate::histogram::{Cell, Histogram, coarse_of};
use crate::publish::COMPETING_FROM;
use crate::recommend::{Recommended, best_window};
use crate::tally::Tally;
use crate::v1::Observed;
use crate::v2::{Dated, Tried, recommended};
use alloc::string::String;
use alloc::vec::Vec;

/// The most further successes that are tried under `v2`, where more successes can also show that
/// the rate has changed, so that each number has to be tried.
pub const MAX_TRIED: i64 = 300;

/// The distance of one parameter from a recommendation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distance<'t> {
    /// The name of the parameter.
    pub name: &'t str,
    /// All attempts with a value.
    pub tried: Cell,
    /// The nearest recommendation; `None` if [`MAX_TRIED`] successes are not enough.
    pub nearest: Option<Nearest>,
    /// Whether the rate inside a range that is clearly better changed between two days, so that it
    /// is not recommended.
    pub changed: bool,
}

/// The recommendation that the fewest further successes would give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nearest {
    /// The value at which the successes are added: one that was tried.
    pub value: i64,
    /// The number of successes, without a failure; under `v2` all on one later day.
    pub more: i64,
    /// The attempts inside the window so far, on the days that it would use.
    pub inside: Cell,
    /// The least and the greatest tried value inside the window.
    pub tried: (i64, i64),
}

impl<'t> Distance<'t> {
    /// The distances of the parameters of a skill without a recommendation under `v1`.
    pub fn of_observed(tally: &'t Observed) -> Vec<Self> {
        let competitors = tally.numbers.values().filter(|all| competes(all)).count();
        let one = |(name, all): (&'t String, &Histogram)| {
            if Recommended::search(all, competitors).is_some() {
                return None;
            }
            let others = competitors - usize::from(competes(all));
            let (value, more) = cheapest(all, others)?;
            let found = Recommended::search(&with(all, value, more), others + 1)?;
            let nearest = Some(Nearest::of(&found, all, value, more));
            Some(Distance { name, tried: whole(all), nearest, changed: false })
        };
        tally.numbers.iter().filter_map(one).collect()
    }

    /// The same under `v2`.
    pub fn of_dated(tally: &'t Dated) -> Vec<Self> {
        let (tried, competitors) = Tried::of(tally);
        let without = tried.into_iter().filter(|param| param.recommended.is_none());
        let one = |Tried { name, days, all, .. }: Tried<'t>| {
            let others = competitors - usize::from(competes(all));
            let found = Recommended::search(all, competitors);
            let changed = found.is_some();
            let value = match found {
                Some(found) => best_value(all, |value| found.holds(value))?,
                None => cheapest(all, others)?.0,
            };
            let nearest = (1..=MAX_TRIED).find_map(|more| later(days, all, others, value, more));
            Some(Distance { name, tried: whole(all), nearest, changed })
        };
        without.filter_map(one).collect()
    }
}

impl Nearest {
    fn of(found: &Recommended, so_far: &Histogram, value: i64, more: i64) -> Self {
        let held = || so_far.fine().iter().filter(|(value, _)| found.holds(*value));
        let inside = held().fold(Cell::default(), |sum, (_, cell)| sum.plus(*cell));
        let values = || held().map(|(value, _)| *value);
        let tried = (values().min().unwrap_or(value), values().max().unwrap_or(value));
        Nearest { value, more, inside, tried }
    }
}

/// The recommendation of `v2` after this many successes on one later day, if there is one. Only the
/// order of days counts, so it is the same for every later day.
fn later(
    days: &Days<Histogram>,
    all: &Histogram,
    others: usize,
    value: i64,
    more: i64,
) -> Option<Nearest> {
    let (last, _) = days.all().last()?;
    let added = Histogram::from_cells(0, Vec::from([(value, successes(more))]));
    let next = Vec::from([(last + 1, added)]);
    let days: Vec<(Day, Histogram)> = days.all().iter().cloned().chain(next).collect();
    let all = with(all, value, more);
    let competitors = others + usize::from(competes(&all));
    let (found, since) = recommended(&days, &all, competitors)?;
    let used = days.iter().filter(|(day, _)| since.is_none_or(|since| *day >= since));
    let used = Histogram::total(used.take_while(|(day, _)| day <= last).map(|(_, it)| it));
    Some(Nearest::of(&found, &used, value, more))
}

/// The value and the number of successes of the nearest recommendation of `v1`. All values of one
/// coarse cell have the same number. A number that is enough stays enough if it grows, because more
/// successes never make a run fail, nor a window less significant.
fn cheapest(all: &Histogram, others: usize) -> Option<(i64, i64)> {
    let coarse = all.coarse();
    let k = BASE + 2 * (lg(others + 1) + lg(coarse.len()));
    let enough = |place: usize, more: i64| {
        let mut coarse = coarse.clone();
        coarse[place].1 = coarse[place].1.plus(successes(more));
        best_window(&coarse, k).is_some()
    };
    let mut best: Option<(usize, i64)> = None;
    for (place, (_, cell)) in coarse.iter().enumerate() {
        let below = best.map(|(_, more)| more - 1);
        if below.is_some_and(|below| below < 1 || !enough(place, below)) {
            continue;
        }
        // Alone, the cell is a window as soon as it is significant itself.
        let alone = |more: i64| significant(cell.successes + more, cell.failures(), k);
        let mut most = below.unwrap_or(1);
        while below.is_none() && !alone(most) {
            most *= 2;
        }
        best = Some((place, least(most, |more| enough(place, more))));
    }
    let (_, more) = best?;
    // Of the cells that need the fewest, the one that has worked best so far.
    let surplus = |place: &usize| coarse[*place].1.successes - coarse[*place].1.failures();
    let places = (0..coarse.len()).rev().filter(|place| enough(*place, more));
    let place = places.max_by_key(surplus)?;
    let home = coarse[place].0;
    Some((best_value(all, |value| coarse_of(value).0 == home)?, more))
}

/// The least number from 1 to `most` that is enough; `most` is.
fn least(most: i64, enough: impl Fn(i64) -> bool) -> i64 {
    let (mut below, mut found) = (0, most);
    while found - below > 1 {
        let middle = below + (found - below) / 2;
        if enough(middle) { found = middle } else { below = middle }
    }
    found
}

/// The tried value with the greatest surplus of successes among some of them.
fn best_value(all: &Histogram, among: impl Fn(i64) -> bool) -> Option<i64> {
    let surplus = |cell: &Cell| cell.successes - cell.failures();
    let values = all.fine().iter().filter(|(value, _)| among(*value));
    values.max_by_key(|(value, cell)| (surplus(cell), -value)).map(|(value, _)| *value)
}

fn with(all: &Histogram, value: i64, more: i64) -> Histogram {
    let mut all = all.clone();
    all.add(&Histogram::from_cells(0, Vec::from([(value, successes(more))])));
    all
}

fn successes(more: i64) -> Cell {
    Cell { n: more, successes: more }
}

fn whole(all: &Histogram) -> Cell {
    all.fine().iter().fold(Cell::default(), |sum, (_, cell)| sum.plus(*cell))
}

fn competes(all: &Histogram) -> bool {
    all.n() >= COMPETING_FROM
}
