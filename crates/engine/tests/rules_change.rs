//! Changes of the rules of a log: activation, going back, and what they leave untouched.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::{Rules, f, snapshot, with_rules};
use ipse_core::{Admitted, Columns, Event, EventRef, Seq};
use ipse_engine::facts::Filter;
use ipse_engine::{
    Claim, Consultation, Error, Log, NextStep, RulesReport, Selection, Status, Trigger, as_of,
    rules_at, rules_history, rules_name, rules_of,
};
use ipse_inspect::verify::{ExternalEvidence, Report, verify};
use ipse_inspect::{Look, RulesList};
use ipse_ledger::{NoteKey, NoteSigner, RulesApproval, SecretKey, dsse};
use ipse_store::{Failure, Faults};
use world::{World, admitted};

/// The rule set that logs change to.
const SECOND: Rules = Rules::V2;

fn operator() -> NoteSigner {
    NoteSigner::new("operator", SecretKey::from_seed(&[5; 32])).unwrap()
}

fn keys() -> [NoteKey; 1] {
    [operator().public()]
}

/// Five events of skills that have one, two or three attempts.
fn events(first: u64) -> Vec<Admitted> {
    let skills = ["once", "often", "often", "often", "twice"];
    let event = |(place, skill): (u64, &&str)| {
        let skill = if *skill == "once" { format!("once-{first}") } else { (*skill).to_owned() };
        admitted(first + place, &skill, place % 2 == 0)
    };
    (0..).zip(&skills).map(event).collect()
}

fn append(log: &mut Log, first: u64) {
    log.append(&events(first), NextStep::Consolidate(Trigger::Manual)).unwrap();
}

fn report(world: &World, to: Rules) -> RulesReport {
    let look = Look::at(&world.store, world.identity);
    look.rules_report(&rules_name(to), None).unwrap().unwrap()
}

/// The operator's approval of a change, as of now.
fn approval(world: &World, to: Rules, change: impl FnOnce(&mut RulesApproval)) -> String {
    let report = report(world, to);
    let mut approval = RulesApproval {
        identity: world.identity,
        checkpoint: report.checkpoint,
        from: report.from.hash(),
        rules: rules_name(to),
        report: report.hash(),
    };
    change(&mut approval);
    dsse::sign(&approval.statement(), &operator())
}

fn activate(world: &World, log: &mut Log, to: Rules) {
    log.propose_rules(to).unwrap();
    let done = log.activate_rules(to, &approval(world, to, |_| {}), &keys()).unwrap();
    let pass = done.pass.unwrap().committed;
    assert_eq!((pass.first_seq, pass.last_seq), (Seq(1), done.seq));
}

fn in_force(world: &World) -> Rules {
    rules_of(world.reader().view(&world.identity).unwrap().view()).unwrap()
}

