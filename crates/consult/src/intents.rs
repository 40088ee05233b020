//! Checks the events that ipse wrote about intents against the log.
//!
//! **Invariants**
//! - One walk over the log in order is enough. Only the names of intents are kept that a decision
//!   may follow.
//! - A verdict is compared with the results of its gates. No gate runs here.
//! - Missing content is not a fault: a decision may be about a forgotten intent.

use crate::claim::{Basis, Status};
use ipse_core::event::{ACT, FORGET, MAX_DEPTH, PASS_RECORD, RULES};
use ipse_core::intent::{CONFIRMATION, INTENT, MAX_PLANNER_BYTES, confirmation_id};
use ipse_core::json::{Object, Value};
use ipse_core::text::printable;
use ipse_core::{EventRef, Ruling, Seq, Time, hex, is_housekeeping, json_parse};
use ipse_ledger::account::{Fault, house_parts};
use std::collections::BTreeMap;

/// The content of an event, as far as the verifier has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'c> {
    /// Canonical bytes.
    Bytes(&'c [u8]),
    /// The event is forgotten.
    Forgotten,
    /// The verifier does not have it: it is outside of the range, or damaged.
    Unknown,
}

/// An intent that a decision may follow.
enum Open {
    /// It waits, until this time if there is a deadline.
    Waits(Option<Time>),
    Forgotten,
    Unknown,
    /// The decision about it is at this position.
    Decided(Seq),
}

/// The intents and decisions of a log.
#[derive(Default)]
pub struct Intents {
    open: BTreeMap<EventRef, Open>,
    faults: Vec<Fault>,
    intents: u64,
    decisions: u64,
    unknown: u64,
}

impl Intents {
    /// Adds the next event of the log.
    pub fn event(&mut self, seq: Seq, name: EventRef, event_type: &str, content: Content<'_>) {
        match event_type {
            INTENT => self.intent(seq, name, content),
            CONFIRMATION => self.decision(seq, content),
            // These are checked by `ipse_ledger` and `ipse_audit`.
            PASS_RECORD | FORGET | RULES | ACT => {}
            unknown if is_housekeeping(unknown) => {
                let message = format!("`{}` is not a type that ipse writes", printable(unknown));
                self.faults.push((format!("seq {seq}"), message));
            }
            _ => {}
        }
    }

    /// The number of intents and of decisions.
    pub fn counts(&self) -> (u64, u64) {
        (self.intents, self.decisions)
    }

    /// The number of decisions about intents whose content the verifier does not have.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// The events that ipse cannot have written, with the reasons, in the order of the log.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    fn intent(&mut self, seq: Seq, name: EventRef, content: Content<'_>) {
        let bytes = match content {
            Content::Bytes(bytes) => bytes,
            Content::Forgotten => {
                self.open.insert(name, Open::Forgotten);
                return;
            }
            Content::Unknown => {
                self.open.insert(name, Open::Unknown);
                return;
            }
        };
        self.intents += 1;
        let mut fault = |message: &str| {
            self.faults.push((format!("intent at seq {seq}"), message.to_owned()));
        };
        let value = json_parse::parse(bytes, MAX_DEPTH).ok();
        let parts = value.as_ref().and_then(house_parts);
        if parts.as_ref().is_some_and(|parts| !is_intent_id(parts.id)) {
            fault("its id is not intent:<32 hex digits>");
        }
        let Some(recorded) = parts.and_then(|parts| Recorded::read(parts.data)) else {
            fault("cannot be read");
            // Whether it waited is unknown, so a decision about it is not another fault.
            self.open.insert(name, Open::Forgotten);
            return;
        };
        recorded.contradictions().into_iter().for_each(fault);
        if recorded.ruling == Ruling::NeedsConfirmation {
            self.open.insert(name, Open::Waits(recorded.confirm_by));
        }
    }

    fn decision(&mut self, seq: Seq, content: Content<'_>) {
        let Content::Bytes(bytes) = content else { return };
        self.decisions += 1;
        let mut fault = |message: String| {
            self.faults.push((format!("confirmation at seq {seq}"), message));
        };
        let value = json_parse::parse(bytes, MAX_DEPTH).ok();
        let Some(decision) = value.as_ref().and_then(Decision::read) else {
            return fault("cannot be read".to_owned());
        };
        let Decision { id, time, intent, confirmed } = decision;
        match self.open.get(&intent) {
            None => fault(format!("{intent} is not an earlier intent that waited for a decision")),
            Some(Open::Decided(first)) => {
                return fault(format!(
                    "is a duplicate: seq {first} is the decision about {intent}"
                ));
            }
            Some(Open::Waits(Some(by))) if confirmed && time > *by => {
                fault(format!("is late: {intent} could be confirmed until {by}"));
            }
            Some(Open::Unknown) => self.unknown += 1,
            Some(Open::Waits(_) | Open::Forgotten) => {}
        }
        if id != confirmation_id(&intent) {
            fault(format!("its id is not {}", confirmation_id(&intent)));
        }
        self.open.insert(intent, Open::Decided(seq));
    }
}

