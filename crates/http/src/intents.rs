//! Intents: what a planner proposes, what the gates say to it, and what a person decides.
//!
//! **Invariants**
//! - Every intent that can be read is judged, and stands in the log with its verdict before anybody
//!   is answered: what is not on record may not be acted on.
//! - The verdict is made of the intent, the three files and how many intents went before. What is
//!   known is looked at by the audit gate alone, which comes last and changes no verdict.
//! - A decision about an intent is made once; it is an event of its own, and the intent stays as it
//!   is.

use crate::body;
use crate::events::{durable, not_durable};
use crate::looking::NameInPath;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Agent, Caller, Service};
use crate::{away, blocking, json};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use ipse_core::intent::{CONFIRMATION, INTENT, confirmation_id};
use ipse_core::json::{Members, Value, list, quoted};
use ipse_core::{Admitted, EventRef, HOUSE_SOURCE, Seq, Time, hex, json_parse};
use ipse_door::{Origin, Rule, admit};
use ipse_engine::{Appended, Claim, IntentStanding as Standing, Proposed, Status, Told};
use ipse_gates::{Gates, Intent, RateLimit, Ruling, Verdict};
use std::sync::Arc;

/// Rows of a page if nobody says how many, and at most.
const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;
/// Nesting of a decision at most.
const DECISION_DEPTH: usize = 8;
/// What a planner does about an intent that may not be on record.
const DO_NOT_ACT: &str = "the intent may not be on record: do not act on it, propose it again";
/// What an operator does about a decision that may not be on record.
const LOOK_AGAIN: &str = "the decision may not be on record: look at the intent, and decide again";

/// `POST /api/agent/intents`
pub(crate) async fn propose(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let gates = caller.agent.gates.clone().ok_or_else(not_configured)?;
    if body::media_type(&headers) != "application/json" {
        return Err(body::unsupported("send application/json"));
    }
    let mut sent = body::read(&service, &caller.agent, &headers, body).await?;
    // After the body, so that a connection on which somebody is too fast can be kept.
    service.paces.admit(&caller.token.id, service.outside().elapsed()).map_err(too_fast)?;
    let small = sent.is_small();
    let mut unfold = move || sent.unfolded().map(|bytes| bytes.into_owned());
    let bytes = if small { unfold()? } else { away(unfold).await?? };
    let intent = read(&bytes)?;
    let claim = claimed(&intent)?;
    let audit = audited(&caller, claim.as_ref()).await?;
    let on_record = match gates.rate_limit(&intent.skill_id) {
        None => {
            let verdict = gates.judge(&intent, 0);
            let record = Record::new(&service, &caller, &intent, claim.as_ref());
            let event = record.event(&gates, &verdict, audit)?;
            let kept = event.clone();
            let done = durable(&service, &caller, vec![event], None, DO_NOT_ACT).await?;
            (kept, done.appended.first().copied(), verdict.ruling)
        }
        Some(limit) => {
            drop((intent, claim));
            let (service, proposer) = (service.clone(), caller.clone());
            let judge = move || limited(&service, &proposer, &gates, &bytes, limit, audit);
            caller.write(judge).await??
        }
    };
    caller.agent.grown.send_modify(|times| *times += 1);
    caller.agent.metrics.judged(on_record.2.name());
    Ok(json(StatusCode::CREATED, shown(on_record).ok_or_else(Problem::internal)?))
}

fn read(body: &[u8]) -> Result<Intent<'_>, Problem> {
    Intent::read(body).map_err(|bad| {
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_intent", bad.message);
        problem.with("rule", quoted(bad.rule)).with("field", quoted(&bad.field))
    })
}

/// What the planner says that it read.
fn claimed(intent: &Intent<'_>) -> Result<Option<Claim>, Problem> {
    intent.consultation.as_ref().map(Claim::read).transpose().map_err(|why| {
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_intent", why);
        problem.with("rule", quoted("bad_consultation")).with("field", quoted("consultation"))
    })
}

/// An intent on record: its event, what became of that, and how the gates ruled.
type OnRecord = (Admitted, Option<Appended>, Ruling);

/// The same for a skill with a rate limit: counted, judged and recorded in one transaction, so that
/// of two that come at once, to whichever server, one is counted by the other.
fn limited(
    service: &Service,
    caller: &Caller,
    gates: &Gates,
    body: &[u8],
    limit: RateLimit,
    audit: String,
) -> Result<OnRecord, Problem> {
    let intent = read(body)?;
    let claim = claimed(&intent)?;
    let agent = &caller.agent;
    let prepared = agent.windows.prepare(&agent.look, service.outside().now())?;
    let done = agent.memory.append_judged(|past| {
        let record = Record::new(service, caller, &intent, claim.as_ref());
        let (skill, now) = (&intent.skill_id, record.now);
        let recent = agent.windows.count(prepared, past, skill, now, limit.seconds)?;
        let verdict = gates.judge(&intent, recent);
        Ok(record.event(gates, &verdict, audit).map(|event| (event, verdict.ruling)))
    });
    let (event, appended, ruling) = done.map_err(|error| {
        not_durable(agent.appender.failed(&agent.identity, &error), DO_NOT_ACT)
    })??;
    Ok((event, Some(appended), ruling))
}

