//! One attempt of an experiment, as the event that a robot would send.

use crate::scene::{ENVIRONMENT, SKILL};
use ipse_core::Time;
use ipse_core::json::Members;
use std::ops::RangeInclusive;

/// 2026-05-06T00:00:00Z; one attempt per minute.
const START: i64 = 1_778_025_600_000_000;
const MINUTE: i64 = 60_000_000;

/// One attempt at grasping.
#[derive(Clone, Copy, Default)]
pub(crate) struct Attempt<'a> {
    /// The number in the experiment; it gives the event its id and its time.
    pub(crate) number: u32,
    /// The class of the object, in experiments that distinguish classes.
    pub(crate) target: Option<&'a str>,
    /// Whether the grasp held.
    pub(crate) success: bool,
    /// The force, in newtons.
    pub(crate) force: Option<u32>,
}

impl Attempt<'_> {
    /// The attempt as one line of JSON.
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

/// Attempts without a target; every fifth fails.
pub(crate) fn four_of_five(numbers: RangeInclusive<u32>) -> Vec<String> {
    let one = |number: u32| {
        let success = !number.is_multiple_of(5);
        Attempt { number, success, ..Default::default() }.line()
    };
    numbers.map(one).collect()
}
