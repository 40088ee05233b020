//! Forgetting through a real store: in any order of operations, facts equal those of a log that
//! never had the events.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::{V1, snapshot};
use ipse_core::{Admitted, EventRef, Seq, Time};
use ipse_engine::{Error, Log, Memory, NextStep, Policy, Selection, Trigger, rebuild};
use ipse_inspect::{Diff, Preview, preview};
use ipse_store::Appended;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use world::{CountTypes, TestHost, World, admitted, case_names, fold, random_event, vectors};

fn refs(events: &[Admitted]) -> Selection {
    Selection::Refs(events.iter().map(|event| event.event_ref).collect())
}

/// The events that are not among the forgotten.
fn without(all: &[Admitted], gone: &BTreeSet<EventRef>) -> Vec<Admitted> {
    all.iter().filter(|event| !gone.contains(&event.event_ref)).cloned().collect()
}

const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);

#[test]
fn the_vectors_give_their_bytes_however_the_log_is_cut() {
    let mut seen = 0;
    for name in case_names() {
        let path = |end: &str| vectors().join(format!("facts/{name}.{end}"));
        let Ok(list) = fs::read_to_string(path("forget.json")) else { continue };
        seen += 1;
        let list: Vec<String> = serde_json::from_str(&list).unwrap();
        let names: Vec<_> = list.iter().map(|name| EventRef::parse(name).unwrap()).collect();
        let want = fs::read_to_string(path("forgotten.snapshot.jsonl")).unwrap();
        let log = world::read_log(&path("events.jsonl"));
        for pieces in 1..6 {
            let world = World::new();
            let mut handle = world.log(V1);
            for piece in log.chunks(log.len().div_ceil(pieces)) {
                handle.append(piece, PASS).unwrap();
            }
            let done = handle.forget(&Selection::Refs(names.clone())).unwrap();
            assert_eq!((done.events, done.erase_pending), (names.len() as u64, false));
            assert_eq!(world.snapshot(), want, "{name} in {pieces}");
            world.assert_healthy();
        }
    }
    assert!(seen >= 3, "the vectors exist");
}

#[test]
fn a_forget_is_one_record_and_what_stays_is_the_entry() {
    let world = World::new();
    let mut log = world.log(V1);
    let events: Vec<_> = (0..5).map(|n| admitted(n, "s", n > 1)).collect();
    log.append(&events[..3], PASS).unwrap();
    log.append(&events[3..], NextStep::Nothing).unwrap();
    let done = log.forget(&refs(&events[1..2])).unwrap();
    let pass = done.pass.unwrap();
    // Three events, a pass, two pending events, the forget event; then the pass record.
    assert_eq!((pass.committed.first_seq, pass.committed.last_seq), (Seq(4), Seq(7)));
    assert_eq!((pass.events_processed, pass.record_seq), (2, Seq(8)), "pending ones are folded");
    let records = world.pass_records();
    assert_eq!(records[1]["trigger"], "forget");
    assert_eq!(records[1]["rows_touched"], 1);
    assert_eq!(world.counts(), (4, 3));
    let types = world.types();
    assert_eq!(types[6], "forget");
    let reader = world.reader();
    let view = reader.view(&world.identity).unwrap();
    let gone = view.view().stored(Seq(2)).unwrap().unwrap();
    assert!(gone.is_forgotten());
    assert_eq!(gone.event_ref, events[1].event_ref);
    assert_eq!(gone.event_type, "execution_result");
    assert_eq!((gone.time, gone.digest), (events[1].time, events[1].digest));
    let said = view.view().stored(Seq(7)).unwrap().unwrap();
    let said: serde_json::Value = serde_json::from_str(&said.canonical).unwrap();
    assert_eq!(said["data"]["event_refs"][0], events[1].event_ref.to_string());
    // The same event is rejected, and so is any other event with its name.
    let again = log.append(&events[1..2], PASS).unwrap();
    assert_eq!(again.appended, [Appended::Forgotten(Seq(2))]);
    assert_eq!(again.pass, None);
    world.assert_healthy();
}

