//! The judge of intents, as a verifier sees it: a verdict is judged again without the gates.
//!
//! **Invariants**
//! - Pure: the past of an intent is an argument, and no fact can be named here.
//! - The server and the verifiers look up the past with the same function.

use crate::json::Value;
use crate::{Digest, Event, EventRef, Outcome, Ruling, Seq, Time, hex, json_parse};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// The version of the words of the gates. An intent records the version that judged it; older
/// intents record none. A change of the text of any finding needs a new version: a verifier
/// compares the words of its own version only, and the codes of all versions.
pub const GATES_VERSION: u64 = 2;

/// A line of a skill's contract: another skill must have succeeded shortly before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Precondition {
    /// The other skill.
    pub skill: String,
    /// The seconds within which it must have succeeded.
    pub within_s: u64,
    /// Whether only attempts at the same target class count.
    pub same_target: bool,
    /// The path of the line in the registry.
    pub rule: String,
}

impl Precondition {
    /// Whether the line holds for an intent at a time: the newest ended attempt succeeded, and not
    /// too long ago.
    pub fn holds(&self, at: Time, newest: Option<&EndedAttempt>) -> bool {
        let within = i64::try_from(self.within_s.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        let oldest = at.micros().saturating_sub(within);
        newest.is_some_and(|ended| ended.success && ended.time.micros() >= oldest)
    }
}

/// An attempt that ended with `success` or `failed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedAttempt {
    /// Its position.
    pub seq: Seq,
    /// The name of its event.
    pub event_ref: EventRef,
    /// The time of its event.
    pub time: Time,
    /// Whether it succeeded.
    pub success: bool,
}

/// The newest ended attempts of the skills that contracts name.
#[derive(Clone, Debug, Default)]
pub struct EndedAttempts(BTreeMap<String, BySkill>);

#[derive(Clone, Debug, Default)]
struct BySkill {
    newest: Option<EndedAttempt>,
    by_target: BTreeMap<String, EndedAttempt>,
}

impl EndedAttempts {
    /// No attempts yet. Only attempts at these skills will be kept.
    pub fn of(skills: impl IntoIterator<Item = String>) -> Self {
        EndedAttempts(skills.into_iter().map(|skill| (skill, BySkill::default())).collect())
    }

    /// Whether no skill is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the next event of the log.
    pub fn add(&mut self, seq: Seq, event: &Event<'_>) {
        let success = match event.columns.outcome {
            Some(Outcome::Success) => true,
            Some(Outcome::Failed) => false,
            _ => return,
        };
        let Some(kept) = event.columns.skill.and_then(|skill| self.0.get_mut(skill)) else {
            return;
        };
        let ended = EndedAttempt { seq, event_ref: event.event_ref, time: event.time, success };
        kept.newest = Some(ended);
        if let Some(target) = event.columns.target {
            kept.by_target.insert(target.to_owned(), ended);
        }
    }

    /// The newest attempt that decides a line of a contract, for an intent on a target.
    pub fn newest(&self, line: &Precondition, target: Option<&str>) -> Option<&EndedAttempt> {
        let kept = self.0.get(&line.skill)?;
        match line.same_target {
            true => kept.by_target.get(target?),
            false => kept.newest.as_ref(),
        }
    }
}

/// The past that an intent is judged with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Past<'p> {
    /// The number of intents of its skill that were not denied within the window of its rate limit.
    pub recent: u64,
    /// Whether each line of the skill's contract holds, in order. A missing one does not hold.
    pub holds: &'p [bool],
}

impl Past<'_> {
    /// A past with this number of intents, and no attempt that a contract asks for.
    pub fn counted(recent: u64) -> Self {
        Past { recent, holds: &[] }
    }
}

/// A verdict, as it is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judged {
    /// The verdict.
    pub ruling: Ruling,
    /// The admitted parameters as canonical JSON; `None` if denied.
    pub admitted_params: Option<String>,
    /// The gates that ran, each as canonical JSON.
    pub gates: Vec<String>,
    /// The first severe finding in a few words: gate, code and parameter.
    pub reason: Option<String>,
}

/// The files of the gates, which judge an intent again.
pub trait Judge {
    /// The seconds of a skill's rate limit; `None` if it has none.
    fn rate_window(&self, skill_id: &str) -> Option<u64>;

