//! The counts of rate limits, from the intents of a log.
//!
//! **Invariant:** a count is exact unless it says otherwise. It is not exact if the content of an
//! intent in the window is missing, or if times run backwards within the window.

use ipse_core::Time;
use std::collections::{BTreeMap, VecDeque};

/// Steps back of up to this many microseconds between intents of different skills are ordinary: a
/// server judges intents of skills without a rate limit at the same time.
const SAME_TIME: i64 = 1_000_000;
/// The longest window of a rate limit, in microseconds.
const LONGEST: i64 = 86_400_000_000;

/// The intents so far.
#[derive(Default)]
pub(crate) struct Windows {
    skills: BTreeMap<String, Skill>,
    /// The times of intents without content.
    missing: VecDeque<Time>,
    clock: Clock,
}

#[derive(Default)]
struct Skill {
    /// The times of intents that were not denied.
    counted: VecDeque<Time>,
    clock: Clock,
}

/// The latest time so far, and the latest time before a step back.
#[derive(Clone, Copy, Default)]
struct Clock {
    latest: Option<Time>,
    before_step: Option<Time>,
}

impl Clock {
    fn tick(&mut self, time: Time, tolerance: i64) {
        match self.latest {
            Some(latest) if time.micros().saturating_add(tolerance) < latest.micros() => {
                self.before_step = self.latest;
            }
            Some(latest) if time <= latest => {}
            _ => self.latest = Some(time),
        }
    }

    fn stepped_back_after(&self, since: i64) -> bool {
        self.before_step.is_some_and(|time| time.micros() > since)
    }
}

/// The number of recent intents of a skill.
pub(crate) struct Recent {
    pub(crate) least: u64,
    /// More than `least` if intents without content may count.
    pub(crate) most: u64,
    /// Whether times run backwards within the window.
    pub(crate) backwards: bool,
}

impl Windows {
    /// Counts the recent intents of a skill at the time of its next one.
    pub(crate) fn recent(&mut self, skill_id: &str, time: Time, seconds: u64) -> Recent {
        let window = i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(LONGEST);
        let since = time.micros().saturating_sub(window.min(LONGEST));
        self.clock.tick(time, SAME_TIME);
        let skill = self.skills.entry(skill_id.to_owned()).or_default();
        skill.clock.tick(time, 0);
        let backwards =
            skill.clock.stepped_back_after(since) || self.clock.stepped_back_after(since);
        if !backwards {
            // In order, so everything before the first recent one is old for all later intents.
            while skill.counted.front().is_some_and(|time| time.micros() <= since) {
                skill.counted.pop_front();
            }
        }
        let is_recent = |time: &&Time| time.micros() > since;
        let least = match backwards {
            true => skill.counted.iter().filter(is_recent).count() as u64,
            false => skill.counted.len() as u64,
        };
        let missing = self.missing.iter().filter(is_recent).count() as u64;
        Recent { least, most: least + missing, backwards }
    }

    /// Adds an intent with content.
    pub(crate) fn intent(&mut self, skill_id: &str, time: Time, counts: bool) {
        self.clock.tick(time, SAME_TIME);
        if !counts {
            return;
        }
        self.skills.entry(skill_id.to_owned()).or_default().counted.push_back(time);
    }

    /// Adds an intent without content. It may be of any skill.
    pub(crate) fn missing(&mut self, time: Time) {
        self.clock.tick(time, SAME_TIME);
        let old = time.micros().saturating_sub(LONGEST);
        while self.missing.front().is_some_and(|time| time.micros() <= old) {
            self.missing.pop_front();
        }
        self.missing.push_back(time);
    }
}
