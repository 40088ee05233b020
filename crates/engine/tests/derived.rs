//! Derived facts: every way to compute facts gives the result of a direct computation.
#![allow(missing_docs, clippy::unwrap_used)]

mod advised;
mod world;

use advised::{Advised, Direct, about, about_all, is_advice};
use ipse_consolidate::{Groups, Tally, f, snapshot};
use ipse_core::chunk::CHUNK_EVENTS;
use ipse_core::{Admitted, Columns, Event, EvidenceKey, FactId, FactKind, Seq};
use ipse_engine::facts::Filter;
use ipse_engine::{
    FactTable, Log, NextStep, Selection, Start, Trigger, as_of_from, chosen_as_of_under,
    rebuild_under,
};
use ipse_inspect::explain::{evidence_under, feeds_under, group_under};
use ipse_inspect::preview_under;
use ipse_store::View;
use proptest::prelude::*;
use std::collections::BTreeMap;
use world::{World, admit_line, heavy_event, random_event, shuffled};

const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);
const CHUNK: u64 = CHUNK_EVENTS as u64;

fn open(world: &World, limits: Limits) -> Log {
    let mut log = world.log(Advised);
    log.save_every(limits.save_every);
    log.slice_at(limits.slice);
    log.keep_sums(limits.sums);
    log
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    save_every: u64,
    slice: usize,
    sums: usize,
}

/// Saves at every pass, and never; in one slice.
const ALWAYS: Limits = Limits { save_every: 1, slice: usize::MAX, sums: 0 };
const NEVER: Limits = Limits { save_every: u64::MAX, slice: usize::MAX, sums: usize::MAX };

fn look(world: &World, look: impl FnOnce(View<'_>)) {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    look(snapshot.view());
}

/// Filters that select derived facts, others, and both.
fn filters() -> Vec<Filter> {
    let some = |text: &str| Some(text.to_owned());
    let zone = |skill: &str| Some(about(skill).text().to_owned());
    vec![
        Filter { zone: zone("s1"), ..Filter::default() },
        Filter { zone: zone("*"), ..Filter::default() },
        Filter { zone: zone("s1"), limit: Some(1), ..Filter::default() },
        Filter { kind: Some(FactKind::ZoneRisk), limit: Some(3), ..Filter::default() },
        Filter { skill: some("s2"), ..Filter::default() },
        Filter { limit: Some(4), ..Filter::default() },
        Filter::default(),
    ]
}

/// Checks stored facts and sums, a rebuild and a verification.
fn check_now(world: &World) {
    look(world, |view| {
        let checkpoint = view.progress().unwrap().checkpoint;
        let direct = Direct::of(view, checkpoint);
        assert_eq!(world.snapshot(), direct.snapshot(), "the stored facts");
        let rebuilt = rebuild_under(view, &Advised, checkpoint).unwrap();
        assert!(rebuilt.facts.is_sorted_by(|a, b| a.key < b.key));
        assert_eq!(snapshot(&rebuilt.facts), direct.snapshot(), "a rebuild");
    });
    world.assert_healthy_under(&Advised);
}

/// Checks the facts as of positions, from either saved state, all and filtered.
fn check_as_of(world: &World, positions: impl Iterator<Item = u64>) {
    look(world, |view| {
        let (known, filters) = (FactTable::read(view).unwrap(), filters());
        for position in positions {
            let want = Direct::of(view, Seq(position)).facts();
            for start in [Start::Nearest, Start::Nothing, Start::Checkpoint] {
                let past = as_of_from(view, &Advised, Seq(position), start).unwrap().facts;
                assert_eq!(snapshot(&past), snapshot(&want), "as of {position}, from {start:?}");
                assert!(past.is_sorted_by(|a, b| a.key < b.key));
            }
            for filter in &filters {
                let want = filter.chosen(want.clone()).unwrap();
                for known in [None, Some(&known)] {
                    let past = chosen_as_of_under(view, &Advised, Seq(position), filter, known);
                    let past = past.unwrap();
                    assert_eq!(past.facts, want.facts, "as of {position}: {filter:?}");
                    assert_eq!(past.total, want.total, "as of {position}: {filter:?}");
                }
            }
        }
    });
}

/// Checks the sum and the evidence of each fact, and the facts that each event feeds.
fn check_explained(world: &World) {
    look(world, |view| {
        let checkpoint = view.progress().unwrap().checkpoint;
        let direct = Direct::of(view, checkpoint);
        for fact in view.facts().unwrap() {
            let group = group_under(view, &Advised, &world.identity, &fact.key).unwrap();
            assert_eq!((group.tally, group.last), direct.sums[&fact.key], "{:?}", fact.key);
            let basis = fact.evidence_key();
            let found = evidence_under(view, &Advised, &basis, checkpoint, 0, usize::MAX).unwrap();
            let want: Vec<Seq> = direct.evidence[&fact.key].iter().rev().copied().collect();
            assert_eq!(found, want, "{:?}", fact.key);
            let two = evidence_under(view, &Advised, &basis, checkpoint, 1, 2).unwrap();
            assert_eq!(two, want.into_iter().skip(1).take(2).collect::<Vec<_>>());
        }
        let head = view.head().unwrap();
        let now = Direct::of(view, head);
        for (key, want) in &now.evidence {
            let all = EvidenceKey::all(key.clone());
            let found = evidence_under(view, &Advised, &all, head, 0, usize::MAX).unwrap();
            assert_eq!(found, want.iter().rev().copied().collect::<Vec<_>>(), "{key:?}");
        }
        for seq in (1..=head.0).map(Seq) {
            let fed: BTreeMap<_, _> =
                feeds_under(view, &Advised, seq).unwrap().into_iter().collect();
            for (key, evidence) in &now.evidence {
                let supports = fed.get(key).copied().unwrap_or_default();
                assert_eq!(supports, evidence.contains(&seq), "{key:?} by {seq}");
            }
        }
    });
}

fn typed(event: &Admitted) -> Event<'_> {
    let columns = Columns::decode(&event.columns).unwrap();
    let Admitted { event_ref, time, event_type, .. } = event;
    Event { event_ref: *event_ref, time: *time, event_type, columns }
}

