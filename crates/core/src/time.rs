//! Instants: RFC 3339 text in, microseconds since 1970 UTC inside, one UTC text out.
//!
//! **Invariants:** the grammar is exactly RFC 3339's (no space for `T`, no missing
//! offset, no second 60, no hour 24); digits finer than a microsecond are cut off, not rounded;
//! only instants of the years 1970 to 9999 in UTC exist.

use core::fmt;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// 10000-01-01T00:00:00Z, the first second that is too late.
const END_OF_TIME: i64 = 253_402_300_800;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Time(i64);

/// Why a text is not a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeError {
    /// The text does not follow RFC 3339's grammar or names a day or hour that does not exist.
    Grammar,
    /// Second 60: leap seconds do not exist on a uniform time axis.
    LeapSecond,
    /// Before 1970 or after 9999 in UTC.
    Range,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeError::Grammar => "a time must be RFC 3339, such as 2026-05-06T10:00:00Z",
            TimeError::LeapSecond => "second 60 does not exist; write the second before or after",
            TimeError::Range => "a time must be in the years 1970 to 9999 in UTC",
        })
    }
}

impl core::error::Error for TimeError {}

impl Time {
    /// The last instant that can be written.
    pub const LAST: Time = Time(END_OF_TIME * MICROS_PER_SECOND - 1);

    /// The instant `micros` microseconds after 1970, if it lies in the years 1970 to 9999.
    pub fn from_micros(micros: i64) -> Option<Self> {
        (0..END_OF_TIME * MICROS_PER_SECOND).contains(&micros).then_some(Time(micros))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 text.
    ///
    /// ```
    /// # use ipse_core::Time;
    /// let time = Time::parse("2026-05-06T12:00:00+02:00").unwrap();
    /// assert_eq!(time.to_string(), "2026-05-06T10:00:00Z");
    /// assert!(Time::parse("2026-05-06 10:00").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let mut rest = Digits(text.as_bytes());
        let local = rest.date_and_time()?;
        let fraction = rest.fraction()?;
        let seconds = local - rest.offset()?;
        if !rest.0.is_empty() {
            return Err(TimeError::Grammar);
        }
        if !(0..END_OF_TIME).contains(&seconds) {
            return Err(TimeError::Range);
        }
        Ok(Time(seconds * MICROS_PER_SECOND + fraction))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / MICROS_PER_SECOND, self.0 % MICROS_PER_SECOND);
        let (year, month, day) = civil(seconds / SECONDS_PER_DAY);
        let second_of_day = seconds % SECONDS_PER_DAY;
        let (hour, minute, second) =
            (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        // Digit by digit: every entry and every event has a time.
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut put = |at: usize, digits: usize, mut number: i64| {
            for place in (at..at + digits).rev() {
                text[place] += (number % 10).unsigned_abs() as u8;
                number /= 10;
            }
        };
        put(0, 4, year);
        put(5, 2, month);
        put(8, 2, day);
        put(11, 2, hour);
        put(14, 2, minute);
        put(17, 2, second);
        put(20, 6, micros);
        if micros == 0 {
            text[19] = b'Z';
        }
        let end = if micros == 0 { 20 } else { text.len() };
        f.write_str(core::str::from_utf8(&text[..end]).map_err(|_| fmt::Error)?)
    }
}

