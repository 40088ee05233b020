//! The newest stretch: the days since a rate changed.
//!
//! **Invariants:** a function of counts by day alone: no clock, no order of events. A boundary
//! between two days is a change if the confidence intervals of the rate before it and after it do
//! not overlap; the number of boundaries that are compared widens the intervals.

use crate::confidence::{BASE, STEPS, lg, wilson};
use crate::days::{Day, Rate};
use alloc::vec::Vec;

/// The newest days of a part that are searched for a boundary.
const MAX_SEARCHED: usize = 64;

/// A boundary at which a rate changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The first day after the boundary.
    pub day: Day,
    /// `K`: the square of the width of both intervals.
    pub k: i128,
    /// The counts before the boundary, back to the cut before it.
    pub before: Rate,
    /// The counts after it.
    pub after: Rate,
}

/// The place of the newest stretch's first day, and the last accepted boundary. `days` are in
/// ascending order, and each has an observation.
pub fn stretch(days: &[(Day, Rate)]) -> (usize, Option<Cut>) {
    let (mut start, mut last) = (0, None);
    while let Some((place, cut)) = next_cut(&days[start..]) {
        start += place;
        last = Some(cut);
    }
    (start, last)
}

/// The boundary with the greatest gap between the intervals on its two sides.
fn next_cut(part: &[(Day, Rate)]) -> Option<(usize, Cut)> {
    let total = part.iter().fold(Rate::default(), |sum, (_, rate)| sum.plus(*rate));
    let boundaries = part.len().min(MAX_SEARCHED).saturating_sub(1);
    if boundaries < 1 || total.s == 0 || total.f() == 0 {
        return None;
    }
    let k = BASE + lg(boundaries);
    let mut after = Rate::default();
    let mut best: Option<(i64, usize, Cut)> = None;
    for place in (part.len() - boundaries..part.len()).rev() {
        let (day, rate) = part[place];
        after = after.plus(rate);
        let before = total.minus(after);
        let gap = gap(before, after, k);
        if gap > best.map_or(0, |(gap, _, _)| gap) {
            best = Some((gap, place, Cut { day, k, before, after }));
        }
    }
    best.map(|(_, place, cut)| (place, cut))
}

/// The distance between two intervals; at most 0 if they meet.
fn gap(before: Rate, after: Rate, k: i128) -> i64 {
    let fell = wilson(before.s, before.n, k) + wilson(after.f(), after.n, k);
    let rose = wilson(after.s, after.n, k) + wilson(before.f(), before.n, k);
    fell.max(rose) - STEPS as i64
}

/// The lower and the upper bound of a rate in steps of 1/10⁴: down and up.
pub fn bounds(rate: Rate, k: i128) -> (i64, i64) {
    (wilson(rate.s, rate.n, k), STEPS as i64 - wilson(rate.f(), rate.n, k))
}

/// Counts in which no source has more weight than the median source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Robust {
    /// The number of sources.
    pub sources: usize,
    /// The counts.
    pub rate: Rate,
}

/// The robust counts, from the counts by day of each source; `None` for fewer than two sources.
pub fn robust<'d>(sources: impl Iterator<Item = &'d [(Day, Rate)]>) -> Option<Robust> {
    let newest = |days: &[(Day, Rate)]| {
        let from = &days[stretch(days).0..];
        from.iter().fold(Rate::default(), |sum, (_, rate)| sum.plus(*rate))
    };
    let rates: Vec<Rate> = sources.map(newest).filter(|rate| rate.n > 0).collect();
    if rates.len() < 2 {
        return None;
    }
    let mut counts: Vec<i64> = rates.iter().map(|rate| rate.n).collect();
    counts.sort_unstable();
    let cap = counts[(counts.len() - 1) / 2];
    let limited = |rate: &Rate| match rate.n <= cap {
        true => *rate,
        false => Rate { n: cap, s: share(rate.s, cap, rate.n) },
    };
    let sum = rates.iter().map(limited).fold(Rate::default(), Rate::plus);
    Some(Robust { sources: rates.len(), rate: sum })
}

/// `s · part / n`, rounded to the nearest integer and half to even.
pub(crate) fn share(s: i64, part: i64, n: i64) -> i64 {
    ipse_core::decimal::rounded(i128::from(s) * i128::from(part), n)
}
