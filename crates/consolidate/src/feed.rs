//! The contributions of an event, stated once for every way of summing.
//!
//! Texts are of any type that can be copied: string slices when one event is folded, small integers
//! when a whole log is.
//!
//! **Invariant:** a contribution is a function of the event's typed columns alone.

use crate::rules::Skip;
use ipse_core::{EventKind, FactKind, Outcome};

/// One event's typed columns.
#[derive(Clone, Copy)]
pub(crate) struct Seen<T> {
    pub(crate) kind: EventKind,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) skill: Option<T>,
    pub(crate) target: Option<T>,
    pub(crate) environment: Option<T>,
    pub(crate) zone: Option<T>,
    pub(crate) reason: Option<T>,
}

/// The observed value of one property.
#[derive(Clone, Copy)]
pub(crate) enum Trait<T> {
    Number(i64),
    Text(T),
}

/// The contribution of an event to one fact.
#[derive(Clone, Copy)]
pub(crate) enum Part<T> {
    /// An attempt with this outcome, and its reason if it failed.
    Ended(Outcome, Option<T>),
    /// A failure of this pattern.
    Failure,
    /// An incident, with its reason.
    Incident(Option<T>),
    /// A property.
    Property(Trait<T>),
}

/// The destination of contributions.
pub(crate) trait Sink<T> {
    /// The text of a missing part.
    fn any(&self) -> T;

    /// Adds a part to the fact of this kind and key (with as many texts as the kind has). `params`
    /// is true if the event's parameters belong to it, and `supports` if it is an observation.
    fn add(&mut self, kind: FactKind, key: [T; 3], part: Part<T>, params: bool, supports: bool);
}

/// Passes every contribution of an event to `sink`; if there are none, returns the reason.
pub(crate) fn feed<T: Copy>(
    event: &Seen<T>,
    properties: impl Iterator<Item = (T, Trait<T>)>,
    sink: &mut impl Sink<T>,
) -> Result<(), Skip> {
    let mut fed = match event.kind {
        EventKind::Housekeeping => return Err(Skip::Housekeeping),
        EventKind::ExecutionResult => attempt(event, sink),
        EventKind::Incident => incident(event, sink),
        EventKind::Other => false,
    };
    if let Some(target) = event.target {
        for (name, property) in properties {
            let key = [target, name, sink.any()];
            sink.add(FactKind::ObjectProperty, key, Part::Property(property), false, true);
            fed = true;
        }
    }
    if fed { Ok(()) } else { Err(why_nothing(event)) }
}

fn attempt<T: Copy>(event: &Seen<T>, sink: &mut impl Sink<T>) -> bool {
    let Some(outcome) = event.outcome else { return false };
    let counted = matches!(outcome, Outcome::Success | Outcome::Failed);
    let any = sink.any();
    let ended = Part::Ended(outcome, event.reason);
    if let Some(skill) = event.skill {
        let target = event.target.unwrap_or(any);
        let key = [skill, target, event.environment.unwrap_or(any)];
        sink.add(FactKind::SkillSuccessRate, key, ended, counted, counted);
        if let (Outcome::Failed, Some(reason)) = (outcome, event.reason) {
            let key = [skill, target, reason];
            sink.add(FactKind::InteractionPattern, key, Part::Failure, true, true);
        }
    }
    let zone = event.zone.filter(|_| counted);
    if let Some(zone) = zone {
        sink.add(FactKind::ZoneRisk, [zone, any, any], ended, false, true);
    }
    event.skill.is_some() || zone.is_some()
}

fn incident<T: Copy>(event: &Seen<T>, sink: &mut impl Sink<T>) -> bool {
    if let Some(zone) = event.zone {
        let any = sink.any();
        sink.add(FactKind::ZoneRisk, [zone, any, any], Part::Incident(event.reason), false, true);
    }
    event.zone.is_some()
}

fn why_nothing<T>(event: &Seen<T>) -> Skip {
    match (event.kind, event.outcome) {
        (EventKind::Housekeeping, _) => Skip::Housekeeping,
        (EventKind::Incident, _) => Skip::NoZone,
        (EventKind::Other, _) => Skip::NoObject,
        (EventKind::ExecutionResult, None) => Skip::NoOutcome,
        (EventKind::ExecutionResult, Some(Outcome::Success | Outcome::Failed)) => {
            Skip::NoSkillOrZone
        }
        (EventKind::ExecutionResult, Some(_)) => Skip::OutcomeNotCounted,
    }
}

/// The number of texts in the key of a kind.
pub(crate) fn key_length(kind: FactKind) -> usize {
    match kind {
        FactKind::SkillSuccessRate | FactKind::InteractionPattern => 3,
        FactKind::ObjectProperty => 2,
        FactKind::SkillAdvice | FactKind::ZoneRisk => 1,
    }
}
