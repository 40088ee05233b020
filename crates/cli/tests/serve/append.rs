//! Appending over HTTP: every form, every rejection with its reason, every limit. The log holds
//! exactly the events that were answered as appended.

use super::client::{Answer, Request};
use super::events::{BATCH, LINES, ONE, batch, digest, event, lines, ref_of};
use super::server::{Agent, Server, one_agent, token};
use super::store::{Store, vector};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;

const EMPTY: &str = "{\"appended\":0,\"conflicts\":0,\"duplicates\":0,\"refused\":0,\
                     \"results\":[],\"signed\":0,\"unused\":[]}";

pub(super) struct Log {
    pub(super) store: Store,
    pub(super) agent: Agent,
    pub(super) server: Server,
}

impl Log {
    pub(super) fn new() -> Self {
        let (store, agent) = one_agent();
        let server = Server::start(&store);
        Log { store, agent, server }
    }

    #[track_caller]
    pub(super) fn send(&self, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
        self.server.ask(&Request::events(kind, body).token(&self.agent.producer))
    }

    /// The producers' events of the log: name, digest, signers.
    pub(super) fn events(&self) -> Vec<(String, String, Value)> {
        let page = self.server.get("/api/agent/log?limit=1000", &self.agent.operator).ok().json();
        let mut all = Vec::new();
        for entry in page["events"].as_array().unwrap() {
            if entry["type"] != "consolidation_run" {
                let text = |name: &str| entry[name].as_str().unwrap().to_string();
                all.push((text("event_ref"), text("digest"), entry["signers"].clone()));
            }
        }
        all
    }

    /// Checks that the log has exactly these events, byte for byte.
    #[track_caller]
    pub(super) fn holds(&self, events: &[String]) {
        let want: Vec<_> =
            events.iter().map(|event| (ref_of(event), digest(event), json!([]))).collect();
        assert_eq!(self.events(), want);
    }
}

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

fn some(ids: std::ops::Range<u32>) -> Vec<String> {
    ids.map(|id| event("arm", &id.to_string(), "grasp", id % 3 > 0)).collect()
}

fn results(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let results = json["results"].as_array().unwrap();
    results.iter().map(|result| result["result"].as_str().unwrap().to_string()).collect()
}

#[test]
fn one_event_is_created_once() {
    let log = Log::new();
    let events = some(0..3);
    for (kind, event) in
        ["application/json", ONE, "Application/JSON; charset=utf-8"].iter().zip(&events)
    {
        let answer = log.send(kind, event.clone()).is(201);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let json = answer.json();
        assert_eq!(json["result"], "appended");
        assert_eq!(json["event_ref"], ref_of(event).as_str());
        let again = log.send(kind, event.clone()).ok().json();
        assert_eq!((&again["result"], &again["seq"]), (&"duplicate".into(), &json["seq"]));
        // Salts are not compared, and extra white space is no other content.
        let plain = event.replacen("\"salt\":", " \"salt\" : ", 1);
        assert_eq!(log.send(kind, plain).ok().json(), again);
        let other = event.replace("\"cup\"", "\"pot\"");
        log.send(kind, other).problem(409, "conflict");
    }
    log.holds(&events);
}

#[test]
fn batches_and_lines_have_a_result_for_each() {
    let log = Log::new();
    let events = some(0..6);
    let (conflict, refused) = (events[0].replace("cup", "pot"), "{\"id\":7}".to_string());
    let mixed = |new: &str| [&events[0], &conflict, &refused, new, &events[0]].map(str::to_string);
    log.send(ONE, events[0].clone()).is(201);
    let want = ["duplicate", "conflict", "refused", "appended", "duplicate"];
    let lines_of = |events: &[String]| lines(events).replace('\n', "\r\n\r\n \n");
    for (kind, body) in [
        (BATCH, batch(&mixed(&events[1]))),
        (LINES, lines(&mixed(&events[2]))),
        (LINES, lines_of(&mixed(&events[3]))),
        (LINES, lines(&mixed(&events[4])).trim_end().to_string()),
        (BATCH, format!(" \n{}\t", batch(&mixed(&events[5])).replace("},{", "} ,\n{"))),
    ] {
        let answer = log.send(kind, body).ok();
        assert_eq!(results(&answer), want);
        let json = answer.json();
        let counts = ["appended", "duplicates", "conflicts", "refused", "signed"];
        assert_eq!(counts.map(|name| json[name].as_u64().unwrap()), [1, 2, 1, 1, 0]);
        let [_, conflict, refused, ..] = &json["results"].as_array().unwrap()[..] else { panic!() };
        assert_eq!((&conflict["code"], &conflict["field"]), (&"conflict".into(), &"id".into()));
        assert_eq!((&refused["code"], &refused["field"]), (&"not_text".into(), &"id".into()));
        assert!(!refused["detail"].as_str().unwrap().is_empty());
    }
    // An event that is twice in one request is stored once.
    let twice = event("arm", "twice", "grasp", true);
    let answer = log.send(BATCH, batch(&[twice.clone(), twice.clone()])).ok();
    assert_eq!(results(&answer), ["appended", "duplicate"]);
    log.holds(&[&events[..], &[twice]].concat());
}

