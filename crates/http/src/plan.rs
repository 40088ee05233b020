//! Advice for planners over HTTP: whether to make an attempt, and which value to try next.
//!
//! **Invariants:** an answer is valid for its time and its checkpoint, so no cache may keep it (the
//! default header of this server is `no-store`). Neither route writes anything.

use crate::json;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Caller, Service};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use ipse_core::{Micro, Time};
use ipse_inspect::{AttemptAdvice, PlannedAttempt, default_candidates};
use ipse_plan::{BadCandidates, Candidates, Question, Threshold, number};
use std::sync::Arc;

pub(crate) async fn may_attempt(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let known = ["skill_id", "target_class", "environment", "threshold", "quorum", "now"];
    let query = Query::read(raw.as_deref(), &known)?;
    let planned = planned(&query)?;
    let now = query.text("now").map(|text| {
        let detail = |error| format!("`now`: {error}; give a time such as 2026-05-06T10:00:00Z");
        Time::parse(text).map_err(|error| bad(detail(error)))
    });
    let threshold = query.text("threshold").map(|text| {
        Threshold::parse(text).ok_or_else(|| bad("`threshold` must be a rate from 0 to 1"))
    });
    let question = Question {
        now: now.transpose()?.unwrap_or_else(|| service.outside().now()),
        threshold: threshold.transpose()?.unwrap_or_default(),
        quorum: quorum(&query)?,
    };
    let agent = &caller.agent;
    let facts = agent.memory.known();
    if let Some(advice) = AttemptAdvice::known(&agent.identity, &facts, &planned, &question) {
        return Ok(json(StatusCode::OK, advice.json()));
    }
    // Without the rules of the log, reading it gives the error that names them.
    let look = agent.look.clone();
    let (advice, _turn) = caller.look(move || look.may_attempt(&planned, &question, None)).await?;
    Ok(json(StatusCode::OK, advice.json()))
}

pub(crate) async fn suggest(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let known = [
        "skill_id",
        "target_class",
        "environment",
        "param",
        "candidates",
        "from",
        "to",
        "step",
        "prefer",
    ];
    let query = Query::read(raw.as_deref(), &known)?;
    let planned = planned(&query)?;
    let param = required(&query, "param")?.to_owned();
    let candidates = candidates(&caller, &query, &planned, &param)?;
    let prefer = micro(&query, "prefer")?;
    let look = caller.agent.look.clone();
    let (advice, _turn) =
        caller.look(move || look.suggest(&planned, &param, &candidates, prefer)).await?;
    Ok(json(StatusCode::OK, advice.json()))
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::bad_request("bad_parameter", detail)
}

fn required<'q>(query: &'q Query<'_>, name: &str) -> Result<&'q str, Problem> {
    query.text(name).ok_or_else(|| bad(format!("`{name}` is required")))
}

fn planned(query: &Query<'_>) -> Result<PlannedAttempt, Problem> {
    let skill = required(query, "skill_id")?;
    Ok(PlannedAttempt::new(skill, query.text("target_class"), query.text("environment")))
}

fn quorum(query: &Query<'_>) -> Result<bool, Problem> {
    match query.text("quorum") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(bad("`quorum` must be true or false")),
    }
}

fn micro(query: &Query<'_>, name: &str) -> Result<Option<Micro>, Problem> {
    let read = |text| number(text).map_err(|error| bad(format!("`{name}`: {error}")));
    query.text(name).map(read).transpose()
}

/// The candidates of the request, or those between the bounds of the registry.
fn candidates(
    caller: &Caller,
    query: &Query<'_>,
    planned: &PlannedAttempt,
    param: &str,
) -> Result<Candidates, Problem> {
    let ends = [micro(query, "from")?, micro(query, "to")?, micro(query, "step")?];
    let made = match (query.text("candidates"), ends) {
        (Some(list), [None, None, None]) => Candidates::parse(list),
        (None, [Some(from), Some(to), Some(step)]) => Candidates::range(from, to, step),
        (None, [None, None, None]) => match caller.agent.desk.as_ref() {
            Some(desk) => {
                let gates = desk.gates();
                default_candidates(gates.registry(), Some(gates), planned, param)
            }
            None => Err(BadCandidates::None),
        },
        _ => {
            let detail = "give either `candidates`, or all of `from`, `to` and `step`";
            return Err(Problem::bad_request("bad_candidates", detail));
        }
    };
    made.map_err(|error| {
        let hint = "give `candidates`, or `from`, `to` and `step`";
        Problem::bad_request("bad_candidates", format!("{error}; {hint}"))
    })
}
