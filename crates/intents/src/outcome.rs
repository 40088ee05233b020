//! The outcome of an intent, reported without composing an event: skill, target and parameters are
//! copied from the intent.
//!
//! **Invariants**
//! - Only an intent that may be acted on has an outcome: admitted, clamped or confirmed.
//! - The id of the event is derived from the intent's ref. So the log has at most one outcome of an
//!   intent for each source, and a report that is sent again is a duplicate. If the report has no
//!   time, the time of the stored event is used, and the log compares the rest.
//! - The event is a producer's. The door validates it like any other.

use ipse_core::event::{EXECUTION_RESULT, MAX_DEPTH};
use ipse_core::intent::outcome_id;
use ipse_core::json::{Members, Object, Value, quoted};
use ipse_core::{Admitted, EventRef, MAX_TEXT_BYTES, Outcome, Time, json_parse};
use ipse_door::{MAX_EVENT_BYTES, Origin, Refusal, admit};
use ipse_engine::{Appended, Error, Host, IntentStanding as Standing, Proposal};
use ipse_inspect::Look;
use ipse_inspect::answer::written;
use std::fmt;

const MEMBERS: [&str; 6] = ["outcome", "success", "failure_reason", "params", "object", "time"];
/// The members that are copied from the intent.
const TAKEN_OVER: [&str; 3] = ["skill_id", "target_class", "environment"];

/// How acting on an intent ended, as a producer reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    outcome: Outcome,
    failure_reason: Option<String>,
    /// Canonical JSON. The default is the admitted parameters.
    params: Option<String>,
    /// Canonical JSON.
    object: Option<String>,
    /// The time as it was sent. The default is the time of the stored event, or now.
    time: Option<String>,
}

/// The reason why a report was rejected. Nothing was stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OutcomeError {
    /// The report is not valid.
    Bad {
        /// The violated rule.
        rule: &'static str,
        /// The member that violates the rule.
        field: String,
        /// The description of the error.
        message: String,
    },
    /// The intent is unknown or was forgotten.
    NoIntent,
    /// The intent may not be acted on.
    NotAdmitted(Standing),
    /// The door or the log rejected the event.
    Refused(Refusal),
}

impl OutcomeError {
    fn bad(field: &str, rule: &'static str, message: impl Into<String>) -> Self {
        let field = ipse_door::printable(field);
        OutcomeError::Bad { rule, field, message: message.into() }
    }

    /// The error code in HTTP problems.
    pub fn code(&self) -> &'static str {
        match self {
            OutcomeError::Bad { .. } => "bad_outcome",
            OutcomeError::NoIntent => "not_found",
            OutcomeError::NotAdmitted(_) => "not_admitted",
            OutcomeError::Refused(refusal) => refusal.rule.code(),
        }
    }
}

impl fmt::Display for OutcomeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutcomeError::Bad { rule, field, message } if field.is_empty() => {
                write!(f, "{message} [{rule}]")
            }
            OutcomeError::Bad { rule, field, message } => {
                write!(f, "`{field}`: {message} [{rule}]")
            }
            OutcomeError::NoIntent => f.write_str("the intent is unknown or was forgotten"),
            OutcomeError::NotAdmitted(standing) => write!(
                f,
                "this intent is {}: only an intent that is admitted, clamped or confirmed has an \
                 outcome; append an event for the action instead",
                standing.name()
            ),
            OutcomeError::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for OutcomeError {}

impl Report {
    /// Reads the JSON of a report.
    pub fn read(body: &[u8]) -> Result<Self, OutcomeError> {
        if body.len() > MAX_EVENT_BYTES {
            let message = format!("{} bytes; at most {MAX_EVENT_BYTES} are allowed", body.len());
            return Err(OutcomeError::bad("", "too_large", message));
        }
        let value = json_parse::parse(body, MAX_DEPTH).map_err(|error| {
            let refusal = Refusal::json(&error);
            OutcomeError::bad(&refusal.field, refusal.rule.code(), refusal.message)
        })?;
        let Some(members) = value.as_object() else {
            return Err(OutcomeError::bad("", "not_an_object", "an outcome is a JSON object"));
        };
        if let Some((name, _)) = members.iter().find(|(name, _)| !MEMBERS.contains(name)) {
            let message = format!("no such member; there are {}", MEMBERS.join(", "));
            return Err(OutcomeError::bad(name, "unknown_member", message));
        }
        Ok(Report {
            outcome: ended(members)?,
            failure_reason: reason(members)?,
            params: object(members, "params")?,
            object: object(members, "object")?,
            time: text(members, "time")?,
        })
    }

