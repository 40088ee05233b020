//! Every path × verb × credential, compared with a table that is written here and not read from the
//! server: who has access, who has not, and with which status.

use super::client::{Answer, Request};
use super::events::{ONE, event};
use super::gates::{gate_files, proposal};
use super::server::{Agent, Server, token, wait_until};
use super::store::{Store, attempt};
use ipse_http::ROUTES;
use std::cell::Cell;
use std::collections::BTreeSet;

const VERBS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const ROLES: [&str; 4] = ["planner", "producer", "operator", "auditor"];
/// The roles that may read metrics.
const MEASURERS: Who = Who::Roles(&["planner", "producer", "operator", "auditor", "observer"]);

/// The callers that may use a path.
#[derive(Clone, Copy)]
enum Who {
    Everyone,
    Roles(&'static [&'static str]),
}

/// The hash of the rule set v1, which every log of these tests follows.
const V1_SHA256: &str = "0d622c5ec366d5c27c2cb8fc1f0562c49e09f3245f9487e0b393033dc4d74174";

/// A verb of a path: who may use it, the status, and whether it names an object of one agent.
struct Row {
    path: &'static str,
    verb: &'static str,
    who: Who,
    good: u16,
    object: bool,
}

const fn row(path: &'static str, verb: &'static str, who: Who) -> Row {
    Row { path, verb, who, good: 200, object: false }
}

/// A path that names an object; another identity's object is 404.
const fn object(path: &'static str, verb: &'static str, who: Who) -> Row {
    Row { object: true, ..row(path, verb, who) }
}

const ANY: Who = Who::Roles(&ROLES);
const READERS: Who = Who::Roles(&["planner", "operator", "auditor"]);
const OVERSEERS: Who = Who::Roles(&["operator", "auditor"]);
const OPERATORS: Who = Who::Roles(&["operator"]);
const AUDITORS: Who = Who::Roles(&["auditor"]);
const PLANNERS: Who = Who::Roles(&["planner"]);
const PRODUCERS: Who = Who::Roles(&["producer"]);

/// The routes and their roles, as in `docs/guide/serve.md`. Unknown paths are 404 for all callers.
const TABLE: [Row; 36] = [
    row("/api/agent/semantic", "GET", READERS),
    row("/api/agent/grounding", "GET", READERS),
    Row { good: 201, ..row("/api/agent/events", "POST", PRODUCERS) },
    Row { good: 201, ..row("/api/agent/intents", "POST", PLANNERS) },
    row("/api/agent/intents", "GET", READERS),
    object("/api/agent/intents/{event_ref}", "GET", READERS),
    object("/api/agent/intents/{event_ref}/confirm", "POST", OPERATORS),
    Row { good: 201, ..object("/api/agent/intents/{event_ref}/outcome", "POST", PRODUCERS) },
    row("/api/agent/skills", "GET", READERS),
    row("/api/agent/may-attempt", "GET", READERS),
    row("/api/agent/suggest", "GET", READERS),
    row("/api/agent/identity", "GET", ANY),
    object("/api/agent/facts/{fact_id}", "GET", READERS),
    object("/api/agent/facts/{fact_id}/explanation", "GET", READERS),
    row("/api/agent/passes", "GET", OVERSEERS),
    row("/api/agent/drift", "GET", OVERSEERS),
    row("/api/agent/drift/series", "GET", OVERSEERS),
    row("/api/agent/rules", "GET", OVERSEERS),
    row("/api/agent/rules/{sha256}", "GET", OVERSEERS),
    row("/api/agent/rules/{sha256}/report", "GET", OVERSEERS),
    row("/api/agent/log", "GET", OVERSEERS),
    row("/api/agent/stream", "GET", READERS),
    row("/api/agent/consolidate", "POST", OPERATORS),
    object("/api/agent/forget", "POST", OPERATORS),
    row("/api/audit/tree-head", "GET", AUDITORS),
    object("/api/audit/proof", "GET", AUDITORS),
    row("/api/audit/consistency", "GET", AUDITORS),
    object("/api/audit/actions/{event_ref}", "GET", AUDITORS),
    row("/api/audit/bundle", "GET", AUDITORS),
    row("/health/live", "GET", Who::Everyone),
    row("/health/ready", "GET", Who::Everyone),
    row("/", "GET", Who::Everyone),
    row("/version", "GET", Who::Everyone),
    row("/metrics", "GET", MEASURERS),
    row("/docs", "GET", Who::Everyone),
    row("/openapi.json", "GET", Who::Everyone),
];

