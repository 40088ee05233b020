//! How the facts moved between two positions of a log.

use crate::facts::VALUE_DEPTH;
use crate::{Error, as_of};
use ipse_consolidate::RuleSet;
use ipse_core::json::Value;
use ipse_core::{Fact, FactKey, Micro, Seq, json_parse};
use ipse_store::sqlite::View;
use std::collections::BTreeMap;

/// What is different at the second position.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diff {
    /// Facts that are there only now.
    pub added: Vec<Fact>,
    /// Facts that are there no longer.
    pub gone: Vec<Fact>,
    /// Facts that say something else.
    pub changed: Vec<Changed>,
}

/// A fact that says something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// Which.
    pub key: FactKey,
    /// Every figure that moved.
    pub figures: Vec<Figure>,
}

/// A figure of a fact, before and after, as canonical JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// Where it stands in the value: names joined by dots.
    pub path: String,
    /// What it was; nothing if it is new.
    pub from: Option<String>,
    /// What it is; nothing if it is gone.
    pub to: Option<String>,
    /// How far it moved, if both are numbers.
    pub by: Option<Micro>,
}

/// The facts at one position against those at another.
pub fn diff<R: RuleSet>(view: View<'_>, rules: &R, from: Seq, to: Seq) -> Result<Diff, Error> {
    let before = as_of(view, rules, from)?.facts;
    Ok(Diff::between(before, as_of(view, rules, to)?.facts))
}

impl Diff {
    /// Some facts against others.
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

/// Every leaf of a value by its path.
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
