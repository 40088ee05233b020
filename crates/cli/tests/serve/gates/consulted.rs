//! The audit gate: the consultation that a planner echoes is compared with the log, and recorded.

use super::{Gated, audit, grasp};
use crate::client::Request;
use serde_json::{Value, json};

fn consult(gated: &Gated, query: &str) -> Value {
    let path = format!("/api/agent/semantic{query}");
    gated.server.get(&path, &gated.agent.planner).ok().json()
}

fn echoing(consultation: &Value) -> Value {
    let mut intent = grasp(25);
    intent["consultation"] = consultation.clone();
    intent
}

/// A server whose agent has tried some forces, with a pass after each attempt.
fn lived() -> (Gated, Vec<Value>) {
    let gated = Gated::new();
    let tried = (0..6).map(|n| gated.report(&n.to_string(), 20.0 + f64::from(n % 2), n < 4));
    let tried: Vec<Value> = tried.map(|event| event["event_ref"].clone()).collect();
    (gated, tried)
}

#[test]
fn what_was_read_is_verified_and_what_moved_on_is_stale() {
    let (gated, _) = lived();
    let known = consult(&gated, "?skill_id=manipulation.grasp&limit=3");
    let intent = gated.propose(&echoing(&known["consultation"]));
    let checkpoint = &known["checkpoint"];
    let fresh = json!({ "gate": "audit", "result": "verified", "stale": false,
                        "checkpoint": checkpoint, "known": checkpoint });
    assert_eq!(audit(&intent), &fresh);
    assert_eq!(intent["consultation"], known["consultation"]);
    assert_eq!(intent["consultation_id"], known["consultation_id"]);
    // An unrelated event moves the checkpoint and does not change the answer.
    let other = json!({ "id": "x", "source": "base", "type": "incident",
                        "time": "2026-05-06T10:00:00Z", "data": { "zone": "hall" } });
    let other = Request::post("/api/agent/events", "application/json", other.to_string());
    gated.server.ask(&other.token(&gated.agent.producer)).is(201);
    let intent = gated.propose(&echoing(&known["consultation"]));
    assert_eq!(
        (&audit(&intent)["result"], &audit(&intent)["stale"]),
        (&"verified".into(), &false.into())
    );
    assert_ne!(audit(&intent)["known"], *checkpoint);
    gated.report("later", 20.0, false);
    let intent = gated.propose(&echoing(&known["consultation"]));
    assert_eq!(
        (&audit(&intent)["result"], &audit(&intent)["stale"]),
        (&"verified".into(), &true.into())
    );
    assert_eq!(intent["verdict"], "admitted", "and the verdict is what it was");
    // An earlier position is valid, and so is an answer without facts.
    for query in ["?as_of=3", "?as_of=0", "?zone=nowhere", "?kind=zone_risk&limit=1"] {
        let known = consult(&gated, query);
        let intent = gated.propose(&echoing(&known["consultation"]));
        assert_eq!(audit(&intent)["result"], "verified", "{query}");
    }
    assert_eq!(audit(&gated.propose(&grasp(25))), &json!({ "gate": "audit", "result": "none" }));
}

#[test]
fn what_was_never_read_is_recorded_as_unverified_and_judged_alike() {
    let (gated, _) = lived();
    let known = consult(&gated, "")["consultation"].clone();
    let ids = known["fact_ids"].as_array().unwrap().clone();
    assert!(ids.len() > 1, "{known}");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut forged = known.clone();
        change(&mut forged);
        forged
    };
    let forged = [
        changed(&|it| it["fact_ids"].as_array_mut().unwrap().reverse()),
        changed(&|it| it["fact_ids"].as_array_mut().unwrap().truncate(1)),
        changed(&|it| it["fact_ids"] = json!([])),
        changed(&|it| it["fact_ids"][0] = "fa_00000000000000000000000000000000".into()),
        changed(&|it| it["checkpoint"] = json!(1_000_000)),
        changed(&|it| it["checkpoint"] = json!(9_007_199_254_740_991_u64)),
        changed(&|it| it["checkpoint"] = json!(0)),
        changed(&|it| it["rule_version"] = "v2".into()),
        changed(&|it| it["query"]["zone"] = "hall".into()),
    ];
    for claim in forged {
        let intent = gated.propose(&echoing(&claim));
        assert_eq!(audit(&intent)["result"], "unverified", "{claim}");
        assert!(audit(&intent).get("stale").is_none());
        assert_eq!(intent["verdict"], "admitted", "facts authorise nothing, and forged ones too");
        let log = gated.log("intent");
        let data = &log.last().unwrap()["event"]["data"];
        assert_eq!(data["gates"][3]["result"], "unverified", "on record");
    }
}

#[test]
fn a_forgotten_fact_differs_from_one_that_never_existed() {
    let (gated, tried) = lived();
    let known = consult(&gated, "")["consultation"].clone();
    let early = consult(&gated, "?as_of=0")["consultation"].clone();
    let forget = |refs: &[Value]| {
        let body = json!({ "event_refs": refs }).to_string();
        let forget = Request::post("/api/agent/forget", "application/json", body);
        gated.server.ask(&forget.token(&gated.agent.operator)).ok();
    };
    // The same facts match, with other values than were read.
    forget(&tried[..1]);
    let now = consult(&gated, "")["consultation"].clone();
    assert_eq!(now["fact_ids"], known["fact_ids"]);
    assert_eq!(audit(&gated.propose(&echoing(&known)))["result"], "forgotten since");
    // All events are forgotten, and so every fact is gone.
    forget(&tried[1..]);
    let intent = gated.propose(&echoing(&known));
    assert_eq!(audit(&intent)["result"], "forgotten since");
    assert_eq!(audit(&gated.propose(&echoing(&early)))["result"], "verified");
    let now = consult(&gated, "")["consultation"].clone();
    let mut forged = now.clone();
    forged["fact_ids"] = json!(["fa_00000000000000000000000000000000"]);
    assert_eq!(audit(&gated.propose(&echoing(&now)))["result"], "verified");
    assert_eq!(audit(&gated.propose(&echoing(&forged)))["result"], "unverified");
}

