//! Responses that are sent before the body of a request is read: they arrive while the client still
//! sends, and the resources of such clients are bounded.

use super::client::{Connection, Request};
use super::events::{LINES, ONE, event};
use super::server::{Agent, Server, one_agent, wait_until};
use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::Duration;

/// The number of tries for each case. Without lingering most of the larger ones fail.
const TRIES: usize = 5;
/// Sizes of bodies: more than a loopback socket buffers, and more than the largest allowed one.
const SIZES: [usize; 3] = [400_000, 1_500_000, 8_500_000];
/// Bytes that the server discards after a response, as documented.
const DISCARDED: usize = 16 << 20;

/// Sends a complete request, and only then reads the response and the end of the connection.
#[track_caller]
fn check(server: &Server, request: &Request, status: u16, code: &str) {
    let mut connection = server.connect();
    connection.write(&request.bytes()).expect("the server reads what it does not need");
    let answer = connection.answer(false).expect("the answer is lost");
    assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
    answer.problem(status, code);
    assert_eq!(connection.socket.read(&mut [0; 1]).unwrap(), 0, "it ends, and is not reset");
}

fn early(agent: &Agent, bytes: usize) -> Vec<(Request, u16, &'static str)> {
    let body = vec![b'\n'; bytes];
    let to = |path: &str, kind: &str| Request::post(path, kind, body.clone());
    let events = || to("/api/agent/events", LINES);
    let mut all = vec![
        (events().token("wrong"), 401, "unauthorized"),
        (events(), 401, "unauthorized"),
        (events().token(&agent.planner), 403, "forbidden"),
        (to("/nowhere", LINES), 404, "not_found"),
        (to("/version", LINES), 405, "method_not_allowed"),
        (
            to("/api/agent/events", "text/plain").token(&agent.producer),
            415,
            "unsupported_media_type",
        ),
        (to("/api/agent/intents", ONE).token(&agent.planner), 503, "gates_not_configured"),
        (events().token("wrong").chunked(50_000), 401, "unauthorized"),
    ];
    if bytes > 8 << 20 {
        all.push((events().token(&agent.producer), 413, "body_too_large"));
        all.push((events().token(&agent.producer).chunked(50_000), 413, "body_too_large"));
    }
    all
}

#[test]
fn an_answer_before_the_body_arrives() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    for bytes in SIZES {
        for (request, status, code) in early(&agent, bytes) {
            (0..TRIES).for_each(|_| check(&server, &request, status, code));
        }
    }
    let other = Request::get("/version").header("host", "a").body(vec![0; SIZES[1]]);
    check(&server, &other, 400, "bad_host");
    let good = Request::events(ONE, event("arm", "1", "grasp", true)).token(&agent.producer);
    server.ask(&good).is(201);
}

/// A body that arrived with its head is discarded, and the connection stays open.
#[test]
fn a_small_body_that_is_there_costs_no_connection() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let body = event("arm", "1", "grasp", true);
    let mut connection = server.connect();
    for n in 0..20 {
        for (token, status) in [("wrong", 401), (&*agent.planner, 403)] {
            let request = Request::events(ONE, body.clone()).token(token);
            let request = if n % 2 == 0 { request } else { request.chunked(100) };
            let answer = connection.ask(&request).unwrap().is(status);
            assert_eq!(answer.header("connection"), None, "{answer:?}");
        }
    }
    connection.ask(&Request::events(ONE, body).token(&agent.producer)).unwrap().is(201);
}

/// Bytes after an unread body are no request.
#[test]
fn nothing_behind_an_unread_body_is_served() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let hidden = Request::events(ONE, event("arm", "1", "grasp", true)).token(&agent.producer);
    let first = Request::events(LINES, vec![b'\n'; SIZES[1]]).token("wrong");
    let mut connection = server.connect();
    connection.write(&[first.bytes(), hidden.bytes()].concat()).unwrap();
    connection.answer(false).unwrap().problem(401, "unauthorized");
    assert!(connection.is_closed());
    // It is new here, so it was not appended before.
    server.ask(&hidden).is(201);
}

/// The head of a request that promises a body and is answered with 401.
fn unanswered(server: &Server, length: usize) -> Connection {
    let head = Request::new("POST", "/api/agent/events").token("wrong");
    let mut connection = server.connect();
    connection.write(&head.header("content-length", &length.to_string()).head()).unwrap();
    connection.answer(false).unwrap().problem(401, "unauthorized");
    connection
}

#[test]
fn a_client_that_sends_without_end_is_cut_off() {
    let (store, _agent) = one_agent();
    let server = Server::start(&store);
    let mut connection = unanswered(&server, 1 << 40);
    let (mut sent, piece) = (0, vec![b'x'; 1 << 16]);
    let cut = loop {
        match connection.write(&piece) {
            Ok(()) => sent += piece.len(),
            Err(error) => break error.kind(),
        }
        assert!(sent < 4 * DISCARDED, "it reads on and on");
    };
    assert!(matches!(cut, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{cut}");
    assert!(sent >= DISCARDED / 2, "only {sent} bytes were discarded");
}

/// A client that stops sending, or sends a byte now and then, does not keep its place.
#[test]
fn lingering_ends() {
    let (store, _agent) = one_agent();
    let server = Server::start(&store);
    let before = server.sockets();
    let (quiet, mut slow) = (unanswered(&server, 1000), unanswered(&server, 1000));
    assert_eq!(server.sockets(), before + 2, "both linger");
    wait_until("both connections have ended", || {
        let _ = slow.write(b"x");
        std::thread::sleep(Duration::from_millis(100));
        server.sockets() == before
    });
    drop(quiet);
}

/// A server that stops does not wait for clients that only send.
#[test]
fn lingering_does_not_keep_the_server_from_stopping() {
    let (store, _agent) = one_agent();
    let server = Server::start(&store);
    let _lingering: Vec<Connection> = (0..20).map(|_| unanswered(&server, 1000)).collect();
    server.stop();
}

/// A client that closes its sending half still gets its response.
#[test]
fn a_half_closed_request_that_is_refused_early_is_answered() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    for (request, status, code) in early(&agent, SIZES[1]) {
        let mut connection = server.connect();
        connection.write(&request.bytes()).unwrap();
        connection.socket.shutdown(Shutdown::Write).unwrap();
        connection.answer(false).unwrap().problem(status, code);
        assert!(connection.is_closed());
    }
}
