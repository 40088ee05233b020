//! A store that is older than its last signed tree head is not served. If it gets older while it is
//! served, nothing is appended until the newer one is back.

use super::client::{Answer, Request};
use super::events::{ONE, event};
use super::gates::proposal;
use super::server::{ACTS, Agent, Server, one_agent, serve, wait_until};
use super::store::Store;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A little longer than the server's interval for checking its store.
const REFRESH: Duration = Duration::from_millis(600);

fn post(server: &Server, agent: &Agent, id: &str) -> Answer {
    server.ask(&Request::events(ONE, event("arm", id, "grasp", true)).token(&agent.producer))
}

/// Runs a line of the SQLite shell on the store, as another process.
fn shell(store: &Store, line: &str) {
    let mut command = Command::new("sqlite3");
    let done = command.args(["-cmd", ".timeout 10000"]).arg(&store.path).arg(line).output();
    let done = done.unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
}

/// A copy of the store as it is now.
fn copy(store: &Store, name: &str) -> PathBuf {
    let path = store.directory.path().join(name);
    shell(store, &format!("VACUUM INTO '{}'", path.display()));
    path
}

/// Puts a copy in place of a store that no process has open.
fn put_back(store: &Store, copy: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(store.path.with_extension(format!("db{suffix}")));
    }
    std::fs::copy(copy, &store.path).unwrap();
}

fn entries(store: &Store) -> usize {
    store.run(&["log", "--json"]).fine().out.lines().count()
}

#[test]
fn an_older_copy_is_not_served() {
    let (store, _) = one_agent();
    store.run(&["record", "--zone", "z", "--failed"]).fine();
    let older = copy(&store, "older.db");
    store.run(&["record", "--zone", "z", "--failed"]).fine();
    store.run(&["tree-head", "--sign"]).fine();
    put_back(&store, &older);
    let log_key = store.path.with_extension("db.keys").join("log.key");
    let away = store.directory.path().join("away");
    let refused = |words: &str| {
        let ended = serve(&store, &["--listen", "127.0.0.1:0"]).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.contains("restore the newer store"), "{said}");
    };
    // Every `record` appends an event and its pass.
    let [first, both, all] = [2, 4, 6].map(|more| usize::from(ACTS) + more);
    let behind = format!("a tree head over {both} entries was signed, and the store has {first}");
    refused(&behind);
    assert_eq!(entries(&store), first, "nothing was appended");
    // The head is compared also without the key that signed it.
    std::fs::rename(&log_key, &away).unwrap();
    refused(&behind);
    std::fs::rename(&away, &log_key).unwrap();
    // A command without keys appends: when the log is as long again, it is another log.
    for _ in 0..2 {
        let nowhere = store.directory.path().join("nowhere");
        let args = ["--key-dir", nowhere.to_str().unwrap(), "record", "--zone", "y", "--failed"];
        store.run(&args).fine();
    }
    refused(&format!("the first {both} entries are not those that were signed"));
    assert_eq!(entries(&store), all);
}

/// Every append is rejected with its own code and without `Retry-After`; reading continues. The
/// server logs it once.
#[test]
fn a_store_that_gets_older_takes_nothing_until_the_newer_one_is_back() {
    let store = Store::nothing();
    let agent = Agent::bound(&store, "ward-robot-01");
    let server = Server::gated(&store, &["--pass-every", "1"]);
    let waits = server.ask(&proposal(31).token(&agent.planner)).is(201).json();
    let older = copy(&store, "older.db");
    post(&server, &agent, "1").is(201);
    store.run(&["tree-head", "--sign"]).fine();
    let newer = copy(&store, "newer.db");
    let before = entries(&store);

    shell(&store, &format!(".restore '{}'", older.display()));
    wait_until("it is not ready", || server.get("/health/ready", "").status == 503);
    server.get("/health/ready", "").problem(503, "log_rolled_back");
    let intents = format!("/api/agent/intents/{}", waits["event_ref"].as_str().unwrap());
    let confirm = Request::new("POST", &format!("{intents}/confirm"));
    for _ in 0..3 {
        for answer in [
            post(&server, &agent, "2"),
            server.ask(&proposal(25).token(&agent.planner)),
            server.ask(&confirm.clone().token(&agent.operator)),
            server.ask(&Request::new("POST", "/api/agent/consolidate").token(&agent.operator)),
        ] {
            assert_eq!(answer.header("retry-after"), None);
            answer.problem(503, "log_rolled_back");
        }
    }
    server.get("/api/agent/semantic", &agent.planner).ok();
    server.get("/api/agent/log", &agent.operator).ok();
    server.get(&intents, &agent.planner).ok();
    server.get("/health/live", "").ok();
    assert!(entries(&store) < before, "nothing was appended to the older one");

    shell(&store, &format!(".restore '{}'", newer.display()));
    wait_until("it is ready again", || server.get("/health/ready", "").status == 200);
    post(&server, &agent, "2").is(201);
    server.ask(&confirm.token(&agent.operator)).ok();
    let words = server.stop();
    assert_eq!(words.matches("was rolled back").count(), 1, "{words}");
    assert_eq!(words.matches("tree head was not signed").count(), 0, "{words}");
    assert_eq!(words.matches("continues the last signed tree head again").count(), 1, "{words}");
    store.run(&["verify"]).fine();
}

/// An idle server notices it too, when it checks the store. While it waits it compares again also
/// if only the head next to the keys was put back.
#[test]
fn a_server_at_rest_compares_the_log_by_itself() {
    let store = Store::nothing();
    let agent = Agent::bound(&store, "ward-robot-01");
    let server = Server::gated(&store, &["--pass-every", "1000", "--pass-quiet", "86400000"]);
    post(&server, &agent, "1").is(201);
    store.run(&["tree-head", "--sign"]).fine();
    let heads = store.path.with_extension("db.keys").join("heads");
    let head = std::fs::read_dir(&heads).unwrap().next().unwrap().unwrap().path();
    let older = (copy(&store, "older.db"), std::fs::read(&head).unwrap());
    post(&server, &agent, "2").is(201);
    server.ask(&Request::new("POST", "/api/agent/consolidate").token(&agent.operator)).ok();
    wait_until("the pass is signed", || std::fs::read(&head).unwrap() != older.1);
    shell(&store, &format!(".restore '{}'", older.0.display()));
    wait_until("it is not ready", || server.get("/health/ready", "").status == 503);
    server.get("/health/ready", "").problem(503, "log_rolled_back");
    // No other process writes to the store between the last check and the restored head.
    std::thread::sleep(2 * REFRESH);
    server.get("/health/ready", "").problem(503, "log_rolled_back");
    std::fs::write(&head, &older.1).unwrap();
    wait_until("it is ready again", || server.get("/health/ready", "").status == 200);
    post(&server, &agent, "2").is(201);
}