#[test]
fn what_cannot_be_forgotten_changes_nothing() {
    let world = World::new();
    let mut log = world.log(V1);
    let events: Vec<_> = (0..4).map(|n| admitted(n, "s", true)).collect();
    log.append(&events, PASS).unwrap();
    log.forget(&refs(&events[..1])).unwrap();
    let name = |seq| {
        let reader = world.reader();
        let view = reader.view(&world.identity).unwrap();
        view.view().event_ref(Seq(seq)).unwrap()
    };
    let before = world.bytes();
    let unknown = EventRef::new("unknown", "0");
    for (which, wrong) in [
        (Selection::Refs(vec![events[1].event_ref, unknown]), unknown),
        (Selection::Refs(vec![events[1].event_ref, name(5)]), name(5)),
        (Selection::Refs(vec![name(6), events[1].event_ref]), name(6)),
    ] {
        let error = log.forget(&which).unwrap_err();
        let named = match &error {
            Error::UnknownEvent(named) | Error::NeverForgotten(named, _) => *named,
            other => panic!("{other}"),
        };
        assert_eq!(named, wrong);
        assert!(seen(&world, &which).is_err());
    }
    let done = log.forget(&refs(&events[..1])).unwrap();
    assert_eq!((done.events, done.already, done.pass.is_some()), (0, 1, false));
    assert_eq!(log.forget(&Selection::AllBut(3)).unwrap().events, 0);
    assert_eq!(world.bytes(), before);
    // A duplicate name counts once.
    let twice = Selection::Refs(vec![events[1].event_ref; 2]);
    assert_eq!(log.forget(&twice).unwrap().events, 1);
    assert_eq!(world.counts(), (2, 2));
}

#[test]
fn a_fact_goes_with_its_last_support_and_comes_back_with_new() {
    let world = World::new();
    let mut log = world.log(V1);
    let events: Vec<_> = (0..3).map(|n| admitted(n, "rare", true)).collect();
    log.append(&events, PASS).unwrap();
    let done = log.forget(&refs(&events)).unwrap();
    let pass = done.pass.unwrap();
    assert_eq!((pass.gone.len(), pass.changed.unwrap().len()), (1, 0));
    assert_eq!(pass.committed.rows_touched, 1);
    assert_eq!(world.snapshot(), "");
    let count = |sql: &str| world.raw().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT (SELECT count(*) FROM fact) + (SELECT count(*) FROM tally)"), 0);
    world.assert_healthy();
    log.append(&[admitted(9, "rare", false)], PASS).unwrap();
    assert_eq!(world.counts(), (1, 0));
    world.assert_healthy();
}

#[test]
fn a_fact_knows_how_many_of_its_observations_were_forgotten() {
    let world = World::new();
    let mut log = world.log(V1);
    let events: Vec<_> = (0..6).map(|n| admitted(n, "s", true)).collect();
    log.append(&events[..4], PASS).unwrap();
    log.append(&events[4..], NextStep::Nothing).unwrap();
    let count = || {
        let reader = world.reader();
        let view = reader.view(&world.identity).unwrap();
        let facts = view.view().facts().unwrap();
        let id = ipse_core::FactId::new(&world.identity, &facts[0].key);
        view.view().forgotten_of(&id).unwrap()
    };
    log.forget(&refs(&events[4..5])).unwrap();
    assert_eq!(count(), 0, "no pass had seen it");
    log.forget(&refs(&events[..2])).unwrap();
    log.forget(&refs(&events[5..])).unwrap();
    assert_eq!(count(), 3);
    // The count is deleted with the fact.
    log.forget(&refs(&events)).unwrap();
    log.append(&[admitted(9, "s", true)], PASS).unwrap();
    assert_eq!(count(), 0);
}

/// Another process has stale sums and events in memory.
#[test]
fn a_handle_that_was_open_meanwhile_notices() {
    for save_every in [1, 3, 1000] {
        let world = World::new();
        let (mut one, mut other) = (world.log(V1), world.log(V1));
        one.save_every(save_every);
        other.save_every(save_every);
        let events: Vec<_> = (0..300).map(|n| random_event(0, n, n as u32)).collect();
        for piece in events[..290].chunks(37) {
            one.append(piece, PASS).unwrap();
        }
        other.forget(&refs(&events[200..250])).unwrap();
        one.append(&events[290..], PASS).unwrap();
        let gone = events[200..250].iter().map(|event| event.event_ref).collect();
        assert_eq!(world.snapshot(), fold(&without(&events, &gone)));
        world.assert_healthy();
    }
}

