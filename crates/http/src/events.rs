//! `POST /api/agent/events`: one event, a CloudEvents batch, lines, or an event in binary mode.
//!
//! **Invariants**
//! - An event with the result `appended` or `duplicate` is durable.
//! - A refused event is not stored, and the response has the reason.
//! - A signature over a batch is stored with all of its events or not at all.

use crate::appender::{AppendResult, NotDurable, QueueError};
use crate::binary::Attributes;
use crate::body::{self, PostRequest, ReceivedBody};
use crate::problem::Problem;
use crate::service::{Caller, Service};
use crate::{away, blocking, json};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use ipse_access::Token;
use ipse_core::event::source_of;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Admitted, EventRef};
use ipse_door::{Origin, Refusal, Rule, Unused, UnusedMembers, admit, unused};
use ipse_engine::{Appended, SignatureError, SignedBatch, decode_data, hint_of, refusal_of};
use ipse_ledger::dsse;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum number of events in one request.
const MAX_EVENTS: usize = 10_000;

/// The refusal of an array under a media type of one event.
const ARRAY: &str = "an event is a JSON object; for an array of events, send the content type \
    application/cloudevents-batch+json";

/// The header with the number of events of a batch that are not in the log. The status is 200, and
/// emitters read only the status.
const REFUSED: HeaderName = HeaderName::from_static("ipse-refused");

/// The format of a body.
enum Shape {
    One,
    Batch,
    Lines,
    /// The data of an event whose attributes are headers.
    Data(Attributes),
}

impl Shape {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        if let Some(attributes) = Attributes::of(headers)? {
            return Ok(Shape::Data(attributes));
        }
        match body::media_type(headers).as_str() {
            "application/json" | "application/cloudevents+json" => Ok(Shape::One),
            "application/cloudevents-batch+json" => Ok(Shape::Batch),
            "application/x-ndjson" => Ok(Shape::Lines),
            _ => Err(body::unsupported(
                "send application/json, application/cloudevents+json, \
                 application/cloudevents-batch+json, application/x-ndjson, or CloudEvents in \
                 binary mode with `ce-specversion: 1.0`",
            )),
        }
    }
}

/// An event that the door accepted.
struct AdmittedEvent {
    name: EventRef,
    /// Advice for the sender about the type and the members of the event.
    hint: Option<String>,
    /// Its members that feed no fact and probably should.
    unused: Vec<Unused>,
}

/// The result of one event of a request.
enum Outcome {
    Done(AdmittedEvent, Appended),
    Refused(Refusal),
}

/// Events of a body that are appended together: all of them, or those under one envelope.
struct Part<'b> {
    events: Vec<&'b [u8]>,
    envelope: Option<&'b [u8]>,
}

pub(crate) async fn append(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    posted: PostRequest,
) -> Result<Response, Problem> {
    posted.check_query()?;
    let shape = Shape::of(&posted.headers)?;
    let sent = posted.read(&service, &caller.agent).await?;
    let (door, token) = (service.clone(), caller.token.clone());
    let (small, alone_asked) = (sent.is_small(), matches!(shape, Shape::One | Shape::Data(_)));
    let look = move || taken_in(&door, &token, shape, sent);
    let taken = if small { look()? } else { away(look).await?? };
    let (mut outcomes, mut signed) = (Vec::new(), 0);
    for part in taken {
        signed += append_part(&service, &caller, part, &mut outcomes).await?;
    }
    for outcome in &outcomes {
        caller.agent.metrics.events(outcome.result(), 1);
    }
    match outcomes.as_slice() {
        [one] if alone_asked => alone(one),
        _ => Ok(together(&outcomes, signed)),
    }
}

/// Appends one part. Returns the number of events that are stored under a signature. If the
/// signature is not valid, no event of the part is stored.
async fn append_part(
    service: &Service,
    caller: &Caller,
    part: CheckedEvents,
    outcomes: &mut Vec<Outcome>,
) -> Result<u64, Problem> {
    let done = match endorsed(caller, part.envelope).await? {
        Ok(endorsed) => durable(service, caller, part.events, endorsed, SEND_AGAIN).await?,
        Err(why) => {
            let appended = vec![Appended::Unsigned; part.events.len()];
            AppendResult { appended, signed: 0, unkept: Some(why) }
        }
    };
    let mut appended = done.appended.into_iter();
    outcomes.extend(part.looked_at.into_iter().map(|event| match event {
        Err(outcome) => outcome,
        Ok(passed) => {
            let appended = appended.next().expect("BUG: an event has no answer");
            match (appended, &done.unkept) {
                (Appended::Unsigned, Some(why)) => Outcome::Refused(why.refusal()),
                (appended, _) => Outcome::Done(passed, appended),
            }
        }
    }));
    Ok(done.signed)
}

