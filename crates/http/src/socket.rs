//! The socket of a connection, watched while a request is answered.
//!
//! **Invariants**
//! - A reset by the client is detected although nothing reads from the connection or writes to it.
//!   A client that has only closed its sending half still gets its response.
//! - Lingering ends: after [`LINGER`], after [`LINGER_BYTES`], or when nothing comes for [`QUIET`].

use crate::places::Peer;
use socket2::SockRef;
use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// The send buffer of the kernel in bytes. The kernel doubles it for its bookkeeping. With the
/// default, a client that reads nothing would use four MiB of kernel memory.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Maximum bytes of one read. The buffer has to be cleared before each read, and most requests are
/// far smaller than the whole buffer.
const READ_BYTES: usize = 4 << 10;

/// The time that a connection lingers after a response to a request that was not read. A client
/// that sends the largest body at a megabyte a second has finished by then.
const LINGER: Duration = Duration::from_secs(10);

/// The time that a lingering connection waits for the next bytes. A client that sends nothing for
/// this long has read the response, or will not read it.
const QUIET: Duration = Duration::from_secs(2);

/// Bytes that a lingering connection discards: twice the largest body, so that the response to a
/// somewhat larger body arrives too.
const LINGER_BYTES: usize = 16 << 20;

/// Size of the buffer for discarded bytes. It is on the stack.
const DISCARD_BYTES: usize = 16 << 10;

