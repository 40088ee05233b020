//! How often each skill was let through lately, for the rate limits of a policy.
//!
//! **Invariants:** what is counted is read from the log, so that neither a restart nor another
//! process on the same store makes a limit start over; each part of the log is read once; and what
//! is older than any window takes no room.

use ipse_core::{Ruling, Seq, Time, json_parse};
use ipse_engine::{Error, Past};
use std::collections::{BTreeMap, VecDeque};

/// The longest window of a rate limit, in microseconds: what is older counts nowhere.
const LONGEST: i64 = 86_400_000_000;
/// Nesting of an event at most.
const DEPTH: usize = 32;

/// What was let through, and up to where the log was read.
#[derive(Default)]
pub(crate) struct Windows {
    read: Seq,
    times: BTreeMap<String, VecDeque<Time>>,
}

impl Windows {
    /// Reads what the log says past what was read before.
    pub(crate) fn catch_up(&mut self, past: &Past<'_>, now: Time) -> Result<(), Error> {
        let mut found = Vec::new();
        let oldest = now.micros().saturating_sub(LONGEST);
        self.read = past.intents(self.read, |stored| {
            found.extend(let_through(&stored.canonical).map(|skill| (skill, stored.time)));
            stored.time.micros() > oldest
        })?;
        for (skill, time) in found.into_iter().rev() {
            self.times.entry(skill).or_default().push_back(time);
        }
        self.times.retain(|_, times| {
            while times.front().is_some_and(|time| time.micros() <= oldest) {
                times.pop_front();
            }
            !times.is_empty()
        });
        Ok(())
    }

    /// How many intents of a skill were let through in the last so many seconds.
    pub(crate) fn count(&mut self, skill: &str, now: Time, seconds: u64) -> u64 {
        let long = i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(LONGEST);
        let since = now.micros().saturating_sub(long.min(LONGEST));
        let Some(times) = self.times.get_mut(skill) else { return 0 };
        times.retain(|time| time.micros() > since);
        times.len() as u64
    }
}

/// The skill of an intent that the gates let through, or will if somebody confirms it.
fn let_through(canonical: &str) -> Option<String> {
    let value = json_parse::parse(canonical.as_bytes(), DEPTH).ok()?;
    let data = value.as_object()?.get("data")?.as_object()?;
    let ruling = Ruling::parse(data.get("verdict")?.as_text()?)?;
    let skill = data.get("skill_id")?.as_text()?;
    (ruling != Ruling::Denied).then(|| skill.to_owned())
}
