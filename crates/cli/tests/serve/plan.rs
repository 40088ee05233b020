//! Advice over HTTP: the same answers as on the command line, kept by no cache.

use super::client::Request;
use super::events::LINES;
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::Store;
use serde_json::json;

const GRASP: &str = "skill_id=grasp&target_class=cup";

/// A server with an agent under v2 that failed ten times on one day.
fn failing() -> (Store, Agent, Server) {
    let store = Store::nothing();
    let agent = Agent::register_under(&store, "ward-robot-01", &["--rules", "v2"]);
    let line = |n: u32| {
        json!({"id": n.to_string(), "source": "arm", "type": "execution_result",
            "time": format!("2026-05-06T10:{n:02}:00Z"),
            "data": {"skill_id": "grasp", "target_class": "cup", "success": false,
                "params": {"force_n": 25}}})
        .to_string()
    };
    let server = Server::start(&store);
    let lines = (0..10).map(|n| line(n) + "\n").collect::<String>();
    server.ask(&Request::events(LINES, lines).token(&agent.producer)).ok();
    wait_until("the facts follow", || {
        server.get("/api/agent/semantic", &agent.planner).ok().json()["total"] == 1
    });
    (store, agent, server)
}

#[test]
fn both_rules_answer_as_on_the_command_line() {
    let (store, agent, server) = failing();
    let get = |path: &str| server.get(path, &agent.planner).ok();
    let now = "2026-05-06T10:30:00Z";
    let may = get(&format!("/api/agent/may-attempt?{GRASP}&now={now}"));
    assert_eq!(may.header("cache-control"), Some("no-store"));
    let args = ["--skill", "grasp", "--target", "cup", "--json"];
    let shown = [&["may-attempt", "--now", now][..], &args].concat();
    assert_eq!(may.json(), agent.run(&store, &shown).ended(1, &[]).json());
    let due = get(&format!("/api/agent/may-attempt?{GRASP}")).json();
    assert_eq!(due["reason"], "retry_due", "the clock of the server");
    let quorum = get(&format!("/api/agent/may-attempt?{GRASP}&quorum=true&now={now}")).json();
    assert_eq!(quorum["reason"], "no_robust");
    let low = get(&format!("/api/agent/may-attempt?{GRASP}&threshold=0.1&now={now}")).json();
    assert_eq!((&low["reason"], &low["threshold"]), (&"high_enough".into(), &0.1.into()));
    let suggest = get(&format!("/api/agent/suggest?{GRASP}&param=force_n&candidates=20,25,30"));
    assert_eq!(suggest.header("cache-control"), Some("no-store"));
    let asked = ["suggest", "--param", "force_n", "--candidates", "20,25,30"];
    let shown = agent.run(&store, &[&asked[..], &args].concat()).fine().json();
    assert_eq!(suggest.json(), shown);
    assert_eq!(shown["value"], 20);
    let range = get(&format!("/api/agent/suggest?{GRASP}&param=force_n&from=20&to=30&step=5"));
    assert_eq!(range.json(), shown);
}

#[test]
fn wrong_questions_are_problems() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    for (query, code, words) in [
        ("may-attempt", "bad_parameter", "`skill_id` is required"),
        ("may-attempt?skill_id=a&threshold=2", "bad_parameter", "from 0 to 1"),
        ("may-attempt?skill_id=a&quorum=yes", "bad_parameter", "true or false"),
        ("may-attempt?skill_id=a&now=noon", "bad_parameter", "2026-05-06T10:00:00Z"),
        ("may-attempt?skill_id=a&limit=3", "unknown_parameter", "limit"),
        ("suggest?skill_id=a", "bad_parameter", "`param` is required"),
        ("suggest?skill_id=a&param=b", "bad_candidates", "there is no candidate"),
        ("suggest?skill_id=a&param=b&candidates=1,1", "bad_candidates", "are equal"),
        ("suggest?skill_id=a&param=b&from=1&to=2", "bad_candidates", "all of `from`"),
        ("suggest?skill_id=a&param=b&from=x&to=2&step=1", "bad_parameter", "`from`"),
        ("suggest?skill_id=a&param=b&from=1&to=9&step=-1", "bad_candidates", "step"),
    ] {
        let answer = server.get(&format!("/api/agent/{query}"), &agent.planner);
        assert_eq!(answer.status, 400, "{query}");
        let problem = answer.json();
        assert_eq!(problem["code"], code, "{query}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
}
