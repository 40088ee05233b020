//! Routes for operators: run a pass, forget events.

use crate::body::PostRequest;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Caller, Service};
use crate::{away, json};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use ipse_core::json::Value;
use ipse_core::{EventRef, json_parse};
use ipse_engine::{Error, Selection, consolidated_json};
use std::sync::Arc;

/// Maximum number of events that one request forgets.
const MAX_FORGOTTEN: usize = 10_000;
/// Maximum nesting of a request: the object and its list.
const DEPTH: usize = 3;

pub(crate) async fn consolidate(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let memory = caller.agent.memory.clone();
    let pass = caller.write(move || memory.consolidate()).await?;
    let pass = pass.inspect_err(|error| caller.agent.failed(error))?;
    let checkpoint = caller.agent.memory.known().checkpoint();
    Ok(json(StatusCode::OK, consolidated_json(pass.as_ref(), checkpoint)))
}

pub(crate) async fn forget(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    posted: PostRequest,
) -> Result<Response, Problem> {
    posted.check_query()?;
    posted.check_json()?;
    let mut sent = posted.read(&service, &caller.agent).await?;
    let refs = away(move || refs(&sent.unfolded()?)).await??;
    let memory = caller.agent.memory.clone();
    let done = caller.write(move || memory.forget(&Selection::Refs(refs))).await?;
    let done = done.map_err(|error| match error {
        Error::UnknownEvent(name) => Problem::not_found(format!("no event {name} in this log")),
        Error::NeverForgotten(name, kind) => {
            let detail = format!("{name} is a {kind} event, which cannot be forgotten");
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "never_forgotten", detail)
        }
        error => {
            caller.agent.failed(&error);
            Problem::from(error)
        }
    })?;
    Ok(json(StatusCode::OK, done.json().finish()))
}

/// Reads `{"event_refs": […]}`.
fn refs(body: &[u8]) -> Result<Vec<EventRef>, Problem> {
    let bad = |detail: &str| Problem::bad_request("bad_request", detail);
    let value = json_parse::parse(body, DEPTH).map_err(|_| bad("the body is not JSON"))?;
    let shape = "send {\"event_refs\": [\"ev_…\"]}";
    let object = value.as_object().filter(|object| object.len() == 1).ok_or_else(|| bad(shape))?;
    let Some(Value::Array(items)) = object.get("event_refs") else { return Err(bad(shape)) };
    if items.is_empty() || items.len() > MAX_FORGOTTEN {
        return Err(bad(&format!("name from 1 to {MAX_FORGOTTEN} events")));
    }
    let name = |item: &Value<'_>| item.as_text().and_then(EventRef::parse);
    items.iter().map(name).collect::<Option<_>>().ok_or_else(|| bad(shape))
}
