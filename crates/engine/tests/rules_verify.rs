//! Changes of rules in a store: correct ones have no findings, and false ones are reported.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::Rules;
use ipse_core::{Admitted, Seq};
use ipse_door::{Origin, admit};
use ipse_engine::{Error, Log, NextStep, RulesError, RulesReport, Trigger, rules_name};
use ipse_inspect::verify::{ExternalEvidence, verify};
use ipse_ledger::{
    Basis, NoteSigner, RulesApproval, RulesEvent, RulesFault, SecretKey, Step, dsse,
};
use world::{World, admitted};

/// The rules that a log begins with.
const FIRST: Rules = Rules::V1;
/// The rules that it changes to.
const SECOND: Rules = Rules::V2;
const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);

fn signer(seed: u8) -> NoteSigner {
    NoteSigner::new("operator", SecretKey::from_seed(&[seed; 32])).unwrap()
}

fn append(log: &mut Log, numbers: std::ops::Range<u64>) {
    let events: Vec<Admitted> = numbers.map(|n| admitted(n, "s", n % 3 == 0)).collect();
    assert!(log.append(&events, PASS).unwrap().pass_error.is_none());
}

/// The approval of a change from the first rules to the second at the checkpoint of the facts.
fn approval(world: &World) -> RulesApproval {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let checkpoint = snapshot.view().progress().unwrap().checkpoint;
    let report =
        RulesReport::compute(snapshot.view(), &world.identity, checkpoint, FIRST, SECOND).unwrap();
    let (identity, rules) = (world.identity, rules_name(SECOND));
    RulesApproval { identity, checkpoint, from: FIRST.hash(), rules, report: report.hash() }
}

/// Events, pass at 7, proposal, activation at 9, events, pass at 13, back at 14.
fn changed() -> (World, Log) {
    let world = World::new();
    let mut log = world.own_log();
    append(&mut log, 0..6);
    log.propose_rules(SECOND).unwrap();
    let signed = dsse::sign(&approval(&world).statement(), &signer(5));
    log.activate_rules(SECOND, &signed, &[signer(5).public()]).unwrap();
    append(&mut log, 6..8);
    log.go_back().unwrap();
    assert_eq!(world.head(), Seq(15));
    (world, log)
}

/// The findings: place and message.
fn findings(world: &World) -> Vec<String> {
    world.under_default_settings(|| findings_now(world))
}

fn findings_now(world: &World) -> Vec<String> {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let (_, manifest) = &world.manifest_bytes()[0];
    let operator_keys = vec![signer(5).public()];
    let outside = ExternalEvidence { operator_keys, ..ExternalEvidence::default() };
    let report = verify(&snapshot, &world.identity, manifest, &outside, &mut |_, _| {}).unwrap();
    report.findings.iter().map(|found| format!("{}: {}", found.place, found.message)).collect()
}

fn canonical(world: &World, seq: u64) -> String {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    snapshot.view().stored(Seq(seq)).unwrap().unwrap().canonical
}

/// Changes an event by hand. Its digest is computed again, and the guards of the table stay.
fn tamper(world: &World, seq: u64, change: &dyn Fn(&str) -> String) {
    let before = canonical(world, seq);
    let after = change(&before);
    assert_ne!(after, before);
    let event = admit(after.as_bytes(), Origin::House, || [0; 16]).unwrap();
    let db = world.raw();
    let guard = "SELECT sql FROM sqlite_schema WHERE name = 'event_is_frozen'";
    let guard: String = db.query_row(guard, [], |row| row.get(0)).unwrap();
    db.execute_batch("DROP TRIGGER event_is_frozen").unwrap();
    let sql = "UPDATE event SET digest = ?1, columns = ?2, payload = ?3 WHERE at = (1 << 40) + ?4";
    let row = (&event.digest.0[..], event.columns, event.canonical, seq.cast_signed());
    assert_eq!(db.execute(sql, row).unwrap(), 1);
    db.execute_batch(&guard).unwrap();
}

/// Changes the step at a position by hand.
fn alter(world: &World, seq: u64, change: &dyn Fn(&mut RulesEvent)) {
    tamper(world, seq, &|canonical| {
        let event = RulesEvent::read(Seq(seq), canonical.as_bytes()).unwrap();
        let mut other = event.clone();
        change(&mut other);
        canonical.replace(&event.data(), &other.data())
    });
}

