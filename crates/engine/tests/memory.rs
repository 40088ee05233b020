//! The handle of a long-running program: passes at startup, at the threshold and after a quiet
//! time, and notifications to subscribers.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::V1;
use ipse_core::Seq;
use ipse_engine::{Memory, NextStep, PassCommitted, Policy, Trigger, Watch};
use ipse_store::Appended;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use world::{TestHost, World, admitted};

const NEVER: Duration = Duration::from_secs(3600);
/// Long enough for a loaded machine; a test that passes never waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(world: &World, every: u64, quiet: Duration) -> (Memory, Receiver<PassCommitted>) {
    let policy = Policy { every, quiet };
    let host = Box::new(TestHost(0));
    let memory = Memory::open(&world.store, world.identity, policy, host, None).unwrap();
    let (sender, receiver) = channel();
    // A test that does not listen has dropped the receiver.
    memory.subscribe(move |pass| drop(sender.send(pass.clone()))).unwrap();
    (memory, receiver)
}

#[test]
fn opening_folds_what_is_past_the_checkpoint() {
    let world = World::new();
    world.log(V1).append(&[admitted(1, "s", true)], NextStep::Nothing).unwrap();
    assert_eq!(world.snapshot(), "");
    let (_memory, _) = open(&world, 64, NEVER);
    assert_eq!(world.counts(), (1, 1));
    assert_eq!(world.pass_records()[0]["trigger"], "startup");
}

#[test]
fn a_pass_comes_at_the_threshold_and_not_before() {
    let world = World::new();
    let (memory, passes) = open(&world, 3, NEVER);
    for id in 1..=7 {
        let done = memory.append_all(&[admitted(id, "s", true)]).unwrap();
        assert_eq!(done.pass.is_some(), id % 3 == 0, "event {id}");
    }
    let reported: Vec<_> = passes.try_iter().collect();
    assert_eq!(reported.len(), 2);
    assert_eq!(
        reported[0],
        PassCommitted {
            trigger: Trigger::Threshold,
            rule_version: "v1",
            first_seq: Seq(1),
            last_seq: Seq(3),
            rows_touched: 1,
        }
    );
}

#[test]
fn a_threshold_of_one_renews_facts_at_every_event() {
    let world = World::new();
    let (memory, _) = open(&world, 1, NEVER);
    for id in 1..=5 {
        memory.append_all(&[admitted(id, "s", true)]).unwrap();
        assert_eq!(world.counts().0, id.cast_signed());
    }
}

#[test]
fn a_pass_comes_after_quiet() {
    let world = World::new();
    let (memory, passes) = open(&world, 64, Duration::from_millis(20));
    let line = br#"{"id":"1","type":"execution_result","time":"2026-05-06T10:00:00Z",
        "data":{"skill_id":"s","success":true}}"#;
    assert_eq!(memory.append(line).unwrap(), Ok(Appended::New(Seq(1))));
    let reported = passes.recv_timeout(PATIENCE).expect("no pass after a quiet time");
    assert_eq!((reported.trigger, reported.last_seq), (Trigger::Threshold, Seq(1)));
    assert_eq!(world.counts(), (1, 1));
}

/// Intents feed no fact: they neither cause nor delay a pass.
#[test]
fn intents_are_no_reason_for_a_pass_and_none_against_one() {
    let world = World::new();
    let intent = |n: u64| {
        let event = format!(
            r#"{{"id":"intent:{n:032x}","source":"ipse","type":"intent",
            "time":"2026-05-06T10:00:00Z","data":{{"skill_id":"s","params":{{}},"token_id":"0",
            "verdict":"denied","gates":[{{"gate":"admission","result":"denied"}},
            {{"gate":"audit","result":"none"}}]}}}}"#
        );
        ipse_door::admit(event.as_bytes(), ipse_door::Origin::House, || [7; 16]).unwrap()
    };
    let (memory, passes) = open(&world, 3, NEVER);
    for n in 1..=10 {
        assert!(memory.append_all(&[intent(n)]).unwrap().pass.is_none(), "intent {n}");
    }
    memory.append_all(&[admitted(1, "s", true), intent(11)]).unwrap();
    memory.append_all(&[admitted(2, "s", true), intent(12)]).unwrap();
    assert!(passes.try_recv().is_err(), "two events are below the threshold");
    let done = memory.append_all(&[intent(13), admitted(3, "s", true)]).unwrap();
    assert_eq!(done.pass.unwrap().events_processed, 3);
    drop(memory);
    let (memory, passes) = open(&world, 1000, Duration::from_millis(200));
    memory.append_all(&[admitted(4, "s", true)]).unwrap();
    let until = std::time::Instant::now() + PATIENCE;
    let mut n = 100;
    while passes.recv_timeout(Duration::from_millis(20)).is_err() {
        assert!(std::time::Instant::now() < until, "{n} intents delayed the pass");
        n += 1;
        memory.append_all(&[intent(n)]).unwrap();
    }
    world.assert_healthy();
}

