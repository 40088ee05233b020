//! Places of connections: their number, and which connection is closed when all are taken.
//!
//! **Invariants**
//! - A new connection gets a place at once if the server waits for the client of another: for a
//!   head, for a body, or until a response is read. The connection that the server has waited for
//!   longest is closed. Connections with a valid token are closed after all others.
//! - A connection with work in progress, also a stream, is never closed in favour of another.

use prometheus_client::metrics::counter::Counter;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The time that a closed connection gets to leave its place, before the next one is closed.
const RESPITE: Duration = Duration::from_millis(100);

/// The places of all connections.
pub(crate) struct Places {
    count: u32,
    free: Arc<Semaphore>,
    peers: Mutex<BTreeMap<u64, Arc<Peer>>>,
    /// A logical clock: it counts new connections, and each start of a wait for a client.
    ticks: Arc<AtomicU64>,
    closed: Counter,
}

impl Places {
    /// Creates `count` places. `closed` counts connections that are closed in favour of others.
    pub(crate) fn new(count: u32, closed: Counter) -> Arc<Self> {
        Arc::new(Places {
            count,
            free: Arc::new(Semaphore::new(count as usize)),
            peers: Mutex::default(),
            ticks: Arc::new(AtomicU64::new(1)),
            closed,
        })
    }

    /// Takes a place for a new connection. May close another connection.
    pub(crate) async fn take(self: &Arc<Self>) -> Place {
        loop {
            if self.free.available_permits() == 0 {
                self.close_one();
            }
            let freed = tokio::time::timeout(RESPITE, self.free.clone().acquire_owned());
            if let Ok(Ok(permit)) = freed.await {
                return self.place(permit);
            }
        }
    }

    fn place(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        let peer = Arc::new(Peer {
            ticks: self.ticks.clone(),
            since: AtomicU64::new(WORKS),
            requests: AtomicUsize::new(0),
            known: AtomicBool::new(false),
            close: Notify::new(),
            socket: OnceLock::new(),
            stream: Notify::new(),
        });
        let number = self.ticks.fetch_add(1, Ordering::Relaxed);
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).insert(number, peer.clone());
        Place { places: self.clone(), number, peer, _permit: permit }
    }

    /// Closes the connection whose client the server has waited for longest, if any.
    fn close_one(&self) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |(number, peer): (&u64, &Arc<Peer>)| {
            let since = peer.since.load(Ordering::Relaxed);
            (since != WORKS).then(|| (peer.known.load(Ordering::Relaxed), since, *number))
        };
        let longest = peers.iter().filter_map(waits).min();
        if let Some(peer) = longest.and_then(|(.., number)| peers.remove(&number)) {
            peer.close.notify_one();
            self.closed.inc();
        }
    }

    /// Waits until every place is free.
    pub(crate) async fn all_free(&self) {
        let _ = self.free.acquire_many(self.count).await;
    }
}

/// The place of a connection, until it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    pub(crate) peer: Arc<Peer>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut peers = self.places.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.remove(&self.number);
    }
}

/// The value of [`Peer::since`] while the server works.
const WORKS: u64 = 0;

/// The client of a connection: whether the server waits for it, and since when.
pub(crate) struct Peer {
    ticks: Arc<AtomicU64>,
    since: AtomicU64,
    /// The number of requests that are not answered yet.
    requests: AtomicUsize,
    /// Whether the client has sent a valid token.
    known: AtomicBool,
    close: Notify,
    socket: OnceLock<Weak<TcpStream>>,
    stream: Notify,
}

