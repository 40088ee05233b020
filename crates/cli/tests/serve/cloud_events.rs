//! CloudEvents in binary mode, and binary data in JSON: the log holds the event that was sent, and
//! an ambiguous request stores nothing.

use super::append::{Log, signed};
use super::client::{Answer, Request};
use super::events::{BATCH, LINES, ONE, batch, event, lines};
use super::server::token;
use serde_json::json;

const SALT: &str = "00112233445566778899aabbccddeeff";
const DATA: &str = r#"{"environment":"ward","skill_id":"grasp","success":true}"#;
/// `{"skill_id":"grasp"}`
const ENCODED: &str = "eyJza2lsbF9pZCI6ImdyYXNwIn0=";

/// Sends headers, an optional content type and a body to the events route.
#[track_caller]
fn send(log: &Log, headers: &[(&str, &str)], kind: Option<&str>, body: &str) -> Answer {
    let mut request = Request::new("POST", "/api/agent/events").token(&log.agent.producer);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(kind) = kind {
        request = request.header("content-type", kind);
    }
    log.server.ask(&request.body(body))
}

fn attributes<'a>(id: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let usual = [
        ("ce-specversion", "1.0"),
        ("ce-id", id),
        ("CE-Source", "/arms/7"),
        ("ce-type", "execution_result"),
        ("ce-time", "2026-05-06T10:00:00.5%2B02:00"),
        ("ce-salt", SALT),
    ];
    usual.iter().chain(more).copied().collect()
}

/// The canonical event with these attributes; `before` and `after` are members by their order.
fn stored(id: &str, before: &str, after: &str) -> String {
    format!(
        "{{{before}\"id\":\"{id}\",\"salt\":\"{SALT}\",\"source\":\"/arms/7\",\
         \"specversion\":\"1.0\",{after}\"time\":\"2026-05-06T10:00:00.5+02:00\",\
         \"type\":\"execution_result\"}}"
    )
}

#[test]
fn a_binary_event_is_stored_under_its_headers() {
    let log = Log::new();
    // The data has members with the names of event members.
    let inner = r#"{"id":"INNER","time":"2020-01-01T00:00:00Z","type":"note"}"#;
    let euro = [("ce-subject", "Euro%20%E2%82%AC"), ("ce-traceparent", "00-a-b-01")];
    let json = Some("application/json");
    let answers = [
        send(&log, &attributes("OUTER", &[]), json, inner),
        send(&log, &attributes("2", &[]), None, DATA),
        send(&log, &attributes("3", &euro), Some("Application/JSON; charset=utf-8"), DATA),
        send(&log, &attributes("4", &[]), Some("application/vnd.arm+json; v=2"), DATA),
        send(&log, &attributes("5", &[]), Some(LINES), DATA),
        send(&log, &attributes("6", &[]), json, ""),
        send(&log, &attributes("7", &[]), None, ""),
    ];
    for answer in answers {
        assert_eq!(answer.is(201).json()["result"], "appended");
    }
    let data = format!("\"data\":{DATA},");
    let events = [
        stored("OUTER", &format!("\"data\":{inner},"), ""),
        stored("2", &data, ""),
        stored("3", &data, "\"subject\":\"Euro €\",")
            .replace("\"type\":", "\"traceparent\":\"00-a-b-01\",\"type\":"),
        stored("4", &format!("{data}\"datacontenttype\":\"application/vnd.arm+json; v=2\","), ""),
        stored("5", &format!("{data}\"datacontenttype\":\"application/x-ndjson\","), ""),
        stored("6", "", ""),
        stored("7", "", ""),
    ];
    log.holds(&events);
    let again = send(&log, &attributes("2", &[]), json, &format!(" {DATA} "));
    assert_eq!(again.is(200).json()["result"], "duplicate");
    send(&log, &attributes("2", &[]), json, "{}").problem(409, "conflict");
    // The same event in structured mode is a duplicate.
    let structured = log.send(ONE, events[1].clone());
    assert_eq!(structured.ok().json()["result"], "duplicate");
}

