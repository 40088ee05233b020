//! Exact numbers: micro-units in, decimal text out, and the cells that group them.
//!
//! **Invariants:** a double is turned into micro-units through its shortest decimal text, never by
//! multiplication; every rounding is half-even (only confidence rounds down) and happens once.

use alloc::string::String;
use core::fmt;
use core::fmt::Write as _;

/// Micro-units per unit.
pub const SCALE: i64 = 1_000_000;
/// Decimals of a micro-unit.
const SCALE_DIGITS: i32 = 6;
/// The greatest magnitude of a usable number, in micro-units: 10⁹ units. Sums of 2³² of them, and
/// their products with 10⁶, stay within `i128`.
pub const LIMIT: i64 = 1_000_000_000_000_000;

/// A usable number in integer micro-units, `|v| ≤ 10¹⁵`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Micro(i64);

impl Micro {
    /// The micro-units themselves, if usable.
    pub fn new(micro: i64) -> Option<Self> {
        (-LIMIT..=LIMIT).contains(&micro).then_some(Micro(micro))
    }

    /// The micro-units of a JSON number, if usable.
    pub fn from_f64(number: f64) -> Option<Self> {
        if !number.is_finite() {
            return None;
        }
        let mut buffer = ryu_js::Buffer::new();
        Self::from_decimal(buffer.format_finite(number))
    }

    /// Micro-units as an integer.
    pub fn get(self) -> i64 {
        self.0
    }

    /// Reads decimal text such as `-24.7` or `1.5e-7`, rounding half-even to micro-units.
    pub fn from_decimal(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0');
        let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
        let magnitude = round_digits(digits, point.checked_add(SCALE_DIGITS)?)?;
        Micro::new(if negative { -magnitude } else { magnitude })
    }

    /// This number rounded half-even to `digits` significant decimal digits, symmetric in sign.
    ///
    /// ```
    /// # use ipse_core::Micro;
    /// let cell = |v| Micro::new(v).unwrap().cell(2).get();
    /// assert_eq!((cell(24_700_000), cell(-123_456_789), cell(5)), (25_000_000, -120_000_000, 5));
    /// ```
    #[must_use]
    pub fn cell(self, digits: u32) -> Self {
        let unit = cell_unit(self.0, digits);
        let (floor, rest) = (self.0.div_euclid(unit), self.0.rem_euclid(unit));
        let up = 2 * rest > unit || 2 * rest == unit && floor % 2 != 0;
        Micro((floor + i64::from(up)) * unit)
    }
}

impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_micro(self.0, &mut text);
        f.write_str(&text)
    }
}

/// The place value of the last of `digits` significant digits of `value`.
pub fn cell_unit(value: i64, digits: u32) -> i64 {
    const POWERS: [i64; 19] = {
        let mut powers = [1; 19];
        let mut place = 1;
        while place < 19 {
            powers[place] = powers[place - 1] * 10;
            place += 1;
        }
        powers
    };
    let length = value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    POWERS[length.saturating_sub(digits) as usize]
}

/// The integer `digits`, with the decimal point after `point` of them, rounded half-even; `None`
/// once it exceeds `LIMIT`.
fn round_digits(digits: impl Iterator<Item = u8>, point: i32) -> Option<i64> {
    let mut integer: i64 = 0;
    let mut seen = 0;
    let (mut next, mut rest) = (0, false);
    for digit in digits {
        if seen < point {
            integer = integer.checked_mul(10)?.checked_add(i64::from(digit))?;
        } else if seen == point {
            next = digit;
        } else {
            rest |= digit != 0;
        }
        seen += 1;
    }
    for _ in seen..point {
        if integer == 0 {
            break;
        }
        integer = integer.checked_mul(10)?;
        if integer > LIMIT {
            return None;
        }
    }
    let up = point >= 0 && (next > 5 || next == 5 && (rest || integer % 2 == 1));
    Some(integer + i64::from(up))
}

/// `num / den` rounded half-even, for a positive `den`.
fn divide_half_even(num: i128, den: i128) -> i128 {
    let (floor, rest) = (num.div_euclid(den), num.rem_euclid(den));
    match (2 * rest).cmp(&den) {
        core::cmp::Ordering::Less => floor,
        core::cmp::Ordering::Greater => floor + 1,
        core::cmp::Ordering::Equal => floor + floor.rem_euclid(2),
    }
}

