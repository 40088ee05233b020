//! What is measured: it moves with what happens, and shows nothing of other agents.

use super::client::Request;
use super::events::event;
use super::server::{Agent, Server, one_agent};

fn attempt(id: &str) -> String {
    event("arm", id, "grasp", true)
}

/// A figure of the page, by its name with its labels.
#[track_caller]
fn figure(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn every_figure_moves_with_what_it_counts() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &["--pass-every", "1"]);
    let lines = [attempt("a"), attempt("b"), attempt("a"), "{}".to_string()].join("\n");
    server.ask(&Request::events("application/x-ndjson", lines).token(&agent.producer)).ok();
    server.get("/api/agent/semantic", &agent.planner).ok();
    server.get("/api/agent/log", &agent.planner).is(403);
    server.get("/api/agent/log", "nobody").is(401);
    let answer = server.get("/metrics", &agent.producer).ok();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("content-type"), Some(kind));
    let page = answer.text();
    assert!(page.ends_with("# EOF\n"));
    for (name, value) in [
        ("ipse_events_total{result=\"appended\"}", 2.0),
        ("ipse_events_total{result=\"duplicate\"}", 1.0),
        ("ipse_events_total{result=\"refused\"}", 1.0),
        ("ipse_append_seconds_count", 1.0),
        ("ipse_queue", 0.0),
        ("ipse_passes_total{trigger=\"threshold\"}", 1.0),
        ("ipse_rows_touched_total", 1.0),
        ("ipse_log_size", 3.0),
        ("ipse_checkpoint", 2.0),
        ("ipse_tree_size", 3.0),
        ("ipse_facts", 1.0),
        ("ipse_requests_total{method=\"GET\",route=\"/api/agent/semantic\",status=\"200\"}", 1.0),
        ("ipse_requests_total{method=\"GET\",route=\"/api/agent/log\",status=\"403\"}", 1.0),
        ("ipse_request_seconds_count{method=\"POST\",route=\"/api/agent/events\"}", 1.0),
        ("ipse_server_connections", 1.0),
        ("ipse_server_unauthorized_total", 1.0),
    ] {
        assert_eq!(figure(&page, name), value, "{name}");
    }
    assert!(
        figure(&page, "ipse_snapshot_age_seconds") < figure(&page, "ipse_server_uptime_seconds")
    );
}

#[test]
fn other_agents_are_not_in_it() {
    let (store, agent) = one_agent();
    let other = Agent::register(&store, "ward-robot-02");
    let server = Server::start(&store);
    server.ask(&Request::events("application/json", attempt("a")).token(&agent.producer)).is(201);
    let page = server.get("/metrics", &other.auditor).ok().text();
    assert_eq!(figure(&page, "ipse_log_size"), 0.0);
    assert_eq!(figure(&page, "ipse_events_total{result=\"appended\"}"), 0.0);
    for absent in ["/api/agent/events", &agent.identity] {
        assert!(!page.contains(absent), "{absent} in {page}");
    }
}
