//! Every call of every write operation to the store fails, once and permanently, before and after
//! it was made: no panic, nothing acknowledged is lost, nothing is counted twice.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

mod notary;
mod world;

use ipse_consolidate::V1;
use ipse_core::{Admitted, EventRef, Seq};
use ipse_door::{Origin, admit};
use ipse_engine::{
    CompleteLog, Error, Log, Memory, NextStep, Policy, Selection, SignedBatch, Start, Trigger,
    as_of_from, restore, sign_head,
};
use ipse_ledger::account::PassClaim;
use ipse_ledger::{Entry, NoteSigner, SecretKey, SentStatement, dsse};
use ipse_store::{Failure, Faults, Store};
use notary::TestNotary;
use std::time::Duration;
use world::{TestHost, World, admitted};

/// A write operation, and its effect on the log once it is acknowledged.
struct Operation {
    name: &'static str,
    base: World,
    /// Runs the operation on a store that may fail.
    run: fn(&World, &Store) -> Result<(), Error>,
    /// Events that the operation adds.
    adds: Vec<EventRef>,
    /// Events that the operation forgets.
    forgets: Vec<EventRef>,
}

/// How much of an operation is in effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Done {
    Nothing,
    Part,
    All,
}

fn events(numbers: std::ops::Range<u64>) -> Vec<Admitted> {
    numbers.map(|number| admitted(number, "grasp", number % 3 > 0)).collect()
}

fn names(numbers: std::ops::Range<u64>) -> Vec<EventRef> {
    events(numbers).iter().map(|event| event.event_ref).collect()
}

/// A closed store with this many events, a pass and five more events.
fn base(count: u64) -> World {
    let world = World::new();
    let mut log = world.log(V1);
    log.append(&events(0..count), NextStep::Consolidate(Trigger::Manual)).unwrap();
    log.append(&events(count..count + 5), NextStep::Nothing).unwrap();
    drop(log);
    world
}

fn open(world: &World, store: &Store) -> Result<Log, Error> {
    Log::open_under(store, world.identity, V1, Box::new(TestHost(1 << 64)))
}

fn acknowledged(done: Result<ipse_engine::Acknowledged, Error>) -> Result<(), Error> {
    done.map(drop)
}

impl Operation {
    fn done(&self, world: &World) -> Done {
        let reader = world.reader();
        let snapshot = reader.view(&world.identity).unwrap();
        let view = snapshot.view();
        let there = |name: &EventRef| {
            let seq = view.find(name).unwrap();
            seq.is_some_and(|seq| !view.stored(seq).unwrap().unwrap().is_forgotten())
        };
        let added = self.adds.iter().map(there);
        let forgotten = self.forgets.iter().map(|name| !there(name));
        let all: Vec<bool> = added.chain(forgotten).collect();
        match all.iter().filter(|done| **done).count() {
            0 => Done::Nothing,
            count if count == all.len() => Done::All,
            _ => Done::Part,
        }
    }

    /// The number of calls without a fault, and the facts afterwards.
    fn whole(&self) -> (u64, String) {
        let (world, faults) = (self.base.copy(), Faults::default());
        let store = world.store.failing(&faults).unwrap();
        faults.clear();
        (self.run)(&world, &store).unwrap();
        drop(store);
        let calls = faults.calls();
        world.log(V1).consolidate(Trigger::Manual).unwrap();
        (calls, world.snapshot())
    }

