//! Other requests of planners and robots: outcomes of intents, waiting for a decision, the skills
//! of the agent, and the planner's name in the record.

use super::{Gated, grasp};
use crate::client::{Answer, Connection, Request};
use crate::server::{Agent, GATE_FILES, Server, example, token, wait_until};
use crate::store::Store;
use serde_json::{Value, json};

/// The limit of requests of one agent that wait for decisions, as in the table of limits.
const AGENT_WAITS: usize = 32;

/// Requests beyond that limit.
const BEYOND: usize = 3;

/// Whether a response has begun to arrive.
fn is_answered(connection: &Connection) -> bool {
    connection.socket.set_nonblocking(true).unwrap();
    let answered = connection.socket.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
    connection.socket.set_nonblocking(false).unwrap();
    answered
}

fn report(name: &Value, body: &str) -> Request {
    let path = format!("/api/agent/intents/{}/outcome", name.as_str().unwrap());
    Request::post(&path, "application/json", body)
}

impl Gated {
    #[track_caller]
    fn outcome(&self, intent: &Value, body: &str) -> Answer {
        self.server.ask(&report(&intent["event_ref"], body).token(&self.agent.producer))
    }

    /// An intent that waits for a person.
    fn waiting(&self) -> Value {
        let intent = self.propose(&grasp(35));
        assert_eq!(intent["standing"], "waiting");
        intent
    }

    /// A request that waits for the decision about an intent.
    fn waits(&self, intent: &Value, seconds: u64) -> Connection {
        let mut connection = self.server.connect();
        connection.write(&self.wait(intent, seconds).bytes()).unwrap();
        connection
    }

    fn wait(&self, intent: &Value, seconds: u64) -> Request {
        let name = intent["event_ref"].as_str().unwrap();
        let path = format!("/api/agent/intents/{name}?wait={seconds}");
        Request::get(&path).token(&self.agent.planner)
    }

    /// As many waiting requests for the same decision as allowed; all of them wait when it returns.
    fn all_wait(&self, intent: &Value) -> Vec<Connection> {
        let all: Vec<Connection> =
            (0..AGENT_WAITS + BEYOND).map(|_| self.waits(intent, 60)).collect();
        wait_until("those beyond the limit are answered", || {
            all.iter().filter(|connection| is_answered(connection)).count() == BEYOND
        });
        let (beyond, waiting) = all.into_iter().partition::<Vec<_>, _>(is_answered);
        for mut connection in beyond {
            connection.answer(false).unwrap().problem(429, "queue_full");
        }
        waiting
    }
}