/// A part of a body after the door.
struct CheckedEvents {
    /// The accepted events, in order.
    events: Vec<Admitted>,
    /// Every event in order: its name if it was accepted, else its result.
    looked_at: Vec<Result<AdmittedEvent, Outcome>>,
    envelope: Option<String>,
}

impl CheckedEvents {
    fn new(envelope: Option<String>) -> Self {
        CheckedEvents { events: Vec::new(), looked_at: Vec::new(), envelope }
    }

    fn add(&mut self, event: Result<Admitted, Outcome>) {
        self.looked_at.push(event.map(|event| {
            let unused = unused(&event);
            let hint = hint_of(&event.event_type, &unused);
            let passed = AdmittedEvent { name: event.event_ref, hint, unused };
            self.events.push(event);
            passed
        }));
    }
}

fn taken_in(
    service: &Service,
    token: &Token,
    shape: Shape,
    mut sent: ReceivedBody,
) -> Result<Vec<CheckedEvents>, Problem> {
    let bytes = sent.unfolded()?;
    let parts = match shape {
        Shape::Data(attributes) => {
            let event = attributes.event(&bytes).map_err(Outcome::Refused);
            let mut taken = CheckedEvents::new(None);
            taken.add(event.and_then(|event| admit_one(service, token, &event)));
            return Ok(vec![taken]);
        }
        Shape::One if bytes.trim_ascii_start().starts_with(b"[") => {
            let mut taken = CheckedEvents::new(None);
            let refusal = Refusal::new("", Rule::NotAnObject, ARRAY);
            taken.add(Err(Outcome::Refused(refusal)));
            return Ok(vec![taken]);
        }
        Shape::One => vec![Part { events: vec![&*bytes], envelope: None }],
        Shape::Batch => vec![batch(&bytes)?],
        Shape::Lines => {
            let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            parts(lines.filter(|line| !line.is_empty()))?
        }
    };
    let count: usize = parts.iter().map(|part| part.events.len()).sum();
    if count > MAX_EVENTS {
        let detail = format!("{count} events; at most {MAX_EVENTS} are allowed in one request");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_events", detail));
    }
    Ok(parts.into_iter().map(|part| looked_at(service, token, part)).collect())
}

/// Validates the events of a part at the door. Signed events are not decoded before: the signature
/// covers their digests as they were sent.
fn looked_at(service: &Service, token: &Token, part: Part<'_>) -> CheckedEvents {
    let envelope = part.envelope.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut taken = CheckedEvents::new(envelope);
    for event in part.events {
        let event = match taken.envelope {
            Some(_) => Ok(event.into()),
            None => decode_data(event).map_err(Outcome::Refused),
        };
        taken.add(event.and_then(|event| admit_one(service, token, &event)));
    }
    taken
}

fn batch(bytes: &[u8]) -> Result<Part<'_>, Problem> {
    let events = elements(bytes).ok_or_else(|| {
        Problem::bad_request("bad_batch", "the body is not a JSON array of events")
    })?;
    Ok(Part { events, envelope: None })
}

/// Splits lines into parts, after each envelope.
fn parts<'b>(lines: impl Iterator<Item = &'b [u8]>) -> Result<Vec<Part<'b>>, Problem> {
    let (mut parts, mut events) = (Vec::new(), Vec::new());
    for line in lines {
        match dsse::is_envelope(line) {
            false => events.push(line),
            true if events.is_empty() => {
                let detail = "an envelope signs the lines before it, but no line precedes this \
                              one; nothing was stored";
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                return Err(Problem::new(status, "bad_signature", detail));
            }
            true => {
                let events = std::mem::take(&mut events);
                parts.push(Part { events, envelope: Some(line) });
            }
        }
    }
    if !events.is_empty() || parts.is_empty() {
        parts.push(Part { events, envelope: None });
    }
    Ok(parts)
}

