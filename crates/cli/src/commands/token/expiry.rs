//! The expiry of a token: `30d`, a time, or `never`.

use ipse_access::TokenError;
use ipse_core::Time;

/// The expiry of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expiry {
    Never,
    /// This many microseconds after its creation.
    After(i64),
    At(Time),
}

/// Parses an expiry.
pub(super) fn expiry(text: &str) -> Result<Expiry, &'static str> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    let time = || Time::parse(text).ok().map(Expiry::At);
    duration(text).map(Expiry::After).or_else(time).ok_or(
        "expected a number of seconds, minutes, hours, days or weeks, such as 30d; \
         a time in RFC 3339, such as 2026-05-06T10:00:00Z; or never",
    )
}

/// Computes the time at which a new token expires; `None` if it does not.
pub(super) fn expires(expiry: Expiry, now: Time) -> Result<Option<Time>, TokenError> {
    match expiry {
        Expiry::Never => Ok(None),
        Expiry::At(time) => Ok(Some(time)),
        Expiry::After(micros) => {
            let time = now.micros().checked_add(micros).and_then(Time::from_micros);
            time.map(Some).ok_or(TokenError::Life)
        }
    }
}

/// Microseconds of a number and its unit.
fn duration(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds_each: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that do not parse are too many; a life that is too long is rejected elsewhere.
    let number = digits.then(|| number.parse().unwrap_or(i64::MAX))?;
    Some(number.saturating_mul(seconds_each).saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_duration_a_time_or_never() {
        let seconds = |n: i64| Ok(Expiry::After(n * 1_000_000));
        assert_eq!(expiry("90s"), seconds(90));
        assert_eq!(expiry("15m"), seconds(900));
        assert_eq!(expiry("12h"), seconds(43_200));
        assert_eq!(expiry("30d"), seconds(2_592_000));
        assert_eq!(expiry("2w"), seconds(1_209_600));
        assert_eq!(expiry("never"), Ok(Expiry::Never));
        let time = Time::parse("2030-01-01T00:00:00+02:00").unwrap();
        assert_eq!(expiry("2030-01-01T00:00:00+02:00"), Ok(Expiry::At(time)));
        for bad in ["", "d", "30", "-1d", "+1d", "1.5d", "1y", "1 d", "30D", "2030-01-01", "Never"]
        {
            assert!(expiry(bad).is_err(), "{bad}");
        }
        for long in ["9223372036854775807w", "99999999999999999999s"] {
            assert_eq!(expiry(long), Ok(Expiry::After(i64::MAX)), "{long}");
        }
    }
}
