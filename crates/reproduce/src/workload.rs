//! W(N, K): the stream of attempts that benchmarks run on.
//!
//! K = 2 is the paper's workload: a glass cup with many successes and an unknown object with few,
//! four to one. A larger K spreads attempts evenly over that many keys.
//!
//! **Invariant:** the same arguments give the same lines on every machine.

use ipse_core::json::{Members, quoted};

const REASONS: [&str; 6] =
    ["slip", "force_limit", "occluded", "timeout", "unreachable", "collision_guard"];
const SKILLS: [&str; 5] =
    ["manipulation.grasp", "manipulation.place", "nav.goto", "perception.scan", "door.open"];
const ENVIRONMENTS: [&str; 4] = ["sim_relaxed", "sim_strict", "ward_day", "ward_night"];
/// 2026-02-02T02:40:00Z, in milliseconds.
const START: u64 = 1_770_000_000_000;
const STEP: u64 = 137;

/// An endless stream of events.
pub struct Workload {
    keys: u64,
    next: u64,
    random: u64,
}

/// The attempts of one key: names, successes per thousand, mean force in hundredths.
struct Key {
    skill: &'static str,
    target: String,
    environment: &'static str,
    good: u64,
    force: u64,
}

impl Workload {
    /// Events that are numbered from `from` on. The seed depends on `from`: a stream that starts
    /// later is not the later part of another stream.
    pub fn new(keys: u64, from: u64) -> Self {
        Workload { keys: keys.max(1), next: from, random: 20_260_506 + from }
    }

    /// A random number below `bound`, by splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn key(&mut self) -> Key {
        if self.keys == 2 {
            let glass = self.below(5) < 4;
            let (target, good, force) =
                if glass { ("glass_cup", 800, 2500) } else { ("unknown_object", 200, 1500) };
            let (skill, environment) = (SKILLS[0], ENVIRONMENTS[0]);
            return Key { skill, target: target.to_string(), environment, good, force };
        }
        let number = self.below(self.keys);
        Key {
            skill: SKILLS[number as usize % 5],
            target: format!("object_class_{:03}", number / 20),
            environment: ENVIRONMENTS[number as usize / 5 % 4],
            good: 200 + 700 * (number * 37 % 101) / 101,
            force: 500 + number * 13 % 40 * 100,
        }
    }

    /// A random force around the mean, in hundredths. The deviation is an eighth of the mean.
    fn force(&mut self, mean: u64) -> u64 {
        // The sum of twelve uniform draws is nearly normal, with a deviation of one draw's width.
        let width = mean / 8;
        let sum: u64 = (0..12).map(|_| self.below(width.max(1))).sum();
        (mean + sum).saturating_sub(6 * width)
    }
}

impl Iterator for Workload {
    type Item = String;

    /// One line, without its line end.
    fn next(&mut self) -> Option<String> {
        let number = self.next;
        self.next += 1;
        let key = self.key();
        let force = self.force(key.force);
        let success = self.below(1000) < key.good;
        let reason = REASONS[(self.below(6) * self.below(6) / 6) as usize];
        let micros = (START + number * STEP) * 1000;
        let time = ipse_core::Time::from_micros(micros.cast_signed())?;
        let params =
            Members::new().raw("force_n", format!("{}.{:02}", force / 100, force % 100)).finish();
        let data = Members::new()
            .text("skill_id", key.skill)
            .text("target_class", &key.target)
            .text("environment", key.environment)
            .raw("params", params)
            .raw("success", success)
            .raw("failure_reason", if success { "null".to_string() } else { quoted(reason) })
            .raw("duration_ms", 200 + self.below(3000))
            .text("trace_id", &format!("{:016x}", self.below(u64::MAX)))
            .finish();
        let line = Members::new()
            .text("id", &number.to_string())
            .text("source", "w")
            .text("type", "execution_result")
            .text("time", &time.to_string())
            .raw("data", data);
        Some(line.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_give_the_same_lines() {
        for keys in [1, 2, 1000] {
            let lines = |from| Workload::new(keys, from).take(50).collect::<Vec<_>>();
            assert_eq!(lines(0), lines(0));
            assert!(lines(7)[0].contains("\"id\":\"7\""), "{}", lines(7)[0]);
            let traces = |lines: Vec<String>| {
                let trace =
                    |line: &String| line.split_once("\"trace_id\":").unwrap().1[..18].to_owned();
                lines.iter().map(trace).collect::<Vec<_>>()
            };
            assert_ne!(traces(lines(0)), traces(lines(100)), "other draws");
        }
    }
}
