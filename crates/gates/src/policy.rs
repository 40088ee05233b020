//! The policy: prohibitions, clamps and rate limits.
//!
//! **Invariant:** clamps that can apply to the same intent never contradict each other, so that a
//! number always has an allowed value.

use crate::error::{FileError, GateFile};
use crate::fit::{self, errors_of};
use crate::intent::{MAX_NAME_BYTES, MAX_PARAM_NAME_BYTES};
use crate::registry::{Bounds, MAX_SKILLS, Registry, Skill};
use crate::scope::Scope;
use crate::toml_file::{
    self, Field, LineValue, Literal, MAX_ERRORS, MAX_REASON_BYTES, Section, under,
};
use crate::verdict::counted;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::Micro;

/// The longest window of a rate limit: a day.
const MAX_WINDOW_S: u64 = 86_400;
/// The most intents that a rate limit counts.
const MAX_RATE: u64 = 100_000;

const MEMBERS: [&str; 3] = ["format", "unlisted_skills", "skills"];
const SKILL: [&str; 3] = ["rate_limit", "clamp", "forbid"];
const CLAMP: [&str; 5] = ["param", "min", "max", "target_class", "environment"];
const FORBID: [&str; 7] =
    ["param", "from", "to", "equals", "target_class", "environment", "reason"];

/// The limits on the skills of the agent.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether skills that the policy does not name are denied.
    pub(crate) denies_unlisted: bool,
    skills: BTreeMap<String, SkillPolicy>,
}

/// The rate limit of a skill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// The number of intents that may pass in a window.
    pub intents: u64,
    /// The length of the window in seconds.
    pub seconds: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct SkillPolicy {
    path: String,
    line: usize,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) clamps: Vec<Clamp>,
    pub(crate) forbids: Vec<Forbid>,
}

impl SkillPolicy {
    /// The path of its rate limit in the file.
    pub(crate) fn rate_rule(&self) -> String {
        under(&self.path, "rate_limit")
    }
}

/// A rule that moves a number into bounds, within its scope.
#[derive(Clone, Debug)]
pub(crate) struct Clamp {
    /// The path of the rule, as in `skills.a.clamp[0]`.
    pub(crate) rule: String,
    pub(crate) param: LineValue<String>,
    pub(crate) min: Option<LineValue<Micro>>,
    pub(crate) max: Option<LineValue<Micro>>,
    pub(crate) scope: Scope,
}

/// A rule that forbids a skill, a range or a value, within its scope.
#[derive(Clone, Debug)]
pub(crate) struct Forbid {
    pub(crate) rule: String,
    pub(crate) what: Forbidden,
    pub(crate) scope: Scope,
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Forbidden {
    Skill,
    /// Both ends are inclusive; at least one is present.
    Range {
        param: LineValue<String>,
        from: Option<LineValue<Micro>>,
        to: Option<LineValue<Micro>>,
    },
    Value {
        param: LineValue<String>,
        equals: LineValue<Literal>,
    },
}

impl Policy {
    /// Reads `policy.toml`.
    pub fn parse(text: &str) -> Result<Self, Vec<FileError>> {
        toml_file::read(GateFile::Policy, text, &MEMBERS, |root| {
            let unlisted = root.required("unlisted_skills");
            let unlisted = unlisted.and_then(|field| field.word(&["deny", "admit"]));
            let named = root.tables("skills", MAX_SKILLS, MAX_NAME_BYTES);
            let skills = named.into_iter().map(|(name, section)| (name, skill(&section)));
            let skills = skills.collect();
            Some(Policy { denies_unlisted: unlisted? == 0, skills })
        })
    }

    /// A summary for people: `2 skills, 3 clamps, 1 prohibition, 1 rate limit`.
    pub fn holds(&self) -> String {
        let sum = |count: fn(&SkillPolicy) -> usize| self.skills.values().map(count).sum();
        format!(
            "{}, {}, {}, {}",
            counted(self.skills.len(), "skill"),
            counted(sum(|skill| skill.clamps.len()), "clamp"),
            counted(sum(|skill| skill.forbids.len()), "prohibition"),
            counted(sum(|skill| usize::from(skill.rate_limit.is_some())), "rate limit")
        )
    }

    /// The errors of this policy with a registry; empty if the two fit.
    pub fn unfit_for(&self, registry: &Registry) -> Vec<FileError> {
        let mut errors = Vec::new();
        for (skill_id, policy) in &self.skills {
            match registry.skill(skill_id) {
                Some(skill) => policy.unfit_for(skill_id, skill, &mut errors),
                None => errors.push(FileError {
                    file: GateFile::Policy,
                    line: policy.line,
                    field: policy.path.clone(),
                    message: "the registry has no such skill".to_owned(),
                }),
            }
        }
        errors.sort_by_key(|error| error.line);
        errors
    }

