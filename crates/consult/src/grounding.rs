//! The grounding: one line per fact, for the prompt of a planner.
//!
//! **Invariants**
//! - Cache-stable: the bytes depend only on the facts in it and on the number of facts left out.
//!   Lines are sorted by usefulness and key, not by confidence.
//! - One line per fact, however a reader splits lines: no text of an event contains a line end of
//!   Unicode, Python or ECMAScript, nor a character that changes the direction of the text.

use crate::facts::{Chosen, ScoredFact};
use ipse_consolidate::histogram::coarse_cell;
use ipse_core::decimal::SCALE;
use ipse_core::json::{Object, Value, escaped};
use ipse_core::{FactKind, Identity, Micro};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The grounding text of some facts.
pub fn grounding(identity: &Identity, rule_version: &str, chosen: &Chosen) -> String {
    let mut text = format!("known facts for this agent (rule set {rule_version}):\n");
    for fact in in_order(identity, &chosen.facts) {
        text.push_str(&fact.said(identity).line);
    }
    if let more @ 1.. = chosen.left_out() {
        text.push_str(&format!("({more} more facts not shown)\n"));
    }
    text
}

/// The facts in the order of the lines: by usefulness, then by key.
pub fn in_order<'f>(identity: &Identity, facts: &'f [Arc<ScoredFact>]) -> Vec<&'f Arc<ScoredFact>> {
    let mut all: Vec<_> = facts.iter().map(|fact| (fact.said(identity).group, fact)).collect();
    all.sort_by(|(group, fact), (other_group, other)| {
        let keys = || fact.fact.key.text().cmp(other.fact.key.text());
        group.cmp(other_group).then_with(keys)
    });
    all.into_iter().map(|(_, fact)| fact).collect()
}

/// The groups of lines in their order: the most useful facts for a planner come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LineGroup {
    Recommends,
    SkillSuccessRate,
    ZoneRisk,
    ObjectProperty,
    InteractionPattern,
    SkillAdvice,
}

/// The line of a fact with its id, and its group.
pub(crate) fn line(id: &str, fact: &ScoredFact) -> (LineGroup, String) {
    let kind = fact.fact.key.kind();
    let value = fact.value();
    let (subject, group) = match kind {
        FactKind::SkillSuccessRate if recommendations(&value).is_empty() => {
            ("", LineGroup::SkillSuccessRate)
        }
        FactKind::SkillSuccessRate => ("", LineGroup::Recommends),
        FactKind::ZoneRisk => ("zone ", LineGroup::ZoneRisk),
        FactKind::ObjectProperty => ("object ", LineGroup::ObjectProperty),
        FactKind::InteractionPattern => ("", LineGroup::InteractionPattern),
        FactKind::SkillAdvice => ("", LineGroup::SkillAdvice),
    };
    let (key, body) = (escaped_controls(fact.fact.key.text()), body(fact));
    let (confidence, n) = (two_decimals(fact.confidence), fact.n_observations);
    let end = format!("confidence = {confidence}, n_observations = {n} [{id}]\n");
    (group, format!("- {subject}{key}: {body}, {end}"))
}

/// The content of a fact as short text.
pub fn body(fact: &ScoredFact) -> String {
    let value = fact.value();
    let parts = match fact.fact.key.kind() {
        FactKind::SkillSuccessRate => {
            let mut parts = recommendations(&value);
            parts.push(rate(&value, "success_rate"));
            if value.get("last_outcome").and_then(Value::as_text) == Some("failed") {
                parts.push(format!("failed last, retry after {}", shown(value.get("retry_after"))));
            }
            parts
        }
        FactKind::ZoneRisk => vec![rate(&value, "risk")],
        FactKind::ObjectProperty => object_property(&value),
        FactKind::InteractionPattern => vec![interaction_pattern(fact, &value)],
        FactKind::SkillAdvice => vec![advice(&value).to_owned()],
    };
    parts.join(", ")
}

/// `NAME = R`; under `v2` also ` between LOW and HIGH since YYYY-MM-DD`.
fn rate(value: &Object<'_>, name: &str) -> String {
    let rate = format!("{name} = {}", shown(value.get(name)));
    let bound = |name| value.get(name).and_then(Value::as_micro);
    let (Some(low), Some(high), Some(since)) = (bound("low"), bound("high"), value.get("since"))
    else {
        return rate;
    };
    let (low, high) = (two_decimals(low), two_decimals_up(high));
    format!("{rate} between {low} and {high} since {}", shown(Some(since)))
}

