//! Failing disks and missing stores: no false success is reported, reading works as long as it can,
//! and the server recovers where possible.

use super::client::{Answer, Request};
use super::events::{ONE, event};
use super::server::{Agent, Server, one_agent, serve, wait_until};
use super::store::vector;
use std::process::Command;

fn post(server: &Server, agent: &Agent, number: u32) -> Answer {
    // Long ids, so that few events fill a file.
    let id = format!("{number:0200}");
    server.ask(&Request::events(ONE, event("arm", &id, "grasp", true)).token(&agent.producer))
}

/// Limits the size of files for this process.
fn may_grow_to(server: &Server, bytes: &str) {
    let limit = format!("--fsize={bytes}:unlimited");
    let done = Command::new("prlimit").args(["--pid", &server.pid().to_string(), &limit]).status();
    assert!(done.unwrap().success());
}

#[test]
fn a_disk_that_was_full_is_written_again() {
    let (store, agent) = one_agent();
    // An ignored signal stays ignored, so writing too much is an error and does not kill it.
    let command = serve(&store, &["--listen", "127.0.0.1:0"]);
    let server = Server::prepared(&command, "trap '' XFSZ");
    let mut acknowledged: Vec<u32> = (0..20).collect();
    for number in &acknowledged {
        post(&server, &agent, *number).is(201);
    }
    may_grow_to(&server, "4096");
    let mut number = 20;
    let failed = loop {
        let answer = post(&server, &agent, number);
        if answer.status != 201 {
            break answer;
        }
        acknowledged.push(number);
        number += 1;
        assert!(number < 10_000, "it never fails");
    };
    failed.problem(503, "not_durable");
    server.get("/health/ready", "").problem(503, "not_ready");
    server.get("/health/live", "").ok();
    server.get("/api/agent/semantic", &agent.planner).ok();
    may_grow_to(&server, "unlimited");
    wait_until("it takes events again", || post(&server, &agent, 10_000).status < 300);
    wait_until("it is ready again", || server.get("/health/ready", "").status == 200);
    acknowledged.push(10_000);
    server.stop();
    let log = store.run(&["log", "--json"]).fine().out;
    for number in acknowledged {
        assert!(log.contains(&format!("\"id\":\"{number:0200}\"")), "{number} is lost");
    }
    store.run(&["verify"]).fine();
}

#[test]
fn a_store_that_is_gone_or_replaced_is_served_no_longer() {
    for replaced in [false, true] {
        let (store, agent) = one_agent();
        let mut server = Server::start(&store);
        post(&server, &agent, 1).is(201);
        let aside = store.directory.path().join("aside.db");
        std::fs::rename(&store.path, &aside).unwrap();
        if replaced {
            std::fs::copy(&aside, &store.path).unwrap();
        }
        let (status, words) = server.ended();
        assert_eq!(status.code(), Some(2), "{words}");
        assert!(words.contains("was removed, replaced or emptied while it was open"), "{words}");
    }
}

/// The write-ahead log is removed while the server runs: it acknowledges nothing more and ends.
/// Everything that it acknowledged is in the store.
#[test]
fn a_server_whose_write_ahead_log_is_removed_acknowledges_nothing_more() {
    let (store, agent) = one_agent();
    let mut server = Server::start(&store);
    for number in 0..20 {
        post(&server, &agent, number).is(201);
    }
    let wal = store.path.with_extension("db-wal");
    std::fs::remove_file(&wal).unwrap();
    let next = Request::events(ONE, event("arm", "next", "grasp", true)).token(&agent.producer);
    if let Ok(answer) = server.connect().ask(&next) {
        answer.is(503);
    }
    let (status, words) = server.ended();
    assert_eq!(status.code(), Some(2), "{words}");
    let gone = format!("{} was removed, replaced or emptied while it was open", wal.display());
    assert!(words.contains(&gone), "{words}");
    let log = store.run(&["log", "--json"]).fine().out;
    for number in 0..20 {
        assert!(log.contains(&format!("\"id\":\"{number:0200}\"")), "{number} is lost");
    }
    store.run(&["verify"]).fine();
}