/// A caller.
struct Caller {
    name: String,
    /// The header; `None` without a token.
    authorization: Option<String>,
    /// The role; `None` if the token is invalid.
    role: Option<&'static str>,
    /// Whether the requested objects belong to this caller.
    own: bool,
}

impl Row {
    fn is_served(&self) -> bool {
        ROUTES.iter().any(|route| route.path == self.path)
    }

    fn has(&self, verb: &str) -> bool {
        verb == self.verb || (verb == "HEAD" && self.verb == "GET")
    }

    /// Whether another row defines that verb for this path.
    fn leaves(&self, verb: &str) -> bool {
        let others = TABLE.iter().filter(|row| row.path == self.path);
        !self.has(verb) && others.into_iter().any(|row| row.has(verb))
    }

    /// The status that the caller must get.
    fn expected(&self, verb: &str, caller: &Caller) -> u16 {
        let roles = match self.who {
            _ if !self.is_served() => return 404,
            _ if !self.has(verb) => return 405,
            Who::Everyone => return self.good,
            Who::Roles(roles) => roles,
        };
        match caller.role {
            None => 401,
            Some(role) if !roles.contains(&role) => 403,
            Some(_) if self.object && !caller.own => 404,
            Some(_) => self.good,
        }
    }
}

/// Two agents in one store, each with facts, passes and a signed tree head.
struct World {
    store: Store,
    server: Server,
    ours: Agent,
    theirs: Agent,
    fact: String,
    event_ref: String,
    /// An intent that waits for a decision.
    intent: String,
    sent: Cell<u32>,
}

impl World {
    fn new() -> Self {
        let store = Store::nothing();
        let ours = Agent::bound(&store, "ward-robot-01");
        let theirs = Agent::bound(&store, "ward-robot-02");
        for (agent, source) in [(&ours, "arm"), (&theirs, "leg")] {
            let log: String = (0..5).map(|n| attempt(&n.to_string(), n > 0)).collect();
            let log = log.replace("\"arm\"", &format!("\"{source}\""));
            let file = store.write("log.jsonl", log);
            agent.run(&store, &["import", &file]).fine();
            agent.run(&store, &["tree-head", "--sign"]).fine();
        }
        let (fact, event_ref) = (fact_of(&store, &ours), first_ref_of(&store, &ours));
        // No pass runs by itself during the test.
        let still = ["--pass-every", "100000", "--pass-quiet", "3600000"];
        let server = Server::gated(&store, &still);
        let intent = server.ask(&proposal(35).token(&ours.planner)).is(201).json();
        assert_eq!(intent["standing"], "waiting");
        let intent = intent["event_ref"].as_str().unwrap().to_string();
        World { store, server, ours, theirs, fact, event_ref, intent, sent: Cell::new(0) }
    }

