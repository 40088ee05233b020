//! Arguments of `token`. The doc comments are the help texts.

use super::args::words;
use clap::{Args as ClapArgs, Subcommand};
use ipse_core::Time;
use ipse_engine::token::Role;

#[derive(Subcommand, Debug)]
pub(crate) enum TokenAction {
    /// Create a token for an identity and print it, once
    ///
    /// The token alone goes to standard output. The store keeps its SHA-256, from which it cannot
    /// be had again: if it is lost, revoke it and create another.
    ///
    /// Example: TOKEN=$(ipse token create --role producer --name arm-7 --source arm-7)
    Create(CreateArgs),

    /// List the tokens of an identity: whose they are, never what they are
    ///
    /// Exit 1 if there is none.
    List {
        /// Also those that are revoked or expired
        #[arg(long)]
        all: bool,
    },

    /// Revoke a token by its id or its name: for good, and at once
    ///
    /// A token itself names itself, too. Where several live tokens have one name, the id says
    /// which. One that is revoked already stays so (exit 0); exit 1 if there is none.
    ///
    /// Example: ipse token revoke arm-7
    Revoke {
        /// Which one
        #[arg(value_name = "TOKEN_ID|NAME", allow_hyphen_values = true)]
        which: String,
    },
}

#[derive(ClapArgs, Debug)]
pub(crate) struct CreateArgs {
    /// What its bearer may do
    #[arg(long, value_parser = words(Role::ALL.map(Role::name), Role::parse))]
    pub(crate) role: Role,
    /// How long it is good, in seconds, minutes, hours, days or weeks (90s, 15m, 12h, 30d, 2w);
    /// until when, RFC 3339; or never. A minute at least, ten years at most
    #[arg(long, value_name = "WHEN", default_value = "90d", value_parser = expiry,
          allow_hyphen_values = true)]
    pub(crate) expires: Expiry,
    /// What to call it, for people: up to 64 bytes
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// A source that the producer may send events under; may be given up to 16 times, any source
    /// if absent
    #[arg(long, value_name = "SOURCE", allow_hyphen_values = true)]
    pub(crate) source: Vec<String>,
}

/// When a token expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    Never,
    /// So many microseconds after it was made.
    After(i64),
    At(Time),
}

fn expiry(text: &str) -> Result<Expiry, &'static str> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    let time = || Time::parse(text).ok().map(Expiry::At);
    duration(text).map(Expiry::After).or_else(time).ok_or(
        "expected a number of seconds, minutes, hours, days or weeks, such as 30d; \
         a time in RFC 3339, such as 2026-05-06T10:00:00Z; or never",
    )
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
    // Digits that are no number are too many, and too long a life is refused elsewhere.
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
