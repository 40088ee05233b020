//! Requests that are answered before their body is read, as with 401, 413 or 429.
//!
//! **Invariants**
//! - The client gets such an answer. It says `Connection: close`, and the connection lingers as in
//!   RFC 9112 §9.6 ([`crate::socket::Leftover`]): a close with unread bytes would make the kernel
//!   send a reset, which can destroy the answer before the client reads it.
//! - The answer does not wait for the body. If the rest of a small body has arrived already, it is
//!   discarded and the connection is kept.

use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// Bytes of an unread body that are discarded to keep a connection. A new connection costs less
/// than more than this.
const SMALL_BYTES: usize = 16 << 10;
/// How often in a row the rest of a body may be found missing before the connection is given up.
/// The connection's task needs two turns to hand over bytes that have arrived.
const TURNS: usize = 3;

/// Whether the current request of a connection has an unread body.
#[derive(Default)]
pub(crate) struct Unread {
    left: AtomicBool,
    /// The rest of the body, once no handler holds it.
    rest: Mutex<Option<Incoming>>,
}

impl Unread {
    /// Hands the request on with a body that is watched.
    pub(crate) fn watch(self: &Arc<Self>, request: Request<Incoming>) -> Request<Body> {
        let whole = request.body().is_end_stream();
        self.left.store(!whole, Ordering::Relaxed);
        if whole {
            return request.map(|_| Body::empty());
        }
        let unread = self.clone();
        request.map(|body| Body::new(WatchedBody { body: Some(body), unread }))
    }

    /// Whether a body was left unread, so that the connection cannot be kept.
    pub(crate) fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Says in an answer that the connection ends with it, if it must.
    pub(crate) async fn settle(&self, response: &mut Response, expects: bool) {
        if !self.is_left() {
            return;
        }
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A client that asked before sending has sent nothing; reading would tell it to go on.
        if let Some(rest) = rest.filter(|_| !expects)
            && has_arrived(rest).await
        {
            self.left.store(false, Ordering::Relaxed);
        } else {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Whether a client waits for `100 Continue` before it sends the body.
pub(crate) fn expects<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(EXPECT)
}

/// Discards the rest of a small body, and says whether all of it has arrived.
async fn has_arrived(mut rest: Incoming) -> bool {
    let (mut bytes, mut missing) = (0, 0);
    while !rest.is_end_stream() && bytes <= SMALL_BYTES && missing < TURNS {
        let next = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut rest).poll_frame(cx)));
        match next.await {
            Poll::Ready(None) => return true,
            Poll::Ready(Some(Err(_))) => return false,
            Poll::Ready(Some(Ok(frame))) => {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                missing = 0;
            }
            Poll::Pending => {
                missing += 1;
                tokio::task::yield_now().await;
            }
        }
    }
    rest.is_end_stream()
}

/// A body that reports whether it was read to its end, and leaves its rest behind.
struct WatchedBody {
    /// `None` once it has ended or is broken.
    body: Option<Incoming>,
    unread: Arc<Unread>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let next = ready!(Pin::new(body).poll_frame(cx));
        match &next {
            Some(Ok(_)) => {}
            // What follows a garbled part of a body is unread, and cannot be read as a body.
            Some(Err(_)) => self.body = None,
            None => {
                self.body = None;
                self.unread.left.store(false, Ordering::Relaxed);
            }
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        if body.is_end_stream() {
            self.unread.left.store(false, Ordering::Relaxed);
        } else {
            *self.unread.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
        }
    }
}