/// The answer in text, its checkpoint as the planner echoes it, and the JSON of the same query.
fn read_text(gated: &Gated, query: &str) -> (Value, String, Value) {
    let path = format!("/api/agent/grounding{query}");
    let text = gated.server.get(&path, &gated.agent.planner).ok();
    let checkpoint = text.header("ipse-checkpoint").unwrap().parse::<u64>().unwrap();
    let id = text.header("ipse-consultation-id").unwrap().to_owned();
    (checkpoint.into(), id, consult(gated, query))
}

#[test]
fn a_planner_that_reads_text_echoes_checkpoint_and_query() {
    let (gated, tried) = lived();
    let derived = |gated: &Gated, echo: &Value| {
        let intent = gated.propose(&echoing(echo));
        assert_eq!(intent["consultation_basis"], "query");
        assert_eq!(intent["verdict"], "admitted", "{echo}");
        intent
    };
    for query in ["?limit=3", "", "?as_of=3", "?zone=nowhere&limit=1"] {
        let (checkpoint, id, known) = read_text(&gated, query);
        let echo = json!({ "checkpoint": checkpoint, "query": known["consultation"]["query"] });
        let intent = derived(&gated, &echo);
        assert_eq!(intent["consultation"], known["consultation"], "the rest is derived");
        assert_eq!(
            (&intent["consultation_id"], &known["consultation_id"]),
            (&json!(id), &id.into())
        );
        assert_eq!(audit(&intent)["result"], "verified", "{query}");
    }
    let whole = gated.propose(&echoing(&consult(&gated, "")["consultation"]));
    assert!(whole.get("consultation_basis").is_none(), "echoed whole");
    // A later checkpoint than the log has: recorded, without facts, and judged alike.
    let early = derived(&gated, &json!({ "checkpoint": 1_000_000, "query": {} }));
    assert_eq!(audit(&early)["result"], "unverified");
    assert_eq!(early["consultation"]["fact_ids"], json!([]));
    let (checkpoint, _, known) = read_text(&gated, "");
    let echo = json!({ "checkpoint": checkpoint, "query": known["consultation"]["query"] });
    let body = json!({ "event_refs": tried[..1] }).to_string();
    let forget = Request::post("/api/agent/forget", "application/json", body);
    gated.server.ask(&forget.token(&gated.agent.operator)).ok();
    assert_eq!(audit(&derived(&gated, &echo))["result"], "forgotten since");
    for bad in [
        json!({ "checkpoint": 3 }),
        json!({ "query": {} }),
        json!({ "checkpoint": 3, "query": {}, "fact_ids": [] }),
        json!({ "checkpoint": 3, "query": {}, "rule_version": "v1" }),
        json!({ "checkpoint": 3, "query": {}, "consultation_id": "co_" }),
        json!({ "checkpoint": 3, "query": { "environment": "ward3" } }),
    ] {
        let problem = gated.ask(&echoing(&bad)).problem(422, "bad_intent");
        assert_eq!(problem["rule"], "bad_consultation", "{bad}");
    }
}

/// What the server derived from memory, another server derives from the log; the trail shows the
/// basis, and both verifiers accept it.
#[test]
fn a_derived_consultation_is_verified_everywhere() {
    let (gated, _) = lived();
    let (checkpoint, _, known) = read_text(&gated, "?limit=2");
    let echo = json!({ "checkpoint": checkpoint, "query": known["consultation"]["query"] });
    gated.report("later", 20.0, false);
    let kept = gated.propose(&echoing(&echo));
    let Gated { store, agent, server } = gated;
    server.stop();
    let server = crate::server::Server::gated(&store, &["--pass-every", "1"]);
    let gated = Gated { store, agent, server };
    let read = gated.propose(&echoing(&echo));
    for member in ["consultation", "consultation_id", "consultation_basis", "gates"] {
        assert_eq!(read[member], kept[member], "{member}");
    }
    let path = format!("/api/audit/actions/{}", kept["event_ref"].as_str().unwrap());
    let trail = gated.server.get(&path, &gated.agent.auditor).ok().json();
    assert_eq!(trail["consultation"]["consultation_basis"], "query");
    assert_eq!(trail["consultation"]["now"], "verified");
    assert_eq!(trail["facts"].as_array().unwrap().len(), 2);
    let fold = Request::new("POST", "/api/agent/consolidate").token(&gated.agent.operator);
    gated.server.ask(&fold).ok();
    let bundle = gated.server.get("/api/audit/bundle", &gated.agent.auditor).ok().body;
    gated.agent.run(&gated.store, &["verify"]).fine();
    let bundle = gated.store.write("derived.ipse", &bundle);
    crate::equal::verifies(&gated.store, &bundle);
}

/// The cached history of a server and the log give the same result.
#[test]
fn a_server_that_was_not_there_verifies_as_well() {
    let (gated, _) = lived();
    let known = consult(&gated, "")["consultation"].clone();
    gated.report("later", 20.0, false);
    let kept = gated.propose(&echoing(&known));
    let Gated { store, agent, server } = gated;
    server.stop();
    let server = crate::server::Server::gated(&store, &["--pass-every", "1"]);
    let gated = Gated { store, agent, server };
    let read = gated.propose(&echoing(&known));
    assert_eq!(audit(&read), audit(&kept));
    assert_eq!(audit(&read)["stale"], true);
}