    fn request(&self, row: &Row, verb: &str) -> Request {
        let path = row.path.replace("{fact_id}", &self.fact).replace("{sha256}", V1_SHA256);
        let mut path = path.replace("{event_ref}", &self.intent);
        path += &match row.path {
            "/api/audit/proof" => format!("?event_ref={}", self.event_ref),
            "/api/audit/consistency" => "?from=1".to_owned(),
            "/api/agent/may-attempt" => "?skill_id=grasp".to_owned(),
            "/api/agent/suggest" => "?skill_id=grasp&param=force_n&candidates=20,25".to_owned(),
            _ => String::new(),
        };
        let request = Request::new(verb, &path);
        match row.path {
            "/api/agent/events" if verb != "GET" && verb != "HEAD" => {
                self.sent.set(self.sent.get() + 1);
                let event = event("arm", &format!("sent{}", self.sent.get()), "grasp", true);
                request.header("content-type", ONE).body(event)
            }
            "/api/agent/intents" if verb == "POST" => proposal(25),
            "/api/agent/intents/{event_ref}/outcome" if verb != "GET" && verb != "HEAD" => {
                request.header("content-type", "application/json").body("{\"success\":true}")
            }
            "/api/agent/forget" if verb != "GET" && verb != "HEAD" => {
                let body = format!("{{\"event_refs\":[\"{}\"]}}", self.event_ref);
                request.header("content-type", "application/json").body(body)
            }
            _ => request,
        }
    }

    fn ask(&self, row: &Row, verb: &str, authorization: Option<&str>) -> Answer {
        let request = self.request(row, verb);
        let request = match authorization {
            Some(value) => request.header("authorization", value),
            None => request,
        };
        if row.path == "/api/agent/stream" && verb == "GET" {
            // A stream does not end.
            let mut connection = self.server.connect();
            connection.write(&request.bytes()).unwrap();
            return connection.answer_head().unwrap();
        }
        self.server.ask(&request)
    }

    fn callers(&self) -> Vec<Caller> {
        let bearer = |token: &str| Some(format!("Bearer {token}"));
        let stranger = |name: &str, authorization: Option<String>| {
            let (name, role) = (name.to_string(), None);
            Caller { name, authorization, role, own: true }
        };
        let good = &self.ours.operator;
        let (stem, _) = good.rsplit_once('_').unwrap();
        let secret = "A".repeat(43);
        let mut all = vec![
            stranger("no token", None),
            stranger("no words", Some(String::new())),
            stranger("no token after the scheme", bearer("")),
            stranger("nonsense", bearer("nonsense")),
            stranger("a cut token", bearer(&good[..good.len() - 1])),
            stranger("a longer token", bearer(&format!("{good}A"))),
            stranger("two tokens in one", bearer(&format!("{good},{good}"))),
            stranger("a token without a scheme", Some(good.clone())),
            stranger("another scheme", Some(format!("Basic {good}"))),
            stranger("a token that was never made", bearer(&format!("{stem}_{secret}"))),
            stranger("an unknown identity", bearer(&format!("ipse_{}_{secret}", "ab".repeat(32)))),
            stranger(
                "another's identity",
                bearer(&good.replace(&self.ours.identity, &self.theirs.identity)),
            ),
            stranger("an expired token", bearer(&expired(&self.store, &self.ours))),
            stranger("a revoked token", bearer(&revoked(&self.store, &self.ours))),
        ];
        let observer = self.store.run(&["token", "create", "--role", "observer"]).fine().out;
        all.push(Caller {
            name: "an observer".to_string(),
            authorization: bearer(observer.trim()),
            role: Some("observer"),
            own: false,
        });
        for (agent, own, whose) in [(&self.ours, true, "our"), (&self.theirs, false, "their")] {
            all.extend(ROLES.map(|role| Caller {
                name: format!("{whose} {role}"),
                authorization: bearer(agent.token(role)),
                role: Some(role),
                own,
            }));
        }
        all
    }
}

fn fact_of(store: &Store, agent: &Agent) -> String {
    let facts = agent.run(store, &["facts", "--json"]).fine().json();
    facts["facts"][0]["fact_id"].as_str().unwrap().to_string()
}

/// The first event that is no act: an act has the same name in every log, and is never forgotten.
fn first_ref_of(store: &Store, agent: &Agent) -> String {
    let log = agent.run(store, &["log", "--json"]).fine().out;
    let read = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let event = log.lines().map(read).find(|event| event["type"] != "ipse.act").unwrap();
    event["event_ref"].as_str().unwrap().to_string()
}

