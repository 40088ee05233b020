//! The drift monitor of a server: report and series, and the alarm in the stream and the metrics.

use super::client::Request;
use super::events::LINES;
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use super::streaming::Stream;
use serde_json::{Value, json};

/// An agent whose log begins with rule set v2.
fn v2_agent() -> (Store, Agent) {
    let store = Store::nothing();
    let agent = Agent::register_under(&store, "ward-robot-01", &["--rules", "v2"]);
    (store, agent)
}

/// Four attempts on each of these days of 2026, which worked or not.
fn attempts(days: std::ops::Range<u32>, worked: bool) -> String {
    let line = |day: u32, n: u32| {
        format!(
            "{{\"id\":\"{day}-{n}\",\"source\":\"arm\",\"type\":\"execution_result\",\
             \"time\":\"2026-{:02}-{:02}T0{n}:00:00Z\",\
             \"data\":{{\"skill_id\":\"grasp\",\"success\":{}}}}}\n",
            1 + day / 28,
            1 + day % 28,
            // One of four is otherwise, so that a rate can be compared.
            worked != (n == 0),
        )
    };
    days.flat_map(|day| (0..4).map(move |n| line(day, n))).collect()
}

fn send(server: &Server, agent: &Agent, lines: String) {
    server.ask(&Request::events(LINES, lines).token(&agent.producer)).ok();
}

fn metric(server: &Server, agent: &Agent) -> Option<String> {
    let page = server.get("/metrics", &agent.operator).ok().text();
    page.lines().find_map(|line| line.strip_prefix("ipse_drift ").map(str::to_owned))
}

#[test]
fn a_pass_that_turns_the_alarm_is_in_streams_and_metrics() {
    let (store, agent) = v2_agent();
    let server = Server::start(&store);
    let mut stream = Stream::open(&server, &agent.operator, None);
    let mut next_drift = || loop {
        let message = stream.next();
        if message.name == "drift" {
            assert_eq!(message.id, None, "it is not in the log");
            return message.data;
        }
    };
    send(&server, &agent, attempts(0..63, true));
    wait_until("the first report is made", || metric(&server, &agent).as_deref() == Some("0"));
    send(&server, &agent, attempts(63..70, false));
    let sent = next_drift();
    let report = server.get("/api/agent/drift", &agent.operator).ok().json();
    assert_eq!(sent, report);
    assert_eq!((&report["drift"], &report["day"]), (&true.into(), &"2026-03-14".into()));
    assert_eq!(report["most"], json!(["grasp + * + *"]));
    wait_until("the metric follows", || metric(&server, &agent).as_deref() == Some("1"));
    // The weeks after the change are the new reference, and the alarm ends.
    send(&server, &agent, attempts(70..150, false));
    let sent = next_drift();
    assert_eq!((&sent["drift"], &sent["facts"]), (&false.into(), &1.into()));
    wait_until("the metric follows", || metric(&server, &agent).as_deref() == Some("0"));
    // A planner, who may not read the report, gets the events of the log and no report.
    let mut planner = Stream::open(&server, &agent.planner, Some(0));
    send(&server, &agent, attempts(150..160, true));
    assert_eq!(next_drift()["drift"], true);
    let head = store.run(&["log", "--json"]).fine().out.lines().count() as u64;
    loop {
        let message = planner.next();
        assert_ne!(message.name, "drift");
        if message.id == Some(head) {
            break;
        }
    }
}

#[test]
fn report_and_series_are_those_of_the_command_line() {
    let (store, agent) = v2_agent();
    let server = Server::start(&store);
    let empty = server.get("/api/agent/drift", &agent.auditor).ok().json();
    assert_eq!(empty, json!({"day":"1970-01-01","drift":false,"facts":0,"most":[],"z2":0}));
    send(&server, &agent, attempts(0..80, true));
    server.ask(&Request::post("/api/agent/consolidate", "", "").token(&agent.operator)).ok();
    for (path, args) in [
        ("/api/agent/drift", &["drift", "--json"][..]),
        ("/api/agent/drift?day=2026-02-01", &["drift", "--day", "2026-02-01", "--json"]),
        ("/api/agent/drift/series", &["drift", "--series", "--json"]),
        ("/api/agent/drift/series?step=week", &["drift", "--series", "--json"]),
    ] {
        let served: Value = server.get(path, &agent.operator).ok().json();
        assert_eq!(served, store.run(args).json(), "{path}");
    }
    for bad in ["drift?day=today", "drift?day=2026-02-30", "drift/series?step=day"] {
        let answer = server.get(&format!("/api/agent/{bad}"), &agent.operator);
        answer.problem(400, "bad_parameter");
    }
    server.get("/api/agent/drift?step=week", &agent.operator).problem(400, "unknown_parameter");
}

#[test]
fn under_v1_a_report_is_computed_and_nothing_is_watched() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    send(&server, &agent, attempts(0..63, true));
    send(&server, &agent, attempts(63..70, false));
    wait_until("the pass is done", || {
        server.get("/api/agent/drift", &agent.operator).ok().json()["drift"] == true
    });
    assert_eq!(metric(&server, &agent), None);
}
