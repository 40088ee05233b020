//! Passes through a real store: any order, any cut, any restart, any rule set in between.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::{V1, snapshot};
use ipse_core::{Seq, Time};
use ipse_door::Salt;
use ipse_engine::{Host, Log, NextStep, Trigger, rebuild};
use ipse_store::Appended;
use proptest::prelude::*;
use std::fs;
use world::{CountTypes, World, admitted, case_names, read_log, shuffled, vectors};

#[test]
fn every_case_in_many_orders_and_cuts() {
    for name in case_names() {
        let log = read_log(&vectors().join(format!("facts/{name}.events.jsonl")));
        let want =
            fs::read_to_string(vectors().join(format!("facts/{name}.snapshot.jsonl"))).unwrap();
        let rounds = if log.len() > 500 { 3 } else { 12 };
        for round in 0..rounds {
            let world = World::new();
            let events = match round {
                0 => log.clone(),
                1 => log.iter().rev().cloned().collect(),
                n => shuffled(log.clone(), n),
            };
            // The n-th round cuts the log into n + 1 pieces, with a pass after each.
            let mut handle = world.log(V1);
            for piece in events.chunks(events.len().div_ceil(round as usize + 1)) {
                handle.append(piece, NextStep::Consolidate(Trigger::Manual)).unwrap();
            }
            assert_eq!(world.snapshot(), want, "{name}, round {round}");
            world.assert_healthy();
        }
    }
}

#[test]
fn a_pass_over_nothing_new_writes_nothing() {
    let world = World::new();
    let mut log = world.log(V1);
    assert_eq!(log.consolidate(Trigger::Manual).unwrap(), None, "an empty log");
    log.append(&[admitted(1, "s", true)], NextStep::Nothing).unwrap();
    let report = log.consolidate(Trigger::Manual).unwrap().unwrap();
    assert_eq!((report.committed.first_seq, report.committed.last_seq), (Seq(1), Seq(1)));
    assert_eq!(report.record_seq, Seq(2));
    let before = world.bytes();
    for _ in 0..3 {
        assert_eq!(log.consolidate(Trigger::Manual).unwrap(), None);
        assert_eq!(world.log(V1).consolidate(Trigger::Startup).unwrap(), None, "another process");
    }
    assert_eq!(
        log.append(&[admitted(1, "s", true)], NextStep::Consolidate(Trigger::Manual)).unwrap().pass,
        None,
        "a duplicate is nothing new"
    );
    assert_eq!(world.bytes(), before);
}

#[test]
fn ranges_have_neither_gap_nor_overlap_and_records_say_what_was_skipped() {
    let world = World::new();
    let mut log = world.log(V1);
    let note = |id: &str| {
        let line = format!(
            "{{\"id\":\"{id}\",\"type\":\"note\",\"time\":\"2026-05-06T10:00:00Z\",\
             \"data\":{{\"text\":\"free\"}}}}"
        );
        world::admit_line(&line)
    };
    log.append(&[admitted(1, "s", true), note("n1")], NextStep::Consolidate(Trigger::Manual))
        .unwrap();
    log.append(&[admitted(2, "s", false)], NextStep::Nothing).unwrap();
    let done =
        log.append(&[note("n2"), note("n3")], NextStep::Consolidate(Trigger::Threshold)).unwrap();
    let report = done.pass.unwrap();
    assert_eq!((report.committed.first_seq, report.committed.last_seq), (Seq(3), Seq(6)));
    assert_eq!((report.events_processed, report.events_skipped), (3, 2));
    let records = world.pass_records();
    assert_eq!(records[0]["first_seq"], 1);
    assert_eq!(records[0]["last_seq"], 2);
    assert_eq!(records[1]["first_seq"], 3, "right after the last checkpoint");
    assert_eq!(records[1]["skipped"], serde_json::json!({"note": {"no_object": 2}}));
    assert_eq!(records[1]["trigger"], "threshold");
    assert_eq!(records[1]["rule_version"], "v1");
    assert_eq!(records[1]["rule_set_sha256"].as_str().unwrap().len(), 64);
    let first = records[0]["first_processed_event_id"].as_str().unwrap();
    assert_eq!(first, admitted(1, "s", true).event_ref.to_string());
}