    /// Runs the operation with a failing call, and again without a fault.
    fn fails(&self, call: u64, failure: Failure, for_good: bool, facts: &str) {
        let context = format!("{}: call {call}, {failure:?}, permanent: {for_good}", self.name);
        let (world, faults) = (self.base.copy(), Faults::default());
        let store = world.store.failing(&faults).unwrap();
        faults.plan(call, failure, for_good);
        let done = (self.run)(&world, &store);
        faults.clear();
        drop(store);
        let found = self.done(&world);
        match done {
            Ok(()) => assert_eq!(found, Done::All, "acknowledged and lost. {context}"),
            Err(_) => assert_ne!(found, Done::Part, "half done. {context}"),
        }
        world.assert_healthy();
        match (self.run)(&world, &world.store) {
            // If the restore took effect, the log is not empty.
            Err(Error::Store(ipse_store::Error::NotEmpty)) if found == Done::All => {}
            again => again.unwrap_or_else(|error| panic!("{error}. {context}")),
        }
        assert_eq!(self.done(&world), Done::All, "{context}");
        world.log(V1).consolidate(Trigger::Manual).unwrap();
        assert_eq!(world.snapshot(), facts, "{context}");
        world.assert_healthy();
    }

    /// Runs the operation with a fault at each call. Returns the number of calls.
    fn sweep(&self) -> u64 {
        let (calls, facts) = self.whole();
        for call in 1..=calls {
            for failure in [Failure::NotMade, Failure::MadeAndLost] {
                for for_good in [false, true] {
                    self.fails(call, failure, for_good, &facts);
                }
            }
        }
        println!("{}: {calls} calls, {} runs", self.name, calls * 4);
        calls
    }
}

type Run = fn(&World, &Store) -> Result<(), Error>;

fn adds(name: &'static str, run: Run) -> Operation {
    adds_these(name, names(400..410), run)
}

fn adds_these(name: &'static str, adds: Vec<EventRef>, run: Run) -> Operation {
    Operation { name, base: base(300), run, adds, forgets: Vec::new() }
}

#[test]
fn append() {
    let operation = adds("append", |world, store| {
        acknowledged(open(world, store)?.append(&events(400..410), NextStep::Nothing))
    });
    assert!(operation.sweep() > 5);
}

#[test]
fn append_with_a_pass() {
    let operation = adds("append with a pass", |world, store| {
        let then = NextStep::Consolidate(Trigger::Threshold);
        acknowledged(open(world, store)?.append(&events(400..410), then))
    });
    assert!(operation.sweep() > 10);
}

/// The batch fills a chunk, so that a chunk and a run of the index are sealed in it.
#[test]
fn append_over_the_end_of_a_chunk() {
    let operation = Operation {
        base: base(4080),
        adds: names(5000..5020),
        ..adds("append over the end of a chunk", |world, store| {
            let then = NextStep::Consolidate(Trigger::Threshold);
            acknowledged(open(world, store)?.append(&events(5000..5020), then))
        })
    };
    assert!(operation.sweep() > 12);
}

#[test]
fn consolidate() {
    let operation = adds_these("consolidate", names(300..305), |world, store| {
        open(world, store)?.consolidate(Trigger::Manual).map(drop)
    });
    assert!(operation.sweep() > 10);
}

#[test]
fn append_signed() {
    let operation = adds("append signed", |world, store| {
        let events = events(400..410);
        let signer = NoteSigner::new("arm", SecretKey::from_seed(&[5; 32])).unwrap();
        let named = events.iter().map(|event| (event.event_ref, event.digest)).collect();
        let sent = SentStatement { identity: world.identity, events: named };
        let envelope = dsse::sign(&sent.statement(), &signer);
        let endorsed = SignedBatch::open(&envelope, &world.identity, &[signer.public()]).unwrap();
        let mut log = open(world, store)?;
        acknowledged(log.append_signed(&events, Some(&endorsed), NextStep::Nothing))
    });
    let signer = NoteSigner::new("arm", SecretKey::from_seed(&[5; 32])).unwrap();
    let mut settings = operation.base.store.settings().unwrap();
    settings.put_producer(&operation.base.identity, &signer.public().to_string(), None).unwrap();
    drop(settings);
    assert!(operation.sweep() > 8);
}

#[test]
fn append_judged() {
    let operation = adds_these("append judged", names(400..401), |world, store| {
        let event = events(400..401).remove(0);
        let judged = open(world, store)?.append_judged(|past| {
            past.intents(Seq(0), |_| true)?;
            Ok(Ok::<_, ()>((event, ())))
        });
        judged.map(drop)
    });
    assert!(operation.sweep() > 5);
}

