//! Routes for auditors: the tree head, proofs, the trail of an action, the bundle.

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
use ipse_core::{EventRef, Seq};
use ipse_engine::trail::{Found, Listing, MAX_EVIDENCE};
use ipse_inspect::ConsistencyAnswer;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;

/// Bytes of a chunk of a bundle, and the number of chunks that may be queued.
const CHUNK_BYTES: usize = 64 << 10;
const CHUNKS: usize = 4;
/// The minimum speed at which a client has to read a bundle, so that it does not block its agent's
/// slot, and the time by which it may fall behind.
const MIN_BYTES_PER_SECOND: u64 = 128 << 10;
const BEHIND: Duration = Duration::from_secs(10);
/// The time that a chunk takes at that speed.
const CHUNK_TIME: Duration =
    Duration::from_micros(CHUNK_BYTES as u64 * 1_000_000 / MIN_BYTES_PER_SECOND);
/// The last page of facts that may be requested: far beyond the size of a consultation.
const MAX_PAGE: u64 = 1 << 32;

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
        Some(None) => Err(Problem::not_found("no signed tree head covers the event yet")),
        Some(Some(proof)) => Ok(json(StatusCode::OK, proof.json())),
    }
}

/// The proof that the log continues an earlier tree head.
pub(crate) async fn consistency(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["from", "to"])?;
    let sizes = 1..=Seq::MAX.0;
    let to = query.number("to", sizes.clone())?;
    let bad = |detail: String| Problem::bad_request("bad_parameter", detail);
    let from = query.number("from", sizes)?;
    let from = from.ok_or_else(|| bad("`from` is required: a number of entries".to_owned()))?;
    let look = caller.agent.look.clone();
    match blocking(move || look.consistency(from, to)).await? {
        ConsistencyAnswer::Proof(proof) => Ok(json(StatusCode::OK, proof.json())),
        ConsistencyAnswer::Unsigned => Err(Problem::not_found("no tree head is signed yet")),
        ConsistencyAnswer::Beyond(signed) => {
            let detail = format!("the newest signed tree head covers {signed} entries, not `to`");
            Err(Problem::not_found(detail))
        }
        ConsistencyAnswer::Reversed(to) => {
            Err(bad(format!("`from` is {from} and must not be above `to`, which is {to}")))
        }
    }
}