fn revoked(store: &Store, agent: &Agent) -> String {
    let text = token(store, &agent.identity, &["--role", "operator", "--name", "gone"]);
    agent.run(store, &["token", "revoke", "gone"]).fine();
    text
}

fn expired(store: &Store, agent: &Agent) -> String {
    let text = token(store, &agent.identity, &["--role", "operator", "--name", "old"]);
    let db = rusqlite::Connection::open(&store.path).unwrap();
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'token_is_frozen'";
    let guard: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    let expire = "BEGIN IMMEDIATE; DROP TRIGGER token_is_frozen; \
                  UPDATE token SET expires = created WHERE name = 'old'";
    db.execute_batch(&format!("{expire}; {guard}; COMMIT")).unwrap();
    text
}

/// Checks what every response has, and what every problem has.
fn check_shape(answer: &Answer, row: &Row, verb: &str, what: &str) {
    let id = answer.header("x-request-id").unwrap_or_else(|| panic!("no request id: {what}"));
    assert_eq!(id.len(), 32, "{what}");
    if answer.status < 300 {
        return;
    }
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{what}");
    let is_401 = answer.status == 401;
    assert_eq!(answer.header("www-authenticate").is_some(), is_401, "{what}");
    if answer.status == 405 {
        let allow: BTreeSet<&str> = answer.header("allow").unwrap().split(", ").collect();
        assert!(allow.contains(row.verb), "{what}: {allow:?}");
        let has = |verb: &&str| row.has(verb) || row.leaves(verb);
        assert!(allow.iter().all(has), "{what}: {allow:?}");
    }
    if verb == "HEAD" {
        assert!(answer.body.is_empty(), "{what}");
        return;
    }
    if row.path == "/api/agent/stream" {
        return; // Its body was left.
    }
    let json = answer.json();
    assert_eq!(json["status"], answer.status, "{what}");
    assert_eq!(json["request_id"], id, "{what}");
    let code = match answer.status {
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        405 => "method_not_allowed",
        other => panic!("{what}: {other}"),
    };
    assert_eq!(json["code"], code, "{what}");
}

#[test]
fn every_path_is_in_the_table() {
    for route in &ROUTES {
        let is_it = |row: &&Row| (row.path, row.verb) == (route.path, route.method.as_str());
        assert_eq!(TABLE.iter().filter(is_it).count(), 1, "{} {}", route.method, route.path);
    }
}