#[test]
fn forget() {
    let operation = Operation {
        adds: Vec::new(),
        forgets: names(3..7),
        ..adds("forget", |world, store| {
            open(world, store)?.forget(&Selection::Refs(names(3..7))).map(drop)
        })
    };
    assert!(operation.sweep() > 20);
}

#[test]
fn sign_a_tree_head() {
    let operation = adds_these("sign a tree head", names(300..305), |world, store| {
        sign_head(store, &world.identity, &TestNotary::new(world)).map(drop)
    });
    assert!(operation.sweep() > 4);
}

/// The handle of a server: opens, folds, appends in a batch and reads its facts again.
#[test]
fn the_memory_of_a_server() {
    let operation = adds("memory", |world, store| {
        let policy = Policy { every: 1, quiet: Duration::from_secs(3600) };
        let host = Box::new(TestHost(1 << 64));
        let memory = Memory::open(store, world.identity, policy, host, None)?;
        memory.append_all(&events(400..410)).map(drop)
    });
    assert!(operation.sweep() > 20);
}

/// The log of one store, to be restored in another.
fn log_of(world: &World) -> (Vec<(Entry, Option<Admitted>)>, Vec<PassClaim>) {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let (view, mut log, mut passes) = (snapshot.view(), Vec::new(), Vec::new());
    let each = |entry: Entry, _| {
        let stored = view.stored(entry.seq)?.unwrap().canonical;
        if entry.event_type == "consolidation_run" {
            passes.push(PassClaim::read(entry.seq, stored.as_bytes(), 0).unwrap());
        }
        let event = admit(stored.as_bytes(), Origin::House, || [0; 16]).unwrap();
        log.push((entry, Some(event)));
        Ok::<_, ipse_store::Error>(())
    };
    view.each_entry(Seq(1)..=view.head().unwrap(), each).unwrap();
    (log, passes)
}

#[test]
fn restore_a_log() {
    let operation = Operation {
        base: World::new(),
        adds: names(0..305),
        ..adds("restore", |world, store| {
            let (log, passes) = log_of(&base(300));
            let checkpoint = passes.last().unwrap().last;
            let whole =
                CompleteLog { passes: &passes, statements: &[], checkpoint, last_head: None };
            restore(store, &world.identity, log.into_iter().map(Ok::<_, Error>), &whole)
        })
    };
    assert!(operation.sweep() > 8);
}

/// A log with three attempts of each of this many skills, and a pass after them.
fn skills(count: u64) -> World {
    let world = World::new();
    let events: Vec<_> = (0..3 * count)
        .map(|number| admitted(number, &format!("skill-{}", number % count), true))
        .collect();
    world.log(V1).append(&events, NextStep::Consolidate(Trigger::Manual)).unwrap();
    world
}

/// The number of calls to the store.
fn calls(world: &World, run: impl FnOnce(&Store)) -> u64 {
    let faults = Faults::default();
    let store = world.store.failing(&faults).unwrap();
    faults.clear();
    run(&store);
    faults.calls()
}

/// Allowed extra calls for four times as many facts: few facts take another code path. One call per
/// row would be 60 more.
const SPARE: u64 = 5;

/// Facts and events are read in sets: within a page, many take about as many calls as few.
#[test]
fn calls_do_not_follow_the_number_of_facts_and_events() {
    let as_of = |count: u64| {
        let world = skills(count);
        calls(&world, |store| {
            let reader = store.reader().unwrap();
            let snapshot = reader.view(&world.identity).unwrap();
            let at = Seq(2 * count);
            let found = as_of_from(snapshot.view(), &V1, at, Start::Checkpoint).unwrap();
            assert_eq!(found.facts.len() as u64, count);
        })
    };
    assert!(as_of(80) <= as_of(20) + SPARE, "facts as of a position: {}", as_of(80));
    let forget = |count: u64| {
        let world = skills(count);
        let name = |number: u64| admitted(3 * number, "any", true).event_ref;
        let which = Selection::Refs((0..count).map(name).collect());
        calls(&world, |store| {
            let done = open(&world, store).unwrap().forget(&which).unwrap();
            assert_eq!(done.events, count);
        })
    };
    assert!(forget(80) <= forget(20) + SPARE, "forgetting: {}", forget(80));
}