/// The elements of a JSON array, as they were sent. The door validates their content.
fn elements(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let inner = bytes.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    if inner.trim_ascii().is_empty() {
        return Some(Vec::new());
    }
    let (mut all, mut from, mut depth, mut text, mut escaped) =
        (Vec::new(), 0, 0_u32, false, false);
    for (at, byte) in inner.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            _ if text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                all.push(inner[from..at].trim_ascii());
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(inner[from..].trim_ascii());
    let whole = depth == 0 && !text && !all.iter().any(|element| element.is_empty());
    whole.then_some(all)
}

/// Opens the envelope of a part: the signed batch, or the reason why the signature is not valid.
async fn endorsed(
    caller: &Caller,
    envelope: Option<String>,
) -> Result<Result<Option<SignedBatch>, SignatureError>, Problem> {
    let Some(envelope) = envelope else { return Ok(Ok(None)) };
    let look = caller.agent.look.clone();
    let Some(producers) = blocking(move || look.producers()).await? else { return Ok(Ok(None)) };
    let opened = SignedBatch::open(&envelope, &caller.agent.identity, &producers);
    Ok(opened.map(|endorsed| Some(endorsed.insisting())))
}

fn admit_one(service: &Service, token: &Token, event: &[u8]) -> Result<Admitted, Outcome> {
    let salt = || service.outside().random();
    let event = admit(event, Origin::Producer, salt).map_err(Outcome::Refused)?;
    if token.sources.is_none() {
        return Ok(event);
    }
    let source = source_of(&event.canonical).unwrap_or_default();
    if token.may_send(&source) { Ok(event) } else { Err(Outcome::Refused(not_yours(&source))) }
}

/// The refusal of an event of a source that the token does not permit.
fn not_yours(source: &str) -> Refusal {
    let source = ipse_door::printable(source);
    let why = format!("this token may not send events of the source `{source}`");
    Refusal::new("source", Rule::SourceNotAllowed, &why)
}

/// Advice to a producer whose events may not be durable.
const SEND_AGAIN: &str =
    "the events may not be durable: send them again; events that are stored will be duplicates";

/// Appends events. If they are not known to be durable, the problem has the text `unsure`.
pub(crate) async fn durable(
    service: &Service,
    caller: &Caller,
    events: Vec<Admitted>,
    endorsed: Option<SignedBatch>,
    unsure: &str,
) -> Result<AppendResult, Problem> {
    if events.is_empty() {
        return Ok(AppendResult { appended: Vec::new(), signed: 0, unkept: None });
    }
    if caller.agent.appender.is_rolled_back() {
        return Err(Problem::rolled_back());
    }
    let begun = service.outside().elapsed();
    let waiting =
        caller.agent.appender.append(events, endorsed).map_err(|turned| match turned {
            QueueError::Full => Problem::too_many("too many requests wait for the log; try again"),
            QueueError::Closed => {
                Problem::unavailable("shutting_down", "the server is shutting down")
            }
        })?;
    let waits = caller.agent.metrics.waits();
    let answer = waiting.await.unwrap_or(Err(NotDurable::Unsure));
    drop(waits);
    caller.agent.metrics.waited(service.outside().elapsed().saturating_sub(begun));
    let done = answer.map_err(|why| not_durable(why, unsure))?;
    caller.agent.grown.send_modify(|times| *times += 1);
    Ok(done)
}

/// The problem of a request whose events are not known to be durable.
pub(crate) fn not_durable(why: NotDurable, unsure: &str) -> Problem {
    match why {
        NotDurable::Unsure => Problem::unavailable("not_durable", unsure),
        NotDurable::RolledBack => Problem::rolled_back(),
    }
}

impl Outcome {
    fn result(&self) -> &'static str {
        match self {
            Outcome::Done(_, Appended::New(_)) => "appended",
            Outcome::Done(_, Appended::Duplicate(_)) => "duplicate",
            Outcome::Done(_, Appended::Conflict(_)) => "conflict",
            _ => "refused",
        }
    }

    /// The rule, the field and the message of a refusal.
    fn refusal(&self) -> Option<(&'static str, Cow<'_, str>, String)> {
        match self {
            Outcome::Refused(refusal) => {
                Some((refusal.rule.code(), (&*refusal.field).into(), refusal.message.clone()))
            }
            Outcome::Done(_, appended) => {
                refusal_of(*appended).map(|it| (it.rule.code(), it.field.into(), it.message))
            }
        }
    }

    fn members(&self) -> Members {
        let members = Members::new().text("result", self.result());
        let members = match self {
            Outcome::Done(event, Appended::New(seq) | Appended::Duplicate(seq)) => members
                .text("event_ref", &event.name.to_string())
                .optional("hint", event.hint.as_deref().map(quoted))
                .raw("seq", seq),
            Outcome::Done(event, _) => members.text("event_ref", &event.name.to_string()),
            _ => members,
        };
        match self.refusal() {
            Some((code, field, why)) => {
                members.text("code", code).text("field", &field).text("detail", &why)
            }
            None => members,
        }
    }
}