/// The trail of an action.
pub(crate) async fn action(
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["evidence", "format", "page"])?;
    let mut listing = Listing::default();
    if let Some(evidence) = query.number("evidence", 1..=MAX_EVIDENCE as u64)? {
        listing.evidence = usize::try_from(evidence).unwrap_or(MAX_EVIDENCE);
    }
    if let Some(page) = query.number("page", 1..=MAX_PAGE)? {
        listing.page = usize::try_from(page).unwrap_or(usize::MAX);
    }
    let text_page = match query.text("format") {
        None | Some("json") => false,
        Some("text") => true,
        Some(_) => {
            let detail = "`format` must be json or text";
            return Err(Problem::bad_request("bad_parameter", detail));
        }
    };
    let name = name.ok().and_then(|Path(text)| EventRef::parse(&text));
    let name = name.ok_or_else(|| Problem::not_found("no event with this name in this log"))?;
    let look = caller.agent.look.clone();
    let (found, _turn) = caller.look(move || look.action(&name, listing)).await?;
    match found {
        Found::Action(trail) if text_page => Ok(text("text/plain; charset=utf-8", trail.text())),
        Found::Action(trail) => Ok(json(StatusCode::OK, trail.json())),
        Found::NoAction(kind) => {
            let detail = format!("{name} is not an action: ipse wrote it itself ({kind})");
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
    let slots = slots(&service, &caller)?;
    let clock = service.clone();
    // The work owns the slots: they stay taken until it ends, even if the client is gone.
    let (made, slots) = away(move || (service.outside().bundle(&identity), slots)).await?;
    let file = made.map_err(|why| {
        tracing::warn!(%identity, why, "a bundle could not be made");
        let detail = "no bundle could be made: the operator's key is missing, nothing is signed \
                      yet, or the disk is full; see the server log";
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
    tokio::spawn(async move {
        if let Err(why) = send(file, size, sender, || clock.outside().elapsed()).await {
            tracing::info!(%identity, why, "a bundle was not sent completely");
        }
        drop(slots);
    });
    Ok((headers, Body::from_stream(ReceiverStream::new(receiver))).into_response())
}

/// Takes a slot of the agent and one of the server: each bundle uses a file as large as the log.
fn slots(service: &Service, caller: &Caller) -> Result<[OwnedSemaphorePermit; 2], Problem> {
    let taken = |slots: &Arc<Semaphore>, detail: &str| {
        slots.clone().try_acquire_owned().map_err(|_| Problem::too_many(detail))
    };
    let of_agent = "a bundle of this agent is being made or sent; try again";
    let of_server = "bundles of other agents are being made or sent; try again";
    Ok([taken(&caller.agent.bundles, of_agent)?, taken(&service.bundles, of_server)?])
}

/// Sends the bytes of a file in chunks, as fast as the client reads, until the client is gone or
/// too slow. A client may fall behind [`MIN_BYTES_PER_SECOND`] by at most [`BEHIND`]. The slots are
/// free after the last chunk: a client that has read it can request the next bundle at once.
async fn send(
    mut file: File,
    mut size: u64,
    sender: mpsc::Sender<io::Result<Bytes>>,
    elapsed: impl Fn() -> Duration,
) -> Result<(), &'static str> {
    let mut until = elapsed() + BEHIND;
    while size > 0 {
        let read = away(move || (chunk(&mut file), file)).await;
        let (read, back) = read.map_err(|_| "the file could not be read")?;
        file = back;
        let count = read.as_ref().map_or(0, Bytes::len) as u64;
        let left = until.saturating_sub(elapsed());
        let sent = tokio::time::timeout(left, sender.send(read)).await;
        sent.map_err(|_| "the client read too slowly")?.map_err(|_| "the client is gone")?;
        if count == 0 {
            return Err("the file could not be read");
        }
        size = size.saturating_sub(count);
        until = (until + CHUNK_TIME).min(elapsed() + BEHIND);
    }
    Ok(())
}

/// The next bytes of a file. It is an error if the file has ended.
fn chunk(file: &mut File) -> io::Result<Bytes> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    match file.take(CHUNK_BYTES as u64).read_to_end(&mut chunk)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(chunk.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};
    use tokio::time::Instant;

    const SIZE: usize = 100 * CHUNK_BYTES;

    fn file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; SIZE]).unwrap();
        file.rewind().unwrap();
        file
    }

    /// The result of sending, and how many chunks a client receives that reads one per `pause`.
    fn sent(pause: Duration, most: usize) -> (Result<(), &'static str>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::time::pause();
            let begun = Instant::now();
            let (sender, mut receiver) = mpsc::channel(1);
            let sending = tokio::spawn(send(file(), SIZE as u64, sender, move || begun.elapsed()));
            let mut chunks = 0;
            while chunks < most && receiver.recv().await.is_some_and(|chunk| chunk.is_ok()) {
                chunks += 1;
                tokio::time::sleep(pause).await;
            }
            let _held = (chunks == most).then_some(receiver);
            (sending.await.unwrap(), chunks)
        })
    }

    #[test]
    fn a_client_that_reads_fast_enough_gets_the_whole_bundle() {
        assert_eq!(sent(Duration::ZERO, usize::MAX), (Ok(()), 100));
        assert_eq!(sent(CHUNK_TIME, usize::MAX), (Ok(()), 100));
    }

    #[test]
    fn a_client_that_reads_too_slowly_is_cut_off() {
        let (ended, chunks) = sent(CHUNK_TIME * 2, usize::MAX);
        assert_eq!(ended, Err("the client read too slowly"));
        assert!((20..60).contains(&chunks), "{chunks}");
        assert_eq!(sent(Duration::ZERO, 0).0, Err("the client read too slowly"));
        // Reading fast at first does not extend the limit.
        assert_eq!(sent(Duration::ZERO, 90).0, Err("the client read too slowly"));
    }
}