fn direct(events: &[Admitted]) -> String {
    let mut direct = Direct::default();
    events.iter().for_each(|event| direct.add(Seq(0), &typed(event)));
    direct.follow();
    direct.snapshot()
}

fn refs(events: &[Admitted]) -> Selection {
    Selection::Refs(events.iter().map(|event| event.event_ref).collect())
}

fn some_events(count: u64, seed: u32) -> Vec<Admitted> {
    (0..count).map(|n| random_event(seed as usize, n, seed)).collect()
}

#[test]
fn the_order_of_events_does_not_show() {
    let events = some_events(200, 3);
    let want = direct(&events);
    assert!(want.lines().filter(|line| line.contains("advice: ")).count() >= 4, "{want}");
    for n in 0..20 {
        let events = shuffled(events.clone(), n);
        assert_eq!(snapshot(&f(&Advised, events.iter().map(typed)).unwrap()), want);
        let mut groups = Groups::default();
        for event in &events {
            groups.fold(&Advised, &typed(event));
        }
        assert_eq!(snapshot(&groups.publish(&Advised).unwrap()), want);
    }
}

#[test]
fn the_cut_into_passes_and_restarts_between_them_do_not_show() {
    let events = some_events(150, 4);
    for limits in [ALWAYS, NEVER, Limits { save_every: 40, slice: 7, sums: 4 }] {
        for (cut, restart) in [(1, false), (1, true), (13, true), (40, false), (150, false)] {
            let world = World::new();
            let mut log = open(&world, limits);
            for batch in events.chunks(cut) {
                if restart {
                    log = open(&world, limits);
                }
                log.append(batch, PASS).unwrap();
            }
            assert_eq!(world.snapshot(), direct(&events), "{limits:?} {cut} {restart}");
            check_now(&world);
        }
    }
}

