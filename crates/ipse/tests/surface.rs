//! The public surface of the library: error codes of files and formats, types that a program can
//! name, `Debug` output, and the small operations around the log.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse::{
    Agent, Decision, Event, ExchangeError, GateFile, GateFiles, Intent, LogFilter, LogQuery,
    Manifest, Opening, Query, Seq, Time, TimeError, Verdict, identities, verify_bundle,
};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use tempfile::TempDir;

fn manifest() -> Manifest {
    let value = |field: &str| match field {
        "commissioned_at" => "2026-05-01T00:00:00Z".to_owned(),
        hash if hash.ends_with("_hash") => "1".repeat(64),
        name => format!("my {name}"),
    };
    Manifest::new(|field| Some(value(field))).unwrap()
}

struct World {
    _directory: TempDir,
    store: PathBuf,
    agent: Agent,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("ipse.db");
        let agent = Agent::register(&store, &manifest()).unwrap();
        World { _directory: directory, store, agent }
    }
}

fn code<T>(result: ipse::Result<T>) -> &'static str {
    result.err().map_or("fine", |error| error.code())
}

#[test]
fn an_input_of_another_format_is_no_error_of_an_export() {
    let world = World::new();
    let formats: [&[u8]; 4] = [
        b"[{\"id\":\"1\"}]",
        b"time,force\n1,2\n",
        b"PK\x03\x04rest of it",
        b"{\n  \"id\": 1\n}\n",
    ];
    for format in formats {
        assert_eq!(code(world.agent.import(format)), "not_json_lines");
    }
    let part = ipse::Error::from(ExchangeError::NotWhole);
    assert_eq!(part.code(), "bundle_not_whole");
}

/// A disk that is full from the first byte.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_bundle_that_cannot_be_written_is_an_error_of_its_stream() {
    let world = World::new();
    assert_eq!(code(world.agent.export(&mut Full)), "file");
    assert!(world.store.exists());
}

#[test]
fn a_bundle_is_verified_without_a_store() {
    let world = World::new();
    world.agent.record(Event::attempt("s").success()).unwrap();
    let path = world.store.with_extension("ipse");
    world.agent.export(&mut fs::File::create(&path).unwrap()).unwrap();
    let key = |name: &str| fs::read_to_string(world.store.with_extension("db.keys").join(name));
    let (log, operator) = (key("log.vkey").unwrap(), key("operator.pub").unwrap());
    let trusted = [log.as_str(), operator.as_str()];
    let head = world.agent.look().tree_head().unwrap().unwrap().note;

    let report = verify_bundle(&path, &trusted, &[&head]).unwrap();
    assert!(report.passed() && report.identity == Some(world.agent.identity()));
    assert!(report.lines.iter().any(|line| line.place == "anchor 1"));
    let report = verify_bundle(&path, &[], &[]).unwrap();
    assert!(!report.passed() && report.lines.iter().any(|line| line.verdict == Verdict::Fail));
    assert_eq!(code(verify_bundle(&path, &["no key"], &[])), "bad_key");
    assert_eq!(code(verify_bundle(&path, &trusted, &["no head"])), "bad_anchor");
    assert_eq!(code(verify_bundle("/nowhere/x.ipse", &trusted, &[])), "file");

    // The head of another log, or a changed byte, is found.
    let other = World::new();
    other.agent.record(Event::attempt("s").success()).unwrap();
    other.agent.export(&mut Vec::new()).unwrap();
    let foreign = other.agent.look().tree_head().unwrap().unwrap().note;
    assert!(!verify_bundle(&path, &trusted, &[&foreign]).unwrap().passed());
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(!verify_bundle(&path, &trusted, &[]).unwrap().passed());
}

