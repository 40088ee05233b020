//! The library as a program uses it: every operation once, and every error by its code.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse::{
    Agent, Decision, Error, Event, FactKind, GateFiles, Identity, Intent, IntentStanding, Manifest,
    Opening, OutcomeReport, Policy, Query, Seq, Time,
};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
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

    /// Records attempts with these forces; below 20 they fail.
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
    // Another salt, the same content.
    let again = again.unwrap();
    assert_eq!((again.seq, again.duplicate, first.duplicate), (first.seq, true, false));
    assert_eq!(code(world.agent.record(event().with("x", "y"))), "conflict");
    world.agent.forget([first.event_ref]).unwrap();
    assert_eq!(code(world.agent.record(event())), "forgotten");
}

/// The clock is that of this machine, and the limit that of the log.
#[test]
fn an_event_that_is_dated_ahead_is_refused_when_it_enters() {
    let World { agent, store, .. } = &World::new();
    let event = r#"{"id":"1","source":"a","type":"note","time":"2999-01-01T00:00:00Z"}"#;
    assert_eq!(code(agent.record_json(event.as_bytes())), "time_ahead");
    let imported = agent.import(event.as_bytes()).unwrap();
    assert_eq!((imported.appended, imported.refused), (0, 1));
    let store = ipse_store::Store::open(&ipse_store::Location::file(store)).unwrap();
    store.settings().unwrap().set_max_ahead(&agent.identity(), None).unwrap();
    let first = agent.record_json(event.as_bytes()).unwrap();
    store.settings().unwrap().set_max_ahead(&agent.identity(), Some(1)).unwrap();
    let again = agent.record_json(event.as_bytes()).unwrap();
    assert_eq!((again.seq, again.duplicate), (first.seq, true), "a stored event stays");
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
    assert_eq!(proposed.admitted("force_n"), Some(25.0));
    assert_eq!(proposed.admitted("speed"), None);
    assert!(proposed.json().contains("\"result\":\"verified\""), "{}", proposed.json());
    assert!(proposed.json().contains("\"token_id\":\"library\""));
    let waiting = agent.propose(&intent(45.0)).unwrap();
    assert_eq!((waiting.standing(), waiting.may_act()), (IntentStanding::Waiting, false));
    assert_eq!(waiting.admitted("force_n"), None);
    let name = waiting.event_ref();
    let decided = agent.decide(&name, Decision::Declined).unwrap();
    assert_eq!(decided.standing(), IntentStanding::Declined);
    assert_eq!(decided.admitted("force_n"), None);
    let asked = agent.propose(&intent(45.0)).unwrap().event_ref();
    let confirmed = agent.decide(&asked, Decision::Confirmed).unwrap();
    assert_eq!((confirmed.may_act(), confirmed.admitted("force_n")), (true, Some(40.0)));
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

#[test]
fn the_last_value_of_a_name_counts() {
    let world = World::new();
    let event = Event::attempt("s").param("f", 70).param("f", 20).param("f", 30).success();
    let event = event.object("m", 1).object("m", "red").with("zone", "a").with("zone", "b");
    world.agent.record(event.with("target_class", "cup")).unwrap();
    let fact = world.agent.fact("s", "cup", "*").unwrap();
    assert!(fact.json().contains("\"mean\":30"), "{}", fact.json());
    assert_eq!(world.agent.facts(&Query::new().zone("b")).len(), 1);
    // A text member replaces the values under its name, and vice versa.
    let text = Event::attempt("s").param("f", 70).success().with("params", "none");
    world.agent.record(text.object("m", 1).with("object", "none")).unwrap();
    let intent = Intent::new("manipulation.grasp").target("glass_cup").environment("ward3");
    let proposed = world.agent.propose(&intent.param("force_n", 70).param("force_n", 20)).unwrap();
    assert_eq!(proposed.admitted("force_n"), Some(20.0));
}

#[test]
fn a_parameter_is_a_number_a_text_or_a_boolean() {
    let world = World::new();
    let intent = Intent::new("navigation.move_to").environment("ward3");
    let drive = intent.clone().param("place", "bed 4").param("speed_m_s", 1.5);
    let proposed = world.agent.propose(&drive).unwrap();
    assert_eq!(proposed.standing(), IntentStanding::Clamped, "{}", proposed.json());
    assert_eq!(proposed.admitted("speed_m_s"), Some(0.8));
    assert_eq!(proposed.admitted_text("place").as_deref(), Some("bed 4"));
    assert_eq!((proposed.admitted("place"), proposed.admitted_bool("place")), (None, None));
    let wrong = world.agent.propose(&intent.param("place", true)).unwrap();
    assert_eq!(wrong.standing(), IntentStanding::Denied, "{}", wrong.json());
    let place = Intent::new("manipulation.place").environment("ward3").param("height_m", 0.5);
    let placed = world.agent.propose(&place.param("upright", true)).unwrap();
    assert_eq!(placed.admitted_bool("upright"), Some(true), "{}", placed.json());
    let attempt = Event::attempt("navigation.move_to").param("place", String::from("bed 4"));
    let receipt = world.agent.record(attempt.param("fast", false).param("n", 2_u8).success());
    let event = world.agent.explain_event(&receipt.unwrap().event_ref).unwrap();
    assert!(event.json().contains("\"params\":{\"fast\":false,\"n\":2,\"place\":\"bed 4\"}"));
    let fact = world.agent.fact("navigation.move_to", "*", "*").unwrap();
    assert!(!fact.json().contains("place"), "{}", fact.json());
}

#[test]
fn an_event_is_stamped_when_it_is_built() {
    let world = World::new();
    let event = Event::attempt("s").success().id("1");
    let incident = Event::incident("ward 3").id("2");
    for event in [event, incident] {
        assert!(!world.agent.record(event.clone()).unwrap().duplicate);
        assert!(world.agent.record(event).unwrap().duplicate);
    }
}

#[test]
fn another_handle_sees_new_and_forgotten_facts_after_a_refresh() {
    let world = World::new();
    let other = Agent::open(&world.store, world.agent.identity()).unwrap();
    let receipt = world.agent.record(Event::attempt("s").success()).unwrap();
    let count = |agent: &Agent| agent.facts(&Query::new()).len();
    assert_eq!((count(&world.agent), count(&other)), (1, 0));
    assert!(other.refresh().unwrap() && !other.refresh().unwrap());
    assert_eq!(count(&other), 1);
    world.agent.forget([receipt.event_ref]).unwrap();
    assert_eq!(count(&other), 1, "as of the last pass that it knows of");
    assert_eq!(other.consolidate().unwrap(), None);
    assert_eq!((count(&other), other.refresh().unwrap()), (0, false));
}

#[test]
fn a_page_that_is_not_there_is_an_error_of_its_own() {
    let world = World::new();
    world.tried(&[25; 3]);
    let fact = world.agent.facts(&Query::new())[0].id();
    assert_eq!(world.agent.explain(&fact, 1).unwrap().pages(), 1);
    for page in [0, 2, usize::MAX] {
        let error = world.agent.explain(&fact, page).unwrap_err();
        assert_eq!(error.code(), "no_page");
        assert!(matches!(error, Error::NoPage { asked, pages: 1 } if asked == page));
    }
}

/// Returns a text, then fails.
struct Failing(&'static [u8]);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the cable is out")),
            read => Ok(read),
        }
    }
}

