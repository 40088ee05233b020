//! Whether the server lives, whether it can serve, and which one it is.

use crate::json;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::Service;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use ipse_core::json::Members;
use std::sync::Arc;

/// Alive: whoever can answer this is.
pub(crate) async fn live(RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    Ok(json(StatusCode::OK, Members::new().text("status", "live").finish()))
}

/// Ready: every agent's log can be read.
pub(crate) async fn ready(
    State(service): State<Arc<Service>>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let agents = service.agents();
    let looked =
        tokio::task::spawn_blocking(move || agents.iter().all(|agent| agent.look.head().is_ok()));
    match looked.await {
        Ok(true) => Ok(json(StatusCode::OK, Members::new().text("status", "ready").finish())),
        _ => Err(Problem::unavailable("not_ready", "a log cannot be read")),
    }
}

/// Which version this is.
pub(crate) async fn version(RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let version = Members::new().text("name", "ipse").text("version", env!("CARGO_PKG_VERSION"));
    Ok(json(StatusCode::OK, version.finish()))
}