fn is_intent_id(id: &str) -> bool {
    id.strip_prefix("intent:").and_then(hex::decode::<16>).is_some()
}

/// The form of a member.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Object,
    List,
    Count,
}

impl Form {
    fn fits(self, value: &Value<'_>) -> bool {
        match self {
            Form::Text => value.as_text().is_some(),
            Form::Object => value.as_object().is_some(),
            Form::List => matches!(value, Value::Array(_)),
            Form::Count => value.as_count().is_some(),
        }
    }
}

/// The members of an intent's data, and whether each is required.
const MEMBERS: [(&str, Form, bool); 16] = [
    ("admitted_params", Form::Object, false),
    ("confirm_by", Form::Text, false),
    ("consultation", Form::Object, false),
    ("consultation_basis", Form::Text, false),
    ("consultation_id", Form::Text, false),
    ("contract", Form::List, false),
    ("environment", Form::Text, false),
    ("gates", Form::List, true),
    ("gates_version", Form::Count, false),
    ("params", Form::Object, true),
    ("planner", Form::Object, false),
    ("recent", Form::Count, false),
    ("skill_id", Form::Text, true),
    ("target_class", Form::Text, false),
    ("token_id", Form::Text, true),
    ("verdict", Form::Text, true),
];

/// The members of a planner, in canonical order.
const PLANNER: [&str; 2] = ["name", "version"];

/// Whether a value names a planner as ipse records one.
fn is_planner(value: &Value<'_>) -> bool {
    let Some(planner) = value.as_object() else { return false };
    let is_label = |text: &str| {
        (1..=MAX_PLANNER_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
    };
    planner.iter().map(|(name, _)| name).eq(PLANNER)
        && planner.iter().all(|(_, value)| value.as_text().is_some_and(is_label))
}

/// Whether a value is the part of a consultation that a planner can give.
fn is_basis(value: &Value<'_>) -> bool {
    value.as_text().and_then(Basis::parse).is_some()
}

/// Whether a value is the list of attempts that decided a contract: an event ref or null for each
/// line.
fn is_contract(value: &Value<'_>) -> bool {
    let Value::Array(lines) = value else { return false };
    let is_ref = |value: &Value<'_>| value.as_text().and_then(EventRef::parse).is_some();
    !lines.is_empty() && lines.iter().all(|line| *line == Value::Null || is_ref(line))
}

/// The result of the gates as an intent records it.
struct Recorded {
    ruling: Ruling,
    /// The most severe result of its gates. `None` if they are not the gates that ipse runs.
    gravest: Option<Ruling>,
    admits: bool,
    confirm_by: Option<Time>,
}

impl Recorded {
    fn read(data: &Object<'_>) -> Option<Self> {
        let fits = |(name, form, always): &(&str, Form, bool)| {
            data.get(name).map_or(!always, |value| form.fits(value))
        };
        let known = |name: &str| MEMBERS.iter().any(|(member, _, _)| *member == name);
        let formed = MEMBERS.iter().all(fits) && data.iter().all(|(name, _)| known(name));
        let consulted = ["consultation", "consultation_id"].map(|name| data.get(name).is_some());
        let named = data.get("planner").is_none_or(is_planner);
        let based = data.get("consultation_basis").is_none_or(is_basis);
        let preceded = data.get("contract").is_none_or(is_contract);
        let unfounded = data.get("consultation_basis").is_some() && !consulted[0];
        if !formed || !named || !based || !preceded || unfounded || consulted[0] != consulted[1] {
            return None;
        }
        let text = |name: &str| data.get(name).and_then(Value::as_text);
        let Some(Value::Array(gates)) = data.get("gates") else { return None };
        Some(Recorded {
            ruling: Ruling::parse(text("verdict")?)?,
            gravest: gravest(gates),
            admits: data.get("admitted_params").is_some(),
            confirm_by: text("confirm_by").map(Time::parse).transpose().ok()?,
        })
    }

    fn contradictions(&self) -> Vec<&'static str> {
        let waits = self.ruling == Ruling::NeedsConfirmation;
        let rules = [
            (
                self.gravest.is_none(),
                "its gates are not admission, policy and contract up to the first that denies, \
                 then audit, each with a valid result",
            ),
            (
                self.gravest.is_some_and(|gravest| gravest != self.ruling),
                "its verdict is not the most severe result of its gates",
            ),
            (
                self.admits == (self.ruling == Ruling::Denied),
                "it must have admitted_params if and only if it is not denied",
            ),
            (self.confirm_by.is_some() && !waits, "it has confirm_by but does not wait"),
        ];
        rules.into_iter().filter(|(wrong, _)| *wrong).map(|(_, message)| message).collect()
    }
}

