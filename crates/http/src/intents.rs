//! Intents over HTTP: propose, read, decide, report the outcome.
//!
//! **Invariant:** the response to an intent is sent after the intent is durable in the log. The
//! crate [`ipse_intents`] judges and records. This module reads bodies and writes responses.

use crate::body::{self, PostRequest};
use crate::events::{self, durable, not_durable};
use crate::places::Peer;
use crate::problem::Problem;
use crate::queries::NameInPath;
use crate::query::Query;
use crate::service::{Ambient, Caller, Service};
use crate::{away, blocking, json, wait};
use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use ipse_core::json::{Value, quoted};
use ipse_core::{EventRef, Seq, json_parse};
use ipse_engine::{Appended, IntentStanding as Standing, Proposal};
use ipse_intents::decide;
use ipse_intents::{
    Audit, Decision, DecisionError, Desk, IntentError, OutcomeError, Report, Request,
};
use std::sync::Arc;

/// The default and the maximum number of rows of a page.
const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;
/// Maximum nesting of the JSON of a decision.
const DECISION_DEPTH: usize = 8;
/// Advice to a planner whose intent may not be recorded.
const DO_NOT_ACT: &str = "the intent may not be recorded: do not act on it, propose it again";
/// Advice to a producer whose outcome may not be recorded.
const REPORT_AGAIN: &str =
    "the outcome may not be durable: send it again; if it is stored, it will be a duplicate";
/// Advice to an operator whose decision may not be recorded.
const LOOK_AGAIN: &str = "the decision may not be recorded: read the intent, and decide again";

/// `POST /api/agent/intents`
pub(crate) async fn propose(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    posted: PostRequest,
) -> Result<Response, Problem> {
    posted.check_query()?;
    let desk = caller.agent.desk.clone().ok_or_else(not_configured)?;
    posted.check_json()?;
    let mut sent = posted.read(&service, &caller.agent).await?;
    // Check the rate after reading the body, so that a 429 does not close the connection.
    service.paces.admit(&caller.token.id, service.outside().elapsed()).map_err(too_fast)?;
    let small = sent.is_small();
    let mut unfold = move || sent.unfolded().map(|bytes| bytes.into_owned());
    let bytes = if small { unfold()? } else { away(unfold).await?? };
    let request = Request::read(&bytes)?;
    let audit = audited(&caller, &desk, &request).await?;
    let proposed = match desk.needs_past(&request) {
        false => recorded_with_others(&service, &caller, &desk, &request, &audit).await?,
        true => {
            drop(request);
            let (service, proposer) = (service.clone(), caller.clone());
            let record = move || limited(&service, &proposer, &desk, &bytes, &audit);
            caller.write(record).await??
        }
    };
    caller.agent.grown.send_modify(|times| *times += 1);
    caller.agent.metrics.judged(proposed.standing().verdict());
    Ok(json(StatusCode::CREATED, proposed.json().to_owned()))
}

/// Runs the audit gate. If it has to read the log, it waits for a turn.
async fn audited(
    caller: &Caller,
    desk: &Arc<Desk>,
    request: &Request<'_>,
) -> Result<Audit, Problem> {
    match (desk.audit_in_memory(request), request.echo()) {
        (None, Some(echo)) => {
            let (desk, echo) = (desk.clone(), echo.clone());
            Ok(caller.look(move || desk.audit(&echo)).await?.0?)
        }
        (audit, _) => audit.ok_or_else(Problem::internal),
    }
}

/// Records an intent in one commit with other waiting requests.
async fn recorded_with_others(
    service: &Service,
    caller: &Caller,
    desk: &Desk,
    request: &Request<'_>,
    audit: &Audit,
) -> Result<Proposal, Problem> {
    let by = caller.token.id.to_string();
    let judged = desk.judge(request, audit, &by, &mut Ambient(service.outside()))?;
    let event = judged.event.clone();
    let done = durable(service, caller, vec![event], None, DO_NOT_ACT).await?;
    let appended = done.appended.first().copied();
    appended.and_then(|appended| judged.recorded(appended)).ok_or_else(Problem::internal)
}

