//! The bias-corrected and accelerated bootstrap interval of a mean, as `scipy.stats.bootstrap`
//! computes it.
//!
//! **Invariants:** draws, sums and interpolation follow SciPy's order of operations. Data without
//! spread has no interval instead of NaN.

use crate::normal::{below, mean, quantile, sum};
use crate::random::Legacy;

/// The number of resamples in the paper.
pub const RESAMPLES: usize = 10_000;
/// The paper's `random_state`.
pub const RANDOM_STATE: u32 = 20_260_524;
/// The share outside a 95 % interval on each side.
pub(crate) const TAIL: f64 = 0.025;

/// An interval, with its intermediate values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bca {
    /// The share of resampled means below the mean; equal ones count half.
    pub share: f64,
    /// The correction for bias.
    pub z0: f64,
    /// The acceleration.
    pub a: f64,
    /// The shares of resampled means at which the interval ends.
    pub ends: [f64; 2],
    /// The interval.
    pub interval: [f64; 2],
}

/// The 95 % interval of the mean of values; `None` without spread.
pub fn bca(values: &[f64]) -> Option<Bca> {
    let first = values.first()?;
    if values.iter().all(|value| value == first) {
        return None;
    }
    let means = resampled_means(values);
    let share = share_below(&means, mean(values));
    let (z0, a) = (quantile(share), acceleration(values));
    let end = |z: f64| below(z0 + (z0 + z) / (1.0 - a * (z0 + z)));
    let ends = [end(quantile(TAIL)), end(-quantile(TAIL))];
    let interval = ends.map(|end| percentile(&means, end));
    interval.iter().all(|end| end.is_finite()).then_some(Bca { share, z0, a, ends, interval })
}

/// The means of the resamples, in ascending order.
fn resampled_means(values: &[f64]) -> Vec<f64> {
    let mut random = Legacy::new(RANDOM_STATE);
    let count = u32::try_from(values.len()).expect("BUG: more values than a word counts");
    let mut resample = vec![0.0; values.len()];
    let one = |_| {
        resample.fill_with(|| values[random.below(count) as usize]);
        mean(&resample)
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(one).collect();
    means.sort_by(f64::total_cmp);
    means
}

fn share_below(sorted: &[f64], value: f64) -> f64 {
    let less = sorted.partition_point(|other| *other < value);
    let up_to = sorted.partition_point(|other| *other <= value);
    (less + up_to) as f64 / (2 * sorted.len()) as f64
}

/// The change of the mean's spread with the mean, by leaving out each value in turn.
fn acceleration(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let without = |at: usize| mean(&[&values[..at], &values[at + 1..]].concat());
    let means: Vec<f64> = (0..values.len()).map(without).collect();
    let middle = mean(&means);
    let influence: Vec<f64> = means.iter().map(|mean| (n - 1.0) * (middle - mean)).collect();
    let moment = |power: f64| {
        let powers: Vec<f64> = influence.iter().map(|u| libm::pow(*u, power)).collect();
        sum(&powers) / libm::pow(n, power)
    };
    moment(3.0) / 6.0 / libm::pow(moment(2.0), 1.5)
}

/// NumPy's percentile: linear interpolation, starting from the nearer neighbour.
#[expect(clippy::cast_sign_loss, reason = "a place is not negative, as was just checked")]
pub(crate) fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * (share * 100.0 / 100.0);
    if !(0.0..=(sorted.len() - 1) as f64).contains(&place) {
        return f64::NAN;
    }
    let (low, part) = (sorted[place.floor() as usize], place.fract());
    let high = sorted[place.ceil() as usize];
    match part {
        0.5.. => high - (high - low) * (1.0 - part),
        _ => low + (high - low) * part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_without_spread_has_no_interval() {
        assert_eq!(bca(&[]), None);
        assert_eq!(bca(&[3.0]), None);
        // The mean of equal values can differ from them by a rounding error.
        for (value, count) in [(0.1, 3), (0.1, 10), (0.7, 11), (79.82, 10)] {
            assert_eq!(bca(&vec![value; count]), None, "{count} times {value}");
        }
        assert_eq!(bca(&[0.0, 1e-200]), None, "a spread whose square is nothing");
        assert!(bca(&[0.1, 0.2]).is_some());
    }

    /// `np.percentile([0.1, 0.2, 0.7, 1.9, 3.3], 100 * share)`. At most of these shares, starting
    /// from the other neighbour gives another last digit.
    const NUMPY: [(f64, f64); 10] = [
        (0.0, 0.1),
        (0.008, 0.1032),
        (0.069, 0.12760000000000002),
        (0.161, 0.16440000000000002),
        (0.175, 0.17),
        (0.5, 0.7),
        (0.647, 1.4056),
        (0.939, 2.9583999999999997),
        (0.991, 3.2495999999999996),
        (1.0, 3.3),
    ];

    #[test]
    fn percentiles_are_numpys() {
        for (share, want) in NUMPY {
            assert_eq!(percentile(&[0.1, 0.2, 0.7, 1.9, 3.3], share), want, "{share}");
        }
        for outside in [-0.001, 1.001, f64::NAN] {
            assert!(percentile(&[0.1, 0.2], outside).is_nan(), "{outside}");
        }
    }
}
