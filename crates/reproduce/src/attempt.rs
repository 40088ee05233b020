//! One attempt of an experiment, as the event that a robot would send.

use crate::scene::{ENVIRONMENT, SKILL};
use ipse_core::Time;
use ipse_core::json::Members;
use std::ops::RangeInclusive;

/// 2026-05-06T00:00:00Z; an attempt a minute.
const START: i64 = 1_778_025_600_000_000;
const MINUTE: i64 = 60_000_000;

/// One try.
#[derive(Clone, Copy, Default)]
pub(crate) struct Attempt<'a> {
    /// Its place in the experiment, which names it and sets its time.
    pub(crate) number: u32,
    /// What was grasped, where the experiment tells things apart.
    pub(crate) target: Option<&'a str>,
    /// Whether it held.
    pub(crate) success: bool,
    /// The force, in newtons.
    pub(crate) force: Option<u32>,
}

impl Attempt<'_> {
    /// The event.
    pub(crate) fn line(&self) -> String {
        let micros = START + i64::from(self.number) * MINUTE;
        let time = Time::from_micros(micros).expect("BUG: attempts do not last to the year 9999");
        let mut data = Members::new().text("skill_id", SKILL).raw("success", self.success);
        if let Some(target) = self.target {
            data = data.text("target_class", target).text("environment", ENVIRONMENT);
        }
        if let Some(force) = self.force {
            data = data.raw("params", Members::new().raw("force_n", force).finish());
        }
        Members::new()
            .text("id", &self.number.to_string())
            .text("source", "reproduce")
            .text("type", "execution_result")
            .text("time", &time.to_string())
            .raw("data", data.finish())
            .finish()
    }
}

/// Attempts at nothing in particular, of which every fifth fails.
pub(crate) fn four_of_five(numbers: RangeInclusive<u32>) -> Vec<String> {
    let one = |number: u32| {
        let success = !number.is_multiple_of(5);
        Attempt { number, success, ..Default::default() }.line()
    };
    numbers.map(one).collect()
}
