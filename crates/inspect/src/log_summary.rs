//! What happened in an event, in one line.
//!
//! **Invariant:** a summary copies stored data, with every hidden character escaped, and has at
//! most [`MAX_CHARS`] characters and an ellipsis. It is for people; nothing is computed from it.

use crate::answer::{clean, counted, written};
use ipse_core::event::{ACT, FORGET, MAX_DEPTH, PASS_RECORD, RULES};
use ipse_core::intent::{CONFIRMATION, INTENT};
use ipse_core::json::{Object, Value};
use ipse_core::{Columns, Property, is_housekeeping, json_parse};
use ipse_ledger::ActEvent;
use ipse_store::Stored;

/// The longest summary.
const MAX_CHARS: usize = 240;
/// Parameters or properties in a summary.
const MAX_NUMBERS: usize = 8;

/// The content of a stored event: its `data`, and its typed columns as the door reads them.
pub(crate) struct Content<'e> {
    pub(crate) data: &'e Object<'e>,
    pub(crate) columns: Columns<'e>,
}

impl Content<'_> {
    /// Reads the content of an event; `None` if it is forgotten or damaged.
    pub(crate) fn read<T>(stored: &Stored, read: impl FnOnce(&Content<'_>) -> T) -> Option<T> {
        let value = json_parse::parse(stored.canonical.as_bytes(), MAX_DEPTH).ok()?;
        let event = value.as_object()?;
        let data = event.get("data")?.as_object()?;
        let columns = ipse_door::columns_in(event, &stored.event_type);
        Some(read(&Content { data, columns }))
    }
}

/// What happened in an event.
pub(crate) fn summary(stored: &Stored) -> String {
    if stored.is_forgotten() {
        return "(forgotten)".to_owned();
    }
    let text = Content::read(stored, |content| match stored.event_type.as_str() {
        PASS_RECORD => pass(content.data),
        FORGET => forget(content.data),
        INTENT => intent(content),
        CONFIRMATION => decision(content.data),
        RULES => rules(content.data),
        ACT => act(stored).unwrap_or_else(|| members(content.data)),
        name if is_housekeeping(name) => members(content.data),
        _ => reported(content),
    });
    let text = clean(&text.unwrap_or_default());
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn text<'d>(data: &'d Object<'_>, name: &str) -> &'d str {
    data.get(name).and_then(Value::as_text).unwrap_or("?")
}

fn count(data: &Object<'_>, name: &str) -> u64 {
    data.get(name).and_then(Value::as_count).unwrap_or_default()
}

/// The range of a pass and the number of facts that it changed.
fn pass(data: &Object<'_>) -> String {
    let (first, last) = (count(data, "first_seq"), count(data, "last_seq"));
    let facts = counted(count(data, "rows_touched"), "fact");
    format!("pass over seq {first}..{last} changed {facts} ({})", text(data, "trigger"))
}

fn forget(data: &Object<'_>) -> String {
    let refs = match data.get("event_refs") {
        Some(Value::Array(refs)) => refs.len() as u64,
        _ => 0,
    };
    format!("{} forgotten", counted(refs, "event"))
}

/// The requested action, its parameters and the verdict.
fn intent(content: &Content<'_>) -> String {
    let verdict = text(content.data, "verdict").replace('_', " ");
    with_numbers(format!("{}: {verdict}", subject(&content.columns)), &content.columns)
}

fn decision(data: &Object<'_>) -> String {
    format!("{} {}", text(data, "decision"), text(data, "intent"))
}

fn rules(data: &Object<'_>) -> String {
    let back = data.get("back").is_some();
    let stage = text(data, "stage");
    format!("{} {stage}{}", text(data, "rule_version"), if back { " again" } else { "" })
}

/// The act of governance that an event records.
fn act(stored: &Stored) -> Option<String> {
    Some(ActEvent::read(stored.seq, stored.canonical.as_bytes())?.act.words())
}

/// The texts and numbers of another event of ipse.
fn members(data: &Object<'_>) -> String {
    let plain = |(name, value): (&str, &Value<'_>)| match value {
        Value::Text(text) => Some(format!("{name}={text}")),
        Value::Number(_) | Value::Bool(_) => Some(format!("{name}={}", written(value))),
        _ => None,
    };
    let plain: Vec<_> = data.iter().filter_map(plain).take(MAX_NUMBERS).collect();
    plain.join(", ")
}

/// The event of a producer: its subject, outcome, reason, parameters and properties.
fn reported(content: &Content<'_>) -> String {
    let columns = &content.columns;
    let mut line = subject(columns);
    let outcome = columns.outcome.map(|outcome| outcome.name());
    let result = match (outcome, columns.reason) {
        (Some(outcome), Some(reason)) => Some(format!("{outcome} ({reason})")),
        (Some(outcome), None) => Some(outcome.to_owned()),
        (None, reason) => reason.map(str::to_owned),
    };
    if let Some(result) = result {
        line.push_str(if line.is_empty() { "" } else { ": " });
        line.push_str(&result);
    }
    with_numbers(line, columns)
}

/// Skill, target, environment and zone, as far as they are given.
fn subject(columns: &Columns<'_>) -> String {
    let zone = columns.zone.map(|zone| format!("zone {zone}"));
    let parts = [columns.skill, columns.target, columns.environment, zone.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Adds the parameters and properties to a line.
fn with_numbers(line: String, columns: &Columns<'_>) -> String {
    let params = columns.params.iter().map(|(name, value)| format!("{name}={value}"));
    let properties = columns.properties.iter().map(|(name, value)| match value {
        Property::Number(value) => format!("{name}={value}"),
        Property::Text(text) => format!("{name}={text}"),
        Property::Bool(value) => format!("{name}={value}"),
    });
    let all: Vec<String> = params.chain(properties).collect();
    let more = if all.len() > MAX_NUMBERS { ", …" } else { "" };
    let first = all.iter().take(MAX_NUMBERS).map(String::as_str);
    let numbers = first.collect::<Vec<_>>().join(", ");
    match (line.is_empty(), numbers.is_empty()) {
        (_, true) => line,
        (true, false) => format!("{numbers}{more}"),
        (false, false) => format!("{line}, {numbers}{more}"),
    }
}
