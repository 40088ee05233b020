//! What is too much is turned away at once, in bounded memory, and harms nobody afterwards.

use super::client::{Connection, Request};
use super::events::{BATCH, LINES, ONE, event, lines};
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const MIB: usize = 1 << 20;
/// The documented limits: of a body as it is sent, of what it unfolds to, of events.
const MAX_BODY: usize = 8 * MIB;
const MAX_UNFOLDED: usize = 32 * MIB;
const MAX_EVENTS: u32 = 10_000;
/// Bytes of bodies that the server holds at once.
const ROOM: usize = 64 * MIB;

fn serving() -> (Store, Agent, Server) {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    (store, agent, server)
}

fn is_usable(server: &Server, agent: &Agent, id: &str) {
    let request = Request::events(ONE, event("arm", id, "grasp", true)).token(&agent.producer);
    server.ask(&request).is(201);
}

/// So many blanks, folded.
fn bomb(bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..bytes / MIB {
        encoder.write_all(&vec![b' '; MIB]).unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn a_body_too_large_is_turned_away() {
    let (_store, agent, server) = serving();
    let post = |body: Vec<u8>| Request::events(LINES, body).token(&agent.producer);
    // Declared: answered before a byte of it was sent.
    for length in ["8388609", "99999999999", "9223372036854775807"] {
        let head = Request::new("POST", "/api/agent/events").header("content-type", LINES);
        let head = head.token(&agent.producer).header("content-length", length);
        let mut connection = server.connect();
        connection.write(&head.head()).unwrap();
        connection.answer(false).unwrap().problem(413, "body_too_large");
    }
    // Not declared: answered when it becomes too much.
    server.ask(&post(vec![b'\n'; MAX_BODY + 1]).chunked(MIB)).problem(413, "body_too_large");
    // As much as is allowed, of nothing.
    server.ask(&post(vec![b'\n'; MAX_BODY])).ok();
    server.ask(&post(vec![b'\n'; MAX_BODY]).chunked(MIB)).ok();
    let many: Vec<String> = vec!["{}".to_string(); MAX_EVENTS as usize + 1];
    server.ask(&post(lines(&many).into())).problem(413, "too_many_events");
    let json = server.ask(&post(lines(&many[1..]).into())).ok().json();
    assert_eq!(json["refused"], MAX_EVENTS);
    is_usable(&server, &agent, "after");
}

#[test]
fn a_body_that_unfolds_beyond_measure_costs_little() {
    let (_store, agent, server) = serving();
    is_usable(&server, &agent, "before");
    let (small, huge) = (bomb(MAX_UNFOLDED + MIB), bomb(256 * MIB));
    assert!(small.len() < 64 << 10 && huge.len() < 2 * MIB, "{} {}", small.len(), huge.len());
    let before = server.peak_kib();
    for kind in [ONE, BATCH, LINES] {
        for body in [&small, &huge] {
            let request = Request::events(kind, body.clone()).token(&agent.producer);
            let request = request.header("content-encoding", "gzip");
            server.ask(&request).problem(413, "body_too_large");
        }
    }
    // The unfolded bytes of one body, a copy while they grow, and some slack: not 256 MiB.
    let grown = server.peak_kib() - before;
    assert!(grown < 160 << 10, "{grown} KiB more than before");
    is_usable(&server, &agent, "after");
}

/// Bodies that are promised and do not come take up the room; whoever comes later is told to wait,
/// and reading goes on.
fn room_is_taken_by(count: usize, length: usize, encoding: &str) {
    let (_store, agent, server) = serving();
    let head = Request::new("POST", "/api/agent/events").token(&agent.producer);
    let head = head.header("content-type", LINES).header("content-encoding", encoding);
    let head = head.header("expect", "100-continue");
    let promise = head.header("content-length", &length.to_string()).head();
    let open = |_| {
        let mut connection = Connection::open(server.address).unwrap();
        connection.write(&promise).unwrap();
        // Told to go on, it has its room.
        connection.answer(false).unwrap().is(100);
        connection
    };
    let waiting: Vec<Connection> = (0..count).map(open).collect();
    let post = Request::events(LINES, vec![b'\n'; MIB]).token(&agent.producer);
    let answer = server.ask(&post);
    assert!(answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()));
    answer.problem(429, "queue_full");
    server.get("/api/agent/semantic", &agent.planner).ok();
    drop(waiting);
    wait_until("there is room again", || server.ask(&post).status == 200);
    is_usable(&server, &agent, "after");
}

#[test]
fn too_many_bodies_are_told_to_wait() {
    room_is_taken_by(ROOM / MAX_BODY, MAX_BODY, "identity");
}

/// What is folded takes the room of what it may become.
#[test]
fn too_many_folded_bodies_are_told_to_wait() {
    room_is_taken_by(ROOM / MAX_UNFOLDED, 1000, "gzip");
}
