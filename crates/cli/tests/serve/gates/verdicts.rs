//! Each verdict, over HTTP and in the log; and decisions of a person about waiting intents.

use super::{Gated, codes, grasp};
use crate::client::Request;
use crate::server::wait_until;
use serde_json::{Value, json};

/// A case: the grasp of a glass cup with this many newtons, or changes to one with 25 (null removes
/// a member); the verdict; the admitted parameters; and the findings by gate.
const CASES: &str = r#"
{}                               | admitted           | 25        | policy    |
5                                | admitted           | 5         | policy    |
4.999999                         | clamped            | 5         | policy    | below_minimum
0                                | clamped            | 5         | policy    | below_minimum
30                               | admitted           | 30        | contract  |
31                               | needs_confirmation | 31        | contract  | human_check
30.000001                        | needs_confirmation | 30.000001 | contract  | human_check
40                               | needs_confirmation | 40        | policy    |
41                               | needs_confirmation | 40        | policy    | above_maximum
59.9                             | needs_confirmation | 40        | contract  | human_check
60                               | denied             | -         | policy    | forbidden_range
140                              | denied             | -         | policy    | forbidden_range
{"params":{"force_n":120},"target_class":"tray"} | clamped | 100 | policy | above_maximum
141                              | denied             | -         | admission | out_of_range
1e300                            | denied             | -         | admission | out_of_range
{"params":{"force_n":"25"}}      | denied             | -         | admission | mistyped_parameter
{"params":{"force_n":null}}      | denied             | -         | admission | missing_parameter
{"params":{"speed":1}}           | denied             | -         | admission | unknown_parameter
{"params":{"retries":1.5}}       | denied             | -         | admission | mistyped_parameter
{"params":{"grip":"pinch"}}      | denied             | -         | policy    | forbidden_value
{"params":{"grip":"hard"}}       | denied             | -         | admission | unknown_choice
{"params":{"grip":"soft"}}       | admitted           | {"force_n":25,"grip":"soft"} | policy    |
{"skill_id":"fly","params":null} | denied             | -         | admission | unknown_skill
{"target_class":null}            | denied             | -         | admission | missing_field
{"target_class":"cat"}           | denied             | -         | admission | unknown_target
{"environment":"moon"}           | denied             | -         | admission | unknown_environment
{"skill_id":"navigation.tow_bed","params":null} | denied | - | policy |
"#;

/// The grasp of a glass cup with 25 N, and a consultation.
fn echoing(claim: &Value) -> String {
    let mut intent = grasp(25);
    intent["consultation"] = claim.clone();
    intent.to_string()
}

/// Applies changes to a value, as a JSON merge patch.
fn merged(value: &mut Value, changes: &Value) {
    let Some(changes) = changes.as_object() else {
        *value = changes.clone();
        return;
    };
    let members = value.as_object_mut().unwrap();
    for (name, change) in changes {
        match change {
            Value::Null => drop(members.remove(name)),
            change => merged(members.entry(name).or_insert(json!({})), change),
        }
    }
}

#[test]
fn each_case_gets_its_verdict_and_stands_in_the_log() {
    let gated = Gated::with(&["--pass-quiet", "3600000"]);
    for (place, line) in CASES.trim().lines().enumerate() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [changes, verdict, params, gate, found] = cells[..] else { panic!("{line}") };
        let changes: Value = serde_json::from_str(changes).unwrap();
        let mut intent = grasp(25);
        let force = |force: &Value| json!({ "params": { "force_n": force } });
        merged(&mut intent, &if changes.is_number() { force(&changes) } else { changes });
        let answer = gated.propose(&intent);
        assert_eq!(answer["verdict"], verdict, "{line}: {answer}");
        assert_eq!(codes(&answer, gate).join(" "), found, "{line}: {answer}");
        let admitted = answer.get("admitted_params").map(Value::to_string);
        let params = if params.starts_with(|c: char| c.is_ascii_digit()) {
            format!("{{\"force_n\":{params}}}")
        } else {
            params.to_owned()
        };
        assert_eq!(admitted.unwrap_or("-".to_owned()), params, "{line}");
        assert_eq!(answer["params"], intent.get("params").cloned().unwrap_or(json!({})));
        let log = gated.log("intent");
        assert_eq!(log.len(), place + 1, "always an event");
        let (last, event) = (&log[place], &log[place]["event"]);
        assert_eq!((&last["event_ref"], &last["seq"]), (&answer["event_ref"], &answer["seq"]));
        assert_eq!(event["source"], "ipse");
        for (name, said) in event["data"].as_object().unwrap() {
            assert_eq!(answer[name], *said, "{name}");
        }
        assert_eq!(gated.intent(&answer["event_ref"]), answer);
    }
    let denied = CASES.lines().filter(|line| line.contains("| denied ")).count();
    let path = "/api/agent/intents?standing=denied&limit=1000";
    let listed = gated.server.get(path, &gated.agent.operator).ok().json();
    assert_eq!(listed["intents"].as_array().unwrap().len(), denied);
    let facts = gated.server.get("/api/agent/semantic", &gated.agent.planner).ok().json();
    assert_eq!((&facts["facts"], &facts["checkpoint"]), (&json!([]), &json!(0)), "nothing learned");
    gated.agent.run(&gated.store, &["verify"]).fine();
}