#[test]
fn ten_thousand_types_do_not_burst_the_pass_record() {
    let world = World::new();
    let mut log = world.log(V1);
    let filler = "t".repeat(200);
    let events: Vec<_> = (0..3000)
        .map(|n| {
            let kind = if n % 2 == 0 { "common".to_string() } else { format!("{filler}{n}") };
            world::admit_line(&format!(
                "{{\"id\":\"{n}\",\"type\":\"{kind}\",\"time\":\"2026-05-06T10:00:00Z\"}}"
            ))
        })
        .collect();
    let done = log.append(&events, NextStep::Consolidate(Trigger::Manual)).unwrap();
    assert!(done.pass_error.is_none());
    let record = &world.pass_records()[0];
    let skipped = record["skipped"].as_object().unwrap();
    assert_eq!(skipped.len(), ipse_engine::MAX_SKIPPED_TYPES + 1);
    assert_eq!(skipped["common"]["no_object"], 1500);
    assert_eq!(skipped["ipse.other"]["no_object"], 1500 - 63);
    assert_eq!(record["events_skipped"], 3000);
}

#[test]
fn rule_sets_in_any_sequence_leave_the_identity_byte_equal() {
    let world = World::new();
    let before = world.manifest_bytes();
    let facts_of_v1 = {
        let mut log = world.log(V1);
        let events: Vec<_> = (0..50).map(|n| admitted(n, "s", n % 3 == 0)).collect();
        log.append(&events, NextStep::Consolidate(Trigger::Manual)).unwrap();
        world.snapshot()
    };
    for round in 0..6 {
        if round % 2 == 0 {
            let report = world.log(CountTypes).consolidate(Trigger::Manual).unwrap().unwrap();
            assert_eq!(report.committed.first_seq, Seq(1), "other rules start over");
            assert!(world.snapshot().contains("\"rule_version\":\"count-types\""));
        } else {
            world.log(V1).consolidate(Trigger::Manual).unwrap().unwrap();
            assert_eq!(world.snapshot(), facts_of_v1, "the same rules, the same bytes");
            assert_eq!(world.log(V1).consolidate(Trigger::Manual).unwrap(), None);
        }
        assert_eq!(world.manifest_bytes(), before);
    }
}

#[test]
fn two_handles_take_turns_and_never_count_twice() {
    let world = World::new();
    let (mut one, mut two) = (world.log(V1), world.log(V1));
    one.save_every(7);
    two.save_every(5);
    for n in 0..60 {
        let handle = if n % 2 == 0 { &mut one } else { &mut two };
        let then =
            if n % 3 == 0 { NextStep::Nothing } else { NextStep::Consolidate(Trigger::Manual) };
        handle
            .append(&[admitted(n, if n % 5 == 0 { "a" } else { "b" }, n % 4 == 0)], then)
            .unwrap();
    }
    one.consolidate(Trigger::Manual).unwrap();
    world.assert_healthy();
}

/// A clock that jumps.
struct Jumping(u64);

impl Host for Jumping {
    fn now(&self) -> Time {
        let years = [40, 0, 300, 12, 12, 7000];
        Time::from_micros(years[self.0 as usize % years.len()] * 31_557_600_000_000).unwrap()
    }

    fn salt(&mut self) -> Salt {
        self.0 += 1;
        u128::from(self.0).to_be_bytes()
    }
}

#[test]
fn clock_jumps_do_not_matter() {
    let (jumping, steady) = (World::new(), World::new());
    let host = Box::new(Jumping(0));
    let mut odd = Log::open(&jumping.store, jumping.identity, host).unwrap();
    let mut even = steady.log(V1);
    for n in 0..40 {
        for log in [&mut odd, &mut even] {
            log.append(&[admitted(n, "s", n % 3 == 0)], NextStep::Consolidate(Trigger::Manual))
                .unwrap();
        }
    }
    assert_eq!(jumping.snapshot(), steady.snapshot());
    jumping.assert_healthy();
}

