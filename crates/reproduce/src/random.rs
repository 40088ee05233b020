//! The random numbers of CPython's `random.Random` and of NumPy's legacy `RandomState`.
//!
//! **Invariant:** the same seed gives the same draws as in Python, bit for bit. Both are MT19937
//! with different seeding, and every draw uses the same number of words.

use mt19937::{MT19937, gen_res53};
use rand_core::Rng;

/// Words of the generator's state.
const STATE: usize = 624;
/// The multiplier of MT19937's seeding by one word.
const SEEDING: u32 = 1_812_433_253;

/// Python's `random.Random(seed)`.
pub struct Python(MT19937);

impl Python {
    /// Seeds with an integer. As in CPython the sign is dropped and the rest is split into words.
    pub fn new(seed: i128) -> Self {
        let size = seed.unsigned_abs();
        let words = [0, 32, 64, 96].map(|shift| (size >> shift) as u32);
        let length = words.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
        Python(MT19937::new_with_slice_seed(&words[..length]))
    }

    /// A copy of the generator in its current state.
    pub fn fork(&self) -> Self {
        let mut twin = MT19937::default();
        twin.set_state(self.0.get_state());
        twin.set_index(self.0.get_index());
        Python(twin)
    }

    /// `random()`: 53 bits from two words.
    pub fn random(&mut self) -> f64 {
        gen_res53(&mut self.0)
    }

    /// `_randbelow(n)` for `n > 0`, as `choice` and `shuffle` use it: the top bits of a word, drawn
    /// again while they are not below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        let bits = u32::BITS - n.leading_zeros();
        loop {
            let drawn = self.0.next_u32() >> (u32::BITS - bits);
            if drawn < n {
                return drawn;
            }
        }
    }

    /// `shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = u32::try_from(last + 1).expect("BUG: more items than a word counts");
            items.swap(last, self.below(bound) as usize);
        }
    }
}

/// NumPy's `RandomState(seed)`, for seeds of one word.
pub struct Legacy(MT19937);

impl Legacy {
    /// Seeds with one word.
    pub fn new(seed: u32) -> Self {
        let mut state = [seed; STATE];
        for at in 1..STATE {
            let before = state[at - 1];
            let mixed = SEEDING.wrapping_mul(before ^ (before >> 30));
            state[at] = mixed.wrapping_add(at as u32);
        }
        let mut generator = MT19937::default();
        generator.set_state(&state);
        generator.set_index(STATE);
        Legacy(generator)
    }

    /// `randint(0, n)` for `n > 0`: a masked word, drawn again while it is not below `n`; no draw
    /// if `n` is 1.
    pub fn below(&mut self, n: u32) -> u32 {
        if n == 1 {
            return 0;
        }
        let mask = u32::MAX >> (n - 1).leading_zeros();
        loop {
            let drawn = self.0.next_u32() & mask;
            if drawn < n {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `random.Random(seed).random()` and then `.shuffle(list(range(10)))` in CPython 3.13.
    const CPYTHON: [(i128, f64, [u8; 10]); 6] = [
        (0, 0.8444218515250481, [8, 9, 1, 2, 5, 3, 7, 4, 0, 6]),
        (1, 0.13436424411240122, [7, 2, 0, 8, 5, 6, 3, 9, 4, 1]),
        (-5, 0.6229016948897019, [4, 2, 9, 7, 1, 3, 6, 0, 8, 5]),
        (20260506, 0.16127643752892473, [1, 2, 6, 0, 5, 8, 4, 3, 7, 9]),
        (4294967303, 0.22550888929893187, [6, 1, 2, 4, 7, 8, 3, 0, 9, 5]),
        (1267650600228229401496703205379, 0.3567616365770526, [4, 9, 1, 8, 2, 0, 5, 3, 7, 6]),
    ];

    #[test]
    fn draws_are_cpythons() {
        for (seed, first, order) in CPYTHON {
            let mut random = Python::new(seed);
            assert_eq!(random.random(), first, "{seed}");
            let mut items = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
            random.shuffle(&mut items);
            assert_eq!(items, order, "{seed}");
        }
    }

    #[test]
    fn one_item_takes_no_word() {
        let (mut one, mut other) = (Legacy::new(7), Legacy::new(7));
        assert_eq!(one.below(1), 0);
        assert_eq!(one.below(1000), other.below(1000));
    }
}