/// Records an intent whose verdict depends on the log, in a transaction of its own.
fn limited(
    service: &Service,
    caller: &Caller,
    desk: &Desk,
    body: &[u8],
    audit: &Audit,
) -> Result<Proposal, Problem> {
    let request = Request::read(body)?;
    let by = caller.token.id.to_string();
    let done = desk.record(&request, audit, &by, &mut Ambient(service.outside()));
    let done = done.map_err(|error| {
        let agent = &caller.agent;
        not_durable(agent.appender.failed(&agent.identity, &error), DO_NOT_ACT)
    })?;
    Ok(done?)
}

impl From<IntentError> for Problem {
    fn from(rejected: IntentError) -> Self {
        let (code, detail) = (rejected.code(), rejected.to_string());
        match rejected {
            IntentError::Bad { rule, field, message } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
                    .with("rule", quoted(rule))
                    .with("field", quoted(&field))
            }
            _ => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, code, detail),
        }
    }
}

impl From<DecisionError> for Problem {
    fn from(undecided: DecisionError) -> Self {
        match undecided {
            DecisionError::NoIntent => Problem::not_found(undecided.to_string()),
            _ => Problem::new(StatusCode::CONFLICT, undecided.code(), undecided.to_string()),
        }
    }
}

fn not_configured() -> Problem {
    let detail = "this agent has no gates: `ipse serve` was started without its registry, \
                  policy and temperament";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "gates_not_configured", detail)
}

fn too_fast(seconds: u32) -> Problem {
    Problem::too_fast(seconds, "too many intents from this token; retry later")
}

/// `GET /api/agent/intents/{event_ref}`
pub(crate) async fn intent(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    peer: Option<Extension<Arc<Peer>>>,
    name: NameInPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["wait"])?;
    let wait = query.number("wait", 1..=wait::MAX_SECONDS)?;
    let name = event_ref(name)?;
    let shown = match wait {
        None => look(&caller, name).await?,
        Some(seconds) => {
            let peer = peer.as_deref().map(|peer| &**peer);
            wait::until_decided(&service, &caller, peer, name, seconds).await?
        }
    };
    Ok(json(StatusCode::OK, shown.json().to_owned()))
}

/// Reads an intent with its current standing.
pub(crate) async fn look(caller: &Caller, name: EventRef) -> Result<Proposal, Problem> {
    let look = caller.agent.look.clone();
    let found = blocking(move || look.intent(&name)).await?;
    Ok(found.ok_or(DecisionError::NoIntent)?)
}

/// `GET /api/agent/intents`
pub(crate) async fn intents(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["before", "limit", "standing"])?;
    let before = query.seq("before")?.unwrap_or(Seq(u64::MAX));
    let limit = query.number("limit", 1..=MAX_PAGE)?.unwrap_or(PAGE);
    let standing =
        query.text("standing").map(|name| Standing::parse(name).ok_or_else(bad_standing));
    let standing = standing.transpose()?;
    let (look, now) = (caller.agent.look.clone(), service.outside().now());
    let list = move || look.intents(before, limit, standing, now);
    let (page, _turn) = caller.look(list).await?;
    Ok(json(StatusCode::OK, page.json()))
}

fn bad_standing() -> Problem {
    let names = Standing::ALL.map(Standing::name).join(", ");
    Problem::bad_request("bad_parameter", format!("`standing` must be one of {names}"))
}

/// `POST /api/agent/intents/{event_ref}/confirm`
pub(crate) async fn confirm(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    name: NameInPath,
    posted: PostRequest,
) -> Result<Response, Problem> {
    posted.check_query()?;
    let headers = posted.headers.clone();
    let mut sent = posted.read(&service, &caller.agent).await?;
    let decision = away(move || decision(&headers, &sent.unfolded()?)).await??;
    let (name, person) = (event_ref(name)?, caller.clone());
    let decided = move || {
        let agent = &person.agent;
        let (by, host) = (person.token.id.to_string(), &mut Ambient(service.outside()));
        let done = decide(&agent.memory, &agent.look, &name, decision, &by, host);
        done.map_err(|error| {
            not_durable(agent.appender.failed(&agent.identity, &error), LOOK_AGAIN)
        })
    };
    let after = caller.write(decided).await???;
    caller.agent.grown.send_modify(|times| *times += 1);
    Ok(json(StatusCode::OK, after.json().to_owned()))
}