#[test]
fn late_and_equal_times_are_counted() {
    let text = fs::read_to_string(vectors().join("checkpoint.json")).unwrap();
    let vector: serde_json::Value = serde_json::from_str(&text).unwrap();
    let late = &vector["late"];
    let world = World::new();
    let mut log = world.log(V1);
    for part in ["events_pass1", "events_pass2"] {
        let events: Vec<_> = late[part]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| {
                let (id, time) = (&event[0], event[1].as_str().unwrap());
                let success = event[2] == 1;
                world::admit_line(&format!(
                    "{{\"id\":\"{id}\",\"type\":\"execution_result\",\"time\":\"{time}\",\
                     \"data\":{{\"skill_id\":\"s\",\"success\":{success}}}}}"
                ))
            })
            .collect();
        log.append(&events, NextStep::Consolidate(Trigger::Manual)).unwrap();
    }
    let (n, s) = world.counts();
    let want = late["offset_checkpoint_n_s"].as_array().unwrap();
    assert_eq!((n, s), (want[0].as_i64().unwrap(), want[1].as_i64().unwrap()));
}

#[test]
fn a_pass_that_dies_before_its_record_counts_nothing_twice() {
    let text = fs::read_to_string(vectors().join("checkpoint.json")).unwrap();
    let crash = serde_json::from_str::<serde_json::Value>(&text).unwrap()["crash"].clone();
    let world = World::new();
    let (all, good) = (crash["events"].as_u64().unwrap(), crash["successes"].as_u64().unwrap());
    let events: Vec<_> = (0..all).map(|n| admitted(n, "s", n < good)).collect();
    world.log(V1).append(&events, NextStep::Nothing).unwrap();
    // The pass writes its facts and dies before its record: nothing of it may be stored.
    world.start_pass_and_die();
    assert_eq!(world.snapshot(), "");
    world.log(V1).consolidate(Trigger::Startup).unwrap().unwrap();
    let want = crash["fixed_n_s"].as_array().unwrap();
    assert_eq!(world.counts(), (want[0].as_i64().unwrap(), want[1].as_i64().unwrap()));
}

#[test]
fn a_failing_pass_does_not_lose_the_append() {
    let world = World::new();
    let mut log = world.log(V1);
    log.append(&[admitted(1, "s", true)], NextStep::Nothing).unwrap();
    world.plant_trigger_on_facts();
    let mut log = world.log(V1);
    let done =
        log.append(&[admitted(2, "s", true)], NextStep::Consolidate(Trigger::Manual)).unwrap();
    assert!(done.pass_error.is_some());
    assert_eq!(world.head(), Seq(2), "both events, no pass record");
    world.remove_trigger();
    assert!(log.consolidate(Trigger::Manual).unwrap().is_some(), "and the pass succeeds later");
    world.assert_healthy();
}

#[test]
fn a_restart_does_not_rescan_history() {
    let world = World::new();
    let events: Vec<_> = (0..40).map(|n| admitted(n, "s", true)).collect();
    let mut log = world.log(V1);
    log.save_every(10);
    log.append(&events, NextStep::Consolidate(Trigger::Manual)).unwrap();
    // Typed columns before the saved tallies are corrupt: a rescan would fail.
    world.spoil_typed_columns(Seq(40));
    let mut log = world.log(V1);
    log.append(&[admitted(99, "s", false)], NextStep::Consolidate(Trigger::Manual)).unwrap();
    assert_eq!(world.counts(), (41, 40));
}

/// 9000 events cross two chunks and use the index of refs.
fn long_log() -> Vec<ipse_core::Admitted> {
    (0..9000).map(|n| world::random_event(n, 0, n as u32)).collect()
}

#[test]
fn a_store_whose_derived_parts_were_deleted_comes_back() {
    let log = long_log();
    let want = world::fold(&log);
    for tables in [
        &["chunk"][..],
        &["run", "piece"],
        &["run"],
        &["tally", "pass"],
        &["chunk", "run", "piece", "tally", "pass", "fact"],
    ] {
        let world = World::new();
        world.log(V1).append(&log, NextStep::Consolidate(Trigger::Manual)).unwrap();
        world.delete_derived(tables);
        let mut handle = world.log(V1);
        let again = handle.append(&log, NextStep::Consolidate(Trigger::Manual)).unwrap();
        assert!(again.appended.iter().all(|a| matches!(a, Appended::Duplicate(_))), "{tables:?}");
        handle.append(&[admitted(1, "s", true)], NextStep::Consolidate(Trigger::Manual)).unwrap();
        assert!(world.snapshot().contains("\"fact_key\":\"s + * + *\""));
        let facts = world.snapshot().lines().count() - 1;
        assert_eq!(facts, want.lines().count(), "{tables:?}");
        assert!(world.rebuilds_equal(), "{tables:?}");
        world.assert_healthy();
        // The chunks that the duplicates rebuilt were rolled back with their batch.
        let again = handle.append(&log, NextStep::Nothing).unwrap();
        assert!(again.appended.iter().all(|a| matches!(a, Appended::Duplicate(_))), "{tables:?}");
    }
}