/// An accepted connection.
pub struct Socket {
    stream: Arc<TcpStream>,
    peer: Arc<Peer>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, peer: &Arc<Peer>) -> Self {
        // Responses are small and written at once: Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER_BYTES);
        let stream = Arc::new(stream);
        peer.connected(&stream);
        Socket { stream, peer: peer.clone() }
    }

    /// Waits until the client has reset the connection. It can receive nothing after that.
    pub(crate) fn reset(&self) -> impl Future<Output = ()> + use<> {
        let stream = self.stream.clone();
        async move { drop(stream.ready(Interest::ERROR).await) }
    }

    /// Waits until the client has closed its sending half or the whole connection. No other task
    /// may read from the connection afterwards: new bytes no longer wake a reader.
    pub(crate) fn hung_up(&self) -> impl Future<Output = ()> + use<> {
        let stream = self.stream.clone();
        async move {
            while let Ok(ready) = stream.ready(Interest::READABLE).await {
                if ready.is_read_closed() {
                    return;
                }
                // Bytes have arrived. Clear the readiness and wait again. The end of the stream is
                // not lost: its readiness stays set.
                let _ = stream
                    .try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
            }
        }
    }

    /// The socket of the connection, for the time after the last response.
    pub(crate) fn remains(&self) -> Leftover {
        Leftover { stream: self.stream.clone(), peer: self.peer.clone() }
    }

    /// Repeats `attempt` until it succeeds, fails, or has to wait for the client.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        ready: impl Fn(&TcpStream, &mut Context<'_>) -> Poll<io::Result<()>>,
        mut attempt: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            match ready(&self.stream, cx) {
                Poll::Pending => {
                    self.peer.waits();
                    return Poll::Pending;
                }
                Poll::Ready(ready) => ready?,
            }
            match attempt(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

/// A connection whose writing half is shut down.
pub(crate) struct Leftover {
    stream: Arc<TcpStream>,
    peer: Arc<Peer>,
}

impl Leftover {
    /// Reads and discards incoming bytes until the client closes the connection or a limit is
    /// reached. It reads below TLS, so that it works with TLS too.
    pub(crate) async fn discard(&self) {
        // From here on this connection may be closed in favour of a new one.
        self.peer.waits();
        let _ = tokio::time::timeout(LINGER, self.discard_all()).await;
    }

    async fn discard_all(&self) {
        let mut left = LINGER_BYTES;
        while let Ok(Ok(())) = tokio::time::timeout(QUIET, self.stream.readable()).await {
            match self.stream.try_read(&mut [0; DISCARD_BYTES]) {
                Ok(0) => return,
                Ok(count) if count >= left => return,
                Ok(count) => left -= count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Clear the buffer only when there are bytes to read.
        let some = READ_BYTES.min(buffer.remaining());
        let read = self.poll(cx, TcpStream::poll_read_ready, |stream| {
            read(stream, buffer.initialize_unfilled_to(some))
        });
        read.map_ok(|count| {
            self.peer.sent();
            buffer.advance(count);
        })
    }
}

/// Reads the available bytes. A read that does not fill the buffer has read everything, so the
/// socket is marked as not ready at once: the next read waits without a useless system call.
fn read(stream: &TcpStream, free: &mut [u8]) -> io::Result<usize> {
    let mut part = None;
    let read = stream.try_io(Interest::READABLE, || {
        let count = (&*SockRef::from(stream)).read(free)?;
        if count == 0 || count == free.len() {
            return Ok(count);
        }
        part = Some(count);
        Err(io::ErrorKind::WouldBlock.into())
    });
    part.map_or(read, Ok)
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = self.poll(cx, TcpStream::poll_write_ready, |stream| stream.try_write(bytes));
        wrote.map_ok(|count| {
            self.peer.moved();
            count
        })
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = |stream: &TcpStream| stream.try_write_vectored(bytes);
        let wrote = self.poll(cx, TcpStream::poll_write_ready, write);
        wrote.map_ok(|count| {
            self.peer.moved();
            count
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.stream).shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::Places;
    use prometheus_client::metrics::counter::Counter;
    use std::io::Write;
    use std::pin::pin;
    use tokio::net::TcpListener;

    /// Timeout for a read when bytes are available.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// A client, and the server's side of its connection.
    async fn connected() -> (TcpStream, Socket) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let place = Places::new(1, Counter::default()).take().await;
        (client, Socket::new(listener.accept().await.unwrap().0, &place.peer))
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_reset_is_noticed_and_a_closed_half_is_not_a_reset() {
        runtime().block_on(async {
            let (client, mut socket) = connected().await;
            let mut reset = pin!(socket.reset());
            SockRef::from(&client).shutdown(Shutdown::Write).unwrap();
            // Wait until the end of the stream has arrived.
            let mut buffer = [0; 1];
            let mut end = ReadBuf::new(&mut buffer);
            std::future::poll_fn(|cx| Pin::new(&mut socket).poll_read(cx, &mut end)).await.unwrap();
            assert!(end.filled().is_empty());
            let poll = std::future::poll_fn(|cx| Poll::Ready(reset.as_mut().poll(cx))).await;
            assert!(poll.is_pending());
            client.set_zero_linger().unwrap();
            drop(client);
            reset.await;
        });
    }

    /// A lingering connection is closed first, even if its client continues to send.
    #[test]
    fn a_lingering_connection_gives_its_place_to_a_new_one() {
        runtime().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let places = Places::new(1, Counter::default());
            let place = places.take().await;
            let socket = Socket::new(listener.accept().await.unwrap().0, &place.peer);
            client.try_write(b"more").unwrap();
            let remains = socket.remains();
            let lingering = tokio::spawn(async move {
                let gave_way = tokio::select! {
                    () = remains.discard() => false,
                    () = place.peer.gives_way() => true,
                };
                drop(place);
                gave_way
            });
            let _second = places.take().await;
            assert!(lingering.await.unwrap(), "the new connection had to wait for a limit");
        });
    }

    #[test]
    fn the_end_of_what_a_client_sends_is_noticed_behind_unread_bytes() {
        for sent in [&b""[..], b"unread"] {
            runtime().block_on(async {
                let (client, socket) = connected().await;
                let mut hung_up = pin!(socket.hung_up());
                client.try_write(sent).unwrap();
                socket.stream.writable().await.unwrap();
                let poll = std::future::poll_fn(|cx| Poll::Ready(hung_up.as_mut().poll(cx))).await;
                assert!(poll.is_pending(), "the client is still connected");
                SockRef::from(&client).shutdown(Shutdown::Write).unwrap();
                hung_up.await;
            });
        }
    }

    /// All bytes arrive before the first read, so that no later bytes wake the reader.
    #[test]
    fn a_request_larger_than_one_read_is_read_to_its_end() {
        for sent in [READ_BYTES - 1, READ_BYTES, READ_BYTES + 1, 3 * READ_BYTES, 10_000] {
            runtime().block_on(async {
                let (client, mut socket) = connected().await;
                assert_eq!((&*SockRef::from(&client)).write(&vec![7; sent]).unwrap(), sent);
                let mut buffer = vec![0; 4 * READ_BYTES];
                let mut read = ReadBuf::new(&mut buffer);
                while read.filled().len() < sent {
                    let some =
                        std::future::poll_fn(|cx| Pin::new(&mut socket).poll_read(cx, &mut read));
                    let some = tokio::time::timeout(PATIENCE, some).await;
                    some.expect("the rest of the request is not read").unwrap();
                }
                assert_eq!(read.filled(), vec![7; sent]);
            });
        }
    }

    #[test]
    fn the_kernel_keeps_little_of_an_answer() {
        runtime().block_on(async {
            let (_client, mut socket) = connected().await;
            assert!(
                SockRef::from(&*socket.stream).send_buffer_size().unwrap() <= 2 * SEND_BUFFER_BYTES
            );
            let mut sent = 0;
            while let Poll::Ready(wrote) = std::future::poll_fn(|cx| {
                Poll::Ready(Pin::new(&mut socket).poll_write(cx, &[0; 4096]))
            })
            .await
            {
                sent += wrote.unwrap();
                assert!(sent < 2 << 20, "a client that reads nothing is sent {sent} bytes");
            }
        });
    }
}
