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
