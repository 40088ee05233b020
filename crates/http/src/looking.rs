//! Looking: who the agent is, one fact, why it says what it says, passes, the log.

use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Caller, Service};
use crate::{blocking, json};
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use ipse_core::json::Members;
use ipse_core::{FactId, Seq};
use std::sync::Arc;

/// Rows of a page if nobody says how many, and at most.
const PAGE: u64 = 100;
const MAX_PAGE: u64 = 1000;
/// Pages of evidence: a hundred events each.
const MAX_EVIDENCE_PAGE: u64 = 1 << 32;

pub(crate) async fn identity(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let (look, identity) = (caller.agent.look.clone(), caller.agent.identity);
    let (manifest, standing) = blocking(move || look.standing()).await?;
    let unchanged = service.outside().is_of(&manifest, &identity);
    let body = Members::new()
        .text("identity_hash", &identity.to_string())
        .raw("manifest", if unchanged { manifest.as_str() } else { "null" })
        .raw("events", standing.events)
        .raw("forgotten", standing.forgotten)
        .raw("passes", standing.passes)
        .raw("unchanged", unchanged);
    Ok(json(StatusCode::OK, body.finish()))
}

pub(crate) async fn fact(
    Extension(caller): Extension<Caller>,
    id: NameInPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let (look, id) = (caller.agent.look.clone(), fact_id(id)?);
    let found = blocking(move || look.fact(&id)).await?;
    found.map(|body| json(StatusCode::OK, body)).ok_or_else(no_fact)
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
    let none = || Problem::not_found("this agent has no fact of that id, or it has no such page");
    found.map(|body| json(StatusCode::OK, body)).ok_or_else(none)
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
    Ok(json(StatusCode::OK, page))
}

pub(crate) async fn log(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["after", "limit"])?;
    let after = query.seq("after")?.unwrap_or_default();
    let limit = query.number("limit", 1..=MAX_PAGE)?.unwrap_or(PAGE);
    let look = caller.agent.look.clone();
    let (page, _turn) = caller.look(move || look.log(after, limit)).await?;
    Ok(json(StatusCode::OK, page))
}

/// What stands in the path, if it is text at all.
pub(crate) type NameInPath = Result<Path<String>, PathRejection>;

fn fact_id(name: NameInPath) -> Result<FactId, Problem> {
    name.ok().and_then(|Path(text)| FactId::parse(&text)).ok_or_else(no_fact)
}

fn no_fact() -> Problem {
    Problem::not_found("this agent has no fact of that id")
}
