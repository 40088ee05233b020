//! The values that a planner may try: a list, or a range in steps.
//!
//! **Invariant:** candidates are fine cells in ascending order, at least one and at most
//! [`MAX_CANDIDATES`], and no two are equal.

use alloc::vec::Vec;
use core::fmt;
use ipse_consolidate::histogram::fine_of;
use ipse_core::Micro;

/// The most candidates. Each must be tried several times before it can be ruled out, so more than
/// about 25 already cost more attempts than they find.
pub const MAX_CANDIDATES: usize = 256;

/// Candidates in ascending order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidates(Vec<i64>);

/// The reason why values are no candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadCandidates {
    /// There is no value.
    None,
    /// There are more than [`MAX_CANDIDATES`].
    TooMany,
    /// Two values are equal to four significant digits: this one.
    Equal(Micro),
    /// The step of a range is not above zero.
    BadStep,
}

impl Candidates {
    /// The candidates of a list, in any order.
    pub fn list(values: &[Micro]) -> Result<Self, BadCandidates> {
        if values.len() > MAX_CANDIDATES {
            return Err(BadCandidates::TooMany);
        }
        let mut cells: Vec<i64> = values.iter().map(|value| fine_of(*value)).collect();
        cells.sort_unstable();
        match cells.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(BadCandidates::Equal(micro(pair[0]))),
            None if cells.is_empty() => Err(BadCandidates::None),
            None => Ok(Candidates(cells)),
        }
    }

    /// The candidates `from`, `from + step` and so on, up to `to`.
    pub fn range(from: Micro, to: Micro, step: Micro) -> Result<Self, BadCandidates> {
        if step.get() <= 0 {
            return Err(BadCandidates::BadStep);
        }
        // One beyond the limit shows that there are too many.
        let next = |value: &i64| value.checked_add(step.get()).filter(|next| *next <= to.get());
        let first = Some(from.get()).filter(|from| *from <= to.get());
        let values = core::iter::successors(first, next).take(MAX_CANDIDATES + 1);
        Candidates::list(&values.map(micro).collect::<Vec<_>>())
    }

    /// A list in which values may be equal: they become one candidate.
    pub fn merged(values: &[Micro]) -> Result<Self, BadCandidates> {
        let mut cells: Vec<i64> = values.iter().map(|value| fine_of(*value)).collect();
        cells.sort_unstable();
        cells.dedup();
        Candidates::list(&cells.into_iter().map(micro).collect::<Vec<_>>())
    }

    /// The candidates, in micro-units.
    pub fn cells(&self) -> &[i64] {
        &self.0
    }

    /// The lower of the two middle candidates.
    pub(crate) fn middle(&self) -> i64 {
        self.0[(self.0.len() - 1) / 2]
    }

    /// The place of the candidate nearest to a value; of two equally near, the lower.
    pub(crate) fn nearest(&self, value: i64) -> usize {
        let above = self.0.partition_point(|candidate| *candidate < value);
        let distance = |place: usize| self.0.get(place).map(|it| it.abs_diff(value));
        match above.checked_sub(1) {
            None => 0,
            Some(below) => match (distance(below), distance(above)) {
                (Some(to_below), Some(to_above)) if to_above < to_below => above,
                _ => below,
            },
        }
    }

    /// The place of the candidate that a value counts for. A value beyond the ends counts if it is
    /// within half of the gap there; with a single candidate only an equal value counts.
    pub(crate) fn counts_for(&self, value: i64) -> Option<usize> {
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        let [first_gap, last_gap] = match &self.0[..] {
            [.., before, last] => [self.0[1] - first, last - before],
            _ => [0, 0],
        };
        let inside = 2 * (first - value) <= first_gap && 2 * (value - last) <= last_gap;
        inside.then(|| self.nearest(value))
    }
}

/// A number that was usable before.
pub(crate) fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap_or_default()
}

impl fmt::Display for BadCandidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadCandidates::None => f.write_str("there is no candidate"),
            BadCandidates::TooMany => {
                write!(f, "there are more than {MAX_CANDIDATES} candidates")
            }
            BadCandidates::Equal(value) => {
                write!(f, "two candidates are equal to four significant digits: {value}")
            }
            BadCandidates::BadStep => f.write_str("the step of the candidates is not above zero"),
        }
    }
}

impl core::error::Error for BadCandidates {}
