//! Misbehaving clients: slow, half-closed, endless, garbled. None of them reaches the log, crashes
//! the server or blocks other clients. When they disconnect, their resources are freed.

use super::client::{Connection, Request};
use super::events::{BATCH, LINES, ONE, batch, event, lines};
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const IDLE: usize = 300;
const POLITE: usize = 200;

/// A store whose log makes a large response.
fn serving() -> (Store, Agent, Server) {
    let (store, agent) = one_agent();
    let events: Vec<String> =
        (0..1000).map(|n| event("arm", &n.to_string(), "grasp", n % 3 > 0)).collect();
    store.import(lines(&events)).fine();
    let server = Server::start(&store);
    (store, agent, server)
}

fn log(agent: &Agent) -> Request {
    Request::get("/api/agent/log?limit=1000").token(&agent.operator)
}

fn post(agent: &Agent, id: &str) -> Request {
    Request::events(ONE, event("rude", id, "grasp", true)).token(&agent.producer)
}

/// Invalid requests: the bytes, and the statuses that are allowed. The server may also close the
/// connection without a response.
fn garbled(agent: &Agent) -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    let head = |line: &str, more: &str| {
        let token = format!("authorization: Bearer {}\r\ncontent-type: {ONE}\r\n", agent.producer);
        format!("{line}\r\nhost: localhost\r\n{token}{more}\r\n\r\n").into_bytes()
    };
    let with = |more: &str, body: &str| {
        [head("POST /api/agent/events HTTP/1.1", more), body.as_bytes().to_vec()].concat()
    };
    let body = event("rude", "garbled", "grasp", true);
    let length = format!("content-length: {}", body.len());
    vec![
        ("binary", (0..4096).map(|n: u32| ((n * 7919) >> 3).to_le_bytes()[0]).collect(), &[400]),
        ("zeros", vec![0; 4096], &[400]),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03ABCDEF".to_vec(), &[400]),
        ("HTTP/0.9", b"GET /version\r\n".to_vec(), &[400]),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(), &[400, 505]),
        ("HTTP/3.7", head("GET /version HTTP/3.7", ""), &[400, 505]),
        ("no path", head("GET  HTTP/1.1", ""), &[400]),
        ("a path with blanks", head("GET /a b HTTP/1.1", ""), &[400]),
        ("a long path", head(&format!("GET /{} HTTP/1.1", "x".repeat(200_000)), ""), &[414, 431]),
        ("a long header", with(&format!("x: {}", "y".repeat(1 << 20)), ""), &[400, 431]),
        ("many headers", with(&"x: y\r\n".repeat(5000), ""), &[400, 431]),
        ("a folded header", with("x: y\r\n z", ""), &[400]),
        ("a header without a colon", with("nonsense", ""), &[400]),
        ("a header with a NUL", with("x: \0", ""), &[400]),
        ("a negative length", with("content-length: -1", &body), &[400]),
        ("a length in words", with("content-length: many", &body), &[400]),
        ("a length with a sign", with("content-length: +9", &body), &[400]),
        ("a length beyond all", with("content-length: 99999999999999999999", &body), &[400, 413]),
        ("two lengths", with(&format!("{length}\r\ncontent-length: 5"), &body), &[400]),
        ("an unknown coding", with("transfer-encoding: snail", &body), &[400, 501]),
        ("chunked, then not", with("transfer-encoding: chunked, identity", &body), &[400, 501]),
        ("no chunks in chunks", with("transfer-encoding: chunked", &body), &[400]),
        ("a negative chunk", with("transfer-encoding: chunked", "-5\r\nabc\r\n"), &[400]),
        ("a huge chunk", with("transfer-encoding: chunked", "fffffffffffffffff\r\n"), &[400, 413]),
    ]
}

#[test]
fn what_is_garbled_is_not_served() {
    let (store, agent, mut server) = serving();
    let before = store.run(&["log", "--json"]).fine().out;
    for (what, bytes, allowed) in garbled(&agent) {
        let mut connection = server.connect();
        // The server may close the connection while we still write.
        let _ = connection.write(&bytes);
        let _ = connection.socket.shutdown(Shutdown::Write);
        if let Ok(answer) = connection.answer_head() {
            assert!(allowed.contains(&answer.status), "{what}: {}", answer.status);
        }
        assert!(server.is_alive(), "{what}");
    }
    assert_eq!(store.run(&["log", "--json"]).fine().out, before);
    server.ask(&post(&agent, "polite")).is(201);
}