impl Peer {
    /// The server starts to wait for the client.
    pub(crate) fn waits(&self) {
        if self.since.load(Ordering::Relaxed) == WORKS {
            self.since.store(self.ticks.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The client has sent bytes. Parts of a head do not count: they do not restart the wait for
    /// it.
    pub(crate) fn sent(&self) {
        if self.is_busy() {
            self.moved();
        }
    }

    /// The client has read bytes, or a request is complete.
    pub(crate) fn moved(&self) {
        self.since.store(WORKS, Ordering::Relaxed);
    }

    /// A request has arrived. It is open until the guard is dropped.
    pub(crate) fn asks(self: &Arc<Self>) -> OpenRequest {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.moved();
        OpenRequest(self.clone())
    }

    /// Whether a request is open.
    pub(crate) fn is_busy(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > 0
    }

    /// The client has sent a valid token.
    pub(crate) fn identified(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Sets the socket of the connection.
    pub(crate) fn connected(&self, stream: &Arc<TcpStream>) {
        let _ = self.socket.set(Arc::downgrade(stream));
    }

    /// Whether the client has closed its side of the connection. It may still read, so it gets a
    /// response, but a waiting request need not wait longer.
    pub(crate) fn has_left(&self) -> bool {
        let Some(stream) = self.socket.get().map(Weak::upgrade) else { return false };
        let Some(stream) = stream else { return true };
        let ready = pin!(stream.ready(Interest::READABLE));
        match ready.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ready) => ready.is_ok_and(|ready| ready.is_read_closed()),
            Poll::Pending => false,
        }
    }

    /// The connection carries a stream from now on. No request follows on it.
    pub(crate) fn begin_stream(&self) {
        self.stream.notify_one();
    }

    /// Waits until the connection carries a stream.
    pub(crate) async fn has_stream(&self) {
        self.stream.notified().await;
    }

    /// Waits until the connection must be closed in favour of another.
    pub(crate) async fn gives_way(&self) {
        self.close.notified().await;
    }
}

/// An open request, until it is dropped.
pub(crate) struct OpenRequest(Arc<Peer>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(count: u32) -> Arc<Places> {
        Places::new(count, Counter::default())
    }

    fn take(places: &Arc<Places>) -> Place {
        places.place(places.free.clone().try_acquire_owned().unwrap())
    }

    fn is_closed(place: &Place) -> bool {
        let closed = pin!(place.peer.gives_way());
        closed.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// The index of the place that is closed next.
    fn closed(places: &Places, held: &[Place]) -> Option<usize> {
        places.close_one();
        held.iter().position(is_closed)
    }

    #[test]
    fn the_one_that_kept_the_server_waiting_longest_gives_way() {
        let places = places(4);
        let held: Vec<Place> = (0..4).map(|_| take(&places)).collect();
        assert_eq!(closed(&places, &held), None, "the server works for all of them");
        for at in [2, 0, 3] {
            held[at].peer.waits();
        }
        held[2].peer.waits();
        assert_eq!(closed(&places, &held), Some(2), "the longest wait");
        held[0].peer.moved();
        assert_eq!(closed(&places, &held), Some(3));
        assert_eq!(closed(&places, &held), None);
        assert_eq!(places.closed.get(), 2);
    }

    #[test]
    fn clients_with_a_token_give_way_last() {
        let places = places(2);
        let held = [take(&places), take(&places)];
        held[0].peer.waits();
        held[0].peer.identified();
        held[1].peer.waits();
        assert_eq!(closed(&places, &held), Some(1));
        assert_eq!(closed(&places, &held), Some(0));
    }

    #[test]
    fn a_head_that_comes_byte_by_byte_is_waited_for_since_its_beginning() {
        let places = places(2);
        let held = [take(&places), take(&places)];
        held.iter().for_each(|one| one.peer.waits());
        held[0].peer.sent();
        assert_eq!(closed(&places, &held), Some(0));
        let _asked = held[1].peer.asks();
        held[1].peer.waits();
        held[1].peer.sent();
        assert_eq!(closed(&places, &held), None, "a body arrives");
    }

    #[test]
    fn a_connection_beyond_the_limit_gets_the_place_of_another() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let places = places(1);
            let first = places.take().await;
            first.peer.waits();
            tokio::spawn(async move {
                first.peer.gives_way().await;
                drop(first);
            });
            let second = places.take().await;
            assert_eq!(places.closed.get(), 1);
            drop(second);
            places.all_free().await;
            assert!(places.peers.lock().unwrap().is_empty());
        });
    }
}