/// The gates that judge, in order, and the results that each may have.
const GATES: [(&str, &[&str]); 3] = [
    ("admission", &["passed", "denied"]),
    ("policy", &["passed", "clamped", "denied"]),
    ("contract", &["passed", "needs_confirmation", "denied"]),
];

/// The most severe result of the gates of an intent. `None` if these are not the gates that ipse
/// runs: in order up to the first that denies, then the audit.
fn gravest(gates: &[Value<'_>]) -> Option<Ruling> {
    let (audit, judged) = gates.split_last()?;
    let status = result(audit, "audit")?;
    let statuses = [Status::Verified, Status::Unverified, Status::ForgottenSince].map(Status::name);
    if status != "none" && !statuses.contains(&status) {
        return None;
    }
    let mut rulings = Vec::new();
    for (place, gate) in judged.iter().enumerate() {
        let (name, results) = GATES.get(place)?;
        let result = result(gate, name).filter(|result| results.contains(result))?;
        rulings.push(Ruling::parse(result).unwrap_or(Ruling::Admitted));
    }
    let (last, before) = rulings.split_last()?;
    let ended = *last == Ruling::Denied || judged.len() == GATES.len();
    (ended && !before.contains(&Ruling::Denied)).then(|| rulings.iter().copied().max())?
}

/// The result of a gate, if it has that name.
fn result<'v>(gate: &'v Value<'_>, name: &str) -> Option<&'v str> {
    let gate = gate.as_object()?;
    let named = gate.get("gate")?.as_text()? == name;
    gate.get("result")?.as_text().filter(|_| named)
}

/// The members of a confirmation's data, in canonical order.
const DECISION_MEMBERS: [&str; 3] = ["decision", "intent", "token_id"];

/// The content of a confirmation.
struct Decision<'v> {
    id: &'v str,
    time: Time,
    intent: EventRef,
    confirmed: bool,
}

impl<'v> Decision<'v> {
    fn read(event: &'v Value<'_>) -> Option<Self> {
        let parts = house_parts(event)?;
        if !parts.data.iter().map(|(name, _)| name).eq(DECISION_MEMBERS) {
            return None;
        }
        let text = |name: &str| parts.data.get(name)?.as_text();
        text("token_id")?;
        let confirmed = match text("decision")? {
            "confirmed" => true,
            "declined" => false,
            _ => return None,
        };
        let (id, time) = (parts.id, Time::parse(parts.time).ok()?);
        Some(Decision { id, time, intent: EventRef::parse(text("intent")?)?, confirmed })
    }
}