#[test]
fn chunks_and_gzip_change_nothing() {
    let log = Log::new();
    let events = some(0..8);
    let post = |kind: &str, body: &[u8]| Request::events(kind, body).token(&log.agent.producer);
    let folded = |kind: &str, body: Vec<u8>| post(kind, &body).header("content-encoding", "gzip");
    let server = &log.server;
    server.ask(&post(ONE, events[0].as_bytes()).chunked(1)).is(201);
    server.ask(&post(LINES, lines(&events[1..3]).as_bytes()).chunked(100)).ok();
    server.ask(&folded(ONE, gzip(&events[3]))).is(201);
    server.ask(&folded(BATCH, gzip(batch(&events[4..5]))).chunked(10)).ok();
    // Two concatenated gzip files are one input.
    let two = [gzip(lines(&events[5..6])), gzip(lines(&events[6..7]))].concat();
    assert_eq!(results(&server.ask(&folded(LINES, two)).ok()), ["appended"; 2]);
    let identity = post(ONE, events[7].as_bytes()).header("content-encoding", "identity");
    server.ask(&identity).is(201);
    log.holds(&events);
}

#[test]
fn a_bad_form_is_rejected_and_stores_nothing() {
    let log = Log::new();
    let good = some(0..1).remove(0);
    for body in
        ["", "[", "{}", "[{]", "[\"", "[{}}]", "null", "[1]]", "x[]", "[,]", "[{},]", "[{},,{}]"]
    {
        log.send(BATCH, body).problem(400, "bad_batch");
    }
    for body in ["[]", " [ ]\n"] {
        assert_eq!(log.send(BATCH, body).ok().text(), EMPTY);
    }
    for body in ["", "\n \r\n"] {
        assert_eq!(log.send(LINES, body).ok().text(), EMPTY);
    }
    for body in ["[1, \"x\", [], null, {}]", "[{} {}]"] {
        let answer = log.send(BATCH, body).ok();
        assert!(results(&answer).iter().all(|result| result == "refused"), "{body}");
    }
    for kind in ["", "text/plain", "application/jsonl", "application/json/x", "multipart/form-data"]
    {
        log.send(kind, good.clone()).problem(415, "unsupported_media_type");
    }
    let none = Request::new("POST", "/api/agent/events").body(good.clone());
    log.server.ask(&none.token(&log.agent.producer)).problem(415, "unsupported_media_type");
    let post = |body: Vec<u8>| Request::events(ONE, body).token(&log.agent.producer);
    for encoding in ["br", "zstd", "deflate", "gzip, gzip", ""] {
        let request = post(good.clone().into()).header("content-encoding", encoding);
        log.server.ask(&request).problem(415, "unsupported_encoding");
    }
    for encoding in ["GZIP", "x-gzip"] {
        let request = post(gzip("{}")).header("content-encoding", encoding);
        log.server.ask(&request).problem(422, "refused");
    }
    let whole = gzip(&good);
    let (mut crc, cut) = (whole.clone(), whole[..whole.len() - 1].to_vec());
    crc[whole.len() - 6] ^= 1;
    for bytes in [good.clone().into_bytes(), cut, crc, [&whole[..], b"x"].concat(), Vec::new()] {
        let request = post(bytes).header("content-encoding", "gzip");
        log.server.ask(&request).problem(400, "bad_gzip");
    }
    log.holds(&[]);
}

