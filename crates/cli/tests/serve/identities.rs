//! Many agents on one server: each sees its own data, none waits for another, and a revoked token
//! soon stops working.

use super::client::Request;
use super::events::{LINES, ONE, event, lines};
use super::server::{Agent, Server, one_agent, token, wait_until};
use super::store::Store;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest time for a read under any load. It is generous, because machines are slow.
const SLOW: Duration = Duration::from_secs(5);

/// Reads as an agent in every way, and checks that no read takes long.
#[track_caller]
fn read_all(server: &Server, agent: &Agent) -> Duration {
    let mut slowest = Duration::ZERO;
    for (path, token) in [
        ("/api/agent/semantic", &agent.planner),
        ("/api/agent/identity", &agent.producer),
        ("/api/agent/log", &agent.operator),
        ("/api/agent/passes", &agent.auditor),
        ("/health/ready", &agent.planner),
    ] {
        let since = Instant::now();
        server.get(path, token).ok();
        slowest = slowest.max(since.elapsed());
    }
    assert!(slowest < SLOW, "{slowest:?}");
    slowest
}

fn append(server: &Server, agent: &Agent, id: &str) {
    let request = Request::events(ONE, event("leg", id, "walk", true)).token(&agent.producer);
    server.ask(&request).is(201);
}

fn two_agents() -> (Store, Agent, Agent) {
    let store = Store::nothing();
    let busy = Agent::register(&store, "ward-robot-01");
    let quiet = Agent::register(&store, "ward-robot-02");
    (store, busy, quiet)
}

fn many(from: u32, count: u32) -> Vec<String> {
    let skill = |n: u32| format!("skill{}", n % 500);
    (from..from + count).map(|n| event("arm", &n.to_string(), &skill(n), n % 3 > 0)).collect()
}

#[test]
fn each_agent_is_itself() {
    let store = Store::nothing();
    let names: Vec<String> = (1..=12).map(|n| format!("ward-robot-{n:02}")).collect();
    let agents: Vec<Agent> = names.iter().map(|name| Agent::register(&store, name)).collect();
    let server = Server::with(&store, &["--pass-every", "1"]);
    std::thread::scope(|scope| {
        for (n, agent) in agents.iter().enumerate() {
            let server = &server;
            scope.spawn(move || {
                for id in 0..=n {
                    // The same names in every log.
                    let event = event("arm", &id.to_string(), &format!("skill{n}"), true);
                    let request = Request::events(ONE, event).token(&agent.producer);
                    server.ask(&request).is(201);
                }
            });
        }
    });
    for (n, agent) in agents.iter().enumerate() {
        let json = server.get("/api/agent/identity", &agent.planner).ok().json();
        assert_eq!(json["identity_hash"], agent.identity.as_str());
        assert_eq!(json["manifest"]["agent_id"], names[n].as_str());
        assert_eq!(json["events"], n + 1);
        let json = server.get("/api/agent/semantic", &agent.planner).ok().json();
        let [fact] = &json["facts"].as_array().unwrap()[..] else { panic!("{json}") };
        assert_eq!(fact["fact_key"], format!("skill{n} + cup + ward"));
        assert_eq!(fact["n_observations"], n + 1);
        agent.run(&store, &["verify"]).fine();
    }
}

#[test]
fn an_agent_that_comes_later_is_served_soon() {
    let (store, first) = one_agent();
    let server = Server::start(&store);
    let later = Agent::register(&store, "ward-robot-02");
    wait_until("the new agent is served", || {
        let answer = server.get("/api/agent/identity", &later.planner);
        assert!(matches!(answer.status, 200 | 401 | 503), "{answer:?}");
        answer.status == 200
    });
    append(&server, &later, "1");
    let json = server.get("/api/agent/identity", &later.planner).ok().json();
    assert_eq!(
        (&json["events"], &json["identity_hash"]),
        (&1.into(), &later.identity.as_str().into())
    );
    assert_eq!(server.get("/api/agent/identity", &first.planner).ok().json()["events"], 0);
}

