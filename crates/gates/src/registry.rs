//! The ECM registry: the skills of the agent and the bounds of their parameters.
//!
//! **Invariants:** a skill or parameter that is not in the registry does not exist. Its bounds are
//! the physical limits: beyond them an intent is denied, never clamped. No intent avoids a list by
//! omitting a field: a field with a list is required.

use crate::contract::{self, Contract};
use crate::error::{FileError, GateFile, REGISTRY_WITH_CONTRACTS};
use crate::intent::{MAX_NAME_BYTES, MAX_PARAM_NAME_BYTES, MAX_PARAMS};
use crate::scope::{ENVIRONMENT, TARGET_CLASS};
use crate::toml_file::{self, Section, under};
use crate::verdict::counted;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::decimal::SCALE;
use ipse_core::{MAX_TEXT_BYTES, Micro};

/// The most skills of a registry.
pub const MAX_SKILLS: usize = 4096;

const MEMBERS: [&str; 2] = ["format", "skills"];
const SKILL: [&str; 8] =
    ["summary", "risk", "ethics", "requires", "targets", "environments", "params", "contract"];
const PARAM: [&str; 6] = ["type", "unit", "min", "max", "one_of", "required"];
const TYPES: [&str; 4] = ["number", "integer", "boolean", "text"];

/// The skills of the agent.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(crate) skills: BTreeMap<String, Skill>,
}

#[derive(Clone, Debug)]
pub(crate) struct Skill {
    pub(crate) risk: Micro,
    pub(crate) ethics: Micro,
    pub(crate) requires_target: bool,
    pub(crate) requires_environment: bool,
    /// `None`: any target.
    pub(crate) targets: Option<BTreeSet<String>>,
    pub(crate) environments: Option<BTreeSet<String>>,
    pub(crate) params: BTreeMap<String, Param>,
    pub(crate) contract: Contract,
}

#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) kind: Kind,
    pub(crate) required: bool,
}

/// A parameter of a skill, with all that a planner needs to propose an intent that passes
/// admission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedParam<'r> {
    /// The name of the parameter.
    pub name: &'r str,
    /// The type: `number`, `integer`, `boolean` or `text`.
    pub kind: &'static str,
    /// The unit of a number; `1` if it has none.
    pub unit: Option<&'r str>,
    /// The least number.
    pub min: Option<Micro>,
    /// The greatest number.
    pub max: Option<Micro>,
    /// The allowed texts, if they are listed.
    pub one_of: Option<&'r BTreeSet<String>>,
    /// Whether an intent must give it.
    pub required: bool,
}

impl<'r> ListedParam<'r> {
    fn new(name: &'r str, param: &'r Param) -> Self {
        let bounds = param.kind.bounds();
        let one_of = match &param.kind {
            Kind::Text(one_of) => one_of.as_ref(),
            _ => None,
        };
        ListedParam {
            name,
            kind: param.kind.name(),
            unit: bounds.map(|bounds| &*bounds.unit),
            min: bounds.and_then(|bounds| bounds.min),
            max: bounds.and_then(|bounds| bounds.max),
            one_of,
            required: param.required,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Number(Bounds),
    Integer(Bounds),
    Boolean,
    /// `None`: any text.
    Text(Option<BTreeSet<String>>),
}

impl Kind {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Kind::Number(_) => "number",
            Kind::Integer(_) => "integer",
            Kind::Boolean => "boolean",
            Kind::Text(_) => "text",
        }
    }

    /// The bounds, if it is a number of either kind.
    pub(crate) fn bounds(&self) -> Option<&Bounds> {
        match self {
            Kind::Number(bounds) | Kind::Integer(bounds) => Some(bounds),
            Kind::Boolean | Kind::Text(_) => None,
        }
    }
}

/// The physical limits; both ends are inclusive.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) min: Option<Micro>,
    pub(crate) max: Option<Micro>,
    pub(crate) unit: String,
}