/// Some sums changed since they were saved. New events change facts that are derived from some of
/// them.
#[test]
fn a_restart_completes_the_sources_of_a_fact() {
    let world = World::new();
    let limits = Limits { save_every: 100, ..ALWAYS };
    let attempt = |id: u64, skill: &str, target: &str, success: bool| {
        admit_line(&format!(
            "{{\"id\":\"{id}\",\"type\":\"execution_result\",\"time\":\"2026-05-06T10:00:00Z\",\
             \"data\":{{\"skill_id\":\"{skill}\",\"target_class\":\"{target}\",\
             \"success\":{success},\"failure_reason\":\"slip\"}}}}"
        ))
    };
    let first: Vec<_> = (0..120).map(|id| attempt(id, "a", "t0", id % 3 > 0)).collect();
    let mut log = open(&world, limits);
    log.append(&first, PASS).unwrap();
    // Not saved: another target of the same skill, and another skill.
    let unsaved = [
        attempt(200, "a", "t1", true),
        attempt(201, "b", "t0", false),
        attempt(202, "c", "t", true),
    ];
    log.append(&unsaved, PASS).unwrap();
    for (id, skill) in [(300, "a"), (301, "b"), (302, "d")] {
        open(&world, limits).append(&[attempt(id, skill, "t2", true)], PASS).unwrap();
        check_now(&world);
        check_explained(&world);
    }
    // Now everything is saved.
    open(&world, ALWAYS).append(&[attempt(400, "d", "t0", false)], PASS).unwrap();
    check_now(&world);
    check_as_of(&world, 0..=world.head().0);
}

#[test]
fn what_a_pass_reports_is_what_it_changed() {
    let world = World::new();
    let (mut log, mut known) = (open(&world, NEVER), FactTable::default());
    for batch in some_events(117, 5).chunks(9) {
        let report = log.append(batch, PASS).unwrap().pass.unwrap();
        let gone = log.forget(&refs(&batch[2..4])).unwrap().pass.unwrap();
        for report in [report, gone] {
            let changed = report.changed.unwrap();
            known = known.after(report.committed.last_seq, changed, &report.gone).unwrap();
        }
        look(&world, |view| {
            assert!(known.iter().eq(FactTable::read(view).unwrap().iter()));
        });
    }
    // All events are forgotten, and no derived fact is left.
    let done = log.forget(&Selection::AllBut(0)).unwrap().pass.unwrap();
    assert_eq!((world.snapshot().as_str(), done.changed.unwrap().len()), ("", 0));
    assert!(done.gone.contains(&about("s0")) && done.gone.contains(&about_all()));
    check_now(&world);
}

#[test]
fn a_preview_of_forgetting_is_what_forgetting_does() {
    let world = World::new();
    let events = some_events(80, 6);
    let mut log = open(&world, ALWAYS);
    log.append(&events, PASS).unwrap();
    let which = refs(&events[10..40]);
    let before = world.snapshot();
    let mut seen = None;
    look(&world, |view| seen = Some(preview_under(view, &Advised, &which).unwrap()));
    log.forget(&which).unwrap();
    assert_ne!(world.snapshot(), before);
    let changed = seen.unwrap().facts.changed;
    assert!(changed.iter().any(|changed| is_advice(&changed.key)));
    let rest: Vec<Admitted> = [&events[..10], &events[40..]].concat();
    assert_eq!(world.snapshot(), direct(&rest));
    check_now(&world);
}

/// The fact about all skills is derived from success rates and patterns.
#[test]
fn a_forgotten_event_counts_once_for_a_fact_that_it_supports_in_two_ways() {
    let world = World::new();
    let failed = admit_line(
        "{\"id\":\"f\",\"type\":\"execution_result\",\"time\":\"2026-05-06T10:00:00Z\",\
         \"data\":{\"skill_id\":\"s0\",\"success\":false,\"failure_reason\":\"slip\"}}",
    );
    let mut log = open(&world, ALWAYS);
    log.append(&[vec![failed.clone()], some_events(20, 9)].concat(), PASS).unwrap();
    log.forget(&refs(&[failed])).unwrap();
    check_now(&world);
    look(&world, |view| {
        for key in [about("s0"), about_all()] {
            let id = FactId::new(&world.identity, &key);
            assert_eq!(view.forgotten_of(&id).unwrap(), 1, "{key:?}");
        }
    });
}

