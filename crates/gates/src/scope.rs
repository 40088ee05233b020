//! Where a rule applies: a class of targets, an environment, both or neither.
//!
//! **Invariant:** no intent leaves a scope by keeping silent. A rule may be scoped by something only
//! where the registry requires intents to name it.

use crate::intent::{Intent, MAX_NAME_BYTES};
use crate::registry::Skill;
use crate::toml_file::{Placed, Section};
use alloc::format;
use alloc::string::String;

/// The members of a rule that are its scope.
pub(crate) const TARGET_CLASS: &str = "target_class";
pub(crate) const ENVIRONMENT: &str = "environment";

#[derive(Clone, Debug)]
pub(crate) struct Scope {
    target_class: Option<Placed<String>>,
    environment: Option<Placed<String>>,
}

impl Scope {
    pub(crate) fn read(section: &Section<'_, '_>) -> Self {
        let read = |name| {
            let field = section.get(name)?;
            Some(field.placed(field.text(MAX_NAME_BYTES)?))
        };
        Scope { target_class: read(TARGET_CLASS), environment: read(ENVIRONMENT) }
    }

    /// Whether it holds an intent.
    pub(crate) fn holds(&self, intent: &Intent<'_>) -> bool {
        let same = |wanted: &Option<Placed<String>>, named: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| named == Some(&*wanted.value))
        };
        same(&self.target_class, intent.target_class.as_deref())
            && same(&self.environment, intent.environment.as_deref())
    }

    /// Whether one intent can be in both.
    pub(crate) fn meets(&self, other: &Scope) -> bool {
        let meet = |a: &Option<Placed<String>>, b: &Option<Placed<String>>| match (a, b) {
            (Some(a), Some(b)) => a.value == b.value,
            _ => true,
        };
        meet(&self.target_class, &other.target_class) && meet(&self.environment, &other.environment)
    }

    /// What keeps the scope from working with a skill.
    pub(crate) fn unfit_for(
        &self,
        skill_id: &str,
        skill: &Skill,
        wrong: &mut impl FnMut(&str, usize, String),
    ) {
        let mut check = |name, wanted: &Option<Placed<String>>, required: bool, known: bool| {
            let Some(Placed { line, .. }) = wanted else { return };
            if !required {
                let message = format!(
                    "the registry must list \"{name}\" in `requires` of \"{skill_id}\", or an intent \
                     that names none escapes this rule"
                );
                wrong(name, *line, message);
            } else if !known {
                let message = format!("the registry has no such {name} for \"{skill_id}\"");
                wrong(name, *line, message);
            }
        };
        let known = |wanted: &Option<Placed<String>>, names: &Option<_>| {
            wanted.as_ref().is_none_or(|wanted| crate::registry::is_listed(names, &wanted.value))
        };
        let Scope { target_class, environment } = self;
        let known_target = known(target_class, &skill.targets);
        check(TARGET_CLASS, target_class, skill.requires_target, known_target);
        let known_environment = known(environment, &skill.environments);
        check(ENVIRONMENT, environment, skill.requires_environment, known_environment);
    }

    /// In words, after a rule: ` for glass_cup in ward3`.
    pub(crate) fn words(&self) -> String {
        let target = self.target_class.as_ref().map(|it| format!(" for {}", it.value));
        let environment = self.environment.as_ref().map(|it| format!(" in {}", it.value));
        target.unwrap_or_default() + &environment.unwrap_or_default()
    }
}