#[test]
fn data_that_is_no_object_and_attributes_of_the_door_are_refused() {
    let log = Log::new();
    let refused = |headers: &[(&str, &str)], body: &str| {
        let problem = send(&log, headers, None, body).problem(422, "refused");
        [&problem["field"], &problem["rule"]].map(|it| it.as_str().unwrap().to_string())
    };
    for body in ["7", "[{}]", "null", "text", "{", "{} {}", " ", "{},\"id\":\"2\""] {
        assert_eq!(refused(&attributes("1", &[]), body), ["data", "data_not_object"], "{body}");
    }
    assert_eq!(refused(&attributes("1", &[]), r#"{"a":1,"a":2}"#), ["data.a", "duplicate_key"]);
    let without = |name: &str| {
        let all = attributes("1", &[]);
        all.into_iter().filter(|(header, _)| *header != name).collect::<Vec<_>>()
    };
    for name in ["ce-id", "ce-type", "ce-time"] {
        assert_eq!(refused(&without(name), "{}"), [&name[3..], "missing"]);
    }
    let mut short = without("ce-salt");
    short.push(("ce-salt", "1"));
    assert_eq!(refused(&short, "{}"), ["salt", "salt"]);
    assert_eq!(refused(&attributes("%0A", &[]), "{}"), ["id", "control_character"]);
    let big = format!("{{\"a\":\"{}\"}}", "x".repeat(65_536));
    assert_eq!(refused(&attributes("1", &[]), &big), ["", "too_large"]);
    let reserved = [
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "ipse"),
        ("ce-type", "note"),
        ("ce-time", "2026-05-06T10:00:00Z"),
    ];
    assert_eq!(refused(&reserved, "{}"), ["source", "reserved_source"]);
    let bound =
        token(&log.store, &log.agent.identity, &["--role", "producer", "--source", "arm-8"]);
    let mut request = Request::new("POST", "/api/agent/events").token(&bound).body(DATA);
    for (name, value) in attributes("1", &[]) {
        request = request.header(name, value);
    }
    let problem = log.server.ask(&request).problem(422, "refused");
    assert_eq!(problem["rule"], "source_not_allowed");
    log.holds(&[]);
}

#[test]
fn a_request_that_can_be_read_in_two_ways_stores_nothing() {
    let log = Log::new();
    let whole = event("arm", "whole", "grasp", true);
    let (json, unknown) = (Some("application/json"), "unsupported_media_type");
    for headers in [&[("ce-id", "1")][..], &[("ce-specversion", "0.3"), ("ce-id", "1")]] {
        for kind in [json, Some(LINES), None] {
            send(&log, headers, kind, &whole).problem(415, unknown);
        }
    }
    let old = [("ce-specversion", "0.3")];
    let problem = send(&log, &old, json, &whole).problem(415, unknown);
    assert!(problem["detail"].as_str().unwrap().contains("0.3"), "{problem}");
    for (headers, field) in [
        (attributes("1", &[("ce-id", "2")]), "ce-id"),
        (attributes("1", &[("ce-specversion", "1.0")]), "ce-specversion"),
        (attributes("100%", &[]), "ce-id"),
        (attributes("%FF", &[]), "ce-id"),
        (attributes("é", &[]), "ce-id"),
        (attributes("1", &[("ce-my-name", "x")]), "ce-my-name"),
        (attributes("1", &[("ce-data", "x")]), "ce-data"),
        (attributes("1", &[("ce-datacontenttype", "text/plain")]), "ce-datacontenttype"),
    ] {
        let problem = send(&log, &headers, json, DATA).problem(400, "bad_header");
        assert_eq!(problem["field"], field);
    }
    log.holds(&[]);
    // The content type says that the body is the whole event, so it is read as one.
    send(&log, &attributes("1", &[("ce-my-name", "x")]), Some(ONE), &whole).is(201);
    let other = Some("application/cloudevents+avro");
    send(&log, &attributes("1", &[]), other, "{}").problem(415, unknown);
    log.holds(&[whole]);
}

fn with_base64(id: &str, data: &str, more: &str) -> String {
    format!(
        "{{\"data_base64\":\"{data}\",\"id\":\"{id}\",{more}\"source\":\"arm\",\
         \"specversion\":\"1.0\",\"time\":\"2026-05-06T10:00:00Z\",\"type\":\"execution_result\"}}"
    )
}

#[test]
fn binary_data_that_holds_an_object_is_decoded_unless_it_is_signed() {
    let log = Log::new();
    let plain = |id: &str| {
        let event = with_base64(id, "", "");
        event.replace("\"data_base64\":\"\"", "\"data\":{\"skill_id\":\"grasp\"}")
    };
    let sent = ["1", "2", "3"].map(|id| with_base64(id, ENCODED, ""));
    log.send(ONE, sent[0].clone()).is(201);
    log.send(BATCH, batch(&sent[1..2])).ok();
    log.send(LINES, lines(&sent[2..])).ok();
    for id in ["1", "2", "3"] {
        assert_eq!(log.send(ONE, plain(id)).ok().json()["result"], "duplicate", "{id}");
    }
    // Other bytes are stored unchanged: the decoded event would be another one.
    let other = with_base64("4", "AAEC", "");
    log.send(ONE, other.clone()).is(201);
    assert_eq!(log.send(ONE, other).ok().json()["result"], "duplicate");
    let both = sent[0].replacen('{', "{\"data\":{},", 1);
    let problem = log.send(ONE, both.clone()).problem(422, "refused");
    assert_eq!(
        (&problem["field"], &problem["rule"]),
        (&json!("data_base64"), &json!("data_and_base64"))
    );
    // A signed event is stored as it was signed.
    log.store.run(&["key", "new", "producer", "arm", "--any-source"]).fine();
    let salted = with_base64("5", ENCODED, &format!("\"salt\":\"{SALT}\","));
    let both = both.replace("\"id\":\"1\"", "\"id\":\"6\"");
    let answer = log.send(LINES, signed(&log, &lines(&[salted.clone(), both]))).ok().json();
    assert_eq!((&answer["appended"], &answer["signed"]), (&2.into(), &2.into()), "{answer}");
    let digests: Vec<String> = log.events().into_iter().map(|(_, digest, _)| digest).collect();
    assert!(digests.contains(&super::events::digest(&salted)), "{digests:?}");
    // A signed file that is sent without its envelope has the same digests.
    let unsigned = with_base64("7", ENCODED, &format!("\"salt\":\"{SALT}\","));
    log.send(LINES, format!("{unsigned}\n")).ok();
    let events = log.events();
    assert!(events.iter().any(|(_, digest, _)| *digest == super::events::digest(&unsigned)));
    log.store.run(&["verify"]).fine();
}

#[test]
fn a_type_that_is_nearly_counted_is_reported() {
    let log = Log::new();
    let near = event("arm", "1", "grasp", true).replace("execution_r", "com.example.execution_r");
    let far = event("arm", "2", "grasp", true);
    let hint = "feeds no fact; did you mean execution_result";
    for status in [201, 200] {
        assert_eq!(log.send(ONE, near.clone()).is(status).json()["hint"], hint);
    }
    let answer = log.send(BATCH, batch(&[near, far])).ok().json();
    assert_eq!(answer["results"][0]["hint"], hint);
    assert_eq!(answer["results"][1].get("hint"), None);
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-id", "3"),
        ("ce-type", "a.execution_result"),
        ("ce-time", "2026-05-06T10:00:00Z"),
    ];
    assert_eq!(send(&log, &headers, None, DATA).is(201).json()["hint"], hint);
}

#[test]
fn a_batch_with_refusals_says_so_in_a_header() {
    let log = Log::new();
    let good = event("arm", "1", "grasp", true);
    let conflict = event("arm", "1", "grasp", false);
    let refused = "{}".to_string();
    for (events, header) in [
        (vec![good.clone(), good.clone()], None),
        (vec![], None),
        (vec![good.clone(), refused.clone()], Some("1")),
        (vec![refused.clone(), conflict, good, refused], Some("3")),
    ] {
        assert_eq!(log.send(BATCH, batch(&events)).ok().header("ipse-refused"), header);
        assert_eq!(log.send(LINES, lines(&events)).ok().header("ipse-refused"), header);
    }
    log.store.run(&["config", "signatures", "require"]).fine();
    let answer = log.send(LINES, lines(&[event("arm", "9", "grasp", true)])).ok();
    assert_eq!(answer.header("ipse-refused"), Some("1"), "refused by the log");
}
