//! `skill_advice`: whether the facts of a skill predict its outcomes.
//!
//! Each fact of the skill is compared with the skill's own rate: how much better does the rate of
//! the key predict its attempts? The comparison needs ten sums over the keys, so one more event
//! costs the same for two keys and for thousands.
//!
//! **Invariant:** the sums are exact; a key without an observation adds zero.

use crate::days::Rate;
use crate::tally::Tally;
use alloc::vec::Vec;
use ipse_core::wire::{self, Wire};

const MILLION: i128 = 1_000_000;
const SUMS: usize = 10;

/// Sums over the keys of a skill with `s` successes, `f` failures and the loss `l` each: the
/// number of keys, then the sums of `s`, `f`, `l`, `s²`, `sf`, `f²`, `sl`, `fl` and `l²`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Advice([i128; SUMS]);

/// What the facts of a skill are worth to a planner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// They predict outcomes better than the rate of the skill alone.
    Informative,
    /// They predict outcomes worse.
    Misleading,
    /// Neither is shown.
    Unproven,
}

impl Verdict {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Informative => "informative",
            Verdict::Misleading => "misleading",
            Verdict::Unproven => "unproven",
        }
    }
}

impl Advice {
    /// The sums over one key.
    pub fn of(rate: Rate) -> Self {
        if rate.n == 0 {
            return Advice::default();
        }
        let (s, f, n) = (i128::from(rate.s), i128::from(rate.f()), i128::from(rate.n));
        let loss = s * (f + 1) * (f + 1) + f * (s + 1) * (s + 1);
        // For a sum that is being subtracted the counts may be negative; `n + 1` is never zero in
        // a whole sum.
        let l = (MILLION * loss).div_euclid((n + 1) * (n + 1));
        Advice([1, s, f, l, s * s, s * f, f * f, s * l, f * l, l * l])
    }

    /// The number of keys.
    pub fn keys(&self) -> i128 {
        self.0[0]
    }

    /// The attempts and successes of all keys.
    pub fn total(&self) -> Rate {
        let (s, f) = (self.0[1] as i64, self.0[2] as i64);
        Rate { n: s + f, s }
    }

    /// The gain in steps of 1/10⁴, and the verdict; `None` with fewer than two keys.
    pub fn judge(&self) -> Option<(i64, Verdict)> {
        let [keys, s, f, l, ss, sf, ff, sl, fl, ll] = self.0;
        if keys < 2 {
            return None;
        }
        let square = (s + f + 1) * (s + f + 1);
        let c1 = (MILLION * (f + 1) * (f + 1)).div_euclid(square);
        let c0 = (MILLION * (s + 1) * (s + 1)).div_euclid(square);
        let alone = s * c1 + f * c0;
        let gain = alone - l;
        let squares =
            c1 * c1 * ss + c0 * c0 * ff + ll + 2 * c1 * c0 * sf - 2 * c1 * sl - 2 * c0 * fl;
        let skill = if alone == 0 { 0 } else { (10_000 * gain).div_euclid(alone) };
        let shown = gain != 0 && gain.checked_mul(gain).is_none_or(|square| square >= squares);
        let verdict = match shown {
            false => Verdict::Unproven,
            true if gain > 0 => Verdict::Informative,
            true => Verdict::Misleading,
        };
        Some((skill as i64, verdict))
    }
}

impl Tally for Advice {
    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, part)| *sum += part);
    }

    fn negated(&self) -> Self {
        Advice(self.0.map(|sum| -sum))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        // Most facts have none.
        let used = if self.is_zero() { 0 } else { SUMS };
        wire::write_len(used, out);
        self.0[..used].iter().for_each(|sum| wire::write_i128(*sum, out));
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        let mut sums = [0; SUMS];
        match wire.length()? {
            0 => {}
            SUMS => sums.iter_mut().try_for_each(|sum| wire.i128().map(|read| *sum = read))?,
            _ => return None,
        }
        Some(Advice(sums))
    }
}