#[test]
fn chunks_or_rows_the_bytes_are_the_same() {
    let log = long_log();
    let world = World::new();
    let mut handle = world.log(V1);
    for piece in log.chunks(777) {
        handle.append(piece, NextStep::Consolidate(Trigger::Manual)).unwrap();
    }
    assert_eq!(world.snapshot(), world::fold(&log));
    world.assert_healthy();
    world.delete_derived(&["chunk"]);
    assert!(world.rebuilds_equal(), "from rows alone");
}

#[test]
fn refs_are_found_across_merged_runs() {
    let world = World::new();
    let mut handle = world.log(V1);
    let event = |n: u64| {
        world::admit_line(&format!(
            "{{\"id\":\"{n}\",\"type\":\"note\",\"time\":\"2026-05-06T10:00:00Z\"}}"
        ))
    };
    // Seventeen chunks: sixteen runs are merged into one, one stays, and a tail follows.
    let events: Vec<_> = (0..17 * 4096 + 100).map(event).collect();
    for piece in events.chunks(5000) {
        handle.append(piece, NextStep::Nothing).unwrap();
    }
    for mut handle in [handle, world.log(V1)] {
        for n in (0..events.len()).step_by(997) {
            let done = handle.append(&events[n..=n], NextStep::Nothing).unwrap();
            assert_eq!(done.appended, [Appended::Duplicate(Seq(n as u64 + 1))]);
        }
    }
}

#[test]
fn two_identities_in_one_store_do_not_mix() {
    let world = World::new();
    let other = world.second_identity();
    let mut ours = world.log(V1);
    let mut theirs = other.log(V1);
    for n in 0..20 {
        ours.append(&[admitted(n, "s", true)], NextStep::Consolidate(Trigger::Manual)).unwrap();
        theirs.append(&[admitted(n, "s", false)], NextStep::Consolidate(Trigger::Manual)).unwrap();
    }
    assert_eq!(world.counts(), (20, 20));
    assert_eq!(other.counts(), (20, 0));
    world.assert_healthy();
    other.assert_healthy();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Random events in random batches, with passes, restarts and saves in between.
    #[test]
    fn incremental_equals_rebuild(
        steps in proptest::collection::vec((0_u8..4, 1_u64..9, any::<u32>()), 1..25),
        save_every in 1_u64..20,
    ) {
        let world = World::new();
        let mut log = world.log(V1);
        log.save_every(save_every);
        let mut all = Vec::new();
        for (index, (action, count, seed)) in steps.into_iter().enumerate() {
            if action == 3 {
                log = world.log(V1);
                log.save_every(save_every);
            }
            let batch: Vec<_> =
                (0..count).map(|n| world::random_event(index, n, seed)).collect();
            let then = match action {
                0 => NextStep::Nothing,
                _ => NextStep::Consolidate(Trigger::Manual),
            };
            log.append(&batch, then).unwrap();
            all.extend(batch);
        }
        log.consolidate(Trigger::Manual).unwrap();
        let want = world::fold(&all);
        prop_assert_eq!(world.snapshot(), want);
        world.assert_healthy();
        // As of any position, a rebuild is `f` of the events up to there.
        let reader = world.reader();
        let view = reader.view(&world.identity).unwrap();
        let types = world.types();
        for position in 0..=types.len() {
            let prefix = rebuild(view.view(), Seq(position as u64)).unwrap();
            let house = types[..position].iter().filter(|t| *t == "consolidation_run").count();
            let want = world::fold(&all[..position - house]);
            prop_assert_eq!(snapshot(&prefix.facts), want, "as of {}", position);
        }
    }
}
