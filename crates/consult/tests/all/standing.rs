//! The standings of attempts, and their deviations from the plan.

use crate::log::{Log, ME};
use ipse_consult::trail::{Found, Listing, MAX_ATTEMPTS, Record, Standings, Trail};
use ipse_core::EventRef;
use serde_json::{Value, json};

/// The data of an attempt that names `what`.
fn naming(what: &str) -> String {
    format!(r#"{{"skill_id":"manipulation.grasp","success":true,"intent":{what}}}"#)
}

fn of(intent: &EventRef) -> String {
    naming(&format!("\"{intent}\""))
}

/// The standing of an attempt. The trail and `Standings` must agree.
fn standing(log: &Log, name: &EventRef) -> String {
    let json = log.json(name);
    let attempts = json["attempts"].as_array().unwrap();
    let named = attempts.iter().find(|it| it["event_ref"] == name.to_string()).unwrap();
    let reported = log.event(log.find(name).unwrap().unwrap()).unwrap().unwrap();
    let (_, counted) = Standings::new(log).of(reported.seq, reported.canonical.as_deref()).unwrap();
    assert_eq!(named["standing"], counted.name());
    named["standing"].as_str().unwrap().to_owned()
}

#[test]
fn an_attempt_stands_by_what_the_gates_said_before_it() {
    for (verdict, decision, late, want, intent_stands) in [
        ("admitted", None, None, "planned", "admitted"),
        ("clamped", None, None, "planned", "clamped"),
        ("denied", None, None, "against_gates", "denied"),
        ("denied", Some("confirmed"), None, "against_gates", "denied"),
        ("needs_confirmation", None, None, "against_gates", "waiting"),
        ("needs_confirmation", Some("confirmed"), None, "planned", "confirmed"),
        ("needs_confirmation", Some("declined"), None, "against_gates", "declined"),
        ("needs_confirmation", None, Some("confirmed"), "against_gates", "confirmed"),
        ("needs_confirmation", Some("maybe"), None, "against_gates", "waiting"),
    ] {
        let mut log = Log::default();
        let intent = log.grasp(verdict);
        decision.map(|word| log.decide(&intent, word));
        let attempt = log.attempt(&of(&intent));
        late.map(|word| log.decide(&intent, word));
        let what = format!("{verdict} {decision:?} {late:?}");
        assert_eq!(standing(&log, &attempt), want, "{what}");
        let json = log.json(&intent);
        assert_eq!(json["verdict"]["verdict"], verdict, "{what}");
        assert_eq!(json["verdict"]["standing"], intent_stands, "{what}");
        assert_eq!(json["attempts"], log.json(&attempt)["attempts"], "{what}");
        let absent = json["verdict"].get("admitted_params").is_none();
        assert_eq!(absent, verdict == "denied", "{what}");
    }
}

#[test]
fn what_is_no_intent_before_it_is_unknown() {
    let mut log = Log::default();
    let other = log.attempt(&naming("null"));
    assert_eq!(standing(&log, &other), "unplanned", "null names none");
    let plain = log.attempt("{\"success\":true,\"params\":{\"intent\":\"ev_1\"}}");
    assert_eq!(standing(&log, &plain), "unplanned");
    for what in ["7", "\"\"", "\"ev_12\"", "[]", "{}", "\"EV_00000000000000000000000000000000\""] {
        let attempt = log.attempt(&naming(what));
        assert_eq!(standing(&log, &attempt), "unknown_intent", "{what}");
    }
    let missing = log.attempt(&naming("\"ev_00000000000000000000000000000000\""));
    assert_eq!(standing(&log, &missing), "unknown_intent");
    let no_intent = log.attempt(&of(&other));
    assert_eq!(standing(&log, &no_intent), "unknown_intent", "another attempt");
    let too_early = EventRef::new("ipse", &format!("intent:{:032x}", log.len() + 2));
    let early = log.attempt(&of(&too_early));
    assert_eq!(log.grasp("admitted"), too_early);
    assert_eq!(standing(&log, &early), "unknown_intent", "it came after");
    let json = log.json(&early);
    assert_eq!((&json["intent"], &json["verdict"]), (&Value::Null, &Value::Null));
    assert_eq!(json["attempts"].as_array().unwrap().len(), 1);
    let unreadable = log.intent("{\"verdict\":\"maybe\"}");
    let attempt = log.attempt(&of(&unreadable));
    assert_eq!(standing(&log, &attempt), "unknown_intent", "the gates said nothing");
    let json = log.json(&attempt);
    assert_eq!(json["intent"]["event_ref"], unreadable.to_string());
    assert_eq!(json["verdict"], Value::Null);
    let confirmed = log.grasp("needs_confirmation");
    let decision = log.decide(&confirmed, "confirmed");
    let of_decision = log.attempt(&of(&decision));
    assert_eq!(standing(&log, &of_decision), "unknown_intent", "a confirmation is no intent");
}

#[test]
fn a_decision_counts_for_the_intent_it_is_called_after() {
    let mut log = Log::default();
    let intent = log.grasp("needs_confirmation");
    let other = log.grasp("needs_confirmation");
    // Its name refers to one intent, and its data to another.
    let data = format!(r#"{{"intent":"{other}","decision":"confirmed","token_id":"t"}}"#);
    log.push("ipse", &format!("confirm:{intent}"), "ipse.confirmation", &data);
    for intent in [intent, other] {
        let attempt = log.attempt(&of(&intent));
        assert_eq!(standing(&log, &attempt), "against_gates");
        assert_eq!(log.json(&intent)["verdict"]["confirmation"], Value::Null);
    }
    // An event with that name and another type is not a decision either.
    let third = log.grasp("needs_confirmation");
    let data = format!(r#"{{"intent":"{third}","decision":"confirmed","token_id":"t"}}"#);
    log.push("ipse", &format!("confirm:{third}"), "ipse.other", &data);
    let attempt = log.attempt(&of(&third));
    assert_eq!(standing(&log, &attempt), "against_gates");
}

#[test]
fn forgotten_events_are_reported_as_forgotten() {
    let mut log = Log::default();
    let intent = log.grasp("admitted");
    let (first, second) = (log.attempt(&of(&intent)), log.attempt(&of(&intent)));
    log.forget(&first);
    let json = log.json(&first);
    assert_eq!(json["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(json["attempts"][0]["event"], Value::Null);
    assert_eq!(json["attempts"][0]["standing"], "forgotten");
    assert!(json["attempts"][0].get("outcome").is_none());
    assert_eq!(json["intent"], Value::Null, "the reference is erased");
    assert_eq!(json["proofs"].as_array().unwrap().len(), 1, "and still it is proven");
    let json = log.json(&intent);
    assert_eq!(json["attempts"].as_array().unwrap().len(), 1, "{json}");
    log.forget(&intent);
    assert_eq!(standing(&log, &second), "forgotten");
    let json = log.json(&second);
    assert_eq!(json["intent"]["event"], Value::Null);
    assert_eq!(json["verdict"], Value::Null);
    assert_eq!(json["attempts"][0]["deviations"], json!([]));
    assert_eq!(log.json(&intent)["attempts"][0]["event_ref"], second.to_string());
}

#[test]
fn a_decision_outlives_its_intent() {
    for (decision, want) in [("confirmed", "planned"), ("declined", "against_gates")] {
        let mut log = Log::default();
        let intent = log.grasp("needs_confirmation");
        let early = log.attempt(&of(&intent));
        let decided = log.decide(&intent, decision);
        let attempt = log.attempt(&of(&intent));
        log.forget(&intent);
        assert_eq!(standing(&log, &attempt), want);
        assert_eq!(standing(&log, &early), "against_gates", "it did not wait");
        let json = log.json(&decided);
        assert_eq!(json["verdict"]["verdict"], Value::Null);
        assert_eq!(json["verdict"]["standing"], decision);
        assert_eq!(json["verdict"]["confirmation"]["event_ref"], decided.to_string());
        assert_eq!(json["attempts"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn an_attempt_deviates_where_it_says_something_else() {
    let none = json!([]);
    let one = |field: &str, admitted: Value, acted: Value| {
        let deviation = json!({"field": field, "admitted": admitted, "acted": acted});
        json!([deviation])
    };
    for (said, want) in [
        (r#""params":{"force_n":40,"soft":true,"tool":"pad"}"#, none.clone()),
        (r#""params":{"force_n":40.0000000001}"#, none.clone()),
        (r#""params":{"force_n":4e1}"#, none.clone()),
        (r#""params":{}"#, none.clone()),
        (r#""params":7"#, none.clone()),
        (r#""note":"nothing else""#, none.clone()),
        (r#""target_class":"glass_cup","env":"ward3","params":{"soft":true}"#, none.clone()),
        (r#""target_class":null"#, none),
        (r#""params":{"force_n":60}"#, one("params.force_n", json!(40), json!(60))),
        (r#""params":{"force_n":40.000001}"#, one("params.force_n", json!(40), json!(40.000001))),
        (r#""params":{"force_n":"40"}"#, one("params.force_n", json!(40), json!("40"))),
        (r#""params":{"force_n":null}"#, one("params.force_n", json!(40), Value::Null)),
        (r#""params":{"soft":false}"#, one("params.soft", json!(true), json!(false))),
        (r#""params":{"tool":"claw"}"#, one("params.tool", json!("pad"), json!("claw"))),
        (r#""params":{"speed":1}"#, one("params.speed", Value::Null, json!(1))),
        (r#""target_class":"vase""#, one("target_class", json!("glass_cup"), json!("vase"))),
        (r#""environment":"ward4""#, one("environment", json!("ward3"), json!("ward4"))),
        (r#""env":"ward4""#, one("environment", json!("ward3"), json!("ward4"))),
    ] {
        let mut log = Log::default();
        let intent = log.grasp("clamped");
        let attempt = log.attempt(&format!(r#"{{"intent":"{intent}","success":false,{said}}}"#));
        let json = log.json(&attempt);
        assert_eq!(json["attempts"][0]["standing"], "planned");
        assert_eq!(json["attempts"][0]["deviations"], want, "{said}");
    }
    let mut log = Log::default();
    let intent = log.grasp("clamped");
    let all = format!(
        r#"{{"intent":"{intent}","skill_id":"push","target_class":1,"params":{{"b":1,"a":2}}}}"#
    );
    let attempt = log.attempt(&all);
    let json = log.json(&attempt);
    let fields = json["attempts"][0]["deviations"].as_array().unwrap().iter();
    let fields: Vec<_> = fields.map(|it| it["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["skill_id", "target_class", "params.a", "params.b"]);
    let denied = log.grasp("denied");
    let attempt = log.attempt(&format!(r#"{{"intent":"{denied}","skill_id":"push"}}"#));
    assert_eq!(log.json(&attempt)["attempts"][0]["deviations"], json!([]), "there was no plan");
    // The gates did not judge members that the intent does not have.
    let bare = log.intent(r#"{"skill_id":"s","params":{},"verdict":"admitted","gates":[]}"#);
    let attempt = log.attempt(&format!(r#"{{"intent":"{bare}","target_class":"glass_cup"}}"#));
    let json = log.json(&attempt);
    assert_eq!(json["attempts"][0]["deviations"][0]["field"], "target_class");
    assert_eq!(json["attempts"][0]["deviations"][0]["admitted"], Value::Null);
}

#[test]
fn a_trail_is_the_same_from_any_of_its_events() {
    let mut log = Log::default();
    let intent = log.grasp("needs_confirmation");
    let decided = log.decide(&intent, "confirmed");
    let attempts = [0; 3].map(|_| log.attempt(&of(&intent)));
    log.attempt("{}");
    let mut reported = log.json(&intent);
    reported["event_ref"] = Value::Null;
    let seqs: Vec<_> = reported["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, [3, 4, 5]);
    for name in attempts.iter().chain([&decided]) {
        let mut json = log.json(name);
        assert_eq!(json["event_ref"].take(), name.to_string());
        assert_eq!(json, reported);
    }
}

#[test]
fn what_is_no_action_and_what_is_not_there() {
    let mut log = Log::default();
    let gone = log.attempt("{}");
    let run = log.push("ipse", "pass:v1:1-1", "consolidation_run", "{}");
    let forget = log.forget(&gone);
    for (name, want) in [
        (run, Found::NoAction("consolidation_run".to_owned())),
        (forget, Found::NoAction("forget".to_owned())),
        (EventRef([0; 16]), Found::Nothing),
    ] {
        assert_eq!(Trail::of(&log, &ME, &name, Listing::default()).unwrap(), want);
    }
    let note = log.push("arm", "n", "note", "{}");
    assert_eq!(log.json(&note)["attempts"][0]["standing"], "unplanned");
    assert_eq!(*log.asked.borrow(), Vec::<&str>::new(), "nothing is scanned for that");
}

#[test]
fn too_many_attempts_are_counted_and_the_one_asked_about_is_there() {
    let mut log = Log::unsigned();
    let intent = log.grasp("admitted");
    let all: Vec<EventRef> = (0..MAX_ATTEMPTS + 5).map(|_| log.attempt(&of(&intent))).collect();
    let json = log.json(&intent);
    assert_eq!(json["attempts"].as_array().unwrap().len(), MAX_ATTEMPTS);
    assert_eq!(json["attempts_left_out"], 5);
    let last = all.last().unwrap();
    let json = log.json(last);
    let attempts = json["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), MAX_ATTEMPTS);
    assert_eq!(attempts.last().unwrap()["event_ref"], last.to_string());
    assert_eq!(json["attempts_left_out"], 5);
    let json = log.json(&all[3]);
    assert_eq!(json["attempts"].as_array().unwrap().len(), MAX_ATTEMPTS);
    assert_eq!(json["attempts_left_out"], 5);
}