/// Large sums are computed in turns, each with all sources of its derived facts.
#[test]
fn large_sums_are_worked_on_in_turns() {
    let world = World::new();
    let mut log = open(&world, ALWAYS);
    let event = |id: u64| {
        let (skill, class, worked) = (id % 25, id % 4, !id.is_multiple_of(3));
        let key = format!("\"skill_id\":\"s{skill}\",\"target_class\":\"t{class}\"");
        heavy_event(id, &format!("{key},\"success\":{worked}"))
    };
    let events: Vec<Admitted> = (1..=330).map(event).collect();
    log.append(&events, PASS).unwrap();
    look(&world, |view| {
        let read = as_of_from(view, &Advised, Seq(110), Start::Nothing).unwrap().events;
        assert_eq!(read, 220, "two turns");
    });
    check_as_of(&world, [110, 200, 331].into_iter());
}

#[test]
fn a_log_that_is_taken_in_goes_on_as_it_was() {
    let (events, more) = (some_events(90, 7), some_events(20, 8));
    let world = World::new();
    let mut log = open(&world, ALWAYS);
    log.append(&events, PASS).unwrap();
    log.forget(&refs(&events[5..9])).unwrap();
    let other = world.taken_in(&Advised);
    assert_eq!(other.snapshot(), world.snapshot());
    check_now(&other);
    check_explained(&other);
    // A restored log has no stored sums yet.
    for limits in [NEVER, ALWAYS] {
        let other = world.taken_in(&Advised);
        open(&other, limits).append(&more[..7], PASS).unwrap();
        open(&other, limits).append(&more[7..], PASS).unwrap();
        assert_eq!(other.snapshot(), direct(&[&events[..5], &events[9..], &more].concat()));
        check_now(&other);
    }
}

/// A log of attempts over several chunks.
fn long_log(clock: fn(u64) -> u64) -> Vec<Admitted> {
    let attempt = |id: u64| {
        let second = clock(id);
        admit_line(&format!(
            "{{\"id\":\"{id}\",\"type\":\"execution_result\",\
             \"time\":\"2026-05-{:02}T{:02}:{:02}:{:02}Z\",\"data\":{{\"skill_id\":\"s{}\",\
             \"target_class\":\"t{}\",\"success\":{},\"failure_reason\":\"slip\",\
             \"params\":{{\"f\":{}}}}}}}",
            1 + second / 86_400,
            second / 3600 % 24,
            second / 60 % 60,
            second % 60,
            // One skill is rare.
            if id.is_multiple_of(1999) { 9 } else { id * 7 % 4 },
            id * 5 % 6,
            !id.is_multiple_of(3),
            id % 7
        ))
    };
    (1..=2 * CHUNK + 700).map(attempt).collect()
}

#[test]
fn long_logs_in_chunks_and_slices() {
    let clocks: [fn(u64) -> u64; 3] = [|id| id * 20, |_| 0, |id| 400_000 - id * 20];
    for (number, clock) in clocks.into_iter().enumerate() {
        let events = long_log(clock);
        let (world, sliced) = (World::new(), World::new());
        let mut log = open(&world, Limits { save_every: 1000, ..NEVER });
        for batch in events.chunks(1500) {
            log.append(batch, PASS).unwrap();
        }
        let mut few = open(&sliced, Limits { save_every: 1, slice: 20, sums: 8 });
        let pass = few.append(&events, PASS).unwrap().pass.unwrap();
        assert!(pass.slices > 3, "{} slices", pass.slices);
        assert_eq!(sliced.snapshot(), world.snapshot());
        check_now(&sliced);
        check_now(&world);
        let head = world.head().0;
        check_as_of(&world, [1, 700, CHUNK, CHUNK + 1, head - 800, head - 30, head].into_iter());
        // Forgets last supporting events of facts, in the middle of the log and at its end.
        let mut by_time = events.clone();
        by_time.sort_by_key(|event| std::cmp::Reverse((event.time, event.event_ref)));
        log.forget(&refs(&by_time[..300 + number])).unwrap();
        log.forget(&refs(&events[4000..4100])).unwrap();
        check_now(&world);
        let head = world.head().0;
        check_as_of(&world, [CHUNK - 1, head - 500, head - 5].into_iter());
        if number == 0 {
            check_explained(&world);
        }
    }
}

