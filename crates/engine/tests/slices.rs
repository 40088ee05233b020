//! A pass over very many facts is folded in slices: the result equals that of one slice.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::V1;
use ipse_core::{Admitted, Seq};
use ipse_door::{Origin, admit};
use ipse_engine::{Memory, NextStep, PassReport, Policy, SLICE, Trigger};
use ipse_store::RawFact;
use world::{TestHost, World};

const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);

/// An attempt with its own facts and facts that it shares with others.
fn event(number: usize, properties: usize) -> Admitted {
    let object: Vec<String> = (0..properties)
        .map(|place| match place % 3 {
            0 => format!("\"shared{place}\":{number}"),
            1 => format!("\"own{number}_{place}\":\"text{}\"", number % 5),
            _ => format!("\"own{number}_{place}\":true"),
        })
        .collect();
    let event = format!(
        "{{\"id\":\"e{number}\",\"source\":\"s\",\"type\":\"{}\",\
         \"time\":\"2026-05-06T10:00:{:02}Z\",\"data\":{{\"skill_id\":\"k{}\",\
         \"target_class\":\"t{}\",\"zone\":\"z\",\"success\":{},\"failure_reason\":\"r{number}\",\
         \"params\":{{\"a\":{number}}},\"object\":{{{}}}}}}}",
        if number % 11 == 3 { "unknown" } else { "execution_result" },
        number % 60,
        number % 7,
        number % 4,
        number.is_multiple_of(3),
        object.join(",")
    );
    admit(event.as_bytes(), Origin::Producer, || [7; 16]).unwrap()
}

struct Stored {
    facts: Vec<RawFact>,
    tallies: Vec<(Vec<u8>, Vec<u8>)>,
    records: Vec<serde_json::Value>,
}

/// The content of a store after these batches, each with a pass in slices of this weight.
fn stored(batches: &[Vec<Admitted>], weight: usize) -> (Stored, Vec<PassReport>) {
    let world = World::new();
    let mut log = world.log(V1);
    log.save_every(1);
    log.slice_at(weight);
    let passes =
        batches.iter().map(|events| log.append(events, PASS).unwrap().pass.unwrap()).collect();
    world.assert_healthy();
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let view = snapshot.view();
    let (mut facts, mut tallies) = (view.raw_facts().unwrap(), view.raw_tallies().unwrap());
    facts.sort_by(|a, b| a.fact_id.cmp(&b.fact_id));
    tallies.sort();
    (Stored { facts, tallies, records: world.pass_records() }, passes)
}

#[track_caller]
fn same_in_slices(batches: &[Vec<Admitted>], weights: &[usize]) -> Vec<Vec<PassReport>> {
    let (whole, passes) = stored(batches, SLICE);
    assert!(passes.iter().all(|pass| pass.slices == 1 && pass.changed.is_some()));
    let compared = weights.iter().map(|weight| {
        let (sliced, passes) = stored(batches, *weight);
        assert_eq!(sliced.facts, whole.facts, "in slices of {weight}");
        assert_eq!(sliced.tallies, whole.tallies, "in slices of {weight}");
        assert_eq!(sliced.records, whole.records, "in slices of {weight}");
        passes
    });
    compared.collect()
}

#[test]
fn facts_tallies_and_records_are_those_of_one_slice() {
    let batches = [0..40, 40..45, 45..400].map(|numbers: std::ops::Range<usize>| {
        numbers.map(|number| event(number, number % 9)).collect::<Vec<_>>()
    });
    let passes = same_in_slices(&batches, &[1, 50, 700]);
    // The smallest slice is one event with a weight. One of the first 40 feeds no fact, and the
    // last range begins with the record of the pass before.
    let slices: Vec<u64> = passes[0].iter().map(|pass| pass.slices).collect();
    assert_eq!(slices, [39, 5, 356]);
    assert!(passes[1][2].slices > passes[2][2].slices && passes[2][2].slices > 1);
    assert!(passes.iter().flatten().all(|pass| (pass.slices == 1) == pass.changed.is_some()));
}

#[test]
fn a_chunk_of_very_many_facts_is_folded_in_parts() {
    let events: Vec<_> = (0..4200).map(|number| event(number, 6)).collect();
    let passes = same_in_slices(&[events], &[2000]);
    // More than 16,000 facts have one event only; a slice holds fewer than twice its weight.
    assert!(passes[0][0].slices > 16_000 / 4000, "{}", passes[0][0].slices);
}

/// A pass in slices saves all sums, however few events it folds: the next open does not fold its
/// range again.
#[test]
fn the_sums_of_a_pass_in_slices_are_all_saved() {
    let tallied = |weight| {
        let world = World::new();
        let mut log = world.log(V1);
        log.slice_at(weight);
        let events: Vec<_> = (0..40).map(|number| event(number, 3)).collect();
        let pass = log.append(&events, PASS).unwrap().pass.unwrap();
        let reader = world.reader();
        let progress = reader.view(&world.identity).unwrap().view().progress().unwrap();
        assert_eq!(progress.checkpoint, pass.committed.last_seq);
        (pass.slices, progress.tallied)
    };
    assert_eq!(tallied(SLICE), (1, Seq(0)));
    let (slices, sliced) = tallied(50);
    assert!(slices > 1, "{slices} slices");
    assert_eq!(sliced, Seq(40));
}

#[test]
fn a_program_that_runs_on_knows_the_facts_of_a_pass_in_slices() {
    let world = World::new();
    let open = || {
        let host = Box::new(TestHost(0));
        Memory::open(&world.store, world.identity, Policy::default(), host, None).unwrap()
    };
    let memory = open();
    memory.append_all(&[event(0, 1)]).unwrap();
    memory.consolidate().unwrap().unwrap();
    // One event may have thousands of properties: 45 such events are more than one slice.
    let events: Vec<_> = (1..46).map(|number| event(number, 3000)).collect();
    memory.append_all(&events).unwrap();
    let pass = memory.consolidate().unwrap().unwrap();
    assert!(pass.slices > 1 && pass.changed.is_none(), "{} slices", pass.slices);
    let (known, read) = (memory.known(), open().known());
    assert_eq!(known.checkpoint(), pass.committed.last_seq);
    assert!(known.iter().eq(read.iter()));
}

/// Rules without a bulk fold take events one by one, and keep to the slice limit too.
#[test]
fn rules_without_a_bulk_fold_keep_to_slices_too() {
    let events: Vec<_> = (0..40).map(|number| event(number, 1)).collect();
    let passed = |weight| {
        let world = World::new();
        let mut log = world.log(world::CountTypes);
        log.slice_at(weight);
        let slices = log.append(&events, PASS).unwrap().pass.unwrap().slices;
        (slices, world.snapshot())
    };
    let (whole, sliced) = (passed(SLICE), passed(1));
    assert_eq!((whole.0, sliced.0), (1, 40));
    assert_eq!(sliced.1, whole.1);
}
