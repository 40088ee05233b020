//! The temperament: thresholds for risk and ethics, and when a person must confirm.
//!
//! **Invariant:** thresholds of risk, ethics and human checks are in this file and nowhere else.

use crate::error::{FileError, GateFile};
use crate::fit::{self, errors_of};
use crate::intent::MAX_NAME_BYTES;
use crate::policy::param_name;
use crate::registry::{Registry, Skill};
use crate::scope::Scope;
use crate::toml_file::{self, LineValue, Literal, MAX_REASON_BYTES, Section, under};
use crate::verdict::counted;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::Micro;

/// The longest time that a confirmation may take: a week.
const MAX_CONFIRM_S: u64 = 604_800;

const MEMBERS: [&str; 5] =
    ["format", "risk_appetite", "ethical_floor", "confirm_within_s", "human_check"];
const CHECK: [&str; 8] =
    ["skill_id", "param", "above", "below", "equals", "target_class", "environment", "reason"];

/// The thresholds of the agent.
#[derive(Clone, Debug)]
pub struct Temperament {
    /// A skill with a greater risk needs a person's confirmation.
    pub(crate) risk_appetite: Micro,
    /// A skill with lower ethics is denied.
    pub(crate) ethical_floor: Micro,
    pub(crate) confirm_within: Option<u64>,
    pub(crate) checks: Vec<HumanCheck>,
}

/// A rule that requires a person's confirmation.
#[derive(Clone, Debug)]
pub(crate) struct HumanCheck {
    /// The path of the rule, as in `human_check[0]`.
    pub(crate) rule: String,
    /// `None`: every skill.
    skill_id: Option<LineValue<String>>,
    pub(crate) when: Condition,
    pub(crate) scope: Scope,
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Always,
    /// Strictly beyond; at least one bound is present.
    Beyond {
        param: LineValue<String>,
        above: Option<LineValue<Micro>>,
        below: Option<LineValue<Micro>>,
    },
    Equal {
        param: LineValue<String>,
        equals: LineValue<Literal>,
    },
}

impl Temperament {
    /// Reads `temperament.toml`.
    pub fn parse(text: &str) -> Result<Self, Vec<FileError>> {
        toml_file::read(GateFile::Temperament, text, &MEMBERS, |root| {
            let risk_appetite = root.required("risk_appetite").and_then(|field| field.share());
            let ethical_floor = root.required("ethical_floor").and_then(|field| field.share());
            let confirm_within = root.get("confirm_within_s");
            let confirm_within = confirm_within.and_then(|field| field.count(1, MAX_CONFIRM_S));
            let checks = root.rules("human_check").iter().filter_map(human_check).collect();
            Some(Temperament {
                risk_appetite: risk_appetite?,
                ethical_floor: ethical_floor?,
                confirm_within,
                checks,
            })
        })
    }

    /// A summary for people: `risk appetite 0.5, ethical floor 0.4, 2 human checks`.
    pub fn holds(&self) -> String {
        let checks = counted(self.checks.len(), "human check");
        let Temperament { risk_appetite, ethical_floor, .. } = self;
        format!("risk appetite {risk_appetite}, ethical floor {ethical_floor}, {checks}")
    }

    /// The errors of this temperament with a registry; empty if the two fit.
    pub fn unfit_for(&self, registry: &Registry) -> Vec<FileError> {
        let mut errors = Vec::new();
        self.checks.iter().for_each(|check| check.unfit_for(registry, &mut errors));
        errors.sort_by_key(|error| error.line);
        errors
    }
}

fn human_check(section: &Section<'_, '_>) -> Option<HumanCheck> {
    section.only(&CHECK);
    let skill_id = section.get("skill_id").and_then(|field| {
        Some(field.placed(field.text(MAX_NAME_BYTES)?)) // Its errors were reported.
    });
    let scope = Scope::read(section);
    let reason = section.get("reason").and_then(|field| field.text(MAX_REASON_BYTES));
    let when = when(section)?;
    Some(HumanCheck { rule: section.path.clone(), skill_id, when, scope, reason })
}