/// An intent that nobody can have decided about yet, for programs. Its name is random, so that
/// nothing else can have been there.
fn shown((event, appended, _): OnRecord) -> Option<String> {
    let Some(Appended::New(seq)) = appended else { return None };
    let Admitted { event_ref, time, event_type, canonical, .. } = event;
    let (outcome, canonical) = (None, Some(canonical));
    let told = Told { seq, event_ref, event_type, time, outcome, canonical };
    Proposed::fresh(told).map(Proposed::json)
}

fn not_configured() -> Problem {
    let detail = "no gates judge this agent's intents: `ipse serve` was started without its \
                  registry, policy and temperament";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "gates_not_configured", detail)
}

fn too_fast(seconds: u32) -> Problem {
    Problem::too_fast(seconds, "this token proposes too fast; wait, and try again")
}

/// The audit gate: whether the log bears out what the planner says that it read, and whether that
/// is what it would read now.
async fn audited(caller: &Caller, claim: Option<&Claim>) -> Result<String, Problem> {
    let gate = Members::new().text("gate", "audit");
    let Some(claim) = claim else { return Ok(gate.text("result", "none").finish()) };
    let agent = &caller.agent;
    let now = agent.memory.known();
    let then = agent.memory.known_at(claim.checkpoint()).map(|known| known.choose(claim.filter()));
    let then = then.filter(|facts| {
        claim.is_possible(claim.checkpoint()) && claim.is_answered_by(&agent.identity, facts)
    });
    let (status, facts) = match then {
        Some(facts) => (Status::Verified, facts),
        None => {
            let (look, claim, known) = (agent.look.clone(), claim.clone(), now.clone());
            caller.look(move || look.claim(&claim, Some(&known))).await?.0
        }
    };
    let gate = gate
        .text("result", status.name())
        .raw("checkpoint", claim.checkpoint())
        .raw("known", now.checkpoint());
    Ok(match status {
        Status::Verified => gate.raw("stale", now.choose(claim.filter()) != facts).finish(),
        _ => gate.finish(),
    })
}

/// An intent, and who proposes it when.
struct Record<'r> {
    service: &'r Service,
    caller: &'r Caller,
    intent: &'r Intent<'r>,
    claim: Option<&'r Claim>,
    now: Time,
}

impl<'r> Record<'r> {
    /// Of an intent that is proposed now.
    fn new(
        service: &'r Service,
        caller: &'r Caller,
        intent: &'r Intent<'r>,
        claim: Option<&'r Claim>,
    ) -> Self {
        Record { service, caller, intent, claim, now: service.outside().now() }
    }

    /// The event that puts the intent and its verdict on record.
    fn event(&self, gates: &Gates, verdict: &Verdict, audit: String) -> Result<Admitted, Problem> {
        let Record { service, caller, intent, claim, now } = self;
        let text = |part: &Option<std::borrow::Cow<'_, str>>| part.as_deref().map(quoted);
        let mut params = String::new();
        intent.params.write(&mut params);
        let waits = verdict.ruling == Ruling::NeedsConfirmation;
        let within = gates.confirm_within().filter(|_| waits);
        let confirm_by = within.and_then(|seconds| later(*now, seconds));
        let data = Members::new()
            .text("skill_id", &intent.skill_id)
            .optional("target_class", text(&intent.target_class))
            .optional("environment", text(&intent.environment))
            .raw("params", params)
            .optional("consultation", claim.map(Claim::json))
            .optional("consultation_id", claim.map(|claim| quoted(&claim.id())))
            .text("token_id", &caller.token.id.to_string())
            .text("verdict", verdict.ruling.name())
            .optional("admitted_params", verdict.admitted_params())
            .optional("confirm_by", confirm_by.map(|time| quoted(&time.to_string())))
            .raw("gates", list(verdict.gates().chain([audit])));
        let id = format!("intent:{}", hex::encode(&service.outside().random()));
        house_event(service, INTENT, &id, *now, data)
    }
}

fn later(now: Time, seconds: u64) -> Option<Time> {
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    Time::from_micros(now.micros().checked_add(micros)?)
}

