//! The rules of a log come from its newest pass. Facts that follow unknown rules do not change, and
//! every operation that needs those rules returns an error.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::{Contribution, LimitError, RuleSet, Rules, Skip, V1};
use ipse_core::{Admitted, Event, EvidenceKey, FactId, FactKey, FactKind, Seq, Support};
use ipse_door::house_event;
use ipse_engine::facts::Filter;
use ipse_engine::{
    Appended, CompleteLog, Error, Host, Memory, NextStep, Policy, Selection, Trigger, as_of,
    chosen_as_of, rebuild, restore, rules_of,
};
use ipse_inspect::explain::{Explanation, evidence, feeds};
use ipse_inspect::verify::{ExternalEvidence, Report, verify};
use ipse_inspect::{Look, Moment, diff, preview};
use ipse_ledger::account::PassClaim;
use ipse_ledger::{Basis, Entry, RuleSetName, RulesEvent, Step};
use ipse_store::{RawFact, View};
use world::{CountTypes, TestHost, World, admitted};

const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);

/// The name `v1` with another descriptor.
struct OtherV1;

impl RuleSet for OtherV1 {
    type Tally = <V1 as RuleSet>::Tally;

    fn version(&self) -> &'static str {
        "v1"
    }

    fn descriptor(&self) -> String {
        "{\"rule_version\":\"v1\"}".to_string()
    }

    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Self::Tally>>, Skip> {
        V1.contributions(event)
    }

    fn publish(
        &self,
        key: &FactKey,
        tally: &Self::Tally,
        last: &Support,
    ) -> Result<Option<String>, LimitError> {
        V1.publish(key, tally, last)
    }
}

fn events() -> Vec<Admitted> {
    (0..30).map(|n| admitted(n, "s", n % 3 == 0)).collect()
}

