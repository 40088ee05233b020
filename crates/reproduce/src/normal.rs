//! The normal distribution function and its inverse, and sums in NumPy's order.
//!
//! **Invariant:** no function of the platform's math library is used, so that all machines give the
//! same bits.

use libm::{erfc, exp};
use std::cmp::Ordering;
use std::f64::consts::{PI, SQRT_2};

/// The share of a normal distribution below `z`.
pub(crate) fn below(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// The inverse of [`below`]: the value with a share of `p` below it; infinite at 0 and 1.
///
/// Newton's method in the lower tail. The function is convex there, so no step passes the root.
pub(crate) fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -quantile(1.0 - p);
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let density = |z: f64| exp(-z * z / 2.0) / (2.0 * PI).sqrt();
    let mut z = 0.0;
    loop {
        let next = z - (below(z) - p) / density(z);
        // When only rounding errors remain, a step no longer goes down.
        if next.partial_cmp(&z) != Some(Ordering::Less) {
            return z;
        }
        z = next;
    }
}

/// The number of accumulators that NumPy adds into.
const LANES: usize = 8;
/// NumPy first halves arrays that are longer than this.
const BLOCK: usize = 128;

/// The sum of the values, in the order in which NumPy adds a contiguous array.
pub(crate) fn sum(values: &[f64]) -> f64 {
    if values.len() < LANES {
        return values.iter().fold(-0.0, |sum, value| sum + value);
    }
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (left, right) = values.split_at(half - half % LANES);
        return sum(left) + sum(right);
    }
    let (rows, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for row in rows {
        lanes.iter_mut().zip(row).for_each(|(lane, value)| *lane += value);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let whole = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(whole, |sum, value| sum + value)
}

/// The arithmetic mean; NaN if there are no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `z` and `scipy.special.ndtr(z)`; `ndtri` gives `z` back.
    const SCIPY: [(f64, f64); 10] = [
        (-8.0, 6.22096057427174e-16),
        (-3.5, 0.00023262907903552502),
        (-1.959963984540054, 0.025),
        (-0.75, 0.2266273523768682),
        (-0.01, 0.4960106436853684),
        (0.0, 0.5),
        (0.3, 0.6179114221889526),
        (1.25, 0.8943502263331446),
        (2.5, 0.9937903346742238),
        (4.0, 0.9999683287581669),
    ];

    #[test]
    fn shares_and_quantiles_are_scipys() {
        for (z, p) in SCIPY {
            assert!((below(z) - p).abs() <= 1e-15 * p.max(1e-3), "{z}: {} {p}", below(z));
            assert!((quantile(p) - z).abs() < 1e-11, "{p}: {} {z}", quantile(p));
        }
    }

    #[test]
    fn the_ends_are_infinite() {
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
        assert_eq!(below(f64::NEG_INFINITY), 0.0);
        assert_eq!(below(f64::INFINITY), 1.0);
    }

    /// `np.sum` of `1 / (1 + i * i % 97)` for the first values of `i`. Another order of adding
    /// gives another last digit of 128, 136, 201 or 1000 of them.
    const NUMPY: [(usize, f64); 15] = [
        (0, 0.0),
        (1, 1.0),
        (7, 1.9243120949003303),
        (8, 1.9443120949003303),
        (9, 1.9596967102849456),
        (16, 2.6610071290398185),
        (17, 2.6768801449128343),
        (127, 9.308316864992594),
        (128, 9.344031150706883),
        (129, 9.355267105763062),
        (136, 9.566772692168295),
        (200, 14.416399192906518),
        (201, 14.443426219933546),
        (1000, 65.64433042764206),
        (10000, 646.6940741494955),
    ];

    #[test]
    fn sums_are_numpys() {
        for (length, want) in NUMPY {
            let values: Vec<f64> = (0..length).map(|i| 1.0 / (1 + i * i % 97) as f64).collect();
            assert_eq!(sum(&values), want, "{length}");
        }
    }
}