/// An event that ipse writes about what others want.
fn house_event(
    service: &Service,
    event_type: &str,
    id: &str,
    now: Time,
    data: Members,
) -> Result<Admitted, Problem> {
    let event = Members::new()
        .text("id", id)
        .text("source", HOUSE_SOURCE)
        .text("type", event_type)
        .text("time", &now.to_string())
        .raw("data", data.finish())
        .finish();
    admit(event.as_bytes(), Origin::House, || service.outside().random()).map_err(|refusal| {
        if refusal.rule == Rule::TooLarge {
            let detail = "the intent with its verdict is larger than an event may be: \
                          consult fewer facts, or name fewer parameters";
            return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "intent_too_large", detail);
        }
        tracing::error!(%refusal, "BUG: an event of ipse's own is none");
        Problem::internal()
    })
}

/// `GET /api/agent/intents/{event_ref}`
pub(crate) async fn intent(
    Extension(caller): Extension<Caller>,
    name: NameInPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let shown = proposed(&caller.agent, event_ref(name)?).await?;
    Ok(json(StatusCode::OK, shown.json()))
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
    // What nobody can confirm any more is not what an operator looks for.
    let in_time = move |it: &Proposed| it.confirm_by().is_none_or(|by| now <= by);
    let wanted = move |it: &Proposed| standing != Some(Standing::Waiting) || in_time(it);
    let (page, _turn) = caller.look(move || look.proposed(before, limit, standing, wanted)).await?;
    Ok(json(StatusCode::OK, page))
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
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let mut sent = body::read(&service, &caller.agent, &headers, body).await?;
    let decision = away(move || decision(&headers, &sent.unfolded()?)).await??;
    let name = event_ref(name)?;
    let before = proposed(&caller.agent, name).await?;
    let now = service.outside().now();
    if before.standing() == Standing::Waiting {
        if decision == Decision::Confirmed && before.confirm_by().is_some_and(|by| now > by) {
            let detail = "nobody confirmed this intent in time; the planner may propose it again";
            return Err(Problem::new(StatusCode::CONFLICT, "too_late", detail));
        }
        let data = Members::new()
            .text("intent", &name.to_string())
            .text("decision", decision.name())
            .text("token_id", &caller.token.id.to_string());
        let id = confirmation_id(&name);
        let event = house_event(&service, CONFIRMATION, &id, now, data)?;
        durable(&service, &caller, vec![event], None, LOOK_AGAIN).await?;
    }
    // Somebody else may have been faster: what is on record counts.
    let after = proposed(&caller.agent, name).await?;
    match after.standing() == decision.standing() {
        true => Ok(json(StatusCode::OK, after.json())),
        false => {
            let detail = format!("this intent is {}, and stays so", after.standing().name());
            Err(Problem::new(StatusCode::CONFLICT, "not_waiting", detail))
        }
    }
}

async fn proposed(agent: &Agent, name: EventRef) -> Result<Proposed, Problem> {
    let look = agent.look.clone();
    blocking(move || look.intent(&name)).await?.ok_or_else(no_intent)
}

/// What a person says to an intent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Confirmed,
    Declined,
}

impl Decision {
    fn name(self) -> &'static str {
        self.standing().name()
    }

    fn standing(self) -> Standing {
        match self {
            Decision::Confirmed => Standing::Confirmed,
            Decision::Declined => Standing::Declined,
        }
    }
}

/// Nothing at all, or `{"decision": "confirmed"}`, or `{"decision": "declined"}`.
fn decision(headers: &HeaderMap, body: &[u8]) -> Result<Decision, Problem> {
    // A body that was promised and got lost confirms nothing.
    if body.is_empty() && !headers.contains_key(CONTENT_TYPE) {
        return Ok(Decision::Confirmed);
    }
    if body::media_type(headers) != "application/json" {
        return Err(body::unsupported("send application/json, or nothing"));
    }
    let bad = |detail: &str| Problem::bad_request("bad_request", detail);
    let value = json_parse::parse(body, DECISION_DEPTH);
    let value = value.map_err(|_| bad("the body cannot be read as JSON"))?;
    let object = value.as_object().filter(|object| object.len() == 1);
    match object.and_then(|object| object.get("decision")).and_then(Value::as_text) {
        Some("confirmed") => Ok(Decision::Confirmed),
        Some("declined") => Ok(Decision::Declined),
        _ => Err(bad("send {\"decision\": \"confirmed\"} or {\"decision\": \"declined\"}")),
    }
}

fn event_ref(name: NameInPath) -> Result<EventRef, Problem> {
    name.ok().and_then(|Path(text)| EventRef::parse(&text)).ok_or_else(no_intent)
}

fn no_intent() -> Problem {
    Problem::not_found("this agent has no intent of that name, or it was forgotten")
}
