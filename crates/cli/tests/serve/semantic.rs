//! Responses to planners: one checkpoint, a tag for it, a verifiable consultation, and a grounding
//! text that changes only when a fact in it changes.

use super::client::{Answer, Request};
use super::events::event;
use super::server::{ACTS, Agent, Server, one_agent, wait_until};
use ipse_core::{hex, sha256};
use serde_json::Value;

const SEMANTIC: &str = "/api/agent/semantic";

fn attempt(id: &str) -> String {
    event("arm", id, "grasp", true)
}

/// A server that runs a pass only on request.
fn patient() -> (super::store::Store, Agent, Server) {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &["--pass-every", "1000000", "--pass-quiet", "86400000"]);
    (store, agent, server)
}

/// Appends attempts at a target, and runs a pass.
#[track_caller]
fn lived(server: &Server, agent: &Agent, target: &str, ids: std::ops::Range<u32>) {
    let lines: Vec<String> = ids
        .map(|id| attempt(&id.to_string()).replace("\"cup\"", &format!("\"{target}\"")))
        .collect();
    let sent = Request::events("application/x-ndjson", lines.join("\n")).token(&agent.producer);
    assert_eq!(server.ask(&sent).ok().json()["appended"], lines.len());
    pass(server, agent);
}

fn pass(server: &Server, agent: &Agent) {
    server.ask(&Request::new("POST", "/api/agent/consolidate").token(&agent.operator)).ok();
}

fn asked(server: &Server, agent: &Agent, query: &str, tag: &str) -> Answer {
    let request = Request::get(&format!("{SEMANTIC}{query}")).token(&agent.planner);
    server.ask(&request.header("if-none-match", tag))
}

fn tag(answer: &Answer) -> String {
    answer.header("etag").unwrap().to_string()
}

#[test]
fn a_tag_holds_until_a_pass_finds_something_new() {
    let (_store, agent, server) = patient();
    lived(&server, &agent, "cup", 0..5);
    let first = server.get(SEMANTIC, &agent.planner).ok();
    let tag_of_first = tag(&first);
    for list in
        [&tag_of_first, &format!("W/{tag_of_first}"), &format!("\"x\", {tag_of_first}"), "*"]
    {
        let again = asked(&server, &agent, "", list).is(304);
        assert_eq!((tag(&again), again.body.len()), (tag_of_first.clone(), 0), "{list}");
    }
    asked(&server, &agent, "", "\"x\"").ok();
    pass(&server, &agent);
    asked(&server, &agent, "", &tag_of_first).is(304);
    lived(&server, &agent, "cup", 5..6);
    let second = asked(&server, &agent, "", &tag_of_first).ok();
    assert_ne!(tag(&second), tag_of_first);
    assert_ne!(second.json()["checkpoint"], first.json()["checkpoint"]);
    let third = ACTS + 3;
    let query = format!("?as_of={third}");
    let past = asked(&server, &agent, &query, &tag(&second)).ok();
    assert_eq!((&past.json()["checkpoint"], tag(&past) != tag(&second)), (&third.into(), true));
    asked(&server, &agent, &query, &tag(&past)).is(304);
}

#[test]
fn the_same_question_gets_the_same_bytes_and_never_those_of_another() {
    let (_store, agent, server) = patient();
    lived(&server, &agent, "cup", 0..5);
    lived(&server, &agent, "jar", 5..9);
    let questions = ["", "?target_class=cup", "?target_class=jar", "?format=grounding&limit=1"];
    let first = questions.map(|query| server.get(&format!("{SEMANTIC}{query}"), &agent.planner));
    for (query, before) in questions.iter().zip(&first) {
        let again = server.get(&format!("{SEMANTIC}{query}"), &agent.planner).ok();
        assert_eq!(again.text(), before.text(), "{query}");
        assert_eq!(again.header("content-type"), before.header("content-type"), "{query}");
    }
    assert_eq!(first[1].json()["facts"][0]["fact_key"], "grasp + cup + ward");
    assert_eq!(first[2].json()["facts"][0]["fact_key"], "grasp + jar + ward");
    lived(&server, &agent, "cup", 9..10);
    let after = server.get(&format!("{SEMANTIC}?target_class=cup"), &agent.planner).ok().json();
    assert_eq!(after["facts"][0]["n_observations"], 6, "what was kept went with its table");
}

