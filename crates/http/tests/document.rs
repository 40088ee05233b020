//! The OpenAPI document: the server serves it, and it describes the behaviour of the server.
//!
//! **Invariant:** the expected values come from the table of routes, from the responses of a router
//! over a real store, and from the source text. They are not repeated here.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use axum::http::StatusCode;
use ipse_access::Role;
use ipse_http::{Access, ROUTES, Route};
use ipse_intents::{DecisionError, IntentError, OutcomeError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use world::{Answer, World};

const COMMITTED: &str = include_str!("../openapi.json");
const VERBS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

fn document() -> Value {
    serde_json::from_str(COMMITTED).unwrap()
}

/// The object of a value, with `$ref` resolved.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.pointer(&reference[1..].replace("~1", "/")).unwrap(),
        None => value,
    }
}

fn operation<'d>(document: &'d Value, route: &Route) -> &'d Value {
    &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()]
}

/// The parameters of a route in one place: query, path or header.
fn parameters<'d>(document: &'d Value, route: &Route, place: &str) -> Vec<&'d Value> {
    let holders = [&document["paths"][route.path], operation(document, route)];
    let lists = holders.into_iter().filter_map(|holder| holder["parameters"].as_array());
    let all = lists.flatten().map(|one| resolved(document, one));
    all.filter(|one| one["in"] == place).collect()
}

/// The path of a route, with the examples of the document as path parameters.
fn address(document: &Value, route: &Route) -> String {
    let varying = parameters(document, route, "path").into_iter();
    varying.fold(route.path.to_owned(), |path, one| {
        let name = format!("{{{}}}", one["name"].as_str().unwrap());
        path.replace(&name, one["example"].as_str().unwrap())
    })
}

/// A role that may use a route.
fn admitted(route: &Route) -> Option<Role> {
    match route.access {
        Access::Open => None,
        Access::Roles(roles) => Some(roles[0]),
    }
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn the_committed_file_is_served_and_kept() {
    let world = World::new();
    let served = world.get("/openapi.json", None, &[]);
    assert_eq!((served.status, &*served.body), (StatusCode::OK, COMMITTED));
    assert_eq!(served.header("content-type"), "application/json");
    for path in ["/openapi.json", "/docs"] {
        let tag = world.get(path, None, &[]).header("etag").to_owned();
        let again = world.get(path, None, &[("if-none-match", &tag)]);
        assert_eq!((again.status, &*again.body), (StatusCode::NOT_MODIFIED, ""), "{path}");
        assert_eq!(again.header("etag"), tag);
        let other = world.get(path, None, &[("if-none-match", "\"other\"")]);
        assert_eq!(other.status, StatusCode::OK, "{path}");
    }
}

#[test]
fn version_and_licence_are_the_crates() {
    let document = document();
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["info"]["license"]["identifier"], env!("CARGO_PKG_LICENSE"));
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let document = document();
    let table: BTreeSet<(String, String)> =
        ROUTES.iter().map(|r| (r.path.to_owned(), r.method.as_str().to_lowercase())).collect();
    assert_eq!(table.len(), ROUTES.len(), "duplicate route");
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let verbs = item.as_object().unwrap().keys().filter(|key| VERBS.contains(&key.as_str()));
        described.extend(verbs.map(|verb| (path.clone(), verb.clone())));
    }
    assert_eq!(described, table);
    let mut ids = BTreeSet::new();
    for route in &ROUTES {
        let id = operation(&document, route)["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} names two operations");
    }
}

#[test]
fn roles_and_security_are_those_of_the_table() {
    let document = document();
    assert_eq!(document["security"], serde_json::json!([{ "bearer": [] }]));
    for route in &ROUTES {
        let operation = operation(&document, route);
        let roles = strings(&operation["x-ipse-roles"]);
        let answers = operation["responses"].as_object().unwrap();
        match route.access {
            Access::Open => {
                assert_eq!(operation["security"], serde_json::json!([]), "{}", route.path);
                assert!(roles.is_empty(), "{}", route.path);
            }
            Access::Roles(table) => {
                assert!(operation.get("security").is_none(), "{}: the default applies", route.path);
                let table: Vec<_> = table.iter().map(|role| role.name()).collect();
                assert_eq!(roles, table, "{}", route.path);
                assert!(answers.contains_key("401"), "{}", route.path);
                let some = table.len() < Role::ALL.len();
                assert_eq!(answers.contains_key("403"), some, "{}", route.path);
            }
        }
    }
}

