//! The contract of a skill: other skills that must have succeeded shortly before.
//!
//! **Invariant:** every line names another skill of the registry. A line for the same target holds
//! for every intent of the skill, because the skill requires a target class.

use crate::intent::MAX_NAME_BYTES;
use crate::registry::{Registry, Skill};
use crate::toml_file::Section;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;
use ipse_core::judge::Precondition;

/// The most lines of a contract: the event of an intent names an event for each.
pub const MAX_CONTRACT_LINES: usize = 16;
/// The longest time between the success of another skill and an intent, in seconds: a week.
pub const MAX_WITHIN_S: u64 = 604_800;

const MEMBERS: [&str; 1] = ["after"];
const LINE: [&str; 3] = ["skill", "within_s", "same_target"];

/// The lines of a skill's contract, with their lines in the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contract {
    lines: Vec<Precondition>,
    at: Vec<usize>,
}

impl Contract {
    pub(crate) fn lines(&self) -> &[Precondition] {
        &self.lines
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Reads `[skills."NAME".contract]`. Errors are reported.
pub(crate) fn read(section: &Section<'_, '_>) -> Contract {
    section.only(&MEMBERS);
    let mut contract = Contract::default();
    if section.required("after").is_none() {
        return contract;
    }
    let lines = section.rules("after");
    if !(1..=MAX_CONTRACT_LINES).contains(&lines.len()) {
        let message = format!("must list 1 to {MAX_CONTRACT_LINES} skills, not {}", lines.len());
        section.wrong("after", message);
        return contract;
    }
    for line in lines {
        line.only(&LINE);
        let skill = line.required("skill").and_then(|field| field.text(MAX_NAME_BYTES));
        let within = line.required("within_s").and_then(|field| field.count(1, MAX_WITHIN_S));
        let same_target = match line.get("same_target") {
            Some(field) => field.boolean(),
            None => Some(false),
        };
        let (Some(skill), Some(within_s), Some(same_target)) = (skill, within, same_target) else {
            continue;
        };
        let rule = line.path.clone();
        contract.lines.push(Precondition { skill, within_s, same_target, rule });
        contract.at.push(line.line);
    }
    contract
}

/// Reports the lines of a contract that do not fit the registry.
pub(crate) fn check(registry: &Registry, skill_id: &str, skill: &Skill, root: &Section<'_, '_>) {
    let Contract { lines, at } = &skill.contract;
    for (index, (line, at)) in lines.iter().zip(at).enumerate() {
        let wrong = |member: &str, message: &str| {
            root.wrong_at(*at, &format!("{}.{member}", line.rule), message.to_owned());
        };
        let is_twin = |other: &&Precondition| {
            other.skill == line.skill && other.same_target == line.same_target
        };
        if line.skill == skill_id {
            wrong("skill", "names the skill itself: it could never be the first");
        } else if registry.skill(&line.skill).is_none() {
            wrong("skill", "the registry has no such skill");
        } else if lines[..index].iter().any(|other| is_twin(&other)) {
            wrong("skill", "is in an earlier line already, with the same `same_target`");
        }
        if line.same_target && !skill.requires_target {
            wrong(
                "same_target",
                "compares the target, so `requires` must name \"target_class\": an intent that \
                 names none has no target to compare",
            );
        }
    }
}