/// Advice on a skill. Only a warning is shown without being asked for.
fn advice(value: &Object<'_>) -> &'static str {
    match value.get("verdict").and_then(Value::as_text) {
        Some("misleading") => "facts of this skill do not predict its outcomes",
        Some("informative") => "facts of this skill predict its outcomes",
        _ => "facts of this skill are not shown to predict its outcomes",
    }
}

/// `N failures: REASON`, and ` at NAME = MEDIAN (Q1..Q3)` for each parameter, by name.
fn interaction_pattern(fact: &ScoredFact, value: &Object<'_>) -> String {
    let reason = fact.fact.key.parts().pop().unwrap_or_default();
    let start = format!("{} failures: {}", fact.n_observations, escaped_controls(&reason));
    let params = by_name(value, |param| Some(quartiles(param)));
    params
        .into_iter()
        .fold(start, |all, (name, text)| format!("{all} at {} = {text}", escaped_controls(name)))
}

/// `median = M (Q1..Q3)` of the numbers, and `most common = VALUE (K of N)` of the texts.
fn object_property(value: &Object<'_>) -> Vec<String> {
    let numeric = object(value, "numeric").map(|it| format!("median = {}", quartiles(it)));
    let categorical = object(value, "categorical").and_then(|categorical| {
        let top = object(categorical, "top")?;
        let (word, k) = (shown(top.get("value")), shown(top.get("n")));
        Some(format!("most common = {word} ({k} of {})", shown(categorical.get("n"))))
    });
    numeric.into_iter().chain(categorical).collect()
}

/// `MEDIAN (Q1..Q3)` of some numbers.
fn quartiles(numbers: &Object<'_>) -> String {
    let figure = |name| shown(numbers.get(name));
    format!("{} ({}..{})", figure("median"), figure("q1"), figure("q3"))
}

/// `recommended_NAME = V (LOW..HIGH, confidence = C)` for each recommended parameter, by name.
fn recommendations(value: &Object<'_>) -> Vec<String> {
    let recommended = by_name(value, |param| {
        let recommended = object(param, "recommended").filter(|it| is_preference(param, it))?;
        let figure = |name| shown(recommended.get(name));
        let confidence = two_decimals(recommended.get("confidence")?.as_micro()?);
        let (value, low, high) = (figure("value"), figure("low"), figure("high"));
        Some(format!("{value} ({low}..{high}, confidence = {confidence})"))
    });
    let line = |(name, text)| format!("recommended_{} = {text}", escaped_controls(name));
    recommended.into_iter().map(line).collect()
}

/// Whether a recommendation prefers its window to other values. A wide window that holds every
/// value that was tried only repeats what was tried.
fn is_preference(param: &Object<'_>, recommended: &Object<'_>) -> bool {
    let count = |object: &Object<'_>, name| object.get(name).and_then(Value::as_count);
    if let Some(outside) = count(recommended, "outside") {
        return outside > 0 || is_one_cell(param, recommended);
    }
    let inside = count(recommended, "successes").zip(count(recommended, "failures"));
    let all_inside = inside.map(|(worked, failed)| worked + failed) == count(param, "n");
    !all_inside || recommended.get("low") == recommended.get("high")
}

/// Whether one coarse cell holds the window and the quartiles. The first and the last coarse cell
/// of a window each hold one of its ends, so a window with both ends in one cell is that cell.
fn is_one_cell(param: &Object<'_>, recommended: &Object<'_>) -> bool {
    let ends = ["low", "high"].map(|name| recommended.get(name));
    let quartiles = ["q1", "median", "q3"].map(|name| param.get(name));
    let cells =
        ends.into_iter().chain(quartiles).map(|value| Some(coarse_cell(value?.as_micro()?)));
    let cells: Option<BTreeSet<i64>> = cells.collect();
    cells.is_some_and(|cells| cells.len() == 1)
}

/// A text for each parameter of a value that has one, by name.
fn by_name<'v>(
    value: &'v Object<'_>,
    text: impl Fn(&Object<'_>) -> Option<String>,
) -> Vec<(&'v str, String)> {
    let params = object(value, "params").into_iter().flat_map(Object::iter);
    let mut found: Vec<(&str, String)> =
        params.filter_map(|(name, param)| Some((name, text(param.as_object()?)?))).collect();
    found.sort_by_key(|(name, _)| *name);
    found
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

/// An upper bound rounded up to two decimals, so that it does not understate.
fn two_decimals_up(bound: Micro) -> String {
    let hundredth = SCALE / 100;
    Micro::new(bound.get() + (hundredth - 1)).map(two_decimals).unwrap_or_default()
}

/// Escapes line ends, control characters and characters that change the direction of the text, so
/// that a text of an event stays on its line and cannot imitate another one.
pub fn escaped_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\u{1f}' => out.push_str(&escaped(&c.to_string())),
            _ if is_hidden(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out
}

/// Whether a character beyond ASCII control ends a line, controls a terminal, or turns the text
/// around it.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
        assert_eq!(escaped_controls("\u{85}\u{2028}\u{202e}"), "\\u0085\\u2028\\u202e");
    }

    #[test]
    fn the_listed_characters_are_escaped_and_no_others() {
        let listed =
            [(0, 0x1f), (0x7f, 0x9f), (0x200e, 0x200f), (0x2028, 0x202e), (0x2066, 0x2069)];
        for c in '\0'..=char::MAX {
            let code = u32::from(c);
            let is_listed = listed.iter().any(|(first, last)| (*first..=*last).contains(&code));
            let text = escaped_controls(&c.to_string());
            assert_eq!(text.starts_with('\\') && c != '\\', is_listed, "U+{code:04X}");
            if is_listed && code > 0x1f {
                assert_eq!(text, format!("\\u{code:04x}"));
            }
        }
    }
}
