//! The trail of an action over HTTP, for auditors: the same as on the command line.

use super::planned::plan;
use super::server::{Server, one_agent};
use super::store::vector;

#[test]
fn the_trail_of_an_action_is_that_of_the_command_line() {
    let (store, agent) = one_agent();
    store.run(&["import", vector("facts/glass_cup.events.jsonl").to_str().unwrap()]).fine();
    let planned = plan(&store);
    let server = Server::start(&store);
    for name in [&planned.intent, &planned.confirmation, &planned.acted, &planned.against] {
        let theirs = store.run(&["explain", name, "--json"]).fine().out;
        let path = format!("/api/audit/actions/{name}");
        let ours = server.get(&path, &agent.auditor).ok();
        assert_eq!(ours.header("content-type"), Some("application/json"));
        assert!(theirs.contains(&format!("\"action\":{},", ours.text())), "byte for byte");
        let theirs = store.run(&["explain", name, "--json", "--page", "2"]).fine().out;
        let ours = server.get(&format!("{path}?page=2"), &agent.auditor).ok().text();
        assert!(theirs.contains(&format!("\"action\":{ours},")), "byte for byte");
        assert!(ours.contains("\"facts\":[]"), "{ours}");
        let page = server.get(&format!("{path}?format=text"), &agent.auditor).ok();
        assert_eq!(page.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(store.run(&["explain", name]).fine().out.contains(&page.text()));
    }
    let path = format!("/api/audit/actions/{}", planned.acted);
    let few = server.get(&format!("{path}?evidence=2"), &agent.auditor).ok().json();
    assert_eq!(few["facts"][0]["evidence"].as_array().unwrap().len(), 2);
    let many = server.get(&format!("{path}?evidence=100"), &agent.auditor).ok().json();
    assert_eq!(many["facts"][0]["evidence"].as_array().unwrap().len(), 15);
    for bad in ["evidence=0", "evidence=101", "format=html", "page=0", "page=x"] {
        server.get(&format!("{path}?{bad}"), &agent.auditor).problem(400, "bad_parameter");
    }
    let log = store.run(&["log", "--json"]).fine().out;
    let pass = log.lines().find(|line| line.contains("\"type\":\"consolidation_run\"")).unwrap();
    let pass: serde_json::Value = serde_json::from_str(pass).unwrap();
    let pass = pass["event_ref"].as_str().unwrap();
    for (name, words) in [
        (pass, "is not an action"),
        ("ev_00000000000000000000000000000000", "no event"),
        ("nonsense", "no event"),
    ] {
        let path = format!("/api/audit/actions/{name}");
        let problem = server.get(&path, &agent.auditor).problem(404, "not_found");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    server.get(&path, &agent.operator).problem(403, "forbidden");
}
