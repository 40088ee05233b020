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

/// Ready: the store could be read a moment ago, and every log takes events. Every client may ask,
/// so nothing is read for it.
pub(crate) async fn ready(
    State(service): State<Arc<Service>>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    service.ready()?;
    Ok(json(StatusCode::OK, Members::new().text("status", "ready").finish()))
}

/// Which version this is.
pub(crate) async fn version(RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let version = Members::new().text("name", "ipse").text("version", env!("CARGO_PKG_VERSION"));
    Ok(json(StatusCode::OK, version.finish()))
}
