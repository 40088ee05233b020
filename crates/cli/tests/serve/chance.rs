//! Chance that can be had again: one number decides everything, and a failed test prints it.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The variable that sets the number.
const SEED: &str = "IPSE_TEST_SEED";

/// A source of numbers (xorshift).
pub(crate) struct Chance(u64);

impl Chance {
    /// A fresh one, or the one that the environment asks for.
    pub(crate) fn new() -> Self {
        let given = std::env::var(SEED).ok().map(|text| text.parse().unwrap());
        let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish()).max(1);
        // Shown only if the test fails.
        eprintln!("{SEED}={seed}");
        Chance(seed)
    }

    /// Another one, which goes its own way.
    pub(crate) fn split(&mut self) -> Self {
        Chance(self.next() | 1)
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }
}
