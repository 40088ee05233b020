//! The first gate: can the agent do this at all?
//!
//! **Invariant:** an intent that passes has a skill of the registry, and only parameters of that
//! skill, each of its type and within its bounds.

use super::close;
use crate::intent::Intent;
use crate::params::{Datum, Params};
use crate::registry::{Bounds, Kind, Registry, Skill, is_listed};
use crate::scope::{ENVIRONMENT, TARGET_CLASS};
use crate::verdict::{Code, Finding, Gate};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::decimal::{LIMIT, SCALE};
use ipse_core::json::{Value, quoted};

pub(crate) fn judge<'r>(
    registry: &'r Registry,
    intent: &Intent<'_>,
    gates: &mut Vec<Gate>,
) -> Option<(&'r Skill, Params)> {
    let mut findings = Vec::new();
    let mut params = Params::default();
    let skill = registry.skill(&intent.skill_id);
    match skill {
        None => {
            let detail = format!("the registry has no skill {}", intent.skill_id);
            findings.push(Finding::new(Code::UnknownSkill, detail));
        }
        Some(skill) => {
            check_place(skill, intent, &mut findings);
            params = read_params(skill, intent, &mut findings);
        }
    }
    close("admission", findings, gates)?;
    Some((skill?, params))
}

/// Checks target class and environment: present if required, known if present.
fn check_place(skill: &Skill, intent: &Intent<'_>, findings: &mut Vec<Finding>) {
    let mut check = |field, named: Option<&str>, required, list, unknown| match named {
        None if required => {
            let detail = format!("{} must name a {field}", intent.skill_id);
            findings.push(Finding::new(Code::MissingField, detail));
        }
        Some(name) if !is_listed(list, name) => {
            let detail = format!("{} does not allow the {field} {name}", intent.skill_id);
            findings.push(Finding::new(unknown, detail).asked(&quoted(name)));
        }
        _ => (),
    };
    let named = intent.target_class.as_deref();
    check(TARGET_CLASS, named, skill.requires_target, &skill.targets, Code::UnknownTarget);
    let named = intent.environment.as_deref();
    let (required, list) = (skill.requires_environment, &skill.environments);
    check(ENVIRONMENT, named, required, list, Code::UnknownEnvironment);
}

fn read_params(skill: &Skill, intent: &Intent<'_>, findings: &mut Vec<Finding>) -> Params {
    let mut params = Params::default();
    for (name, value) in intent.params.iter() {
        let Some(param) = skill.params.get(name) else {
            let detail = format!("{} has no parameter {name}", intent.skill_id);
            findings.push(Finding::new(Code::UnknownParameter, detail).on(name, Some(value)));
            continue;
        };
        match read_param(name, &param.kind, value) {
            Ok(datum) => {
                params.0.insert(name.to_owned(), datum);
            }
            Err((code, detail)) => {
                findings.push(Finding::new(code, detail).on(name, Some(value)));
            }
        }
    }
    let missing = skill.params.iter().filter(|(_, param)| param.required);
    for (name, _) in missing.filter(|(name, _)| intent.params.get(name).is_none()) {
        let detail = format!("{} needs the parameter {name}", intent.skill_id);
        findings.push(Finding::new(Code::MissingParameter, detail).on(name, None));
    }
    params
}

fn read_param(name: &str, kind: &Kind, value: &Value<'_>) -> Result<Datum, (Code, String)> {
    let mistyped =
        |wanted: &str| Err((Code::MistypedParameter, format!("{name} must be {wanted}")));
    match (kind, value) {
        (Kind::Number(bounds), Value::Number(_)) => read_number(name, bounds, value),
        (Kind::Integer(_), Value::Number(_)) if !is_written_whole(value) => {
            mistyped("a whole number")
        }
        (Kind::Integer(bounds), Value::Number(_)) => read_number(name, bounds, value),
        (Kind::Boolean, Value::Bool(value)) => Ok(Datum::Boolean(*value)),
        (Kind::Text(choices), Value::Text(text)) => match is_listed(choices, text) {
            true => Ok(Datum::Text(text.as_ref().to_owned())),
            false => Err((Code::UnknownChoice, format!("{name} is not one of the choices"))),
        },
        (Kind::Number(_), _) => mistyped("a number"),
        (Kind::Integer(_), _) => mistyped("a whole number"),
        (Kind::Boolean, _) => mistyped("true or false"),
        (Kind::Text(_), _) => mistyped("a text"),
    }
}

fn read_number(name: &str, bounds: &Bounds, value: &Value<'_>) -> Result<Datum, (Code, String)> {
    let beyond = |words: &str| (Code::OutOfRange, format!("{name} must be a number {words}"));
    let Some(number) = value.as_micro() else {
        let most = LIMIT / SCALE;
        return Err(beyond(&format!("from -{most} to {most}")));
    };
    match bounds.hold(number) {
        true => Ok(Datum::Number(number)),
        false => Err(beyond(&bounds.words())),
    }
}

/// Whether the shortest decimal text of a number has no fraction.
fn is_written_whole(value: &Value<'_>) -> bool {
    let mut text = String::new();
    value.write(&mut text);
    !text.contains('.') && !text.contains("e-")
}
