//! The scope of a rule: a class of targets, an environment, both or neither.
//!
//! **Invariant:** no intent avoids a scope by omitting a field. A rule may be scoped by a field
//! only if the registry requires intents to give it.

use crate::intent::{Intent, MAX_NAME_BYTES};
use crate::registry::{Skill, is_listed};
use crate::toml_file::{LineValue, Section};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

/// The members of a rule that are its scope.
pub(crate) const TARGET_CLASS: &str = "target_class";
pub(crate) const ENVIRONMENT: &str = "environment";

/// A part of a scope: its member, its value, whether a skill requires the field, and its known
/// values.
type Part<'s> = (&'static str, &'s LineValue<String>, bool, &'s Option<BTreeSet<String>>);

#[derive(Clone, Debug)]
pub(crate) struct Scope {
    target_class: Option<LineValue<String>>,
    environment: Option<LineValue<String>>,
}

impl Scope {
    pub(crate) fn read(section: &Section<'_, '_>) -> Self {
        let read = |name| {
            let field = section.get(name)?;
            Some(field.placed(field.text(MAX_NAME_BYTES)?))
        };
        Scope { target_class: read(TARGET_CLASS), environment: read(ENVIRONMENT) }
    }

    /// Whether an intent is in the scope.
    pub(crate) fn holds(&self, intent: &Intent<'_>) -> bool {
        let same = |wanted: &Option<LineValue<String>>, named: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| named == Some(&*wanted.value))
        };
        same(&self.target_class, intent.target_class.as_deref())
            && same(&self.environment, intent.environment.as_deref())
    }

    /// Whether an intent can be in both scopes.
    pub(crate) fn meets(&self, other: &Scope) -> bool {
        let meet = |a: &Option<LineValue<String>>, b: &Option<LineValue<String>>| match (a, b) {
            (Some(a), Some(b)) => a.value == b.value,
            _ => true,
        };
        meet(&self.target_class, &other.target_class) && meet(&self.environment, &other.environment)
    }

    /// Reports fields that an intent of this skill may omit.
    pub(crate) fn escaped_by(
        &self,
        skill_id: &str,
        skill: &Skill,
        wrong: &mut impl FnMut(&str, usize, String),
    ) {
        for (name, place, required, _) in self.parts(skill) {
            if !required {
                let message = format!(
                    "the registry must list \"{name}\" in `requires` of \"{skill_id}\", or an \
                     intent that names none escapes this rule"
                );
                wrong(name, place.line, message);
            }
        }
    }

    /// Reports names that none of these skills knows.
    pub(crate) fn unknown_to(
        &self,
        skills: &[&Skill],
        wrong: &mut impl FnMut(&str, usize, String),
    ) {
        let Some(first) = skills.first() else { return };
        for (name, place, ..) in self.parts(first) {
            let mut parts = skills.iter().flat_map(|skill| self.parts(skill));
            if !parts.any(|(part, place, _, list)| part == name && is_listed(list, &place.value)) {
                wrong(name, place.line, format!("the registry has no such {name} for it"));
            }
        }
    }

    /// The parts of the scope, each with the skill's requirement and known values.
    fn parts<'s>(&'s self, skill: &'s Skill) -> impl Iterator<Item = Part<'s>> {
        let Scope { target_class, environment } = self;
        let (targets, environments) = (&skill.targets, &skill.environments);
        let target =
            target_class.iter().map(move |it| (TARGET_CLASS, it, skill.requires_target, targets));
        target.chain(
            environment
                .iter()
                .map(move |it| (ENVIRONMENT, it, skill.requires_environment, environments)),
        )
    }

    /// As text after a rule: ` for glass_cup in ward3`.
    pub(crate) fn words(&self) -> String {
        let target = self.target_class.as_ref().map(|it| format!(" for {}", it.value));
        let environment = self.environment.as_ref().map(|it| format!(" in {}", it.value));
        target.unwrap_or_default() + &environment.unwrap_or_default()
    }
}