    /// Composes the event that reports the outcome of an intent.
    pub fn event(
        &self,
        look: &Look,
        intent: &EventRef,
        source: &str,
        host: &mut dyn Host,
    ) -> Result<Result<Admitted, OutcomeError>, Error> {
        let Some(proposed) = look.intent(intent)? else { return Ok(Err(OutcomeError::NoIntent)) };
        if !proposed.may_act() {
            return Ok(Err(OutcomeError::NotAdmitted(proposed.standing())));
        }
        let id = outcome_id(intent);
        let time = match &self.time {
            // Normalise the time, so that the stored time equals the text in the event.
            Some(text) => Time::parse(text).map_or_else(|_| text.clone(), |time| time.to_string()),
            None => {
                let stored = look.time_of(&EventRef::new(source, &id))?;
                stored.unwrap_or_else(|| host.now()).to_string()
            }
        };
        let event = Members::new()
            .text("id", &id)
            .text("source", source)
            .text("type", EXECUTION_RESULT)
            .text("time", &time)
            .raw("data", self.data(&proposed));
        let event = admit(event.finish().as_bytes(), Origin::Producer, || host.salt());
        Ok(event.map_err(OutcomeError::Refused))
    }

    /// Whether to compose and append the event again: another report of this intent was stored
    /// after this one had read the stored time, so this one has another time.
    pub fn is_to_repeat(&self, appended: Appended) -> bool {
        self.time.is_none() && matches!(appended, Appended::Conflict(_))
    }

    /// Reports the outcome of an intent. `append` stores the event, durably.
    pub fn send(
        &self,
        look: &Look,
        intent: &EventRef,
        source: &str,
        host: &mut dyn Host,
        mut append: impl FnMut(&Admitted) -> Result<Appended, Error>,
    ) -> Result<Result<(Admitted, Appended), OutcomeError>, Error> {
        for last in [false, true] {
            let event = match self.event(look, intent, source, host)? {
                Ok(event) => event,
                Err(unreported) => return Ok(Err(unreported)),
            };
            let appended = append(&event)?;
            if last || !self.is_to_repeat(appended) {
                return Ok(Ok((event, appended)));
            }
        }
        unreachable!("BUG: the last round returns")
    }

    fn data(&self, proposed: &Proposal) -> String {
        let intent = json_parse::parse(proposed.json().as_bytes(), MAX_DEPTH).ok();
        let intent = intent.as_ref().and_then(Value::as_object);
        let said = |name: &str| intent.and_then(|intent| intent.get(name)).map(written);
        let data =
            TAKEN_OVER.iter().fold(Members::new(), |data, name| data.optional(*name, said(name)));
        data.text("intent", &proposed.event_ref().to_string())
            .text("outcome", self.outcome.name())
            .optional("failure_reason", self.failure_reason.as_deref().map(quoted))
            .optional("params", self.params.clone().or_else(|| said("admitted_params")))
            .optional("object", self.object.as_ref())
            .finish()
    }
}

/// Reads the outcome from `outcome` or `success`. Exactly one of them is required.
fn ended(members: &Object<'_>) -> Result<Outcome, OutcomeError> {
    match (members.get("outcome"), members.get("success")) {
        (Some(_), Some(_)) => {
            Err(OutcomeError::bad("success", "ambiguous", "give outcome or success, not both"))
        }
        (None, None) => Err(OutcomeError::bad("outcome", "missing", "give outcome or success")),
        (None, Some(Value::Bool(true))) => Ok(Outcome::Success),
        (None, Some(Value::Bool(false))) => Ok(Outcome::Failed),
        (None, Some(_)) => {
            Err(OutcomeError::bad("success", "not_boolean", "must be true or false"))
        }
        (Some(word), None) => word.as_text().and_then(Outcome::parse).ok_or_else(|| {
            let words = Outcome::ALL.map(Outcome::name).join(", ");
            OutcomeError::bad("outcome", "unknown_word", format!("must be one of {words}"))
        }),
    }
}

/// Reads the reason of a failure. It must fit the key of a fact.
fn reason(members: &Object<'_>) -> Result<Option<String>, OutcomeError> {
    let field = "failure_reason";
    let reason = text(members, field)?;
    match reason.as_deref().map(str::len) {
        Some(0) => Err(OutcomeError::bad(field, "empty", "must not be empty")),
        Some(bytes) if bytes > MAX_TEXT_BYTES => {
            let message = format!("{bytes} bytes; at most {MAX_TEXT_BYTES} are allowed");
            Err(OutcomeError::bad(field, "too_long", message))
        }
        _ => Ok(reason),
    }
}

fn text(members: &Object<'_>, field: &str) -> Result<Option<String>, OutcomeError> {
    match members.get(field) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.clone().into_owned())),
        Some(_) => Err(OutcomeError::bad(field, "not_text", "must be a string, or left out")),
    }
}

fn object(members: &Object<'_>, field: &str) -> Result<Option<String>, OutcomeError> {
    match members.get(field) {
        None => Ok(None),
        Some(value @ Value::Object(_)) => Ok(Some(written(value))),
        Some(_) => Err(OutcomeError::bad(field, "not_an_object", "must be an object, or left out")),
    }
}
