//! What auditors take away: the tree head, proofs, the walk back from an action, the bundle.

use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Caller, Service};
use crate::{away, blocking, json, text};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ipse_core::EventRef;
use ipse_engine::trail::{EVIDENCE, Found, MAX_EVIDENCE};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Bytes of a bundle that are sent at once, and how many such chunks wait.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNKS: usize = 4;

pub(crate) async fn tree_head(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let look = caller.agent.look.clone();
    let note = blocking(move || look.tree_head()).await?;
    let note = note.ok_or_else(|| Problem::not_found("no tree head is signed yet"))?;
    Ok(text("text/plain; charset=utf-8", note.note))
}

pub(crate) async fn proof(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["event_ref"])?;
    let event_ref = query.text("event_ref").and_then(EventRef::parse);
    let name = event_ref.ok_or_else(|| {
        Problem::bad_request("bad_parameter", "`event_ref` must be an event ref (ev_…)")
    })?;
    let look = caller.agent.look.clone();
    match blocking(move || look.proof(&name)).await? {
        None => Err(Problem::not_found(format!("no event {name} in this log"))),
        Some(None) => Err(Problem::not_found("the event is under no signed tree head yet")),
        Some(Some(proof)) => Ok(json(StatusCode::OK, proof)),
    }
}

/// The walk back from an action.
pub(crate) async fn action(
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["evidence", "format"])?;
    let evidence = query.number("evidence", 1..=MAX_EVIDENCE as u64)?.unwrap_or(EVIDENCE as u64);
    let evidence = usize::try_from(evidence).unwrap_or(EVIDENCE);
    let page = match query.text("format") {
        None | Some("json") => false,
        Some("text") => true,
        Some(_) => {
            let detail = "`format` must be json or text";
            return Err(Problem::bad_request("bad_parameter", detail));
        }
    };
    let name = name.ok().and_then(|Path(text)| EventRef::parse(&text));
    let name = name.ok_or_else(|| Problem::not_found("no event of that name in this log"))?;
    let look = caller.agent.look.clone();
    let (found, _turn) = caller.look(move || look.action(&name, evidence)).await?;
    match found {
        Found::Action(trail) if page => Ok(text("text/plain; charset=utf-8", trail.text())),
        Found::Action(trail) => Ok(json(StatusCode::OK, trail.json())),
        Found::NoAction(kind) => {
            let detail = format!("{name} is no action: ipse wrote it about itself ({kind})");
            Err(Problem::not_found(detail))
        }
        Found::Nothing => Err(Problem::not_found(format!("no event {name} in this log"))),
    }
}

pub(crate) async fn bundle(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let identity = caller.agent.identity;
    let place = service.bundles.clone().try_acquire_owned();
    let place = place.map_err(|_| Problem::too_many("other bundles are being made; try again"))?;
    let file = away(move || service.outside().bundle(&identity)).await?.map_err(|why| {
        tracing::warn!(%identity, why, "a bundle could not be made");
        let detail = "no bundle could be made: the operator's key is not at hand, nothing is \
                      signed yet, or there is no room for it; the server's log says why";
        Problem::unavailable("no_bundle", detail)
    })?;
    let size = file.metadata().map_err(|_| Problem::internal())?.len();
    let name = format!("attachment; filename=\"{}.ipse\"", &identity.to_string()[..16]);
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/x-tar")),
        (CONTENT_LENGTH, HeaderValue::from(size)),
        (CONTENT_DISPOSITION, HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static(""))),
    ];
    let (sender, receiver) = mpsc::channel(CHUNKS);
    tokio::task::spawn_blocking(move || {
        send(file, &sender);
        drop(place);
    });
    Ok((headers, Body::from_stream(ReceiverStream::new(receiver))).into_response())
}

/// Sends a file in chunks, as fast as it is read, until nobody reads any more.
fn send(mut file: File, sender: &mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
        let ended = !matches!(read, Ok(1..));
        if read.is_ok() && ended {
            return;
        }
        let sent = sender.blocking_send(read.map(|_| Bytes::from(chunk)));
        if sent.is_err() || ended {
            return;
        }
    }
}
