//! An event as rules see it, as the store keeps it, and the typed columns between the two.
//!
//! **Invariants:** a rule sees typed columns only, never a payload; columns are a function of the
//! payload alone (the door computes them, once), so they can always be recomputed and compared.

use crate::wire::{self, Wire};
use crate::{Digest, EventRef, Micro, Support, Time, json_parse, sha256};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// The deepest nesting of an event, the event itself being 1. It bounds the recursion of every
/// reader.
pub const MAX_DEPTH: usize = 32;
/// The longest `id`, `source` or `type`: they are names, and they stay when the event is forgotten.
pub const MAX_NAME_BYTES: usize = 256;

/// The type of an attempt at a skill.
pub const EXECUTION_RESULT: &str = "execution_result";
/// The type of an incident.
pub const INCIDENT: &str = "incident";
/// The type of a pass record.
pub const PASS_RECORD: &str = "consolidation_run";
/// The type of the events that change which rules are in force.
pub const RULES: &str = "ipse.rules";
/// The type of the events that record decisions of the operator about a log.
pub const ACT: &str = "ipse.act";
/// The type of the events that list forgotten events.
pub const FORGET: &str = "forget";

/// The kinds of events that rules distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// An attempt at a skill.
    ExecutionResult,
    /// An incident.
    Incident,
    /// Written by ipse about itself; feeds no fact.
    Housekeeping,
    /// Any other type.
    Other,
}

impl EventKind {
    /// The kind of events of this type.
    pub fn of(event_type: &str) -> Self {
        match event_type {
            EXECUTION_RESULT => EventKind::ExecutionResult,
            INCIDENT => EventKind::Incident,
            _ if crate::is_housekeeping(event_type) => EventKind::Housekeeping,
            _ => EventKind::Other,
        }
    }
}

/// The result of an attempt. Only `Success` and `Failed` count; unknown is never a success.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// The attempt worked.
    Success,
    /// The attempt did not work.
    Failed,
    /// A gate or a person did not allow it.
    Denied,
    /// The attempt was stopped from outside.
    Interrupted,
    /// The attempt was called off.
    Canceled,
    /// The outcome is not known.
    Unknown,
}

impl Outcome {
    /// The closed vocabulary, in the order of its encoding.
    pub const ALL: [Outcome; 6] = [
        Outcome::Success,
        Outcome::Failed,
        Outcome::Denied,
        Outcome::Interrupted,
        Outcome::Canceled,
        Outcome::Unknown,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Failed => "failed",
            Outcome::Denied => "denied",
            Outcome::Interrupted => "interrupted",
            Outcome::Canceled => "canceled",
            Outcome::Unknown => "unknown",
        }
    }

    /// The outcome with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// An observed value of an object's property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property<'a> {
    /// A usable number.
    Number(Micro),
    /// A text.
    Text(&'a str),
    /// A boolean; reads as `"true"` or `"false"`.
    Bool(bool),
}

/// The typed columns of an event: its source, and all parts of its `data` that a rule may use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Columns<'a> {
    /// The outcome, if the event is an attempt that reports one.
    pub outcome: Option<Outcome>,
    /// `skill_id`
    pub skill: Option<&'a str>,
    /// `target_class`
    pub target: Option<&'a str>,
    /// `environment`, else `env`
    pub environment: Option<&'a str>,
    /// `zone`
    pub zone: Option<&'a str>,
    /// `failure_reason`
    pub reason: Option<&'a str>,
    /// The event's `source`. Events that passed the door have one.
    pub source: Option<&'a str>,
    /// Usable parameters by name.
    pub params: Vec<(&'a str, Micro)>,
    /// Usable properties of `object` by name.
    pub properties: Vec<(&'a str, Property<'a>)>,
}

/// One event, as a rule set sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// The name of the event.
    pub event_ref: EventRef,
    /// The time of the event.
    pub time: Time,
    /// The type of the event.
    pub event_type: &'a str,
    /// The typed columns of the event.
    pub columns: Columns<'a>,
}