fn sign_again(event: &mut RulesEvent, by: u8, approved: RulesApproval) {
    let Step::Active(Basis::Approved { approval, .. }) = &mut event.step else { panic!() };
    *approval = dsse::sign(&approved.statement(), &signer(by));
}

#[test]
fn changes_of_rules_have_no_findings() {
    let (world, mut log) = changed();
    assert_eq!(findings(&world), Vec::<String>::new());
    append(&mut log, 8..12);
    assert_eq!(findings(&world), Vec::<String>::new());
}

type Attack = (&'static str, &'static dyn Fn(&World), &'static str);

const ATTACKS: &[Attack] = &[
    (
        "approval from other rules",
        &|world| {
            alter(world, 9, &|event| {
                let other = RulesApproval { from: [1; 32], ..approval(world) };
                sign_again(event, 5, other);
            });
        },
        "rules event at seq 9: its approval is for a change from other rules",
    ),
    (
        "descriptor altered",
        &|world| {
            alter(world, 8, &|event| event.step = Step::Proposed { file: "{}".into() });
        },
        "rules event at seq 8: has a descriptor with another hash",
    ),
    (
        "activation that goes back",
        &|world| alter(world, 9, &|event| event.step = Step::Active(Basis::Back)),
        "rules event at seq 9: goes back, but no activation is left to undo",
    ),
    (
        "going back to the wrong rules",
        &|world| alter(world, 14, &|event| event.rules = rules_name(SECOND)),
        "rules event at seq 14: goes back to rules that were not in force before",
    ),
    (
        "first rules in the middle",
        &|world| alter(world, 9, &|event| event.step = Step::Active(Basis::First)),
        "rules event at seq 9: begins a log with rules, but is not its first event",
    ),
    (
        "member more",
        &|world| tamper(world, 9, &|text| text.replacen("{\"data\":{", "{\"data\":{\"a\":1,", 1)),
        "rules event at seq 9: cannot be read",
    ),
    (
        "pass under rules not in force",
        &|world| {
            let hash = |rules| rules_name(rules).hex();
            tamper(world, 13, &|text| {
                let version = |rules: Rules| format!("\"rule_version\":\"{}\"", rules.version());
                text.replace(&version(SECOND), &version(FIRST)).replace(&hash(SECOND), &hash(FIRST))
            });
        },
        "pass record at seq 13: names rules that were not in force",
    ),
    (
        "pass of a change by hand",
        &|world| tamper(world, 10, &|text| text.replace("\"rules\"", "\"manual\"")),
        "pass record at seq 10: must be triggered by rules",
    ),
    (
        "pass of no change",
        &|world| tamper(world, 13, &|text| text.replace("\"manual\"", "\"rules\"")),
        "pass record at seq 13: is triggered by rules, but none changed before it",
    ),
];

#[test]
fn false_changes_of_rules_are_found_at_their_place() {
    for (name, attack, wanted) in ATTACKS {
        let (world, log) = changed();
        drop(log);
        attack(&world);
        let found = findings(&world);
        assert!(found.iter().any(|line| line == wanted), "{name}: {found:#?}");
    }
}

/// Going back would be in vain if the approval could be used again.
#[test]
fn an_approval_is_good_for_one_activation() {
    let world = World::new();
    let mut log = world.own_log();
    append(&mut log, 0..6);
    let signed = dsse::sign(&approval(&world).statement(), &signer(5));
    let operators = [signer(5).public()];
    log.propose_rules(SECOND).unwrap();
    log.activate_rules(SECOND, &signed, &operators).unwrap();
    log.go_back().unwrap();
    log.propose_rules(SECOND).unwrap();
    let head = world.head();
    let error = log.activate_rules(SECOND, &signed, &operators).unwrap_err();
    let Error::Rules(error) = error else { panic!("{error}") };
    assert_eq!(error, RulesError::Fault(RulesFault::WrongCheckpoint));
    assert_eq!((error.code(), world.head()), ("report_moved", head));
    let again = dsse::sign(&approval(&world).statement(), &signer(5));
    log.activate_rules(SECOND, &again, &operators).unwrap();
    assert_eq!(findings(&world), Vec::<String>::new());
}
