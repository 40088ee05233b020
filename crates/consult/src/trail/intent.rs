//! Intents: what a planner asked for, what the gates said, and what a person decided.

use super::attempt::{Mention, mention};
use super::{EventRecord, Record};
use crate::answer::written;
use ipse_core::event::MAX_DEPTH;
use ipse_core::intent::{CONFIRMATION, INTENT, confirmation_id};
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, HOUSE_SOURCE, Ruling, Seq, Time, json_parse};

/// What a person decided about an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Confirmation {
    pub(super) seq: Seq,
    pub(super) event_ref: EventRef,
    pub(super) time: Time,
    pub(super) confirmed: bool,
    /// Whose decision it was.
    pub(super) token_id: Option<String>,
}

impl Confirmation {
    /// The word for the decision.
    pub(super) fn decision(&self) -> &'static str {
        if self.confirmed { "confirmed" } else { "declined" }
    }

    /// The one decision about an intent: its name follows from the intent's.
    fn about<R: Record>(record: &R, intent: &EventRecord) -> Result<Option<Self>, R::Error> {
        let name = EventRef::new(HOUSE_SOURCE, &confirmation_id(&intent.event_ref));
        let Some(seq) = record.find(&name)? else { return Ok(None) };
        let told = record.event(seq)?.filter(|told| told.event_type == CONFIRMATION);
        Ok(told.and_then(|told| Confirmation::read(&told, intent)))
    }

    fn read(told: &EventRecord, intent: &EventRecord) -> Option<Self> {
        let canonical = told.canonical.as_deref()?;
        if mention(Some(canonical)) != Mention::Of(intent.event_ref) || told.seq <= intent.seq {
            return None;
        }
        let value = parse(canonical)?;
        let data = data_of(&value)?;
        let confirmed = match data.get("decision")?.as_text()? {
            "confirmed" => true,
            "declined" => false,
            _ => return None,
        };
        let token_id = data.get("token_id").and_then(Value::as_text).map(str::to_owned);
        let EventRecord { seq, event_ref, time, .. } = *told;
        Some(Confirmation { seq, event_ref, time, confirmed, token_id })
    }
}

/// What became of an intent at the gates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    /// None once the intent is forgotten.
    pub(super) ruling: Option<Ruling>,
    /// What may be acted with, as JSON.
    pub(super) admitted_params: Option<String>,
    /// What each gate said, as JSON.
    pub(super) gates: Vec<String>,
    /// Whose intent it was.
    pub(super) token_id: Option<String>,
    pub(super) confirmation: Option<Confirmation>,
}

impl Verdict {
    /// How the intent stands: the word on the wire.
    pub(super) fn standing(&self) -> &'static str {
        match (self.ruling, &self.confirmation) {
            (Some(Ruling::NeedsConfirmation), None) => "waiting",
            (Some(Ruling::NeedsConfirmation) | None, Some(decided)) => decided.decision(),
            (Some(ruling), _) => ruling.name(),
            (None, None) => "forgotten",
        }
    }
}

/// An intent of the log, with what was decided about it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Intent {
    pub(super) told: EventRecord,
    /// None if it is forgotten, or says nothing that can be read.
    pub(super) ruling: Option<Ruling>,
    pub(super) confirmation: Option<Confirmation>,
}

impl Intent {
    /// The intent of that name, if it is one.
    pub(super) fn named<R: Record>(record: &R, name: &EventRef) -> Result<Option<Self>, R::Error> {
        let Some(seq) = record.find(name)? else { return Ok(None) };
        match record.event(seq)?.filter(|told| told.event_type == INTENT) {
            Some(told) => Intent::new(record, told).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn new<R: Record>(record: &R, told: EventRecord) -> Result<Self, R::Error> {
        let confirmation = Confirmation::about(record, &told)?;
        Ok(Intent { confirmation, ..Intent::undecided(told) })
    }

    pub(super) fn undecided(told: EventRecord) -> Self {
        let ruling = told.canonical.as_deref().and_then(ruling);
        Intent { told, ruling, confirmation: None }
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.told.canonical.is_none()
    }

    /// What it says; none if that is gone, or no verdict of the gates.
    pub(super) fn data(&self) -> Option<Data<'_>> {
        self.ruling?;
        let value = parse(self.told.canonical.as_deref()?)?;
        Some(Data { seq: self.told.seq, value })
    }

    /// What became of it at the gates, as far as that is known.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let confirmation = self.confirmation.clone();
        if self.is_forgotten() {
            // Who decided what about it is not forgotten with it.
            confirmation.as_ref()?;
            let (ruling, gates) = (None, Vec::new());
            let (admitted_params, token_id) = (None, None);
            return Some(Verdict { ruling, admitted_params, gates, token_id, confirmation });
        }
        let data = self.data()?;
        let data = data.object();
        let gates = match data.get("gates") {
            Some(Value::Array(gates)) => gates.iter().map(written).collect(),
            _ => Vec::new(),
        };
        let params = data.get("admitted_params").filter(|it| it.as_object().is_some());
        Some(Verdict {
            ruling: self.ruling,
            admitted_params: params.map(written),
            gates,
            token_id: data.get("token_id").and_then(Value::as_text).map(str::to_owned),
            confirmation,
        })
    }
}

/// What an intent says, read.
pub(crate) struct Data<'d> {
    pub(super) seq: Seq,
    value: Value<'d>,
}

impl<'d> Data<'d> {
    /// Its members.
    pub(super) fn object(&self) -> Object<'d> {
        data_of(&self.value).cloned().unwrap_or_default()
    }
}

/// An event's bytes as a value.
pub(super) fn parse(canonical: &str) -> Option<Value<'_>> {
    json_parse::parse(canonical.as_bytes(), MAX_DEPTH).ok()
}

/// The `data` of an event.
pub(super) fn data_of<'v, 'd>(event: &'v Value<'d>) -> Option<&'v Object<'d>> {
    event.as_object()?.get("data")?.as_object()
}

/// What the gates said, if it can be read.
fn ruling(canonical: &str) -> Option<Ruling> {
    let value = parse(canonical)?;
    let word = data_of(&value)?.get("verdict")?.as_text()?;
    Ruling::parse(word)
}