const LINES: &str = "{\"id\":\"1\",\"type\":\"incident\",\"time\":\"2026-05-06T10:00:00Z\",\
                     \"data\":{\"zone\":\"a\"}}\nno json\n";

#[test]
fn a_reader_that_fails_is_an_error_that_says_what_is_durable() {
    let world = World::new();
    let error = world.agent.import(Failing(LINES.as_bytes())).unwrap_err();
    assert_eq!(error.code(), "truncated");
    assert!(error.to_string().contains("after line 2"), "{error}");
    assert_eq!(world.agent.facts(&Query::new().zone("a")).len(), 1, "what came is folded");
    let again = world.agent.import(LINES.as_bytes()).unwrap();
    assert_eq!((again.appended, again.duplicates, again.refused), (0, 1, 1));
}

#[test]
fn an_import_that_waits_for_its_reader_blocks_no_other_call() {
    let world = World::new();
    let (reader, mut writer) = io::pipe().unwrap();
    let (agent, (ended, end)) = (world.agent.clone(), channel());
    let importing = std::thread::spawn(move || {
        let imported = agent.import(reader);
        ended.send(()).unwrap();
        imported
    });
    writer.write_all(LINES.as_bytes()).unwrap();
    let begun = Instant::now();
    // The line is stored while the pipe stays open, and the agent can be used meanwhile.
    while world.agent.standing().unwrap().events == 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the line was not stored");
        std::thread::sleep(Duration::from_millis(5));
    }
    world.agent.record(Event::attempt("s").success()).unwrap();
    assert_eq!(world.agent.facts(&Query::new()).len(), 2);
    assert!(end.try_recv().is_err(), "the import waits still");
    drop(writer);
    assert_eq!(importing.join().unwrap().unwrap().appended, 1);
}