/// No pass follows an intent, because it feeds no fact; a signed tree head covers it anyway.
#[test]
fn an_intent_is_proven_without_a_pass() {
    let gated = Gated::new();
    // One skill with a rate limit, and one without.
    for intent in [json!({ "skill_id": "fly" }), grasp(100)] {
        let name = gated.propose(&intent)["event_ref"].as_str().unwrap().to_owned();
        let path = format!("/api/audit/proof?event_ref={name}");
        wait_until("a tree head covers it", || {
            gated.server.get(&path, &gated.agent.auditor).status == 200
        });
    }
    assert_eq!(gated.log("consolidation_run").len(), 0);
}

#[test]
fn intents_are_listed_in_pages_newest_first() {
    let gated = Gated::new();
    let all: Vec<Value> = (10..17).map(|force| gated.propose(&grasp(force))).collect();
    let (mut listed, mut path) = (Vec::new(), "/api/agent/intents?limit=3".to_owned());
    loop {
        let page = gated.server.get(&path, &gated.agent.auditor).ok().json();
        let intents = page["intents"].as_array().unwrap();
        assert!(intents.len() <= 3);
        listed.extend(intents.clone());
        let Some(next) = page.get("next_before") else { break };
        path = format!("/api/agent/intents?limit=3&before={next}");
    }
    listed.reverse();
    assert_eq!(listed, all);
    // A waiting intent is found, however many came after it.
    let waiting = gated.propose(&grasp(35));
    (0..30).for_each(|_| drop(gated.propose(&grasp(20))));
    let path = "/api/agent/intents?standing=waiting&limit=1";
    let page = gated.server.get(path, &gated.agent.operator).ok().json();
    assert_eq!(page, json!({ "intents": [waiting] }));
    let path = "/api/agent/intents?standing=sleeping";
    gated.server.get(path, &gated.agent.planner).problem(400, "bad_parameter");
}