/// Appends micro-units as decimal text, in the only form that published numbers have.
pub fn write_micro(micro: i64, out: &mut String) {
    let (magnitude, scale) = (micro.unsigned_abs(), SCALE.unsigned_abs());
    if micro < 0 {
        out.push('-');
    }
    write_digits(magnitude / scale, 1, out);
    let fraction = magnitude % scale;
    if fraction > 0 {
        out.push('.');
        write_digits(fraction, 6, out);
        out.truncate(out.trim_end_matches('0').len());
    }
}

/// Appends the decimal digits of an integer, zero-padded to `least` digits.
pub fn write_digits(mut n: u64, least: usize, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut begin = digits.len();
    while n > 0 || begin > digits.len() - least {
        begin -= 1;
        digits[begin] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    digits[begin..].iter().for_each(|digit| out.push(char::from(*digit)));
}

/// `num / den` rounded half-even to an integer, for a positive `den`.
pub fn rounded(num: i128, den: i64) -> i64 {
    match i64::try_from(num) {
        Ok(num) => {
            let (floor, rest) = (num.div_euclid(den), num.rem_euclid(den));
            let twice = 2 * i128::from(rest);
            let up = twice > den.into() || twice == den.into() && floor % 2 != 0;
            floor + i64::from(up)
        }
        Err(_) => divide_half_even(num, den.into()) as i64,
    }
}

/// `num / den` as decimal text with at most `digits` decimals, rounded half-even.
pub fn quotient(num: i128, den: i128, digits: u32) -> String {
    fixed(divide_half_even(num * 10_i128.pow(digits), den), digits)
}

/// `num / den` as decimal text with at most `digits` decimals, rounded down.
pub fn quotient_floor(num: i128, den: i128, digits: u32) -> String {
    fixed((num * 10_i128.pow(digits)).div_euclid(den), digits)
}

/// `scaled / 10^digits` as text: trailing zeros and a bare point stripped, `-` only if non-zero.
fn fixed(scaled: i128, digits: u32) -> String {
    let unit = 10_u128.pow(digits);
    let magnitude = scaled.unsigned_abs();
    let mut text = String::new();
    let sign = if scaled < 0 { "-" } else { "" };
    // Writing to a String cannot fail.
    let _ = write!(text, "{sign}{}", magnitude / unit);
    let fraction = magnitude % unit;
    if fraction > 0 {
        let _ = write!(text, ".{fraction:0width$}", width = digits as usize);
        text.truncate(text.trim_end_matches('0').len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn halves_go_to_the_even_neighbour() {
        let micro = |text| Micro::from_decimal(text).map(Micro::get);
        assert_eq!(micro("0.0000005"), Some(0));
        assert_eq!(micro("0.0000015"), Some(2));
        assert_eq!(micro("5.000001e-7"), Some(1));
        assert_eq!(micro("-0.0000025"), Some(-2));
        assert_eq!(micro("9.9e-8"), Some(0), "two places below a half");
        assert_eq!(micro("1e9"), Some(LIMIT));
        assert_eq!(micro("1000000000.0000004"), Some(LIMIT));
        assert_eq!(micro("1e300"), None);
        assert_eq!(micro("0e300"), Some(0));
        assert_eq!(micro("1e-300"), Some(0));
        assert_eq!(micro(".5"), None);
    }

    #[test]
    fn quotients_round_once() {
        assert_eq!(quotient(5, 2, 0), "2");
        assert_eq!(quotient(-1, 10_000_000, 6), "0");
        assert_eq!(quotient(-7, 2, 0), "-4");
        assert_eq!(quotient_floor(60_000, 60_003, 4), "0.9999");
    }

    proptest! {
        #[test]
        fn a_micro_survives_its_text_and_its_double(v in -LIMIT..=LIMIT) {
            let micro = Micro::new(v).unwrap();
            let text = micro.to_string();
            prop_assert_eq!(Micro::from_decimal(&text), Some(micro));
            prop_assert_eq!(Micro::from_f64(text.parse().unwrap()), Some(micro));
        }

        #[test]
        fn cells_are_symmetric_and_idempotent(v in -LIMIT..=LIMIT, digits in 1_u32..5) {
            let cell = Micro::new(v).unwrap().cell(digits);
            prop_assert_eq!(cell.cell(digits), cell);
            prop_assert_eq!(Micro::new(-v).unwrap().cell(digits).get(), -cell.get());
        }
    }
}