/// A member of a ustar archive.
fn member<'b>(mut archive: &'b [u8], wanted: &str) -> &'b [u8] {
    loop {
        let text = |from: usize, to: usize| {
            let field = archive[from..to].split(|byte| *byte == 0).next().unwrap();
            std::str::from_utf8(field).unwrap().trim().to_owned()
        };
        let (name, size) = (text(0, 100), usize::from_str_radix(&text(124, 136), 8).unwrap());
        let content = &archive[512..512 + size];
        if name == wanted {
            return content;
        }
        archive = &archive[512 + size.next_multiple_of(512)..];
    }
}

#[test]
fn an_export_says_the_hash_of_what_it_wrote() {
    let world = World::new();
    world.tried(&[25; 3]);
    let mut bundle = Vec::new();
    let exported = world.agent.export(&mut bundle).unwrap();
    let sums = member(&bundle, "SHA256SUMS");
    assert_eq!(exported.bundled.sums.0, ipse_core::sha256(&[sums]));
    let path = world.store.with_extension("ipse");
    std::fs::write(&path, bundle).unwrap();
    let keys = ipse::keys::KeyDirectory::of_store(&ipse::Location::file(&world.store));
    let log = keys.log_keys().unwrap()[0].to_string();
    let operator = std::fs::read_to_string(keys.path().join("operator.pub")).unwrap();
    let trusted = [log.as_str(), operator.as_str()];
    let copy = world.store.with_file_name("copy.db");
    drop(Agent::register(&copy, &manifest(true)).unwrap());
    let taken = ipse::import_bundle(&copy, &path, &trusted).unwrap();
    assert_eq!(taken.entries, world.agent.look().head().unwrap().0);
}

#[test]
fn a_registration_that_fails_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("ipse.db");
    let file = directory.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    let missing = directory.path().join("none").join("keys");
    let keys = |path: &std::path::Path| Opening { keys: Some(path.into()), ..Opening::default() };
    #[allow(unused_mut, clippy::useless_vec)]
    let mut openings = vec![
        (Opening { gates: Some(gates()), ..Opening::default() }, "gates_not_bound"),
        (keys(&file), "bad_key"),
        (keys(&missing), "bad_key"),
    ];
    #[cfg(not(feature = "passphrase"))]
    openings.push((Opening { passphrase: Some("x".into()), ..Opening::default() }, "bad_key"));
    for (opening, expected) in openings {
        let done = Agent::register_with(&store, &manifest(false), opening);
        assert_eq!(code(done), expected);
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 1, "{expected}: only the file that was there before");
    }
    let nowhere = directory.path().join("none").join("ipse.db");
    assert_eq!(code(Agent::register(nowhere, &manifest(false))), "no_store");
}

