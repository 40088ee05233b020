//! Connections: taken in up to a limit, bounded in time, ended gently.
//!
//! **Invariants**
//! - A slow client holds its own connection and nobody else's: a head that does not come, and an
//!   answer that is not read, end it.
//! - Told to stop, the server takes no new connection and answers what was asked, for a while:
//!   nobody keeps it from stopping by being slow.

use crate::access::router;
use crate::service::Service;
use axum::Router;
use axum::body::Body;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

/// Connections that are open at once; more of them wait to be taken in.
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
/// Who holds the mark of a connection on which nothing is asked: the connection, and its service.
const IDLE: usize = 2;
/// How long to wait if no connection can be taken in, as when there are no file descriptors.
const RESPITE: Duration = Duration::from_millis(100);

/// Serves whoever connects until `stop`, and then until what was asked is answered. What `secure`
/// makes of a connection is spoken over: itself, or TLS.
pub async fn serve<Securing, Secured>(
    listener: TcpListener,
    service: Arc<Service>,
    secure: impl Fn(TcpStream) -> Securing,
    stop: impl Future<Output = ()>,
) where
    Securing: Future<Output = io::Result<Secured>> + Send + 'static,
    Secured: AsyncRead + AsyncWrite + Send + 'static,
{
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    let router = router(service.clone());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stop => break,
        };
        let Some((stream, place)) = accepted else { continue };
        let (secured, router, service) = (secure(stream), router.clone(), service.clone());
        tokio::spawn(async move {
            service.connected(1);
            let spoken = async {
                let secured = tokio::time::timeout(HEAD, secured).await??;
                speak(secured, router, &service).await
            };
            if let Err(error) = spoken.await {
                tracing::debug!(%error, "a connection ended");
            }
            service.connected(-1);
            drop(place);
        });
    }
    drop(listener);
    service.close();
    // Every place is free again once every connection has ended.
    let _ = places.acquire_many(MAX_CONNECTIONS).await;
}

/// The next connection with its place; `None` if it could not be taken in.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Answers are small and whole: waiting to fill a packet would only delay them.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be taken in");
            tokio::time::sleep(RESPITE).await;
            None
        }
    }
}

/// Answers the requests of one connection.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    router: Router,
    service: &Service,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    let asked = Arc::new(());
    let held = asked.clone();
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let (held, answered) = (held.clone(), router.clone().oneshot(request.map(Body::new)));
        // Held until the last byte of the answer is handed over.
        async { Ok::<_, Infallible>(answered.await?.map(|body| keeping(body, held))) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MAX_HEAD_BYTES)
        // Whoever has said all he wanted may close his half, and still gets the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(Box::pin(stream)), answer);
    let mut connection = pin!(connection);
    let mut closing = service.closing();
    tokio::select! {
        done = connection.as_mut() => return Ok(done?),
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    let busy = Arc::strong_count(&asked) > IDLE;
    let left = tokio::time::timeout(if busy { GRACE } else { MOMENT }, connection).await;
    Ok(left.map_err(|_| "it was still there when the server had to stop")??)
}

/// A body that keeps something until it is gone.
pub(crate) fn keeping(body: Body, kept: impl Send + Sync + 'static) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _ = &kept;
        frame
    }))
}
