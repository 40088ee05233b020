//! The values that a planner may try: a list, or a range in steps.
//!
//! **Invariant:** candidates are fine cells in ascending order, at least one and at most
//! [`MAX_CANDIDATES`], and no two are equal.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use ipse_consolidate::histogram::fine_of;
use ipse_core::Micro;
use ipse_core::decimal::rounded;

/// The most candidates. Each must be tried several times before it can be ruled out, so more than
/// about 25 already cost more attempts than they find.
pub const MAX_CANDIDATES: usize = 256;

/// The number of values between two ends, if no candidates are given.
pub const DEFAULT_CANDIDATES: i64 = 21;

/// Candidates in ascending order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidates(Vec<i64>);

/// The reason why values are no candidates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadCandidates {
    /// There is no value.
    None,
    /// There are more than [`MAX_CANDIDATES`].
    TooMany,
    /// Two values are equal to four significant digits: this one.
    Equal(Micro),
    /// The step of a range is not above zero.
    BadStep,
    /// This text is no number that facts can hold.
    NoNumber(String),
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

    /// The candidates of a list of numbers, in any order.
    ///
    /// ```
    /// use ipse_plan::Candidates;
    ///
    /// assert_eq!(Candidates::numbers(&[30.0, 20.0, 25.0])?, Candidates::parse("20, 25, 30")?);
    /// # Ok::<(), ipse_plan::BadCandidates>(())
    /// ```
    pub fn numbers(values: &[f64]) -> Result<Self, BadCandidates> {
        let number = |value: &f64| {
            Micro::from_f64(*value).ok_or_else(|| BadCandidates::NoNumber(format!("{value}")))
        };
        Candidates::list(&values.iter().map(number).collect::<Result<Vec<_>, _>>()?)
    }

    /// Reads numbers that are separated by commas.
    pub fn parse(text: &str) -> Result<Self, BadCandidates> {
        if text.trim().is_empty() {
            return Err(BadCandidates::None);
        }
        Candidates::list(&text.split(',').map(number).collect::<Result<Vec<_>, _>>()?)
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

    /// The default between two ends: [`DEFAULT_CANDIDATES`] values at equal distances, rounded to
    /// micro-units, without those that are equal to four digits or that `keeps` rejects.
    pub fn between(
        min: Micro,
        max: Micro,
        keeps: impl Fn(Micro) -> bool,
    ) -> Result<Self, BadCandidates> {
        let (steps, width) = (DEFAULT_CANDIDATES - 1, i128::from(max.get() - min.get()));
        let value = |place| micro(min.get() + rounded(width * i128::from(place), steps));
        let mut cells: Vec<i64> = (0..=steps).map(value).map(fine_of).collect();
        cells.sort_unstable();
        cells.dedup();
        let kept = cells.into_iter().map(micro).filter(|value| keeps(*value));
        Candidates::list(&kept.collect::<Vec<_>>())
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

/// Reads one number.
pub fn number(text: &str) -> Result<Micro, BadCandidates> {
    let text = text.trim();
    Micro::from_decimal(text).ok_or_else(|| BadCandidates::NoNumber(text.into()))
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
            BadCandidates::NoNumber(text) => {
                write!(f, "`{}` is no number from -10^9 to 10^9", text.escape_debug())
            }
            BadCandidates::BadStep => f.write_str("the step of the candidates is not above zero"),
        }
    }
}

impl core::error::Error for BadCandidates {}
