//! Bodies of requests: limits on bytes, on time, and on the decompressed size.

use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Agent, Service};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::convert::Infallible;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt;

/// Maximum bytes of a body as it is sent.
const MAX_BODY_BYTES: usize = 8 << 20;
/// Maximum bytes of a decompressed body. No more than this is held in memory.
const MAX_UNFOLDED_BYTES: usize = 32 << 20;
/// A body up to this many bytes is processed on the async thread.
const SMALL_BYTES: usize = 16 << 10;
/// KiB of memory that are reserved at once.
const STEP_KIB: usize = 64;
/// KiB of memory for the bodies of all agents, and for those of one agent.
pub(crate) const ROOM_KIB: usize = 128 << 10;
pub(crate) const AGENT_ROOM_KIB: usize = 48 << 10;
/// Time limit for receiving a body.
const BODY_SECONDS: u64 = 30;

/// A request whose body is not read yet.
pub(crate) struct PostRequest {
    query: Option<String>,
    pub(crate) headers: HeaderMap,
    body: Body,
}

impl<S: Sync> FromRequest<S> for PostRequest {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        let (head, body) = request.into_parts();
        Ok(PostRequest { query: head.uri.query().map(str::to_owned), headers: head.headers, body })
    }
}

impl PostRequest {
    /// Returns an error if the request has query parameters: a request that writes has none.
    pub(crate) fn check_query(&self) -> Result<(), Problem> {
        Query::read(self.query.as_deref(), &[]).map(drop)
    }

    /// Returns an error unless the content type is JSON.
    pub(crate) fn check_json(&self) -> Result<(), Problem> {
        match media_type(&self.headers).as_str() {
            "application/json" => Ok(()),
            _ => Err(unsupported("send application/json")),
        }
    }

    /// Reads the body.
    pub(crate) async fn read(
        self,
        service: &Service,
        agent: &Agent,
    ) -> Result<ReceivedBody, Problem> {
        read(service, agent, &self.headers, self.body).await
    }
}

/// A body as it was sent, and the memory that is reserved for it until it is dropped.
pub(crate) struct ReceivedBody {
    bytes: Bytes,
    gzip: bool,
    room: Room,
}

impl ReceivedBody {
    /// Whether the body is small enough to be processed on the async thread.
    pub(crate) fn is_small(&self) -> bool {
        !self.gzip && self.bytes.len() <= SMALL_BYTES
    }

    /// The decompressed body.
    pub(crate) fn unfolded(&mut self) -> Result<Cow<'_, [u8]>, Problem> {
        if !self.gzip {
            return Ok((&*self.bytes).into());
        }
        unfolded(&self.bytes, &mut self.room).map(Cow::Owned)
    }
}

/// Reserved memory, counted for the agent and for the server. It grows with the bytes that have
/// arrived and not with `Content-Length`, so that a client that sends nothing reserves nothing.
struct Room {
    shares: [Arc<Semaphore>; 2],
    held: Vec<OwnedSemaphorePermit>,
    kib: usize,
}

impl Room {
    fn of(service: &Service, agent: &Agent) -> Self {
        Room { shares: [agent.room.clone(), service.room.clone()], held: Vec::new(), kib: 0 }
    }

    /// Reserves memory for `more` bytes in addition to `bytes`.
    fn hold(&mut self, bytes: usize, more: usize) -> Result<(), Problem> {
        let wanted = (bytes + more).div_ceil(1024).next_multiple_of(STEP_KIB);
        let step = u32::try_from(wanted.saturating_sub(self.kib)).unwrap_or(u32::MAX);
        for share in self.shares.iter().filter(|_| step > 0) {
            let taken = share.clone().try_acquire_many_owned(step);
            self.held.push(taken.map_err(|_| {
                Problem::too_many("too many request bodies are in memory; try again")
            })?);
        }
        self.kib = self.kib.max(wanted);
        Ok(())
    }
}