#[test]
fn roles_that_are_not_listed_are_rejected() {
    let (document, world) = (document(), World::new());
    for route in &ROUTES {
        let listed = strings(&operation(&document, route)["x-ipse-roles"]);
        for role in Role::ALL {
            let answer = world.ask(route, &address(&document, route), Some(role), &[], "");
            let rejected = answer.status == StatusCode::FORBIDDEN;
            let expected = !listed.is_empty() && !listed.contains(&role.name());
            assert_eq!(rejected, expected, "{} {}", route.path, role.name());
        }
        let without_token = world.ask(route, &address(&document, route), None, &[], "");
        let rejected = without_token.status == StatusCode::UNAUTHORIZED;
        assert_eq!(rejected, !listed.is_empty(), "{}", route.path);
    }
}

/// The example of a parameter, as it is in a query.
fn example(parameter: &Value) -> String {
    match &parameter["example"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn the_parameters_that_are_described_are_those_that_are_known() {
    let (document, world) = (document(), World::new());
    let mut aliases = BTreeSet::new();
    for route in &ROUTES {
        let (path, role) = (address(&document, route), admitted(route));
        let ask = |query: &str| world.ask(route, &format!("{path}?{query}"), role, &[], "");
        let described = parameters(&document, route, "query");
        let names: BTreeSet<&str> =
            described.iter().map(|one| one["name"].as_str().unwrap()).collect();
        let stranger = ask("unknown_name=1");
        assert_eq!(stranger.code(), "unknown_parameter", "{}", route.path);
        let detail = stranger.problem()["detail"].as_str().unwrap().to_owned();
        let (_, known) = detail.rsplit_once("known: ").unwrap();
        let known: BTreeSet<&str> = known.split(", ").filter(|name| *name != "none").collect();
        assert_eq!(names, known, "{}", route.path);
        for one in &described {
            let name = one["name"].as_str().unwrap();
            let example = example(one);
            // Each parameter is given with those that are required.
            let others = described.iter().filter(|it| it["required"] == true && *it != one);
            let others: String = others
                .map(|it| format!("&{}={}", it["name"].as_str().unwrap(), self::example(it)))
                .collect();
            let ask = |query: &str| ask(&format!("{query}{others}"));
            let answer = ask(&format!("{name}={example}"));
            // Which candidates belong together is tested with the server.
            let accepted = answer.status != StatusCode::BAD_REQUEST
                || answer.code() == "bad_candidates" && route.path == "/api/agent/suggest";
            assert!(accepted, "{} {name}={example}", route.path);
            let twice = ask(&format!("{name}={example}&{name}={example}"));
            assert_eq!(twice.code(), "repeated_parameter", "{} {name}", route.path);
            if let Some(alias) = one["x-ipse-alias"].as_str() {
                let answer = ask(&format!("{alias}={example}"));
                assert_ne!(answer.code(), "unknown_parameter", "{} {alias}", route.path);
                let both = ask(&format!("{name}={example}&{alias}={example}"));
                assert_eq!(both.code(), "repeated_parameter", "{} {alias}", route.path);
                aliases.insert(alias.to_owned());
            }
        }
    }
    assert_eq!(aliases, BTreeSet::from(["env".to_owned()]));
}

/// The server has exactly the bounds of numbers that the document has.
#[test]
fn numbers_are_taken_up_to_their_bounds_and_no_further() {
    let (document, world) = (document(), World::new());
    let mut looked_at = 0;
    for route in &ROUTES {
        let (path, role) = (address(&document, route), admitted(route));
        for one in parameters(&document, route, "query") {
            let schema = resolved(&document, &one["schema"]);
            if schema["type"] != "integer" {
                continue;
            }
            looked_at += 1;
            let name = one["name"].as_str().unwrap();
            // Without a required number the request is rejected for that.
            let mut others = String::new();
            for other in parameters(&document, route, "query") {
                if other["required"] == true && other["example"].is_u64() && other["name"] != name {
                    let other =
                        format!("&{}={}", other["name"].as_str().unwrap(), other["example"]);
                    others.push_str(&other);
                }
            }
            let code = |value: i64| {
                let address = format!("{path}?{name}={value}{others}");
                world.ask(route, &address, role, &[], "").code()
            };
            let (least, most) =
                (schema["minimum"].as_i64().unwrap(), schema["maximum"].as_i64().unwrap());
            assert_ne!(code(least), "bad_parameter", "{} {name}", route.path);
            assert_ne!(code(most), "bad_parameter", "{} {name}", route.path);
            assert_eq!(code(least - 1), "bad_parameter", "{} {name}", route.path);
            assert_eq!(code(most + 1), "bad_parameter", "{} {name}", route.path);
        }
    }
    assert!(looked_at >= 7, "{looked_at}");
}

#[test]
fn bodies_are_taken_in_the_types_that_are_listed() {
    let (document, world) = (document(), World::new());
    for route in &ROUTES {
        let Some(content) = operation(&document, route)["requestBody"]["content"].as_object()
        else {
            continue;
        };
        let send = |kind: &str, body: &str| {
            world.ask(route, route.path, admitted(route), &[("content-type", kind)], body)
        };
        for (kind, held) in content {
            let body = match &held["example"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let answer = send(&format!("{kind}; charset=utf-8"), &body);
            let fine = answer.status.is_success() || answer.status == StatusCode::NOT_FOUND;
            assert!(fine, "{} {kind}: {}", route.path, answer.body);
        }
        for kind in ["text/plain", "", "application/jsonx"] {
            let code = send(kind, "{}").code();
            assert_eq!(code, "unsupported_media_type", "{} {kind}", route.path);
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut pending = vec![&document];
    let mut references = 0;
    while let Some(value) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    references += 1;
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                pending.extend(members.values());
            }
            _ => {}
        }
    }
    assert!(references > 100, "{references}");
    for kind in ["headers", "parameters", "responses", "schemas"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let reference = format!("\"#/components/{kind}/{name}\"");
            assert!(COMMITTED.contains(&reference), "{reference} is used nowhere");
        }
    }
}

/// The codes of the problems in a source text: the first string argument of each constructor call.
fn codes_of(source: &str) -> BTreeSet<String> {
    let calls = ["Problem::new(", "Self::new(", "bad_request(", "unavailable("];
    let mut codes = BTreeSet::new();
    for call in calls {
        for arguments in source.split(call).skip(1) {
            let depth = |at: usize| {
                let open = arguments[..at].matches(['(', '{']).count();
                open.checked_sub(arguments[..at].matches([')', '}']).count())
            };
            let Some((at, _)) = arguments.match_indices('"').next() else { continue };
            let is_code = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            let text = arguments[at + 1..].split('"').next().unwrap();
            // An argument of the call itself, not of a nested call.
            if depth(at) == Some(0) && is_code(text) {
                codes.insert(text.to_owned());
            }
        }
    }
    codes
}

/// The codes of problems that are defined in the library.
fn codes_of_the_library() -> impl Iterator<Item = &'static str> {
    let bad = IntentError::Bad { rule: "", field: String::new(), message: String::new() };
    let rejected = [bad, IntentError::TooLarge].map(|rejected| rejected.code());
    let undecided = [DecisionError::NoIntent, DecisionError::TooLate];
    let waiting = DecisionError::NotWaiting(ipse_engine::IntentStanding::Denied);
    let undecided = undecided.into_iter().chain([waiting]).map(DecisionError::code);
    let bad = OutcomeError::Bad { rule: "", field: String::new(), message: String::new() };
    let unreported = [bad, OutcomeError::NotAdmitted(ipse_engine::IntentStanding::Denied)];
    let unreported = unreported.map(|unreported| unreported.code());
    let library = rejected.into_iter().chain(undecided).chain(unreported);
    library.chain([ipse_door::Rule::Conflict.code()])
}