#[cfg(not(feature = "passphrase"))]
#[test]
fn a_passphrase_without_its_feature_is_an_error() {
    let world = World::new();
    let opening = Opening { passphrase: Some("x".into()), ..Opening::default() };
    let error = Agent::open_with(&world.store, world.agent.identity(), opening).err().unwrap();
    assert!(matches!(error, Error::Key(ipse::keys::KeyError::PassphraseUnsupported(_))));
}

#[test]
fn a_query_keeps_within_what_an_intent_may_echo() {
    let world = World::new();
    let line = |zone: u32| {
        format!(
            "{{\"id\":\"{zone}\",\"type\":\"incident\",\"time\":\"2026-05-06T10:00:00Z\",\
             \"data\":{{\"zone\":\"z{zone}\"}}}}\n"
        )
    };
    let lines: String = (0..1001).map(line).collect();
    world.agent.import(lines.as_bytes()).unwrap();
    assert_eq!(world.agent.facts(&Query::new()).len(), 1001);
    let intent = Intent::new("manipulation.grasp").target("glass_cup").environment("ward3");
    let intent = intent.param("force_n", 25);
    for (query, facts) in [
        (Query::new(), 1000),
        (Query::new().limit(2000), 1000),
        (Query::new().limit(1000), 1000),
        (Query::new().limit(0), 1),
        (Query::new().zone("z7"), 1),
    ] {
        let answer = world.agent.consult(&query);
        assert_eq!(answer.facts.len(), facts);
        let proposed = world.agent.propose(&intent.clone().consulted(&answer)).unwrap();
        assert!(proposed.json().contains("\"result\":\"verified\""), "{query:?}");
    }
}