/// A store with a log whose settings and keys a governor changes.
fn governed(
    name: &'static str,
    change: fn(&mut ipse_engine::Governor) -> Result<(), Error>,
) -> (World, u64) {
    let (world, mut last) = (base(30), None);
    for failure in [Failure::NotMade, Failure::MadeAndLost] {
        for call in 1.. {
            let (world, faults) = (world.copy(), Faults::default());
            let store = world.store.failing(&faults).unwrap();
            faults.plan(call, failure, true);
            let host = Box::new(TestHost(1 << 64));
            let opened = ipse_engine::Governor::open(&store, world.identity, host);
            let done = opened.and_then(|mut governor| change(&mut governor));
            let made = faults.calls();
            faults.clear();
            drop(store);
            let context = format!("{name}: call {call}, {failure:?}");
            assert_row_and_act_agree(&world, done.is_ok(), &context);
            if done.is_ok() && made < call {
                last = Some((world, call));
                break;
            }
        }
    }
    last.unwrap()
}

/// Never an act without its row, or a row without its act.
fn assert_row_and_act_agree(world: &World, done: bool, context: &str) {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let view = snapshot.view();
    let acts = ipse_engine::governance(view).unwrap();
    let kept = view.retention().unwrap();
    assert_eq!(acts.settings().retention, kept, "{context}");
    let rows = view.producers().unwrap();
    assert_eq!(acts.producers().count(), rows.len(), "{context}");
    for row in &rows {
        let known = acts.producer(&row.key).unwrap_or_else(|| panic!("{context}"));
        assert_eq!(known.revoked.is_some(), row.revoked, "{context}");
    }
    assert!(!done || !acts.acts().is_empty(), "acknowledged and lost. {context}");
    drop(snapshot);
    world.assert_healthy();
}

#[test]
fn an_act_and_its_row_are_stored_together() {
    let (_, calls) = governed("retention", |governor| governor.set_retention(Some("90d")));
    assert!(calls > 5, "{calls}");
    let (world, calls) = governed("producer", |governor| {
        let key = NoteSigner::new("arm", SecretKey::from_seed(&[5; 32])).unwrap().public();
        governor.put_producer(&key, Some(&["arm".to_owned()]))?;
        governor.revoke_producer("arm").map(drop)
    });
    assert!(calls > 10, "{calls}");
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    assert_eq!(ipse_engine::governance(snapshot.view()).unwrap().acts().len(), 2);
}

/// A baseline is owed once: whichever call fails, the log gets exactly one.
#[test]
fn an_owed_baseline_is_appended_once() {
    let world = base(30);
    let mut acts = world.store.acts(&world.identity).unwrap();
    let mut acting = acts.begin().unwrap();
    acting.owe(ipse_store::BASELINE, "").unwrap();
    acting.commit().unwrap();
    drop(acts);
    for call in 1..40 {
        let (world, faults) = (world.copy(), Faults::default());
        let store = world.store.failing(&faults).unwrap();
        faults.plan(call, Failure::NotMade, true);
        let appended = |store: &Store| {
            acknowledged(open(&world, store)?.append(&events(400..402), NextStep::Nothing))
        };
        let _ = appended(&store);
        faults.clear();
        drop(store);
        appended(&world.store).unwrap();
        appended(&world.store).unwrap();
        let reader = world.reader();
        let snapshot = reader.view(&world.identity).unwrap();
        assert_eq!(
            ipse_engine::governance(snapshot.view()).unwrap().acts().len(),
            1,
            "call {call}"
        );
        assert_eq!(snapshot.view().owed().unwrap(), [], "call {call}");
        drop(snapshot);
        world.assert_healthy();
    }
}
