//! The socket of a connection, watched while a request is answered.
//!
//! **Invariants:** a connection that its client has reset is noticed although nothing reads from it
//! or writes to it; a client that has only closed its sending half still gets its answer.

use crate::places::Peer;
use socket2::SockRef;
use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of an answer that the kernel keeps for a client, which it doubles for its own account. A
/// client that reads nothing would otherwise take four MiB of the kernel's memory.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Bytes that are read at once. The buffer has to be cleared before each read, and most requests
/// are far smaller than the buffer that they are read into.
const READ_BYTES: usize = 4 << 10;

/// A connection that was accepted.
pub struct Socket {
    stream: Arc<TcpStream>,
    peer: Arc<Peer>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, peer: &Arc<Peer>) -> Self {
        // Answers are small and whole: waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER_BYTES);
        Socket { stream: Arc::new(stream), peer: peer.clone() }
    }

    /// Waits until the client has reset the connection. Nothing can reach it any more.
    pub(crate) fn reset(&self) -> impl Future<Output = ()> + use<> {
        let stream = self.stream.clone();
        async move { drop(stream.ready(Interest::ERROR).await) }
    }

    /// Tries until it need not wait for the client.
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

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The buffer is cleared only once there is something to read into it.
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

/// Reads what is there. A read that does not fill the buffer has read everything, so the socket is
/// noted as not ready right away: the next read waits, and does not ask the kernel in vain.
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
    use std::time::Duration;
    use tokio::net::TcpListener;

    /// How long a read may take that has something to read.
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
            // The end of what the client sends has arrived.
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

    /// All of it is there before the first read, and nothing comes later to wake a reader.
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
