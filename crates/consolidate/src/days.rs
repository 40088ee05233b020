//! Sums by day: sparse, in ascending order, with one encoding.
//!
//! **Invariant:** no day has a sum of zero, so equal sums have equal bytes. Most events are newer
//! than those before them, so adding one is a write at the end.

use crate::histogram::Histogram;
use crate::tally::Tally;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use ipse_core::Time;
use ipse_core::wire::{self, Wire};

/// A day in UTC: the number of days since 1970-01-01.
pub type Day = i64;

/// The length of a day in microseconds.
pub(crate) const DAY_MICROS: i64 = 86_400_000_000;

/// The day of a time.
pub fn day_of(time: Time) -> Day {
    time.micros().div_euclid(DAY_MICROS)
}

/// A day as `YYYY-MM-DD`.
pub fn day_text(day: Day) -> String {
    let time = Time::from_micros(day.saturating_mul(DAY_MICROS));
    time.map(|time| time.to_string().chars().take(10).collect()).unwrap_or_default()
}

/// Reads `YYYY-MM-DD`; `None` outside of the years 1970 to 9999.
pub fn read_day(text: &str) -> Option<Day> {
    let time = Time::parse(&alloc::format!("{text}T00:00:00Z")).ok();
    time.filter(|_| text.len() == 10).map(day_of)
}

/// A sum for each day that has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Days<T>(Vec<(Day, T)>);

impl<T> Default for Days<T> {
    fn default() -> Self {
        Days(Vec::new())
    }
}

impl<T: Tally> Days<T> {
    /// The sum of one day.
    pub fn one(day: Day, sum: T) -> Self {
        Days(Vec::from([(day, sum)]))
    }

    /// The days, ascending.
    pub fn all(&self) -> &[(Day, T)] {
        &self.0
    }

    /// The days from `first` on.
    pub fn from(&self, first: Day) -> &[(Day, T)] {
        &self.0[self.0.partition_point(|(day, _)| *day < first)..]
    }

    /// Adds to one day.
    pub fn put(&mut self, day: Day, sum: &T) {
        let place = match self.0.last() {
            Some((last, _)) if *last < day => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&day, |(day, _)| *day),
        };
        match place {
            Err(place) => self.0.insert(place, (day, sum.clone())),
            Ok(place) => {
                self.0[place].1.add(sum);
                if self.0[place].1.is_zero() {
                    self.0.remove(place);
                }
            }
        }
    }
}

impl Days<Histogram> {
    /// The sum of all days.
    pub(crate) fn total(&self) -> Histogram {
        match &self.0[..] {
            [] => Histogram::default(),
            [(_, only)] => only.clone(),
            days => Histogram::total(days.iter().map(|(_, day)| day)),
        }
    }

    /// The same, if the days are no longer needed.
    pub(crate) fn into_total(mut self) -> Histogram {
        match self.0.len() {
            1 => self.0.remove(0).1,
            _ => self.total(),
        }
    }
}

impl<T: Tally> Days<T> {
    /// Adds sums of days in ascending order.
    pub(crate) fn extend(&mut self, days: Vec<(Day, T)>) {
        match self.0.is_empty() {
            true => self.0 = days,
            false => self.add(&Days(days)),
        }
    }
}

impl<T: Tally> Tally for Days<T> {
    fn add(&mut self, other: &Self) {
        if other.0.len() <= 1 {
            other.0.iter().for_each(|(day, sum)| self.put(*day, sum));
            return;
        }
        let mut all = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut ours, mut theirs) = (core::mem::take(&mut self.0).into_iter().peekable(), 0);
        while let (Some(a), Some(b)) = (ours.peek_mut(), other.0.get(theirs)) {
            match a.0.cmp(&b.0) {
                Ordering::Less => all.extend(ours.next()),
                Ordering::Greater => {
                    all.push(b.clone());
                    theirs += 1;
                }
                Ordering::Equal => {
                    a.1.add(&b.1);
                    all.extend(ours.next().filter(|(_, sum)| !sum.is_zero()));
                    theirs += 1;
                }
            }
        }
        all.extend(ours);
        all.extend_from_slice(&other.0[theirs..]);
        self.0 = all;
    }

    fn negated(&self) -> Self {
        Days(self.0.iter().map(|(day, sum)| (*day, sum.negated())).collect())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        wire::write_len(self.0.len(), out);
        let mut previous = 0;
        for (day, sum) in &self.0 {
            wire::write_i128(i128::from(*day) - i128::from(previous), out);
            sum.encode(out);
            previous = *day;
        }
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        let count = wire.length()?;
        let mut days: Vec<(Day, T)> = Vec::new();
        let mut day: Day = 0;
        for _ in 0..count {
            day = day.checked_add(wire.i64()?)?;
            if days.last().is_some_and(|(last, _)| *last >= day) {
                return None;
            }
            days.push((day, T::decode(wire).filter(|sum| !sum.is_zero())?));
        }
        Some(Days(days))
    }
}

/// Attempts, and those that worked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rate {
    /// The number of attempts.
    pub n: i64,
    /// The number of successes.
    pub s: i64,
}

impl Rate {
    /// The number of failures.
    pub fn f(self) -> i64 {
        self.n - self.s
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Rate) -> Rate {
        Rate { n: self.n + other.n, s: self.s + other.s }
    }

    /// The difference of two.
    #[must_use]
    pub fn minus(self, other: Rate) -> Rate {
        Rate { n: self.n - other.n, s: self.s - other.s }
    }
}

impl Tally for Rate {
    fn add(&mut self, other: &Self) {
        *self = self.plus(*other);
    }

    fn negated(&self) -> Self {
        Rate { n: -self.n, s: -self.s }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.n.encode(out);
        self.s.encode(out);
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        Some(Rate { n: Tally::decode(wire)?, s: Tally::decode(wire)? })
    }
}
