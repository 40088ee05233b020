//! The example planners, in Python and in Rust, against a real server: with facts they fail less
//! than without, at the same gates, and the identity stays the same.

use super::Gated;
use crate::server::example;
use serde_json::Value;
use std::process::Command;

#[allow(unreachable_pub, missing_docs)]
#[path = "../../../examples/planner.rs"]
mod planner;

const ROUNDS: u64 = 200;

/// The planner in Rust.
fn twin(gated: &Gated, ignore_facts: bool, stuck: bool) -> Value {
    let plan = planner::Plan {
        url: format!("http://{}", gated.server.address),
        planner: gated.agent.planner.clone(),
        producer: gated.agent.producer.clone(),
        rounds: ROUNDS,
        seed: 7,
        ignore_facts,
        stuck,
    };
    planner::run(&plan).unwrap()
}

/// The planner in Python, as its users run it.
fn python(gated: &Gated, ignore_facts: bool, stuck: bool) -> Value {
    let mut command = Command::new("python3");
    command.args([&example("planner.py"), &format!("http://{}", gated.server.address)]);
    command.args(["--rounds", &ROUNDS.to_string()]);
    command.args(ignore_facts.then_some("--ignore-facts"));
    command.args(stuck.then_some("--stuck"));
    command.env("IPSE_PLANNER", &gated.agent.planner);
    command.env("IPSE_PRODUCER", &gated.agent.producer);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn number(reported: &Value, name: &str) -> u64 {
    reported[name].as_u64().unwrap()
}

#[test]
fn a_planner_that_learns_fails_less_at_the_same_gates() {
    let runs = [true, false].map(|ignore_facts| {
        let gated = [Gated::new(), Gated::new()];
        let reported =
            [python(&gated[0], ignore_facts, false), twin(&gated[1], ignore_facts, false)];
        assert_eq!(reported[0], reported[1], "twins print the same");
        gated.iter().for_each(|gated| check_record(gated, &reported[0]));
        reported[0].clone()
    });
    let [without, with] = &runs;
    for reported in &runs {
        assert_eq!(number(reported, "rounds"), ROUNDS);
        assert_eq!(reported["unchanged"], true);
    }
    assert_eq!(number(without, "informed"), 0);
    let ended = |reported: &Value| ["worked", "failed"].map(|name| number(reported, name));
    assert_eq!([ended(without), ended(with)], [[29, 58], [147, 20]], "as the guide says");
    assert!(number(with, "informed") > ROUNDS / 2, "{with}");
    assert!(2 * number(with, "failed") < number(without, "failed"), "{with} {without}");
    assert!(number(with, "worked") > 2 * number(without, "worked"), "{with} {without}");
    // Both got each of these verdicts.
    for verdict in ["admitted", "clamped", "needs_confirmation"] {
        assert!(number(with, verdict) > 0 && number(without, verdict) > 0, "{with} {without}");
    }
}

/// The counts of both planners under v2, which must be equal.
fn under_v2(stuck: bool) -> Value {
    let gated = [Gated::under_v2(), Gated::under_v2()];
    let reported = [python(&gated[0], false, stuck), twin(&gated[1], false, stuck)];
    assert_eq!(reported[0], reported[1], "twins print the same");
    assert_eq!(reported[0]["unchanged"], true);
    reported[0].clone()
}

/// Under v2 both planners ask which force to try, and the gates let it through unchanged.
#[test]
fn a_planner_under_v2_tries_what_could_be_best() {
    let reported = under_v2(false);
    let counts = ["skipped", "informed", "clamped", "denied", "worked", "failed"];
    let counts = counts.map(|name| number(&reported, name));
    assert_eq!(counts, [0, 199, 0, 0, 200, 0], "as the guide says: {reported}");
}

/// Under v2 both planners skip a grasp that keeps failing, until it is due again after an hour.
#[test]
fn a_planner_under_v2_skips_what_keeps_failing() {
    let reported = under_v2(true);
    let [skipped, failed] = ["skipped", "failed"].map(|name| number(&reported, name));
    assert_eq!([skipped, failed], [196, 4], "as the guide says: {reported}");
}

/// The log holds every intent with its verdict, and every outcome names its intent.
fn check_record(gated: &Gated, reported: &Value) {
    let intents = gated.log("intent");
    assert_eq!(intents.len() as u64, ROUNDS);
    for name in ["admitted", "clamped", "needs_confirmation", "denied"] {
        let so = intents.iter().filter(|it| it["event"]["data"]["verdict"] == name).count();
        assert_eq!(so as u64, number(reported, name), "{name}");
    }
    let unverified = |it: &&Value| it["event"]["data"]["gates"].to_string().contains("unverified");
    assert_eq!(intents.iter().filter(unverified).count(), 0, "what was read could be read again");
    let outcomes = gated.log("execution_result");
    assert_eq!(outcomes.len() as u64, number(reported, "worked") + number(reported, "failed"));
    let facts = gated.agent.run(&gated.store, &["facts", "--json"]).fine().json();
    let fact = facts["facts"][0]["fact_id"].as_str().unwrap();
    let why = gated.agent.run(&gated.store, &["explain", fact, "--json"]).fine().json();
    assert_eq!(why["planned"], why["evidence_total"], "all of it went through the gates");
    let identity = gated.agent.run(&gated.store, &["identity", "--json"]).fine().json();
    assert_eq!(identity["identity_hash"], reported["identity"]);
    assert_eq!(identity["unchanged"], true);
    gated.agent.run(&gated.store, &["verify"]).fine();
}