#[test]
fn every_code_is_in_the_document_and_in_the_sources() {
    let mut used = BTreeSet::new();
    let mut pending = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            used.extend(codes_of(&std::fs::read_to_string(path).unwrap()));
        }
    }
    // `rule` follows a call whose code comes from the library. It is not a code.
    used.remove("rule");
    used.extend(codes_of_the_library().map(str::to_owned));
    let document = document();
    let schemas = &document["components"]["schemas"];
    let listed: BTreeSet<String> =
        strings(&schemas["ProblemCode"]["enum"]).into_iter().map(str::to_owned).collect();
    assert_eq!(used, listed);
    // Every code belongs to a response, and every response has only listed codes.
    let mut answered = BTreeSet::new();
    for answer in document["components"]["responses"].as_object().unwrap().values() {
        let Some(held) = answer["content"].get("application/problem+json") else { continue };
        // A plain reference, so that generators make one type of it. The codes are next to it.
        let problem = serde_json::json!({"$ref": "#/components/schemas/Problem"});
        assert_eq!(held["schema"], problem, "{answer}");
        let narrowed = &held["x-ipse-problem"];
        answered.extend(strings(&narrowed["codes"]).into_iter().map(str::to_owned));
        assert!(strings(&narrowed["codes"]).contains(&held["example"]["code"].as_str().unwrap()));
        assert_eq!(narrowed["status"], held["example"]["status"]);
    }
    assert_eq!(answered, listed);
}

