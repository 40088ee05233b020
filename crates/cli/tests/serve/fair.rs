//! Fairness between clients: unread bundles, endless heads, unread pages. Other clients are still
//! served.

use super::client::{Connection, Request};
use super::events::{LINES, event, lines};
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use std::io::Read;

/// The limit of connections.
const PLACES: usize = 512;
/// More than the buffers between a server that sends and a client that does not read.
const LARGE_BYTES: usize = 6 << 20;

/// Two agents; the log of the first is large.
fn two_agents() -> (Store, [Agent; 2]) {
    let (store, agent) = one_agent();
    let other = Agent::register(&store, "ward-robot-02");
    let padding = "x".repeat(60_000);
    let padded = (0..LARGE_BYTES / padding.len()).map(|number| {
        let event = event("arm", &number.to_string(), "grasp", true);
        event.replace("\"target_class\"", &format!("\"padding\":\"{padding}\",\"target_class\""))
    });
    let large = lines(&padded.collect::<Vec<_>>());
    let small = lines(&[event("arm", "1", "grasp", true)]);
    for (agent, events) in [(&agent, large), (&other, small)] {
        store.fed(&["--identity", &agent.identity, "import", "-"], events).fine();
    }
    (store, [agent, other])
}

fn bundle(agent: &Agent) -> Request {
    Request::get("/api/audit/bundle").token(&agent.auditor)
}

/// Requests a bundle, and reads only the head of the response.
fn unread_bundle(server: &Server, agent: &Agent) -> Connection {
    let mut connection = server.connect();
    connection.write(&bundle(agent).bytes()).unwrap();
    assert_eq!(connection.answer_head().unwrap().status, 200);
    connection
}

#[test]
fn a_slow_auditor_takes_the_slot_of_its_own_agent_and_loses_it() {
    let (store, [agent, other]) = two_agents();
    let server = Server::start(&store);
    let mut slow = unread_bundle(&server, &agent);
    let second = server.ask(&bundle(&agent));
    assert_eq!(second.header("retry-after"), Some("1"));
    second.problem(429, "queue_full");
    server.ask(&bundle(&other)).ok();
    server.ask(&bundle(&other)).ok();
    wait_until("the slow auditor loses its slot", || server.ask(&bundle(&agent)).status == 200);
    // The connection ends before the length of the bundle is reached.
    let mut rest = Vec::new();
    let _ = slow.socket.read_to_end(&mut rest);
    assert!(rest.len() < LARGE_BYTES / 2, "{} bytes came", rest.len());
}

#[test]
fn an_auditor_that_goes_away_frees_its_slot() {
    let (store, [agent, _]) = two_agents();
    let server = Server::start(&store);
    let unread = unread_bundle(&server, &agent);
    server.ask(&bundle(&agent)).problem(429, "queue_full");
    // It has unread bytes, so closing resets the connection.
    drop(unread);
    wait_until("its slot is free", || server.ask(&bundle(&agent)).status == 200);
}

/// The number of connections that were closed to make room.
fn closed(server: &Server, agent: &Agent) -> usize {
    let page = server.get("/metrics", &agent.operator).ok().text();
    let name = "ipse_server_closed_connections_total ";
    let figure = page.lines().find_map(|line| line.strip_prefix(name));
    figure.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn heads_that_do_not_end_make_room_for_whole_ones() {
    let (_store, agent, server) = serving();
    let mut kept = server.connect();
    let planner = Request::get("/api/agent/semantic").token(&agent.planner);
    kept.ask(&planner).unwrap().ok();
    let half: Vec<Connection> = (0..PLACES + 88)
        .map(|_| {
            let mut connection = server.connect();
            connection.write(b"GET /health/live HTTP/1.1\r\nhost: ip").unwrap();
            connection
        })
        .collect();
    for _ in 0..20 {
        server.ask(&Request::get("/health/live")).ok();
        server.ask(&Request::get("/health/ready")).ok();
        server.ask(&planner).ok();
    }
    assert!(closed(&server, &agent) > 88, "{}", closed(&server, &agent));
    kept.ask(&planner).expect("a client with a token keeps its connection").ok();
    drop(half);
}

/// Unread pages that are requested repeatedly take one place and little memory; when places are
/// scarce, they lose it.
#[test]
fn unread_pages_make_room() {
    let (_store, agent, server) = serving();
    let request = Request::get("/docs").bytes().repeat(40);
    let unread: Vec<Connection> = (0..PLACES)
        .map(|_| {
            let mut connection = server.connect();
            let _ = connection.write(&request);
            connection
        })
        .collect();
    for _ in 0..20 {
        server.ask(&Request::get("/health/live")).ok();
    }
    assert!(closed(&server, &agent) > 0);
    drop(unread);
}

fn serving() -> (Store, Agent, Server) {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let one = lines(&[event("arm", "1", "grasp", true)]);
    server.ask(&Request::events(LINES, one).token(&agent.producer)).ok();
    (store, agent, server)
}
