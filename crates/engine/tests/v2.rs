//! Rule set v2 through the engine: every vector in many orders, cuts and after forgetting; random
//! logs with restarts, forgetting and few sums in memory, compared with `f` over the events that
//! are left; and the same facts as of every position.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::days::day_of;
use ipse_consolidate::{V1, V2, f, snapshot};
use ipse_core::{Admitted, EventRef, FactKind, Seq};
use ipse_engine::{Appended, NextStep, Selection, Trigger, as_of_under, skill_sums};
use ipse_inspect::explain::{Explanation, evidence_under, group_under};
use proptest::prelude::*;
use std::fs;
use world::{World, admit_line, read_log, shuffled, vectors};

const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);

/// The names of the cases, without those of many thousand events.
fn cases() -> Vec<String> {
    let names = fs::read_dir(vectors().join("facts-v2")).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".events.jsonl").map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert!(names.len() >= 20, "the vectors exist");
    names
}

fn facts_of(events: &[Admitted]) -> String {
    snapshot(&f(&V2, events.iter().map(|event| event.typed().unwrap())).unwrap())
}

#[test]
fn every_case_in_many_orders_and_cuts_and_forgotten() {
    for name in cases() {
        let path = |end: &str| vectors().join(format!("facts-v2/{name}.{end}"));
        let read = |end: &str| fs::read_to_string(path(end)).unwrap();
        let (log, want) = (read_log(&path("events.jsonl")), read("snapshot.jsonl"));
        let gone: Vec<String> = serde_json::from_str(&read("forget.json")).unwrap();
        let gone: Vec<_> = gone.iter().map(|name| EventRef::parse(name).unwrap()).collect();
        for round in 0..if log.len() > 500 { 2 } else { 5_usize } {
            let events = match round {
                0 => log.clone(),
                1 => log.iter().rev().cloned().collect(),
                n => shuffled(log.clone(), n as u64),
            };
            let world = World::new();
            let mut handle = world.log(V2);
            for piece in events.chunks(events.len().div_ceil(round + 1).max(1)) {
                handle.append(piece, PASS).unwrap();
            }
            assert_eq!(world.snapshot(), want, "{name}, round {round}");
            world.assert_healthy_under(&V2);
            if !gone.is_empty() {
                handle.forget(&Selection::Refs(gone.clone())).unwrap();
                assert_eq!(world.snapshot(), read("forgotten.snapshot.jsonl"), "{name}, {round}");
                world.assert_healthy_under(&V2);
            }
        }
    }
}

/// An event of one of three sources, on one of some forty days.
fn dated_event(index: usize, n: u64, seed: u32) -> Admitted {
    let mut state = u64::from(seed).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
    let mut pick = |from: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % from
    };
    let (month, day, hour) = (3 + pick(2), 1 + pick(20), pick(24));
    // The rate depends on the month, so that stretches begin somewhere.
    let works = pick(10) < if month == 3 { 9 } else { 2 };
    let outcome = if pick(12) == 0 { "denied" } else { ["failed", "success"][usize::from(works)] };
    let kind = ["execution_result", "execution_result", "execution_result", "incident"];
    let (kind, source, skill, zone) = (kind[pick(4) as usize], pick(3), pick(2), pick(2));
    let (target, value) = (pick(2), pick(3) * 5 + 20);
    admit_line(&format!(
        "{{\"id\":\"{index}-{n}\",\"source\":\"arm{source}\",\"type\":\"{kind}\",\
         \"time\":\"2026-{month:02}-{day:02}T{hour:02}:00:00Z\",\
         \"data\":{{\"skill_id\":\"s{skill}\",\"target_class\":\"t{target}\",\"zone\":\"z{zone}\",\
         \"outcome\":\"{outcome}\",\"failure_reason\":\"slip\",\"params\":{{\"f\":{value}}}}}}}"
    ))
}

#[derive(Clone, Debug)]
enum Step {
    Append(u64, u32, bool),
    Forget(prop::sample::Index),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1_u64..30, any::<u32>(), any::<bool>())
            .prop_map(|(count, seed, pass)| Step::Append(count, seed, pass)),
        2 => any::<prop::sample::Index>().prop_map(Step::Forget),
        1 => Just(Step::Restart),
    ]
}

