//! Checks that rules about a parameter fit the parameter's definition in the registry.
//!
//! **Invariant:** every name in a rule is in the registry. A rule that can never apply because of a
//! typing mistake is an error.

use crate::error::{FileError, GateFile};
use crate::registry::{Bounds, Kind, Skill, is_listed, is_whole};
use crate::toml_file::{LineValue, Literal, under};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::Micro;

/// Collects errors about one rule: `(member, line, message)`.
pub(crate) fn errors_of<'e>(
    file: GateFile,
    rule: &'e str,
    errors: &'e mut Vec<FileError>,
) -> impl FnMut(&str, usize, String) + 'e {
    move |member, line, message| {
        errors.push(FileError { file, line, field: under(rule, member), message });
    }
}

/// Checks that the parameter is a number, and that bounds of an integer are whole; returns its
/// bounds.
pub(crate) fn numbers<'s>(
    skill: &'s Skill,
    param: &LineValue<String>,
    ends: &[(&str, &Option<LineValue<Micro>>)],
    wrong: &mut impl FnMut(&str, usize, String),
) -> Option<&'s Bounds> {
    let kind = kind_of(skill, param, wrong)?;
    let Some(bounds) = kind.bounds() else {
        let message = format!("is a {} in the registry; only numbers have ranges", kind.name());
        wrong("param", param.line, message);
        return None;
    };
    for (member, end) in ends {
        let Some(LineValue { value, line }) = end else { continue };
        if matches!(kind, Kind::Integer(_)) && !is_whole(*value) {
            let message = "must be a whole number, as the parameter is an integer";
            wrong(member, *line, message.to_owned());
        }
    }
    Some(bounds)
}

/// Reports that no value that the registry allows is within this bound of a rule.
pub(crate) fn never_holds(
    member: &str,
    end: &LineValue<Micro>,
    bounds: &Bounds,
    wrong: &mut impl FnMut(&str, usize, String),
) {
    wrong(member, end.line, format!("never holds: the registry allows {}", bounds.words()));
}

/// Checks that the parameter can have this value.
pub(crate) fn literal(
    skill: &Skill,
    param: &LineValue<String>,
    equals: &LineValue<Literal>,
    wrong: &mut impl FnMut(&str, usize, String),
) {
    let Some(kind) = kind_of(skill, param, wrong) else { return };
    let message = match (kind, &equals.value) {
        (Kind::Boolean, Literal::Boolean(_)) => return,
        (Kind::Text(choices), Literal::Text(text)) if is_listed(choices, text) => return,
        (Kind::Text(_), Literal::Text(_)) => "is none of the registry's `one_of`".to_owned(),
        (kind, _) => format!("the parameter is of type {} in the registry", kind.name()),
    };
    wrong("equals", equals.line, message);
}

fn kind_of<'s>(
    skill: &'s Skill,
    param: &LineValue<String>,
    wrong: &mut impl FnMut(&str, usize, String),
) -> Option<&'s Kind> {
    let known = skill.params.get(&param.value);
    if known.is_none() {
        wrong("param", param.line, "the registry has no such parameter for the skill".to_owned());
    }
    known.map(|param| &param.kind)
}