#[test]
fn the_outcome_of_an_intent_is_reported_once() {
    let world = World::new();
    let agent = &world.agent;
    let grasp = |force: i32| {
        let intent = Intent::new("manipulation.grasp").target("glass_cup").environment("ward3");
        agent.propose(&intent.param("force_n", force).planner("ward planner", "2.1")).unwrap()
    };
    let clamped = grasp(2);
    assert!(clamped.json().contains(r#""planner":{"name":"ward planner","version":"2.1"}"#));
    let report = OutcomeReport::failed("slip").object("mass_g", 180);
    let first = agent.report(&clamped.event_ref(), &report).unwrap();
    assert!(!first.duplicate);
    let again = agent.report(&clamped.event_ref(), &report).unwrap();
    assert_eq!((again.event_ref, again.seq, again.duplicate), (first.event_ref, first.seq, true));
    let other = OutcomeReport::success();
    assert_eq!(code(agent.report(&clamped.event_ref(), &other)), "conflict");
    let fact = agent.fact("manipulation.grasp", "glass_cup", "ward3").unwrap();
    assert_eq!((fact.observations(), fact.success_rate()), (1, Some(0.0)));
    let trail = agent.explain_event(&first.event_ref).unwrap().json();
    assert!(trail.contains(r#""standing":"planned""#) && trail.contains(r#""deviations":[]"#));

    let waiting = grasp(35);
    assert_eq!(code(agent.report(&waiting.event_ref(), &other)), "not_admitted");
    agent.decide(&waiting.event_ref(), Decision::Confirmed).unwrap();
    agent.report(&waiting.event_ref(), &other.clone().param("force_n", 34)).unwrap();
    assert_eq!(code(agent.report(&ipse::EventRef([0; 16]), &other)), "not_found");
    let bad = OutcomeReport::failed("");
    assert_eq!(code(agent.report(&clamped.event_ref(), &bad)), "bad_outcome");

    let skills = agent.skills();
    let row = skills.skills.iter().find(|skill| skill.skill_id == "manipulation.grasp").unwrap();
    assert!(row.in_registry && row.seen);
    assert!(skills.skills.iter().any(|skill| skill.in_registry && !skill.seen));
}

#[test]
fn an_error_says_why_once() {
    let world = World::new();
    let agent = &world.agent;
    let refused = agent.record(Event::new("forget")).unwrap_err();
    let rejected = agent.propose(&Intent::new("").param("p", 1)).unwrap_err();
    let nothing = agent.decide(&ipse::EventRef([0; 16]), Decision::Confirmed).unwrap_err();
    let file = ipse::import_bundle(&world.store, "/nowhere/x.ipse", &[]).unwrap_err();
    for (error, beginning, why) in [
        (refused, "the event was refused: `type`: ", "[reserved_type]"),
        (rejected, "the intent was rejected: `skill_id`: ", "[empty]"),
        (nothing, "the decision was rejected: ", "unknown or was forgotten"),
        (file, "could not use /nowhere/x.ipse: ", "No such file"),
    ] {
        let text = error.to_string();
        assert!(text.starts_with(beginning) && text.contains(why), "{text}");
        assert!(std::error::Error::source(&error).is_none(), "{text}");
    }
}

#[test]
fn a_trusted_key_that_is_none_is_a_bad_key() {
    let world = World::new();
    world.agent.record(Event::attempt("s").success()).unwrap();
    let bundle = world.store.with_extension("ipse");
    world.agent.export(&mut std::fs::File::create(&bundle).unwrap()).unwrap();
    assert_eq!(code(ipse::import_bundle(&world.store, &bundle, &["no key"])), "bad_key");
    assert_eq!(code(ipse::import_bundle(&world.store, &bundle, &[])), "bundle_not_verified");
}

#[test]
fn the_documentation_lists_every_code() {
    let source = include_str!("../src/error.rs");
    let (table, code) = source.split_once("pub fn code").unwrap();
    let literals = code.split("=> \"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let rejected = ["bad_intent", "intent_too_large", "too_late", "not_waiting", "not_found"];
    let rejected = rejected.into_iter().chain(["bad_outcome", "not_admitted"]);
    for code in literals.chain(rejected) {
        let row = format!("/// | `{code}` |");
        let is_rule = ipse::Rule::ALL.iter().any(|rule| rule.code() == code);
        assert!(is_rule || table.contains(&row), "`{code}` is not in the table");
    }
}

#[test]
fn an_error_of_a_gate_file_names_the_file() {
    let errors = GateFiles::new(REGISTRY, "format = 1\n", TEMPERAMENT).err().unwrap();
    let error = Error::from(errors);
    assert_eq!(error.code(), "bad_gate_files");
    assert!(error.to_string().contains("policy, line 1"), "{error}");
}

#[test]
fn a_log_may_begin_with_rules_that_notice_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("robot.db");
    let opening = |rules| ipse::Opening { rules, ..Default::default() };
    let agent =
        Agent::register_with(&path, &manifest(false), opening(Some(ipse::Rules::V2))).unwrap();
    for success in [true, false] {
        let attempt = Event::attempt("grasp").target("cup");
        agent.record(if success { attempt.success() } else { attempt.failed("slip") }).unwrap();
    }
    agent.consolidate().unwrap();
    let fact = agent.fact("grasp", "cup", "*").unwrap();
    assert_eq!(fact.last_outcome(), Some(ipse::Outcome::Failed));
    let (low, high) = fact.bounds().unwrap();
    assert!(low < 0.5 && 0.5 < high, "{low} {high}");
    assert_eq!(fact.retry_after().unwrap().micros(), fact.last_updated().micros() + 3_600_000_000);
    assert!(fact.since().unwrap() <= fact.last_updated());
    assert_eq!(fact.robust_bounds(), None, "one source");
    let report = agent.drift(None).unwrap();
    assert!(!report.drift);
    assert_eq!(agent.drift(ipse::read_day("1999-01-01")).unwrap().facts, 0);
    let identity = agent.identity();
    drop(agent);
    let other = Agent::open_with(&path, identity, opening(Some(ipse::Rules::V1)));
    assert_eq!(code(other), "not_first", "its log has events");
    assert!(Agent::open_with(&path, identity, opening(None)).is_ok());
}
