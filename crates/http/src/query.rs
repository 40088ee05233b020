//! Query parameters of a request. An unknown or repeated parameter is an error.

use crate::problem::Problem;
use ipse_core::{Seq, Time};
use ipse_inspect::{DayEdge, Moment, read_time};
use std::borrow::Cow;

/// Older names that are still accepted, so that existing clients keep working. The document and the
/// message about unknown parameters show only the current name.
const ALIASES: [(&str, &str); 1] = [("env", "environment")];

/// The current name of a parameter.
fn current(name: &str) -> &str {
    ALIASES.iter().find(|(old, _)| *old == name).map_or(name, |(_, current)| current)
}

/// The query parameters of a request.
pub(crate) struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Query<'q> {
    /// Reads the parameters. Only the `known` names are accepted.
    pub(crate) fn read(raw: Option<&'q str>, known: &[&str]) -> Result<Self, Problem> {
        if !raw.is_none_or(is_encoded_text) {
            let detail = "the parameters are not percent-encoded UTF-8";
            return Err(Problem::bad_request("bad_parameter", detail));
        }
        let mut all: Vec<(Cow<'q, str>, Cow<'q, str>)> = Vec::new();
        for (name, value) in form_urlencoded::parse(raw.unwrap_or_default().as_bytes()) {
            if !known.contains(&current(&name)) {
                let shown = ipse_door::printable(&name);
                let known = known.join(", ");
                let known = if known.is_empty() { "none".to_owned() } else { known };
                let detail = format!("unknown parameter `{shown}`; known: {known}");
                return Err(Problem::bad_request("unknown_parameter", detail));
            }
            if let Some((other, _)) = all.iter().find(|(other, _)| current(other) == current(&name))
            {
                let detail = match *other == name {
                    true => format!("`{name}` is given twice"),
                    false => {
                        let kept = current(&name);
                        format!("`{other}` and `{name}` are the same parameter: give only `{kept}`")
                    }
                };
                return Err(Problem::bad_request("repeated_parameter", detail));
            }
            all.push((name, value));
        }
        Ok(Query(all))
    }

    /// The value of a parameter, by its current name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| current(other) == name).map(|(_, value)| &**value)
    }

    /// The value of a parameter that is a position in a log.
    pub(crate) fn seq(&self, name: &str) -> Result<Option<Seq>, Problem> {
        Ok(self.number(name, 0..=Seq::MAX.0)?.map(Seq))
    }

    /// The value of a parameter that is a position, a time or a date.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<Moment>, Problem> {
        let moment = self.text(name).map(str::parse::<Moment>).transpose();
        moment.map_err(|error| Problem::bad_request("bad_parameter", format!("`{name}`: {error}")))
    }

    /// The value of a parameter that is a time, or a date as one of its edges.
    pub(crate) fn time(&self, name: &str, edge: DayEdge) -> Result<Option<Time>, Problem> {
        let time = self.text(name).map(|text| read_time(text, edge)).transpose();
        time.map_err(|error| {
            let hint = "give a time such as 2026-05-03T10:00:00Z, or a date such as 2026-05-03";
            Problem::bad_request("bad_parameter", format!("`{name}`: {error}; {hint}"))
        })
    }

    /// The value of a parameter that is `true` or `false`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => {
                let detail = format!("`{name}` must be true or false");
                Err(Problem::bad_request("bad_parameter", detail))
            }
        }
    }

    /// The value of a parameter that is a whole number within bounds.
    pub(crate) fn number(
        &self,
        name: &str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match whole_number(text).filter(|number| bounds.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (low, high) = (bounds.start(), bounds.end());
                let detail = format!("`{name}` must be a whole number from {low} to {high}");
                Err(Problem::bad_request("bad_parameter", detail))
            }
        }
    }
}

/// Parses a whole number. Only digits are accepted, while `parse` would accept a plus sign.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether two hex digits follow every percent sign, and the decoded text is UTF-8.
fn is_encoded_text(raw: &str) -> bool {
    if !raw.contains('%') {
        return true;
    }
    let mut pieces = raw.split('%');
    let mut text = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).filter(|two| two.bytes().all(|it| it.is_ascii_hexdigit()));
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        let Some(byte) = byte else { return false };
        text.push(byte);
        text.extend(&piece.as_bytes()[2..]);
    }
    std::str::from_utf8(&text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_stand_before_hex_and_give_text() {
        for good in ["", "a=b", "a=%C3%bc", "a=%c3%bc", "a=%25", "a=ü+b"] {
            assert!(is_encoded_text(good), "{good}");
        }
        for bad in ["a=%", "a=%2", "a=%zz", "a=%ff", "a=%c3", "a=%2x", "a=%+1"] {
            assert!(!is_encoded_text(bad), "{bad}");
        }
    }
}
