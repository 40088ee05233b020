//! The HTTP server: planners read facts, producers append events, operators and auditors read the
//! log.
//!
//! **Invariants**
//! - A request acts on the identity in its token. Nothing else selects the identity.
//! - No route lets a planner write a fact, an event of a producer or a manifest.
//! - An event that was answered as appended is durable.
//! - This crate does not access manifests, bundles, the clock or randomness itself. It gets them
//!   from its caller ([`Platform`]).
#![forbid(unsafe_code)]

mod access;
mod answers;
mod appender;
mod audit;
mod bearer;
mod binary;
mod body;
mod document;
mod drift;
mod events;
mod exposition;
mod health;
mod host;
mod in_memory;
mod index;
mod intents;
mod line;
mod listen;
mod metrics;
mod operations;
mod pace;
mod places;
mod plan;
mod problem;
mod queries;
mod query;
mod routes;
mod rules;
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

/// Runs blocking work off the async threads.
async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "BUG: a request panicked");
        Problem::internal()
    })
}

/// Runs work on the store off the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ipse_engine::Error> + Send + 'static,
) -> Result<T, Problem> {
    Ok(away(work).await??)
}

/// A text response with this media type.
fn text(kind: &'static str, body: String) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
}

/// A JSON response.
fn json(status: StatusCode, body: String) -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, body).into_response()
}