#[test]
fn an_outcome_takes_from_the_intent_what_the_report_does_not_say() {
    let gated = Gated::new();
    let intent = gated.propose(&grasp(2));
    assert_eq!(intent["verdict"], "clamped");
    let first =
        gated.outcome(&intent, r#"{"success":false,"failure_reason":"slip"}"#).is(201).json();
    let events = gated.log("execution_result");
    let event = &events[0]["event"];
    let name = intent["event_ref"].as_str().unwrap();
    assert_eq!(event["id"], format!("outcome:{name}"));
    assert_eq!((&event["source"], &event["type"]), (&"http".into(), &"execution_result".into()));
    assert_eq!(
        event["data"],
        json!({ "skill_id": "manipulation.grasp", "target_class": "glass_cup",
                "environment": "ward3", "params": { "force_n": 5 }, "outcome": "failed",
                "failure_reason": "slip", "intent": name })
    );
    assert_eq!(
        (&first["result"], &first["event_ref"], &first["seq"]),
        (&"appended".into(), &events[0]["event_ref"], &events[0]["seq"])
    );
    let trail = format!("/api/audit/actions/{name}");
    let trail = gated.server.get(&trail, &gated.agent.auditor).ok().json();
    assert_eq!(trail["attempts"][0]["standing"], "planned");
    assert_eq!(trail["attempts"][0]["deviations"], json!([]));
    let facts = gated.agent.run(&gated.store, &["facts", "--json"]).fine().json();
    assert!(facts.to_string().contains("slip"), "{facts}");

    let body = json!({ "outcome": "success", "params": { "force_n": 5.5 },
                       "object": { "mass_g": 180 }, "time": "2026-05-06T12:00:00+02:00" });
    let second = gated.propose(&grasp(3));
    gated.outcome(&second, &body.to_string()).is(201);
    let event = &gated.log("execution_result")[1]["event"];
    assert_eq!(event["data"]["params"], json!({ "force_n": 5.5 }));
    assert_eq!(event["data"]["object"], json!({ "mass_g": 180 }));
    assert_eq!(event["time"], "2026-05-06T10:00:00Z");
    gated.agent.run(&gated.store, &["verify"]).fine();
}

/// A report without a time gets that of the first one, so sending it again is no conflict; any
/// other difference is.
#[test]
fn an_outcome_that_is_sent_again_is_a_duplicate() {
    let gated = Gated::new();
    let intent = gated.propose(&grasp(25));
    let first = gated.outcome(&intent, r#"{"success":true}"#).is(201).json();
    for (body, status) in [
        (r#"{"success":true}"#, 200),
        (r#"{"outcome":"success"}"#, 200),
        (r#"{"outcome":"success","params":{"force_n":25}}"#, 200),
        (r#"{"outcome":"success","params":{"force_n":25.0}}"#, 200),
        (r#"{"success":false}"#, 409),
        (r#"{"success":true,"params":{"force_n":24}}"#, 409),
        (r#"{"success":true,"object":{"mass_g":1}}"#, 409),
        (r#"{"success":true,"time":"2026-05-06T10:00:00Z"}"#, 409),
    ] {
        let answer = gated.outcome(&intent, body).is(status);
        match status {
            200 => {
                let json = answer.json();
                assert_eq!(json["result"], "duplicate");
                assert_eq!(
                    (&json["seq"], &json["event_ref"]),
                    (&first["seq"], &first["event_ref"])
                );
            }
            _ => drop(answer.problem(409, "conflict")),
        }
    }
    // With a time, in any notation.
    let other = gated.propose(&grasp(26));
    gated.outcome(&other, r#"{"success":true,"time":"2026-05-06T10:00:00.5Z"}"#).is(201);
    gated.outcome(&other, r#"{"success":true,"time":"2026-05-06T12:00:00.500+02:00"}"#).is(200);
    gated.outcome(&other, r#"{"success":true}"#).is(200);
    assert_eq!(gated.log("execution_result").len(), 2);
}

#[test]
fn of_outcomes_that_come_at_once_one_is_stored() {
    let gated = Gated::new();
    for _ in 0..5 {
        let intent = gated.propose(&grasp(25));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let send = |_| scope.spawn(|| gated.outcome(&intent, r#"{"success":true}"#).status);
            let all: Vec<_> = (0..8).map(send).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let count = |status: u16| statuses.iter().filter(|one| **one == status).count();
        assert_eq!((count(201), count(200)), (1, 7), "{statuses:?}");
    }
}

#[test]
fn only_an_intent_that_may_be_acted_on_has_an_outcome() {
    let gated = Gated::new();
    let success = r#"{"success":true}"#;
    let denied = gated.propose(&grasp(100));
    gated.outcome(&denied, success).problem(409, "not_admitted");
    let waiting = gated.waiting();
    gated.outcome(&waiting, success).problem(409, "not_admitted");
    gated.decide(&waiting["event_ref"], "").ok();
    gated.outcome(&waiting, success).is(201);
    let declined = gated.waiting();
    gated.decide(&declined["event_ref"], r#"{"decision":"declined"}"#).ok();
    let problem = gated.outcome(&declined, success).problem(409, "not_admitted");
    assert!(problem["detail"].as_str().unwrap().contains("declined"), "{problem}");

    let nothing = json!({ "event_ref": "ev_00000000000000000000000000000000" });
    gated.outcome(&nothing, success).problem(404, "not_found");
    gated.outcome(&json!({ "event_ref": "it" }), success).problem(404, "not_found");
    // An event that is no intent.
    let lived = gated.report("lived", 25.0, true);
    gated.outcome(&lived, success).problem(404, "not_found");
    let forgotten = gated.propose(&grasp(25));
    let body = json!({ "event_refs": [forgotten["event_ref"]] }).to_string();
    let forget = Request::post("/api/agent/forget", "application/json", body);
    gated.server.ask(&forget.token(&gated.agent.operator)).ok();
    gated.outcome(&forgotten, success).problem(404, "not_found");
    assert_eq!(gated.log("execution_result").len(), 2);
}

#[test]
fn a_report_that_cannot_be_read_names_rule_and_field() {
    let gated = Gated::new();
    let intent = gated.propose(&grasp(25));
    let long = format!(r#"{{"success":false,"failure_reason":"{}"}}"#, "x".repeat(1025));
    let deep =
        format!(r#"{{"success":true,"object":{}1{}}}"#, "{\"a\":".repeat(31), "}".repeat(31));
    for (body, code, rule, field) in [
        ("", "bad_outcome", "invalid_json", ""),
        ("[]", "bad_outcome", "not_an_object", ""),
        ("{}", "bad_outcome", "missing", "outcome"),
        (r#"{"success":true,"outcome":"success"}"#, "bad_outcome", "ambiguous", "success"),
        (r#"{"success":"yes"}"#, "bad_outcome", "not_boolean", "success"),
        (r#"{"outcome":"fine"}"#, "bad_outcome", "unknown_word", "outcome"),
        (r#"{"outcome":true}"#, "bad_outcome", "unknown_word", "outcome"),
        (r#"{"success":true,"zone":"z"}"#, "bad_outcome", "unknown_member", "zone"),
        (r#"{"success":true,"params":[]}"#, "bad_outcome", "not_an_object", "params"),
        (r#"{"success":true,"object":1}"#, "bad_outcome", "not_an_object", "object"),
        (r#"{"success":false,"failure_reason":""}"#, "bad_outcome", "empty", "failure_reason"),
        (r#"{"success":false,"failure_reason":7}"#, "bad_outcome", "not_text", "failure_reason"),
        (&long, "bad_outcome", "too_long", "failure_reason"),
        (r#"{"success":true,"time":7}"#, "bad_outcome", "not_text", "time"),
        (r#"{"success":true,"time":"noon"}"#, "refused", "not_rfc3339", "time"),
        (&deep, "refused", "too_deep", &format!("data.object{}", ".a".repeat(30))),
    ] {
        let problem = gated.outcome(&intent, body).problem(422, code);
        assert_eq!((&problem["rule"], &problem["field"]), (&rule.into(), &field.into()), "{body}");
    }
    assert!(gated.log("execution_result").is_empty());
}

#[test]
fn the_source_of_an_outcome_is_the_only_one_of_the_token_or_http() {
    let gated = Gated::new();
    let success = r#"{"success":true}"#;
    let token = |sources: &[&str]| {
        let sources = sources.iter().flat_map(|source| ["--source", source]);
        let args: Vec<&str> = ["--role", "producer"].into_iter().chain(sources).collect();
        token(&gated.store, &gated.agent.identity, &args)
    };
    let send = |intent: &Value, token: &str| {
        gated.server.ask(&report(&intent["event_ref"], success).token(token))
    };
    let intent = gated.propose(&grasp(25));
    send(&intent, &token(&["arm-7"])).is(201);
    send(&intent, &token(&["arm-7", "http"])).is(201);
    let problem = send(&intent, &token(&["arm-7", "arm-8"])).problem(422, "refused");
    assert_eq!(problem["rule"], "source_not_allowed");
    let problem = send(&intent, &token(&["arm-*"])).problem(422, "refused");
    assert_eq!(problem["rule"], "source_not_allowed", "a beginning is no source");
    let other = gated.propose(&grasp(25));
    send(&other, &token(&["ht*"])).is(201);
    let late = r#"{"success":true,"time":"2999-01-01T00:00:00Z"}"#;
    let late = report(&other["event_ref"], late).token(&token(&["arm-9"]));
    let problem = gated.server.ask(&late).problem(422, "refused");
    assert_eq!((&problem["rule"], &problem["field"]), (&"time_ahead".into(), &"time".into()));
    let sources: Vec<Value> =
        gated.log("execution_result").iter().map(|it| it["event"]["source"].clone()).collect();
    assert_eq!(sources, ["arm-7", "http", "http"]);
}

#[test]
fn record_takes_the_outcome_of_an_intent() {
    let gated = Gated::new();
    let intent = gated.propose(&grasp(2));
    let name = intent["event_ref"].as_str().unwrap();
    let record = |more: &[&str]| {
        let args = [&["record", "--intent", name, "--json"], more].concat();
        gated.agent.run(&gated.store, &args)
    };
    let first = record(&["--failed", "--reason", "slip"]).fine().json();
    assert_eq!(first["status"], "appended");
    let again = record(&["--failed", "--reason", "slip"]).fine().json();
    assert_eq!((&again["status"], &again["seq"]), (&"duplicate".into(), &first["seq"]));
    let other = record(&["--success"]).ended(1, &["nothing was stored"]).json();
    assert_eq!(other["status"], "conflict");
    let event = &gated.log("execution_result")[0]["event"];
    assert_eq!(
        (&event["source"], &event["id"]),
        (&"cli".into(), &format!("outcome:{name}").into())
    );
    assert_eq!(event["data"]["params"], json!({ "force_n": 5 }));
    record(&["--success", "--target", "cup"]).ended(2, &["--skill"]);
    // With a skill it is an ordinary event.
    let own = record(&["--success", "--skill", "manipulation.grasp", "--param", "force_n=6"]);
    assert_eq!(own.fine().json()["status"], "appended");
    let denied = gated.propose(&grasp(100));
    let denied = denied["event_ref"].as_str().unwrap();
    let args = ["record", "--intent", denied, "--success", "--json"];
    let ran = gated.agent.run(&gated.store, &args).ended(1, &["denied", "nothing was stored"]);
    assert_eq!(ran.json()["status"], "not_admitted");
}

#[test]
fn a_wait_ends_with_the_decision() {
    let gated = Gated::new();
    let decided = gated.propose(&grasp(25));
    let answer = gated.server.ask(&gated.wait(&decided, 60)).ok();
    assert_eq!(answer.json()["standing"], "admitted", "nothing to wait for");
    let intent = gated.waiting();
    let answer = gated.server.ask(&gated.wait(&intent, 1)).ok().json();
    assert_eq!(answer["standing"], "waiting", "as it stands");
    let waiting = gated.all_wait(&intent);
    // Waiting requests do not block others.
    gated.server.get("/api/agent/identity", &gated.agent.planner).ok();
    gated.report("meanwhile", 25.0, true);
    gated.decide(&intent["event_ref"], "").ok();
    for mut connection in waiting {
        assert_eq!(connection.answer(false).unwrap().ok().json()["standing"], "confirmed");
    }
}

#[test]
fn a_wait_has_bounds() {
    let gated = Gated::new();
    let intent = gated.waiting();
    for seconds in [0, 61] {
        gated.server.ask(&gated.wait(&intent, seconds)).problem(400, "bad_parameter");
    }
    let nothing = json!({ "event_ref": "ev_00000000000000000000000000000000" });
    gated.server.ask(&gated.wait(&nothing, 60)).problem(404, "not_found");
}

#[test]
fn a_client_that_leaves_ends_its_wait() {
    let gated = Gated::new();
    let intent = gated.waiting();
    drop(gated.all_wait(&intent));
    wait_until("a place is free", || gated.server.ask(&gated.wait(&intent, 1)).status == 200);
    // A client that has closed its sending half gets a response.
    let half = gated.waits(&intent, 60);
    half.socket.shutdown(std::net::Shutdown::Write).unwrap();
    let mut half = half;
    assert_eq!(half.answer(false).unwrap().ok().json()["standing"], "waiting");
}

#[test]
fn a_revoked_token_ends_its_wait() {
    let gated = Gated::new();
    let intent = gated.waiting();
    let args = ["--role", "planner", "--name", "gone"];
    let text = token(&gated.store, &gated.agent.identity, &args);
    let path = format!("/api/agent/intents/{}?wait=60", intent["event_ref"].as_str().unwrap());
    let mut connection = gated.server.connect();
    connection.write(&Request::get(&path).token(&text).bytes()).unwrap();
    gated.agent.run(&gated.store, &["token", "revoke", "gone"]).fine();
    connection.answer(false).unwrap().problem(401, "unauthorized");
}

#[test]
fn a_server_that_stops_answers_those_who_wait() {
    let gated = Gated::new();
    let intent = gated.waiting();
    let waiting = gated.all_wait(&intent);
    gated.server.signal("TERM");
    for mut connection in waiting {
        assert_eq!(connection.answer(false).unwrap().ok().json()["standing"], "waiting");
    }
    let Gated { mut server, .. } = gated;
    assert_eq!(server.ended().0.code(), Some(0));
}

#[test]
fn skills_are_those_of_the_registry_and_those_of_facts() {
    let gated = Gated::new();
    gated.report("1", 25.0, true);
    let dance = json!({ "id": "2", "source": "arm", "type": "execution_result",
        "time": "2026-05-06T10:00:00Z", "data": { "skill_id": "dance", "target_class": "floor",
        "environment": "ward3", "success": true } });
    let request = Request::post("/api/agent/events", "application/json", dance.to_string());
    gated.server.ask(&request.token(&gated.agent.producer)).is(201);
    let get = |query: &str| {
        let path = format!("/api/agent/skills{query}");
        gated.server.get(&path, &gated.agent.planner).ok().json()
    };
    let all = get("");
    let names: Vec<&str> =
        all.as_array().unwrap().iter().map(|it| it["skill_id"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"navigation.move_to"), "{names:?}");
    assert_eq!(
        all[0],
        json!({ "skill_id": "dance", "in_registry": false, "seen": true, "params": [] })
    );
    let grasp = json!({ "skill_id": "manipulation.grasp", "in_registry": true, "seen": true,
        "params": [
            { "name": "force_n", "type": "number", "unit": "N", "min": 0, "max": 140,
              "required": true },
            { "name": "grip", "type": "text", "one_of": ["firm", "pinch", "soft"],
              "required": false },
            { "name": "retries", "type": "integer", "unit": "1", "min": 0, "max": 5,
              "required": false } ] });
    assert_eq!(all[1], grasp);
    assert_eq!(
        (&all[2]["skill_id"], &all[2]["seen"]),
        (&"manipulation.place".into(), &false.into())
    );
    assert_eq!(get("?after=dance&limit=1"), json!([grasp]));
    assert_eq!(get("?after=zzz"), json!([]));

    let registry = example(GATE_FILES[0].1);
    let args = ["skills", "--ecm-registry", &registry, "--json"];
    assert_eq!(gated.agent.run(&gated.store, &args).fine().json(), all);
    let seen = gated.agent.run(&gated.store, &["skills", "--json"]).fine().json();
    assert_eq!(seen.as_array().unwrap().len(), 2, "{seen}");
    let table = gated.agent.run(&gated.store, &["skills", "--ecm-registry", &registry]).fine().out;
    assert!(table.contains("force_n 0..140 N required"), "{table}");
    let other = gated.store.write("other.toml", "format = \"ipse-ecm-registry/1\"\n");
    let args = ["skills", "--ecm-registry", &other];
    gated.agent.run(&gated.store, &args).ended(2, &["ecm_registry_hash"]);
}

#[test]
fn without_gates_the_skills_are_those_of_facts() {
    let store = Store::nothing();
    let agent = Agent::bound(&store, "ward-robot-01");
    agent.run(&store, &["skills"]).ended(1, &["no skills yet"]);
    let log = store.write("log.jsonl", crate::store::attempt("1", true));
    agent.run(&store, &["import", &log]).fine();
    let server = Server::start(&store);
    let skills = server.get("/api/agent/skills", &agent.planner).ok().json();
    let grasp = json!({ "skill_id": "grasp", "in_registry": false, "seen": true, "params": [] });
    assert_eq!(skills, json!([grasp]));
}

#[test]
fn the_planner_is_in_the_record_and_in_the_trail() {
    let gated = Gated::with(&["--pass-every", "1"]);
    let planner = json!({ "name": "ward planner", "version": "2.1" });
    let mut intent = grasp(25);
    intent["planner"] = planner.clone();
    let proposed = gated.propose(&intent);
    assert_eq!(proposed["planner"], planner);
    assert_eq!(gated.intent(&proposed["event_ref"])["planner"], planner);
    gated.outcome(&proposed, r#"{"success":true}"#).is(201);
    let name = proposed["event_ref"].as_str().unwrap();
    let path = format!("/api/audit/actions/{name}");
    let trail = gated.server.get(&path, &gated.agent.auditor).ok().json();
    assert_eq!(trail["intent"]["event"]["data"]["planner"], planner);
    let page = gated.agent.run(&gated.store, &["explain", name]).fine().out;
    assert!(page.contains("    planner    ward planner 2.1\n"), "{page}");
    gated.agent.run(&gated.store, &["verify"]).fine();
    intent["planner"]["version"] = "".into();
    let problem = gated.ask(&intent).problem(422, "bad_intent");
    assert_eq!((&problem["field"], &problem["rule"]), (&"planner.version".into(), &"empty".into()));
}

#[test]
fn a_report_is_json() {
    let gated = Gated::new();
    let intent = gated.propose(&grasp(25));
    let path = format!("/api/agent/intents/{}/outcome", intent["event_ref"].as_str().unwrap());
    let request = Request::post(&path, "text/plain", "{\"success\":true}");
    let answer = gated.server.ask(&request.token(&gated.agent.producer));
    answer.problem(415, "unsupported_media_type");
}
