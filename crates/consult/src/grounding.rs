//! The grounding: one line per fact, for the prompt of a planner.
//!
//! **Invariant:** cache-stable. Its bytes depend only on its facts, so they change only when one of
//! these facts changes. Lines are sorted by kind and key, not by confidence.

use crate::facts::ScoredFact;
use ipse_core::decimal::SCALE;
use ipse_core::json::{Object, Value, escaped};
use ipse_core::{FactKind, Identity, Micro};
use std::sync::Arc;

/// The grounding text of some facts.
pub fn grounding(identity: &Identity, rule_version: &str, facts: &[Arc<ScoredFact>]) -> String {
    let mut facts: Vec<&Arc<ScoredFact>> = facts.iter().collect();
    facts.sort_by(|a, b| a.fact.key.cmp(&b.fact.key));
    let mut text = format!("known facts for this agent (rule set {rule_version}):\n");
    for fact in facts {
        text.push_str(&fact.said(identity).line);
    }
    text
}

/// The line of a fact with its id.
pub(crate) fn line(id: &str, fact: &ScoredFact) -> String {
    let (key, body) = (escaped_controls(fact.fact.key.text()), body(fact));
    let (confidence, n) = (two_decimals(fact.confidence), fact.n_observations);
    format!("- {key}: {body}, confidence = {confidence}, n_observations = {n} [{id}]\n")
}

/// The content of a fact as short text.
pub fn body(fact: &ScoredFact) -> String {
    let value = fact.value();
    match fact.fact.key.kind() {
        FactKind::SkillSuccessRate => {
            let mut parts = recommendations(&value);
            parts.push(format!("success_rate = {}", shown(value.get("success_rate"))));
            parts.join(", ")
        }
        FactKind::InteractionPattern => "failure pattern".to_string(),
        FactKind::ZoneRisk => format!("risk = {}", shown(value.get("risk"))),
        FactKind::ObjectProperty => {
            let numeric = object(&value, "numeric").map(|numeric| {
                let figure = |name| shown(numeric.get(name));
                format!("median = {} ({}..{})", figure("median"), figure("q1"), figure("q3"))
            });
            let categorical = object(&value, "categorical").and_then(|categorical| {
                let top = object(categorical, "top")?;
                let (word, k) = (shown(top.get("value")), shown(top.get("n")));
                Some(format!("most common = {word} ({k} of {})", shown(categorical.get("n"))))
            });
            numeric.into_iter().chain(categorical).collect::<Vec<_>>().join(", ")
        }
    }
}

/// `recommended_NAME = V (LOW..HIGH, confidence = C)` for each recommended parameter, by name.
fn recommendations(value: &Object<'_>) -> Vec<String> {
    let Some(params) = object(value, "params") else { return Vec::new() };
    let mut found: Vec<(&str, String)> = params
        .iter()
        .filter_map(|(name, param)| {
            let recommended = object(param.as_object()?, "recommended")?;
            let figure = |name| shown(recommended.get(name));
            let confidence = two_decimals(recommended.get("confidence")?.as_micro()?);
            let (value, low, high) = (figure("value"), figure("low"), figure("high"));
            Some((name, format!("{value} ({low}..{high}, confidence = {confidence})")))
        })
        .collect();
    found.sort_by_key(|(name, _)| *name);
    found
        .into_iter()
        .map(|(name, text)| format!("recommended_{} = {text}", escaped_controls(name)))
        .collect()
}

fn object<'o>(value: &'o Object<'_>, name: &str) -> Option<&'o Object<'o>> {
    value.get(name)?.as_object()
}

/// A number as it is in the value; a text without its quotes.
fn shown(value: Option<&Value<'_>>) -> String {
    match value {
        Some(Value::Text(text)) => escaped_controls(text),
        Some(value) => {
            let mut text = String::new();
            value.write(&mut text);
            text
        }
        None => String::new(),
    }
}

/// A confidence truncated to two decimals. Rounding up would overstate it.
pub fn two_decimals(confidence: Micro) -> String {
    let hundredths = confidence.get() / (SCALE / 100);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Escapes control characters as JSON does, so that a fact stays on its line.
pub fn escaped_controls(text: &str) -> String {
    let control = |c: char| c < ' ';
    if !text.contains(control) {
        return text.to_string();
    }
    let piece = |c: char| if control(c) { escaped(&c.to_string()) } else { c.to_string() };
    text.chars().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidences_are_cut_not_rounded() {
        let micros = [0, 500_000, 705_800, 833_300, 999_900];
        let texts = micros.map(|micro| two_decimals(Micro::new(micro).unwrap()));
        assert_eq!(texts, ["0.00", "0.50", "0.70", "0.83", "0.99"]);
    }

    #[test]
    fn control_characters_do_not_break_a_line() {
        assert_eq!(escaped_controls("a\tb\n\u{1}ü\"\\"), "a\\tb\\n\\u0001ü\"\\");
    }
}