/// Every vector of the door, alone, in a batch and as a line, gives the same rule and field.
#[test]
fn every_refusal_says_which_rule_and_where() {
    let log = Log::new();
    let text = std::fs::read_to_string(vector("door/refused.jsonl")).unwrap();
    for line in text.lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let body = vector["line"].as_str().unwrap();
        let problem = log.send(ONE, body).problem(422, "refused");
        let reported = |json: &Value, code: &str| (json[code].clone(), json["field"].clone());
        let want = (vector["rule"].clone(), vector["field"].clone());
        assert_eq!(reported(&problem, "rule"), want, "{body}");
        if body.is_empty() || body.contains('\n') || body.trim() != body {
            continue;
        }
        let json = log.send(LINES, body).ok().json();
        assert_eq!(reported(&json["results"][0], "code"), want, "{body}");
    }
    let invalid = log.send(ONE, &b"{\"id\":\"\xff\"}"[..]).problem(422, "refused");
    assert_eq!(invalid["rule"], "invalid_utf8");
    log.holds(&[]);
}

#[test]
fn a_token_bound_to_sources_sends_no_others() {
    let log = Log::new();
    let args = ["--role", "producer", "--source", "arm", "--source", "leg"];
    let bound = token(&log.store, &log.agent.identity, &args);
    let of = |source: &str, id: &str| event(source, id, "grasp", true);
    let send =
        |kind: &str, body: String| log.server.ask(&Request::events(kind, body).token(&bound));
    send(ONE, of("arm", "1")).is(201);
    for source in ["head", "arm ", "ARM", "import"] {
        let problem = send(ONE, of(source, "1")).problem(422, "refused");
        assert_eq!(
            (&problem["rule"], &problem["field"]),
            (&"source_not_allowed".into(), &"source".into())
        );
    }
    // Without a source it is `import`, which this token may not send either.
    let bare = of("import", "1").replace("\"source\":\"import\",", "");
    assert_eq!(send(ONE, bare).problem(422, "refused")["rule"], "source_not_allowed");
    let mixed = [of("head", "2"), of("leg", "2"), of("head", "3")];
    for (kind, body) in [(BATCH, batch(&mixed)), (LINES, lines(&mixed))] {
        let answer = send(kind, body).ok();
        let middle = if kind == BATCH { "appended" } else { "duplicate" };
        assert_eq!(results(&answer), ["refused", middle, "refused"]);
        assert_eq!(answer.json()["results"][0]["code"], "source_not_allowed");
    }
    log.holds(&[of("arm", "1"), of("leg", "2")]);
    // A final star stands for any rest.
    let args = ["--role", "producer", "--source", "otel:*"];
    let bound = token(&log.store, &log.agent.identity, &args);
    for (source, status) in [("otel:a", 201), ("otel:", 201), ("otel", 422), ("arm", 422)] {
        let request = Request::events(ONE, of(source, "star")).token(&bound);
        log.server.ask(&request).is(status);
    }
}

#[test]
fn a_signed_batch_has_only_sources_of_its_key() {
    let log = Log::new();
    log.store.run(&["key", "new", "producer", "arm", "--source", "arm"]).fine();
    let of = |source: &str, id: &str| event(source, id, "grasp", true);
    let bad = signed(&log, &lines(&[of("arm", "1"), of("leg", "1")]));
    let json = log.send(LINES, bad).ok().json();
    assert_eq!((&json["refused"], &json["appended"]), (&2.into(), &0.into()), "{json}");
    for result in json["results"].as_array().unwrap() {
        assert_eq!(result["code"], "source_not_allowed", "{json}");
        assert!(result["detail"].as_str().unwrap().contains("source `leg`"), "{json}");
    }
    let good = signed(&log, &lines(&[of("arm", "1")]));
    assert_eq!(log.send(LINES, good).ok().json()["signed"], 1);
    assert_eq!(log.events().len(), 1);
}

