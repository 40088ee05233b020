//! Finding what `explain` is asked about: ids and refs, their beginnings, keys, parts of keys, and
//! filters.
//!
//! **Invariant:** one match is explained; of several none is chosen silently, except that the facts
//! of a skill go before its failure patterns.

use ipse_core::{EventRef, Fact, FactId, FactKey, FactKind, Identity, Seq};
use ipse_engine::Error;
use ipse_engine::facts::Filter;
use ipse_inspect::answer::clean;
use ipse_store::View;

/// The fewest hex digits of a shortened id. Fewer could easily match another one later.
const MIN_DIGITS: usize = 4;
/// The digits of a whole id.
const DIGITS: usize = 32;
/// The most matches that are listed.
const MAX_LISTED: usize = 20;
const EVENT: &str = "ev_";
const FACT: &str = "fa_";

/// The result of a search.
pub(super) enum Found {
    Event(EventRef),
    Fact(Fact),
    /// Several matches, one line each, and the number of those that are not listed.
    Several(Vec<String>, usize),
    Nothing,
    /// A shortened id with fewer than [`MIN_DIGITS`] digits.
    TooShort,
}

/// Finds the event or fact with this id, beginning of an id, key or part of a key.
pub(super) fn by_name(view: View<'_>, identity: &Identity, what: &str) -> anyhow::Result<Found> {
    let lower = what.to_ascii_lowercase();
    if let Some(event_ref) = EventRef::parse(&lower) {
        return Ok(Found::Event(event_ref));
    }
    if let Some(id) = FactId::parse(&lower) {
        return Ok(view.fact(&id)?.map_or(Found::Nothing, Found::Fact));
    }
    if let Some(digits) = shortened(&lower, EVENT) {
        return if digits < MIN_DIGITS { Ok(Found::TooShort) } else { event(view, &lower) };
    }
    if let Some(digits) = shortened(&lower, FACT) {
        let matches = |key: &FactKey| FactId::new(identity, key).to_string().starts_with(&lower);
        return if digits < MIN_DIGITS {
            Ok(Found::TooShort)
        } else {
            fact(view, identity, matches)
        };
    }
    match fact(view, identity, |key| key.text() == what)? {
        Found::Nothing => {
            fact(view, identity, |key| key.text().to_lowercase().contains(&what.to_lowercase()))
        }
        found => Ok(found),
    }
}

/// Finds the facts that match a filter. The facts of a skill go before its failure patterns.
pub(super) fn by_filter(
    view: View<'_>,
    identity: &Identity,
    filter: &Filter,
) -> anyhow::Result<Found> {
    let is_pattern = |key: &FactKey| key.kind() == FactKind::InteractionPattern;
    match fact(view, identity, |key| filter.matches(key) && !is_pattern(key))? {
        Found::Nothing => fact(view, identity, |key| filter.matches(key)),
        found => Ok(found),
    }
}

/// The number of digits of a shortened id with this prefix.
fn shortened(what: &str, prefix: &str) -> Option<usize> {
    let digits = what.strip_prefix(prefix)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && digits.len() < DIGITS).then_some(digits.len())
}

/// Finds the event whose ref begins like this. Reads the names of the whole log.
fn event(view: View<'_>, beginning: &str) -> anyhow::Result<Found> {
    let mut found = Vec::new();
    view.each_entry(Seq(1)..=view.head()?, |entry, _| {
        if entry.event_ref.to_string().starts_with(beginning) {
            found.push(entry);
        }
        Ok::<_, Error>(())
    })?;
    Ok(match found.as_slice() {
        [] => Found::Nothing,
        [one] => Found::Event(one.event_ref),
        _ => several(found.iter().map(|entry| {
            format!("{} seq {} {}", entry.event_ref, entry.seq, clean(&entry.event_type))
        })),
    })
}

/// Finds the fact whose key is wanted.
fn fact(
    view: View<'_>,
    identity: &Identity,
    wanted: impl Fn(&FactKey) -> bool,
) -> anyhow::Result<Found> {
    let mut found: Vec<Fact> = Vec::new();
    view.each_fact(wanted, |fact| {
        found.push(fact);
        Ok::<_, Error>(())
    })?;
    if found.len() == 1 {
        return Ok(found.pop().map_or(Found::Nothing, Found::Fact));
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    let line = |fact: &Fact| {
        let (id, key) = (FactId::new(identity, &fact.key), &fact.key);
        format!("{id} {}: {}", key.kind(), clean(key.text()))
    };
    Ok(if found.is_empty() { Found::Nothing } else { several(found.iter().map(line)) })
}

fn several(lines: impl ExactSizeIterator<Item = String>) -> Found {
    let more = lines.len().saturating_sub(MAX_LISTED);
    Found::Several(lines.take(MAX_LISTED).collect(), more)
}