/// The type of every public field can be named through this crate alone.
#[test]
fn types_of_public_fields_have_a_name() {
    let world = World::new();
    world.agent.record(Event::attempt("s").success()).unwrap();
    world.agent.consolidate().unwrap();
    let fact = world.agent.fact("s", "*", "*").unwrap();
    let explained = world.agent.explain(&fact.id(), 1).unwrap();
    let evidence: Vec<ipse::Stored> = explained.evidence;
    let standings: Vec<(_, ipse::AttemptStanding)> = explained.standings;
    let passes: Vec<ipse::RawPass> = explained.passes;
    let signed: ipse::SignedBy = explained.signed;
    assert_eq!((evidence.len(), standings.len(), passes.len(), signed.events), (1, 1, 1, 0));
    let diff = world.agent.diff(ipse::Seq(0), ipse::Seq(1)).unwrap();
    let added: Vec<ipse::FactRecord> = diff.added;
    let changed: Vec<ipse::Changed> = diff.changed;
    assert_eq!((added.len(), changed.len()), (1, 0));
    let failure = br#"{"id":"h","type":"execution_result","time":"2026-05-06T10:00:00Z",
        "data":{"skill_id":"grasp","outcome":"failure"}}"#;
    let hint = world.agent.record_json(failure).unwrap().hint.unwrap();
    assert!(hint.contains("did you mean \"failed\"?"), "{hint}");
    let fine = world.agent.record(Event::attempt("grasp").failed("slip")).unwrap();
    assert_eq!(fine.hint, None);
    let unused: ipse::UnusedMembers = world.agent.import(&b""[..]).unwrap().unused;
    assert_eq!(unused.iter().count(), 0);
}

#[test]
fn debug_output_shows_the_agent_and_no_secret() {
    let world = World::new();
    let shown = format!("{:?}", world.agent);
    assert!(shown.contains(&world.agent.identity().to_string()), "{shown}");
    assert!(shown.contains("ipse.db"), "{shown}");
    let opening = Opening { passphrase: Some("open sesame".into()), ..Opening::default() };
    let shown = format!("{opening:?} {:?}", world.agent.consult(&Query::new()));
    assert!(!shown.contains("sesame") && shown.contains("Answer"), "{shown}");
}