/// The clock is that of the server, and the setting that of the log.
#[test]
fn an_event_that_is_dated_ahead_is_refused() {
    let log = Log::new();
    let ahead = event("arm", "1", "grasp", true).replace("2026-", "2999-");
    let problem = log.send(ONE, ahead.clone()).problem(422, "refused");
    assert_eq!((&problem["rule"], &problem["field"]), (&"time_ahead".into(), &"time".into()));
    let good = event("arm", "2", "grasp", true);
    let both = [ahead.clone(), good.clone()];
    for (kind, body) in [(BATCH, batch(&both)), (LINES, lines(&both))] {
        let answer = log.send(kind, body).ok();
        assert_eq!(results(&answer)[0], "refused");
        assert_eq!(answer.json()["results"][0]["code"], "time_ahead");
    }
    // Events under one signature are stored together or not at all.
    log.store.run(&["key", "new", "producer", "arm", "--source", "arm"]).fine();
    let third = event("arm", "3", "grasp", true);
    let json = log.send(LINES, signed(&log, &lines(&[third, ahead.clone()]))).ok().json();
    let codes = json["results"].as_array().unwrap().iter().map(|result| &result["code"]);
    assert_eq!(codes.collect::<Vec<_>>(), ["time_ahead", "time_ahead"], "{json}");
    log.holds(std::slice::from_ref(&good));
    log.store.run(&["config", "max-ahead", "off"]).fine();
    log.send(ONE, ahead.clone()).is(201);
    log.holds(&[good, ahead]);
}

#[test]
fn what_was_forgotten_does_not_come_back() {
    let log = Log::new();
    let events = some(0..2);
    log.send(LINES, lines(&events)).ok();
    let body = format!("{{\"event_refs\":[\"{}\"]}}", ref_of(&events[0]));
    let forget = Request::post("/api/agent/forget", "application/json", body);
    let forget = forget.token(&log.agent.operator);
    let done = log.server.ask(&forget).ok().json();
    assert_eq!((&done["forgotten"], &done["erase_pending"]), (&1.into(), &false.into()));
    assert_eq!(log.send(ONE, events[0].clone()).problem(422, "refused")["rule"], "forgotten");
    let json = log.send(LINES, lines(&events)).ok().json();
    assert_eq!((&json["refused"], &json["duplicates"]), (&1.into(), &1.into()));
    assert_eq!(log.server.ask(&forget).ok().json()["already"], 1);
    log.store.run(&["verify"]).fine();
}

/// Signs lines with the key of a producer that is registered here.
pub(super) fn signed(log: &Log, events: &str) -> String {
    let input = log.store.write("plain.jsonl", events);
    let key = log.store.path.with_extension("db.keys").join("producers").join("arm.key");
    let (key, identity) = (key.to_str().unwrap(), log.agent.identity.as_str());
    let args = ["sign", &input, "--key", key, "--name", "arm", "--identity", identity];
    log.store.run(&args).fine().out
}