/// The snapshot that the function gives for all producers' events of a log.
fn derived(world: &World, rules: Rules) -> String {
    let mut all = Vec::new();
    world
        .reader()
        .view(&world.identity)
        .unwrap()
        .view()
        .each_stored(false, None, |stored| {
            if let Ok(event) =
                ipse_door::admit(stored.canonical.as_bytes(), ipse_door::Origin::Producer, || {
                    [0; 16]
                })
            {
                all.push(event);
            }
            Ok::<_, ipse_store::Error>(std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
    let typed = |event: &'_ Admitted| Event {
        event_ref: event.event_ref,
        time: event.time,
        event_type: Box::leak(event.event_type.clone().into_boxed_str()),
        columns: Columns::decode(Box::leak(event.columns.clone().into_boxed_slice())).unwrap(),
    };
    let facts = with_rules!(rules, |rules| f(rules, all.iter().map(typed)).unwrap());
    snapshot(&facts)
}

fn verified(world: &World, operators: &[NoteKey]) -> Report {
    let reader = world.reader();
    let view = reader.view(&world.identity).unwrap();
    let outside =
        ExternalEvidence { operator_keys: operators.to_vec(), ..ExternalEvidence::default() };
    let manifest = &world.manifest_bytes()[0].1;
    verify(&view, &world.identity, manifest, &outside, &mut |_, _| {}).unwrap()
}

fn assert_verifies(world: &World) {
    assert_eq!(verified(world, &keys()).findings, []);
}

#[test]
fn facts_follow_the_rules_in_force_at_every_step() {
    let (world, plain) = (World::new(), World::new());
    let (mut log, mut other) = (world.own_log(), plain.own_log());
    let identity = world.manifest_bytes();
    for (step, change) in
        [Some(SECOND), Some(Rules::V1), Some(SECOND), None, None, None].into_iter().enumerate()
    {
        append(&mut log, step as u64 * 10);
        append(&mut other, step as u64 * 10);
        let expected = match change {
            Some(to) => {
                activate(&world, &mut log, to);
                to
            }
            None => {
                log.go_back().unwrap();
                [Rules::V1, SECOND, Rules::V1][step - 3]
            }
        };
        assert_eq!(in_force(&world), expected, "step {step}");
        assert_eq!(world.snapshot(), derived(&world, expected), "step {step}");
        assert_verifies(&world);
    }
    append(&mut log, 100);
    append(&mut other, 100);
    assert_eq!(world.snapshot(), plain.snapshot(), "as if never activated");
    assert_eq!(world.manifest_bytes(), identity);
    let error = log.go_back().unwrap_err();
    assert!(matches!(&error, Error::Rules(it) if it.code() == "nothing_to_go_back_to"), "{error}");
    let reader = world.reader();
    let view = reader.view(&world.identity).unwrap();
    let history = rules_history(view.view()).unwrap();
    for (seq, name) in history.changes() {
        assert_eq!(rules_name(rules_at(view.view(), *seq).unwrap()), *name);
        let facts = snapshot(&as_of(view.view(), *seq).unwrap().facts);
        assert!(facts.contains(&format!("\"rule_version\":\"{}\"", name.version)));
    }
}

#[test]
fn a_handle_that_was_open_follows_the_change_of_another() {
    let world = World::new();
    let (mut log, mut other) = (world.own_log(), world.own_log());
    append(&mut log, 0);
    append(&mut other, 10);
    activate(&world, &mut log, SECOND);
    append(&mut other, 20);
    assert_eq!(world.snapshot(), derived(&world, SECOND));
    log.go_back().unwrap();
    append(&mut other, 30);
    assert_eq!(world.snapshot(), derived(&world, Rules::V1));
    assert_verifies(&world);
}

#[test]
fn a_consultation_from_before_an_activation_stays_verified() {
    let world = World::new();
    let mut log = world.own_log();
    let look = Look::at(&world.store, world.identity);
    let mut claims = Vec::new();
    for (step, to) in [SECOND, Rules::V1, SECOND].into_iter().enumerate() {
        append(&mut log, step as u64 * 10);
        claims.push(consulted(&world));
        activate(&world, &mut log, to);
        claims.push(consulted(&world));
    }
    log.go_back().unwrap();
    append(&mut log, 50);
    claims.push(consulted(&world));
    for claim in &claims {
        assert_eq!(look.claim(claim, None).unwrap().0, Status::Verified, "{}", claim.json());
        let other = claim.json().replace(
            &format!("\"rule_version\":\"{}\"", claim.rule_version()),
            if claim.rule_version() == "v1" {
                "\"rule_version\":\"v2\""
            } else {
                "\"rule_version\":\"v1\""
            },
        );
        let other = read(&other);
        assert_eq!(look.claim(&other, None).unwrap().0, Status::Unverified, "{}", other.json());
    }
}

fn read(json: &str) -> Claim {
    let value = ipse_core::json_parse::parse(json.as_bytes(), 8).unwrap();
    Claim::read(value.as_object().unwrap()).unwrap()
}

/// The consultation of all facts now.
fn consulted(world: &World) -> Claim {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let (progress, filter) = (snapshot.view().progress().unwrap(), Filter::default());
    let facts = filter.choose(snapshot.view().facts().unwrap()).unwrap();
    let version = &progress.rule_version;
    let read_now = Consultation::of(&world.identity, progress.checkpoint, version, &filter, &facts);
    read(&read_now.json)
}

#[test]
fn a_change_that_does_not_follow_writes_nothing() {
    let world = World::new();
    let mut log = world.own_log();
    append(&mut log, 0);
    log.forget(&Selection::Refs(vec![events(0)[0].event_ref])).unwrap();
    let good = approval(&world, SECOND, |_| {});
    let before = (world.head(), world.snapshot());
    let mut rejected = |what: &str, code: &str, run: &mut dyn FnMut(&mut Log) -> Error| {
        let error = run(&mut log);
        let found = match &error {
            Error::Rules(error) => error.code(),
            Error::UnknownRules { .. } => "unknown_rules",
            _ => "another error",
        };
        assert_eq!(found, code, "{what}: {error}");
        assert_eq!((world.head(), world.snapshot()), before, "{what}");
    };
    let no_proposal = &mut |log: &mut Log| log.activate_rules(SECOND, &good, &keys()).unwrap_err();
    rejected("no proposal", "not_proposed", no_proposal);
    rejected("withdraw", "not_proposed", &mut |log| {
        log.withdraw_rules(&rules_name(SECOND)).unwrap_err()
    });
    rejected("back", "nothing_to_go_back_to", &mut |log| log.go_back().unwrap_err());
    rejected("in force", "already", &mut |log| log.propose_rules(Rules::V1).unwrap_err());
    rejected("begin", "not_first", &mut |log| log.begin_with_rules(SECOND).unwrap_err());
    log.propose_rules(SECOND).unwrap();
    let before = (world.head(), world.snapshot());
    let stranger = NoteSigner::new("operator", SecretKey::from_seed(&[6; 32])).unwrap();
    let changes: [(&str, &str, String); 6] = [
        ("another identity", "not_signed", approval(&world, SECOND, |it| it.identity.0 = [1; 32])),
        ("another set before", "not_signed", approval(&world, SECOND, |it| it.from = [1; 32])),
        ("another report", "report_moved", approval(&world, SECOND, |it| it.report = [1; 32])),
        ("another position", "report_moved", approval(&world, SECOND, |it| it.checkpoint = Seq(1))),
        ("beyond", "report_moved", approval(&world, SECOND, |it| it.checkpoint = Seq(999))),
        ("no envelope", "not_signed", "{}".to_owned()),
    ];
    let mut rejected = |what: &str, code: &str, approval: &str, keys: &[NoteKey]| {
        let error = log.activate_rules(SECOND, approval, keys).unwrap_err();
        let Error::Rules(error) = &error else { panic!("{what}: {error}") };
        assert_eq!(error.code(), code, "{what}: {error}");
        assert_eq!((world.head(), world.snapshot()), before, "{what}");
    };
    for (what, code, approval) in &changes {
        rejected(what, code, approval, &keys());
    }
    rejected("a stranger", "not_signed", &good, &[stranger.public()]);
    let error = log.activate_rules(Rules::V1, &good, &keys()).unwrap_err();
    assert!(error.to_string().contains("not v1"), "{error}");
    // Events may be added after the report; forgetting one behind it moves the report.
    append(&mut log, 10);
    log.forget(&Selection::Refs(vec![events(0)[4].event_ref])).unwrap();
    let error = log.activate_rules(SECOND, &good, &keys()).unwrap_err();
    assert!(error.to_string().contains("not the one that the log gives now"), "{error}");
    let good = approval(&world, SECOND, |_| {});
    append(&mut log, 20);
    log.activate_rules(SECOND, &good, &keys()).unwrap();
    assert_verifies(&world);
}

#[test]
fn a_log_may_begin_with_other_rules() {
    let world = World::new();
    let mut log = world.own_log();
    assert!(log.begin_with_rules(SECOND).unwrap().pass.is_none());
    assert_eq!(in_force(&world), SECOND);
    append(&mut log, 0);
    assert_eq!(world.snapshot(), derived(&world, SECOND));
    assert!(matches!(log.go_back(), Err(Error::Rules(_))), "the first rules cannot be undone");
    activate(&world, &mut log, Rules::V1);
    log.go_back().unwrap();
    assert_eq!((in_force(&world), world.snapshot()), (SECOND, derived(&world, SECOND)));
    assert_verifies(&world);
    assert_eq!(verified(&world, &[]).findings, []);
    assert!(verified(&world, &[]).notes.iter().any(|note| note.contains("approvals of rules")));
    let stranger = NoteSigner::new("operator", SecretKey::from_seed(&[6; 32])).unwrap();
    let report = verified(&world, &[stranger.public()]);
    assert_eq!(report.findings, []);
    let note = "its approval is not signed by a trusted operator key; it names operator+";
    assert!(report.notes.iter().any(|it| it.contains(note)), "{:?}", report.notes);
}

#[test]
fn an_activation_over_an_empty_log_writes_its_pass() {
    let world = World::new();
    let mut log = world.own_log();
    activate(&world, &mut log, SECOND);
    assert_eq!(world.types(), ["ipse.rules", "ipse.rules", "consolidation_run"]);
    let record = &world.pass_records()[0];
    assert_eq!(record["trigger"], "rules");
    assert_eq!((&record["first_seq"], &record["last_seq"]), (&1.into(), &2.into()));
    assert_verifies(&world);
}

#[test]
fn forgetting_under_other_rules_equals_never_having_had_the_event() {
    let (world, plain) = (World::new(), World::new());
    let (mut log, mut other) = (world.own_log(), plain.own_log());
    append(&mut log, 0);
    activate(&world, &mut log, SECOND);
    append(&mut log, 10);
    let gone: Vec<EventRef> = [&events(0)[1], &events(10)[2]].map(|event| event.event_ref).into();
    log.forget(&Selection::Refs(gone.clone())).unwrap();
    let kept = [events(0), events(10)].concat();
    let kept: Vec<_> = kept.into_iter().filter(|it| !gone.contains(&it.event_ref)).collect();
    activate(&plain, &mut other, SECOND);
    other.append(&kept, NextStep::Consolidate(Trigger::Manual)).unwrap();
    assert_eq!(world.snapshot(), plain.snapshot());
    log.go_back().unwrap();
    other.go_back().unwrap();
    assert_eq!(world.snapshot(), plain.snapshot());
    assert_verifies(&world);
}

#[test]
fn opening_a_log_changes_no_fact() {
    let world = World::new();
    let mut log = world.own_log();
    append(&mut log, 0);
    activate(&world, &mut log, SECOND);
    drop(log);
    let before = (world.head(), world.snapshot());
    for _ in 0..3 {
        let mut log = world.own_log();
        assert!(log.consolidate(Trigger::Startup).unwrap().is_none());
    }
    assert_eq!((world.head(), world.snapshot()), before);
}

#[test]
fn a_failed_call_during_an_activation_leaves_one_whole_set() {
    let base = World::new();
    let mut log = base.own_log();
    append(&mut log, 0);
    log.propose_rules(SECOND).unwrap();
    drop(log);
    let (old, approval) = (base.snapshot(), approval(&base, SECOND, |_| {}));
    let new = derived(&base, SECOND);
    assert_ne!(old, new);
    let mut runs = 0;
    for call in 1.. {
        let mut ended = false;
        for (failure, for_good) in [Failure::NotMade, Failure::MadeAndLost]
            .into_iter()
            .flat_map(|it| [(it, false), (it, true)])
        {
            let context = format!("call {call}, {failure:?}, permanent: {for_good}");
            let (world, faults) = (base.copy(), Faults::default());
            let store = world.store.failing(&faults).unwrap();
            faults.plan(call, failure, for_good);
            let log = Log::open(&store, world.identity, Box::new(world::TestHost(1 << 64)));
            let done = log.and_then(|mut log| log.activate_rules(SECOND, &approval, &keys()));
            ended = faults.calls() < call;
            faults.clear();
            drop(store);
            let is_new = in_force(&world) == SECOND;
            assert_eq!(world.snapshot(), if is_new { &new } else { &old }[..], "{context}");
            assert!(is_new || done.is_err(), "acknowledged and lost. {context}");
            assert_verifies(&world);
            runs += 1;
        }
        if ended {
            break;
        }
    }
    assert!(runs > 40, "{runs}");
}

#[test]
fn the_list_counts_what_happened_before_and_since() {
    let world = World::new();
    let mut log = world.own_log();
    append(&mut log, 0);
    activate(&world, &mut log, SECOND);
    append(&mut log, 10);
    append(&mut log, 20);
    log.go_back().unwrap();
    let list = Look::at(&world.store, world.identity).rules().unwrap();
    let counts: Vec<_> = list
        .steps
        .iter()
        .filter_map(|step| step.activity)
        .map(|parts| parts.map(|part| (part.attempts, part.failures, part.denied)))
        .collect();
    assert_eq!(counts, [[(5, 2, 0), (10, 4, 0)], [(10, 4, 0), (0, 0, 0)]]);
    let stages: Vec<_> = list.steps.iter().map(|step| step.event.step.stage()).collect();
    assert_eq!(stages, ["proposed", "active", "active"]);
    let stage = |list: &RulesList, rules| list.shown(&rules_name(rules)).stage;
    assert_eq!((stage(&list, Rules::V1), stage(&list, SECOND)), ("in_force", "replaced"));
}