/// The part of the text that is still unread.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    /// `YYYY-MM-DDThh:mm:ss` as seconds since 1970, before subtracting the offset.
    fn date_and_time(&mut self) -> Result<i64, TimeError> {
        let (year, month, day) = (self.number(4)?, self.after(b"-", 2)?, self.after(b"-", 2)?);
        let (hour, minute, second) =
            (self.after(b"Tt", 2)?, self.after(b":", 2)?, self.after(b":", 2)?);
        if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
            return Err(TimeError::Grammar);
        }
        if hour > 23 || minute > 59 || second > 60 {
            return Err(TimeError::Grammar);
        }
        if second == 60 {
            return Err(TimeError::LeapSecond);
        }
        let days = days_since_1970(year, month, day);
        Ok(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
    }

    /// Microseconds of an optional `.digits`, finer digits cut off.
    fn fraction(&mut self) -> Result<i64, TimeError> {
        let Some((b'.', digits)) = self.0.split_first() else { return Ok(0) };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(TimeError::Grammar);
        }
        let micros = (0..6).fold(0, |micros, place| {
            let digit = if place < count { digits[place] - b'0' } else { 0 };
            micros * 10 + i64::from(digit)
        });
        self.0 = &digits[count..];
        Ok(micros)
    }

    /// `Z` or `±hh:mm`, in seconds east of UTC.
    fn offset(&mut self) -> Result<i64, TimeError> {
        let (sign, rest) = self.0.split_first().ok_or(TimeError::Grammar)?;
        self.0 = rest;
        let direction = match sign {
            b'Z' | b'z' => return Ok(0),
            b'+' => 1,
            b'-' => -1,
            _ => return Err(TimeError::Grammar),
        };
        let (hours, minutes) = (self.number(2)?, self.after(b":", 2)?);
        if hours > 23 || minutes > 59 {
            return Err(TimeError::Grammar);
        }
        Ok(direction * (hours * 3600 + minutes * 60))
    }

    fn after(&mut self, separators: &[u8], width: usize) -> Result<i64, TimeError> {
        match self.0.split_first() {
            Some((byte, rest)) if separators.contains(byte) => self.0 = rest,
            _ => return Err(TimeError::Grammar),
        }
        self.number(width)
    }

    fn number(&mut self, width: usize) -> Result<i64, TimeError> {
        let (digits, rest) = self.0.split_at_checked(width).ok_or(TimeError::Grammar)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, byte| match byte {
            b'0'..=b'9' => Ok(number * 10 + i64::from(byte - b'0')),
            _ => Err(TimeError::Grammar),
        })
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 0000-03-01 to 1970-01-01: counting years from March puts the leap day last.
const MARCH_ZERO_TO_1970: i64 = 719_468;
const DAYS_PER_400_YEARS: i64 = 146_097;

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let march_year = if month <= 2 { year - 1 } else { year };
    let march_month = (month + 9) % 12;
    let (era, year_of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_400_YEARS + day_of_era - MARCH_ZERO_TO_1970
}

/// The inverse of `days_since_1970`, for days from 1970 on.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + MARCH_ZERO_TO_1970;
    let (era, day_of_era) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn utc(text: &str) -> String {
        Time::parse(text).unwrap().to_string()
    }

    #[test]
    fn texts_become_one_utc_text() {
        assert_eq!(utc("1970-01-01T00:00:00Z"), "1970-01-01T00:00:00Z");
        assert_eq!(utc("2026-05-06T10:00:00.1234567+05:30"), "2026-05-06T04:30:00.123456Z");
        assert_eq!(utc("2026-05-06t10:00:00.50z"), "2026-05-06T10:00:00.500000Z");
        assert_eq!(utc("2024-02-29T23:59:59-00:00"), "2024-02-29T23:59:59Z");
        assert_eq!(utc("1969-12-31T23:30:00-01:00"), "1970-01-01T00:30:00Z");
        assert_eq!(utc("9999-12-31T23:59:59.999999999Z"), "9999-12-31T23:59:59.999999Z");
        assert_eq!(utc("2026-05-06T09:59:59.0000009Z"), "2026-05-06T09:59:59Z");
    }

    #[test]
    fn what_is_not_a_time() {
        use TimeError::{Grammar, LeapSecond, Range};
        for (text, why) in [
            ("2026-06-30T23:59:60Z", LeapSecond),
            ("1970-01-01T00:00:00+01:00", Range),
            ("9999-12-31T23:59:59-00:01", Range),
            ("0000-01-01T00:00:00Z", Range),
            ("2026-02-29T00:00:00Z", Grammar),
            ("2026-13-01T00:00:00Z", Grammar),
            ("2026-05-06 10:00:00Z", Grammar),
            ("2026-05-06T10:00:00", Grammar),
            ("2026-05-06T24:00:00Z", Grammar),
            ("2026-05-06T10:00:61Z", Grammar),
            ("2026-05-06T10:00:00.Z", Grammar),
            ("2026-05-06T10:00:00+24:00", Grammar),
            ("2026-05-06T10:00:00+0100", Grammar),
            ("2026-05-06T10:00:00Z ", Grammar),
            ("2026-05-06", Grammar),
            ("", Grammar),
        ] {
            assert_eq!(Time::parse(text), Err(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_instant_survives_its_text(micros in 0..END_OF_TIME * MICROS_PER_SECOND) {
            let time = Time::from_micros(micros).unwrap();
            prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
        }
    }
}
