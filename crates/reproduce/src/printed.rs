//! Figures as the paper prints them, and our figures in the same form.
//!
//! **Invariant:** figures are compared as text, rounded once to the printed digits.

use crate::table::{Row, Verdict};
use crate::v3::Summary;

/// Formats a number like a printed one: the same decimals, and a plus sign if that has one.
pub fn like(printed: &str, value: f64) -> String {
    let decimals = printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let text = format!("{value:.decimals$}");
    if printed.starts_with('+') && !text.starts_with('-') { format!("+{text}") } else { text }
}

/// A power of ten in superscript notation.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digit = |digit: u8| RAISED[usize::from(digit - b'0')];
    let digits: String = exponent.unsigned_abs().to_string().bytes().map(digit).collect();
    format!("10{sign}{digits}")
}

/// A mean reduction and, if the paper prints it, its interval, in percent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// The mean as printed.
    pub mean: &'static str,
    /// The ends of the interval as printed.
    pub interval: Option<[&'static str; 2]>,
}

/// A printed reduction with its interval.
pub const fn reduction(mean: &'static str, low: &'static str, high: &'static str) -> Reduction {
    Reduction { mean, interval: Some([low, high]) }
}

impl Reduction {
    /// A table row with the printed figures and ours.
    pub fn row(&self, what: impl Into<String>, ours: &Summary) -> Row {
        let text = |mean: &str, ends: Option<[&str; 2]>| match ends {
            Some([low, high]) => format!("{mean}% [{low}%, {high}%]"),
            None => format!("{mean}%"),
        };
        let mean = like(self.mean, ours.reduction());
        let ends = self.interval.map(|[low, high]| match ours.interval {
            Some(ends) => [like(low, ends[0]), like(high, ends[1])],
            None => ["none".to_owned(), "none".to_owned()],
        });
        let ours = text(&mean, ends.as_ref().map(|ends| ends.each_ref().map(String::as_str)));
        let figures = if ends.is_some() { 3 } else { 1 };
        Row { figures, ..Row::compared(what, &text(self.mean, self.interval), ours) }
    }
}

/// A table row with our figures only, where the paper has no such run.
pub fn ours_alone(what: impl Into<String>, ours: &Summary) -> Row {
    let mean = format!("{:.2}%", ours.reduction());
    let text = match ours.interval {
        Some([low, high]) => format!("{mean} [{low:.2}%, {high:.2}%]"),
        None => mean,
    };
    Row::with(Verdict::Ours, what, "", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_digits_of_the_printed_one() {
        for (printed, value, want) in [
            ("79.82", 79.821_212, "79.82"),
            ("+0.4", 0.387_973, "+0.4"),
            ("+0.4", -0.387_973, "-0.4"),
            ("-4.7", -4.744_163, "-4.7"),
            ("0.201", 0.203_394, "0.203"),
            ("1000", 999.6, "1000"),
        ] {
            assert_eq!(like(printed, value), want);
        }
    }

    #[test]
    fn exponents_are_raised() {
        assert_eq!([-2, 0, 16].map(power_of_ten), ["10⁻²", "10⁰", "10¹⁶"]);
    }
}