/// Generators fail at these keywords, or skip schemas that contain them.
#[test]
fn requests_have_only_keywords_that_generators_support() {
    let document = document();
    let mut pending: Vec<(String, &Value)> = Vec::new();
    for route in &ROUTES {
        let body = &operation(&document, route)["requestBody"];
        pending.push((route.path.to_owned(), body));
    }
    let mut seen = BTreeSet::new();
    while let Some((place, value)) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (place.clone(), item))),
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|(name, _)| *name != "example") {
                    let banned = ["not", "propertyNames", "allOf", "oneOf"];
                    assert!(!banned.contains(&name.as_str()), "{place}: {name}");
                    pending.push((format!("{place}/{name}"), member));
                }
                if let Some(Value::String(reference)) = members.get("$ref")
                    && seen.insert(reference)
                {
                    pending.push((reference.clone(), resolved(&document, value)));
                }
            }
            _ => {}
        }
    }
    assert!(seen.len() >= 6, "{seen:?}");
}

/// One member selects the schema of a fact, and each branch is a complete schema.
#[test]
fn a_discriminator_selects_the_kind_of_a_fact() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let kinds: BTreeSet<&str> = ipse_core::FactKind::ALL.map(|kind| kind.name()).into();
    for name in ["Fact", "ExplainedFact"] {
        let chosen = &schemas[name]["discriminator"];
        assert_eq!(chosen["propertyName"], "fact_kind");
        let mapping = chosen["mapping"].as_object().unwrap();
        assert_eq!(mapping.keys().map(String::as_str).collect::<BTreeSet<_>>(), kinds, "{name}");
        let branches = schemas[name]["oneOf"].as_array().unwrap();
        assert_eq!(branches.len(), kinds.len());
        for (kind, reference) in mapping {
            assert!(branches.iter().any(|one| one["$ref"] == *reference), "{reference}");
            let branch = document.pointer(&reference.as_str().unwrap()[1..]).unwrap();
            assert_eq!(branch["properties"]["fact_kind"]["const"], **kind);
            assert!(strings(&branch["required"]).contains(&"fact_kind"), "{reference}");
        }
    }
}

#[test]
fn what_gates_say_is_listed() {
    let document = document();
    let listed = |pointer: &str| {
        let all = strings(document.pointer(&format!("/components/schemas/{pointer}")).unwrap());
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let codes: Vec<_> = ipse_gates::Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(listed("Finding/properties/code/enum"), codes);
    let rulings = ipse_gates::Ruling::ALL.map(|ruling| ruling.name());
    assert_eq!(listed("Verdict/enum"), rulings);
    let standings = ipse_engine::IntentStanding::ALL.map(|standing| standing.name());
    assert_eq!(listed("IntentStanding/enum"), standings);
}

#[test]
fn the_rules_of_the_door_are_listed() {
    // Only the readers of files report these.
    let elsewhere = ["wrong_signature", "truncated"];
    let rules = ipse_door::Rule::ALL.iter().map(|rule| rule.code());
    let rules: BTreeSet<&str> = rules.filter(|code| !elsewhere.contains(code)).collect();
    let document = document();
    let listed = strings(&document["components"]["schemas"]["Rule"]["enum"]);
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), rules);
}

/// For every caller and every response.
#[test]
fn every_answer_says_how_it_may_be_kept_and_read() {
    let (document, world) = (document(), World::new());
    let mut answers = vec![world.get("/nowhere", None, &[]), world.send("DELETE", "/version")];
    for route in &ROUTES {
        let roles = Role::ALL.into_iter().map(Some).chain([None]);
        answers
            .extend(roles.map(|role| world.ask(route, &address(&document, route), role, &[], "")));
    }
    let mut statuses = BTreeSet::new();
    for answer in &answers {
        statuses.insert(answer.status.as_u16());
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{}", answer.body);
        let kept = answer.header("cache-control");
        let known = ["no-store", "no-cache", "private, no-cache", "public, no-cache"];
        assert!(known.contains(&kept), "{kept:?}: {}", answer.body);
        let a_problem = !answer.status.is_success();
        assert!(!a_problem || kept == "no-store", "{kept:?}: {}", answer.body);
    }
    for status in [200, 401, 403, 404, 405, 415, 503] {
        assert!(statuses.contains(&status), "{status} was not tested");
    }
}

