//! Bodies of requests: bounded in bytes, in time, and in what they unfold to.

use crate::problem::Problem;
use crate::service::Service;
use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::Read;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::StreamExt;

/// Bytes of a body as it is sent.
const MAX_BODY_BYTES: usize = 8 << 20;
/// Bytes of a body when it is unfolded: so much and no more is held, whatever it claims.
const MAX_UNFOLDED_BYTES: usize = 32 << 20;
/// Bytes of a body that are looked at where they arrive.
const SMALL_BYTES: usize = 16 << 10;
/// How long a body may take to arrive.
const BODY_SECONDS: u64 = 30;

/// A body as it was sent, and the room that it takes until it is let go.
pub(crate) struct Sent {
    bytes: Bytes,
    gzip: bool,
    _room: OwnedSemaphorePermit,
}

impl Sent {
    /// Whether looking at it takes so little time that no thread need be asked for it.
    pub(crate) fn is_small(&self) -> bool {
        !self.gzip && self.bytes.len() <= SMALL_BYTES
    }

    /// What it says.
    pub(crate) fn unfolded(&self) -> Result<Cow<'_, [u8]>, Problem> {
        if self.gzip { unfolded(&self.bytes).map(Cow::Owned) } else { Ok((&*self.bytes).into()) }
    }
}

/// What a body is said to be, without parameters; nothing if nobody says.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// 415: a body of another kind.
pub(crate) fn unsupported(detail: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

/// Reads a body.
pub(crate) async fn read(
    service: &Service,
    headers: &HeaderMap,
    body: Body,
) -> Result<Sent, Problem> {
    let gzip = match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"identity") => false,
        Some(b"gzip") => true,
        Some(_) => {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let detail = "a body may be gzip, or not encoded";
            return Err(Problem::new(status, "unsupported_encoding", detail));
        }
    };
    let told = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let told: usize = told.unwrap_or(MAX_BODY_BYTES);
    if told > MAX_BODY_BYTES {
        return Err(too_large(MAX_BODY_BYTES));
    }
    // Room for what it may become, taken before a byte is read.
    let most = if gzip { MAX_UNFOLDED_BYTES } else { told };
    let kib = u32::try_from(most.div_ceil(1024)).unwrap_or(u32::MAX);
    let room = service.room.clone().try_acquire_many_owned(kib);
    let room = room.map_err(|_| Problem::too_many("too many bodies wait; try again"))?;
    let waited = tokio::time::timeout(Duration::from_secs(BODY_SECONDS), whole(body, told));
    let bytes = match waited.await {
        Err(_) => {
            let detail = format!("the body took longer than {BODY_SECONDS} s");
            return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail));
        }
        Ok(bytes) => bytes?,
    };
    Ok(Sent { bytes, gzip, _room: room })
}

/// All bytes of a body. One that breaks off is told apart from one that is too large.
async fn whole(body: Body, most: usize) -> Result<Bytes, Problem> {
    let (mut chunks, mut all) = (body.into_data_stream(), Vec::new());
    while let Some(chunk) = chunks.next().await {
        let broken = |_| Problem::bad_request("broken_body", "the body broke off, or is garbled");
        let chunk = chunk.map_err(broken)?;
        if chunk.len() > most - all.len() {
            return Err(too_large(MAX_BODY_BYTES));
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all.into())
}

fn unfolded(bytes: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::new();
    let mut limited = MultiGzDecoder::new(bytes).take(MAX_UNFOLDED_BYTES as u64 + 1);
    let read = limited.read_to_end(&mut out);
    read.map_err(|_| Problem::bad_request("bad_gzip", "the body is not whole gzip"))?;
    if out.len() > MAX_UNFOLDED_BYTES { Err(too_large(MAX_UNFOLDED_BYTES)) } else { Ok(out) }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body is larger than {limit} bytes; send it in parts");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
}