#[test]
fn what_is_known_is_swapped_and_what_was_handed_out_stays() {
    let world = World::new();
    let (memory, _) = open(&world, 1, NEVER);
    let nothing = memory.known();
    memory.append_all(&[admitted(1, "s", true)]).unwrap();
    let one = memory.known();
    memory.append_all(&[admitted(2, "s", true), admitted(3, "t", true)]).unwrap();
    let two = memory.known();
    assert!(nothing.is_empty());
    assert_eq!((one.len(), one.checkpoint()), (1, Seq(1)));
    assert_eq!((two.len(), two.checkpoint()), (2, Seq(4)));
    for table in [&one, &two] {
        let kept = memory.known_at(table.checkpoint()).unwrap();
        assert!(std::sync::Arc::ptr_eq(&kept, table), "kept for recent consultations");
    }
    assert!(memory.known_at(Seq(2)).is_none() && memory.known_at(Seq(9)).is_none());
    // Another process runs a pass in between; the next pass here includes it.
    let elsewhere = [admitted(4, "u", true)];
    world.log(V1).append(&elsewhere, NextStep::Consolidate(Trigger::Manual)).unwrap();
    memory.append_all(&[admitted(5, "v", true)]).unwrap();
    let all: Vec<_> = memory.known().iter().map(|fact| fact.fact.snapshot_line()).collect();
    assert_eq!(all.join("\n") + "\n", world.snapshot());
    assert!(memory.known_at(Seq(4)).is_none(), "another process may have forgotten events");
    for n in 0..70 {
        memory.append_all(&[admitted(10 + n, "s", true)]).unwrap();
    }
    let now = memory.known().checkpoint().0;
    let kept = (0..now).filter(|seq| memory.known_at(Seq(*seq)).is_some()).count();
    assert_eq!(kept, 64, "the limit");
}

#[test]
fn a_refused_event_stores_nothing_and_says_why() {
    let world = World::new();
    let (memory, _) = open(&world, 1, NEVER);
    let refusal = memory.append(b"{}").unwrap().unwrap_err();
    assert_eq!(refusal.field, "id");
    assert_eq!(world.head(), Seq(0));
}

#[test]
fn clones_share_one_log_across_threads() {
    let world = World::new();
    let (memory, _) = open(&world, 10, NEVER);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let memory = memory.clone();
            scope.spawn(move || {
                for n in 0..25 {
                    memory.append_all(&[admitted(thread * 100 + n, "s", true)]).unwrap();
                }
            });
        }
    });
    memory.consolidate().unwrap();
    assert_eq!(world.counts(), (100, 100));
    world.assert_healthy();
}

#[test]
fn what_another_process_consolidates_is_known_after_a_look() {
    let world = World::new();
    let (memory, _passes) = open(&world, 1, NEVER);
    let mut watch = Watch::open(&world.store).unwrap();
    assert_eq!(watch.identities().unwrap(), [world.identity]);
    assert_eq!(watch.changed().unwrap(), [world.identity], "the first call returns all");
    assert_eq!(watch.changed().unwrap(), [], "no other handle wrote");
    assert!(!memory.refresh(&watch).unwrap());
    let mut other = world.log(V1);
    other.append(&[admitted(1, "s", true)], NextStep::Nothing).unwrap();
    assert_eq!(watch.changed().unwrap(), [world.identity]);
    assert!(!memory.refresh(&watch).unwrap(), "events alone change no fact");
    other.append(&[admitted(2, "s", true)], NextStep::Consolidate(Trigger::Manual)).unwrap();
    assert_eq!(memory.known().len(), 0, "not refreshed yet");
    assert_eq!(watch.changed().unwrap(), [world.identity]);
    assert!(memory.refresh(&watch).unwrap());
    assert_eq!((memory.known().len(), memory.known().checkpoint()), (1, Seq(2)));
    assert!(!memory.refresh(&watch).unwrap(), "it is loaded already");
    memory.append_all(&[admitted(3, "s", true)]).unwrap();
    assert_eq!(watch.changed().unwrap(), [world.identity]);
    assert!(!memory.refresh(&watch).unwrap(), "its own pass is loaded");
}
