//! Intents for planners and operators: request, results of the gates, and standing.
//!
//! **Invariant:** all values are copied from the log. No gate runs again.

use super::intent::{Intent, data_of, parse};
use super::json::{confirmation, or_null, place};
use super::{EventRecord, Record};
use crate::answer::written;
use ipse_core::Ruling;
use ipse_core::intent::INTENT;
use ipse_core::json::Value;
use ipse_core::{EventRef, Seq, Time};

/// The standing of an intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntentStanding {
    /// The agent may act on it as requested.
    Admitted,
    /// The agent may act on it with the clamped parameters.
    Clamped,
    /// It waits for a person to decide.
    Waiting,
    /// A person confirmed it.
    Confirmed,
    /// A person declined it.
    Declined,
    /// A gate denied it.
    Denied,
}

impl IntentStanding {
    /// All standings.
    pub const ALL: [IntentStanding; 6] = [
        IntentStanding::Admitted,
        IntentStanding::Clamped,
        IntentStanding::Waiting,
        IntentStanding::Confirmed,
        IntentStanding::Declined,
        IntentStanding::Denied,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            IntentStanding::Admitted => "admitted",
            IntentStanding::Clamped => "clamped",
            IntentStanding::Waiting => "waiting",
            IntentStanding::Confirmed => "confirmed",
            IntentStanding::Declined => "declined",
            IntentStanding::Denied => "denied",
        }
    }

    /// The verdict of the gates that leads to it.
    pub fn verdict(self) -> &'static str {
        match self {
            IntentStanding::Admitted | IntentStanding::Clamped | IntentStanding::Denied => {
                self.name()
            }
            IntentStanding::Waiting | IntentStanding::Confirmed | IntentStanding::Declined => {
                "needs_confirmation"
            }
        }
    }

    /// Parses the name of a standing.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.name() == name)
    }
}

/// An intent of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    event_ref: EventRef,
    seq: Seq,
    time: Time,
    standing: IntentStanding,
    confirm_by: Option<Time>,
    /// The admitted parameters; `None` if the intent was denied.
    admitted_params: Option<String>,
    json: String,
}

impl Proposal {
    /// The intent of this name. `None` if it does not exist or is forgotten.
    pub fn named<R: Record>(record: &R, name: &EventRef) -> Result<Option<Self>, R::Error> {
        let intent = Intent::named(record, name)?;
        Ok(intent.as_ref().and_then(Proposal::of))
    }

    /// Reads an event as an intent. `None` if it is another event.
    pub fn at<R: Record>(record: &R, reported: EventRecord) -> Result<Option<Self>, R::Error> {
        if reported.event_type != INTENT {
            return Ok(None);
        }
        let intent = Intent::undecided(reported);
        // Only an intent that waits can have a decision.
        let waits = intent.ruling == Some(Ruling::NeedsConfirmation);
        let intent = if waits { Intent::new(record, intent.reported)? } else { intent };
        Ok(Proposal::of(&intent))
    }

    /// Reads a new event as an intent that has no decision yet.
    pub fn fresh(reported: EventRecord) -> Option<Self> {
        Proposal::of(&Intent::undecided(reported))
    }

    fn of(intent: &Intent) -> Option<Self> {
        let EventRecord { event_ref, seq, time, canonical, .. } = &intent.reported;
        let standing = IntentStanding::parse(intent.verdict()?.standing())?;
        let value = parse(canonical.as_deref()?)?;
        let data = data_of(&value)?;
        let decided = intent.confirmation.as_ref().map(confirmation);
        let members = place(event_ref, *seq, *time)
            .text("standing", standing.name())
            .raw("confirmation", or_null(decided));
        let members = data.iter().fold(members, |all, (name, value)| all.raw(name, written(value)));
        let confirm_by = data.get("confirm_by").and_then(Value::as_text);
        let confirm_by = confirm_by.and_then(|text| Time::parse(text).ok());
        let admitted_params = data.get("admitted_params").map(written);
        let (event_ref, seq, time, json) = (*event_ref, *seq, *time, members.finish());
        Some(Proposal { event_ref, seq, time, standing, confirm_by, admitted_params, json })
    }

    /// The name of the intent.
    pub fn event_ref(&self) -> EventRef {
        self.event_ref
    }

    /// The position in the log.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The time of the proposal.
    pub fn time(&self) -> Time {
        self.time
    }

    /// The admitted value of a number parameter. `None` if the agent may not act on the intent now
    /// ([`Proposal::may_act`]), or if the intent has no such number.
    pub fn admitted(&self, param: &str) -> Option<f64> {
        self.admitted_value(param, |value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    }

    /// Like [`Proposal::admitted`], for a text parameter.
    pub fn admitted_text(&self, param: &str) -> Option<String> {
        self.admitted_value(param, |value| value.as_text().map(str::to_owned))
    }

    /// Like [`Proposal::admitted`], for a boolean parameter.
    pub fn admitted_bool(&self, param: &str) -> Option<bool> {
        self.admitted_value(param, |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        })
    }

    fn admitted_value<T>(
        &self,
        param: &str,
        read: impl FnOnce(&Value<'_>) -> Option<T>,
    ) -> Option<T> {
        // An intent that waits or was declined also has admitted parameters.
        let params = self.admitted_params.as_deref().filter(|_| self.may_act())?;
        read(parse(params)?.as_object()?.get(param)?)
    }

    /// Whether the agent may act on it now.
    pub fn may_act(&self) -> bool {
        use IntentStanding::{Admitted, Clamped, Confirmed};
        matches!(self.standing, Admitted | Clamped | Confirmed)
    }

    /// The standing of the intent.
    pub fn standing(&self) -> IntentStanding {
        self.standing
    }

    /// The deadline for the confirmation, if any.
    pub fn confirm_by(&self) -> Option<Time> {
        self.confirm_by
    }

    /// The findings of the gates as sentences, in the order of the gates: why the intent was
    /// denied, clamped or needs a confirmation. Empty if it was admitted as requested.
    pub fn reasons(&self) -> Vec<String> {
        fn list<'v>(object: &'v Value<'_>, name: &str) -> &'v [Value<'v>] {
            match object.as_object().and_then(|object| object.get(name)) {
                Some(Value::Array(items)) => items,
                _ => &[],
            }
        }
        let Some(intent) = parse(&self.json) else { return Vec::new() };
        let findings = list(&intent, "gates").iter().flat_map(|gate| list(gate, "findings"));
        let detail =
            |finding: &Value<'_>| finding.as_object()?.get("detail")?.as_text().map(str::to_owned);
        findings.filter_map(detail).collect()
    }

    /// The intent as JSON.
    pub fn json(&self) -> &str {
        &self.json
    }
}