impl Bounds {
    pub(crate) fn hold(&self, number: Micro) -> bool {
        self.min.is_none_or(|min| min <= number) && self.max.is_none_or(|max| number <= max)
    }

    /// As text: `from 0 to 140 N`.
    pub(crate) fn words(&self) -> String {
        let from = self.min.map(|min| format!("from {min}"));
        let to = self.max.map(|max| format!("to {max}"));
        let unit = Some(self.unit.clone()).filter(|unit| unit != "1");
        let words: Vec<String> = [from, to, unit].into_iter().flatten().collect();
        words.join(" ")
    }
}

/// Whether a list contains a name; no list means that every name is allowed.
pub(crate) fn is_listed(list: &Option<BTreeSet<String>>, name: &str) -> bool {
    list.as_ref().is_none_or(|list| list.contains(name))
}

/// Whether a number has no fraction.
pub(crate) fn is_whole(number: Micro) -> bool {
    number.get() % SCALE == 0
}

impl Registry {
    /// Reads `ecm-registry.toml`.
    pub fn parse(text: &str) -> Result<Self, Vec<FileError>> {
        toml_file::read(GateFile::Registry, text, &MEMBERS, |root| {
            root.required("skills")?;
            let contracts = root.word_of("format") == Some(REGISTRY_WITH_CONTRACTS);
            let named = root.tables("skills", MAX_SKILLS, MAX_NAME_BYTES);
            let skills = named.into_iter().filter_map(|(name, section)| {
                Some((name, skill(&section, contracts)?)) // Its errors were reported.
            });
            let registry = Registry { skills: skills.collect() };
            for (skill_id, skill) in &registry.skills {
                contract::check(&registry, skill_id, skill, root);
            }
            Some(registry)
        })
    }

    /// A summary for people: `3 skills, 7 parameters`.
    pub fn holds(&self) -> String {
        let params = self.skills.values().map(|skill| skill.params.len()).sum();
        let holds =
            format!("{}, {}", counted(self.skills.len(), "skill"), counted(params, "parameter"));
        match self.skills.values().filter(|skill| !skill.contract.is_empty()).count() {
            0 => holds,
            contracts => format!("{holds}, {}", counted(contracts, "contract")),
        }
    }

    /// The names of the skills, in order.
    pub fn skill_ids(&self) -> impl Iterator<Item = &str> {
        self.skills.keys().map(String::as_str)
    }

    /// The parameters of a skill, by name; `None` if there is no such skill.
    pub fn params(&self, skill_id: &str) -> Option<Vec<ListedParam<'_>>> {
        let skill = self.skills.get(skill_id)?;
        Some(skill.params.iter().map(|(name, param)| ListedParam::new(name, param)).collect())
    }

    pub(crate) fn skill(&self, skill_id: &str) -> Option<&Skill> {
        self.skills.get(skill_id)
    }
}

fn skill(section: &Section<'_, '_>, contracts: bool) -> Option<Skill> {
    section.only(if contracts { &SKILL } else { &SKILL[..SKILL.len() - 1] });
    // Read every member before returning at a wrong one, so that all errors are reported together.
    let _ = section.get("summary").and_then(|field| field.text(MAX_TEXT_BYTES));
    let risk = section.required("risk").and_then(|field| field.share());
    let ethics = section.required("ethics").and_then(|field| field.share());
    let required = requires(section);
    let names = |member| {
        let texts = section.get(member)?.texts(1, MAX_NAME_BYTES)?;
        Some(texts.into_iter().collect())
    };
    let (targets, environments) = (names("targets"), names("environments"));
    if let Some((target, environment)) = required {
        escaped(section, "targets", TARGET_CLASS, target);
        escaped(section, "environments", ENVIRONMENT, environment);
    }
    let params = section.tables("params", MAX_PARAMS, MAX_PARAM_NAME_BYTES);
    let params = params.into_iter().filter_map(|(name, section)| Some((name, param(&section)?)));
    let params = params.collect();
    let contract = section.get("contract").filter(|_| contracts);
    let contract = contract.and_then(|field| field.section());
    let contract = contract.map(|section| contract::read(&section)).unwrap_or_default();
    let (requires_target, requires_environment) = required?;
    Some(Skill {
        risk: risk?,
        ethics: ethics?,
        requires_target,
        requires_environment,
        targets,
        environments,
        params,
        contract,
    })
}

