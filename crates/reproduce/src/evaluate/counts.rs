//! The counts of a planner, and their figures: lift, gain and the interval of the lift.
//!
//! **Invariants:** counts are added exactly before any division. A figure whose divisor is zero is
//! absent. The same counts give the same interval on every machine.

use crate::bca::{RANDOM_STATE, RESAMPLES, TAIL, percentile};
use crate::random::Legacy;
use std::ops::AddAssign;

/// The number of decisions by outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// All decisions.
    pub decisions: u64,
    /// Decisions that failed in the log.
    pub failures: u64,
    /// Decisions that the planner skipped.
    pub skipped: u64,
    /// Skipped decisions that failed in the log.
    pub avoided: u64,
}

impl Counts {
    /// Decisions that succeeded in the log.
    pub fn successes(&self) -> u64 {
        self.decisions - self.failures
    }

    /// Skipped decisions that succeeded in the log.
    pub fn lost(&self) -> u64 {
        self.skipped - self.avoided
    }

    /// Failures avoided, as a multiple of the number that skipping as often at random would avoid;
    /// `None` if nothing failed or nothing was skipped.
    pub fn lift(&self) -> Option<f64> {
        ratio(self.avoided * self.decisions, self.failures * self.skipped)
    }

    /// The share of failures avoided minus the share of successes lost; `None` if nothing failed or
    /// nothing succeeded.
    pub fn gain(&self) -> Option<f64> {
        Some(ratio(self.avoided, self.failures)? - ratio(self.lost(), self.successes())?)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.decisions += other.decisions;
        self.failures += other.failures;
        self.skipped += other.skipped;
        self.avoided += other.avoided;
    }
}

/// A quotient; `None` if the divisor is zero.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The interval of the lift over resampled keys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The ends of the 95 % interval; `None` if most resamples have no lift.
    pub ends: Option<[f64; 2]>,
    /// The number of resamples without a lift: nothing skipped, or nothing failed. They are
    /// ignored.
    pub undefined: u64,
}

/// The percentile interval of the lift; `None` with fewer than two keys.
pub(crate) fn interval(keys: &[Counts]) -> Option<Interval> {
    let count = u32::try_from(keys.len()).expect("BUG: more keys than a word counts");
    if count < 2 {
        return None;
    }
    let mut random = Legacy::new(RANDOM_STATE);
    let mut resample = || {
        let mut sum = Counts::default();
        keys.iter().for_each(|_| sum += keys[random.below(count) as usize]);
        sum
    };
    let mut lifts: Vec<f64> = (0..RESAMPLES).filter_map(|_| resample().lift()).collect();
    lifts.sort_by(f64::total_cmp);
    let undefined = RESAMPLES - lifts.len();
    let enough = 2 * undefined <= RESAMPLES;
    let ends = enough.then(|| [TAIL, 1.0 - TAIL].map(|share| percentile(&lifts, share)));
    Some(Interval { ends, undefined: undefined as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(decisions: u64, failures: u64, skipped: u64, avoided: u64) -> Counts {
        Counts { decisions, failures, skipped, avoided }
    }

    #[test]
    fn skipping_at_random_lifts_and_gains_nothing() {
        let random = counts(40, 10, 20, 5);
        assert_eq!((random.lift(), random.gain()), (Some(1.0), Some(0.0)));
        let all = counts(40, 10, 40, 10);
        assert_eq!((all.lift(), all.gain()), (Some(1.0), Some(0.0)));
        let perfect = counts(40, 10, 10, 10);
        assert_eq!((perfect.lift(), perfect.gain()), (Some(4.0), Some(1.0)));
        let perverse = counts(40, 10, 30, 0);
        assert_eq!((perverse.lift(), perverse.gain()), (Some(0.0), Some(-1.0)));
    }

    #[test]
    fn what_cannot_be_divided_is_absent() {
        assert_eq!((counts(0, 0, 0, 0).lift(), counts(0, 0, 0, 0).gain()), (None, None));
        assert_eq!(counts(9, 4, 0, 0).lift(), None, "nothing skipped");
        assert_eq!(counts(9, 4, 0, 0).gain(), Some(0.0));
        assert_eq!(counts(9, 0, 2, 0).lift(), None, "nothing failed");
        assert_eq!(counts(9, 9, 2, 2).gain(), None, "nothing succeeded");
    }

    #[test]
    fn an_interval_needs_two_keys_and_resamples_that_say_something() {
        let (good, bad) = (counts(10, 1, 0, 0), counts(10, 9, 10, 9));
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[bad]), None);
        let two = interval(&[good, bad]).unwrap();
        // Drawing the good key twice leaves nothing skipped: one resample of four.
        assert!((2300..2700).contains(&two.undefined), "{}", two.undefined);
        // Drawing the bad key twice skips everything.
        assert_eq!(two.ends, Some([1.0, 1.8]));
        // If no key was ever skipped, no resample has a lift.
        let idle = interval(&[good; 200]).unwrap();
        assert_eq!((idle.ends, idle.undefined), (None, RESAMPLES as u64));
    }

    /// `np.percentile(lifts, [2.5, 97.5])`, drawn by `RandomState(20260524).randint(0, 8)`.
    #[test]
    fn an_interval_is_numpys() {
        let key = |k: u64| counts(10 + k, 2 + k % 4, k % 5, (2 + k % 4).min(k % 5));
        let eight = interval(&[0, 1, 2, 3, 4, 5, 6, 7].map(key)).unwrap();
        let ends = Some([2.9323308270676693, 4.076923076923077]);
        assert_eq!(eight, Interval { ends, undefined: 0 });
    }

    #[test]
    fn equal_keys_have_an_interval_without_width() {
        let even = interval(&[counts(4, 2, 1, 1); 5]).unwrap();
        assert_eq!(even, Interval { ends: Some([2.0, 2.0]), undefined: 0 });
    }
}