#[test]
fn a_long_import_of_one_does_not_hold_up_another() {
    let (store, busy, quiet) = two_agents();
    let server = Server::start(&store);
    let file = store.write("many.jsonl", lines(&many(0, 200_000)));
    let done = AtomicBool::new(false);
    let (mut rounds, mut slowest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            busy.run(&store, &["import", &file]).fine();
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            slowest = slowest.max(read_all(&server, &quiet));
            slowest = slowest.max(read_all(&server, &busy));
            append(&server, &quiet, &rounds.to_string());
            rounds += 1;
        }
    });
    eprintln!("{rounds} rounds, the slowest read took {slowest:?}");
    let json = server.get("/api/agent/identity", &busy.planner).ok().json();
    assert_eq!(json["events"], 200_000);
    let json = server.get("/api/agent/identity", &quiet.planner).ok().json();
    assert_eq!(json["events"], rounds);
}

#[test]
fn many_appends_and_a_long_pass_of_one_do_not_hold_up_another() {
    let (store, busy, quiet) = two_agents();
    // The pass runs at the end, over everything.
    let server = Server::with(&store, &["--pass-every", "1000000", "--pass-quiet", "3600000"]);
    let done = AtomicBool::new(false);
    let (mut rounds, mut slowest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        let (server, busy, finished) = (&server, &busy, &done);
        scope.spawn(move || {
            for part in 0..8 {
                let body = lines(&many(part * 10_000, 10_000));
                let request = Request::events(LINES, body).token(&busy.producer);
                assert_eq!(server.ask(&request).ok().json()["appended"], 10_000);
            }
            let fold = Request::new("POST", "/api/agent/consolidate").token(&busy.operator);
            assert_eq!(server.ask(&fold).ok().json()["pass"]["events_processed"], 80_000);
            finished.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            slowest = slowest.max(read_all(server, &quiet));
            append(server, &quiet, &rounds.to_string());
            rounds += 1;
        }
    });
    eprintln!("{rounds} rounds, the slowest read took {slowest:?}");
}

/// Another process locks the store for writing. Reads are not affected, also with a token that was
/// not used for long. Appends wait and are not falsely acknowledged.
#[test]
fn a_writer_elsewhere_does_not_hold_up_reads() {
    let (store, busy, quiet) = two_agents();
    let server = Server::start(&store);
    let db = rusqlite::Connection::open(&store.path).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let appended = scope.spawn(|| {
            let event = event("arm", "waited", "grasp", true);
            server.ask(&Request::events(ONE, event).token(&busy.producer))
        });
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            read_all(&server, &quiet);
            read_all(&server, &busy);
        }
        assert!(!appended.is_finished(), "nothing is durable while another holds the store");
        db.execute_batch("ROLLBACK").unwrap();
        appended.join().unwrap().is(201);
    });
    assert!(busy.run(&store, &["log", "--json"]).fine().out.contains("\"id\":\"waited\""));
}

#[test]
fn a_revoked_token_is_soon_worth_nothing() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let args = ["--role", "planner", "--name", "short"];
    let short = token(&store, &agent.identity, &args);
    let mut kept = server.connect();
    let request = Request::get("/api/agent/semantic").token(&short);
    for _ in 0..20 {
        kept.ask(&request).unwrap().ok();
    }
    store.run(&["token", "revoke", "short"]).fine();
    let since = Instant::now();
    // On a connection that was accepted before, and on new ones.
    wait_until("it is turned away", || kept.ask(&request).unwrap().status == 401);
    assert!(since.elapsed() < SLOW, "{:?}", since.elapsed());
    server.ask(&request).problem(401, "unauthorized");
    for _ in 0..20 {
        kept.ask(&request).unwrap().is(401);
    }
    server.get("/api/agent/semantic", &agent.planner).ok();
}

#[test]
fn a_use_is_noted_once_a_minute() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let args = ["--role", "planner", "--name", "used"];
    let used = token(&store, &agent.identity, &args);
    let last_used = || {
        let all = store.run(&["token", "list", "--json"]).fine().json();
        let row = all.as_array().unwrap().iter().find(|row| row["name"] == "used").cloned();
        row.unwrap().get("last_used").cloned()
    };
    assert_eq!(last_used(), None);
    server.get("/api/agent/semantic", &used).ok();
    wait_until("its use is noted", || last_used().is_some());
    let first: Option<Value> = last_used();
    // Longer than a token is cached.
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        server.get("/api/agent/semantic", &used).ok();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(last_used(), first, "within a minute it is noted once");
    server.stop();
    assert_eq!(last_used(), first);
}
