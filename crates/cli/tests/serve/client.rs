//! An HTTP/1.1 client over a plain socket, which can also send malformed requests.
//!
//! **Invariants:** it sends exactly the given bytes. It never waits longer than [`PATIENCE`], so
//! that a server that hangs fails a test instead of blocking it.

use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest time to wait for a response.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    chunk: Option<usize>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let (method, path) = (method.to_string(), path.to_string());
        Request { method, path, headers: Vec::new(), body: None, chunk: None }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: &str, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", path).header("content-type", kind).body(body)
    }

    /// Events of one of the media types.
    pub(crate) fn events(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::post("/api/agent/events", kind, body)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_string(), value.to_string()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sends the body in chunks of this many bytes, without a length.
    pub(crate) fn chunked(mut self, bytes: usize) -> Self {
        self.chunk = Some(bytes);
        self
    }

    /// Closes the connection after the response.
    pub(crate) fn close(self) -> Self {
        self.header("connection", "close")
    }

    /// The head as sent, including the empty line.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: localhost\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        match (&self.body, self.chunk) {
            (Some(_), Some(_)) => head += "transfer-encoding: chunked\r\n",
            (Some(body), None) => head += &format!("content-length: {}\r\n", body.len()),
            (None, _) => {}
        }
        (head + "\r\n").into_bytes()
    }

    /// The whole request as sent.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all = self.head();
        let body = self.body.as_deref().unwrap_or_default();
        match self.chunk {
            None => all.extend(body),
            Some(bytes) => {
                for chunk in body.chunks(bytes) {
                    all.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    all.extend(chunk);
                    all.extend(b"\r\n");
                }
                all.extend(b"0\r\n\r\n");
            }
        }
        all
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(other, _)| other == name);
        all.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.is(200)
    }

    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Checks for a complete problem with this status and code.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let json = answer.json();
        assert_eq!((&json["status"], &json["code"]), (&status.into(), &code.into()), "{json}");
        assert_eq!(json["request_id"].as_str(), answer.header("x-request-id"), "{json}");
        assert!(json["title"].is_string() && json["detail"].is_string(), "{json}");
        json
    }
}

/// A connection, with the bytes that were read and not used yet.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        Ok(Connection { socket, read: Vec::new() })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// Sends a request and reads the response.
    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        // A request that is rejected early may find the connection closed while it still writes.
        // The response arrives anyway.
        let written = self.write(&request.bytes());
        let answer = self.answer(request.method == "HEAD");
        if answer.is_err() { written.and(answer) } else { answer }
    }

    /// Reads a response; that to `HEAD` has no body.
    pub(crate) fn answer(&mut self, bare: bool) -> io::Result<Answer> {
        let mut answer = self.answer_head()?;
        let chunked = answer.header("transfer-encoding") == Some("chunked");
        let length = answer.header("content-length").map(|text| text.parse().map_err(bad));
        match length.transpose()? {
            _ if bare || matches!(answer.status, 100 | 204 | 304) => {}
            Some(length) => answer.body = self.take(length)?,
            None if chunked => {
                while let Some(chunk) = self.chunk()? {
                    answer.body.extend(chunk);
                }
            }
            None => {
                self.socket.read_to_end(&mut self.read)?;
                answer.body = std::mem::take(&mut self.read);
            }
        }
        Ok(answer)
    }

    /// Reads status and headers, and leaves the body.
    pub(crate) fn answer_head(&mut self) -> io::Result<Answer> {
        let first = self.line()?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| bad(format!("no status in {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Answer { status, headers, body: Vec::new() });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
        }
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = usize::from_str_radix(&self.line()?, 16).map_err(bad)?;
        let chunk = self.take(length)?;
        if self.line()?.is_empty() {
            return Ok((length > 0).then_some(chunk));
        }
        Err(bad("a chunk does not end with an empty line"))
    }

    /// Whether the server closed the connection without sending another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.read.is_empty() && matches!(self.socket.read(&mut [0; 1]), Ok(0) | Err(_))
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.read.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..at + 2).take(at).collect();
                return String::from_utf8(line).map_err(bad);
            }
            self.more()?;
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.read.len() < length {
            self.more()?;
        }
        Ok(self.read.drain(..length).collect())
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1 << 16];
        match self.socket.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.read.extend(&buffer[..count]);
                Ok(())
            }
        }
    }
}

fn bad(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}
