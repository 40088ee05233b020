//! The changes of the facts between two positions of a log.

use crate::answer::clean;
use crate::{Error, Page};
use ipse_core::json::{Members, Value, list};
use ipse_core::{Fact, FactId, FactKey, Identity, Micro, Seq, json_parse};
use ipse_engine::facts::VALUE_DEPTH;
use ipse_engine::{as_of, rules_history};
use ipse_ledger::RuleSetName;
use ipse_store::View;
use std::collections::BTreeMap;

/// The differences between two sets of facts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diff {
    /// Facts that exist only in the second set.
    pub added: Vec<Fact>,
    /// Facts that exist only in the first set.
    pub gone: Vec<Fact>,
    /// Facts with another value.
    pub changed: Vec<Changed>,
    /// The changes of rules between the two positions.
    pub rules: Vec<(Seq, RuleSetName)>,
}

/// A fact with another value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The key of the fact.
    pub key: FactKey,
    /// Every number or text that changed.
    pub figures: Vec<Figure>,
}

/// A leaf of a fact's value, before and after, as canonical JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The path in the value: names joined by dots.
    pub path: String,
    /// The old value; `None` if it is new.
    pub from: Option<String>,
    /// The new value; `None` if it was removed.
    pub to: Option<String>,
    /// The difference, if both are numbers.
    pub by: Option<Micro>,
}

/// Compares the facts at two positions.
pub fn diff(view: View<'_>, from: Seq, to: Seq) -> Result<Diff, Error> {
    let before = as_of(view, from)?.facts;
    let between = from.min(to).next()..=from.max(to);
    let mut found = Diff::between(before, as_of(view, to)?.facts);
    found.rules = rules_history(view)?.changes().to_vec();
    found.rules.retain(|(seq, _)| between.contains(seq));
    if !found.rules.is_empty() {
        // A fact that differs only in the version of its rules did not change.
        for changed in &mut found.changed {
            changed.figures.retain(|figure| figure.path != "rule_version");
        }
        found.changed.retain(|changed| !changed.figures.is_empty());
    }
    Ok(found)
}

impl Diff {
    /// Compares two sets of facts.
    pub fn between(before: Vec<Fact>, after: Vec<Fact>) -> Self {
        let by_key = |facts: Vec<Fact>| -> BTreeMap<FactKey, Fact> {
            facts.into_iter().map(|fact| (fact.key.clone(), fact)).collect()
        };
        let (mut before, after) = (by_key(before), by_key(after));
        let mut found = Diff::default();
        for (key, now) in after {
            match before.remove(&key) {
                None => found.added.push(now),
                Some(then) if then.value != now.value => {
                    found.changed.push(Changed { key, figures: figures(&then.value, &now.value) });
                }
                Some(_) => {}
            }
        }
        found.gone = before.into_values().collect();
        found
    }
}

impl Diff {
    /// Appends the differences to the members in `json`.
    pub fn json(&self, json: Members, identity: &Identity) -> Members {
        let named = |key: &FactKey| {
            Members::new()
                .text("fact_id", &FactId::new(identity, key).to_string())
                .text("fact_kind", key.kind().name())
                .text("fact_key", key.text())
        };
        let fact = |fact: &Fact| named(&fact.key).raw("value", &fact.value).finish();
        let changed = |changed: &Changed| {
            let figures = list(changed.figures.iter().map(Figure::json));
            named(&changed.key).raw("figures", figures).finish()
        };
        let rules = |(seq, rules): &(Seq, RuleSetName)| {
            Members::new()
                .raw("seq", seq)
                .text("rule_version", &rules.version)
                .text("rule_set_sha256", &rules.hex())
                .finish()
        };
        json.raw("added", list(self.added.iter().map(fact)))
            .raw("gone", list(self.gone.iter().map(fact)))
            .raw("changed", list(self.changed.iter().map(changed)))
            .raw("rules", list(self.rules.iter().map(rules)))
    }

    /// The differences as text: added, removed and changed facts, with every changed leaf.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        for (seq, rules) in &self.rules {
            page.line(format!("rules: {} in force from seq {seq} on", clean(&rules.version)));
        }
        let key = |key: &FactKey| format!("{} {}", key.kind(), clean(key.text()));
        for (mark, facts) in [("+", &self.added), ("-", &self.gone)] {
            facts.iter().for_each(|fact| page.line(format!("{mark} {}", key(&fact.key))));
        }
        for changed in &self.changed {
            page.line(format!("~ {}", key(&changed.key)));
            // The last event changes with every observation: show it only in JSON.
            let reported = changed.figures.iter().filter(|f| f.path != "last_supporting_event_id");
            reported.for_each(|figure| page.line(format!("    {}", figure.words())));
        }
        page
    }
}

impl Figure {
    fn json(&self) -> String {
        let or_null = |json: &Option<String>| json.clone().unwrap_or_else(|| "null".to_string());
        Members::new()
            .text("path", &self.path)
            .raw("from", or_null(&self.from))
            .raw("to", or_null(&self.to))
            .optional("by", self.by)
            .finish()
    }

    fn words(&self) -> String {
        let text = |json: &Option<String>| json.as_deref().map_or("-".to_string(), clean);
        let moved = format!("{}  {} → {}", clean(&self.path), text(&self.from), text(&self.to));
        match self.by {
            Some(by) if by.get() > 0 => format!("{moved}  (+{by})"),
            Some(by) => format!("{moved}  ({by})"),
            None => moved,
        }
    }
}

fn figures(then: &str, now: &str) -> Vec<Figure> {
    let (mut before, after) = (flat(then), flat(now));
    let mut moved = Vec::new();
    for (path, to) in after {
        let from = before.remove(&path);
        if from.as_ref() != Some(&to) {
            let micro = |leaf: &Leaf| leaf.number;
            let by = from.as_ref().and_then(micro).zip(to.number);
            let by = by.and_then(|(from, to)| Micro::new(to.get() - from.get()));
            moved.push(Figure { path, from: from.map(|leaf| leaf.text), to: Some(to.text), by });
        }
    }
    let gone =
        |(path, leaf): (String, Leaf)| Figure { path, from: Some(leaf.text), to: None, by: None };
    moved.extend(before.into_iter().map(gone));
    moved.sort_by(|a, b| a.path.cmp(&b.path));
    moved
}

#[derive(PartialEq)]
struct Leaf {
    text: String,
    number: Option<Micro>,
}

/// All leaves of a value, by path.
fn flat(value: &str) -> BTreeMap<String, Leaf> {
    let mut leaves = BTreeMap::new();
    if let Ok(value) = json_parse::parse(value.as_bytes(), VALUE_DEPTH) {
        gather("", &value, &mut leaves);
    }
    leaves
}

fn gather(path: &str, value: &Value<'_>, leaves: &mut BTreeMap<String, Leaf>) {
    match value.as_object() {
        Some(object) => {
            for (name, value) in object.iter() {
                let dot = if path.is_empty() { "" } else { "." };
                gather(&format!("{path}{dot}{name}"), value, leaves);
            }
        }
        None => {
            let mut text = String::new();
            value.write(&mut text);
            leaves.insert(path.to_string(), Leaf { text, number: value.as_micro() });
        }
    }
}
