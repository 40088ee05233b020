//! Attempts: what was done, whether it was planned, and where it left the plan.
//!
//! **Invariant:** an attempt is planned only if it names an intent that stands before it and that
//! the gates let through by then. Whatever else it names, it is not.

use super::intent::{Data, Intent, data_of, parse};
use super::{EventRecord, Record};
use crate::answer::written;
use ipse_core::Ruling;
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, Seq, is_housekeeping};
use std::collections::BTreeMap;

/// How an attempt stands to the gates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AttemptStanding {
    /// It names an intent that the gates let through.
    Planned,
    /// It names none.
    Unplanned,
    /// It names something that is no intent before it in this log.
    UnknownIntent,
    /// Its intent was denied, declined, or not confirmed by then.
    AgainstGates,
    /// What would tell is forgotten: the attempt itself, or its intent.
    Forgotten,
}

impl AttemptStanding {
    /// The word on the wire.
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

/// What an event says about its intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mention {
    Nothing,
    Of(EventRef),
    /// It names something that no event is called.
    Unreadable,
    /// The event is forgotten.
    Gone,
}

/// What `data.intent` of an event says.
pub(super) fn mention(canonical: Option<&str>) -> Mention {
    let Some(canonical) = canonical else { return Mention::Gone };
    // Nearly all events name none, and need not be read to know.
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

/// How canonical bytes hold the name of an intent: a ref needs no escape.
pub fn naming_text(intent: &EventRef) -> String {
    format!("\"intent\":\"{intent}\"")
}

/// Whether the canonical bytes of an event are those of a producer's that names an intent.
pub fn names_intent(canonical: &str, intent: &EventRef) -> bool {
    let value = parse(canonical);
    let event = value.as_ref().and_then(Value::as_object);
    let kind = event.and_then(|event| event.get("type")?.as_text());
    kind.is_some_and(|kind| !is_housekeeping(kind))
        && mention(Some(canonical)) == Mention::Of(*intent)
}

/// How an attempt at a position stands, by what it names and the intent of that name.
fn standing(seq: Seq, mention: Mention, intent: Option<&Intent>) -> AttemptStanding {
    let intent = match mention {
        Mention::Gone => return AttemptStanding::Forgotten,
        Mention::Nothing => return AttemptStanding::Unplanned,
        Mention::Unreadable => return AttemptStanding::UnknownIntent,
        Mention::Of(_) => intent.filter(|intent| intent.told.seq < seq),
    };
    let Some(intent) = intent else { return AttemptStanding::UnknownIntent };
    let confirmed = intent.confirmation.as_ref().map(|it| it.confirmed && it.seq < seq);
    match (intent.ruling, confirmed) {
        (Some(Ruling::Admitted | Ruling::Clamped), _) => AttemptStanding::Planned,
        (Some(Ruling::Denied), _) => AttemptStanding::AgainstGates,
        (Some(Ruling::NeedsConfirmation), Some(true)) => AttemptStanding::Planned,
        (Some(Ruling::NeedsConfirmation), _) => AttemptStanding::AgainstGates,
        (None, _) if !intent.is_forgotten() => AttemptStanding::UnknownIntent,
        // Only what the gates made wait is decided about.
        (None, Some(true)) => AttemptStanding::Planned,
        (None, Some(false)) => AttemptStanding::AgainstGates,
        (None, None) => AttemptStanding::Forgotten,
    }
}

/// How attempts stand, one after the other: each intent is looked up once.
pub struct Standings<'r, R: Record> {
    record: &'r R,
    known: BTreeMap<EventRef, Option<Intent>>,
}

impl<'r, R: Record> Standings<'r, R> {
    /// Of attempts in this record.
    pub fn new(record: &'r R) -> Self {
        Standings { record, known: BTreeMap::new() }
    }

    /// The intent that an attempt names, and how it stands; by its position and canonical bytes.
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

/// Where an attempt left the plan; values as JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Deviation {
    pub(super) field: String,
    pub(super) admitted: Option<String>,
    pub(super) acted: String,
}

/// What was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attempt {
    pub(super) told: EventRecord,
    pub(super) standing: AttemptStanding,
    pub(super) deviations: Vec<Deviation>,
}

impl Attempt {
    /// An attempt, held against the intent that it names if there is one.
    pub(super) fn at(told: EventRecord, intent: Option<&Intent>) -> Self {
        let mention = mention(told.canonical.as_deref());
        let standing = standing(told.seq, mention, intent);
        let mut deviations = Vec::new();
        let planned = intent.filter(|_| standing == AttemptStanding::Planned);
        let event = told.canonical.as_deref().and_then(parse);
        let plan = planned.and_then(Intent::data);
        if let (Some(plan), Some(acted)) = (&plan, event.as_ref().and_then(data_of)) {
            deviations = deviations_from(plan, acted);
        }
        Attempt { told, standing, deviations }
    }
}

/// The fields of an attempt beside its parameters, under the names that it may give them.
const FIELDS: [(&str, &[&str]); 3] = [
    ("skill_id", &["skill_id"]),
    ("target_class", &["target_class"]),
    ("environment", &["environment", "env"]),
];

/// What an attempt says otherwise than its intent, or in addition. What it passes over in silence
/// is no deviation.
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
