//! Reads about an agent: its identity, a fact, the explanation of a fact, passes, the log, its
//! skills.

use crate::problem::Problem;
use crate::query::Query;
use crate::service::Caller;
use crate::{blocking, json};
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::Response;
use ipse_core::{FactId, Seq};
use ipse_inspect::{DayEdge, LogFilter, LogQuery, Skills};

/// The default and the maximum number of rows of a page.
const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;
/// The last page of evidence that may be requested. A page has a hundred events.
const MAX_EVIDENCE_PAGE: u64 = 1 << 32;

pub(crate) async fn identity(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let look = caller.agent.look.clone();
    let standing = blocking(move || look.standing()).await?;
    Ok(json(StatusCode::OK, standing.json().finish()))
}

pub(crate) async fn fact(
    Extension(caller): Extension<Caller>,
    id: NameInPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let (look, id) = (caller.agent.look.clone(), fact_id(id)?);
    let found = blocking(move || look.fact(&id)).await?.ok_or_else(no_fact)?;
    Ok(json(StatusCode::OK, found.said(&caller.agent.identity).json.clone()))
}

pub(crate) async fn explanation(
    Extension(caller): Extension<Caller>,
    id: NameInPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["page"])?;
    let page = query.number("page", 1..=MAX_EVIDENCE_PAGE)?.unwrap_or(1);
    let page = usize::try_from(page).unwrap_or(usize::MAX);
    let (look, id) = (caller.agent.look.clone(), fact_id(id)?);
    let (found, _turn) = caller.look(move || look.explanation(&id, page)).await?;
    let none = || Problem::not_found("this agent has no fact with this id, or no such page of it");
    found.map(|found| json(StatusCode::OK, found.json())).ok_or_else(none)
}

pub(crate) async fn passes(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["before", "limit"])?;
    let before = query.seq("before")?.unwrap_or(Seq(u64::MAX));
    let limit = query.number("limit", 1..=MAX_PAGE)?.unwrap_or(PAGE);
    let look = caller.agent.look.clone();
    let (page, _turn) = caller.look(move || look.passes(before, limit)).await?;
    Ok(json(StatusCode::OK, page.json()))
}

pub(crate) async fn log(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &LOG_PARAMETERS)?;
    let asked = LogQuery {
        after: query.seq("after")?.unwrap_or_default(),
        limit: query.number("limit", 1..=MAX_PAGE)?.unwrap_or(PAGE),
        filter: log_filter(&query)?,
    };
    let look = caller.agent.look.clone();
    let (page, _turn) = caller.look(move || look.log(&asked)).await?;
    Ok(json(StatusCode::OK, page.json()))
}

const LOG_PARAMETERS: [&str; 9] =
    ["after", "limit", "since", "until", "skill_id", "target_class", "failed", "type", "source"];

fn log_filter(query: &Query<'_>) -> Result<LogFilter, Problem> {
    let text = |name: &str| query.text(name).map(str::to_owned);
    let filter = LogFilter {
        since: query.time("since", DayEdge::Start)?,
        until: query.time("until", DayEdge::End)?,
        skill: text("skill_id"),
        target: text("target_class"),
        failed: query.flag("failed")?,
        event_type: text("type"),
        source: text("source"),
    };
    if filter.is_backwards() {
        let detail = "`since` is after `until`: no event can match";
        return Err(Problem::bad_request("bad_parameter", detail));
    }
    Ok(filter)
}

pub(crate) async fn skills(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["after", "limit"])?;
    let after = query.text("after").unwrap_or_default().to_owned();
    let limit = query.number("limit", 1..=MAX_PAGE)?.unwrap_or(MAX_PAGE);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let agent = caller.agent.clone();
    let list = move || {
        let known = agent.memory.known();
        let registry = agent.desk.as_ref().map(|desk| desk.gates().registry());
        Ok(Skills::new(registry, known.iter().map(|fact| &fact.fact.key)).after(&after, limit))
    };
    let (skills, _turn) = caller.look(list).await?;
    Ok(json(StatusCode::OK, skills.json()))
}

/// A name in the path; an error if it is not UTF-8.
pub(crate) type NameInPath = Result<Path<String>, PathRejection>;

fn fact_id(name: NameInPath) -> Result<FactId, Problem> {
    name.ok().and_then(|Path(text)| FactId::parse(&text)).ok_or_else(no_fact)
}

fn no_fact() -> Problem {
    Problem::not_found("this agent has no fact with this id")
}
