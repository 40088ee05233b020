//! A point of a log that a person names: a position, a time or a date.
//!
//! **Invariants**
//! - Every shell reads the text here and resolves it here, so all of them mean the same position.
//! - A time means the greatest position of an event that ipse wrote with this time or an earlier
//!   one. Such events have the clock of the recorder; the times of other events are data.
//! - The position does not change when events are forgotten.

use crate::Error;
use ipse_core::json::Members;
use ipse_core::time::TimeError;
use ipse_core::{Seq, Time};
use ipse_store::View;
use std::fmt;
use std::str::FromStr;

/// A point of a log: a position, or a time of the recorder's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// A position.
    Position(Seq),
    /// A time.
    Time(Time),
}

/// The position that a moment means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The position.
    pub seq: Seq,
    /// The time that was asked for, if it was a time.
    pub time: Option<Time>,
    /// The time of the event at the position, if a time was asked for and an event was found.
    pub recorded: Option<Time>,
}

/// The reason why a text is neither a position nor a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MomentError {
    /// The text has none of the three forms.
    Form,
    /// The position is higher than any log can have.
    TooHigh,
    /// The time has the right form and does not exist.
    Time(TimeError),
}

impl fmt::Display for MomentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MomentError::Form => f.write_str(
                "must be a position such as 15 (`ipse log` lists them), a time such as \
                 2026-05-03T10:00:00Z, or a date such as 2026-05-03",
            ),
            MomentError::TooHigh => write!(f, "a position is at most {}", Seq::MAX),
            MomentError::Time(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MomentError {}

impl FromStr for Moment {
    type Err = MomentError;

    /// Reads a position, an RFC 3339 time or a date. A date is the end of that day in UTC.
    fn from_str(text: &str) -> Result<Self, MomentError> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let seq = text.parse().ok().filter(|seq| *seq <= Seq::MAX.0);
            return seq.map(|seq| Moment::Position(Seq(seq))).ok_or(MomentError::TooHigh);
        }
        match read_time(text, DayEdge::End) {
            Ok(time) => Ok(Moment::Time(time)),
            Err(TimeError::Grammar) => Err(MomentError::Form),
            Err(error) => Err(MomentError::Time(error)),
        }
    }
}

impl From<Seq> for Moment {
    fn from(seq: Seq) -> Self {
        Moment::Position(seq)
    }
}

impl From<Time> for Moment {
    fn from(time: Time) -> Self {
        Moment::Time(time)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::Position(seq) => write!(f, "seq {seq}"),
            Moment::Time(time) => time.fmt(f),
        }
    }
}

impl Moment {
    /// The position in a log; `None` if the log is shorter than that. A time always has one.
    pub fn resolve(self, view: View<'_>) -> Result<Option<Position>, Error> {
        match self {
            Moment::Position(seq) => {
                let position = Position { seq, time: None, recorded: None };
                Ok((seq <= view.head()?).then_some(position))
            }
            Moment::Time(time) => {
                let found = view.last_recorded(time)?;
                let (seq, recorded) = found.unzip();
                Ok(Some(Position { seq: seq.unwrap_or_default(), time: Some(time), recorded }))
            }
        }
    }
}

impl Position {
    /// The position as JSON, if a time was asked for: the time, the position, and the time of the
    /// event there (null at position 0).
    pub fn json(&self) -> Option<String> {
        let recorded = self.recorded.map_or("null".to_owned(), |time| format!("\"{time}\""));
        let members = Members::new().raw("recorded", recorded).raw("seq", self.seq);
        self.time.map(|time| members.text("time", &time.to_string()).finish())
    }

    /// Adds the member `as_of` to a canonical JSON object without an earlier member, if a time was
    /// asked for.
    pub fn added_to(&self, answer: String) -> String {
        match (self.json(), answer.strip_prefix('{')) {
            (Some(json), Some(rest)) => format!("{{\"as_of\":{json},{rest}"),
            _ => answer,
        }
    }

