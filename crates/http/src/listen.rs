//! Connections: taken in up to a limit, bounded in time, ended gently.
//!
//! **Invariants**
//! - A slow client holds its own connection and nobody else's: a head that does not come, and an
//!   answer that is not read, end it. When all places are taken, the connection whose client the
//!   server has waited for longest gives way to a new one.
//! - A request whose client has reset the connection is dropped: it waits for nothing any more. A
//!   stream ends as soon as its client closes the connection, in whichever way.
//! - An answer that was given before the request was read reaches its client: the connection
//!   lingers, inside its place, and gives way to a new one.
//! - When it is stopped, the server takes no new connection and answers what was asked, for a while:
//!   nobody keeps it from stopping by being slow.

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

/// Connections that are open at once.
pub const MAX_CONNECTIONS: u32 = 512;
/// How long a request's head may take, and how long a connection may be idle before one.
const HEAD: Duration = Duration::from_secs(10);
/// How long a client may leave an answer unread.
const UNREAD: Duration = Duration::from_secs(30);
/// How long what was asked may take to be answered once the server is told to stop, and how long a
/// connection on which nothing was asked may stay.
const GRACE: Duration = Duration::from_secs(8);
const MOMENT: Duration = Duration::from_secs(1);
/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// How long to wait if no connection can be taken in, as when there are no file descriptors.
const RESPITE: Duration = Duration::from_millis(100);

/// Serves whoever connects until `stop`, and then until what was asked is answered. What `secure`
/// makes of a connection is spoken over: itself, or TLS.
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
    // Every place is free again once every connection has ended.
    places.all_free().await;
}

/// Says once why a connection must end although its client sends nothing. A task of its own waits
/// for that: the connection is woken for every request, and polls one atomic flag for it.
fn watched(socket: &Socket, peer: &Arc<Peer>) -> oneshot::Receiver<&'static str> {
    let (mut cut, told) = oneshot::channel();
    let (reset, hung_up, peer) = (socket.reset(), socket.hung_up(), peer.clone());
    tokio::spawn(async move {
        let left = async {
            peer.has_stream().await;
            hung_up.await;
        };
        let why = tokio::select! {
            () = reset => "the client reset it",
            () = left => "the client of a stream closed it",
            () = peer.gives_way() => "it gave way to a new connection",
            () = cut.closed() => return,
        };
        // The connection may have ended meanwhile.
        let _ = cut.send(why);
    });
    told
}

/// The next connection with its place; `None` if it could not be accepted.
async fn accept(listener: &TcpListener, places: &Arc<Places>) -> Option<(Socket, Place)> {
    match listener.accept().await {
        Ok((stream, _)) => {
            let place = places.take().await;
            Some((Socket::new(stream, &place.peer), place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be taken in");
            tokio::time::sleep(RESPITE).await;
            None
        }
    }
}

/// Answers the requests of one connection, and lingers if the client may still be sending.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    remains: Leftover,
    router: Router,
    service: &Service,
    peer: &Arc<Peer>,
) -> Result<(), Failure> {
    let unread = Arc::new(Unread::default());
    let ended = answer_all(stream, router, service, peer, &unread).await;
    // hyper answers a head that it cannot read, and leaves the rest of it unread.
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

/// Why a connection ended.
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
        // A client that has sent all it wanted may close its half, and still gets the answer.
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
    Ok(left.map_err(|_| "it was still there when the server had to stop")??)
}

/// Answers one request.
async fn answered(
    router: Router,
    mut request: hyper::Request<Incoming>,
    peer: &Arc<Peer>,
    unread: &Arc<Unread>,
) -> Result<Response, Infallible> {
    // Held until the last byte of the answer is handed over.
    let asked = peer.asks();
    request.extensions_mut().insert(peer.clone());
    let expects = expects(&request);
    let mut response = router.oneshot(unread.watch(request)).await?;
    unread.settle(&mut response, expects).await;
    Ok(response.map(|body| keeping(body, asked)))
}

/// A body that keeps something until it is gone.
pub(crate) fn keeping(body: Body, kept: impl Send + Sync + 'static) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _ = &kept;
        frame
    }))
}