#[test]
fn a_consultation_names_what_was_read_and_no_value() {
    let (_store, agent, server) = patient();
    lived(&server, &agent, "cup", 0..5);
    let path = format!("{SEMANTIC}?skill_id=grasp&limit=7&kind=skill_success_rate");
    let answer = server.get(&path, &agent.planner).ok().json();
    let consultation = &answer["consultation"];
    let ids: Vec<&Value> =
        answer["facts"].as_array().unwrap().iter().map(|fact| &fact["fact_id"]).collect();
    let expected = serde_json::json!({
        "checkpoint": answer["checkpoint"],
        "fact_ids": ids,
        "query": {"kind": "skill_success_rate", "limit": 7, "skill_id": "grasp"},
        "rule_version": "v1",
    });
    assert_eq!((consultation, ids.len()), (&expected, 1));
    // Members of this writer are sorted and need no escapes: the text is canonical.
    let hash = hex::encode(&sha256(&[expected.to_string().as_bytes()]));
    assert_eq!(answer["consultation_id"], format!("co_{}", &hash[..32]));
}

#[test]
fn grounding_changes_only_with_a_fact_in_it() {
    let (_store, agent, server) = patient();
    lived(&server, &agent, "cup", 0..5);
    let about_cups = format!("{SEMANTIC}?format=grounding&target_class=cup");
    let before = server.get(&about_cups, &agent.planner).ok();
    assert_eq!(before.header("content-type"), Some("text/plain; charset=utf-8"));
    lived(&server, &agent, "jar", 5..9);
    let other = server.get(&about_cups, &agent.planner).ok();
    assert_ne!(tag(&other), tag(&before));
    assert_eq!(other.text(), before.text(), "jars are not in it");
    lived(&server, &agent, "cup", 9..10);
    assert_ne!(server.get(&about_cups, &agent.planner).ok().text(), before.text());
}

#[test]
fn parameters_are_taken_at_their_word() {
    let (_store, agent, server) = patient();
    for number in 0..25 {
        lived(&server, &agent, &format!("cup{number}"), number..number + 1);
    }
    let count = |query: &str| {
        let answer = server.get(&format!("{SEMANTIC}{query}"), &agent.planner).ok().json();
        answer["facts"].as_array().unwrap().len()
    };
    assert_eq!([count(""), count("?limit=3"), count("?limit=1000")], [20, 3, 25]);
    assert_eq!([count("?target_class=cup7"), count("?target_class=cup")], [1, 0]);
    let past = format!("?limit=3&as_of={}", ACTS + 13);
    for (query, total, last) in [
        ("?limit=3", 25, Some("(22 more facts not shown)")),
        ("?limit=25", 25, None),
        ("?limit=3&target_class=cup7", 1, None),
        (past.as_str(), 7, Some("(4 more facts not shown)")),
    ] {
        let answer = server.get(&format!("{SEMANTIC}{query}"), &agent.planner).ok().json();
        assert_eq!(answer["total"], total, "{query}");
        let text = answer["grounding"].as_str().unwrap();
        let end = text.lines().last().filter(|line| line.starts_with('('));
        assert_eq!(end, last, "{query}");
    }
    for (query, code) in [
        ("?limit=0", "bad_parameter"),
        ("?limit=1001", "bad_parameter"),
        ("?limit=%2B5", "bad_parameter"),
        ("?as_of=-1", "bad_parameter"),
        ("?as_of=yesterday", "bad_parameter"),
        ("?as_of=2026-02-30", "bad_parameter"),
        ("?as_of=1099511627776", "bad_parameter"),
        ("?kind=insight", "bad_parameter"),
        ("?format=xml", "bad_parameter"),
        ("?target=cup", "unknown_parameter"),
        ("?identity_hash=0", "unknown_parameter"),
        ("?environment=a&environment=b", "repeated_parameter"),
        ("?env=a&env=b", "repeated_parameter"),
        ("?env=a&environment=a", "repeated_parameter"),
    ] {
        server.get(&format!("{SEMANTIC}{query}"), &agent.planner).problem(400, code);
    }
    server.get(&format!("{SEMANTIC}?as_of=1000"), &agent.planner).problem(404, "not_found");
    let forms = server.get(&format!("{SEMANTIC}?as_of=yesterday"), &agent.planner);
    let detail = forms.json()["detail"].as_str().unwrap().to_owned();
    for form in ["`as_of`", "a position such as", "a time such as", "a date such as"] {
        assert!(detail.contains(form), "{detail}");
    }
}

