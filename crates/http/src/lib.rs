//! Planners read, producers append, operators and auditors look, over HTTP.
//!
//! **Invariants**
//! - Whose log a request is about comes from its token and from nowhere else.
//! - A planner has no route on which it could write a fact, an event or a manifest.
//! - An event that was answered as appended is durable.
//! - This crate has no path to manifests and bundles: what it needs of them is handed to it
//!   ([`Platform`]), and so are clock and randomness.
#![forbid(unsafe_code)]

mod access;
mod answers;
mod appender;
mod audit;
mod binary;
mod body;
mod document;
mod events;
mod exposition;
mod health;
mod host;
mod intents;
mod line;
mod listen;
mod metrics;
mod operations;
mod pace;
mod places;
mod problem;
mod queries;
mod query;
mod routes;
mod semantic;
mod service;
mod socket;
mod stream;
mod trace;
mod turns;
mod unread;
mod wait;

#[cfg(test)]
#[path = "../tests/world/attacks.rs"]
mod attacks;
#[cfg(test)]
extern crate self as ipse_http;
#[cfg(test)]
#[path = "../tests/world/mod.rs"]
mod world;

pub use access::router;
pub use host::{Host, Hosts};
pub use listen::{MAX_CONNECTIONS, serve};
pub use metrics::Process;
pub use problem::Problem;
pub use routes::{Access, ROUTES, Route};
pub use service::{Platform, Service};
pub use socket::Socket;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// Does what takes long away from the threads that serve.
async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "BUG: a request broke off");
        Problem::internal()
    })
}

/// The same for what may wait for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ipse_engine::Error> + Send + 'static,
) -> Result<T, Problem> {
    Ok(away(work).await??)
}

/// An answer that is a text of that media type.
fn text(kind: &'static str, body: String) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
}

/// A JSON answer.
fn json(status: StatusCode, body: String) -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, body).into_response()
}