#[test]
fn a_person_decides_once() {
    let gated = Gated::new();
    let (yes, no) = (gated.propose(&grasp(35)), gated.propose(&grasp(36)));
    let (yes, no) = (&yes["event_ref"], &no["event_ref"]);
    assert_eq!(gated.intent(yes)["standing"], "waiting");
    let confirmed = gated.decide(yes, "").ok().json();
    assert_eq!(confirmed["standing"], "confirmed");
    assert_eq!(confirmed["verdict"], "needs_confirmation", "the intent stays as it is");
    assert_eq!(gated.intent(yes), confirmed);
    assert_eq!(gated.decide(yes, r#"{"decision":"confirmed"}"#).ok().json(), confirmed, "again");
    gated.decide(yes, r#"{"decision":"declined"}"#).problem(409, "not_waiting");
    let declined = gated.decide(no, r#"{"decision":"declined"}"#).ok().json();
    assert_eq!(declined["standing"], "declined");
    gated.decide(no, "").problem(409, "not_waiting");
    let open = gated.propose(&grasp(38));
    for (standing, name) in [("waiting", &open["event_ref"]), ("confirmed", yes), ("declined", no)]
    {
        let path = format!("/api/agent/intents?standing={standing}");
        let page = gated.server.get(&path, &gated.agent.operator).ok().json();
        assert_eq!(page, json!({ "intents": [gated.intent(name)] }), "{standing}");
    }
    let decisions = gated.log("ipse.confirmation");
    assert_eq!(decisions.len(), 2);
    let data = &decisions[0]["event"]["data"];
    assert_eq!((&data["intent"], &data["decision"]), (yes, &"confirmed".into()));
    let names: Vec<&str> = data.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["decision", "intent", "token_id"],
        "nothing that would have to be forgotten"
    );

    let denied = gated.propose(&grasp(100));
    gated.decide(&denied["event_ref"], "").problem(409, "not_waiting");
    let admitted = gated.propose(&grasp(20));
    gated.decide(&admitted["event_ref"], "").problem(409, "not_waiting");
    let outcome = gated.report("1", 20.0, true);
    for name in [&outcome["event_ref"], &"ev_00000000000000000000000000000000".into(), &"x".into()]
    {
        gated.decide(name, "").problem(404, "not_found");
    }
    for body in ["{}", "[]", "{", r#"{"decision":"maybe"}"#, r#"{"decision":"confirmed","x":1}"#] {
        gated.decide(no, body).problem(400, "bad_request");
    }
    let path = format!("/api/agent/intents/{}/confirm", no.as_str().unwrap());
    let lost = gated.propose(&grasp(37));
    let confirm = format!("/api/agent/intents/{}/confirm", lost["event_ref"].as_str().unwrap());
    let lost_body = Request::post(&confirm, "application/json", "").token(&gated.agent.operator);
    gated.server.ask(&lost_body).problem(400, "bad_request");
    assert_eq!(gated.intent(&lost["event_ref"])["standing"], "waiting", "a lost body is no yes");
    let text = Request::post(&path, "text/plain", "confirmed").token(&gated.agent.operator);
    gated.server.ask(&text).problem(415, "unsupported_media_type");
    assert_eq!(gated.log("ipse.confirmation").len(), 2);
    gated.agent.run(&gated.store, &["verify"]).fine();
}

#[test]
fn a_decision_comes_in_time_or_not_at_all() {
    let change = |field: &str, text: String| match field {
        "temperament" => text.replace("confirm_within_s = 300", "confirm_within_s = 1"),
        _ => text,
    };
    let gated = Gated::changed(change, &[]);
    let waiting = gated.propose(&grasp(35));
    let by = waiting["confirm_by"].as_str().unwrap();
    assert!(by > waiting["time"].as_str().unwrap());
    wait_until("it is too late", || {
        let other = gated.propose(&grasp(20));
        other["time"].as_str().unwrap() > by
    });
    gated.decide(&waiting["event_ref"], "").problem(409, "too_late");
    let path = "/api/agent/intents?standing=waiting";
    let listed = gated.server.get(path, &gated.agent.operator).ok().json();
    assert_eq!(listed["intents"], json!([]), "it can no longer be confirmed");
    let declined = gated.decide(&waiting["event_ref"], r#"{"decision":"declined"}"#).ok().json();
    assert_eq!(declined["standing"], "declined", "declining is never too late");
}

#[test]
fn bodies_that_are_no_intents_are_refused_with_a_rule_and_store_nothing() {
    let gated = Gated::new();
    let consultation = |query: Value| {
        let claim =
            json!({ "checkpoint": 0, "rule_version": "v1", "fact_ids": [], "query": query });
        echoing(&claim)
    };
    let long = "x".repeat(50_000);
    for (body, rule, field) in [
        (String::new(), "invalid_json", ""),
        ("[]".into(), "not_an_object", ""),
        ("{}".into(), "missing", "skill_id"),
        (r#"{"skill_id":7}"#.into(), "not_text", "skill_id"),
        (r#"{"skill_id":""}"#.into(), "empty", "skill_id"),
        (r#"{"skill_id":"a","skill_id":"b"}"#.into(), "duplicate_key", "skill_id"),
        (r#"{"skill_id":"a","env":"b"}"#.into(), "unknown_member", "env"),
        (r#"{"skill_id":"a","target_class":null}"#.into(), "not_text", "target_class"),
        (r#"{"skill_id":"a","params":[]}"#.into(), "not_an_object", "params"),
        (
            r#"{"skill_id":"a","params":{"n":123456789012345678}}"#.into(),
            "unsafe_integer",
            "params.n",
        ),
        (r#"{"skill_id":"a","consultation":"co_1"}"#.into(), "not_an_object", "consultation"),
        (r#"{"skill_id":"a","consultation":{}}"#.into(), "bad_consultation", "consultation"),
        (consultation(json!({ "as_of": 3 })), "bad_consultation", "consultation"),
        (format!(r#"{{"skill_id":"{long}"}}"#), "too_large", ""),
    ] {
        let request = Request::post("/api/agent/intents", "application/json", body.clone());
        let answer = gated.server.ask(&request.token(&gated.agent.planner));
        let problem = answer.problem(422, "bad_intent");
        assert_eq!((&problem["rule"], &problem["field"]), (&rule.into(), &field.into()), "{body}");
    }
    let text = Request::post("/api/agent/intents", "text/plain", "{}").token(&gated.agent.planner);
    gated.server.ask(&text).problem(415, "unsupported_media_type");
    assert_eq!(gated.log("intent").len(), 0);
}

/// Every body is judged or rejected, and the server survives (its drop checks for a panic).
#[test]
fn bodies_that_are_bent_at_random_break_nothing() {
    let gated = Gated::new();
    let mut dice = crate::chance::Chance::new();
    let claim = json!({ "checkpoint": 0, "rule_version": "v1", "fact_ids": [], "query": {} });
    let good = echoing(&claim);
    let mut connection = gated.server.connect();
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..1500 {
        let mut body = good.clone().into_bytes();
        for _ in 0..=dice.below(4) {
            let at = dice.below(body.len().max(1) as u64) as usize;
            match dice.below(4) {
                _ if body.is_empty() => body.push(b'{'),
                0 => body[at] = dice.below(256) as u8,
                1 => drop(body.remove(at)),
                2 => body.insert(at, b"{}[],:\"0-e\\n"[dice.below(12) as usize]),
                _ => body.truncate(at),
            }
        }
        let request = Request::post("/api/agent/intents", "application/json", body.clone());
        let answer = connection.ask(&request.token(&gated.agent.planner)).unwrap();
        let fine = matches!(answer.status, 201 | 422);
        assert!(fine, "{} for {}", answer.text(), String::from_utf8_lossy(&body));
        *seen.entry(answer.status).or_insert(0) += 1;
    }
    assert_eq!(gated.log("intent").len(), seen[&201], "{seen:?}");
    assert!(seen[&201] > 20 && seen[&422] > 500, "{seen:?}");
    gated.agent.run(&gated.store, &["verify"]).fine();
}

#[test]
fn an_intent_can_be_forgotten_and_its_decision_stays() {
    let gated = Gated::new();
    let waiting = gated.propose(&grasp(35));
    let name = &waiting["event_ref"];
    gated.decide(name, "").ok();
    let body = json!({ "event_refs": [name] }).to_string();
    let forget = Request::post("/api/agent/forget", "application/json", body);
    gated.server.ask(&forget.token(&gated.agent.operator)).ok();
    let path = format!("/api/agent/intents/{}", name.as_str().unwrap());
    gated.server.get(&path, &gated.agent.planner).problem(404, "not_found");
    gated.decide(name, "").problem(404, "not_found");
    let decision = gated.log("ipse.confirmation").remove(0);
    let body = json!({ "event_refs": [decision["event_ref"]] }).to_string();
    let forget = Request::post("/api/agent/forget", "application/json", body);
    let answer = gated.server.ask(&forget.token(&gated.agent.operator));
    answer.problem(422, "never_forgotten");
    gated.agent.run(&gated.store, &["verify"]).fine();
}

/// Events of ipse itself come through no producer, and need no signature.
#[test]
fn a_log_that_takes_signed_events_only_takes_intents() {
    let store = crate::store::Store::nothing();
    let agent = crate::server::Agent::bound(&store, "ward-robot-01");
    agent.run(&store, &["config", "signatures", "require"]).fine();
    let gated = Gated { server: crate::server::Server::gated(&store, &[]), store, agent };
    for intent in [grasp(35), json!({ "skill_id": "fly" })] {
        gated.propose(&intent);
    }
    let waiting = gated.log("intent")[0]["event_ref"].clone();
    assert_eq!(gated.decide(&waiting, "").ok().json()["standing"], "confirmed");
}

/// Retention applies to intents: they go with the events around them.
#[test]
fn pruning_takes_intents_along() {
    let gated = Gated::new();
    for n in 0..4 {
        gated.propose(&grasp(20 + n));
        gated.report(&n.to_string(), 20.0, true);
    }
    let Gated { store, agent, server } = gated;
    server.stop();
    let left = |event_type: &str| {
        let log = agent.run(&store, &["log", "--json"]).fine().out;
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|it| it["type"] == event_type && !it["event"].is_null()).count()
    };
    agent.run(&store, &["prune", "--keep", "2", "--yes"]).fine();
    assert_eq!((left("intent"), left("execution_result")), (2, 2));
    agent.run(&store, &["prune", "--before", "2099-01-01", "--yes"]).fine();
    assert_eq!((left("intent"), left("execution_result")), (0, 0));
    agent.run(&store, &["verify"]).fine();
}

#[test]
fn who_follows_the_log_sees_intents_and_decisions() {
    let gated = Gated::new();
    let follow = Request::get("/api/agent/stream").token(&gated.agent.planner);
    let mut connection = gated.server.connect();
    connection.write(&follow.bytes()).unwrap();
    connection.answer_head().unwrap();
    let waiting = gated.propose(&grasp(35));
    gated.decide(&waiting["event_ref"], "").ok();
    let mut reported = String::new();
    while !reported.contains("event: confirmation") {
        reported += &String::from_utf8(connection.chunk().unwrap().unwrap()).unwrap();
    }
    assert!(reported.contains("event: intent"), "{reported}");
    assert!(reported.contains("\"verdict\":\"needs_confirmation\""), "{reported}");
    let metrics = gated.server.get("/metrics", &gated.agent.planner).ok().text();
    assert!(metrics.contains("ipse_intents_total{verdict=\"needs_confirmation\"} 1"), "{metrics}");
}
