//! Querying facts: filters, order, and the numbers in every answer.
//!
//! **Invariants:** reading writes nothing. A filter matches values exactly, and excludes the kinds
//! whose key lacks that part. Only `environment` is ignored for interaction patterns.

use crate::grounding::LineGroup;
use crate::{Damaged, answer, grounding};
use ipse_core::json::{Object, Value};
use ipse_core::{Fact, FactId, FactKey, FactKind, Identity, Micro, json_parse};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// The maximum nesting of a fact's value: value, `params`, parameter, recommendation.
pub const VALUE_DEPTH: usize = 8;

/// A query for facts. Every given part must match.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// The `skill_id`.
    pub skill: Option<String>,
    /// The `target_class`.
    pub target: Option<String>,
    /// The `environment`.
    pub environment: Option<String>,
    /// The `zone`.
    pub zone: Option<String>,
    /// The fact kind.
    pub kind: Option<FactKind>,
    /// The maximum number of facts, by confidence.
    pub limit: Option<usize>,
}

impl Filter {
    /// The required value of each part of a key of this kind. `None` if no key of the kind can
    /// match because it lacks a part of the query.
    fn wanted(&self, kind: FactKind) -> Option<[Option<&str>; 3]> {
        if self.kind.is_some_and(|wanted| wanted != kind) {
            return None;
        }
        let Filter { skill, target, environment, zone, .. } = self;
        let (wanted, others): (_, &[&Option<String>]) = match kind {
            FactKind::SkillSuccessRate => ([skill, target, environment], &[zone]),
            FactKind::InteractionPattern => ([skill, target, &None], &[zone]),
            FactKind::ObjectProperty => ([target, &None, &None], &[skill, environment, zone]),
            FactKind::ZoneRisk => ([zone, &None, &None], &[skill, target, environment]),
            FactKind::SkillAdvice => ([skill, &None, &None], &[target, environment, zone]),
        };
        others.iter().all(|part| part.is_none()).then_some(wanted.map(Option::as_deref))
    }

    /// Whether the key matches the query.
    pub fn matches(&self, key: &FactKey) -> bool {
        let Some(wanted) = self.wanted(key.kind()) else { return false };
        let agrees = |(part, wanted): (&String, Option<&str>)| wanted.is_none_or(|it| it == part);
        wanted == [None; 3] || key.parts().iter().zip(wanted).all(agrees)
    }

    /// Whether a fact with a matching key is selected and counted. Advice that warns of nothing is
    /// not, unless the query is for this kind.
    pub fn selects(&self, fact: &ScoredFact) -> bool {
        self.kind == Some(FactKind::SkillAdvice) || !fact.is_quiet_advice
    }

    /// The prefix of all keys of a kind that can match; `None` if no key can match.
    pub fn beginning(&self, kind: FactKind) -> Option<String> {
        let wanted = self.wanted(kind)?;
        let leading: Vec<&str> = wanted.into_iter().map_while(|part| part).collect();
        Some(FactKey::new(kind, &leading).text().to_owned())
    }

    /// The facts that match, by confidence descending, then kind, then key.
    pub fn choose(&self, facts: Vec<Fact>) -> Result<Vec<Arc<ScoredFact>>, Damaged> {
        Ok(self.chosen(facts)?.facts)
    }

    /// Like [`Filter::choose`], with the number of facts that match.
    pub fn chosen(&self, facts: Vec<Fact>) -> Result<Chosen, Damaged> {
        let mut choice = self.choice();
        for fact in facts.into_iter().filter(|fact| self.matches(&fact.key)) {
            choice.add(Arc::new(ScoredFact::new(fact)?));
        }
        Ok(choice.finish())
    }

    /// Like [`Filter::chosen`], for facts that arrive one by one.
    pub fn choice(&self) -> Choice<'_> {
        Choice { filter: self, best: Vec::new(), total: 0 }
    }

    /// Like [`Filter::chosen`], for facts in memory.
    pub fn among<'f>(&self, facts: impl Iterator<Item = &'f Arc<ScoredFact>>) -> Chosen {
        let matches = |fact: &&Arc<ScoredFact>| self.matches(&fact.fact.key) && self.selects(fact);
        let mut facts: Vec<_> = facts.filter(matches).cloned().collect();
        let total = facts.len() as u64;
        self.rank(&mut facts);
        Chosen { facts, total }
    }

    /// Sorts facts by confidence descending, then kind, then key, and truncates to the limit.
    fn rank(&self, facts: &mut Vec<Arc<ScoredFact>>) {
        facts.sort_by(|a, b| {
            b.confidence.cmp(&a.confidence).then_with(|| a.fact.key.cmp(&b.fact.key))
        });
        facts.truncate(self.limit.unwrap_or(usize::MAX));
    }
}

