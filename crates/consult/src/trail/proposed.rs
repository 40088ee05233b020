//! An intent as planners and operators see it: what was asked, what the gates said, and where it
//! stands.
//!
//! **Invariant:** what is shown is what stands in the log; nothing is judged again.

use super::intent::{Intent, data_of, parse};
use super::json::{confirmation, or_null, place};
use super::{EventRecord, Record};
use crate::answer::written;
use ipse_core::Ruling;
use ipse_core::intent::INTENT;
use ipse_core::json::Value;
use ipse_core::{EventRef, Seq, Time};

/// Where an intent stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntentStanding {
    /// It may be acted on as it was asked.
    Admitted,
    /// It may be acted on with what the gates made of it.
    Clamped,
    /// A person has to decide.
    Waiting,
    /// A person let it through.
    Confirmed,
    /// A person did not.
    Declined,
    /// The gates did not let it through.
    Denied,
}

impl IntentStanding {
    /// All of them.
    pub const ALL: [IntentStanding; 6] = [
        IntentStanding::Admitted,
        IntentStanding::Clamped,
        IntentStanding::Waiting,
        IntentStanding::Confirmed,
        IntentStanding::Declined,
        IntentStanding::Denied,
    ];

    /// The word on the wire.
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

    /// The verdict behind it.
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

    /// The standing that a word names.
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
    /// The parameters as the gates judged them; none if they denied it.
    admitted_params: Option<String>,
    json: String,
}

impl Proposal {
    /// The intent of that name; `None` if there is none, or if it was forgotten.
    pub fn named<R: Record>(record: &R, name: &EventRef) -> Result<Option<Self>, R::Error> {
        let intent = Intent::named(record, name)?;
        Ok(intent.as_ref().and_then(Proposal::of))
    }

    /// The intent that an event is; `None` if it is none.
    pub fn at<R: Record>(record: &R, told: EventRecord) -> Result<Option<Self>, R::Error> {
        if told.event_type != INTENT {
            return Ok(None);
        }
        let intent = Intent::undecided(told);
        // About anything else nobody decides.
        let waits = intent.ruling == Some(Ruling::NeedsConfirmation);
        let intent = if waits { Intent::new(record, intent.told)? } else { intent };
        Ok(Proposal::of(&intent))
    }

    /// The intent that an event is which nobody can have decided about yet.
    pub fn fresh(told: EventRecord) -> Option<Self> {
        Proposal::of(&Intent::undecided(told))
    }

    fn of(intent: &Intent) -> Option<Self> {
        let EventRecord { event_ref, seq, time, canonical, .. } = &intent.told;
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

    /// Its name.
    pub fn event_ref(&self) -> EventRef {
        self.event_ref
    }

    /// Its position in the log.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// When it was proposed.
    pub fn time(&self) -> Time {
        self.time
    }

    /// The number that a parameter may be acted with; `None` if the agent may not act on the intent
    /// now ([`Proposal::may_act`]), or if the intent has no such number.
    pub fn admitted(&self, param: &str) -> Option<f64> {
        self.admitted_value(param, |value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    }

    /// The same for a parameter that is a text.
    pub fn admitted_text(&self, param: &str) -> Option<String> {
        self.admitted_value(param, |value| value.as_text().map(str::to_owned))
    }

    /// The same for a parameter that is a boolean.
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
        // An intent that waits or was declined has these parameters, too.
        let params = self.admitted_params.as_deref().filter(|_| self.may_act())?;
        read(parse(params)?.as_object()?.get(param)?)
    }

    /// Whether the agent may act on it now.
    pub fn may_act(&self) -> bool {
        use IntentStanding::{Admitted, Clamped, Confirmed};
        matches!(self.standing, Admitted | Clamped | Confirmed)
    }

    /// Where it stands.
    pub fn standing(&self) -> IntentStanding {
        self.standing
    }

    /// Until when it may be confirmed, if that is bounded.
    pub fn confirm_by(&self) -> Option<Time> {
        self.confirm_by
    }

    /// For programs.
    pub fn json(&self) -> &str {
        &self.json
    }
}