#[test]
fn the_environment_has_one_name_and_an_older_one() {
    let (_store, agent, server) = patient();
    lived(&server, &agent, "cup", 0..5);
    let get = |query: &str| server.get(&format!("{SEMANTIC}?{query}"), &agent.planner);
    let (named, aliased) = (get("environment=ward").ok(), get("env=ward").ok());
    assert_eq!(named.text(), aliased.text());
    assert_eq!(named.json()["facts"].as_array().unwrap().len(), 1);
    assert!(get("environment=hall").ok().json()["facts"].as_array().unwrap().is_empty());
    // The query of a consultation is hashed, so its member keeps the older name.
    assert_eq!(named.json()["consultation"]["query"]["env"], "ward");
    for both in ["env=ward&environment=ward", "environment=ward&env=hall"] {
        let problem = get(both).problem(400, "repeated_parameter");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.ends_with("are the same parameter: give only `environment`"), "{detail}");
    }
}

#[test]
fn grounding_has_a_path_of_its_own() {
    let (_store, agent, server) = patient();
    lived(&server, &agent, "cup", 0..5);
    lived(&server, &agent, "jar", 5..9);
    let get = |path: &str| server.get(path, &agent.planner);
    // Each twice: the second response comes from the cache, whichever path filled it.
    let past = format!("as_of={}", ACTS + 5);
    for query in ["", "target_class=jar&limit=1", "target_class=cup", past.as_str(), ""] {
        for _ in 0..2 {
            let json = get(&format!("{SEMANTIC}?{query}")).ok();
            assert_eq!(json.header("content-type"), Some("application/json"), "{query}");
            let text = get(&format!("/api/agent/grounding?{query}")).ok();
            assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"), "{query}");
        }
        let alone = get(&format!("/api/agent/grounding?{query}")).ok();
        let formatted = get(&format!("{SEMANTIC}?{query}&format=grounding")).ok();
        assert_eq!(alone.text(), formatted.text(), "{query}");
        let json = get(&format!("{SEMANTIC}?{query}")).ok();
        assert!(json.header("ipse-checkpoint").or(json.header("ipse-consultation-id")).is_none());
        let json = json.json();
        assert_eq!(alone.header("ipse-checkpoint"), Some(&*json["checkpoint"].to_string()));
        assert_eq!(alone.header("ipse-consultation-id"), json["consultation_id"].as_str());
        let headers = ["content-type", "etag", "cache-control", "vary"];
        for header in headers.into_iter().chain(["ipse-checkpoint", "ipse-consultation-id"]) {
            assert!(alone.header(header).is_some(), "{header}");
            assert_eq!(alone.header(header), formatted.header(header), "{query} {header}");
        }
        let path = format!("/api/agent/grounding?{query}");
        let again = Request::get(&path).token(&agent.planner);
        server.ask(&again.header("if-none-match", &tag(&alone))).is(304);
    }
    assert!(get("/api/agent/grounding").ok().text().contains("grasp + cup + ward"));
    get("/api/agent/grounding?format=grounding").problem(400, "unknown_parameter");
    get("/api/agent/grounding?format=json").problem(400, "unknown_parameter");
    get("/api/agent/grounding?limit=0").problem(400, "bad_parameter");
}

#[test]
fn facts_follow_by_themselves() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &["--pass-every", "3", "--pass-quiet", "50"]);
    let known = |n: u64| {
        let answer = server.get(SEMANTIC, &agent.planner).ok().json();
        answer["facts"][0]["n_observations"] == n
    };
    let send = |id: &str| {
        let sent = Request::events("application/json", attempt(id)).token(&agent.producer);
        server.ask(&sent).is(201);
    };
    ["a", "b", "c"].into_iter().for_each(send);
    wait_until("three events make a pass", || known(3));
    send("d");
    wait_until("quiet makes a pass", || known(4));
}