/// The facts that a filter chooses.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Chosen {
    /// The facts up to the limit, by confidence descending, then kind, then key.
    pub facts: Vec<Arc<ScoredFact>>,
    /// The number of facts that match, with those beyond the limit.
    pub total: u64,
}

impl Chosen {
    /// The number of matching facts beyond the limit.
    pub fn left_out(&self) -> u64 {
        self.total.saturating_sub(self.facts.len() as u64)
    }
}

/// Collects the facts that a filter chooses. Keeps only a few more than its limit in memory.
pub struct Choice<'f> {
    filter: &'f Filter,
    best: Vec<Arc<ScoredFact>>,
    total: u64,
}

/// The number of facts beyond the limit that are kept before the worst are dropped.
const BEYOND_LIMIT: usize = 1024;

impl Choice<'_> {
    /// Adds a fact with a matching key.
    pub fn add(&mut self, fact: Arc<ScoredFact>) {
        if !self.filter.selects(&fact) {
            return;
        }
        self.best.push(fact);
        self.total += 1;
        let most = self.filter.limit.unwrap_or(usize::MAX).saturating_add(BEYOND_LIMIT);
        if self.best.len() > most {
            self.filter.rank(&mut self.best);
        }
    }

    /// The keys among more matching facts that are chosen unless better ones are added later.
    pub fn contenders(&self, facts: Vec<Arc<ScoredFact>>) -> BTreeSet<FactKey> {
        let keys: BTreeSet<FactKey> = facts.iter().map(|fact| fact.fact.key.clone()).collect();
        let mut all = self.best.clone();
        all.extend(facts);
        self.filter.rank(&mut all);
        let chosen = all.into_iter().map(|fact| fact.fact.key.clone());
        chosen.filter(|key| keys.contains(key)).collect()
    }

    /// Counts matching facts that are beyond the limit and were not added.
    pub fn leave_out(&mut self, facts: u64) {
        self.total += facts;
    }

    /// The facts that match, by confidence descending, then kind, then key.
    pub fn finish(mut self) -> Chosen {
        self.filter.rank(&mut self.best);
        Chosen { facts: self.best, total: self.total }
    }
}

/// A fact with the two numbers in every answer.
#[derive(Clone, Debug)]
pub struct ScoredFact {
    /// The fact.
    pub fact: Fact,
    /// The confidence, from 0 to 1.
    pub confidence: Micro,
    /// The number of observations.
    pub n_observations: u64,
    /// Whether it is advice that warns of nothing.
    is_quiet_advice: bool,
    /// Cache of its texts.
    said: OnceLock<FactText>,
}

impl PartialEq for ScoredFact {
    /// Ignores the cached texts.
    fn eq(&self, other: &Self) -> bool {
        let figures = |it: &Self| (it.confidence, it.n_observations);
        self.fact == other.fact && figures(self) == figures(other)
    }
}

impl ScoredFact {
    /// Reads both numbers from the fact's value.
    pub fn new(fact: Fact) -> Result<Self, Damaged> {
        let damaged = || Damaged { key: fact.key.text().to_owned() };
        let (confidence, n, warns) = {
            let value = parse_value(&fact.value).ok_or_else(damaged)?;
            let confidence = value.get("confidence").and_then(Value::as_micro);
            let n = value.get("n_observations").and_then(Value::as_count);
            let warns = value.get("verdict").and_then(Value::as_text) == Some("misleading");
            (confidence.ok_or_else(damaged)?, n.ok_or_else(damaged)?, warns)
        };
        let is_quiet_advice = fact.key.kind() == FactKind::SkillAdvice && !warns;
        let said = OnceLock::new();
        Ok(ScoredFact { fact, confidence, n_observations: n, is_quiet_advice, said })
    }

    /// The texts of the fact for an identity. Cached, because a fact never changes.
    pub fn said(&self, identity: &Identity) -> Cow<'_, FactText> {
        let said = self.said.get_or_init(|| FactText::of(identity, self));
        match said.identity == *identity {
            true => Cow::Borrowed(said),
            false => Cow::Owned(FactText::of(identity, self)),
        }
    }

    /// The value's members.
    pub fn value(&self) -> Object<'_> {
        parse_value(&self.fact.value).unwrap_or_default()
    }
}