#[test]
fn forgetting_under_other_rules_starts_over() {
    let world = World::new();
    let events: Vec<_> = (0..10).map(|n| admitted(n, "s", n % 2 == 0)).collect();
    let mut old = world.log(CountTypes);
    old.save_every(1);
    old.append(&events, PASS).unwrap();
    world.log(V1).forget(&refs(&events[..4])).unwrap();
    assert_eq!(world.counts(), (6, 3));
    assert!(world.rebuilds_equal());
}

/// Full chunks, small chunks and rows; few events and many; many facts that lose their last event.
#[test]
fn a_long_log_forgets_anywhere() {
    let events: Vec<_> = (0..9000).map(|n| random_event(n, 0, n as u32)).collect();
    let world = World::new();
    let mut log = world.log(V1);
    for piece in events.chunks(777) {
        log.append(piece, PASS).unwrap();
    }
    let mut gone = BTreeSet::new();
    let newest: Vec<_> = {
        let mut by_time = events.clone();
        by_time.sort_by_key(|event| std::cmp::Reverse((event.time, event.event_ref)));
        by_time[..600].to_vec()
    };
    for (round, part) in
        [&events[..1], &events[4000..4200], &events[8300..8310], &events[8990..], &newest[..]]
            .into_iter()
            .enumerate()
    {
        let fresh = part.iter().filter(|event| gone.insert(event.event_ref)).count();
        let done = log.forget(&refs(part)).unwrap();
        assert_eq!(done.events, fresh as u64);
        assert_eq!(world.snapshot(), fold(&without(&events, &gone)), "round {round}");
        world.assert_healthy();
    }
    // The same from a store that never had the events, and after a rebuild of derived data.
    let never = World::new();
    never.log(V1).append(&without(&events, &gone), PASS).unwrap();
    assert_eq!(never.snapshot(), world.snapshot());
    world.delete_derived(&["chunk", "run", "piece", "tally", "pass", "fact"]);
    let again = world.log(V1).append(&events, PASS).unwrap();
    let refused = again.appended.iter().filter(|a| matches!(a, Appended::Forgotten(_))).count();
    assert_eq!(refused, gone.len());
    world.log(V1).consolidate(Trigger::Manual).unwrap();
    assert_eq!(never.snapshot(), world.snapshot());
    world.assert_healthy();
}

/// The last supporting event of a fact is forgotten repeatedly; times are mostly equal.
#[test]
fn the_last_supporting_event_is_looked_up() {
    let events: Vec<_> = (0..5000).map(|n| random_event(n, 0, n as u32)).collect();
    let world = World::new();
    let mut log = world.log(V1);
    log.append(&events, PASS).unwrap();
    let mut gone = BTreeSet::new();
    for round in 0..30 {
        let reader = world.reader();
        let facts = reader.view(&world.identity).unwrap().view().facts().unwrap();
        let last = facts[round * 7 % facts.len()].last.event_ref;
        gone.insert(last);
        log.forget(&Selection::Refs(vec![last])).unwrap();
        assert_eq!(world.snapshot(), fold(&without(&events, &gone)), "round {round}");
    }
    world.assert_healthy();
}