    /// A sentence that says which position a time means; `None` if a position was asked for.
    pub fn words(&self) -> Option<String> {
        let (time, seq) = (self.time?, self.seq);
        Some(match self.recorded {
            Some(recorded) => {
                format!("{time} is seq {seq}, the last that ipse recorded by then (at {recorded})")
            }
            None => format!("{time} is seq 0: ipse had recorded nothing by then"),
        })
    }
}

/// The instant of a day that a date stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DayEdge {
    /// The first microsecond of the day in UTC.
    Start,
    /// The last microsecond of the day in UTC.
    End,
}

/// Reads an RFC 3339 time, or a date as an edge of that day in UTC.
pub fn read_time(text: &str, edge: DayEdge) -> Result<Time, TimeError> {
    const DATE: usize = "2026-05-03".len();
    if text.len() != DATE {
        return Time::parse(text);
    }
    Time::parse(&match edge {
        DayEdge::Start => format!("{text}T00:00:00Z"),
        DayEdge::End => format!("{text}T23:59:59.999999Z"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_position_a_time_or_the_end_of_a_day() {
        let time = |text: &str| Ok(Moment::Time(Time::parse(text).unwrap()));
        for (text, wanted) in [
            ("0", Ok(Moment::Position(Seq(0)))),
            ("0015", Ok(Moment::Position(Seq(15)))),
            ("2026", Ok(Moment::Position(Seq(2026)))),
            ("1099511627775", Ok(Moment::Position(Seq::MAX))),
            ("1099511627776", Err(MomentError::TooHigh)),
            ("99999999999999999999999", Err(MomentError::TooHigh)),
            ("2026-05-03", time("2026-05-03T23:59:59.999999Z")),
            ("1970-01-01", time("1970-01-01T23:59:59.999999Z")),
            ("9999-12-31", time("9999-12-31T23:59:59.999999Z")),
            ("2026-05-03T12:00:00+02:00", time("2026-05-03T10:00:00Z")),
            ("2026-05-03t10:00:00.25z", time("2026-05-03T10:00:00.250000Z")),
            ("1969-12-31", Err(MomentError::Time(TimeError::Range))),
            ("2026-06-30T23:59:60Z", Err(MomentError::Time(TimeError::LeapSecond))),
            ("", Err(MomentError::Form)),
            ("-1", Err(MomentError::Form)),
            ("+1", Err(MomentError::Form)),
            ("1.5", Err(MomentError::Form)),
            (" 15", Err(MomentError::Form)),
            ("now", Err(MomentError::Form)),
            ("2026-05", Err(MomentError::Form)),
            ("2026-02-30", Err(MomentError::Form)),
            ("2026-5-3", Err(MomentError::Form)),
            ("03.05.2026", Err(MomentError::Form)),
            ("2026-05-03 10:00:00Z", Err(MomentError::Form)),
            ("2026-05-03T10:00", Err(MomentError::Form)),
            ("日本日", Err(MomentError::Form)),
        ] {
            assert_eq!(text.parse(), wanted, "{text}");
        }
    }

    #[test]
    fn a_date_has_two_edges() {
        let edge = |edge| read_time("2026-05-03", edge).unwrap().to_string();
        assert_eq!(edge(DayEdge::Start), "2026-05-03T00:00:00Z");
        assert_eq!(edge(DayEdge::End), "2026-05-03T23:59:59.999999Z");
    }

    #[test]
    fn an_answer_says_the_position_only_if_a_time_was_asked_for() {
        let time = Time::parse("2026-05-03T10:00:00Z").ok();
        let none = Position { seq: Seq(4), time: None, recorded: None };
        assert_eq!((none.words(), none.added_to("{\"b\":1}".into())), (None, "{\"b\":1}".into()));
        let empty = Position { seq: Seq(0), time, recorded: None };
        assert!(empty.words().unwrap().contains("seq 0: ipse had recorded nothing"));
        let found = Position { seq: Seq(4), time, recorded: time };
        assert_eq!(
            found.added_to("{\"b\":1}".into()),
            "{\"as_of\":{\"recorded\":\"2026-05-03T10:00:00Z\",\"seq\":4,\
             \"time\":\"2026-05-03T10:00:00Z\"},\"b\":1}"
        );
    }
}
