//! Attempts: actions, whether they were planned, and how they deviate from the plan.
//!
//! **Invariant:** an attempt is planned only if it names an earlier intent in the log that was
//! admitted, clamped or confirmed by then.

use super::intent::{Data, Intent, data_of, parse};
use super::{EventRecord, Record};
use crate::answer::written;
use ipse_core::Ruling;
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, Seq, is_housekeeping};
use std::collections::BTreeMap;

/// The relation of an attempt to the gates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AttemptStanding {
    /// It names an intent that was admitted, clamped or confirmed.
    Planned,
    /// It names no intent.
    Unplanned,
    /// The name is not that of an earlier intent in this log.
    UnknownIntent,
    /// Its intent was denied, declined, or not confirmed by then.
    AgainstGates,
    /// Unknown, because the attempt or its intent is forgotten.
    Forgotten,
}

impl AttemptStanding {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            AttemptStanding::Planned => "planned",
            AttemptStanding::Unplanned => "unplanned",
            AttemptStanding::UnknownIntent => "unknown_intent",
            AttemptStanding::AgainstGates => "against_gates",
            AttemptStanding::Forgotten => "forgotten",
        }
    }
}

/// The reference of an event to its intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mention {
    Nothing,
    Of(EventRef),
    /// The value is not an event ref.
    Unreadable,
    /// The event is forgotten.
    Gone,
}

/// Reads `data.intent` of an event.
pub(super) fn mention(canonical: Option<&str>) -> Mention {
    let Some(canonical) = canonical else { return Mention::Gone };
    // Nearly all events name no intent: skip parsing them.
    if !canonical.contains("\"intent\":") {
        return Mention::Nothing;
    }
    let value = parse(canonical);
    match value.as_ref().and_then(data_of).and_then(|data| data.get("intent")) {
        None | Some(Value::Null) => Mention::Nothing,
        Some(name) => {
            name.as_text().and_then(EventRef::parse).map_or(Mention::Unreadable, Mention::Of)
        }
    }
}

/// The text in canonical bytes that names an intent. An event ref needs no escape.
pub fn naming_text(intent: &EventRef) -> String {
    format!("\"intent\":\"{intent}\"")
}

/// Whether these are the canonical bytes of a producer's event that names an intent.
pub fn names_intent(canonical: &str, intent: &EventRef) -> bool {
    let value = parse(canonical);
    let event = value.as_ref().and_then(Value::as_object);
    let kind = event.and_then(|event| event.get("type")?.as_text());
    kind.is_some_and(|kind| !is_housekeeping(kind))
        && mention(Some(canonical)) == Mention::Of(*intent)
}

/// The standing of an attempt at a position, by its reference and the intent of that name.
fn standing(seq: Seq, mention: Mention, intent: Option<&Intent>) -> AttemptStanding {
    let intent = match mention {
        Mention::Gone => return AttemptStanding::Forgotten,
        Mention::Nothing => return AttemptStanding::Unplanned,
        Mention::Unreadable => return AttemptStanding::UnknownIntent,
        Mention::Of(_) => intent.filter(|intent| intent.reported.seq < seq),
    };
    let Some(intent) = intent else { return AttemptStanding::UnknownIntent };
    let confirmed = intent.confirmation.as_ref().map(|it| it.confirmed && it.seq < seq);
    match (intent.ruling, confirmed) {
        (Some(Ruling::Admitted | Ruling::Clamped), _) => AttemptStanding::Planned,
        (Some(Ruling::Denied), _) => AttemptStanding::AgainstGates,
        (Some(Ruling::NeedsConfirmation), Some(true)) => AttemptStanding::Planned,
        (Some(Ruling::NeedsConfirmation), _) => AttemptStanding::AgainstGates,
        (None, _) if !intent.is_forgotten() => AttemptStanding::UnknownIntent,
        // Only an intent that waited has a decision.
        (None, Some(true)) => AttemptStanding::Planned,
        (None, Some(false)) => AttemptStanding::AgainstGates,
        (None, None) => AttemptStanding::Forgotten,
    }
}