#[test]
fn pruning_is_by_time_or_by_number() {
    let time = |n: u64| format!("2026-05-06T10:00:{:02}Z", n % 60);
    let fresh = || {
        let world = World::new();
        let mut log = world.log(V1);
        for n in 0..30 {
            // Later in the log is earlier in time.
            log.append(&[admitted(29 - n, "s", true)], PASS).unwrap();
        }
        (world, log)
    };
    let left = |world: &World| {
        let reader = world.reader();
        let view = reader.view(&world.identity).unwrap();
        let mut left = Vec::new();
        let all = Seq(1)..=world.head();
        view.view()
            .each_entry(all, |entry, forgotten| {
                if !forgotten && !ipse_core::is_housekeeping(&entry.event_type) {
                    left.push(entry.time.to_string());
                }
                Ok::<_, ipse_store::Error>(())
            })
            .unwrap();
        left
    };
    let (world, mut log) = fresh();
    let before = Selection::Before(Time::parse(&time(20)).unwrap());
    assert_eq!(seen(&world, &before).unwrap().events.len(), 20);
    assert_eq!(log.forget(&before).unwrap().events, 20);
    assert_eq!(left(&world), (20..30).rev().map(time).collect::<Vec<_>>());
    world.assert_healthy();
    let (world, mut log) = fresh();
    assert_eq!(log.forget(&Selection::AllBut(7)).unwrap().events, 23);
    assert_eq!(left(&world), (0..7).rev().map(time).collect::<Vec<_>>());
    assert_eq!(log.forget(&Selection::AllBut(7)).unwrap().events, 0, "housekeeping is not counted");
    assert_eq!(log.forget(&Selection::AllBut(u64::MAX)).unwrap().events, 0);
    assert_eq!(log.forget(&Selection::AllBut(0)).unwrap().events, 7);
    assert_eq!(world.snapshot(), "");
    world.assert_healthy();
}

fn seen(world: &World, which: &Selection) -> Result<Preview, Error> {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    preview(snapshot.view(), which)
}

/// Chunks, small chunks and rows are skipped in part, at their ends and completely.
#[test]
fn a_preview_is_what_forgetting_does() {
    let events: Vec<_> = (0..4700).map(|n| random_event(n, 0, n as u32)).collect();
    let folded = 4660;
    for places in [[0..1, 1..1], [10..20, 4090..4100], [4300..4600, 4655..4665], [0..9, 9..4699]] {
        let world = World::new();
        let mut log = world.log(V1);
        log.append(&events[..folded], PASS).unwrap();
        log.append(&events[folded..], NextStep::Nothing).unwrap();
        let chosen: Vec<_> =
            places.iter().flat_map(|place| events[place.clone()].to_vec()).collect();
        let (before, files) = (facts(&world), world.bytes());
        let seen = seen(&world, &refs(&chosen)).unwrap();
        assert_eq!(world.bytes(), files, "a preview writes nothing");
        let names: Vec<_> = chosen.iter().map(|event| event.event_ref).collect();
        assert_eq!(seen.events, names);
        let done = log.forget(&Selection::Refs(seen.events)).unwrap().pass.unwrap();
        assert_eq!(seen.facts, Diff::between(before, facts(&world)));
        let moved = seen.facts.changed.len() + seen.facts.added.len() + seen.facts.gone.len();
        assert_eq!(done.committed.rows_touched, moved as u64);
        assert_eq!(done.gone.len(), seen.facts.gone.len());
    }
}

fn facts(world: &World) -> Vec<ipse_core::Fact> {
    world.reader().view(&world.identity).unwrap().view().facts().unwrap()
}

#[test]
fn what_a_memory_knows_forgets_too() {
    let world = World::new();
    let policy = Policy { every: 1, quiet: Duration::from_secs(3600) };
    let memory =
        Memory::open(&world.store, world.identity, policy, Box::new(TestHost(0)), None).unwrap();
    let events = [admitted(1, "a", true), admitted(2, "b", true), admitted(3, "b", false)];
    memory.append_all(&events).unwrap();
    assert_eq!(memory.known().len(), 2);
    let held = memory.known();
    memory.forget(&refs(&[events[0].clone(), events[2].clone()])).unwrap();
    let known: Vec<_> = memory.known().iter().map(|fact| fact.n_observations).collect();
    assert_eq!(known, [1]);
    assert_eq!(held.len(), 2, "a held table does not change");
    assert!(memory.known_at(held.checkpoint()).is_none(), "and it is no longer returned");
    memory.append_all(&[admitted(4, "a", true)]).unwrap();
    assert_eq!(memory.known().len(), 2);
    world.assert_healthy();
}

