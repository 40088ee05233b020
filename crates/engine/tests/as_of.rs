//! Facts as of an earlier position equal those of a rebuild. The cost is that of the nearer saved
//! state.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::{RuleSet, V1, snapshot};
use ipse_core::chunk::{CHUNK_EVENTS, SMALL_EVENTS};
use ipse_core::{Admitted, FactKind, Seq};
use ipse_engine::facts::Filter;
use ipse_engine::{
    Error, FactTable, Log, NextStep, Selection, Start, Trigger, as_of, as_of_from, chosen_as_of,
    chosen_as_of_under, rebuild_under,
};
use proptest::prelude::*;
use world::{World, admit_line, heavy_event, random_event};

const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);
const CHUNK: u64 = CHUNK_EVENTS as u64;
const SMALL: u64 = SMALL_EVENTS as u64;

/// Filters that select some, all and none of the facts of `random_event`.
fn filters() -> Vec<Filter> {
    let some = |text: &str| Some(text.to_owned());
    vec![
        Filter { limit: Some(2), ..Filter::default() },
        Filter { skill: some("s1"), ..Filter::default() },
        Filter { target: some("t0"), limit: Some(3), ..Filter::default() },
        Filter { zone: some("z1"), ..Filter::default() },
        Filter { kind: Some(FactKind::InteractionPattern), ..Filter::default() },
        Filter { skill: some("unknown"), ..Filter::default() },
    ]
}

/// Compares the facts as of these positions with those of a rebuild.
fn check<R: RuleSet>(world: &World, rules: &R, positions: impl Iterator<Item = u64>) {
    let reader = world.reader();
    let shot = reader.view(&world.identity).unwrap();
    let view = shot.view();
    let (known, filters) = (FactTable::read(view).unwrap(), filters());
    for position in positions {
        let want = rebuild_under(view, rules, Seq(position)).unwrap().facts;
        for start in [Start::Nearest, Start::Nothing, Start::Checkpoint] {
            let past = as_of_from(view, rules, Seq(position), start).unwrap().facts;
            assert_eq!(snapshot(&past), snapshot(&want), "as of {position}, from {start:?}");
            assert!(past.is_sorted_by(|a, b| a.key < b.key));
        }
        let filter = &filters[position as usize % filters.len()];
        let want = filter.chosen(want).unwrap();
        for known in [None, Some(&known)] {
            let past = chosen_as_of_under(view, rules, Seq(position), filter, known).unwrap();
            assert_eq!(past.facts, want.facts, "as of {position}: {filter:?}");
            assert_eq!(past.total, want.total, "as of {position}: {filter:?}");
        }
    }
}

fn check_all(world: &World) {
    check(world, &V1, 0..=world.head().0 + 1);
}

/// An attempt; `second` orders it in time.
fn attempt(id: u64, skill: &str, second: u64) -> Admitted {
    let (minute, success) = (second / 60, !id.is_multiple_of(3));
    admit_line(&format!(
        "{{\"id\":\"{id}\",\"type\":\"execution_result\",\
         \"time\":\"2026-05-{:02}T{:02}:{:02}:{:02}Z\",\"data\":{{\"skill_id\":\"{skill}\",\
         \"success\":{success},\"failure_reason\":\"slip\",\"params\":{{\"f\":{}}}}}}}",
        1 + minute / 60 / 24,
        minute / 60 % 24,
        minute % 60,
        second % 60,
        id % 7
    ))
}

/// A log of this many events over some common skills, a rare one, and one that starts late.
fn long_log(world: &World, events: u64, skills: u64, second: impl Fn(u64) -> u64) -> Log {
    let mut log = world.log(V1);
    let event = |id: u64| match id {
        id if id.is_multiple_of(1999) => attempt(id, "rare", second(id)),
        id if id + 40 == events => attempt(id, "late", second(id)),
        id => attempt(id, &format!("s{}", id * 7 % skills), second(id)),
    };
    let all: Vec<Admitted> = (1..=events).map(event).collect();
    for batch in all.chunks(1500) {
        log.append(batch, PASS).unwrap();
    }
    log
}

