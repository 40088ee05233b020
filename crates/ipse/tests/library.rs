//! The library as a program uses it: every operation once, and every error by its code.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse::{
    Agent, Decision, Error, Event, FactKind, GateFiles, Identity, Intent, IntentStanding, Manifest,
    Opening, Policy, Query, Seq, Time,
};
use std::path::PathBuf;
use tempfile::TempDir;

const REGISTRY: &str = include_str!("../../../examples/gates/ecm-registry.toml");
const POLICY: &str = include_str!("../../../examples/gates/policy.toml");
const TEMPERAMENT: &str = include_str!("../../../examples/gates/temperament.toml");

struct World {
    _directory: TempDir,
    store: PathBuf,
    agent: Agent,
}

fn gates() -> GateFiles {
    GateFiles::new(REGISTRY, POLICY, TEMPERAMENT).unwrap()
}

fn manifest(bound: bool) -> Manifest {
    let gates = gates();
    let hash = |field: &str| ipse::GATE_FIELDS.iter().position(|name| *name == field);
    Manifest::new(|field| {
        Some(match (field, hash(field)) {
            (_, Some(place)) if bound => gates.hashes()[place].clone(),
            (_, Some(_)) => "1".repeat(64),
            ("commissioned_at", _) => "2026-05-01T00:00:00Z".into(),
            (name, _) => format!("my {name}"),
        })
    })
    .unwrap()
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("ipse.db");
        let policy = Policy { every: 1, ..Policy::default() };
        let opening = Opening { gates: Some(gates()), policy, ..Opening::default() };
        let agent = Agent::register_with(&store, &manifest(true), opening).unwrap();
        World { _directory: directory, store, agent }
    }

    /// Attempts with these forces; below 20 they fail.
    fn tried(&self, forces: &[i32]) {
        for (number, force) in forces.iter().enumerate() {
            let grasp = Event::attempt("manipulation.grasp").target("glass_cup");
            let grasp = grasp.environment("ward3").param("force_n", *force);
            let event = if *force < 20 { grasp.failed("slip") } else { grasp.success() };
            self.agent.record(event.id(number.to_string())).unwrap();
        }
    }
}

fn code<T>(result: ipse::Result<T>) -> &'static str {
    result.err().map_or("fine", |error| error.code())
}

#[test]
fn facts_are_figures() {
    let world = World::new();
    world.tried(&[10, 12, 25, 25, 25, 25, 25, 25, 25, 25]);
    let fact = world.agent.fact("manipulation.grasp", "glass_cup", "ward3").unwrap();
    assert_eq!(fact.kind(), FactKind::SkillSuccessRate);
    assert_eq!((fact.observations(), fact.success_rate()), (10, Some(0.8)));
    assert_eq!((fact.figure("failures"), fact.figure("none")), (Some(2.0), None));
    assert_eq!(fact.top_failure_reason().as_deref(), Some("slip"));
    let recommended = fact.recommended("force_n").unwrap();
    assert_eq!((recommended.value, recommended.low, recommended.high), (25.0, 25.0, 25.0));
    assert!(recommended.confidence > 0.5 && fact.confidence() > 0.5);
    assert_eq!((fact.recommended("speed"), fact.risk()), (None, None));
    let answer = world.agent.consult(&Query::skill("manipulation.grasp").limit(1));
    assert_eq!(answer.facts, [fact]);
    assert!(answer.grounding().contains("recommended_force_n = 25"));
    assert!(answer.consultation_id().starts_with("co_"));
    assert_eq!(world.agent.facts(&Query::new().kind(FactKind::ZoneRisk)), []);
}

#[test]
fn an_event_of_the_same_name_is_stored_once() {
    let world = World::new();
    let time = Time::parse("2026-05-06T10:00:00Z").unwrap();
    let event = || Event::attempt("s").success().id("1").at(time);
    let first = world.agent.record(event()).unwrap();
    let again = world.agent.record(event());
    // The salt is another, and the content is the same.
    let again = again.unwrap();
    assert_eq!((again.seq, again.duplicate, first.duplicate), (first.seq, true, false));
    assert_eq!(code(world.agent.record(event().with("x", "y"))), "conflict");
    world.agent.forget([first.event_ref]).unwrap();
    assert_eq!(code(world.agent.record(event())), "forgotten");
}