/// Length and chunks together: the chunks count, or the request is rejected. Bytes after them are
/// no request, because a proxy in front may have read them as a body.
#[test]
fn a_length_with_chunks_smuggles_nothing() {
    let (store, agent, server) = serving();
    let before = store.run(&["log", "--json"]).fine().out;
    let hidden = post(&agent, "hidden").bytes();
    let body = [b"0\r\n\r\n", &hidden[..]].concat();
    let head = Request::new("POST", "/api/agent/events").token(&agent.producer);
    let head = head.header("content-type", LINES).header("transfer-encoding", "chunked");
    let head = head.header("content-length", &body.len().to_string()).head();
    let mut connection = server.connect();
    connection.write(&[head, body].concat()).unwrap();
    let answer = connection.answer(false).unwrap();
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    assert!(connection.is_closed());
    assert_eq!(store.run(&["log", "--json"]).fine().out, before);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_store, agent, server) = serving();
    let mut connection = server.connect();
    let identity = Request::get("/api/agent/identity").token(&agent.planner);
    let stranger = Request::get("/api/agent/identity");
    let nowhere = Request::get("/nowhere");
    let mut bytes = Vec::new();
    for n in 0..20 {
        bytes.extend(identity.bytes());
        bytes.extend(stranger.bytes());
        bytes.extend(post(&agent, &n.to_string()).bytes());
        bytes.extend(nowhere.bytes());
    }
    connection.write(&bytes).unwrap();
    for n in 0..20 {
        let statuses = [(); 4].map(|()| connection.answer(false).unwrap().status);
        assert_eq!(statuses, [200, 401, 201, 404], "round {n}");
    }
}

#[test]
fn a_half_closed_connection_gets_its_answer() {
    let (store, agent, server) = serving();
    let batch =
        batch(&[event("rude", "half1", "grasp", true), event("rude", "half2", "grasp", true)]);
    let batch = Request::events(BATCH, batch).token(&agent.producer);
    for (request, status) in
        [(log(&agent), 200), (post(&agent, "half"), 201), (batch, 200), (Request::get("/x"), 404)]
    {
        let mut connection = server.connect();
        connection.write(&request.bytes()).unwrap();
        connection.socket.shutdown(Shutdown::Write).unwrap();
        connection.answer(false).unwrap().is(status);
        assert!(connection.is_closed());
    }
    let log = store.run(&["log", "--json"]).fine().out;
    assert_eq!(log.matches("\"source\":\"rude\"").count(), 3);
}

/// A truncated body is invalid: nothing of it is stored, and nothing is acknowledged.
#[test]
fn a_body_that_breaks_off_stores_nothing() {
    let (store, agent, server) = serving();
    let before = store.run(&["log", "--json"]).fine().out;
    let many: Vec<String> = (0..50).map(|n| event("rude", &n.to_string(), "grasp", true)).collect();
    let whole = Request::events(LINES, lines(&many)).token(&agent.producer);
    for (request, how) in [(whole.clone(), "length"), (whole.chunked(100), "chunks")] {
        let bytes = request.bytes();
        // Each cut is after a whole line, which would be a valid event.
        for cut in [bytes.len() - 1, bytes.len() * 2 / 3, request.head().len() + 1] {
            let mut connection = server.connect();
            connection.write(&bytes[..cut]).unwrap();
            connection.socket.shutdown(Shutdown::Write).unwrap();
            if let Ok(answer) = connection.answer(false) {
                assert_eq!(answer.status, 400, "{how}: {}", answer.text());
            }
            // The same with a connection that is dropped at once.
            let mut connection = server.connect();
            connection.write(&bytes[..cut]).unwrap();
        }
    }
    // The server finishes its work for the closed connections before this request.
    server.ask(&post(&agent, "after")).is(201);
    let log = store.run(&["log", "--json"]).fine().out;
    let gone: String = log.lines().filter(|line| !line.contains("\"id\":\"after\"")).collect();
    assert!(log.starts_with(&before) && !gone.contains("\"source\":\"rude\""));
}

