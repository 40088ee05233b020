//! Requests that are answered before their body is read, for example with 401, 413 or 429.
//!
//! **Invariants**
//! - The client gets the response. It has `Connection: close`, and the connection lingers as in
//!   RFC 9112 §9.6 ([`crate::socket::Leftover`]): a close with unread bytes would make the kernel
//!   send a reset, which can destroy the response before the client reads it.
//! - The response does not wait for the body. If the rest of a small body has arrived already, it
//!   is discarded and the connection is kept.

use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// Maximum bytes of an unread body that are discarded to keep a connection. For more bytes, a new
/// connection is cheaper.
const SMALL_BYTES: usize = 16 << 10;
/// Maximum number of consecutive polls without bytes before the connection is closed. The task of
/// the connection needs two polls to deliver bytes that have arrived.
const TURNS: usize = 3;

/// Whether the current request of a connection has an unread body.
#[derive(Default)]
pub(crate) struct Unread {
    left: AtomicBool,
    /// The rest of the body, after the handler has dropped it.
    rest: Mutex<Option<Incoming>>,
}

impl Unread {
    /// Wraps the body of a request, so that unread bytes are detected.
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

    /// Discards a small rest of the body, or adds `Connection: close` to the response.
    pub(crate) async fn settle(&self, response: &mut Response, expects: bool) {
        if !self.is_left() {
            return;
        }
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A client that expects `100 Continue` has sent nothing. A read would send it that status.
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

/// Discards the rest of a small body. Returns whether all of it has arrived.
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

/// A body that records whether it was read completely, and keeps its rest.
struct WatchedBody {
    /// `None` after its end or an error.
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
            // The bytes after a malformed part are unread, and cannot be read as a body.
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
