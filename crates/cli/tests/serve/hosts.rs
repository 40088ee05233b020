//! The Host header over real sockets: a page in a browser whose name was rebound to this machine
//! gets nothing.

use super::client::{Answer, Request};
use super::events::{ONE, event};
use super::server::{Server, one_agent};
use ipse_http::ROUTES;

/// The response to raw bytes.
#[track_caller]
fn raw(server: &Server, text: &str) -> Answer {
    let mut connection = server.connect();
    connection.write(text.as_bytes()).unwrap();
    connection.answer(false).unwrap()
}

fn get(server: &Server, host: &str) -> Answer {
    raw(server, &format!("GET /version HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"))
}

#[test]
fn on_loopback_only_its_own_names_and_public_ones_are_answered() {
    let (store, _agent) = one_agent();
    let urls =
        ["--public-url", "https://Ipse.example.org:8443/x", "--public-url", "http://192.0.2.7"];
    let server = Server::with(&store, &urls);
    for good in [
        "localhost",
        "LOCALHOST:80",
        "localhost.",
        "127.0.0.1:7477",
        "[::1]",
        "[::1]:7477",
        "[0:0::1]:1",
        "ipse.example.org",
        "ipse.EXAMPLE.org.:443",
        "192.0.2.7",
    ] {
        get(&server, good).ok();
    }
    for bad in ["evil.example", "localhost.evil.example", "192.0.2.8", "[::2]", "", "0.0.0.0"] {
        let problem = get(&server, bad).problem(403, "host_not_allowed");
        assert!(problem["detail"].as_str().unwrap().contains("--public-url URL"), "{problem}");
    }
    get(&server, "a b").problem(400, "bad_host");
}

/// Every path, including unknown ones, with a valid token: a rebound name reaches none.
#[test]
fn a_rebound_name_reaches_no_path() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let paths = ROUTES.iter().map(|route| (route.method.as_str(), route.path));
    for (verb, path) in paths.chain([("GET", "/nowhere"), ("DELETE", "/version")]) {
        for token in [&agent.planner, &agent.producer, &agent.operator, &agent.auditor] {
            let text = format!(
                "{verb} {path} HTTP/1.1\r\nhost: rebound.example:7477\r\n\
                 authorization: Bearer {token}\r\ncontent-length: 0\r\n\r\n"
            );
            raw(&server, &text).problem(403, "host_not_allowed");
        }
    }
    let body = event("arm", "1", "grasp", true);
    let text = format!(
        "POST /api/agent/events HTTP/1.1\r\nhost: rebound.example\r\ncontent-type: {ONE}\r\n\
         authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        agent.producer,
        body.len()
    );
    raw(&server, &text).problem(403, "host_not_allowed");
    // It is new here, so it was not appended before.
    server.ask(&Request::events(ONE, body).token(&agent.producer)).is(201);
}

#[test]
fn a_request_has_one_host() {
    let (store, _agent) = one_agent();
    let server = Server::start(&store);
    let ask = |target: &str, version: &str, fields: &str| {
        raw(&server, &format!("GET {target} HTTP/{version}\r\n{fields}connection: close\r\n\r\n"))
    };
    let (evil, own) = ("http://evil.example/version", "http://localhost:7477/version");
    ask("/version", "1.1", "").problem(400, "bad_host");
    ask("/version", "1.1", "host: localhost\r\nhost: localhost\r\n").problem(400, "bad_host");
    ask("/version", "1.1", "host: evil.example\r\nhost: a\r\n").problem(400, "bad_host");
    ask(own, "1.1", "host: evil.example\r\n").ok();
    ask(evil, "1.1", "host: localhost\r\n").problem(403, "host_not_allowed");
    for (target, fields, status) in [
        ("/version", "", "200"),
        ("/version", "host: 127.0.0.1\r\n", "200"),
        ("/version", "host: evil.example\r\n", "403"),
        (own, "", "200"),
        (evil, "", "403"),
    ] {
        // The test client does not know this HTTP version in a response.
        let mut connection = server.connect();
        connection.write(format!("GET {target} HTTP/1.0\r\n{fields}\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut connection.socket, &mut answer).unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{target} {fields}: {answer}");
    }
}

/// A server on a network answers under any name, because no path is for browsers yet.
#[test]
fn elsewhere_other_names_are_answered() {
    let (store, _agent) = one_agent();
    let mut server = Server::with(&store, &["--listen", "0.0.0.0:0"]);
    server.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    get(&server, "robot-7.example").ok();
    get(&server, "a b").problem(400, "bad_host");
    assert!(ROUTES.iter().all(|route| !route.browser), "a path for browsers needs its test here");
}
