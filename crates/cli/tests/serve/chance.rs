//! Reproducible randomness: one seed determines everything, and a failed test prints it.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The variable that sets the seed.
const SEED: &str = "IPSE_TEST_SEED";

/// A random number generator (xorshift).
pub(crate) struct Chance(u64);

impl Chance {
    /// A generator with a new seed, or with the seed from the environment.
    pub(crate) fn new() -> Self {
        let given = std::env::var(SEED).ok().map(|text| text.parse().unwrap());
        let seed = given.unwrap_or_else(|| RandomState::new().build_hasher().finish()).max(1);
        // Shown only if the test fails.
        eprintln!("{SEED}={seed}");
        Chance(seed)
    }

    /// An independent generator, seeded from this one.
    pub(crate) fn split(&mut self) -> Self {
        Chance(self.next() | 1)
    }

    /// A random number below a bound.
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
