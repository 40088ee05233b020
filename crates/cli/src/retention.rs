//! The setting `retention`: how long the events of an identity are kept. Also the form of times in
//! settings: hours, days or weeks.

use anyhow::Context as _;
use ipse_core::Identity;
use ipse_store::Reader;

/// The name of the setting; each identity has its own value.
pub(crate) const RETENTION: &str = "retention";

/// The longest retention: a hundred years.
const MAX_HOURS: u64 = 36_500 * 24;

/// The time for which events are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Retention {
    hours: u64,
}

impl Retention {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        hours(text).map(|hours| Retention { hours })
    }

    pub(crate) fn micros(self) -> i64 {
        self.hours.cast_signed() * 3_600_000_000
    }
}

/// Parses hours, days or weeks: at least an hour, at most a hundred years.
pub(crate) fn hours(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let hours_each = match unit {
        "h" => 1,
        "d" => 24,
        "w" => 24 * 7,
        _ => return None,
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let hours = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(hours_each)?;
    (1..=MAX_HOURS).contains(&hours).then_some(hours)
}

/// Hours as text: as days if they are whole.
pub(crate) fn hours_text(hours: u64) -> String {
    match hours % 24 {
        0 => format!("{}d", hours / 24),
        _ => format!("{hours}h"),
    }
}

/// The retention of an identity.
pub(crate) fn retention(reader: &Reader, identity: &Identity) -> anyhow::Result<Option<Retention>> {
    let Some(text) = reader.retention(identity)? else { return Ok(None) };
    let text = ipse_door::printable(&text);
    let hint = format!("set it: ipse config {RETENTION} 180d");
    let damaged = || format!("the {RETENTION} of {identity} is `{text}`, not a time; {hint}");
    Retention::parse(&text).map(Some).with_context(damaged)
}

#[cfg(test)]
mod tests {
    use super::Retention;

    #[test]
    fn retentions_are_hours_days_or_weeks() {
        let hours = |text: &str| Retention::parse(text).map(|retention| retention.hours);
        assert_eq!(hours("48h"), Some(48));
        assert_eq!(hours("180d"), Some(180 * 24));
        assert_eq!(hours("52w"), Some(52 * 7 * 24));
        assert_eq!(hours("36500d"), Some(876_000));
        for bad in ["", "d", "180", "0d", "-1d", "+1d", "1.5d", "1y", "36501d", "1 d", "18é"] {
            assert_eq!(hours(bad), None, "{bad}");
        }
        assert_eq!(hours("99999999999999999999d"), None);
    }
}
