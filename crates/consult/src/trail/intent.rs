//! Intents: the request of a planner, the results of the gates, and the decision of a person.

use super::attempt::{Mention, mention};
use super::{EventRecord, Record};
use crate::answer::written;
use ipse_core::event::MAX_DEPTH;
use ipse_core::intent::{CONFIRMATION, INTENT, confirmation_id};
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, HOUSE_SOURCE, Ruling, Seq, Time, json_parse};

/// A person's decision about an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Confirmation {
    pub(super) seq: Seq,
    pub(super) event_ref: EventRef,
    pub(super) time: Time,
    pub(super) confirmed: bool,
    /// The token that decided.
    pub(super) token_id: Option<String>,
}

impl Confirmation {
    /// The decision in JSON.
    pub(super) fn decision(&self) -> &'static str {
        if self.confirmed { "confirmed" } else { "declined" }
    }

    /// The only decision about an intent. Its id is computed from the name of the intent.
    fn about<R: Record>(record: &R, intent: &EventRecord) -> Result<Option<Self>, R::Error> {
        let name = EventRef::new(HOUSE_SOURCE, &confirmation_id(&intent.event_ref));
        let Some(seq) = record.find(&name)? else { return Ok(None) };
        let reported = record.event(seq)?.filter(|reported| reported.event_type == CONFIRMATION);
        Ok(reported.and_then(|reported| Confirmation::read(&reported, intent)))
    }

    fn read(reported: &EventRecord, intent: &EventRecord) -> Option<Self> {
        let canonical = reported.canonical.as_deref()?;
        if mention(Some(canonical)) != Mention::Of(intent.event_ref) || reported.seq <= intent.seq {
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
        let EventRecord { seq, event_ref, time, .. } = *reported;
        Some(Confirmation { seq, event_ref, time, confirmed, token_id })
    }
}

/// The result of an intent at the gates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    /// `None` if the intent is forgotten.
    pub(super) ruling: Option<Ruling>,
    /// The admitted parameters as JSON.
    pub(super) admitted_params: Option<String>,
    /// The result of each gate as JSON.
    pub(super) gates: Vec<String>,
    /// The token that proposed the intent.
    pub(super) token_id: Option<String>,
    pub(super) confirmation: Option<Confirmation>,
}

impl Verdict {
    /// The standing of the intent, in JSON.
    pub(super) fn standing(&self) -> &'static str {
        match (self.ruling, &self.confirmation) {
            (Some(Ruling::NeedsConfirmation), None) => "waiting",
            (Some(Ruling::NeedsConfirmation) | None, Some(decided)) => decided.decision(),
            (Some(ruling), _) => ruling.name(),
            (None, None) => "forgotten",
        }
    }
}

/// An intent of the log, with the decision about it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Intent {
    pub(super) reported: EventRecord,
    /// `None` if the intent is forgotten or cannot be read.
    pub(super) ruling: Option<Ruling>,
    pub(super) confirmation: Option<Confirmation>,
}

impl Intent {
    /// The intent of this name, if the event is an intent.
    pub(super) fn named<R: Record>(record: &R, name: &EventRef) -> Result<Option<Self>, R::Error> {
        let Some(seq) = record.find(name)? else { return Ok(None) };
        match record.event(seq)?.filter(|reported| reported.event_type == INTENT) {
            Some(reported) => Intent::new(record, reported).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn new<R: Record>(record: &R, reported: EventRecord) -> Result<Self, R::Error> {
        let confirmation = Confirmation::about(record, &reported)?;
        Ok(Intent { confirmation, ..Intent::undecided(reported) })
    }

    pub(super) fn undecided(reported: EventRecord) -> Self {
        let ruling = reported.canonical.as_deref().and_then(ruling);
        Intent { reported, ruling, confirmation: None }
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.reported.canonical.is_none()
    }

    /// Its data. `None` if it is forgotten or has no verdict of the gates.
    pub(super) fn data(&self) -> Option<Data<'_>> {
        self.ruling?;
        let value = parse(self.reported.canonical.as_deref()?)?;
        Some(Data { seq: self.reported.seq, value })
    }

    /// Its result at the gates, if known.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let confirmation = self.confirmation.clone();
        if self.is_forgotten() {
            // The decision is kept when the intent is forgotten.
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

/// The parsed content of an intent.
pub(crate) struct Data<'d> {
    pub(super) seq: Seq,
    value: Value<'d>,
}

impl<'d> Data<'d> {
    /// The members of `data`.
    pub(super) fn object(&self) -> Object<'d> {
        data_of(&self.value).cloned().unwrap_or_default()
    }
}

/// Parses an event.
pub(super) fn parse(canonical: &str) -> Option<Value<'_>> {
    json_parse::parse(canonical.as_bytes(), MAX_DEPTH).ok()
}

/// The `data` of an event.
pub(super) fn data_of<'v, 'd>(event: &'v Value<'d>) -> Option<&'v Object<'d>> {
    event.as_object()?.get("data")?.as_object()
}

/// The verdict of the gates, if it can be read.
fn ruling(canonical: &str) -> Option<Ruling> {
    let value = parse(canonical)?;
    let word = data_of(&value)?.get("verdict")?.as_text()?;
    Ruling::parse(word)
}
