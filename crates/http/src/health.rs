//! Liveness, readiness and version of the server.

use crate::json;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::Service;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use ipse_core::json::Members;
use std::sync::Arc;

/// Liveness: the process responds.
pub(crate) async fn live(RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    Ok(json(StatusCode::OK, Members::new().text("status", "live").finish()))
}

/// Readiness: the store was readable a moment ago, and every log accepts events. The route needs no
/// token, so it does not read the store.
pub(crate) async fn ready(
    State(service): State<Arc<Service>>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    service.ready()?;
    Ok(json(StatusCode::OK, Members::new().text("status", "ready").finish()))
}

/// The version of the server.
pub(crate) async fn version(RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let version = Members::new().text("name", "ipse").text("version", env!("CARGO_PKG_VERSION"));
    Ok(json(StatusCode::OK, version.finish()))
}
