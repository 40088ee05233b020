//! The request log: it contains the reason of a rejection at `info`, with the trace of the request.

use super::client::{Answer, Request};
use super::events::{ONE, event};
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

struct Logged {
    _store: Store,
    agent: Agent,
    server: Server,
}

impl Logged {
    fn new(level: &str) -> Self {
        let (store, agent) = one_agent();
        let server = Server::with(&store, &["--log-format", "json", "--log-level", level]);
        Logged { _store: store, agent, server }
    }

    fn lines(&self) -> Vec<Value> {
        let words = self.server.words();
        words.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The log line about the request of a response.
    #[track_caller]
    fn line(&self, answer: &Answer) -> Value {
        let id = answer.header("x-request-id").unwrap();
        let mut found = None;
        wait_until("the request is in the log", || {
            found = self.lines().into_iter().find(|line| line["request_id"] == id);
            found.is_some()
        });
        found.unwrap()
    }

    fn send(&self, kind: &str, body: &str) -> Answer {
        self.server.ask(&Request::events(kind, body).token(&self.agent.producer))
    }
}

#[test]
fn a_rejection_is_logged_with_its_code_and_its_rule() {
    let logged = Logged::new("info");
    let answer = logged.send(ONE, "{\"id\":\"1\"}").is(422);
    let line = logged.line(&answer);
    assert_eq!(line["level"], "INFO", "{line}");
    for (name, value) in [
        ("status", Value::from(422)),
        ("code", "refused".into()),
        ("rule", "missing".into()),
        ("refused", 1.into()),
        ("path", "/api/agent/events".into()),
        ("method", "POST".into()),
    ] {
        assert_eq!(line[name], value, "{name} in {line}");
    }
    assert!(line["token_id"].as_str().unwrap().starts_with("tk_"), "{line}");
    assert!(line.get("trace_id").is_none(), "{line}");

    let good = event("arm", "1", "grasp", true);
    logged.send(ONE, &good).is(201);
    let conflict = logged.send(ONE, &event("arm", "1", "grasp", false)).is(409);
    let line = logged.line(&conflict);
    assert_eq!((&line["code"], &line["refused"]), (&"conflict".into(), &1.into()), "{line}");

    let lines = [&good, "{}", "{\"id\":7}", &event("arm", "2", "grasp", true)].join("\n");
    let batch = logged.send("application/x-ndjson", &lines).is(200);
    let line = logged.line(&batch);
    assert_eq!((&line["level"], &line["status"]), (&"INFO".into(), &200.into()), "{line}");
    assert_eq!((&line["refused"], &line["rule"]), (&2.into(), &"missing".into()), "{line}");

    let role = logged.server.get("/api/agent/log", &logged.agent.planner).is(403);
    assert_eq!(logged.line(&role)["code"], "forbidden");
    let query = logged.server.get("/api/agent/semantic?skil=1", &logged.agent.planner).is(400);
    assert_eq!(logged.line(&query)["code"], "unknown_parameter");
}

/// Requests without a valid token are unlimited in number, so they do not fill the log. Nor do
/// requests that succeed.
#[test]
fn strangers_and_answered_requests_are_logged_at_debug() {
    let logged = Logged::new("info");
    let mut ids = Vec::new();
    for answer in [
        logged.server.get("/api/agent/log", "stranger").is(401),
        logged.server.ask(&Request::get("/nowhere")).is(404),
        logged.server.ask(&Request::get("/version?x=1")).is(400),
        logged.server.get("/api/agent/identity", &logged.agent.planner).ok(),
    ] {
        ids.push(answer.header("x-request-id").unwrap().to_owned());
    }
    // The lines come in the order of the requests.
    let last = logged.server.get("/api/agent/log", &logged.agent.planner).is(403);
    logged.line(&last);
    for line in logged.lines() {
        assert!(!ids.iter().any(|id| line["request_id"] == id.as_str()), "{line}");
    }
    let logged = Logged::new("debug");
    let stranger = logged.server.get("/api/agent/log", "stranger").is(401);
    let line = logged.line(&stranger);
    assert_eq!((&line["level"], &line["code"]), (&"DEBUG".into(), &"unauthorized".into()));
}

#[test]
fn the_trace_of_a_request_is_logged_and_answered() {
    let logged = Logged::new("debug");
    let ask = |value: &str| {
        let request = Request::get("/api/agent/identity").token(&logged.agent.planner);
        logged.server.ask(&request.header("traceparent", value)).ok()
    };
    let answer = ask(TRACEPARENT);
    assert_eq!(logged.line(&answer)["trace_id"], TRACE);
    let header = answer.header("traceresponse").unwrap();
    let parts: Vec<&str> = header.split('-').collect();
    assert_eq!((parts[0], parts[1], parts[3]), ("00", TRACE, "00"), "{header}");
    assert!(parts[2].len() == 16 && parts[2] != "00f067aa0ba902b7", "{header}");
    for bad in ["", "x", &TRACEPARENT.to_uppercase(), &TRACEPARENT.replacen("00", "ff", 1)] {
        let answer = ask(bad);
        assert_eq!(answer.header("traceresponse"), None, "{bad}");
        assert!(logged.line(&answer).get("trace_id").is_none(), "{bad}");
    }
    // Problems have it too.
    let request = Request::get("/nowhere").header("traceparent", TRACEPARENT);
    let answer = logged.server.ask(&request).is(404);
    assert!(answer.header("traceresponse").unwrap().contains(TRACE));
}