#[test]
fn each_credential_gets_what_the_table_says() {
    let world = World::new();
    let callers = world.callers();
    let mut wrong = Vec::new();
    for row in &TABLE {
        for verb in VERBS.into_iter().filter(|verb| !row.leaves(verb)) {
            for caller in &callers {
                let what = format!("{verb} {} by {}", row.path, caller.name);
                let answer = world.ask(row, verb, caller.authorization.as_deref());
                let want = row.expected(verb, caller);
                if answer.status == want {
                    check_shape(&answer, row, verb, &what);
                } else {
                    wrong.push(format!("{what}: {} instead of {want}", answer.status));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.theirs.run(&world.store, &["verify"]).fine();
    // The token that was expired by hand is the only finding.
    let ours = world.ours.run(&world.store, &["verify", "--json"]).ended(1, &[]).json();
    let findings = ours["findings"].as_array().unwrap();
    assert!(findings.len() == 1 && findings[0]["place"].as_str().unwrap().starts_with("token"));
}

/// A planner's token adds intents to the log, which feed no fact. It changes no fact, manifest,
/// event or gate file.
#[test]
fn a_planner_proposes_and_changes_nothing_whatever_it_sends() {
    let world = World::new();
    let agent = &world.ours;
    let run = |args: &[&str]| agent.run(&world.store, args).fine();
    let known = || [run(&["snapshot"]).out, run(&["identity", "--json"]).out, gate_files()];
    let log = || run(&["log", "--json"]).out.lines().map(str::to_owned).collect::<Vec<_>>();
    let before = (known(), log());
    let planner = format!("Bearer {}", agent.planner);
    for row in &TABLE {
        for verb in VERBS {
            world.ask(row, verb, Some(&planner));
            let path = row.path.replace("{fact_id}", &world.fact).replace("{sha256}", V1_SHA256);
            let path = path.replace("{event_ref}", &world.intent);
            let write = Request::new(verb, &path).header("content-type", ONE).token(&agent.planner);
            // Many bodies to a path that does not read them; any response is fine.
            let smuggled = format!("{}?_method=POST", row.path);
            for request in [
                write.clone().header("x-http-method-override", "POST").body(&b"{}"[..]),
                write.clone().body(attempt("planned", true)).chunked(7),
                Request::new(verb, &smuggled).token(&agent.planner).body(&b"[]"[..]),
            ] {
                let mut connection = world.server.connect();
                connection.write(&request.close().bytes()).unwrap();
                connection.answer_head().unwrap();
            }
        }
    }
    assert_eq!(known(), before.0);
    let after = log();
    let (old, new) = after.split_at(before.1.len());
    assert_eq!(old, before.1, "what was there is there as it was");
    assert!(!new.is_empty() && new.iter().all(|line| line.contains("\"type\":\"intent\"")));
    // The same store does change for a role that may write.
    let sent = Request::events(ONE, event("arm", "new", "grasp", true)).token(&agent.producer);
    world.server.ask(&sent).is(201);
    let fold = Request::new("POST", "/api/agent/consolidate").token(&agent.operator);
    world.server.ask(&fold).ok();
    assert_ne!(known()[..2], before.0[..2]);
    assert_ne!(run(&["snapshot"]).out, before.0[0]);
}

/// A request that promises a body and never sends it is answered at once: the role is checked
/// first.
#[test]
fn the_role_is_checked_before_the_body() {
    let world = World::new();
    let agent = &world.ours;
    let confirm = format!("/api/agent/intents/{}/confirm", world.intent);
    let outcome = format!("/api/agent/intents/{}/outcome", world.intent);
    let paths = ["/api/agent/events", "/api/agent/forget", "/api/agent/consolidate", &confirm[..]];
    for path in paths.into_iter().chain(["/api/agent/intents", &outcome[..]]) {
        for length in ["9000000000", "100", "0"] {
            let first = if path.ends_with("/intents") { "producer" } else { "planner" };
            let wrong = [first, "auditor"].map(|role| Some(agent.token(role)));
            for (token, want) in [(None, 401), (wrong[0], 403), (wrong[1], 403)] {
                for more in [("content-encoding", "zstd"), ("expect", "100-continue")] {
                    let head = Request::new("POST", path)
                        .header("content-type", "text/nonsense")
                        .header("content-length", length)
                        .header(more.0, more.1);
                    let head = token.iter().fold(head, |head, token| head.token(token));
                    let mut connection = world.server.connect();
                    connection.write(&head.head()).unwrap();
                    let answer = connection.answer(false).unwrap();
                    assert_eq!(answer.status, want, "{path} {length} {more:?}");
                }
            }
        }
    }
    // A caller that may send gets 100 Continue, and then the error about the body.
    let head = Request::new("POST", "/api/agent/events").token(&agent.producer);
    let head = head.header("content-type", ONE).header("expect", "100-continue");
    let mut connection = world.server.connect();
    connection.write(&head.header("content-length", "2").close().head()).unwrap();
    assert_eq!(connection.answer(false).unwrap().status, 100);
    connection.write(b"{}").unwrap();
    connection.answer(false).unwrap().problem(422, "refused");
}

#[test]
fn objects_of_other_identities_are_not_found() {
    let world = World::new();
    let (ours, theirs) = (&world.ours, &world.theirs);
    let fact = fact_of(&world.store, theirs);
    let name = first_ref_of(&world.store, theirs);
    assert_ne!((&fact, &name), (&world.fact, &world.event_ref));
    let server = &world.server;
    let before = theirs.run(&world.store, &["log", "--json"]).fine().out;
    for (role, path) in [
        ("planner", format!("/api/agent/facts/{fact}")),
        ("operator", format!("/api/agent/facts/{fact}/explanation")),
        ("auditor", format!("/api/audit/proof?event_ref={name}")),
        ("auditor", format!("/api/audit/actions/{name}")),
    ] {
        let answer = server.get(&path, ours.token(role)).problem(404, "not_found");
        assert!(!answer.to_string().contains(&theirs.identity), "{answer}");
        server.get(&path, theirs.token(role)).ok();
        // An object of another identity looks like a missing one.
        let none = path.replace(&fact, "fa_00000000000000000000000000000000");
        let none = none.replace(&name, "ev_00000000000000000000000000000000");
        let strip = |mut json: serde_json::Value| {
            json["request_id"] = "".into();
            json.to_string().replace(&name, "").replace("ev_00000000000000000000000000000000", "")
        };
        let missing = server.get(&none, ours.token(role)).problem(404, "not_found");
        assert_eq!(strip(answer), strip(missing));
    }
    let body = format!("{{\"event_refs\":[\"{}\",\"{name}\"]}}", world.event_ref);
    let forget = Request::post("/api/agent/forget", "application/json", body);
    server.ask(&forget.token(&ours.operator)).problem(404, "not_found");
    assert_eq!(theirs.run(&world.store, &["log", "--json"]).fine().out, before);
    let kept =
        server.get(&format!("/api/audit/proof?event_ref={}", world.event_ref), &ours.auditor);
    kept.ok();
    let log = ours.run(&world.store, &["log", "--json"]).fine().out;
    assert!(!log.contains("\"type\":\"forget\""), "all of it or nothing: {log}");
    for agent in [ours, theirs] {
        let json = server.get("/api/agent/identity", &agent.planner).ok().json();
        assert_eq!(json["identity_hash"], agent.identity.as_str());
        // No parameter and no header names an identity.
        let path = format!("/api/agent/identity?identity={}", theirs.identity);
        server.get(&path, &agent.planner).problem(400, "unknown_parameter");
    }
    // A tag of ours does not make a response of theirs "not modified".
    let ask = |agent: &Agent| Request::get("/api/agent/semantic").token(&agent.planner);
    let tag = server.ask(&ask(ours)).ok().header("etag").unwrap().to_string();
    server.ask(&ask(ours).header("if-none-match", &tag)).is(304);
    server.ask(&ask(theirs).header("if-none-match", &tag)).ok();
}

#[test]
fn a_token_is_given_once_and_only_in_its_header() {
    let world = World::new();
    let (server, planner) = (&world.server, &world.ours.planner);
    let semantic = Request::get("/api/agent/semantic");
    let twice = semantic.clone().token(planner).token(planner);
    server.ask(&twice).problem(401, "unauthorized");
    server.ask(&semantic.clone().token(planner).token("x")).problem(401, "unauthorized");
    server.ask(&semantic.clone().token("x").token(planner)).problem(401, "unauthorized");
    let cookie = semantic.header("cookie", &format!("authorization=Bearer {planner}"));
    server.ask(&cookie).problem(401, "unauthorized");
    for name in ["access_token", "token", "authorization"] {
        let path = format!("/api/agent/semantic?{name}={planner}");
        server.ask(&Request::get(&path)).problem(401, "unauthorized");
    }
    // A token is in no response and in no log line.
    let answer = server.get("/nowhere", planner);
    assert!(!answer.text().contains("ipse_"));
    wait_until("it says where it serves", || world.server.words().contains("serving"));
    assert!(!world.server.words().contains("ipse_"), "{}", world.server.words());
}