/// The type under which rules see a forgotten event: housekeeping, which feeds no fact.
pub const FORGOTTEN: &str = "ipse.forgotten";

impl<'a> Event<'a> {
    /// The event of a stored row; `None` if its columns are damaged. A forgotten event has no
    /// columns: it keeps its position, and rules treat it as if it had never existed.
    pub fn of_row(
        event_ref: EventRef,
        time: Time,
        event_type: &'a str,
        columns: &'a [u8],
    ) -> Option<Self> {
        let (event_type, columns) = match columns {
            [] => (FORGOTTEN, Columns::default()),
            columns => (event_type, Columns::decode(columns)?),
        };
        Some(Event { event_ref, time, event_type, columns })
    }

    /// The event as the support of a fact.
    pub fn support(&self) -> Support {
        let worked = self.columns.outcome == Some(Outcome::Success);
        Support { time: self.time, event_ref: self.event_ref, worked }
    }
}

const TAG_NUMBER: u8 = 0;
const TAG_TEXT: u8 = 1;
const TAG_FALSE: u8 = 2;
const TAG_TRUE: u8 = 3;

impl<'a> Columns<'a> {
    /// The bytes that are stored with the payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.push(self.outcome.map_or(0, |outcome| outcome as u8 + 1));
        for text in [self.skill, self.target, self.environment, self.zone, self.reason] {
            // Texts are never empty, so an empty one means none.
            wire::write_text(text.unwrap_or(""), &mut out);
        }
        wire::write_len(self.params.len(), &mut out);
        for (name, value) in &self.params {
            wire::write_text(name, &mut out);
            wire::write_i128(value.get().into(), &mut out);
        }
        wire::write_len(self.properties.len(), &mut out);
        for (name, property) in &self.properties {
            wire::write_text(name, &mut out);
            write_property(property, &mut out);
        }
        write_source(self.source, &mut out);
        out
    }

    /// Adds the source to columns that were stored before schema 10, which had none.
    pub fn with_source(mut without: Vec<u8>, source: &str) -> Vec<u8> {
        write_source(Some(source), &mut without);
        without
    }

    /// Reads the output of `encode`; damaged bytes give `None`.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut wire = Wire(bytes);
        let outcome = match wire.byte()? {
            0 => None,
            code => Some(*Outcome::ALL.get(usize::from(code) - 1)?),
        };
        let mut text = || wire.text().map(|text| Some(text).filter(|text| !text.is_empty()));
        let (skill, target, environment) = (text()?, text()?, text()?);
        let (zone, reason) = (text()?, text()?);
        let params = read_list(&mut wire, |wire| Micro::new(wire.i64()?))?;
        let properties = read_list(&mut wire, read_property)?;
        let source = wire.text().map(|text| Some(text).filter(|text| !text.is_empty()))?;
        wire.finish(Columns {
            outcome,
            skill,
            target,
            environment,
            zone,
            reason,
            source,
            params,
            properties,
        })
    }
}

/// The source is the last column, so that it can be added to older ones.
fn write_source(source: Option<&str>, out: &mut Vec<u8>) {
    wire::write_text(source.unwrap_or(""), out);
}

fn write_property(property: &Property<'_>, out: &mut Vec<u8>) {
    match property {
        Property::Number(value) => {
            out.push(TAG_NUMBER);
            wire::write_i128(value.get().into(), out);
        }
        Property::Text(text) => {
            out.push(TAG_TEXT);
            wire::write_text(text, out);
        }
        Property::Bool(value) => out.push(if *value { TAG_TRUE } else { TAG_FALSE }),
    }
}

fn read_property<'a>(wire: &mut Wire<'a>) -> Option<Property<'a>> {
    match wire.byte()? {
        TAG_NUMBER => Micro::new(wire.i64()?).map(Property::Number),
        TAG_TEXT => wire.text().map(Property::Text),
        TAG_FALSE => Some(Property::Bool(false)),
        TAG_TRUE => Some(Property::Bool(true)),
        _ => None,
    }
}

