//! One client against the others: bundles that are not read. The others are served all the same.

use super::client::{Connection, Request};
use super::events::{event, lines};
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use std::io::Read;

/// More than all that lies between a server that sends and a client that does not read.
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

/// Begins to take a bundle, and reads only the head of the answer.
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
    // The connection ends before the bundle does, which its length tells.
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
    // It has bytes that it did not read, so that this resets the connection.
    drop(unread);
    wait_until("its slot is free", || server.ask(&bundle(&agent)).status == 200);
}