    pub(crate) fn skill(&self, skill_id: &str) -> Option<&SkillPolicy> {
        self.skills.get(skill_id)
    }
}

fn skill(section: &Section<'_, '_>) -> SkillPolicy {
    section.only(&SKILL);
    let rate_limit = section.get("rate_limit").and_then(|field| rate_limit(&field));
    let clamps: Vec<Clamp> = section.rules("clamp").iter().filter_map(clamp).collect();
    let forbids = section.rules("forbid").iter().filter_map(forbid).collect();
    for (low, min, high, max) in contradictions(&clamps).take(MAX_ERRORS) {
        let (min_value, max_value) = (min.value, max.value);
        let message = match low.rule == high.rule {
            true => format!("is {min_value}, greater than `max`, which is {max_value}"),
            false => format!(
                "is {min_value}, but {} keeps the same number to {max_value} at most, and both can \
                 hold one intent",
                high.rule
            ),
        };
        section.wrong_at(min.line, &under(&low.rule, "min"), message);
    }
    SkillPolicy { path: section.path.clone(), line: section.line, rate_limit, clamps, forbids }
}

fn rate_limit(field: &Field<'_, '_>) -> Option<RateLimit> {
    let section = field.section()?;
    section.only(&["intents", "seconds"]);
    let intents = section.required("intents").and_then(|field| field.count(1, MAX_RATE));
    let seconds = section.required("seconds").and_then(|field| field.count(1, MAX_WINDOW_S));
    Some(RateLimit { intents: intents?, seconds: seconds? })
}

fn clamp(section: &Section<'_, '_>) -> Option<Clamp> {
    section.only(&CLAMP);
    let param = section.required("param").and_then(|field| param_name(&field));
    let (min, max) = (section.number("min"), section.number("max"));
    if section.get("min").is_none() && section.get("max").is_none() {
        section.wrong("", "give `min`, `max` or both".to_owned());
    }
    let scope = Scope::read(section);
    Some(Clamp { rule: section.path.clone(), param: param?, min, max, scope })
}

fn forbid(section: &Section<'_, '_>) -> Option<Forbid> {
    section.only(&FORBID);
    let scope = Scope::read(section);
    let reason = section.get("reason").and_then(|field| field.text(MAX_REASON_BYTES));
    let what = forbidden(section)?;
    Some(Forbid { rule: section.path.clone(), what, scope, reason })
}

fn forbidden(section: &Section<'_, '_>) -> Option<Forbidden> {
    let param = section.get("param").map(|field| param_name(&field));
    let (from, to) = (section.number("from"), section.number("to"));
    let equals = section.get("equals");
    let ranged = section.get("from").is_some() || section.get("to").is_some();
    let Some(param) = param else {
        if ranged || equals.is_some() {
            section.wrong("param", "is missing: `from`, `to`, `equals` are about one".to_owned());
            return None;
        }
        return Some(Forbidden::Skill);
    };
    match (ranged, equals) {
        (true, None) => {
            if let (Some(low), Some(high)) = (&from, &to)
                && low.value > high.value
            {
                let message =
                    format!("is {}, greater than `to`, which is {}", low.value, high.value);
                section.wrong_at(low.line, &under(&section.path, "from"), message);
            }
            Some(Forbidden::Range { param: param?, from, to })
        }
        (false, Some(field)) => {
            let equals = field.placed(field.literal()?);
            Some(Forbidden::Value { param: param?, equals })
        }
        _ => {
            let message = "give `from`, `to` or both for a number, `equals` for anything else";
            section.wrong("", message.to_owned());
            None
        }
    }
}

pub(crate) fn param_name(field: &Field<'_, '_>) -> Option<LineValue<String>> {
    Some(field.placed(field.text(MAX_PARAM_NAME_BYTES)?))
}

/// Clamps that can apply to the same intent, where one requires more than the other allows.
fn contradictions(
    clamps: &[Clamp],
) -> impl Iterator<Item = (&Clamp, &LineValue<Micro>, &Clamp, &LineValue<Micro>)> {
    clamps.iter().flat_map(move |low| {
        clamps.iter().filter_map(move |high| {
            let (min, max) = (low.min.as_ref()?, high.max.as_ref()?);
            let both = low.param.value == high.param.value && low.scope.meets(&high.scope);
            (both && min.value > max.value).then_some((low, min, high, max))
        })
    })
}

impl SkillPolicy {
    fn unfit_for(&self, skill_id: &str, skill: &Skill, errors: &mut Vec<FileError>) {
        for clamp in &self.clamps {
            let mut wrong = errors_of(GateFile::Policy, &clamp.rule, errors);
            clamp.scope.escaped_by(skill_id, skill, &mut wrong);
            clamp.scope.unknown_to(&[skill], &mut wrong);
            clamp.unfit_for(skill, &mut wrong);
        }
        for forbid in &self.forbids {
            let mut wrong = errors_of(GateFile::Policy, &forbid.rule, errors);
            forbid.scope.escaped_by(skill_id, skill, &mut wrong);
            forbid.scope.unknown_to(&[skill], &mut wrong);
            match &forbid.what {
                Forbidden::Skill => (),
                Forbidden::Range { param, from, to } => {
                    let ends = [("from", from), ("to", to)];
                    if let Some(bounds) = fit::numbers(skill, param, &ends, &mut wrong) {
                        dead_range(bounds, from, to, &mut wrong);
                    }
                }
                Forbidden::Value { param, equals } => {
                    fit::literal(skill, param, equals, &mut wrong);
                }
            }
        }
    }
}

/// Reports a forbidden range that begins above, or ends below, all values that the registry allows.
fn dead_range(
    bounds: &Bounds,
    from: &Option<LineValue<Micro>>,
    to: &Option<LineValue<Micro>>,
    wrong: &mut impl FnMut(&str, usize, String),
) {
    if let (Some(from), Some(max)) = (from, bounds.max)
        && from.value > max
    {
        fit::never_holds("from", from, bounds, wrong);
    }
    if let (Some(to), Some(min)) = (to, bounds.min)
        && to.value < min
    {
        fit::never_holds("to", to, bounds, wrong);
    }
}

impl Clamp {
    fn unfit_for(&self, skill: &Skill, wrong: &mut impl FnMut(&str, usize, String)) {
        let ends = [("min", &self.min), ("max", &self.max)];
        let Some(bounds) = fit::numbers(skill, &self.param, &ends, wrong) else { return };
        for (member, end) in ends {
            let Some(LineValue { value, line }) = end else { continue };
            if !bounds.hold(*value) {
                let message = format!("is {value}; the registry allows {}", bounds.words());
                wrong(member, *line, message);
            }
        }
    }
}