    /// The lines of a skill's contract.
    fn contract(&self, skill_id: &str) -> &[Precondition];

    /// The skills that contracts name.
    fn preceding_skills(&self) -> Vec<String>;

    /// The seconds in which a person can confirm an intent; `None` without a limit.
    fn confirm_within(&self) -> Option<u64>;

    /// Judges the JSON of an intent. `None` if it is not an intent that the gates read.
    fn judge(&self, intent: &[u8], past: &Past<'_>) -> Option<Judged>;
}

/// The manifest fields of the gate files: registry, policy and temperament.
pub const GATE_FIELDS: [&str; 3] = ["ecm_registry_hash", "policy_hash", "temperament_hash"];
/// The names of the gate files, in the order of [`GATE_FIELDS`].
pub const GATE_FILES: [&str; 3] = ["ecm-registry.toml", "policy.toml", "temperament.toml"];

/// The hashes of the gate files in a canonical manifest, in the order of [`GATE_FIELDS`]; `None`
/// for a field that is no SHA-256.
pub fn gate_hashes(manifest: &str) -> [Option<Digest>; 3] {
    let value = json_parse::parse(manifest.as_bytes(), 1).ok();
    let object = value.as_ref().and_then(Value::as_object);
    GATE_FIELDS.map(|field| hex::decode(object?.get(field)?.as_text()?).map(Digest))
}

/// Reads registry, policy and temperament; an error says why they are not gate files.
pub type ReadGates<'r> = &'r dyn Fn([&[u8]; 3]) -> Result<Box<dyn Judge>, String>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Columns;

    fn line(same_target: bool) -> Precondition {
        let (skill, rule) = ("open".to_owned(), String::new());
        Precondition { skill, within_s: 60, same_target, rule }
    }

    fn time(seconds: i64) -> Time {
        Time::from_micros(1_800_000_000_000_000 + seconds * 1_000_000).unwrap()
    }

    fn event<'e>(seconds: i64, skill: &'e str, target: &'e str, outcome: Outcome) -> Event<'e> {
        let columns = Columns {
            outcome: Some(outcome),
            skill: Some(skill),
            target: Some(target).filter(|target| !target.is_empty()),
            ..Columns::default()
        };
        let event_type = crate::event::EXECUTION_RESULT;
        Event { event_ref: EventRef([1; 16]), time: time(seconds), event_type, columns }
    }

    #[test]
    fn the_newest_attempt_by_position_decides() {
        let mut ended = EndedAttempts::of(["open".to_owned()]);
        assert!(ended.newest(&line(false), None).is_none());
        ended.add(Seq(1), &event(10, "open", "door", Outcome::Success));
        ended.add(Seq(2), &event(20, "open", "gate", Outcome::Failed));
        ended.add(Seq(3), &event(30, "open", "door", Outcome::Unknown));
        ended.add(Seq(4), &event(30, "shut", "door", Outcome::Failed));
        let seq = |same, target| ended.newest(&line(same), target).map(|ended| ended.seq.0);
        assert_eq!(seq(false, Some("door")), Some(2), "of any target");
        assert_eq!(seq(true, Some("door")), Some(1), "an unknown outcome is none");
        assert_eq!(seq(true, Some("window")), None);
        assert_eq!(seq(true, None), None);
        ended.add(Seq(5), &event(-90, "open", "", Outcome::Success));
        assert_eq!(
            ended.newest(&line(false), None).map(|ended| ended.seq.0),
            Some(5),
            "not by time"
        );
    }

    #[test]
    fn a_line_holds_until_its_seconds_are_over() {
        let mut ended = EndedAttempts::of(["open".to_owned()]);
        ended.add(Seq(1), &event(0, "open", "door", Outcome::Success));
        let newest = ended.newest(&line(true), Some("door"));
        for (seconds, holds) in [(-5, true), (0, true), (60, true), (61, false)] {
            assert_eq!(line(true).holds(time(seconds), newest), holds, "{seconds}");
        }
        assert!(!line(true).holds(time(0), None));
        ended.add(Seq(2), &event(1, "open", "door", Outcome::Failed));
        assert!(!line(true).holds(time(2), ended.newest(&line(true), Some("door"))));
    }
}