/// The standings of attempts. Caches intents, so that each is looked up once.
pub struct Standings<'r, R: Record> {
    record: &'r R,
    known: BTreeMap<EventRef, Option<Intent>>,
}

impl<'r, R: Record> Standings<'r, R> {
    /// Standings of attempts in this record.
    pub fn new(record: &'r R) -> Self {
        Standings { record, known: BTreeMap::new() }
    }

    /// The intent that an attempt names, and its standing, by its position and canonical bytes.
    pub fn of(
        &mut self,
        seq: Seq,
        canonical: Option<&str>,
    ) -> Result<(Option<EventRef>, AttemptStanding), R::Error> {
        let mention = mention(canonical);
        let Mention::Of(name) = mention else { return Ok((None, standing(seq, mention, None))) };
        if !self.known.contains_key(&name) {
            self.known.insert(name, Intent::named(self.record, &name)?);
        }
        let intent = self.known.get(&name).and_then(Option::as_ref);
        Ok((Some(name), standing(seq, mention, intent)))
    }
}

/// A difference between an attempt and its plan; values as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Deviation {
    pub(super) field: String,
    pub(super) admitted: Option<String>,
    pub(super) acted: String,
}

/// An action, compared with its intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attempt {
    pub(super) reported: EventRecord,
    pub(super) standing: AttemptStanding,
    pub(super) deviations: Vec<Deviation>,
}

impl Attempt {
    /// Compares an attempt with the intent that it names, if any.
    pub(super) fn at(reported: EventRecord, intent: Option<&Intent>) -> Self {
        let mention = mention(reported.canonical.as_deref());
        let standing = standing(reported.seq, mention, intent);
        let mut deviations = Vec::new();
        let planned = intent.filter(|_| standing == AttemptStanding::Planned);
        let event = reported.canonical.as_deref().and_then(parse);
        let plan = planned.and_then(Intent::data);
        if let (Some(plan), Some(acted)) = (&plan, event.as_ref().and_then(data_of)) {
            deviations = deviations_from(plan, acted);
        }
        Attempt { reported, standing, deviations }
    }
}

/// The fields of an attempt other than its parameters, with their possible names.
const FIELDS: [(&str, &[&str]); 3] = [
    ("skill_id", &["skill_id"]),
    ("target_class", &["target_class"]),
    ("environment", &["environment", "env"]),
];

/// The values of an attempt that differ from its intent or are not in it. A value that the attempt
/// does not give is not a deviation.
fn deviations_from(plan: &Data<'_>, acted: &Object<'_>) -> Vec<Deviation> {
    let plan = plan.object();
    let mut found = Vec::new();
    for (field, names) in FIELDS {
        let there = |name: &&&str| acted.get(name).is_some_and(|value| *value != Value::Null);
        let value = names.iter().find(there).and_then(|name| acted.get(name));
        found.extend(value.and_then(|value| deviation(field.to_owned(), plan.get(field), value)));
    }
    let nothing = Object::default();
    let admitted = plan.get("admitted_params").and_then(Value::as_object).unwrap_or(&nothing);
    let Some(acted) = acted.get("params").and_then(Value::as_object) else { return found };
    for (name, value) in acted.iter() {
        found.extend(deviation(format!("params.{name}"), admitted.get(name), value));
    }
    found
}

fn deviation(field: String, admitted: Option<&Value<'_>>, acted: &Value<'_>) -> Option<Deviation> {
    let same = admitted.is_some_and(|admitted| match (admitted.as_micro(), acted.as_micro()) {
        (Some(admitted), Some(acted)) => admitted == acted,
        _ => admitted == acted,
    });
    (!same).then(|| Deviation { field, admitted: admitted.map(written), acted: written(acted) })
}
