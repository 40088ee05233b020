//! Trails: a store and a bundle of the same log give the same bytes. Explanations count the planned
//! evidence of a fact.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../bundle/tests/all/forge.rs"]
mod forge;
#[path = "../../engine/tests/world/mod.rs"]
mod world;

use forge::{Log, MANIFEST, decision, log_key, producer_event, trust_of, trusted};
use ipse_bundle::trail::{FACTS, Found, Listing, Trail};
use ipse_bundle::{WhyError, open};
use ipse_consolidate::{V1, f};
use ipse_core::json::quoted;
use ipse_core::{Admitted, EventRef, FactId, FactKind, Seq};
use ipse_door::{Origin, admit};
use ipse_engine::facts::Filter;
use ipse_engine::{Claim, CompleteLog, Consultation, Error, Memory, Policy, Status, restore};
use ipse_inspect::Look;
use ipse_inspect::explain::Explanation;
use ipse_ledger::{ProofFile, TreeHead};
use ipse_store::{Location, Store};
use proptest::prelude::*;
use serde_json::Value;
use std::time::Duration;
use tempfile::TempDir;
use world::{TestHost, World};

const LISTING: Listing = Listing { evidence: 4, page: 1 };
const VERDICTS: [&str; 4] = ["admitted", "clamped", "needs_confirmation", "denied"];

fn intent(n: u64, verdict: &str, consultation: Option<&Consultation>) -> Admitted {
    let data = forge::intent_data(verdict)
        .optional("consultation", consultation.map(|it| &it.json))
        .optional("consultation_id", consultation.map(|it| quoted(&it.id())));
    forge::intent(n, data)
}

fn attempt(n: u64, intent: Option<&EventRef>) -> Admitted {
    let intent = intent.map(|name| format!(",\"intent\":\"{name}\"")).unwrap_or_default();
    let data = format!(
        r#"{{"skill_id":"grasp","target_class":"cup","environment":"ward3",
        "params":{{"force_n":{}}},"success":{},"failure_reason":"slip"{intent}}}"#,
        20 + n % 7,
        !n.is_multiple_of(3)
    );
    producer_event(n, "robot-7", "execution_result", &data)
}

/// The consultation of a planner now.
fn consulted(log: &Log, filter: &Filter) -> Consultation {
    let rows = log.rows.iter().filter_map(|row| row.event.as_ref());
    let events: Vec<Admitted> =
        rows.map(|it| admit(it.as_bytes(), Origin::House, || [0; 16]).unwrap()).collect();
    let facts = filter.choose(f(&V1, events.iter().map(forge::typed)).unwrap()).unwrap();
    Consultation::of(&log.identity(), Seq(log.rows.len() as u64), "v1", filter, &facts)
}

/// A store that holds the log of a bundle, under the same tree head.
struct Kept {
    _directory: TempDir,
    store: Store,
}

fn keep(log: &Log, bytes: &[u8]) -> Kept {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = Store::create(&Location::file(path)).unwrap();
    let identity = store.register(&log.manifest).unwrap().identity;
    assert_eq!(identity, log.identity());
    let trust = trust_of(&trusted()).unwrap();
    let opened = open(&bytes, &trust, &[], &mut |_, _| {}).unwrap();
    let opened = opened.unwrap_or_else(|report| panic!("{}", forge::reported(&report)));
    let checkpoint = opened.bundled.checkpoint.unwrap_or_default();
    let (passes, last_head) = (&opened.passes, None);
    let whole = CompleteLog { passes, statements: &[], checkpoint, last_head };
    let events = opened.log().map(|line| {
        let (entry, event) = line.unwrap();
        let event = event.map(|it| admit(it.as_bytes(), Origin::House, || [0; 16]).unwrap());
        Ok::<_, Error>((entry, event))
    });
    restore(&store, &identity, events, &whole).unwrap();
    let mut heads = store.heads(&identity).unwrap();
    let grown = heads.grow().unwrap();
    heads.put(&grown, &opened.head_note().unwrap()).unwrap();
    Kept { _directory: directory, store }
}