/// Whether an intent must name a target class, and an environment.
fn requires(section: &Section<'_, '_>) -> Option<(bool, bool)> {
    let Some(field) = section.get("requires") else { return Some((false, false)) };
    let names = field.texts(0, MAX_NAME_BYTES)?;
    if names.iter().any(|name| name != TARGET_CLASS && name != ENVIRONMENT) {
        field.wrong(format!("must list \"{TARGET_CLASS}\", \"{ENVIRONMENT}\" or both"));
        return None;
    }
    let has = |wanted| names.iter().any(|name| name == wanted);
    Some((has(TARGET_CLASS), has(ENVIRONMENT)))
}

/// Reports a list for a field that an intent may omit.
fn escaped(section: &Section<'_, '_>, list: &str, name: &str, is_required: bool) {
    let Some(field) = section.get(list).filter(|_| !is_required) else { return };
    let what = if name == TARGET_CLASS { "what it can be done on" } else { "where it can be done" };
    field.wrong(format!(
        "lists {what}, so `requires` must name \"{name}\": an intent that names none would escape \
         the list"
    ));
}

fn param(section: &Section<'_, '_>) -> Option<Param> {
    section.only(&PARAM);
    let required = section.get("required").and_then(|field| field.boolean()).unwrap_or(false);
    let kind = match TYPES[section.required("type")?.word(&TYPES)?] {
        "number" => Kind::Number(bounds(section)?),
        "integer" => Kind::Integer(whole_bounds(section)?),
        "boolean" => {
            not_for(section, "boolean", &["unit", "min", "max", "one_of"]);
            Kind::Boolean
        }
        _ => {
            not_for(section, "text", &["unit", "min", "max"]);
            let choices = section.get("one_of").and_then(|field| field.texts(1, MAX_TEXT_BYTES));
            Kind::Text(choices.map(|choices| choices.into_iter().collect()))
        }
    };
    Some(Param { kind, required })
}

/// Reports members that parameters of this type do not have.
fn not_for(section: &Section<'_, '_>, kind: &str, members: &[&str]) {
    for field in members.iter().filter_map(|member| section.get(member)) {
        field.wrong(format!("is not for parameters of type {kind}"));
    }
}

fn bounds(section: &Section<'_, '_>) -> Option<Bounds> {
    not_for(section, "number or integer", &["one_of"]);
    let unit = section.get("unit").map(|field| field.text(MAX_PARAM_NAME_BYTES));
    if unit.is_none() {
        section.wrong("unit", "is missing; write \"1\" if it has none".to_owned());
    }
    let [min, max] = ["min", "max"].map(|member| section.number(member));
    if let (Some(min), Some(max)) = (&min, &max)
        && min.value > max.value
    {
        let message = format!("is {}, greater than `max`, which is {}", min.value, max.value);
        section.wrong_at(min.line, &under(&section.path, "min"), message);
    }
    let [min, max] = [min, max].map(|end| end.map(|end| end.value));
    Some(Bounds { min, max, unit: unit?? })
}

fn whole_bounds(section: &Section<'_, '_>) -> Option<Bounds> {
    let bounds = bounds(section)?;
    for (member, end) in [("min", bounds.min), ("max", bounds.max)] {
        if let (Some(end), Some(field)) = (end, section.get(member))
            && !is_whole(end)
        {
            field.wrong("must be a whole number, as the parameter is an integer");
        }
    }
    Some(bounds)
}