/// The same if a file is truncated in place: the next append or the next check notices it.
#[test]
fn a_server_whose_files_are_emptied_acknowledges_nothing_more() {
    for suffix in ["", "-wal"] {
        let (store, agent) = one_agent();
        let mut server = Server::start(&store);
        post(&server, &agent, 1).is(201);
        let path = store.path.with_extension(format!("db{suffix}"));
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        if suffix == "-wal" {
            let next = event("arm", "next", "grasp", true);
            let next = Request::events(ONE, next).token(&agent.producer);
            if let Ok(answer) = server.connect().ask(&next) {
                answer.is(503);
            }
        }
        let (status, words) = server.ended();
        assert_eq!(status.code(), Some(2), "{words}");
        let gone = format!("{} was removed, replaced or emptied", path.display());
        assert!(words.contains(&gone), "{words}");
    }
}

/// A log line that cannot be written fails no request and loses no event.
#[test]
fn a_server_that_cannot_log_still_serves() {
    let (store, agent) = one_agent();
    let mut server = Server::unheard(&store, &["--log-level", "debug", "--pass-every", "1"]);
    assert!(server.is_alive(), "it ended: {:?}", server.ended().0);
    for number in 0..20 {
        post(&server, &agent, number).is(201);
    }
    server.get("/api/agent/semantic", &agent.planner).ok();
    server.get("/api/agent/semantic", "no token").problem(401, "unauthorized");
    server.get("/health/ready", "").ok();
    server.stop();
    let log = store.run(&["log", "--json"]).fine().out;
    assert_eq!(log.lines().filter(|line| line.contains("execution_result")).count(), 20);
}

/// A reader holds forgotten content: it is erased automatically when the reader is gone.
#[test]
fn what_could_not_be_erased_is_erased_later() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let canary = event("arm", "canary-of-the-erased", "grasp", true);
    let sent = server.ask(&Request::events(ONE, canary).token(&agent.producer)).is(201).json();
    let mut reader = Command::new("sqlite3")
        .args(["-readonly", store.path.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = reader.stdin.take().unwrap();
    std::io::Write::write_all(&mut questions, b"BEGIN; SELECT count(*) FROM event;\n").unwrap();
    let mut answer = [0; 1];
    std::io::Read::read_exact(reader.stdout.as_mut().unwrap(), &mut answer).unwrap();
    let body = format!("{{\"event_refs\":[{}]}}", sent["event_ref"]);
    let forget = Request::post("/api/agent/forget", "application/json", body);
    let done = server.ask(&forget.token(&agent.operator)).ok().json();
    assert_eq!((&done["forgotten"], &done["erase_pending"]), (&1.into(), &true.into()));
    let is_there = || {
        let wal = store.path.with_extension("db-wal");
        [&store.path, &wal].into_iter().any(|path| {
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(20).any(|some| some == b"canary-of-the-erased")
        })
    };
    assert!(is_there(), "as long as a reader holds it");
    drop(questions);
    reader.wait().unwrap();
    wait_until("it is erased", || !is_there());
}

#[test]
fn damage_does_not_look_as_if_a_retry_helped() {
    let (store, agent) = one_agent();
    store.run(&["import", vector("facts/glass_cup.events.jsonl").to_str().unwrap()]).fine();
    let facts = store.run(&["facts", "--json"]).fine().json();
    let id = facts["facts"][0]["fact_id"].as_str().unwrap().to_owned();
    let server = Server::start(&store);
    let path = format!("/api/agent/facts/{id}");
    server.get(&path, &agent.planner).ok();
    let db = rusqlite::Connection::open(&store.path).unwrap();
    db.execute("UPDATE fact SET value = '{}'", []).unwrap();
    let answer = server.get(&path, &agent.planner);
    assert_eq!(answer.status, 500, "{}", answer.text());
    assert_eq!(answer.json()["code"], "store_damaged");
    assert!(answer.header("retry-after").is_none(), "a retry never helps");
}

#[test]
fn unknown_rules_do_not_look_as_if_a_retry_helped() {
    let (store, agent) = one_agent();
    store.run(&["import", vector("facts/glass_cup.events.jsonl").to_str().unwrap()]).fine();
    let db = rusqlite::Connection::open(&store.path).unwrap();
    db.execute("UPDATE pass SET rule_version = 'v9'", []).unwrap();
    let server = Server::start(&store);
    let answer = server.get("/api/agent/semantic?as_of=3", &agent.planner);
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.json()["code"], "unknown_rules");
    assert!(answer.json()["detail"].as_str().unwrap().contains("rule set `v9`"));
    assert!(answer.header("retry-after").is_none(), "a retry never helps");
}