#[test]
fn a_text_that_is_no_time_says_what_a_time_is() {
    for (text, error, says) in [
        ("yesterday", TimeError::Grammar, "RFC 3339"),
        ("2016-12-31T23:59:60Z", TimeError::LeapSecond, "second 60"),
        ("1969-12-31T23:59:59Z", TimeError::Range, "1970"),
    ] {
        assert_eq!(Time::parse(text), Err(error));
        let error = ipse::Error::from(error);
        assert_eq!(error.code(), "bad_time");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_store_lists_its_agents_and_an_agent_knows_its_manifest() {
    let world = World::new();
    let second = Manifest::new(|field| match field {
        "agent_id" => Some("another".to_owned()),
        field => manifest().field(field).map(str::to_owned),
    });
    let second = Agent::register(&world.store, &second.unwrap()).unwrap();
    let expected = [world.agent.identity(), second.identity()];
    assert_eq!(identities(&world.store).unwrap(), expected);
    assert_eq!(world.agent.manifest().unwrap(), manifest());
    assert_eq!(second.manifest().unwrap().field("agent_id"), Some("another"));
    assert_eq!(code(identities(world.store.with_extension("none"))), "no_store");
}

#[test]
fn events_are_recorded_together_or_refused_together() {
    let world = World::new();
    let attempt = |id: &str| Event::attempt("s").success().id(id);
    let first = attempt("1");
    let receipts = world.agent.record_all([first.clone(), attempt("2"), first.clone()]).unwrap();
    let places = receipts.iter().map(|receipt| receipt.as_ref().unwrap());
    let places: Vec<_> = places.map(|receipt| (receipt.seq, receipt.duplicate)).collect();
    assert_eq!(places, [(Seq(1), false), (Seq(2), false), (Seq(1), true)]);

    let refused = world.agent.record_all([attempt("3"), Event::new("forget")]);
    assert_eq!(code(refused), "reserved_type");
    assert_eq!(world.agent.standing().unwrap().events, 2, "nothing of the batch is stored");
    let conflict = first.clone().with("other", true);
    let mut receipts = world.agent.record_all([conflict, attempt("4")]).unwrap();
    assert_eq!(receipts.pop().unwrap().unwrap().seq, Seq(3));
    assert_eq!(code(receipts.pop().unwrap()), "conflict");
    assert!(world.agent.record_all([first; 0]).unwrap().is_empty());
}

#[test]
fn the_events_of_a_subject_are_found_and_forgotten() {
    let world = World::new();
    let event = |patient: &str| Event::attempt("handover").success().with("patient", patient);
    world.agent.record_all(["p-17", "p-3", "p-17"].map(event)).unwrap();
    world.agent.consolidate().unwrap();
    let all = LogQuery { after: Seq(0), limit: 100, filter: LogFilter::default() };
    let log = || world.agent.look().log(&all).unwrap().rows;
    let of = |patient: &str| {
        let rows = log().into_iter().map(|row| row.stored);
        let rows = rows.filter(|it| it.data_text("patient").as_deref() == Some(patient));
        rows.map(|it| it.event_ref).collect::<Vec<_>>()
    };
    assert_eq!((of("p-17").len(), of("p-3").len(), of("*").len()), (2, 1, 0));
    assert_eq!(world.agent.forget(of("p-17")).unwrap().events, 2);
    assert_eq!((of("p-17").len(), of("p-3").len()), (0, 1));
    assert_eq!(world.agent.fact("handover", "*", "*").unwrap().observations(), 1);
}

#[test]
fn an_intent_says_why_and_waits_in_a_list() {
    let [registry, policy, temperament] = GateFile::ALL.map(GateFile::example);
    let gates = GateFiles::new(registry, policy, temperament).unwrap();
    let hash = |field: &str| ipse::GATE_FIELDS.iter().position(|name| *name == field);
    let bound = Manifest::new(|field| match hash(field) {
        Some(place) => Some(gates.hashes()[place].clone()),
        None => manifest().field(field).map(str::to_owned),
    });
    let opening = Opening { gates: Some(gates.clone()), ..Opening::default() };
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("ipse.db");
    let agent = Agent::register_with(store, &bound.unwrap(), opening).unwrap();
    let propose = |force: i32| {
        let intent = Intent::new("manipulation.grasp").target("glass_cup").environment("ward3");
        agent.propose(&intent.param("force_n", force)).unwrap()
    };
    for (force, reasons) in [
        (25, &[][..]),
        (55, &["force_n is lowered from 55 to 40", "a person must confirm force_n above 30"]),
        (70, &["force_n is forbidden from 60 to 140"]),
    ] {
        let found = propose(force).reasons();
        assert_eq!(found.len(), reasons.len(), "{found:?}");
        let starts = |(found, reason): (&String, &&str)| found.starts_with(*reason);
        assert!(found.iter().zip(reasons).all(starts), "{found:?}");
    }
    let second = propose(50);
    let waiting = agent.waiting(10).unwrap();
    assert_eq!((waiting.len(), &waiting[0]), (2, &second), "newest first");
    assert_eq!(agent.waiting(1).unwrap().len(), 1);
    agent.decide(&second.event_ref(), Decision::Declined).unwrap();
    assert_eq!(agent.waiting(10).unwrap(), waiting[1..]);
}

#[test]
fn an_export_runs_no_pass() {
    let world = World::new();
    world.agent.record(Event::attempt("s").success()).unwrap();
    let early = world.agent.export(&mut Vec::new()).unwrap();
    world.agent.consolidate().unwrap();
    let late = world.agent.export(&mut Vec::new()).unwrap();
    assert_eq!((early.events, early.facts, late.facts), (1, Some(0), Some(1)));
}

#[test]
fn forgetting_is_a_pass_and_no_difference_of_positions() {
    let world = World::new();
    let slip = world.agent.record(Event::attempt("s").failed("slip")).unwrap();
    world.agent.record(Event::attempt("s").success()).unwrap();
    world.agent.consolidate().unwrap();
    let before = world.agent.look().head().unwrap();
    let pass = world.agent.forget([slip.event_ref]).unwrap().pass.unwrap();
    assert_eq!((pass.changed.map(|facts| facts.len()), pass.gone.len()), (Some(1), 1));
    let diff = world.agent.diff(before, world.agent.look().head().unwrap()).unwrap();
    assert_eq!(diff, ipse::Diff::default());
}

#[test]
fn a_subscriber_that_panics_ends_the_handle_and_no_event_is_lost() {
    let world = World::new();
    world.agent.memory().subscribe(|_| panic!("a subscriber")).unwrap();
    world.agent.record(Event::attempt("s").success()).unwrap();
    let agent = world.agent.clone();
    assert!(std::thread::spawn(move || agent.consolidate().map(|_| ())).join().is_err());
    assert_eq!(code(world.agent.record(Event::attempt("s").success())), "open_again");
    let again = Agent::open(&world.store, world.agent.identity()).unwrap();
    assert_eq!(again.fact("s", "*", "*").unwrap().observations(), 1);
    assert!(again.verify().unwrap().findings.is_empty());
}
