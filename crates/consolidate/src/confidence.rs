//! Confidence: the Wilson lower bound in exact integers, in steps of 1/10⁴, rounded down.
//!
//! **Invariants:** all counts are at most `MAX_OBSERVATIONS`, so every product stays in `i128`; the
//! result never overstates and stays below 1.

use alloc::string::String;
use ipse_core::decimal::{SCALE, write_micro};

/// Steps of a confidence.
pub(crate) const STEPS: i128 = 10_000;

/// `z²` without a search.
pub const BASE: i128 = 3;

/// `W(a, n; K)`: the greatest `t` of 0..=10⁴ that `a` agreeing of `n` observations support.
pub fn wilson(agreeing: i64, n: i64, k: i128) -> i64 {
    let (a, n) = (i128::from(agreeing), i128::from(n));
    if n == 0 {
        return 0;
    }
    let spread = (k * k * n + 4 * k * a * (n - a)) * STEPS * STEPS;
    let supported = |t: i128| {
        let y = STEPS * (2 * a + k) - 2 * (n + k) * t;
        y >= 0 && y * y * n >= spread
    };
    // The closed form with an integer root is within a few steps. The exact test decides: it holds
    // up to some step and for none after it.
    let root = square_root((spread / n).unsigned_abs());
    let mut t = ((STEPS * (2 * a + k) - root) / (2 * (n + k))).clamp(0, STEPS);
    while t < STEPS && supported(t + 1) {
        t += 1;
    }
    while t > 0 && !supported(t) {
        t -= 1;
    }
    t as i64
}

/// The integer square root.
fn square_root(square: u128) -> i128 {
    match u64::try_from(square) {
        Ok(square) => square.isqrt().into(),
        Err(_) => square.isqrt().cast_signed(),
    }
}

/// `sig(a, b; K)`: `a` outweighs `b` clearly, that is `W(a, a + b; K) ≥ ½`.
pub fn significant(a: i64, b: i64, k: i128) -> bool {
    let (surplus, sum) = ((a - b).unsigned_abs(), (a + b).unsigned_abs());
    // A square beyond 64 bits is greater than any sum of counts times a small `k`.
    let outweighs = |square: u64| square >= sum.saturating_mul(k.unsigned_abs() as u64);
    a > b && surplus.checked_mul(surplus).is_none_or(outweighs)
}

/// `⌈log₂ max(x, 1)⌉`: the cost, in bits, of choosing among `x`.
pub fn lg(x: usize) -> i128 {
    i128::from(usize::BITS - x.saturating_sub(1).leading_zeros())
}

/// Appends a confidence in its published form.
pub fn write(steps: i64, out: &mut String) {
    write_micro(steps * (SCALE / STEPS as i64), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_observations_give_n_of_n_plus_three() {
        let mut text = String::new();
        write(wilson(15, 15, BASE), &mut text);
        assert_eq!(text, "0.8333");
        assert_eq!(wilson(3, 3, BASE), 5000);
        assert_eq!(wilson(0, 7, BASE), 0);
    }

    #[test]
    fn the_greatest_counts_fit() {
        let n = i64::from(u32::MAX);
        assert_eq!(wilson(n, n, BASE), 9999);
        assert_eq!(wilson(n / 2, n, 43), 4999);
    }

    /// The bound by trying every step in halves, as the definition reads.
    fn by_halves(a: i128, n: i128, k: i128) -> i64 {
        let supported = |t: i128| {
            let y = STEPS * (2 * a + k) - 2 * (n + k) * t;
            y >= 0 && y * y * n >= (k * k * n + 4 * k * a * (n - a)) * STEPS * STEPS
        };
        let (mut least, mut beyond) = (0, STEPS + 1);
        while beyond - least > 1 {
            let middle = (least + beyond) / 2;
            if supported(middle) { least = middle } else { beyond = middle }
        }
        least as i64
    }

    #[test]
    fn the_guess_leads_to_the_bound() {
        let sizes = (1..70).chain([99, 100, 1000, 65_537, 1 << 20, (1 << 32) - 1]);
        for n in sizes {
            let parts = (0..=n.min(70)).chain((0..=8).map(|part| n * part / 8)).chain([n - 1, n]);
            for a in parts {
                for k in [3, 4, 5, 9, 11, 43] {
                    let bound = by_halves(a.into(), n.into(), k);
                    assert_eq!(wilson(a, n, k), bound, "W({a}, {n}; {k})");
                }
            }
        }
    }

    #[test]
    fn bits() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9].map(lg), [0, 0, 1, 2, 2, 3, 3, 4]);
    }
}
