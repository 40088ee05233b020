//! The skills of an agent: those in its registry, and those in its facts.
//!
//! **Invariants**
//! - A skill is listed once, by name, if it is in the registry, in the facts, or in both.
//! - The list authorises nothing: the gates judge every intent.

use crate::Page;
use crate::answer::clean;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{FactKey, FactKind};
use ipse_gates::{ListedParam, Registry};
use std::collections::BTreeMap;

/// A skill of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkillRow {
    /// The name of the skill.
    pub skill_id: String,
    /// Whether it is in the registry; `false` without a registry.
    pub in_registry: bool,
    /// Whether a fact is about it, as of the last pass.
    pub seen: bool,
    /// The JSON and the text of each parameter in the registry.
    params: Vec<(String, String)>,
}

/// Skills, by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skills {
    /// The skills.
    pub skills: Vec<SkillRow>,
}

impl Skills {
    /// The skills of a registry, and those in these fact keys.
    pub fn new<'k>(
        registry: Option<&Registry>,
        keys: impl IntoIterator<Item = &'k FactKey>,
    ) -> Self {
        let mut seen: BTreeMap<String, bool> = BTreeMap::new();
        if let Some(registry) = registry {
            seen.extend(registry.skill_ids().map(|skill| (skill.to_owned(), false)));
        }
        for key in keys {
            if let Some(skill) = skill_of(key) {
                seen.insert(skill, true);
            }
        }
        let skills = seen.into_iter().map(|(skill_id, seen)| {
            let params = registry.and_then(|registry| registry.params(&skill_id));
            let (in_registry, params) = (params.is_some(), params.unwrap_or_default());
            let params = params.iter().map(|param| (json(param), words(param))).collect();
            SkillRow { skill_id, in_registry, seen, params }
        });
        Skills { skills: skills.collect() }
    }

    /// Up to `limit` skills after a name.
    pub fn after(mut self, skill_id: &str, limit: usize) -> Self {
        self.skills.retain(|skill| *skill.skill_id > *skill_id);
        self.skills.truncate(limit);
        self
    }

    /// The list as JSON.
    pub fn json(&self) -> String {
        list(self.skills.iter().map(|skill| {
            Members::new()
                .text("skill_id", &skill.skill_id)
                .raw("in_registry", skill.in_registry)
                .raw("seen", skill.seen)
                .raw("params", list(skill.params.iter().map(|(json, _)| json.clone())))
                .finish()
        }))
    }

    /// The list as text.
    pub fn page(&self) -> Page {
        let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let row = |skill: &SkillRow| {
            let params: Vec<&str> = skill.params.iter().map(|(_, words)| &**words).collect();
            vec![
                clean(&skill.skill_id),
                word(skill.in_registry),
                word(skill.seen),
                clean(&params.join(", ")),
            ]
        };
        let mut page = Page::new();
        let rows = self.skills.iter().map(row).collect();
        page.table(&["SKILL", "REGISTRY", "SEEN", "PARAMETERS"], rows);
        page
    }
}

/// The skill of a fact, if it has one.
fn skill_of(key: &FactKey) -> Option<String> {
    match key.kind() {
        FactKind::SkillSuccessRate | FactKind::InteractionPattern | FactKind::SkillAdvice => {
            key.parts().into_iter().next()
        }
        FactKind::ObjectProperty | FactKind::ZoneRisk => None,
    }
}

fn json(param: &ListedParam<'_>) -> String {
    let one_of = param.one_of.map(|texts| list(texts.iter().map(|text| quoted(text))));
    Members::new()
        .text("name", param.name)
        .text("type", param.kind)
        .optional("unit", param.unit.map(quoted))
        .optional("min", param.min)
        .optional("max", param.max)
        .optional("one_of", one_of)
        .raw("required", param.required)
        .finish()
}

/// A parameter as text, such as `force_n 0..140 N required`.
fn words(param: &ListedParam<'_>) -> String {
    let mut words = vec![param.name.to_owned()];
    let [min, max] = [param.min, param.max].map(|end| end.map(|end| end.to_string()));
    match (min, max) {
        (None, None) => words.push(param.kind.to_owned()),
        (min, max) => {
            words.push(format!("{}..{}", min.unwrap_or_default(), max.unwrap_or_default()));
        }
    }
    words.extend(param.unit.filter(|unit| *unit != "1").map(str::to_owned));
    words.extend(param.required.then(|| "required".to_owned()));
    words.join(" ")
}