/// Stores with unknown rules, and the version that they name.
fn unknown() -> [(World, &'static str); 2] {
    let (types, other) = (World::new(), World::new());
    let mut log = types.log(CountTypes);
    log.save_every(1);
    log.append(&events(), PASS).unwrap();
    let mut log = other.log(OtherV1);
    log.save_every(1);
    log.append(&events(), PASS).unwrap();
    [(types, "count-types"), (other, "v1")]
}

/// The encoded sum of each fact, by its id.
type Sums = Vec<(Vec<u8>, Vec<u8>)>;

/// Raw facts and sums, and the checkpoint.
fn derived(world: &World) -> (Vec<RawFact>, Sums, Seq) {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let view = snapshot.view();
    let checkpoint = view.progress().unwrap().checkpoint;
    (view.raw_facts().unwrap(), view.raw_tallies().unwrap(), checkpoint)
}

/// Tries an operation on each such store: its error must name the rules, and facts, sums and passes
/// must not change.
#[track_caller]
fn refused<T>(what: &str, mut act: impl FnMut(&World) -> Result<T, Error>) {
    for (world, version) in unknown() {
        let before = derived(&world);
        assert!(!before.0.is_empty() && !before.1.is_empty());
        match act(&world) {
            Err(error @ Error::UnknownRules { .. }) => {
                let words = error.to_string();
                assert!(words.contains(&format!("`{version}`")), "{what}: {words}");
                assert!(words.contains("a newer ipse is needed"), "{what}: {words}");
            }
            Err(error) => panic!("{what}: {error}"),
            Ok(_) => panic!("{what}: done under unknown rules"),
        }
        assert_eq!(derived(&world), before, "{what}");
    }
}

/// The same for a read operation.
#[track_caller]
fn unseen<T>(what: &str, act: impl Fn(View<'_>) -> Result<T, Error>) {
    refused(what, |world| {
        let reader = world.reader();
        let snapshot = reader.view(&world.identity)?;
        act(snapshot.view())
    });
}

#[test]
fn an_append_is_durable_and_its_pass_is_refused() {
    refused("append", |world| {
        let mut log = world.own_log();
        let done = log.append(&[admitted(99, "s", true)], PASS).unwrap();
        assert_eq!(done.appended, [Appended::New(Seq(32))]);
        assert_eq!((done.pass, world.head()), (None, Seq(32)), "no pass record follows");
        Err::<(), _>(done.pass_error.unwrap())
    });
    refused("consolidate", |world| world.own_log().consolidate(Trigger::Startup));
}

#[test]
fn nothing_is_forgotten() {
    refused("forget", |world| {
        let done = world.own_log().forget(&Selection::Refs(vec![events()[3].event_ref]));
        assert_eq!(world.head(), Seq(31), "no forget event follows");
        done
    });
    unseen("preview", |view| preview(view, &Selection::AllBut(1)));
}

#[test]
fn facts_as_of_a_position_are_refused() {
    unseen("as_of", |view| as_of(view, Seq(20)));
    unseen("as_of the checkpoint", |view| as_of(view, Seq(30)));
    unseen("chosen_as_of", |view| chosen_as_of(view, Seq(20), &Filter::default(), None));
    unseen("diff", |view| diff(view, Seq(10), Seq(20)));
    refused("a look", |world| {
        Look::at(&world.store, world.identity).as_of(
            Moment::Position(Seq(20)),
            &Filter::default(),
            None,
        )
    });
}

#[test]
fn an_explanation_is_refused() {
    let key = FactKey::new(FactKind::SkillSuccessRate, &["s", "*", "*"]);
    unseen("evidence", |view| evidence(view, &EvidenceKey::all(key.clone()), Seq(30), 0, 10));
    unseen("feeds", |view| feeds(view, Seq(7)));
    unseen("explanation", |view| {
        let fact = view.facts()?.remove(0);
        Explanation::of(view, &view.identity(), &fact, Some(1))
    });
    refused("a look", |world| {
        let (facts, _, _) = derived(world);
        let id = FactId(facts[0].fact_id.as_slice().try_into().unwrap());
        Look::at(&world.store, world.identity).explanation(&id, 1)
    });
}

#[test]
fn a_rebuild_is_refused() {
    unseen("rebuild", |view| rebuild(view, Seq(30)));
}

#[test]
fn an_export_is_refused() {
    unseen("the rule set of a bundle", rules_of);
    unseen("the facts of a bundle", |view| as_of(view, view.progress()?.checkpoint));
}

fn verified(world: &World) -> Report {
    world.under_default_settings(|| verified_now(world))
}

fn verified_now(world: &World) -> Report {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let (_, manifest) = &world.manifest_bytes()[0];
    let outside = ExternalEvidence::default();
    verify(&snapshot, &world.identity, manifest, &outside, &mut |_, _| {}).unwrap()
}

/// All data except facts and sums is compared.
#[test]
fn a_verification_reports_which_rules_are_missing() {
    let (world, version) = (World::new(), CountTypes.version());
    let hash = ipse_core::sha256(&[CountTypes.descriptor().as_bytes()]);
    let rules = RuleSetName { version: version.to_string(), hash };
    let first = RulesEvent { rules, step: Step::Active(Basis::First) };
    let mut writer = world.store.writer(&world.identity).unwrap();
    let mut batch = writer.begin().unwrap();
    let now = TestHost(0).now();
    batch.append(&house_event("ipse.rules", "rules:1", now, &first.data(), [1; 16])).unwrap();
    batch.commit().unwrap();
    drop(writer);
    world.log(CountTypes).append(&events(), PASS).unwrap();
    let before = derived(&world);
    let report = verified(&world);
    let reported: Vec<_> =
        report.findings.iter().map(|it| (it.place.as_str(), it.message.as_str())).collect();
    let message = format!("follows rule set `{version}`, which this ipse does not know");
    assert_eq!(reported, [("pass at seq 32", message.as_str())]);
    assert!(report.findings[0].hint.contains("a newer ipse"));
    let note = "facts and tallies were not compared: their rules are unknown";
    assert!(report.notes.iter().any(|it| it == note), "{:?}", report.notes);
    assert_eq!(report.events, 32);
    world.raw().execute_batch("UPDATE pass SET rule_version = 'v0'").unwrap();
    let reported = verified(&world).findings;
    assert_eq!(reported.len(), 1, "a changed row is reported once");
    assert_eq!(reported[0].message, "differs from its record in the log");
    world.raw().execute(&format!("UPDATE pass SET rule_version = '{version}'"), ()).unwrap();
    assert_eq!(derived(&world), before);
}

/// No event put these rules in force.
#[test]
fn a_pass_under_rules_that_are_not_in_force_is_reported() {
    for (world, _) in unknown() {
        let reported = verified(&world).findings;
        assert_eq!(reported.len(), 1);
        assert_eq!(reported[0].place, "pass record at seq 31");
        assert_eq!(reported[0].message, "names rules that were not in force");
    }
}

#[test]
fn a_log_that_names_them_is_not_taken_in() {
    for (world, version) in unknown() {
        let (reader, empty) = (world.reader(), World::new());
        let snapshot = reader.view(&world.identity).unwrap();
        let record = snapshot.view().stored(Seq(31)).unwrap().unwrap();
        let passes = [PassClaim::read(Seq(31), record.canonical.as_bytes(), 30).unwrap()];
        let (checkpoint, last_head) = (Seq(30), None);
        let whole = CompleteLog { passes: &passes, statements: &[], checkpoint, last_head };
        let log = std::iter::empty::<Result<(Entry, Option<Admitted>), Error>>();
        let done = restore(&empty.store, &empty.identity, log, &whole);
        let Err(Error::UnknownRules { version: named, .. }) = done else { panic!("{done:?}") };
        assert_eq!((named.as_str(), empty.head()), (version, Seq(0)));
    }
}

#[test]
fn a_program_knows_the_stored_facts_and_appends() {
    for (world, version) in unknown() {
        let before = derived(&world);
        let policy = Policy { every: 1, ..Policy::default() };
        let host = Box::new(TestHost(0));
        let memory = Memory::open(&world.store, world.identity, policy, host, None).unwrap();
        let error = memory.take_pass_error().unwrap().unwrap().to_string();
        assert!(error.contains(version), "{error}");
        assert_eq!(
            (memory.known().rule_version(), memory.known().len()),
            (version, before.0.len())
        );
        let done = memory.append_all(&[admitted(99, "s", true)]).unwrap();
        assert_eq!(done.appended, [Appended::New(Seq(32))]);
        assert!(matches!(done.pass_error, Some(Error::UnknownRules { .. })));
        assert_eq!(derived(&world), before);
    }
}

#[test]
fn a_new_log_gets_the_default_rules_and_keeps_them() {
    let world = World::new();
    let reader = world.reader();
    assert_eq!(rules_of(reader.view(&world.identity).unwrap().view()).unwrap(), Rules::default());
    world.own_log().append(&events(), PASS).unwrap();
    assert_eq!(world.pass_records()[0]["rule_version"], Rules::default().version());
    assert_eq!(rules_of(reader.view(&world.identity).unwrap().view()).unwrap(), Rules::default());
    assert_eq!(world.snapshot(), world::fold(&events()));
    world.assert_healthy();
}

/// A handle that ran passes does not start over when another process has changed the rules.
#[test]
fn a_handle_follows_its_log() {
    let world = World::new();
    let mut log = world.own_log();
    log.append(&events()[..20], PASS).unwrap();
    world.log(CountTypes).consolidate(Trigger::Manual).unwrap().unwrap();
    let before = derived(&world);
    let done = log.append(&events()[20..], PASS).unwrap();
    assert!(matches!(done.pass_error, Some(Error::UnknownRules { .. })));
    assert_eq!(derived(&world), before);
    world.log(V1).consolidate(Trigger::Manual).unwrap().unwrap();
    let done = log.append(&[admitted(77, "s", true)], PASS).unwrap();
    assert!(done.pass_error.is_none() && done.pass.is_some());
    let all = [events(), vec![admitted(77, "s", true)]].concat();
    assert_eq!(world.snapshot(), world::fold(&all));
    assert!(world.rebuilds_equal());
}