/// Positions around the borders of chunks, and some others.
fn borders(head: u64) -> impl Iterator<Item = u64> {
    let near = |at: u64| [at.saturating_sub(1), at, at + 1];
    let full = (1..=head / CHUNK).flat_map(move |n| near(n * CHUNK));
    let small = (1..=6).flat_map(move |n| near((head / SMALL).saturating_sub(n) * SMALL));
    let others = (0..20).map(move |n| n * n * head / 400);
    full.chain(small).chain(others).chain([head - 50, head - 39, head - 5, head])
}

#[test]
fn long_logs_in_the_order_of_time_and_out_of_it() {
    type Clock = fn(u64) -> u64;
    let clocks: [Clock; 4] = [
        |id| id * 20,
        // All at the same time: names decide.
        |_| 0,
        // Backwards: the first event is the latest.
        |id| 400_000 - id * 20,
        // For one skill, an early event has the latest time.
        |id| if id == 77 { 500_000 } else { id * 20 },
    ];
    for (number, second) in clocks.into_iter().enumerate() {
        for skills in [3, 40] {
            let world = World::new();
            let mut log = long_log(&world, 2 * CHUNK + 1300, skills, second);
            check(&world, &V1, borders(world.head().0));
            // Events after the checkpoint, and a gap of forgotten events.
            let new: Vec<_> = (0..300).map(|id| attempt(90_000 + id, "s1", second(id))).collect();
            log.append(&new, NextStep::Nothing).unwrap();
            let gone = [CHUNK - 3, CHUNK + 5, 2 * CHUNK + 900].map(|id| {
                let skill = format!("s{}", id * 7 % skills);
                attempt(id, &skill, second(id)).event_ref
            });
            if number.is_multiple_of(2) {
                log.forget(&Selection::Refs(gone.to_vec())).unwrap();
            }
            let head = world.head().0;
            check(&world, &V1, borders(head).chain(head - 310..=head).step_by(7));
        }
    }
}

/// A query at a position reads the events up to the nearer saved state and, for last supporting
/// events, a few chunks before it.
#[test]
fn the_cost_follows_the_distance_to_the_nearer_saved_state() {
    for skills in [3, 40] {
        let world = World::new();
        let mut log = long_log(&world, 12 * CHUNK, skills, |id| id * 20);
        log.save_every(1);
        log.append(&[attempt(99_000, "s1", 1_200_000)], PASS).unwrap();
        let reader = world.reader();
        let shot = reader.view(&world.identity).unwrap();
        let checkpoint = shot.view().progress().unwrap().checkpoint.0;
        for distance in [0, 1, 30, CHUNK] {
            let read = as_of(shot.view(), Seq(checkpoint - distance)).unwrap().events;
            let bound = distance.next_multiple_of(CHUNK) + 3 * CHUNK.min(distance * CHUNK);
            assert!(read <= bound, "{skills} skills, {distance} positions back: {read}");
        }
        for position in [0, 1, 200, CHUNK] {
            assert_eq!(as_of(shot.view(), Seq(position)).unwrap().events, position);
        }
    }
}

/// Facts whose sums are too large together are computed in turns: more events are read, and the
/// facts are the same.
#[test]
fn large_sums_are_worked_on_in_turns() {
    let world = World::new();
    let mut log = world.log(V1);
    log.save_every(1);
    let event = |id: u64| {
        let skill = id % 100;
        heavy_event(id, &format!("\"skill_id\":\"s{skill}\",\"zone\":\"z\",\"success\":true"))
    };
    let events: Vec<Admitted> = (1..=330).map(event).collect();
    log.append(&events, PASS).unwrap();
    check(&world, &V1, [110, 200, 331].into_iter());
    let reader = world.reader();
    let shot = reader.view(&world.identity).unwrap();
    assert_eq!(as_of(shot.view(), Seq(110)).unwrap().events, 220, "two turns");
    let one = Filter { skill: Some("s7".to_owned()), ..Filter::default() };
    let past = chosen_as_of(shot.view(), Seq(110), &one, None).unwrap();
    assert_eq!((past.facts.len(), past.events), (1, 110), "one turn");
}