/// The contributions of several facts may cancel out. Then no sum is stored, but the fact exists.
#[test]
fn a_sum_that_cancels_out_is_a_fact() {
    let world = World::new();
    let attempt = |id: u64, skill: &str, success: bool| {
        admit_line(&format!(
            "{{\"id\":\"{id}\",\"type\":\"execution_result\",\
             \"time\":\"2026-05-06T10:00:{id:02}Z\",\
             \"data\":{{\"skill_id\":\"{skill}\",\"success\":{success}}}}}"
        ))
    };
    let mut log = open(&world, ALWAYS);
    for (id, skill, success) in
        [(1, "a", true), (2, "b", false), (3, "a", true), (4, "c", true), (5, "c", false)]
    {
        log.append(&[attempt(id, skill, success)], PASS).unwrap();
        check_now(&world);
    }
    check_as_of(&world, 0..=world.head().0 + 1);
    look(&world, |view| {
        let sum = Direct::of(view, Seq(3)).sums[&about_all()].clone();
        assert!(sum.0.is_zero() && sum.1.is_some(), "one worked, one failed");
    });
    log.forget(&refs(&[attempt(3, "a", true)])).unwrap();
    check_now(&world);
    check_explained(&world);
    // The stored sum is zero, and the earlier ones are not.
    look(&world, |view| {
        let sum = Direct::of(view, view.head().unwrap()).sums[&about_all()].clone();
        assert!(sum.0.is_zero() && sum.1.is_some());
    });
    check_as_of(&world, 0..=world.head().0 + 1);
}

#[derive(Clone, Debug)]
enum Step {
    Append(u64, u32, bool),
    Forget(prop::sample::Index, usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..25, any::<u32>(), any::<bool>())
            .prop_map(|(count, seed, pass)| Step::Append(count, seed, pass)),
        1 => (any::<prop::sample::Index>(), 1_usize..4)
            .prop_map(|(chosen, count)| Step::Forget(chosen, count)),
        1 => Just(Step::Restart),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (1_u64..60, 1_usize..60, 0_usize..12).prop_map(|(save_every, slice, sums)| Limits {
        save_every,
        slice,
        sums,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Random logs with passes in slices, saves, evicted sums, forgetting, restarts and pending
    /// events.
    #[test]
    fn however_facts_are_made_they_are_those_of_a_direct_computation(
        steps in proptest::collection::vec(step(), 1..20),
        limits in limits(),
    ) {
        let world = World::new();
        let (mut log, mut all) = (open(&world, limits), Vec::new());
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(count, seed, pass) => {
                    let made = |n| random_event(index, n, seed);
                    let batch: Vec<_> = (0..count).map(made).collect();
                    let then = if pass { PASS } else { NextStep::Nothing };
                    log.append(&batch, then).unwrap();
                    all.extend(batch);
                }
                Step::Forget(chosen, count) if !all.is_empty() => {
                    let from = chosen.index(all.len());
                    let gone = &all[from..(from + count).min(all.len())];
                    log.forget(&refs(gone)).unwrap();
                }
                Step::Forget(..) => {}
                Step::Restart => log = open(&world, limits),
            }
            look(&world, |view| {
                let checkpoint = view.progress().unwrap().checkpoint;
                assert_eq!(world.snapshot(), Direct::of(view, checkpoint).snapshot());
            });
        }
        check_now(&world);
        check_as_of(&world, (0..=world.head().0 + 1).step_by(3));
        check_explained(&world);
    }
}
