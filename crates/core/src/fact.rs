//! Facts and their keys.
//!
//! **Invariant:** a key's text and its parts determine each other: inside a part `\` and `+` are
//! escaped, so the separator `" + "` cannot occur anywhere else.

use crate::event::MAX_DEPTH;
use crate::{EventRef, Time, json, json_parse};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

/// The text of a missing part of a key; a literal `*` merges with it.
pub const ANY: &str = "*";

const SEPARATOR: &str = " + ";
/// The maximum nesting of a line of a snapshot.
const MAX_LINE_DEPTH: usize = 16;

/// The kinds of facts, in the order of their names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FactKind {
    /// The failures of a skill on a target, by reason.
    InteractionPattern,
    /// Observed properties of a class of objects.
    ObjectProperty,
    /// Whether the facts of a skill predict its outcomes.
    SkillAdvice,
    /// The success rate of a skill, and its parameters.
    SkillSuccessRate,
    /// The rate of failures and incidents in a zone.
    ZoneRisk,
}

impl FactKind {
    /// All kinds, in the order of their names.
    pub const ALL: [FactKind; 5] = [
        FactKind::InteractionPattern,
        FactKind::ObjectProperty,
        FactKind::SkillAdvice,
        FactKind::SkillSuccessRate,
        FactKind::ZoneRisk,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FactKind::InteractionPattern => "interaction_pattern",
            FactKind::ObjectProperty => "object_property",
            FactKind::SkillAdvice => "skill_advice",
            FactKind::SkillSuccessRate => "skill_success_rate",
            FactKind::ZoneRisk => "zone_risk",
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for FactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A fact's stable name within its identity. Ordered by kind, then by the text's UTF-8 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FactKey {
    kind: FactKind,
    text: String,
}

impl FactKey {
    /// Joins and escapes the parts.
    ///
    /// ```
    /// # use ipse_core::{FactKey, FactKind};
    /// let key = FactKey::new(FactKind::SkillSuccessRate, &["a+b", "*", r"c\d"]);
    /// assert_eq!(key.text(), r"a\+b + * + c\\d");
    /// assert_eq!(key.parts(), ["a+b", "*", r"c\d"]);
    /// ```
    pub fn new(kind: FactKind, parts: &[&str]) -> Self {
        let mut text = String::with_capacity(parts.iter().map(|part| part.len() + 3).sum());
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                text.push_str(SEPARATOR);
            }
            for piece in part.split_inclusive(['\\', '+']) {
                let escape = piece.ends_with(['\\', '+']);
                let plain = if escape { &piece[..piece.len() - 1] } else { piece };
                text.push_str(plain);
                if escape {
                    text.push('\\');
                    text.push_str(&piece[piece.len() - 1..]);
                }
            }
        }
        FactKey { kind, text }
    }

    /// A key that was read from a store.
    pub fn from_text(kind: FactKind, text: String) -> Self {
        FactKey { kind, text }
    }

    /// The key in a line of a snapshot, as [`Fact::snapshot_line`] writes it.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let value = json_parse::parse(line, MAX_LINE_DEPTH).ok()?;
        let text = |name: &str| value.as_object()?.get(name)?.as_text();
        let key = text("fact_key")?.to_string();
        Some(FactKey::from_text(FactKind::parse(text("fact_kind")?)?, key))
    }

    /// The kind of the fact.
    pub fn kind(&self) -> FactKind {
        self.kind
    }

    /// The joined parts.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parts, unescaped.
    pub fn parts(&self) -> Vec<String> {
        self.text.split(SEPARATOR).map(unescape).collect()
    }
}

fn unescape(part: &str) -> String {
    let mut plain = String::with_capacity(part.len());
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

/// The last of a fact's supporting events: greatest by time, then by ref. `worked` follows from
/// the ref, so it takes no part in comparisons.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// The time of the event.
    pub time: Time,
    /// The name of the event.
    pub event_ref: EventRef,
    /// Whether the event is an attempt that worked. Facts that were stored before schema 10 say
    /// `false`; the rules of that time did not ask.
    pub worked: bool,
}

impl Ord for Support {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.time, self.event_ref).cmp(&(other.time, other.event_ref))
    }
}

impl PartialOrd for Support {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Support {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Support {}

/// The events that a fact rests on: those that support its key, from a time on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvidenceKey {
    /// The key of the fact.
    pub key: FactKey,
    /// The first time that counts; `None` if every time does.
    pub since: Option<Time>,
}

impl EvidenceKey {
    /// All events that support a key.
    pub fn all(key: FactKey) -> Self {
        EvidenceKey { key, since: None }
    }

    /// Whether an event of this time counts.
    pub fn counts(&self, time: Time) -> bool {
        self.since.is_none_or(|since| since <= time)
    }
}

/// One derived fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fact {
    /// The kind and key of the fact.
    pub key: FactKey,
    /// The last supporting event.
    pub last: Support,
    /// The value: a canonical JSON object.
    pub value: String,
}

impl Fact {
    /// The fact's line in a snapshot, without the line end.
    pub fn snapshot_line(&self) -> String {
        json::Members::new()
            .text("fact_key", self.key.text())
            .text("fact_kind", self.key.kind().name())
            .text("last_updated", &self.last.time.to_string())
            .raw("value", &self.value)
            .finish()
    }

    /// The events that are counted in `n_observations`. Under `v2` they begin with the day
    /// `since`; values of `v1` have no such member.
    pub fn evidence_key(&self) -> EvidenceKey {
        let value = json_parse::parse(self.value.as_bytes(), MAX_DEPTH).ok();
        let day = value.as_ref().and_then(|value| value.as_object()?.get("since")?.as_text());
        let since = day.and_then(|day| Time::parse(&alloc::format!("{day}T00:00:00Z")).ok());
        EvidenceKey { key: self.key.clone(), since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_and_parts_determine_each_other(
            parts in proptest::collection::vec(r"[a\\+ *😀]{1,6}", 1..4)
        ) {
            let borrowed: Vec<&str> = parts.iter().map(String::as_str).collect();
            prop_assert_eq!(FactKey::new(FactKind::ZoneRisk, &borrowed).parts(), parts);
        }
    }
}
