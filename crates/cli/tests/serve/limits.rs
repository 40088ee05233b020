//! Limits: excess is rejected at once, in bounded memory, without harm to later requests.

use super::client::{Connection, Request};
use super::events::{BATCH, LINES, ONE, event, lines};
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// The documented limits: of a body as sent, of its decompressed size, of events.
const MAX_BODY: usize = 8 * MIB;
const MAX_UNFOLDED: usize = 32 * MIB;
const MAX_EVENTS: u32 = 10_000;
/// The limit of streams of one agent.
const AGENT_STREAMS: usize = 64;
/// The longest time until closed streams free their places: less than the 15 s after which a
/// comment would find the closed connection, and far more than it takes.
const FREED: Duration = Duration::from_secs(10);
/// Bytes of bodies that the server holds at once for one agent.
const ROOM: usize = 48 * MIB;

fn serving() -> (Store, Agent, Server) {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    (store, agent, server)
}

fn is_usable(server: &Server, agent: &Agent, id: &str) {
    let request = Request::events(ONE, event("arm", id, "grasp", true)).token(&agent.producer);
    server.ask(&request).is(201);
}

/// This many blanks, compressed.
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
    // Not declared: answered when the limit is exceeded.
    server.ask(&post(vec![b'\n'; MAX_BODY + 1]).chunked(MIB)).problem(413, "body_too_large");
    // As many bytes as allowed, all blank.
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
    // The decompressed bytes of one body, a copy while they grow, and some slack: not 256 MiB.
    let grown = server.peak_kib() - before;
    assert!(grown < 160 << 10, "{grown} KiB more than before");
    is_usable(&server, &agent, "after");
}

/// A request for events with this length, of which only `sent` bytes are sent.
fn stalled(server: &Server, token: &str, encoding: &str, length: usize, sent: usize) -> Connection {
    let head = Request::new("POST", "/api/agent/events").token(token);
    let head = head.header("content-type", LINES).header("content-encoding", encoding);
    let head = head.header("content-length", &length.to_string());
    let mut connection = Connection::open(server.address).unwrap();
    connection.write(&head.head()).unwrap();
    // A client without room is answered and disconnected while it writes.
    let _ = connection.write(&vec![b'\n'; sent]);
    connection
}

/// Bodies that stop just before their end use up an agent's memory. Later requests must wait, reads
/// continue, and other agents are not affected.
#[test]
fn too_many_bodies_must_wait() {
    let (store, agent, server) = serving();
    let other = Agent::register(&store, "ward-robot-02");
    let stall = || stalled(&server, &agent.producer, "identity", MAX_BODY, MAX_BODY - 1);
    let mut waiting: Vec<Connection> = (1..ROOM / MAX_BODY).map(|_| stall()).collect();
    let post = |agent: &Agent| Request::events(LINES, vec![b'\n'; MIB]).token(&agent.producer);
    // One that finds no room is rejected itself, so more of them may be needed.
    let mut answer = server.ask(&post(&agent));
    wait_until("there is no room", || {
        waiting.push(stall());
        answer = server.ask(&post(&agent));
        answer.status == 429
    });
    assert!(answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()));
    answer.problem(429, "queue_full");
    server.get("/api/agent/semantic", &agent.planner).ok();
    wait_until("the other agent is served", || server.ask(&post(&other)).status == 200);
    drop(waiting);
    wait_until("there is room again", || server.ask(&post(&agent)).status == 200);
    is_usable(&server, &agent, "after");
}

/// Only received bytes count against the limit, not declared ones.
#[test]
fn promises_take_no_room() {
    let (_store, agent, server) = serving();
    let stall = |encoding| stalled(&server, &agent.producer, encoding, MAX_BODY, 1);
    let _waiting: Vec<Connection> =
        ["identity", "gzip"].into_iter().cycle().take(40).map(stall).collect();
    is_usable(&server, &agent, "meanwhile");
}

/// Streams are limited, so that other clients get connections.
#[test]
fn streams_of_an_agent_are_limited() {
    let (store, agent) = one_agent();
    let other = Agent::register(&store, "ward-robot-02");
    let server = Server::start(&store);
    let open = |agent: &Agent| {
        let mut connection = Connection::open(server.address).unwrap();
        let request = Request::get("/api/agent/stream").token(&agent.planner);
        connection.write(&request.bytes()).unwrap();
        let status = connection.answer_head().unwrap().status;
        (status, connection)
    };
    let mut streams: Vec<Connection> = Vec::new();
    for _ in 0..AGENT_STREAMS {
        let (status, stream) = open(&agent);
        assert_eq!(status, 200);
        streams.push(stream);
    }
    server.get("/api/agent/stream", &agent.planner).problem(429, "queue_full");
    assert_eq!(open(&other).0, 200, "another agent has its own");
    // All of them close, and all places are free before the next comment would find out.
    streams.clear();
    let closed = Instant::now();
    for _ in 0..AGENT_STREAMS {
        let mut opened = open(&agent);
        while opened.0 != 200 {
            assert!(closed.elapsed() < FREED, "a stream that was closed keeps its place");
            std::thread::sleep(Duration::from_millis(20));
            opened = open(&agent);
        }
        streams.push(opened.1);
    }
}

/// Large unread responses take bounded memory, and other clients are answered.
#[test]
fn unread_answers_are_bounded() {
    let (_store, agent, server) = serving();
    let padding = "x".repeat(60_000);
    for number in 0..10 {
        let some = (0..20).map(|n| {
            let event = event("arm", &format!("{number}-{n}"), "grasp", true);
            event
                .replace("\"target_class\"", &format!("\"padding\":\"{padding}\",\"target_class\""))
        });
        let body = lines(&some.collect::<Vec<_>>());
        server.ask(&Request::events(LINES, body).token(&agent.producer)).ok();
    }
    let page = server.get("/api/agent/log?limit=1000", &agent.operator).ok();
    assert!(page.body.len() > 4 * MIB && page.body.len() < 5 * MIB, "{}", page.body.len());
    let next = page.json()["next_after"].as_u64().unwrap();
    assert_eq!(page.json()["events"].as_array().unwrap().len() as u64, next, "it goes on there");
    let before = server.peak_kib();
    let request = Request::get("/api/agent/log?limit=1000").token(&agent.operator);
    let unread: Vec<Connection> = (0..250)
        .map(|_| {
            let mut connection = Connection::open(server.address).unwrap();
            connection.write(&request.bytes()).unwrap();
            connection
        })
        .collect();
    let log = || server.get("/api/agent/log?limit=1000", &agent.operator).status;
    wait_until("large answers are many", || log() == 429);
    server.get("/api/agent/semantic", &agent.planner).ok();
    let grown = server.peak_kib() - before;
    // Without a bound it would be more than a gigabyte.
    assert!(grown < 512 << 10, "{grown} KiB more than before");
    drop(unread);
    wait_until("there is room again", || log() == 200);
}