#[test]
fn the_document_and_its_page_are_compressed_for_clients_that_take_it() {
    use std::io::Read;
    let world = World::new();
    let get =
        |path: &str, encodings: &str| world.get(path, None, &[("accept-encoding", encodings)]);
    for path in ["/openapi.json", "/docs"] {
        let plain = world.get(path, None, &[]);
        assert_eq!(plain.header("vary"), "accept-encoding");
        for encodings in ["gzip", "br, GZIP;q=0.5", "deflate, gzip"] {
            let answer = get(path, encodings);
            assert_eq!(answer.header("content-encoding"), "gzip", "{path} {encodings}");
            assert_eq!(answer.header("vary"), "accept-encoding");
            assert!(answer.bytes.len() < plain.bytes.len() / 4, "{path}");
            let mut unfolded = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(&answer.bytes[..]);
            decoder.read_to_end(&mut unfolded).unwrap();
            assert!(unfolded == plain.bytes, "{path}");
            let tag = answer.header("etag").to_owned();
            assert_ne!(tag, plain.header("etag"), "the two forms have different tags");
            let headers = [("accept-encoding", encodings), ("if-none-match", &tag)];
            assert_eq!(world.get(path, None, &headers).status, StatusCode::NOT_MODIFIED);
        }
        for encodings in ["", "identity", "br", "gzip;q=0", "gzip; q=0.0, br", "x-gzipped"] {
            let answer = get(path, encodings);
            assert_eq!(answer.header("content-encoding"), "", "{path} {encodings}");
            assert!(answer.bytes == plain.bytes, "{path} {encodings}");
        }
    }
}

/// Members that every problem must have.
#[test]
fn answers_that_are_no_success_are_problems_with_an_id() {
    let world = World::new();
    let fact = "/api/agent/facts";
    let asked = [
        (world.get("/api/agent/nothing", None, &[]), 404),
        (world.get(&format!("{fact}/%FF"), Some(Role::Planner), &[]), 404),
        (world.get(&format!("{fact}/%FF/explanation"), Some(Role::Planner), &[]), 404),
        (world.get(&format!("{fact}/fa_1"), Some(Role::Planner), &[]), 404),
        (world.get("/version?x=1", None, &[]), 400),
        (world.send("DELETE", "/version"), 405),
        (world.send("PATCH", "/api/agent/events"), 405),
    ];
    for (answer, status) in asked {
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.problem()["request_id"], answer.header("x-request-id"));
        assert_eq!(answer.problem()["status"], status);
    }
    let allowed = |answer: Answer| answer.header("allow").to_owned();
    assert_eq!(allowed(world.send("DELETE", "/version")), "GET, HEAD");
    assert_eq!(allowed(world.send("PATCH", "/api/agent/events")), "POST");
}

#[test]
fn the_page_shows_every_route_and_loads_nothing() {
    let (document, world) = (document(), World::new());
    let page = world.get("/docs", None, &[]);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let policy: BTreeMap<&str, &str> = page
        .header("content-security-policy")
        .split("; ")
        .map(|rule| rule.split_once(' ').unwrap())
        .collect();
    assert_eq!(policy["default-src"], "'none'");
    let allowed = |value: &&str| ["'none'", "'unsafe-inline'", "data:"].contains(value);
    assert!(policy.values().all(allowed), "{policy:?}");
    for route in &ROUTES {
        let id = operation(&document, route)["operationId"].as_str().unwrap();
        assert_eq!(page.body.matches(&format!("<article id=\"{id}\">")).count(), 1, "{id}");
        assert!(page.body.contains(&format!("<code>{}</code></h3>", route.path)), "{id}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(page.body.contains(&format!("<article id=\"{name}\">")), "{name}");
    }
    for link in page.body.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(page.body.contains(&format!("id=\"{id}\"")), "#{id} leads nowhere");
    }
    for word in ["<script", "http://", "https://", "@import", "url(", " src=", "javascript:"] {
        assert!(!page.body.contains(word), "{word}");
    }
}
