//! Whether what a rule says of a parameter fits what the registry says of it.
//!
//! **Invariant:** every name in a rule is one that the registry has. A rule that can never hold
//! because of a slip of the pen is an error, not a gap.

use crate::error::{FileError, GateFile};
use crate::registry::{Bounds, Kind, Skill, is_listed, is_whole};
use crate::toml_file::{LineValue, Literal, under};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::Micro;

/// Takes errors about one rule: `(member, line, message)`.
pub(crate) fn errors_of<'e>(
    file: GateFile,
    rule: &'e str,
    errors: &'e mut Vec<FileError>,
) -> impl FnMut(&str, usize, String) + 'e {
    move |member, line, message| {
        errors.push(FileError { file, line, field: under(rule, member), message });
    }
}

/// Whether the parameter is a number, and an integer's ends are whole; then its bounds.
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

/// Says of one end of a rule that nothing the registry allows is there.
pub(crate) fn never_holds(
    member: &str,
    end: &LineValue<Micro>,
    bounds: &Bounds,
    wrong: &mut impl FnMut(&str, usize, String),
) {
    wrong(member, end.line, format!("never holds: the registry allows {}", bounds.words()));
}

/// Whether the parameter can be equal to this.
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