fn read_list<'a, T>(
    wire: &mut Wire<'a>,
    read: impl Fn(&mut Wire<'a>) -> Option<T>,
) -> Option<Vec<(&'a str, T)>> {
    let count = wire.length()?;
    (0..count).map(|_| Some((wire.text()?, read(wire)?))).collect()
}

/// An event that passed the door, with everything that the store keeps of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// The name of the event.
    pub event_ref: EventRef,
    /// The type of the event.
    pub event_type: String,
    /// The time of the event.
    pub time: Time,
    /// SHA-256 of `canonical`.
    pub digest: Digest,
    /// RFC 8785 bytes of the whole event, salt included.
    pub canonical: String,
    /// The range of the salt's 32 digits in `canonical`.
    pub salt_at: Range<usize>,
    /// The typed columns, encoded.
    pub columns: Vec<u8>,
}

/// The source of an event in canonical form; `None` if it cannot be read.
pub fn source_of(canonical: &str) -> Option<String> {
    let event = json_parse::parse(canonical.as_bytes(), MAX_DEPTH).ok()?;
    Some(event.as_object()?.get("source")?.as_text()?.into())
}

impl Admitted {
    /// The event as rules see it; `None` if its columns are damaged.
    pub fn typed(&self) -> Option<Event<'_>> {
        Event::of_row(self.event_ref, self.time, &self.event_type, &self.columns)
    }

    /// Whether a stored event has the same content, the salt aside.
    ///
    /// Salts have one length, so equal content has its salt in the same place.
    pub fn says_the_same_as(&self, stored: &str) -> bool {
        let (ours, theirs) = (self.canonical.as_bytes(), stored.as_bytes());
        ours.len() == theirs.len()
            && ours[..self.salt_at.start] == theirs[..self.salt_at.start]
            && ours[self.salt_at.end..] == theirs[self.salt_at.end..]
    }

    /// A hash of the content, the salt aside: equal for two events of one name if and only if they
    /// have the same content, and so a short stand-in for the bytes.
    pub fn content_hash(&self) -> [u8; 32] {
        let canonical = self.canonical.as_bytes();
        sha256(&[&canonical[..self.salt_at.start], &canonical[self.salt_at.end..]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn columns_survive_their_bytes() {
        let micro = |v| Micro::new(v).unwrap();
        let columns = Columns {
            outcome: Some(Outcome::Unknown),
            skill: Some("s"),
            reason: Some("r"),
            source: Some("robot-7"),
            params: vec![("force_n", micro(25_000_000)), ("x", micro(-1))],
            properties: vec![
                ("mass", Property::Number(micro(0))),
                ("colour", Property::Text("red")),
                ("wet", Property::Bool(true)),
                ("hot", Property::Bool(false)),
            ],
            ..Columns::default()
        };
        let bytes = columns.encode();
        assert_eq!(Columns::decode(&bytes).as_ref(), Some(&columns));
        let older = Columns { source: None, ..columns.clone() }.encode();
        let older = older[..older.len() - 1].to_vec();
        assert_eq!(Columns::with_source(older, "robot-7"), bytes);
        assert_eq!(Columns::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Columns::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn a_row_without_columns_is_forgotten_and_no_event_has_none() {
        let time = Time::from_micros(0).unwrap();
        let kind = |columns: &[u8]| {
            let event = Event::of_row(EventRef([0; 16]), time, "incident", columns);
            event.map(|event| EventKind::of(event.event_type))
        };
        assert_eq!(kind(&[]), Some(EventKind::Housekeeping));
        assert_eq!(kind(&Columns::default().encode()), Some(EventKind::Incident));
        assert_eq!(kind(&[9]), None);
    }

    proptest! {
        #[test]
        fn damaged_columns_are_refused_not_believed(bytes: Vec<u8>) {
            if let Some(columns) = Columns::decode(&bytes) {
                let again = columns.encode();
                prop_assert_eq!(Columns::decode(&again), Some(columns));
            }
        }
    }
}
