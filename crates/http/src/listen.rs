//! Connections: their number is limited, they have timeouts, and shutdown is graceful.
//!
//! **Invariants**
//! - A slow client blocks only its own connection: a request head or a read of the response that
//!   takes too long closes it. When all places are taken, the server closes the connection whose
//!   client it has waited for longest, in favour of a new one.
//! - A request whose client has reset the connection is dropped, even while it waits. A stream ends
//!   as soon as its client closes the connection in any way.
//! - A response that is sent before the request was read reaches its client: the connection
//!   lingers in its place, and is closed if a new connection needs the place.
//! - On shutdown the server accepts no new connection and answers open requests, up to a time limit
//!   that slow clients cannot extend.

use crate::access::router;
use crate::places::{Peer, Place, Places};
use crate::service::Service;
use crate::socket::{Leftover, Socket};
use crate::unread::{Unread, expects};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

/// Maximum number of open connections.
pub const MAX_CONNECTIONS: u32 = 512;
/// Timeout for the head of a request, and for an idle connection.
const HEAD: Duration = Duration::from_secs(10);
/// Timeout for a client that does not read a response.
const UNREAD: Duration = Duration::from_secs(30);
/// Time limits of a shutdown: for a connection with an open request, and for one without.
const GRACE: Duration = Duration::from_secs(8);
const MOMENT: Duration = Duration::from_secs(1);
/// Maximum bytes of a request head.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// The pause after a failed accept, for example when no file descriptor is free.
const RESPITE: Duration = Duration::from_millis(100);

/// Serves connections until `stop`, and then until open requests are answered. `secure` wraps each
/// connection: in TLS, or not at all.
pub async fn serve<Securing, Secured>(
    listener: TcpListener,
    service: Arc<Service>,
    secure: impl Fn(Socket) -> Securing,
    stop: impl Future<Output = ()>,
) where
    Securing: Future<Output = io::Result<Secured>> + Send + 'static,
    Secured: AsyncRead + AsyncWrite + Send + 'static,
{
    let places = Places::new(MAX_CONNECTIONS, service.metrics.closed.clone());
    let router = router(service.clone());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stop => break,
        };
        let Some((socket, place)) = accepted else { continue };
        let (router, service) = (router.clone(), service.clone());
        let (cut, remains) = (watched(&socket, &place.peer), socket.remains());
        let secured = secure(socket);
        tokio::spawn(async move {
            service.connected(1);
            let spoken = async {
                let secured = tokio::time::timeout(HEAD, secured).await??;
                speak(secured, remains, router, &service, &place.peer).await
            };
            let ended = tokio::select! {
                biased;
                ended = spoken => ended,
                Ok(why) = cut => Err(why.into()),
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
            service.connected(-1);
            drop(place);
        });
    }
    drop(listener);
    service.close();
    // All places are free when all connections have ended.
    places.all_free().await;
}

/// Reports once why a connection must end although its client sends nothing. A separate task waits
/// for that: the task of the connection, which wakes for every request, polls only one atomic flag.
fn watched(socket: &Socket, peer: &Arc<Peer>) -> oneshot::Receiver<&'static str> {
    let (mut cut, reported) = oneshot::channel();
    let (reset, hung_up, peer) = (socket.reset(), socket.hung_up(), peer.clone());
    tokio::spawn(async move {
        let left = async {
            peer.has_stream().await;
            hung_up.await;
        };
        let why = tokio::select! {
            () = reset => "the client reset the connection",
            () = left => "the client of a stream closed the connection",
            () = peer.gives_way() => "closed in favour of a new connection",
            () = cut.closed() => return,
        };
        // The connection may have ended meanwhile.
        let _ = cut.send(why);
    });
    reported
}

/// The next connection with its place; `None` if it could not be accepted.
async fn accept(listener: &TcpListener, places: &Arc<Places>) -> Option<(Socket, Place)> {
    match listener.accept().await {
        Ok((stream, _)) => {
            let place = places.take().await;
            Some((Socket::new(stream, &place.peer), place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(RESPITE).await;
            None
        }
    }
}

/// Answers the requests of one connection, then lingers if the client may still be sending.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    remains: Leftover,
    router: Router,
    service: &Service,
    peer: &Arc<Peer>,
) -> Result<(), Failure> {
    let unread = Arc::new(Unread::default());
    let ended = answer_all(stream, router, service, peer, &unread).await;
    // hyper answers a malformed head and leaves the rest of it unread.
    let garbled = |error: &Failure| error.downcast_ref().is_some_and(hyper::Error::is_parse);
    if unread.is_left() || ended.as_ref().is_err_and(garbled) {
        let mut closing = service.closing();
        let stopped = async {
            let _ = closing.wait_for(|closing| *closing).await;
            tokio::time::sleep(MOMENT).await;
        };
        tokio::select! {
            () = remains.discard() => {}
            () = stopped => {}
        }
    }
    ended
}

/// The reason why a connection ended.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Answers the requests of one connection, and shuts down its writing half.
async fn answer_all(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    router: Router,
    service: &Service,
    peer: &Arc<Peer>,
    unread: &Arc<Unread>,
) -> Result<(), Failure> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    let answer = service_fn(|request| answered(router.clone(), request, peer, unread));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MAX_HEAD_BYTES)
        // A client that has sent its request may close its half, and still gets the response.
        .half_close(true)
        .serve_connection(TokioIo::new(Box::pin(stream)), answer);
    let mut connection = pin!(connection);
    let mut closing = service.closing();
    tokio::select! {
        done = connection.as_mut() => return Ok(done?),
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    let grace = if peer.is_busy() { GRACE } else { MOMENT };
    let left = tokio::time::timeout(grace, connection).await;
    Ok(left.map_err(|_| "it was still open when the server had to stop")??)
}

/// Answers one request.
async fn answered(
    router: Router,
    mut request: hyper::Request<Incoming>,
    peer: &Arc<Peer>,
    unread: &Arc<Unread>,
) -> Result<Response, Infallible> {
    // Held until the last byte of the response is passed to the socket.
    let asked = peer.asks();
    request.extensions_mut().insert(peer.clone());
    let expects = expects(&request);
    let mut response = router.oneshot(unread.watch(request)).await?;
    unread.settle(&mut response, expects).await;
    Ok(response.map(|body| keeping(body, asked)))
}

/// A body that owns `kept` until it is dropped.
pub(crate) fn keeping(body: Body, kept: impl Send + Sync + 'static) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _ = &kept;
        frame
    }))
}