#[test]
fn a_signed_batch_stands_under_its_signature() {
    let log = Log::new();
    log.store.run(&["key", "new", "producer", "arm", "--any-source"]).fine();
    let text = signed(&log, &lines(&some(0..9)));
    assert_eq!(text.lines().count(), 10);
    let counts = |answer: Answer| {
        let json = answer.ok().json();
        ["appended", "duplicates", "refused", "signed"].map(|name| json[name].as_u64().unwrap())
    };
    assert_eq!(counts(log.send(LINES, text.clone())), [9, 0, 0, 9]);
    assert_eq!(counts(log.send(LINES, text.clone())), [0, 9, 0, 9], "sent again");
    let events = log.events();
    assert_eq!(events.len(), 9);
    assert!(events.iter().all(|(.., signers)| *signers == json!(["arm"])), "{events:?}");
    // A changed event, a bad signature, a stranger's, no events: rejected, nothing is stored.
    let more = signed(&log, &lines(&some(20..24)));
    let other = Log::new();
    other.store.run(&["key", "new", "producer", "arm", "--any-source"]).fine();
    for bad in [
        more.replacen("\"cup\"", "\"pot\"", 1),
        more.replace("\"sig\":\"", "\"sig\":\"AAAA"),
        signed(&other, &lines(&some(30..34))),
    ] {
        let json = log.send(LINES, bad).ok().json();
        assert_eq!((&json["refused"], &json["appended"]), (&4.into(), &0.into()), "{json}");
        let codes = json["results"].as_array().unwrap().iter().map(|one| &one["code"]);
        assert!(codes.clone().all(|code| code == "wrong_signature"), "{json}");
    }
    let envelope = more.lines().last().unwrap();
    log.send(LINES, envelope).problem(422, "bad_signature");
    assert_eq!(log.events().len(), 9);
    // Several envelopes, each after its own events; events after the last one are unsigned.
    let two = more + &signed(&log, &lines(&some(50..53))) + &lines(&some(60..61));
    assert_eq!(counts(log.send(LINES, two)), [8, 0, 0, 7]);
    // If signatures are required, unsigned events are rejected.
    log.store.run(&["config", "signatures", "require"]).fine();
    let plain = event("arm", "plain", "grasp", true);
    assert_eq!(log.send(ONE, plain.clone()).problem(422, "refused")["rule"], "unsigned");
    assert_eq!(log.send(BATCH, batch(&[plain])).ok().json()["results"][0]["code"], "unsigned");
    let good = signed(&log, &lines(&some(40..44)));
    assert_eq!(counts(log.send(LINES, good)), [4, 0, 0, 4]);
    // If signatures are ignored, they are not checked.
    log.store.run(&["config", "signatures", "off"]).fine();
    let broken = signed(&log, &lines(&some(80..82))).replace("\"sig\":\"", "\"sig\":\"AAAA");
    assert_eq!(counts(log.send(LINES, broken)), [2, 0, 0, 0]);
    log.store.run(&["config", "signatures", "require"]).fine();
    // A revoked key signs nothing new; its earlier signatures stay.
    let late = signed(&log, &lines(&some(70..72)));
    log.store.run(&["key", "revoke", "arm"]).fine();
    assert_eq!(counts(log.send(LINES, late)), [0, 0, 2, 0]);
    assert_eq!(counts(log.send(LINES, text)), [0, 9, 0, 9], "sent again");
    log.store.run(&["verify"]).fine();
}

#[test]
fn an_event_that_only_looks_like_an_envelope_is_an_event() {
    let log = Log::new();
    // CloudEvents allows extension attributes of any name.
    let extension =
        event("arm", "2", "grasp", true).replacen('{', "{\"payloadType\":\"application/json\",", 1);
    let answer =
        log.send(LINES, format!("{}\n{extension}\n", event("arm", "1", "grasp", true))).ok().json();
    assert_eq!((&answer["appended"], &answer["refused"]), (&2.into(), &0.into()), "{answer}");
    assert_eq!(log.events().len(), 2);
}

#[test]
fn mistakes_of_a_first_request_are_explained() {
    let log = Log::new();
    let array = log.send("application/json", "[{}]").problem(422, "refused");
    let detail = array["detail"].as_str().unwrap();
    assert!(detail.contains("application/cloudevents-batch+json"), "{detail}");
    let consolidate = Request::new("POST", "/api/agent/consolidate").token(&log.agent.producer);
    let role = log.server.ask(&consolidate).problem(403, "forbidden");
    assert!(role["detail"].as_str().unwrap().contains("needs a token of: operator"), "{role}");
    let unknown = log.server.get("/nothing", &log.agent.producer).problem(404, "not_found");
    assert!(unknown["detail"].as_str().unwrap().contains("/docs"), "{unknown}");
    let failure =
        event("arm", "1", "grasp", true).replace("\"success\":true", "\"outcome\":\"failure\"");
    let answer = log.send("application/json", failure).is(201).json();
    assert!(answer["hint"].as_str().unwrap().contains("did you mean \"failed\"?"), "{answer}");
}

#[test]
fn members_that_feed_nothing_are_summed_up_over_a_request() {
    let log = Log::new();
    let good = |id: &str| event("arm", id, "grasp", true);
    let bad = |id: &str| good(id).replace("\"success\":true", "\"outcome\":\"failure\"");
    let refused = "{}".to_owned();
    let all = [good("1"), bad("2"), refused, bad("3"), bad("4"), bad("5")];
    let answer = log.send("application/x-ndjson", all.join("\n")).ok().json();
    let message = "is \"failure\", which counts as unknown; did you mean \"failed\"?";
    let want = serde_json::json!([
        {"count": 4, "field": "data.outcome", "indexes": [1, 3, 4], "message": message}
    ]);
    assert_eq!(answer["unused"], want, "{answer}");
    let answer = log.send("application/x-ndjson", good("9")).ok().json();
    assert_eq!(answer["unused"], serde_json::json!([]));
}