/// The response to a single event.
fn alone(outcome: &Outcome) -> Result<Response, Problem> {
    let status = match outcome {
        Outcome::Done(_, Appended::New(_)) => StatusCode::CREATED,
        Outcome::Done(_, Appended::Duplicate(_)) => StatusCode::OK,
        Outcome::Done(_, Appended::Conflict(_)) => {
            let (code, _, why) = outcome.refusal().unwrap_or_default();
            return Err(Problem::new(StatusCode::CONFLICT, code, why));
        }
        _ => return Err(problem_of(outcome)),
    };
    Ok(json(status, outcome.members().finish()))
}

/// The response to an event that the server composed for a producer.
pub(crate) fn answer_to_one(
    caller: &Caller,
    event_ref: EventRef,
    appended: Appended,
) -> Result<Response, Problem> {
    let outcome =
        Outcome::Done(AdmittedEvent { name: event_ref, hint: None, unused: Vec::new() }, appended);
    caller.agent.metrics.events(outcome.result(), 1);
    alone(&outcome)
}

/// 422: the door rejected an event that the server composed.
pub(crate) fn refused(refusal: &Refusal) -> Problem {
    problem_of(&Outcome::Refused(refusal.clone()))
}

/// 422: the token does not permit the source of an event that the server would compose.
pub(crate) fn source_not_allowed(source: &str) -> Problem {
    problem_of(&Outcome::Refused(not_yours(source)))
}

fn problem_of(outcome: &Outcome) -> Problem {
    let (rule, field, why) = outcome.refusal().unwrap_or_default();
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", why);
    problem.with("rule", quoted(rule)).with("field", quoted(&field))
}

/// The response to several events, with one result for each.
fn together(outcomes: &[Outcome], signed: u64) -> Response {
    let count = |result: &str| outcomes.iter().filter(|one| one.result() == result).count();
    let body = Members::new()
        .raw("appended", count("appended"))
        .raw("duplicates", count("duplicate"))
        .raw("conflicts", count("conflict"))
        .raw("refused", count("refused"))
        .raw("signed", signed)
        .raw("unused", unused_json(outcomes))
        .raw("results", list(outcomes.iter().map(|outcome| outcome.members().finish())));
    let mut response = json(StatusCode::OK, body.finish());
    if let Some(refused) = RefusedEvents::of(outcomes) {
        response.headers_mut().insert(REFUSED, HeaderValue::from(refused.count));
        response.extensions_mut().insert(refused);
    }
    response
}

/// The members of stored events that feed no fact, with the indexes of the first of those events in
/// the request, from 0.
fn unused_json(outcomes: &[Outcome]) -> String {
    let mut all = UnusedMembers::default();
    for (index, outcome) in outcomes.iter().enumerate() {
        if let Outcome::Done(event, Appended::New(_) | Appended::Duplicate(_)) = outcome {
            all.add_all(event.unused.clone(), index as u64);
        }
    }
    list(all.iter().map(|(unused, places)| {
        Members::new()
            .text("field", &unused.field)
            .text("message", &unused.message)
            .raw("count", places.count)
            .raw("indexes", list(places.first.iter().map(u64::to_string)))
            .finish()
    }))
}

/// The events of a request that are not in the log. The server logs them.
#[derive(Clone, Copy)]
pub(crate) struct RefusedEvents {
    pub(crate) count: u64,
    /// The rule that the first of them violates.
    pub(crate) rule: &'static str,
}

impl RefusedEvents {
    fn of(outcomes: &[Outcome]) -> Option<Self> {
        let mut rules = outcomes.iter().filter_map(|one| Some(one.refusal()?.0));
        let rule = rules.next()?;
        Some(RefusedEvents { count: 1 + rules.count() as u64, rule })
    }
}