/// If a client disconnects during an append, its events are stored completely or not at all.
#[test]
fn hanging_up_during_an_append_leaves_whole_requests() {
    let (store, agent, server) = serving();
    for n in 0..60_u64 {
        let of = |part: &str| event("rude", &format!("{n}{part}"), "grasp", true);
        let request = Request::events(BATCH, batch(&[of("a"), of("b"), of("c")]));
        let mut connection = server.connect();
        connection.write(&request.token(&agent.producer).bytes()).unwrap();
        std::thread::sleep(Duration::from_micros(n * 100));
    }
    server.ask(&post(&agent, "after")).is(201);
    server.stop();
    let log = store.run(&["log", "--json"]).fine().out;
    let mut whole = 0;
    for n in 0..60 {
        let there = ["a", "b", "c"].map(|part| log.contains(&format!("\"id\":\"{n}{part}\"")));
        assert!(there == [true; 3] || there == [false; 3], "request {n}: {there:?}");
        whole += usize::from(there[0]);
    }
    eprintln!("{whole} of 60 were taken in");
    store.run(&["verify"]).fine();
}

/// Sends a head byte by byte, or one without an end, until it must stop.
fn drip(server: &Server, begin: &[u8], forever: bool, stop: &AtomicBool) {
    let Ok(mut connection) = Connection::open(server.address) else { return };
    let endless = b"x-more: and more\r\n".iter().cycle();
    let bytes: Box<dyn Iterator<Item = &u8>> =
        if forever { Box::new(begin.iter().chain(endless)) } else { Box::new(begin.iter()) };
    for byte in bytes {
        if stop.load(Ordering::Relaxed) || connection.write(&[*byte]).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(if forever { 1 } else { 50 }));
    }
}

/// Requests large responses repeatedly and reads none.
fn unread(server: &Server, agent: &Agent) -> TcpStream {
    let connection = server.connect();
    let mut socket = connection.socket;
    socket.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let request = log(agent).bytes();
    for _ in 0..3000 {
        if socket.write_all(&request).is_err() {
            break;
        }
    }
    socket
}

/// A connection that stays idle after these bytes.
fn left(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut connection = server.connect();
    connection.write(bytes).unwrap();
    connection.socket
}

fn rude(server: &Server, agent: &Agent) -> Vec<TcpStream> {
    let mut all: Vec<TcpStream> = (0..IDLE).map(|_| left(server, b"")).collect();
    all.extend((0..8).map(|_| unread(server, agent)));
    let stream = Request::get("/api/agent/stream").header("last-event-id", "0");
    let stream = stream.token(&agent.planner).bytes();
    all.extend((0..8).map(|_| left(server, &stream)));
    let body = post(agent, "stopped").bytes();
    all.extend((0..8).map(|_| left(server, &body[..body.len() - 9])));
    let chunks = post(agent, "stopped").chunked(50).bytes();
    // Each uses as much memory as the largest body: with eight of them, others would have to wait.
    all.extend((0..4).map(|_| left(server, &chunks[..chunks.len() - 9])));
    all.extend((0..8).map(|n| left(server, &body[..10 + n])));
    all
}

#[test]
fn rude_clients_do_not_block_others() {
    let (_store, agent, mut server) = serving();
    let (begun, memory) = (server.sockets(), server.peak_kib());
    let stop = AtomicBool::new(false);
    let slow = log(&agent).bytes();
    std::thread::scope(|scope| {
        for n in 0..16 {
            let (server, slow, stop) = (&server, &slow, &stop);
            let begin = &slow[..slow.len() - 4];
            scope.spawn(move || drip(server, begin, n % 2 == 0, stop));
        }
        let held = rude(&server, &agent);
        wait_until("they are all there", || server.sockets() > begun + IDLE);
        let mut kept = server.connect();
        let planner = Request::get("/api/agent/semantic").token(&agent.planner);
        for n in 0..POLITE {
            let answer =
                if n % 2 == 0 { server.ask(&planner) } else { kept.ask(&planner).unwrap() };
            answer.ok();
            if n % 20 == 0 {
                server.ask(&post(&agent, &n.to_string())).is(201);
            }
        }
        stop.store(true, Ordering::Relaxed);
        drop(held);
    });
    assert!(server.is_alive(), "{}", server.words());
    // The server opened some of these sockets itself after the first count.
    wait_until("what they took is given back", || server.sockets() <= begun + 8);
    let grown = server.peak_kib() - memory;
    eprintln!("{grown} KiB more than before");
    assert!(grown < 200 << 10, "{grown} KiB more than before");
    server.get("/api/agent/semantic", &agent.planner).ok();
}