/// The trails of all events, from the store and from the bundle, which must be equal.
fn reported(log: &Log) -> Vec<Found> {
    told_page(log, LISTING)
}

fn told_page(log: &Log, listing: Listing) -> Vec<Found> {
    let bytes = log.draft().pack();
    let kept = keep(log, &bytes);
    let look = Look::at(&kept.store, log.identity());
    let trust = trust_of(&trusted()).unwrap();
    let opened = open(&bytes, &trust, &[], &mut |_, _| {}).unwrap().map_err(drop).unwrap();
    let mut all = Vec::new();
    let stranger = EventRef([0; 16]);
    let names = log.rows.iter().map(|row| row.entry.event_ref);
    for name in names.chain([stranger]) {
        let (ours, theirs) = (look.action(&name, listing), opened.why(&name, listing));
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        if let (Found::Action(ours), Found::Action(theirs)) = (&ours, &theirs) {
            assert_eq!(ours.json(), theirs.json());
            assert_eq!(ours.text(), theirs.text());
        }
        assert_eq!(ours, theirs);
        all.push(ours);
    }
    all
}

fn json(found: &Found) -> Value {
    match found {
        Found::Action(trail) => serde_json::from_str(&trail.json()).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// One step of a random log.
#[derive(Clone, Debug)]
enum Step {
    Attempt,
    Intent {
        verdict: usize,
        consult: bool,
        forged: bool,
    },
    /// An attempt that names one of the earlier events.
    Acted(prop::sample::Index),
    Decided(prop::sample::Index, bool),
    Forgotten(prop::sample::Index),
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    let any_index = any::<prop::sample::Index>;
    prop_oneof![
        4 => Just(Step::Attempt),
        3 => (0..VERDICTS.len(), any::<bool>(), any::<bool>()).prop_map(
            |(verdict, consult, forged)| Step::Intent { verdict, consult, forged }
        ),
        4 => any_index().prop_map(Step::Acted),
        2 => (any_index(), any::<bool>()).prop_map(|(at, yes)| Step::Decided(at, yes)),
        1 => any_index().prop_map(Step::Forgotten),
        1 => Just(Step::Pass),
    ]
}

fn lived(steps: &[Step]) -> Log {
    let mut log = Log::new(MANIFEST);
    log.push(&attempt(1, None));
    let (mut intents, mut waiting) = (Vec::new(), Vec::new());
    for step in steps {
        let n = log.rows.len() as u64 + 1;
        let there = log.rows.iter().any(|row| row.entry.seq.0 > log.checkpoint);
        match step {
            Step::Attempt => drop(log.push(&attempt(n, None))),
            Step::Intent { verdict, consult, forged } => {
                let filter = Filter { limit: Some(3), ..Filter::default() };
                let mut said = consulted(&log, &filter);
                if *forged {
                    said.json = said.json.replace("\"limit\":3", "\"limit\":2");
                }
                let intent = intent(n, VERDICTS[*verdict], consult.then_some(&said));
                intents.push(intent.event_ref);
                if VERDICTS[*verdict] == "needs_confirmation" {
                    waiting.push(intent.event_ref);
                }
                log.push(&intent);
            }
            Step::Acted(at) if !intents.is_empty() => {
                let name = *at.get(&intents);
                log.push(&attempt(n, Some(&name)));
            }
            Step::Acted(at) => {
                let name = at.get(&log.rows).entry.event_ref;
                log.push(&attempt(n, Some(&name)));
            }
            Step::Decided(at, yes) if !waiting.is_empty() => {
                let name = waiting.swap_remove(at.index(waiting.len()));
                let word = if *yes { "confirmed" } else { "declined" };
                log.push(&decision(n, &name, word));
            }
            Step::Decided(..) => {}
            Step::Forgotten(at) => {
                let row = at.get(&log.rows);
                let seq = row.entry.seq.0;
                let kind = &row.entry.event_type;
                if row.event.is_some() && ipse_ledger::account::can_be_forgotten(kind) {
                    log.forget(&[seq]);
                    log.pass();
                }
            }
            Step::Pass if there => drop(log.pass()),
            Step::Pass => {}
        }
    }
    log
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_store_and_a_bundle_give_the_same_trail(
        steps in proptest::collection::vec(step(), 1..28)
    ) {
        let log = lived(&steps);
        let identity = log.identity();
        for found in reported(&log) {
            let Found::Action(trail) = &found else { continue };
            let reported = json(&found);
            prop_assert_eq!(reported["unproven"].as_array().unwrap().len(), 0);
            for proof in reported["proofs"].as_array().unwrap() {
                let text = |name: &str| proof[name].as_str().unwrap();
                let file = ProofFile::parse(text("proof")).unwrap();
                let keys = [log_key(&identity).public()];
                let origin = TreeHead::origin_of(&identity);
                let head = file.verify(text("entry").as_bytes(), &origin, &keys).unwrap();
                prop_assert_eq!(head.size, log.rows.len() as u64);
            }
            prop_assert!(!trail.text().is_empty());
        }
    }
}

/// Long enough for sealed chunks of both sizes and for subtrees that are stored.
#[test]
fn a_store_and_a_bundle_give_the_same_trail_of_a_long_log() {
    let mut log = Log::new(MANIFEST);
    // Rare old evidence is found behind many newer events.
    for n in 8000..8003 {
        log.push(&producer_event(n, "robot-7", "incident", r#"{"zone":"ramp"}"#));
    }
    log.events(1..=4400);
    log.pass();
    let said = consulted(&log, &Filter::default());
    let intent = intent(9000, "clamped", Some(&said));
    log.push(&intent);
    for n in 0..700 {
        log.push(&attempt(9001 + n, (n == 650).then_some(&intent.event_ref)));
    }
    let bytes = log.draft().pack();
    let kept = keep(&log, &bytes);
    let trust = trust_of(&trusted()).unwrap();
    let opened = open(&bytes, &trust, &[], &mut |_, _| {}).unwrap().map_err(drop).unwrap();
    let look = Look::at(&kept.store, log.identity());
    for evidence in [5, 100] {
        let listing = Listing { evidence, page: 1 };
        let ours = look.action(&intent.event_ref, listing).unwrap();
        assert_eq!(ours, opened.why(&intent.event_ref, listing).unwrap());
        let reported = json(&ours);
        assert_eq!(reported["attempts"].as_array().unwrap().len(), 1);
        assert_eq!(reported["consultation"]["now"], "verified");
        let facts = reported["facts"].as_array().unwrap();
        assert!(facts.iter().any(|it| it["evidence"][evidence - 1].is_object()));
        let rare = facts.iter().find(|it| it["fact_key"] == "ramp").unwrap();
        let seqs = rare["evidence"].as_array().unwrap().iter().map(|it| &it["seq"]);
        assert_eq!(seqs.collect::<Vec<_>>(), [3, 2, 1]);
    }
}

#[test]
fn a_range_says_what_it_lacks() {
    let mut log = Log::new(MANIFEST);
    log.events(1..=9);
    let said = consulted(&log, &Filter::default());
    let with = intent(10, "admitted", Some(&said));
    let (with, without) = (log.push(&with), log.push(&intent(11, "admitted", None)));
    let [with, without] = [with, without].map(|seq| log.name(seq));
    let acted = log.push(&attempt(12, Some(&without)));
    let acted = log.name(acted);
    log.pass();
    let why = |from: u64, to: u64, name: &EventRef| {
        let checkpoint = if to < 13 { 0 } else { 12 };
        let bytes = log.draft_of(from, to, checkpoint).pack();
        let trust = trust_of(&trusted()).unwrap();
        let opened = open(&bytes, &trust, &[], &mut |_, _| {}).unwrap();
        let opened = opened.unwrap_or_else(|report| panic!("{}", forge::reported(&report)));
        opened.why(name, LISTING)
    };
    let lacks = |found: Result<Found, WhyError>| match found {
        Err(error @ WhyError::Lacks { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(why(1, 13, &with), Ok(Found::Action(_))));
    assert!(matches!(why(11, 13, &acted), Ok(Found::Action(_))), "all that it needs is there");
    let error = lacks(why(10, 13, &with));
    assert_eq!(error, "this bundle holds seq 10..13 of 13, but all of seq 1..9 is needed");
    let error = lacks(why(12, 13, &acted));
    assert_eq!(error, "this bundle holds seq 12..13 of 13, but seq 11 is needed");
    let error = lacks(why(1, 12, &acted));
    assert_eq!(error, "this bundle holds seq 1..12 of 13, but all of seq 12..13 is needed");
    assert_eq!(lacks(why(5, 9, &acted)).matches("seq 12 is needed").count(), 1);
}

/// A memory that runs passes only when a test requests them.
fn memory(world: &World) -> Memory {
    let policy = Policy { every: 1_000_000, quiet: Duration::from_secs(3600) };
    Memory::open(&world.store, world.identity, policy, Box::new(TestHost(0)), None).unwrap()
}

#[test]
fn a_claim_is_held_against_the_log_as_it_was() {
    let world = World::new();
    let memory = memory(&world);
    let events: Vec<Admitted> = (1..=9).map(|n| attempt(n, None)).collect();
    memory.append_all(&events).unwrap();
    memory.consolidate().unwrap();
    let known = memory.known();
    let filter = Filter { limit: Some(2), ..Filter::default() };
    let facts = known.choose(&filter);
    let said = Consultation::of(&world.identity, known.checkpoint(), "v1", &filter, &facts);
    let read = |json: &str| {
        let value = ipse_core::json_parse::parse(json.as_bytes(), 8).unwrap();
        Claim::read(value.as_object().unwrap()).unwrap()
    };
    let look = Look::at(&world.store, world.identity);
    let claim = read(&said.json);
    assert_eq!(claim.id(), said.id());
    assert_eq!(look.claim(&claim, None).unwrap(), (Status::Verified, facts));
    memory.append_all(&[attempt(10, None)]).unwrap();
    assert_eq!(look.claim(&claim, None).unwrap().0, Status::Verified);
    for (from, to) in [("\"checkpoint\":9", "\"checkpoint\":99"), ("\"v1\"", "\"v0\"")] {
        let forged = read(&said.json.replace(from, to));
        assert_eq!(look.claim(&forged, None).unwrap().0, Status::Unverified, "{to}");
    }
    let forged = read(&said.json.replace("\"limit\":2", "\"limit\":1"));
    let (status, facts) = look.claim(&forged, None).unwrap();
    assert_eq!((status, facts.len()), (Status::Unverified, 1));
    // Events after the checkpoint did not feed the facts that were read.
    let later = attempt(10, None).event_ref;
    memory.forget(&ipse_engine::Selection::Refs(vec![later])).unwrap();
    assert_eq!(look.claim(&forged, None).unwrap().0, Status::Unverified);
    let names = events.iter().map(|event| event.event_ref).collect();
    memory.forget(&ipse_engine::Selection::Refs(names)).unwrap();
    assert_eq!(look.claim(&claim, None).unwrap(), (Status::ForgottenSince, Vec::new()));
    assert_eq!(look.claim(&forged, None).unwrap().0, Status::ForgottenSince);
}

/// Explains the fact about a skill.
fn explained(world: &World) -> (Explanation, Value) {
    let reader = world.store.reader().unwrap();
    let snapshot = reader.view(&world.identity).unwrap();
    let facts = snapshot.view().facts().unwrap();
    let fact = facts.iter().find(|it| it.key.kind() == FactKind::SkillSuccessRate).unwrap();
    let explanation = Explanation::of(snapshot.view(), &world.identity, fact, Some(1)).unwrap();
    let json = explanation.json();
    assert!(json.contains(&FactId::new(&world.identity, &fact.key).to_string()));
    (explanation, serde_json::from_str(&json).unwrap())
}

#[test]
fn a_fact_says_how_much_of_it_was_planned() {
    let world = World::new();
    let memory = memory(&world);
    memory.append_all(&[attempt(1, None), attempt(2, Some(&EventRef([9; 16])))]).unwrap();
    memory.consolidate().unwrap();
    let (explanation, json) = explained(&world);
    assert!(!explanation.planned.any_intent);
    assert_eq!((&json["planned"], json["evidence"].as_array().unwrap().len()), (&0.into(), 2));
    assert_eq!(json["evidence"][0]["standing"], "unknown_intent");
    assert_eq!(json["evidence"][0]["intent"], EventRef([9; 16]).to_string());
    assert_eq!(json["evidence"][1]["standing"], "unplanned");
    assert_eq!(json["evidence"][1]["intent"], Value::Null);
    let (good, bad) = (intent(3, "admitted", None), intent(4, "denied", None));
    let late = intent(5, "needs_confirmation", None);
    memory.append_all(&[good.clone(), bad.clone(), late.clone()]).unwrap();
    for n in 0..300 {
        let name = [&good, &bad, &late][usize::from(n >= 120) + usize::from(n == 299)];
        let plan = (n < 121 || n == 299).then_some(&name.event_ref);
        memory.append_all(&[attempt(100 + n, plan)]).unwrap();
    }
    memory.append_all(&[decision(6, &late.event_ref, "confirmed")]).unwrap();
    memory.append_all(&[attempt(500, Some(&late.event_ref))]).unwrap();
    memory.consolidate().unwrap();
    let (explanation, json) = explained(&world);
    let planned = explanation.planned;
    assert_eq!((planned.any_intent, planned.planned, planned.against), (true, 121, 2));
    assert_eq!(json["planned"], 121, "of all pages");
    let standings: Vec<_> = json["evidence"].as_array().unwrap()[..3]
        .iter()
        .map(|it| it["standing"].as_str().unwrap())
        .collect();
    assert_eq!(standings, ["planned", "against_gates", "unplanned"]);
    assert_eq!(json["evidence"][0]["intent"], late.event_ref.to_string());
    // Attempts at forgotten intents are no longer counted as planned.
    let names = vec![good.event_ref, bad.event_ref];
    memory.forget(&ipse_engine::Selection::Refs(names)).unwrap();
    assert_eq!(explained(&world).0.planned.planned, 1, "the decision about that is left");
    world.assert_healthy();
}

#[test]
fn other_events_are_distinguished_from_missing_ones() {
    let world = World::new();
    let memory = memory(&world);
    memory.append_all(&[attempt(1, None)]).unwrap();
    memory.consolidate().unwrap();
    let look = Look::at(&world.store, world.identity);
    let pass = EventRef::new("ipse", "pass:v1:1-1");
    let action = |name: &EventRef| look.action(name, LISTING).unwrap();
    assert_eq!(action(&pass), Found::NoAction("consolidation_run".to_owned()));
    assert_eq!(action(&EventRef([0; 16])), Found::Nothing);
    let found = action(&EventRef::new("robot-7", "1"));
    let reported = json(&found);
    assert_eq!(reported["unproven"].as_array().unwrap().len(), 1, "nothing is signed yet");
    let Found::Action(trail) = found else { panic!("no action") };
    assert_eq!(trail.standing().map(|it| it.name()), Some("unplanned"));
    assert!(Trail::text(&trail).contains("under no signed tree head yet"));
}

#[test]
fn a_store_and_a_bundle_give_the_same_pages_of_many_facts() {
    let mut log = Log::new(MANIFEST);
    let object: Vec<String> = (0..2 * FACTS + 1).map(|n| format!("\"p{n:03}\":{n}")).collect();
    let data = format!(r#"{{"target_class":"shelf","object":{{{}}}}}"#, object.join(","));
    log.push(&producer_event(1, "robot-7", "observation", &data));
    let said = consulted(&log, &Filter { limit: Some(1000), ..Filter::default() });
    let asked = log.push(&intent(2, "admitted", Some(&said)));
    log.pass();
    let page = |page| {
        let found = told_page(&log, Listing { page, ..LISTING });
        json(&found[asked as usize - 1])
    };
    let counts = [1, 2, 3, 4].map(|number| page(number)["facts"].as_array().unwrap().len());
    assert_eq!(counts, [FACTS, FACTS, 1, 0]);
    let next = [1, 2, 3, 4].map(|number| page(number)["next_page"].as_u64());
    assert_eq!(next, [Some(2), Some(3), None, None]);
}
