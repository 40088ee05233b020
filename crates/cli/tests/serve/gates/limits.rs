//! Rate limits: of each token by the server, of each skill by its policy.

use super::{Gated, codes, flags, grasp};
use crate::client::{Answer, Request};
use crate::server::{ACTS, GATE_FILES, Server, token};
use serde_json::json;

#[test]
fn a_token_proposes_at_its_pace_and_no_other_waits_for_it() {
    let store = crate::store::Store::nothing();
    let agent = crate::server::Agent::bound(&store, "ward-robot-01");
    let other = token(&store, &agent.identity, &["--role", "planner"]);
    let server = Server::gated(&store, &["--intent-rate", "60"]);
    let ask = |token: &str| server.ask(&super::proposal(25).token(token));
    let answers: Vec<_> = (0..20).map(|_| ask(&agent.planner)).collect();
    let through = answers.iter().filter(|answer| answer.status == 201).count();
    // A sixth of a minute's at once, and one more for each second that the requests took.
    assert!((10..20).contains(&through), "{through}");
    let turned = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(turned.json()["code"], "too_fast");
    let wait: u64 = turned.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait), "{wait}");
    ask(&other).is(201);
    let log = server.get("/api/agent/log?limit=1000", &agent.auditor).ok().json();
    // Every token is created by an act: the four of the agent, and the other planner's.
    let intents = log["events"].as_array().unwrap().len() - usize::from(ACTS + 1);
    assert!((through + 1..=through + 3).contains(&intents), "what is turned away stores nothing");
}

#[test]
fn the_limit_of_a_skill_outlives_the_server() {
    let change = |field: &str, text: String| match field {
        "policy" => text.replace("intents = 600", "intents = 3"),
        _ => text,
    };
    let mut gated = Gated::changed(change, &[]);
    // A denied intent does not count; one that waits for a person does.
    for (force, verdict) in [
        (25, "admitted"),
        (100, "denied"),
        (0, "clamped"),
        (35, "needs_confirmation"),
        (25, "denied"),
        (25, "denied"),
    ] {
        let answer = gated.propose(&grasp(force));
        assert_eq!(answer["verdict"], verdict, "{force}: {answer}");
    }
    let limited = gated.propose(&grasp(25));
    assert_eq!(codes(&limited, "policy"), ["rate_limited"]);
    let other = json!({ "skill_id": "manipulation.place", "environment": "ward3",
                        "params": { "height_m": 1 } });
    assert_eq!(gated.propose(&other)["verdict"], "admitted", "another skill has its own");
    restart(&mut gated);
    assert_eq!(codes(&gated.propose(&grasp(25)), "policy"), ["rate_limited"], "after a restart");
}

fn restart(gated: &mut Gated) {
    let files = GATE_FILES.map(|(field, _)| {
        let path = gated.store.directory.path().join(format!("{field}.toml"));
        path.to_str().unwrap().to_owned()
    });
    gated.server = {
        let Gated { store, server, .. } = &gated;
        server.signal("TERM");
        crate::server::wait_until("it listens no more", || {
            std::net::TcpStream::connect(server.address).is_err()
        });
        Server::with(store, &flags(&files))
    };
}

/// A server counts an intent that it has read, forgotten or not. A server that starts later does
/// not count a forgotten one.
#[test]
fn a_forgotten_intent_counts_until_the_server_restarts() {
    let change = |field: &str, text: String| match field {
        "policy" => text.replace("intents = 600", "intents = 3"),
        _ => text,
    };
    let mut gated = Gated::changed(change, &[]);
    let through = [(); 3].map(|()| gated.propose(&grasp(25)));
    assert!(through.iter().all(|it| it["verdict"] == "admitted"), "{through:?}");
    let limited = |gated: &Gated| codes(&gated.propose(&grasp(25)), "policy") == ["rate_limited"];
    assert!(limited(&gated));
    let body = json!({ "event_refs": [through[0]["event_ref"]] }).to_string();
    let forget = Request::post("/api/agent/forget", "application/json", body);
    gated.server.ask(&forget.token(&gated.agent.operator)).ok();
    assert!(limited(&gated), "the running server has counted it");
    restart(&mut gated);
    assert_eq!(gated.propose(&grasp(25))["verdict"], "admitted", "two are left in the log");
    assert!(limited(&gated));
    gated.agent.run(&gated.store, &["verify"]).fine();
}

/// Several servers judge for one log, and together admit as many as one would.
#[test]
fn the_limit_holds_across_servers() {
    let change = |field: &str, text: String| match field {
        "policy" => text.replace("intents = 600", "intents = 3"),
        _ => text,
    };
    let gated = Gated::changed(change, &[]);
    let files = GATE_FILES.map(|(field, _)| {
        gated.store.directory.path().join(format!("{field}.toml")).to_str().unwrap().to_owned()
    });
    let others = [(); 3].map(|()| Server::with(&gated.store, &flags(&files)));
    let request = super::proposal(25).token(&gated.agent.planner);
    let admitted: usize = std::thread::scope(|scope| {
        let servers = others.iter().chain([&gated.server]);
        let asking = servers.flat_map(|server| [server; 2]).map(|server| {
            let request = &request;
            scope
                .spawn(move || (0..2).filter(|_| is_admitted(&server.ask(request).is(201))).count())
        });
        let asking: Vec<_> = asking.collect();
        asking.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 3);
    gated.agent.run(&gated.store, &["verify"]).fine();
}

fn is_admitted(answer: &Answer) -> bool {
    answer.json()["verdict"] == "admitted"
}

/// Concurrent intents: exactly as many are admitted as the policy allows.
#[test]
fn the_limit_holds_when_many_ask_at_once() {
    let change = |field: &str, text: String| match field {
        "policy" => text.replace("intents = 600", "intents = 5"),
        _ => text,
    };
    let gated = Gated::changed(change, &["--intent-rate", "60000"]);
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let verdicts = (0..5).map(|_| gated.propose(&grasp(25))["verdict"].clone());
                    verdicts.filter(|verdict| verdict == "admitted").count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 5);
    assert_eq!(gated.log("intent").len(), 40);
}