/// Checks facts, sums, evidence and the series' sums against `f` over the events that are left.
fn check(world: &World, all: &[(Seq, Admitted)]) {
    let left: Vec<Admitted> = all.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(world.snapshot(), facts_of(&left));
    world.assert_healthy_under(&V2);
    let reader = world.reader();
    let shot = reader.view(&world.identity).unwrap();
    let (view, head) = (shot.view(), shot.view().head().unwrap());
    for seq in (0..=head.0).step_by(7).chain([head.0]).map(Seq) {
        let until: Vec<Admitted> =
            all.iter().filter(|(at, _)| *at <= seq).map(|(_, event)| event.clone()).collect();
        let past = as_of_under(view, &V2, seq).unwrap();
        assert_eq!(snapshot(&past.facts), facts_of(&until), "as of {seq}");
    }
    let sums = skill_sums(view, &world.identity).unwrap();
    let checkpoint = view.progress().unwrap().checkpoint;
    for fact in view.facts().unwrap() {
        let group = group_under(view, &V2, &world.identity, &fact.key).unwrap();
        assert_eq!(group.publish(&V2, &fact.key).unwrap().unwrap(), fact);
        if fact.key.kind() == FactKind::SkillSuccessRate {
            assert_eq!(sums[&fact.key].by_day(), group.tally.by_day(), "{:?}", fact.key);
        }
        let basis = fact.evidence_key();
        let found = evidence_under(view, &V2, &basis, checkpoint, 0, usize::MAX).unwrap();
        let value: serde_json::Value = serde_json::from_str(&fact.value).unwrap();
        assert_eq!(found.len() as u64, value["n_observations"].as_u64().unwrap(), "{:?}", fact.key);
        if let Some(since) = basis.since {
            let times = all.iter().filter(|(seq, _)| found.contains(seq)).map(|(_, e)| e.time);
            assert!(times.map(day_of).all(|day| day >= day_of(since)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_history_gives_the_facts_of_the_events_that_are_left(
        steps in proptest::collection::vec(step(), 1..14),
        save_every in 1_u64..60,
    ) {
        let world = World::new();
        let open = || {
            let mut log = world.log(V2);
            log.save_every(save_every);
            log
        };
        let (mut log, mut all): (_, Vec<(Seq, Admitted)>) = (open(), Vec::new());
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(count, seed, pass) => {
                    let batch: Vec<_> = (0..count).map(|n| dated_event(index, n, seed)).collect();
                    let then = if pass { PASS } else { NextStep::Nothing };
                    let stored = log.append(&batch, then).unwrap().appended;
                    // Acts about erased bytes may stand before them.
                    let seqs = stored.iter().map(|stored| match stored {
                        Appended::New(seq) => *seq,
                        other => panic!("{other:?}"),
                    });
                    all.extend(seqs.zip(batch));
                }
                Step::Forget(chosen) if !all.is_empty() => {
                    let gone = all.remove(chosen.index(all.len())).1.event_ref;
                    log.forget(&Selection::Refs(vec![gone])).unwrap();
                }
                Step::Forget(_) => {}
                Step::Restart => log = open(),
            }
        }
        log.consolidate(Trigger::Manual).unwrap();
        check(&world, &all);
    }
}

/// The explanation names the boundary, and the fact without a source is that of a log without it.
#[test]
fn an_explanation_shows_the_boundary_and_the_fact_without_each_source() {
    let world = World::new();
    let events: Vec<Admitted> = (0..400).map(|n| dated_event(0, n, 7)).collect();
    // The log names its rules, as a command would make it.
    let mut log = world.own_log();
    log.begin_with_rules(ipse_consolidate::Rules::V2).unwrap();
    log.append(&events, PASS).unwrap();
    let reader = world.reader();
    let shot = reader.view(&world.identity).unwrap();
    let (mut cuts, mut without) = (0, 0);
    for fact in shot.view().facts().unwrap() {
        let explained = Explanation::of(shot.view(), &world.identity, &fact, Some(1)).unwrap();
        assert!(explained.true_to_sum);
        let dated = matches!(fact.key.kind(), FactKind::SkillSuccessRate | FactKind::ZoneRisk);
        assert_eq!(explained.change.is_some(), dated, "{:?}", fact.key);
        let Some(change) = explained.change else { continue };
        cuts += usize::from(change.newest.cut.is_some_and(|cut| cut.day == change.newest.since));
        for it in &change.without {
            let rest = events.iter().filter(|event| !event.canonical.contains(&it.source));
            let rest = f(&V2, rest.map(|event| event.typed().unwrap())).unwrap();
            let want = rest.into_iter().find(|other| other.key == fact.key);
            assert_eq!(it.fact.as_ref().map(|it| &it.fact), want.as_ref(), "{:?}", it.source);
            without += 1;
        }
    }
    assert!(cuts > 0 && without > 0, "{cuts} {without}");
}

/// Under v1 the monitor reads the log, under v2 the stored sums: both give the same sums.
#[test]
fn the_sums_of_the_monitor_do_not_depend_on_the_rules() {
    let events: Vec<Admitted> = (0..600).map(|n| dated_event(0, n, 3)).collect();
    let worlds = [World::new(), World::new()];
    worlds[0].log(V1).append(&events, PASS).unwrap();
    let mut log = worlds[1].log(V2);
    log.save_every(100);
    for piece in events.chunks(70) {
        log.append(piece, PASS).unwrap();
    }
    let [one, other] = worlds.map(|world| {
        let reader = world.reader();
        let shot = reader.view(&world.identity).unwrap();
        let sums = skill_sums(shot.view(), &world.identity).unwrap();
        sums.into_iter().map(|(key, sum)| (key, sum.by_day(), sum.params)).collect::<Vec<_>>()
    });
    assert_eq!(one, other);
    assert!(!one.is_empty());
}