/// The texts of a fact: JSON for programs, a line for prompts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FactText {
    identity: Identity,
    /// The fact id.
    pub id: String,
    /// The fact as JSON.
    pub json: String,
    /// The line of the grounding, with its line feed.
    pub line: String,
    /// The place of the line among others.
    pub(crate) group: LineGroup,
}

impl FactText {
    fn of(identity: &Identity, fact: &ScoredFact) -> Self {
        let id = FactId::new(identity, &fact.fact.key).to_string();
        let (json, (group, line)) = (answer::fact(&id, fact).finish(), grounding::line(&id, fact));
        FactText { identity: *identity, id, json, line, group }
    }
}

fn parse_value(value: &str) -> Option<Object<'_>> {
    match json_parse::parse(value.as_bytes(), VALUE_DEPTH).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_core::{EventRef, Support, Time};

    fn fact(kind: FactKind, parts: &[&str], confidence: &str) -> Fact {
        Fact {
            key: FactKey::new(kind, parts),
            last: Support {
                time: Time::from_micros(0).unwrap(),
                event_ref: EventRef::new("s", "i"),
                worked: false,
            },
            value: format!("{{\"confidence\":{confidence},\"n_observations\":3}}"),
        }
    }

    fn all() -> Vec<Fact> {
        vec![
            fact(FactKind::SkillSuccessRate, &["grasp", "cup", "ward"], "0.5"),
            fact(FactKind::SkillSuccessRate, &["grasp", "*", "*"], "0.8"),
            fact(FactKind::InteractionPattern, &["grasp", "cup", "slip"], "0.5"),
            fact(FactKind::ObjectProperty, &["cup", "mass"], "0.9"),
            fact(FactKind::ZoneRisk, &["ward"], "0.25"),
        ]
    }

    fn keys(filter: &Filter) -> Vec<String> {
        let chosen = filter.choose(all()).unwrap();
        chosen.iter().map(|c| format!("{} {}", c.fact.key.kind(), c.fact.key.text())).collect()
    }

    #[test]
    fn order_is_confidence_then_kind_then_key() {
        assert_eq!(
            keys(&Filter::default()),
            [
                "object_property cup + mass",
                "skill_success_rate grasp + * + *",
                "interaction_pattern grasp + cup + slip",
                "skill_success_rate grasp + cup + ward",
                "zone_risk ward",
            ]
        );
        let two = Filter { limit: Some(2), ..Filter::default() };
        assert_eq!(keys(&two).len(), 2);
    }

    #[test]
    fn the_texts_of_a_fact_depend_on_the_identity() {
        let [one, other] = [[1; 32], [2; 32]].map(Identity);
        let fact = ScoredFact::new(all().remove(0)).unwrap();
        let asked = fact.clone();
        let first = asked.said(&one).into_owned();
        assert_eq!(*asked.said(&one), first, "from the cache");
        assert_eq!(*asked.said(&other), *fact.said(&other), "the cache holds another identity");
        assert_ne!(first, *asked.said(&other));
        assert!(first.json.contains(&first.id) && first.line.contains(&first.id));
        assert_eq!(asked, fact, "the cache is not compared");
    }

    #[test]
    fn a_filter_leaves_out_kinds_without_that_part() {
        let some = |text: &str| Some(text.to_string());
        let by_skill = Filter { skill: some("grasp"), ..Filter::default() };
        assert_eq!(keys(&by_skill).len(), 3);
        let by_target = Filter { target: some("cup"), ..Filter::default() };
        assert_eq!(keys(&by_target).len(), 3, "object properties have a target too");
        let by_env = Filter { environment: some("ward"), ..Filter::default() };
        assert_eq!(
            keys(&by_env),
            ["interaction_pattern grasp + cup + slip", "skill_success_rate grasp + cup + ward"],
            "patterns have no environment and stay"
        );
        let by_zone = Filter { zone: some("ward"), ..Filter::default() };
        assert_eq!(keys(&by_zone), ["zone_risk ward"]);
        let by_kind = Filter { kind: Some(FactKind::ZoneRisk), ..by_skill };
        assert_eq!(keys(&by_kind).len(), 0);
    }
}