#[derive(Clone, Debug)]
enum Step {
    Append(u64, u32, bool),
    Forget(Vec<prop::sample::Index>),
    Prune(u64),
    Pass,
    Restart,
    OtherHandle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..9, any::<u32>(), any::<bool>())
            .prop_map(|(count, seed, pass)| Step::Append(count, seed, pass)),
        3 => proptest::collection::vec(any::<prop::sample::Index>(), 1..6).prop_map(Step::Forget),
        1 => (0_u64..60).prop_map(Step::Prune),
        1 => Just(Step::Pass),
        1 => Just(Step::Restart),
        1 => Just(Step::OtherHandle),
    ]
}

fn open(world: &World, save_every: u64) -> Log {
    let mut log = world.log(V1);
    log.save_every(save_every);
    log
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Forget = never had, for random logs and random orders of operations.
    #[test]
    fn forgetting_is_never_having_had(
        steps in proptest::collection::vec(step(), 1..30),
        save_every in 1_u64..20,
    ) {
        let world = World::new();
        let mut handles = [open(&world, save_every), open(&world, save_every)];
        let mut all: Vec<Admitted> = Vec::new();
        let mut gone = BTreeSet::new();
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(count, seed, pass) => {
                    let batch: Vec<_> =
                        (0..count).map(|n| random_event(index, n, seed)).collect();
                    handles[0].append(&batch, if pass { PASS } else { NextStep::Nothing }).unwrap();
                    all.extend(batch);
                }
                Step::Forget(chosen) if !all.is_empty() => {
                    let chosen: Vec<_> = chosen.iter().map(|i| i.get(&all).clone()).collect();
                    handles[0].forget(&refs(&chosen)).unwrap();
                    gone.extend(chosen.iter().map(|event| event.event_ref));
                }
                Step::Prune(kept) => {
                    handles[0].forget(&Selection::AllBut(kept)).unwrap();
                    let there = without(&all, &gone);
                    let first = there.len().saturating_sub(kept as usize);
                    gone.extend(there[..first].iter().map(|event| event.event_ref));
                }
                Step::Pass => drop(handles[0].consolidate(Trigger::Manual).unwrap()),
                Step::Restart => handles[0] = open(&world, save_every),
                Step::OtherHandle => handles.swap(0, 1),
                Step::Forget(_) => {}
            }
        }
        handles[0].consolidate(Trigger::Manual).unwrap();
        let there = without(&all, &gone);
        prop_assert_eq!(world.snapshot(), fold(&there));
        world.assert_healthy();
        // As of any position: the events up to there that are not forgotten.
        let reader = world.reader();
        let view = reader.view(&world.identity).unwrap();
        let types = world.types();
        for position in (0..=types.len()).step_by(5) {
            let house = types[..position].iter().filter(|t| ipse_core::is_housekeeping(t)).count();
            let prefix = without(&all[..position - house], &gone);
            let rebuilt = rebuild(view.view(), Seq(position as u64)).unwrap();
            prop_assert_eq!(snapshot(&rebuilt.facts), fold(&prefix), "as of {}", position);
        }
        let resent = handles[0].append(&all, NextStep::Nothing).unwrap();
        for (event, became) in all.iter().zip(resent.appended) {
            let refused = matches!(became, Appended::Forgotten(_));
            prop_assert_eq!(refused, gone.contains(&event.event_ref));
        }
    }
}

#[test]
fn typed_columns_of_a_forgotten_event_leave_the_memory() {
    let world = World::new();
    let mut log = world.log(V1);
    let events: Vec<Admitted> = (1..=5).map(|n| admitted(n, "grasp", true)).collect();
    log.append(&events, NextStep::Nothing).unwrap();
    assert_eq!(log.held(), 5, "the control: they are cached for the next chunk");
    log.forget(&refs(&events[..1])).unwrap();
    assert_eq!(log.held(), 0);
    // The index is read again: stored events are duplicates, and the forgotten event stays so.
    let again = log.append(&events, NextStep::Nothing).unwrap().appended;
    assert!(matches!(again[0], Appended::Forgotten(_)), "{again:?}");
    assert!(again[1..].iter().all(|it| matches!(it, Appended::Duplicate(_))), "{again:?}");
    world.assert_healthy();
}
