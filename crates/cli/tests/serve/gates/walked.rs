//! The trail of one action, from its outcome to the Merkle proofs: over HTTP, and from a bundle.

use super::{Gated, grasp};
use crate::client::Request;
use ipse_bundle::trail::{Found, Listing};
use ipse_bundle::{Trust, open};
use ipse_core::EventRef;
use ipse_ledger::{NoteKey, ProofFile};
use serde_json::{Value, json};

/// A robot's loop: it consults, proposes, acts with the admitted values, and reports.
fn act(gated: &Gated, asked: f64) -> (Value, Value, Value) {
    let query = "/api/agent/semantic?skill_id=manipulation.grasp&target_class=glass_cup";
    let known = gated.server.get(query, &gated.agent.planner).ok().json();
    let mut intent = grasp(asked);
    intent["consultation"] = known["consultation"].clone();
    let intent = gated.propose(&intent);
    let mut data = grasp(0);
    data["params"] = intent["admitted_params"].clone();
    data["intent"] = intent["event_ref"].clone();
    data["outcome"] = "success".into();
    let event = json!({ "id": "acted", "source": "arm", "type": "execution_result",
                        "time": "2026-05-06T10:00:00Z", "data": data });
    let request = Request::post("/api/agent/events", "application/json", event.to_string());
    let outcome = gated.server.ask(&request.token(&gated.agent.producer)).is(201).json();
    (known, intent, outcome)
}

#[test]
fn one_action_is_walked_from_its_outcome_to_its_proof() {
    let gated = Gated::new();
    for n in 0..8 {
        gated.report(&n.to_string(), 25.0, n != 3);
    }
    let (known, intent, outcome) = act(&gated, 2.0);
    assert_eq!(intent["verdict"], "clamped");
    // Later events do not change what was known then.
    gated.report("later", 25.0, false);
    let fold = Request::new("POST", "/api/agent/consolidate").token(&gated.agent.operator);
    gated.server.ask(&fold).ok();
    let bundle = gated.server.get("/api/audit/bundle", &gated.agent.auditor).ok().body;

    let name = outcome["event_ref"].as_str().unwrap();
    let path = format!("/api/audit/actions/{name}?evidence=100");
    let walk = gated.server.get(&path, &gated.agent.auditor).ok().text();
    let reported: Value = serde_json::from_str(&walk).unwrap();
    check(&reported, &known, &intent, &outcome);
    proven(&gated, &reported);

    // Offline: the bundle, two public keys, and no server.
    let mut trust = Trust::default();
    for name in ["log.vkey", "operator.pub"] {
        trust.add(&key(&gated, name)).unwrap();
    }
    let opened = open(&bundle, &trust, &[], &mut |_, _| {}).unwrap();
    let opened = opened.unwrap_or_else(|report| panic!("{}", report.json()));
    let found =
        opened.why(&EventRef::parse(name).unwrap(), Listing { evidence: 100, page: 1 }).unwrap();
    let Found::Action(trail) = found else { panic!("no action") };
    assert_eq!(trail.json(), walk, "byte for byte");
    let path = format!("/api/audit/actions/{name}?evidence=100&format=text");
    assert_eq!(trail.text(), gated.server.get(&path, &gated.agent.auditor).ok().text());
}

fn check(reported: &Value, known: &Value, intent: &Value, outcome: &Value) {
    assert_eq!(reported["event_ref"], outcome["event_ref"]);
    let attempt = &reported["attempts"][0];
    assert_eq!((&attempt["standing"], &attempt["outcome"]), (&"planned".into(), &"success".into()));
    assert_eq!(attempt["deviations"], json!([]));
    assert_eq!(reported["intent"]["event_ref"], intent["event_ref"]);
    assert_eq!(reported["verdict"]["gates"], intent["gates"]);
    assert_eq!(reported["verdict"]["admitted_params"], json!({ "force_n": 5 }));
    assert_eq!(reported["consultation"]["consultation_id"], known["consultation_id"]);
    assert_eq!(reported["consultation"]["recorded"], "verified");
    assert_eq!(reported["consultation"]["now"], "verified");
    // The facts as they were, not as they are.
    let [then, was] = [reported, known].map(|it| it["facts"].as_array().unwrap());
    assert_eq!(then.len(), was.len());
    for (then, fact) in then.iter().zip(was) {
        for (name, value) in fact.as_object().unwrap() {
            assert_eq!(then[name], *value, "{name}");
        }
        let evidence = then["evidence"].as_array().unwrap().len() as u64;
        assert_eq!(then["n_observations"].as_u64(), Some(evidence));
    }
    assert!(!was.is_empty());
    assert_eq!(reported["unproven"], json!([]));
}

/// Every named event has a proof, and every proof verifies with the log's public key alone.
fn proven(gated: &Gated, reported: &Value) {
    let head = gated.server.get("/api/audit/tree-head", &gated.agent.auditor).ok().text();
    let key = NoteKey::parse(key(gated, "log.vkey").trim()).unwrap();
    let origin = format!("ipse/{}", gated.agent.identity);
    let proofs = reported["proofs"].as_array().unwrap();
    assert!(proofs.len() >= 10, "{}", proofs.len());
    for proof in proofs {
        let entry = proof["entry"].as_str().unwrap();
        assert!(entry.contains(proof["event_ref"].as_str().unwrap()));
        let file = ProofFile::parse(proof["proof"].as_str().unwrap()).unwrap();
        assert_eq!(file.note, head, "under the signed head");
        file.verify(entry.as_bytes(), &origin, std::slice::from_ref(&key)).unwrap();
    }
}

/// A public key of the store.
pub(super) fn key(gated: &Gated, name: &str) -> String {
    let keys = format!("{}.keys", gated.store.path.display());
    std::fs::read_to_string(std::path::Path::new(&keys).join(name)).unwrap()
}
