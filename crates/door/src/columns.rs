//! Reads the typed columns from `data`: texts, numbers and the outcome.
//!
//! **Invariant:** a value that does not fit a column counts as absent; it never makes an event
//! invalid.

use alloc::vec::Vec;
use ipse_core::json::{Object, Value};
use ipse_core::{Columns, EventKind, MAX_TEXT_BYTES, Outcome, Property};

/// Reads the typed columns of an event of this type, without its source.
pub(crate) fn read<'d>(data: &'d Object<'_>, event_type: &str) -> Columns<'d> {
    let attempt = EventKind::of(event_type) == EventKind::ExecutionResult;
    Columns {
        outcome: if attempt { outcome(data) } else { None },
        skill: text_in(data, "skill_id"),
        target: text_in(data, "target_class"),
        environment: text_in(data, "environment").or_else(|| text_in(data, "env")),
        zone: text_in(data, "zone"),
        reason: text_in(data, "failure_reason"),
        params: named(data, "params", |value| value.as_micro()),
        properties: named(data, "object", property),
        source: None,
    }
}

/// `outcome` if it has a value, else `success`; a word outside the vocabulary is unknown.
fn outcome(data: &Object<'_>) -> Option<Outcome> {
    match (data.get("outcome"), data.get("success")) {
        (None | Some(Value::Null), Some(Value::Bool(true))) => Some(Outcome::Success),
        (None | Some(Value::Null), Some(Value::Bool(false))) => Some(Outcome::Failed),
        (None | Some(Value::Null), _) => None,
        (Some(word), _) => {
            Some(word.as_text().and_then(Outcome::parse).unwrap_or(Outcome::Unknown))
        }
    }
}

fn is_text(text: &str) -> bool {
    (1..=MAX_TEXT_BYTES).contains(&text.len())
}

fn text_in<'d>(data: &'d Object<'_>, name: &str) -> Option<&'d str> {
    data.get(name)?.as_text().filter(|text| is_text(text))
}

fn property<'d>(value: &'d Value<'_>) -> Option<Property<'d>> {
    match value {
        Value::Number(_) => value.as_micro().map(Property::Number),
        Value::Text(text) => is_text(text).then_some(Property::Text(text)),
        Value::Bool(value) => Some(Property::Bool(*value)),
        _ => None,
    }
}

/// The members of the object called `name` that have a usable name and value.
fn named<'d, T>(
    data: &'d Object<'_>,
    name: &str,
    read: impl Fn(&'d Value<'_>) -> Option<T>,
) -> Vec<(&'d str, T)> {
    let Some(object) = data.get(name).and_then(Value::as_object) else { return Vec::new() };
    let usable = object.iter().filter(|(name, _)| is_text(name));
    usable.filter_map(|(name, value)| Some((name, read(value)?))).collect()
}