/// The media type of a body without parameters; empty if it is missing.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// 415: the media type is not supported.
pub(crate) fn unsupported(detail: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

/// Reads a body within the limits.
async fn read(
    service: &Service,
    agent: &Agent,
    headers: &HeaderMap,
    body: Body,
) -> Result<ReceivedBody, Problem> {
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
    let gzip = match encoding.map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"identity") => false,
        Some(b"gzip" | b"x-gzip") => true,
        Some(_) => {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let detail = "the body must be gzip or not encoded";
            return Err(Problem::new(status, "unsupported_encoding", detail));
        }
    };
    let reported = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let reported: usize = reported.unwrap_or(MAX_BODY_BYTES);
    if reported > MAX_BODY_BYTES {
        return Err(too_large(MAX_BODY_BYTES));
    }
    let mut room = Room::of(service, agent);
    let arriving = whole(body, reported, &mut room);
    let waited = tokio::time::timeout(Duration::from_secs(BODY_SECONDS), arriving);
    let bytes = match waited.await {
        Err(_) => {
            let detail = format!("the body took longer than {BODY_SECONDS} s");
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail));
        }
        Ok(bytes) => bytes?,
    };
    Ok(ReceivedBody { bytes, gzip, room })
}

/// All bytes of a body. A truncated body and a body that is too large are different problems.
async fn whole(body: Body, most: usize, room: &mut Room) -> Result<Bytes, Problem> {
    let (mut chunks, mut all) = (body.into_data_stream(), Vec::new());
    while let Some(chunk) = chunks.next().await {
        let broken = |_| Problem::bad_request("broken_body", "the body is truncated or malformed");
        let chunk = chunk.map_err(broken)?;
        if chunk.len() > most - all.len() {
            return Err(too_large(MAX_BODY_BYTES));
        }
        room.hold(all.len(), chunk.len())?;
        all.extend_from_slice(&chunk);
    }
    Ok(all.into())
}

fn unfolded(bytes: &[u8], room: &mut Room) -> Result<Vec<u8>, Problem> {
    let (mut out, mut decoder) = (Vec::new(), MultiGzDecoder::new(bytes));
    loop {
        room.hold(bytes.len() + out.len(), SMALL_BYTES)?;
        let read = decoder.by_ref().take(SMALL_BYTES as u64).read_to_end(&mut out);
        match read.map_err(|_| Problem::bad_request("bad_gzip", "the body is not complete gzip"))? {
            0 => return Ok(out),
            _ if out.len() > MAX_UNFOLDED_BYTES => return Err(too_large(MAX_UNFOLDED_BYTES)),
            _ => {}
        }
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body is larger than {limit} bytes; send it in parts");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(shares: &[Arc<Semaphore>; 2]) -> Room {
        Room { shares: shares.clone(), held: Vec::new(), kib: 0 }
    }

    #[test]
    fn room_grows_with_what_comes_and_is_given_back() {
        let shares = [200, 300].map(|kib| Arc::new(Semaphore::new(kib)));
        let left = || shares.each_ref().map(|share| share.available_permits());
        let (mut one, mut other) = (room(&shares), room(&shares));
        one.hold(0, 1).unwrap();
        one.hold(1, 1000).unwrap();
        assert_eq!(left(), [136, 236], "a step is reserved once");
        one.hold(1001, 100 << 10).unwrap();
        assert_eq!(left(), [72, 172]);
        other.hold(0, 1).unwrap();
        assert!(other.hold(1, 64 << 10).is_err(), "the smaller share is used up");
        drop(other);
        drop(one);
        assert_eq!(left(), [200, 300]);
    }

    #[test]
    fn what_unfolds_needs_room_for_what_it_becomes() {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
        let folded = encoder.finish().unwrap();
        let shares = [512, 4096].map(|kib| Arc::new(Semaphore::new(kib)));
        let refused = unfolded(&folded, &mut room(&shares)).unwrap_err();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let shares = [2048, 4096].map(|kib| Arc::new(Semaphore::new(kib)));
        assert_eq!(unfolded(&folded, &mut room(&shares)).unwrap().len(), 1 << 20);
    }
}
