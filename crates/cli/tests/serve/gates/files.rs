//! The three gate files: a server uses those that the manifest names, or does not start.

use super::{flags, proposal};
use crate::server::{ACTS, Agent, DEADLINE, GATE_FILES, Server, example, one_agent, serve};
use crate::store::Store;
use std::io::Read;
use std::time::{Duration, Instant};

/// Starts a server that must fail; returns its output.
fn refused(store: &Store, args: &[&str]) -> String {
    let args = [&["--listen", "127.0.0.1:0"], args].concat();
    let mut child = serve(store, &args).spawn().unwrap();
    let until = Instant::now() + DEADLINE;
    let status = loop {
        match child.try_wait().unwrap() {
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            None => {
                child.kill().unwrap();
                panic!("it serves with {args:?}");
            }
            Some(status) => break status,
        }
    };
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(status.code(), Some(2), "{words}");
    words
}

fn files() -> [String; 3] {
    GATE_FILES.map(|(_, file)| example(file))
}

#[test]
fn without_files_intents_are_not_judged_and_everything_else_goes_on() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let problem = server.ask(&proposal(25).token(&agent.planner));
    problem.problem(503, "gates_not_configured");
    server.get("/api/agent/semantic", &agent.planner).ok();
    server.get("/health/ready", &agent.planner).ok();
    let log = server.get("/api/agent/log", &agent.auditor).ok().json();
    assert_eq!(log["head"], ACTS, "nothing was stored");
}

#[test]
fn a_file_with_another_hash_keeps_the_server_from_starting() {
    let store = Store::nothing();
    Agent::bound(&store, "ward-robot-01");
    for (place, (field, file)) in GATE_FILES.iter().enumerate() {
        // One byte more, and only in a comment.
        let text = std::fs::read_to_string(example(file)).unwrap() + "#";
        let mut changed = files();
        changed[place] = store.write("changed.toml", text);
        let words = refused(&store, &flags(&changed));
        assert!(
            words.contains("changed.toml is not the file that the agent is bound to"),
            "{words}"
        );
        assert!(words.contains(&format!("the manifest's {field}_hash is")), "{words}");
    }
    let (golden, _) = one_agent();
    let words = refused(&golden, &flags(&files()));
    assert!(words.contains("the manifest's ecm_registry_hash is 2222"), "{words}");
}

#[test]
fn files_that_do_not_hold_keep_it_from_starting_with_line_and_field() {
    let store = Store::nothing();
    let mut changed = files();
    let policy = std::fs::read_to_string(&changed[1]).unwrap();
    changed[1] = store.write("policy.toml", policy.replace("max = 40", "max = \"40\""));
    Agent::bound_to(&store, "ward-robot-01", &changed);
    let words = refused(&store, &flags(&changed));
    let line = policy.lines().position(|line| line == "max = 40").unwrap() + 1;
    let place = format!("policy.toml: line {line}, skills.\"manipulation.grasp\".clamp[0].max");
    assert!(words.contains(&place), "{words}");
    for (args, words) in [
        (&flags(&files())[..4], "ecm_registry, policy and temperament belong together"),
        (&["--policy", "nowhere.toml"][..], "belong together"),
    ] {
        let said = refused(&store, args);
        assert!(said.contains(words), "{said}");
    }
    let mut missing = files();
    missing[2] = "nowhere.toml".to_owned();
    let said = refused(&store, &flags(&missing));
    assert!(said.contains("could not read nowhere.toml"), "{said}");
    let said = refused(&store, &[&flags(&files())[..], &["--intent-rate", "0"]].concat());
    assert!(said.contains("intent_rate must be a whole number from 1"), "{said}");
}

#[test]
fn of_several_agents_those_are_judged_that_are_bound() {
    let store = Store::nothing();
    let bound = Agent::bound(&store, "ward-robot-01");
    let free = Agent::register(&store, "ward-robot-02");
    let server = Server::gated(&store, &[]);
    assert!(server.words().contains("gates judge the intents of 1 of 2 agents"));
    server.ask(&proposal(25).token(&bound.planner)).is(201);
    server.ask(&proposal(25).token(&free.planner)).problem(503, "gates_not_configured");
    // An agent that is registered while the server runs is bound like any other.
    let late = Agent::bound(&store, "ward-robot-03");
    crate::server::wait_until("the agent is served", || {
        server.ask(&proposal(25).token(&late.planner)).status == 201
    });
    for agent in [bound, late] {
        agent.run(&store, &["verify"]).fine();
    }
}
