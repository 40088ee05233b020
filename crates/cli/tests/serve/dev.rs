//! `serve --dev` and `GET /`: what a newcomer sees first.

use super::client::Request;
use super::events::event;
use super::server::{Server, serve, wait_until};
use super::store::Store;
use std::collections::BTreeMap;
use std::fs::File;

const ROLES: [&str; 5] = ["planner", "producer", "operator", "auditor", "observer"];

/// A server of `--dev`, and the lines of its standard output.
fn started(store: &Store) -> (Server, String) {
    let out = store.directory.path().join("out.txt");
    let mut command = serve(store, &["--dev", "--listen", "127.0.0.1:0"]);
    command.stdout(File::create(&out).unwrap());
    let server = Server::of(command);
    let read = || std::fs::read_to_string(&out).unwrap();
    wait_until("the tokens are printed", || read().contains("curl"));
    (server, read())
}

/// The variables that the lines set.
fn variables(out: &str) -> BTreeMap<String, String> {
    let lines = out.lines().filter(|line| !line.starts_with('#'));
    let set = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap().split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    lines.map(set).collect()
}

#[test]
fn tokens_of_every_role_work_and_are_nowhere_in_the_files() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let (server, out) = started(&store);
    let set = variables(&out);
    assert_eq!(set["IPSE_URL"], format!("http://{}", server.address), "{out}");
    assert!(out.contains("/docs"), "{out}");
    let token = |role: &str| set[&format!("IPSE_{}", role.to_uppercase())].clone();
    for (role, path) in [
        ("planner", "/api/agent/grounding"),
        ("operator", "/api/agent/passes"),
        ("auditor", "/api/audit/tree-head"),
        ("observer", "/metrics"),
    ] {
        server.get(path, &token(role)).ok();
    }
    server.get("/api/audit/bundle", &token("planner")).problem(403, "forbidden");
    let line = event("arm", "1", "grasp", true);
    let sent = Request::events("application/json", line).token(&token("producer"));
    server.ask(&sent).is(201);
    let words = server.stop();
    for file in std::fs::read_dir(store.directory.path()).unwrap().map(|it| it.unwrap().path()) {
        if !file.is_file() || file.ends_with("out.txt") {
            continue;
        }
        let bytes = std::fs::read(&file).unwrap();
        for role in ROLES {
            let text = token(role);
            let secret = &text[text.len() - 43..];
            let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|it| it == needle);
            assert!(!holds(secret.as_bytes()), "{} holds the token: {role}", file.display());
            let hash = ipse_core::sha256(&[text.as_bytes()]);
            assert!(!holds(&hash), "{} holds the hash: {role}", file.display());
            assert!(!words.contains(secret), "the log holds the token: {role}");
        }
    }
    assert_eq!(store.run(&["token", "list", "--json"]).out.trim(), "[]", "none is stored");
    // The tokens end with the process.
    let again = Server::start(&store);
    let refused = again.get("/api/agent/grounding", &token("planner"));
    refused.problem(401, "unauthorized");
}

#[test]
fn the_root_says_what_is_here_to_people_and_to_programs() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let server = Server::start(&store);
    let json = server.ask(&Request::get("/")).ok();
    assert_eq!(json.header("content-type"), Some("application/json"));
    let routes = json.json()["routes"].as_array().unwrap().clone();
    let forget = routes.iter().find(|it| it["path"] == "/api/agent/forget").unwrap();
    assert_eq!(forget["roles"], serde_json::json!(["operator"]));
    let page = server.ask(&Request::get("/").header("Accept", "text/html,*/*;q=0.8")).ok();
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let page = page.text();
    assert!(page.contains("href=\"/docs\"") && page.contains("/api/agent/forget"), "{page}");
    for text in [&page, &json.text()] {
        assert!(
            !text.contains("b113b1a4") && !text.contains("ipse_"),
            "no agent, no token: {text}"
        );
    }
    server.ask(&Request::get("/?x=1")).problem(400, "unknown_parameter");
}