/// `POST /api/agent/intents/{event_ref}/outcome`
pub(crate) async fn outcome(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    name: NameInPath,
    posted: PostRequest,
) -> Result<Response, Problem> {
    posted.check_query()?;
    posted.check_json()?;
    let mut sent = posted.read(&service, &caller.agent).await?;
    let name = event_ref(name)?;
    // An unknown intent is 404 even if the body is not valid.
    look(&caller, name).await?;
    let report = Arc::new(away(move || Ok::<_, Problem>(Report::read(&sent.unfolded()?)?)).await??);
    let source = caller.token.reporting_source();
    if !caller.token.may_send(source) {
        return Err(events::source_not_allowed(source));
    }
    let mut reported = reported(&service, &caller, &report, name).await?;
    if report.is_to_repeat(reported.1) {
        reported = self::reported(&service, &caller, &report, name).await?;
    }
    let (event_ref, appended) = reported;
    events::answer_to_one(&caller, event_ref, appended)
}

/// Appends the event of a report. The result says whether it was stored before.
async fn reported(
    service: &Arc<Service>,
    caller: &Caller,
    report: &Arc<Report>,
    name: EventRef,
) -> Result<(EventRef, Appended), Problem> {
    let (host, asking, report) = (service.clone(), caller.clone(), report.clone());
    let event = blocking(move || {
        let (look, source) = (&asking.agent.look, asking.token.reporting_source());
        report.event(look, &name, source, &mut Ambient(host.outside()))
    });
    let event = event.await??;
    let event_ref = event.event_ref;
    let done = durable(service, caller, vec![event], None, REPORT_AGAIN).await?;
    let appended = done.appended.first().copied().ok_or_else(Problem::internal)?;
    Ok((event_ref, appended))
}

impl From<OutcomeError> for Problem {
    fn from(unreported: OutcomeError) -> Self {
        let (code, detail) = (unreported.code(), unreported.to_string());
        match unreported {
            OutcomeError::NoIntent => Problem::not_found(detail),
            OutcomeError::Bad { rule, field, message } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
                    .with("rule", quoted(rule))
                    .with("field", quoted(&field))
            }
            OutcomeError::Refused(refusal) => events::refused(&refusal),
            _ => Problem::new(StatusCode::CONFLICT, code, detail),
        }
    }
}

/// Reads the decision: an empty body, `{"decision": "confirmed"}` or `{"decision": "declined"}`.
fn decision(headers: &HeaderMap, body: &[u8]) -> Result<Decision, Problem> {
    // An empty body with a content type may have been lost: it must not confirm the intent.
    if body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
        return Ok(Decision::Confirmed);
    }
    if body::media_type(headers) != "application/json" {
        return Err(body::unsupported("send application/json, or no body"));
    }
    let bad = |detail: &str| Problem::bad_request("bad_request", detail);
    let value = json_parse::parse(body, DECISION_DEPTH);
    let value = value.map_err(|_| bad("the body is not JSON"))?;
    let object = value.as_object().filter(|object| object.len() == 1);
    let word = object.and_then(|object| object.get("decision")).and_then(Value::as_text);
    word.and_then(Decision::parse)
        .ok_or_else(|| bad("send {\"decision\": \"confirmed\"} or {\"decision\": \"declined\"}"))
}

fn event_ref(name: NameInPath) -> Result<EventRef, Problem> {
    let name = name.ok().and_then(|Path(text)| EventRef::parse(&text));
    Ok(name.ok_or(DecisionError::NoIntent)?)
}