fn when(section: &Section<'_, '_>) -> Option<Condition> {
    let param = section.get("param").map(|field| param_name(&field));
    let (above, below) = (section.number("above"), section.number("below"));
    let equals = section.get("equals");
    let ranged = section.get("above").is_some() || section.get("below").is_some();
    let Some(param) = param else {
        if ranged || equals.is_some() {
            let message = "is missing: `above`, `below`, `equals` are about one";
            section.wrong("param", message.to_owned());
            return None;
        }
        return Some(Condition::Always);
    };
    match (ranged, equals) {
        (true, None) => {
            if let (Some(above), Some(below)) = (&above, &below)
                && below.value > above.value
            {
                let message = format!(
                    "is {}, greater than `above`, which is {}: a check is for what is below the \
                     one or above the other",
                    below.value, above.value
                );
                section.wrong_at(below.line, &under(&section.path, "below"), message);
            }
            Some(Condition::Beyond { param: param?, above, below })
        }
        (false, Some(field)) => {
            let equals = field.placed(field.literal()?);
            Some(Condition::Equal { param: param?, equals })
        }
        _ => {
            let message = "give `above`, `below` or both for a number, `equals` for anything else";
            section.wrong("", message.to_owned());
            None
        }
    }
}

impl HumanCheck {
    /// Whether the rule applies to a skill.
    pub(crate) fn concerns(&self, skill_id: &str) -> bool {
        self.skill_id.as_ref().is_none_or(|wanted| wanted.value == skill_id)
    }

    fn param(&self) -> Option<&LineValue<String>> {
        match &self.when {
            Condition::Always => None,
            Condition::Beyond { param, .. } | Condition::Equal { param, .. } => Some(param),
        }
    }

    fn unfit_for(&self, registry: &Registry, errors: &mut Vec<FileError>) {
        let mut wrong = errors_of(GateFile::Temperament, &self.rule, errors);
        match &self.skill_id {
            Some(LineValue { value: skill_id, line }) => match registry.skill(skill_id) {
                Some(skill) => {
                    self.unfit_for_skill(skill_id, skill, &mut wrong);
                    self.scope.unknown_to(&[skill], &mut wrong);
                    self.dead_for(&[skill], &mut wrong);
                }
                None => wrong("skill_id", *line, "the registry has no such skill".to_owned()),
            },
            None => self.unfit_for_all(registry, &mut wrong),
        }
    }

    fn unfit_for_skill(
        &self,
        skill_id: &str,
        skill: &Skill,
        wrong: &mut impl FnMut(&str, usize, String),
    ) {
        self.scope.escaped_by(skill_id, skill, wrong);
        match &self.when {
            Condition::Always => (),
            Condition::Beyond { param, above, below } => {
                fit::numbers(skill, param, &[("above", above), ("below", below)], wrong);
            }
            Condition::Equal { param, equals } => fit::literal(skill, param, equals, wrong),
        }
    }

    /// Reports each bound that no value of these skills can exceed.
    fn dead_for(&self, skills: &[&Skill], wrong: &mut impl FnMut(&str, usize, String)) {
        let Condition::Beyond { param, above, below } = &self.when else { return };
        let bounds = || {
            let params = skills.iter().filter_map(|skill| skill.params.get(&param.value));
            params.filter_map(|param| param.kind.bounds())
        };
        // The widest bounds decide; a missing bound is the widest.
        let highest = bounds().max_by_key(|it| (it.max.is_none(), it.max));
        let lowest = bounds().min_by_key(|it| (it.min.is_some(), it.min));
        if let (Some(above), Some(bounds)) = (above, highest)
            && bounds.max.is_some_and(|max| above.value >= max)
        {
            fit::never_holds("above", above, bounds, wrong);
        }
        if let (Some(below), Some(bounds)) = (below, lowest)
            && bounds.min.is_some_and(|min| below.value <= min)
        {
            fit::never_holds("below", below, bounds, wrong);
        }
    }

    /// A check for every skill must fit all skills with its parameter, and at least one must have
    /// it.
    fn unfit_for_all(&self, registry: &Registry, wrong: &mut impl FnMut(&str, usize, String)) {
        let has =
            |skill: &Skill| self.param().is_none_or(|it| skill.params.contains_key(&it.value));
        let concerned: Vec<_> = registry.skills.iter().filter(|(_, skill)| has(skill)).collect();
        if let (Some(param), []) = (self.param(), &*concerned) {
            let message = "no skill of the registry has such a parameter";
            wrong("param", param.line, message.to_owned());
        }
        let skills: Vec<&Skill> = concerned.iter().map(|(_, skill)| *skill).collect();
        self.scope.unknown_to(&skills, wrong);
        self.dead_for(&skills, wrong);
        // One error is enough: the others would be the same.
        let mut said = false;
        for (skill_id, skill) in concerned {
            if !said {
                self.unfit_for_skill(skill_id, skill, &mut |member, line, message| {
                    said = true;
                    wrong(member, line, message);
                });
            }
        }
    }
}