#[test]
fn at_the_checkpoint_no_event_is_read() {
    let world = World::new();
    let mut log = world.log(V1);
    log.save_every(1);
    log.append(&[attempt(1, "s", 1), attempt(2, "s", 2)], PASS).unwrap();
    world.spoil_typed_columns(Seq(2));
    let reader = world.reader();
    let shot = reader.view(&world.identity).unwrap();
    let past = as_of(shot.view(), Seq(2)).unwrap();
    assert_eq!((snapshot(&past.facts), past.events), (world.snapshot(), 0));
}

#[test]
fn a_table_of_facts_in_memory_that_is_older_than_the_store_is_not_used() {
    let world = World::new();
    let mut log = world.log(V1);
    log.save_every(1);
    log.append(&[attempt(1, "s", 1)], PASS).unwrap();
    let older = FactTable::read(world.reader().view(&world.identity).unwrap().view()).unwrap();
    log.append(&[attempt(2, "s", 2), attempt(3, "t", 3)], PASS).unwrap();
    let reader = world.reader();
    let shot = reader.view(&world.identity).unwrap();
    let (view, all) = (shot.view(), Filter::default());
    let seq = view.progress().unwrap().checkpoint;
    let read = chosen_as_of(view, seq, &all, None).unwrap();
    assert_eq!(chosen_as_of(view, seq, &all, Some(&older)).unwrap(), read);
}

#[test]
fn stored_sums_of_other_rules_do_not_count() {
    let world = World::new();
    let events: Vec<_> = (0..60).map(|n| random_event(0, n, 5)).collect();
    let mut log = world.log(world::CountTypes);
    log.append(&events, PASS).unwrap();
    check_all(&world);
    check(&world, &world::CountTypes, 0..=61);
}

#[test]
fn emptied_tables_are_damage_and_no_smaller_history() {
    for tables in [["tally"], ["fact"]] {
        let world = World::new();
        let mut log = world.log(V1);
        log.save_every(1);
        let events: Vec<_> = (0..60).map(|n| random_event(0, n, 5)).collect();
        log.append(&events, PASS).unwrap();
        world.delete_derived(&tables);
        let reader = world.reader();
        let shot = reader.view(&world.identity).unwrap();
        let past = as_of_from(shot.view(), &V1, Seq(58), Start::Checkpoint);
        assert!(matches!(past, Err(Error::Damaged(_))), "{tables:?}: {past:?}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append(u64, u32, bool),
    Forget(prop::sample::Index),
    Restart,
    Other(u64, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..9, any::<u32>(), any::<bool>())
            .prop_map(|(count, seed, pass)| Step::Append(count, seed, pass)),
        1 => any::<prop::sample::Index>().prop_map(Step::Forget),
        1 => Just(Step::Restart),
        1 => (1_u64..5, any::<u32>()).prop_map(|(n, seed)| Step::Other(n, seed)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Random logs with passes, saves, forgetting, restarts, pending events and a second log in
    /// the same file: at every position the facts equal those of a rebuild.
    #[test]
    fn as_of_every_position_is_a_rebuild(
        steps in proptest::collection::vec(step(), 1..25),
        save_every in 1_u64..40,
    ) {
        let world = World::new();
        let other = world.second_identity();
        let open = || {
            let mut log = world.log(V1);
            log.save_every(save_every);
            log
        };
        let (mut log, mut all) = (open(), Vec::new());
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(count, seed, pass) => {
                    let batch: Vec<_> = (0..count).map(|n| random_event(index, n, seed)).collect();
                    log.append(&batch, if pass { PASS } else { NextStep::Nothing }).unwrap();
                    all.extend(batch);
                }
                Step::Forget(chosen) if !all.is_empty() => {
                    let gone = chosen.get(&all).event_ref;
                    log.forget(&Selection::Refs(vec![gone])).unwrap();
                }
                Step::Forget(_) => {}
                Step::Restart => log = open(),
                Step::Other(count, seed) => {
                    let batch: Vec<_> = (0..count).map(|n| random_event(index, n, seed)).collect();
                    other.log(V1).append(&batch, PASS).unwrap();
                }
            }
        }
        check_all(&world);
        check_all(&other);
    }
}