#[test]
fn every_error_has_its_code() {
    let world = World::new();
    let agent = &world.agent;
    assert_eq!(code(agent.record(Event::new("forget"))), "reserved_type");
    assert_eq!(code(agent.record_json(b"{")), "invalid_json");
    let nan = Event::attempt("s").param("p", f64::NAN).success();
    assert_eq!(code(agent.record(nan)), "not_a_number");
    let fact = ipse::FactId([0; 16]);
    assert_eq!(code(agent.explain(&fact, 1)), "not_found");
    assert_eq!(code(agent.explain_event(&ipse::EventRef([0; 16]))), "not_found");
    assert_eq!(code(agent.forget([ipse::EventRef([0; 16])])), "not_found");
    assert_eq!(code(agent.facts_as_of(Seq(99), &Query::new())), "beyond_the_log");
    assert_eq!(code(agent.diff(Seq(0), Seq(99))), "beyond_the_log");
    assert_eq!(code(agent.decide(&ipse::EventRef([0; 16]), Decision::Confirmed)), "not_found");
    assert_eq!(code(agent.propose(&Intent::new("").param("p", 1))), "bad_intent");
    assert_eq!(code(Agent::open(&world.store, Identity([0; 32]))), "unknown_identity");
    assert_eq!(code(Agent::open("/nowhere/ipse.db", agent.identity())), "no_store");
    let missing = Manifest::new(|_| None).map_err(Error::from);
    assert_eq!(code(missing), "bad_manifest");
}

#[test]
fn gates_judge_only_the_agent_that_is_bound_to_them() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("ipse.db");
    let opening = Opening { gates: Some(gates()), ..Opening::default() };
    let other = Agent::register_with(&store, &manifest(false), opening);
    assert_eq!(code(other), "gates_not_bound");
    let agent = Agent::register(&store, &manifest(false)).unwrap();
    assert_eq!(code(agent.propose(&Intent::new("manipulation.grasp"))), "gates_not_configured");
}

#[test]
fn an_intent_is_judged_recorded_decided_and_walked_back() {
    let world = World::new();
    world.tried(&[25; 10]);
    let agent = &world.agent;
    let intent = |force: f64| {
        let intent = Intent::new("manipulation.grasp").target("glass_cup").environment("ward3");
        intent.param("force_n", force)
    };
    let answer = agent.consult(&Query::skill("manipulation.grasp"));
    let proposed = agent.propose(&intent(25.0).consulted(&answer)).unwrap();
    assert_eq!((proposed.standing(), proposed.may_act()), (IntentStanding::Admitted, true));
    assert_eq!(proposed.admitted_params(), Some("{\"force_n\":25}"));
    assert!(proposed.json().contains("\"result\":\"verified\""), "{}", proposed.json());
    assert!(proposed.json().contains("\"token_id\":\"library\""));
    let waiting = agent.propose(&intent(45.0)).unwrap();
    assert_eq!((waiting.standing(), waiting.may_act()), (IntentStanding::Waiting, false));
    let name = waiting.event_ref();
    let decided = agent.decide(&name, Decision::Declined).unwrap();
    assert_eq!(decided.standing(), IntentStanding::Declined);
    assert_eq!(agent.decide(&name, Decision::Declined).unwrap(), decided, "said again");
    assert_eq!(code(agent.decide(&name, Decision::Confirmed)), "not_waiting");
    let done = Event::attempt("manipulation.grasp").target("glass_cup").environment("ward3");
    let done = agent.record(done.intent(proposed.event_ref()).param("force_n", 25).success());
    let explained = agent.explain_event(&done.unwrap().event_ref).unwrap();
    assert!(explained.action.is_some());
    assert!(explained.page().to_string().contains("planned"), "{}", explained.page());
    assert!(agent.verify().unwrap().findings.is_empty());
}

#[test]
fn an_import_lists_what_it_refuses_and_its_facts_are_known() {
    let world = World::new();
    let lines = "{\"id\":\"1\",\"type\":\"execution_result\",\"time\":\"2026-05-06T10:00:00Z\",\
                 \"data\":{\"skill_id\":\"s\",\"success\":true}}\nno json\n";
    let imported = world.agent.import(lines.as_bytes()).unwrap();
    assert_eq!((imported.appended, imported.refused, imported.listed[0].0), (1, 1, 2));
    assert!(!imported.is_clean() && imported.pass.is_some());
    assert_eq!(world.agent.fact("s", "*", "*").unwrap().observations(), 1);
    let as_of = world.agent.facts_as_of(Seq(0), &Query::new()).unwrap();
    assert_eq!(as_of, []);
    assert_eq!(world.agent.diff(Seq(0), Seq(1)).unwrap().added.len(), 1);
    assert!(world.agent.standing().unwrap().is_unchanged());
}

#[cfg(not(feature = "gzip"))]
#[test]
fn gzip_without_its_feature_is_a_clear_error() {
    let error = World::new().agent.import(&[0x1f, 0x8b, 8, 0][..]).unwrap_err();
    assert_eq!(error.code(), "file");
    let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("gzip"), "{error}: {why}");
}
