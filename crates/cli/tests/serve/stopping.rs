//! Stopping and not starting. Begun requests are answered or never accepted, acknowledged events
//! are stored, and nothing is left to repair. A server that cannot start reports why.

use super::chance::Chance;
use super::client::{Connection, Request};
use super::events::{ONE, event};
use super::load::{Outside, Producer};
use super::server::{Agent, Server, one_agent, serve, token, wait_until};
use super::store::Store;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn post(agent: &Agent, id: &str) -> Request {
    Request::events(ONE, event("arm", id, "grasp", true)).token(&agent.producer)
}

/// A request without its last byte.
fn begun(server: &Server, agent: &Agent) -> (Connection, u8) {
    let bytes = post(agent, "begun").header("expect", "100-continue").bytes();
    let mut connection = server.connect();
    let (last, most) = bytes.split_last().unwrap();
    connection.write(most).unwrap();
    connection.answer(false).unwrap().is(100);
    (connection, *last)
}

/// Checks that the write-ahead log is empty.
#[track_caller]
fn is_checkpointed(store: &Store) {
    let wal = store.path.with_extension("db-wal");
    let left = std::fs::metadata(&wal).map_or(0, |file| file.len());
    assert_eq!(left, 0, "{}", wal.display());
}

/// The output of `serve` when it ends by itself.
fn refused(store: &Store, args: &[&str]) -> (Option<i32>, String) {
    let output = serve(store, args).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn stopped_under_load_it_ends_well() {
    let (store, agent) = one_agent();
    let mut chance = Chance::new();
    let mut producers: Vec<Producer> = (0..4)
        .map(|n| Producer::new(&format!("arm{n}"), &agent.producer, chance.split()))
        .collect();
    let mut outside = Outside::default();
    for round in 0..10 {
        let mut server = Server::with(&store, &["--pass-every", "16", "--pass-quiet", "5"]);
        outside.compare(&server, &agent);
        let (address, stop) = (server.address, AtomicBool::new(false));
        let sent: Vec<_> = std::thread::scope(|scope| {
            let send = |producer| scope.spawn(|| Producer::send(producer, address, &stop));
            let threads: Vec<_> = producers.iter_mut().map(send).collect();
            std::thread::sleep(Duration::from_millis(50 + chance.below(150)));
            server.signal(if round % 2 == 0 { "TERM" } else { "INT" });
            let (status, words) = server.ended();
            assert_eq!(status.code(), Some(0), "{words}");
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        outside.note(sent);
        is_checkpointed(&store);
        assert!(TcpStream::connect(address).is_err(), "the port is closed");
    }
    outside.compare_rows(&store);
    assert!(outside.acknowledged.len() > 100, "too little was going on");
    store.run(&["verify"]).fine();
    store.run(&["rebuild"]).fine();
}

/// The server may be stopped as soon as it reports that it serves.
#[test]
fn stopped_at_once_it_ends_well() {
    let (store, _) = one_agent();
    for _ in 0..20 {
        Server::start(&store).stop();
        is_checkpointed(&store);
    }
}

#[test]
fn what_was_begun_is_finished_and_nothing_new_is_accepted() {
    let (store, agent) = one_agent();
    let mut server = Server::start(&store);
    let (mut connection, last) = begun(&server, &agent);
    // Idle connections do not delay it.
    let mut idle: Vec<Connection> = (0..50).map(|_| server.connect()).collect();
    for connection in &mut idle[..25] {
        connection.ask(&Request::get("/version")).unwrap().ok();
    }
    server.signal("TERM");
    let refused = || TcpStream::connect(server.address).is_err();
    wait_until("new connections are refused", refused);
    assert!(server.is_alive(), "a request is still being made");
    connection.write(&[last]).unwrap();
    connection.answer(false).unwrap().is(201);
    assert!(connection.is_closed());
    let (status, words) = server.ended();
    assert_eq!(status.code(), Some(0), "{words}");
    is_checkpointed(&store);
    assert!(store.run(&["log", "--json"]).fine().out.contains("\"id\":\"begun\""));
    for mut connection in idle {
        assert!(connection.is_closed());
    }
}

#[test]
fn streams_end_when_it_stops() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let request = Request::get("/api/agent/stream").token(&agent.planner);
    let mut streams: Vec<Connection> = (0..5).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write(&request.bytes()).unwrap();
        stream.answer_head().unwrap().ok();
    }
    server.ask(&post(&agent, "last")).is(201);
    server.stop();
    for stream in &mut streams {
        let mut all = Vec::new();
        while let Some(chunk) = stream.chunk().unwrap() {
            all.extend(chunk);
        }
        let all = String::from_utf8(all).unwrap();
        assert!(all.contains("event: appended"), "{all}");
    }
    is_checkpointed(&store);
}

/// A body that never comes, an unread stream and a head that does not end keep the server neither
/// alive nor from ending cleanly.
#[test]
fn stalled_clients_cannot_keep_it_alive() {
    let (store, agent) = one_agent();
    let many: String =
        (0..20_000).map(|n| event("arm", &format!("{n}"), "grasp", true) + "\n").collect();
    store.import(many).fine();
    let mut server = Server::start(&store);
    let (_connection, _) = begun(&server, &agent);
    let request = Request::get("/api/agent/stream").token(&agent.planner);
    let mut stream = server.connect();
    stream.write(&request.header("last-event-id", "0").bytes()).unwrap();
    stream.answer_head().unwrap().ok();
    let mut half_asked = server.connect();
    half_asked.write(b"GET / HT").unwrap();
    server.ask(&post(&agent, "acknowledged")).is(201);
    server.signal("TERM");
    let (status, words) = server.ended();
    assert_eq!(status.code(), Some(0), "{words}");
    is_checkpointed(&store);
    let log = store.run(&["log", "--json"]).fine().out;
    assert!(log.contains("\"id\":\"acknowledged\"") && !log.contains("\"id\":\"begun\""));
    store.run(&["verify"]).fine();
}

#[test]
fn a_second_signal_is_the_end() {
    for (first, second, code) in [("TERM", "INT", 130), ("INT", "INT", 130), ("INT", "TERM", 143)] {
        let (store, agent) = one_agent();
        let mut server = Server::start(&store);
        server.ask(&post(&agent, "acknowledged")).is(201);
        let (_connection, _) = begun(&server, &agent);
        server.signal(first);
        wait_until("it stops", || TcpStream::connect(server.address).is_err());
        let since = Instant::now();
        server.signal(second);
        let (status, words) = server.ended();
        assert_eq!(status.code(), Some(code), "{words}");
        // Before the grace period is over.
        assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
        assert!(store.run(&["log", "--json"]).fine().out.contains("\"id\":\"acknowledged\""));
        store.run(&["verify"]).fine();
    }
}

#[test]
fn only_loopback_is_opened_without_a_valid_token() {
    let store = Store::new();
    let identity = store.run(&["identity", "--json"]).fine().json();
    let identity = identity["identity_hash"].as_str().unwrap();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let (code, words) = refused(&store, &["--listen", listen]);
        assert_eq!(code, Some(2), "{words}");
        for word in ["no token exists", listen, "ipse token create"] {
            assert!(words.contains(word), "{word}: {words}");
        }
    }
    // A revoked token does not count either.
    token(&store, identity, &["--role", "planner", "--name", "gone"]);
    store.run(&["token", "revoke", "gone"]).fine();
    let (code, words) = refused(&store, &["--listen", "0.0.0.0:0"]);
    assert_eq!(code, Some(2), "{words}");
    // Loopback is opened, and with a token everything is.
    Server::start(&store).stop();
    token(&store, identity, &["--role", "planner"]);
    Server::with(&store, &["--listen", "0.0.0.0:0"]).stop();
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let store = Store::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, words) = refused(&store, &["--listen", &address]);
    assert_eq!(code, Some(2), "{words}");
    for word in ["could not listen on", &address, "in use", "choose another port"] {
        assert!(words.contains(word), "{word}: {words}");
    }
    for listen in ["nowhere", "127.0.0.1", "127.0.0.1:99999", ":80"] {
        let (code, words) = refused(&store, &["--listen", listen]);
        assert!(code == Some(2) && words.contains(listen), "{listen}: {words}");
    }
    for args in [["--pass-every", "0"], ["--pass-every", "x"], ["--pass-quiet", "-1"]] {
        let (code, words) = refused(&store, &[&["--listen", "127.0.0.1:0"], &args[..]].concat());
        assert_eq!(code, Some(2), "{args:?}: {words}");
    }
    let none = Store::nothing();
    let (code, words) = refused(&none, &["--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{words}");
    for word in ["no store at", "hint:", "init --manifest"] {
        assert!(words.contains(word), "{word}: {words}");
    }
    assert!(!none.path.exists(), "nothing was made");
    let foreign = Store::nothing();
    std::fs::write(&foreign.path, "this is no store").unwrap();
    let (code, words) = refused(&foreign, &["--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(!words.contains("panicked"), "{words}");
}
