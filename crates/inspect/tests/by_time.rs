//! Questions by time: the position that a time means, and the events that a filter finds, equal
//! what a plain walk over the whole log gives.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../bundle/tests/all/forge.rs"]
mod forge;
#[path = "../../engine/tests/world/mod.rs"]
mod world;

use forge::{house, intent_data};
use ipse_consolidate::V1;
use ipse_core::{Admitted, EventRef, Seq, Time};
use ipse_door::{Origin, admit};
use ipse_engine::{NextStep, Selection, Trigger};
use ipse_inspect::{Found, LogFilter, LogQuery, LogRow, LogSearch, Look, Moment};
use ipse_store::{Error, Stored};
use proptest::prelude::*;
use serde_json::Value;
use std::cell::Cell;
use world::{World, admit_line, random_event};

const PASS: NextStep = NextStep::Consolidate(Trigger::Manual);

fn at(second: u64) -> Time {
    let micros = 1_777_000_000_000_000 + second.cast_signed() * 1_000_000;
    Time::from_micros(micros).unwrap()
}

/// An event of ipse with any time: the clock of a recorder may go back.
fn recorded(n: u64, kind: u64, second: u64) -> Admitted {
    let (event_type, data) = match kind % 4 {
        0 => ("intent", intent_data("denied").finish()),
        1 => ("ipse.note", "{\"word\":\"x\",\"n\":4}".to_owned()),
        2 => ("forget", "{\"event_refs\":[]}".to_owned()),
        _ => ("ipse.", "{}".to_owned()),
    };
    let text = house(n, &format!("own:{n}"), event_type, &data).canonical;
    let old = text.split("\"time\":\"").nth(1).unwrap().split('"').next().unwrap();
    let text = text.replace(old, &at(second).to_string());
    admit(text.as_bytes(), Origin::House, || [1; 16]).unwrap()
}

/// An event of a producer.
fn reported(n: u64, seed: u32, second: u64) -> Admitted {
    let text = random_event(0, n, seed).canonical;
    let old = text.split("\"time\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let text = text.replace(&old, &at(second).to_string());
    let text = text.replace("\"import\"", &format!("\"arm-{}\"", n % 3));
    admit_line(&text)
}

/// Every event of the log.
fn all(world: &World) -> Vec<Stored> {
    let (reader, mut found) = (world.reader(), Vec::new());
    let snapshot = reader.view(&world.identity).unwrap();
    let each = |stored| {
        found.push(stored);
        Ok::<_, Error>(std::ops::ControlFlow::Continue(()))
    };
    snapshot.view().each_stored(false, None, each).unwrap();
    found
}

fn look(world: &World) -> Look {
    Look::at(&world.store, world.identity)
}

/// The definition, word for word: the greatest seq of an event of ipse with time ≤ T.
fn last_recorded(log: &[Stored], time: Time) -> Option<(Seq, Time)> {
    let own = |stored: &&Stored| {
        let name = stored.event_type.as_str();
        ["consolidation_run", "forget", "intent"].contains(&name) || name.starts_with("ipse.")
    };
    let by_then = log.iter().filter(own).filter(|stored| stored.time <= time);
    by_then.map(|stored| (stored.seq, stored.time)).max_by_key(|(seq, _)| *seq)
}

fn check_times(world: &World, seconds: impl Iterator<Item = u64>) {
    let (log, look) = (all(world), look(world));
    for second in seconds {
        let time = at(second);
        let position = look.position(Moment::Time(time)).unwrap().unwrap();
        let want = last_recorded(&log, time);
        assert_eq!(
            (position.seq, position.recorded),
            (want.map_or(Seq(0), |it| it.0), want.map(|it| it.1)),
            "{time}"
        );
        assert_eq!(position.time, Some(time));
    }
    let (first, last) = (Time::from_micros(0).unwrap(), Time::LAST);
    let seq = |time| look.position(Moment::Time(time)).unwrap().unwrap().seq;
    assert_eq!(seq(first), Seq(0), "nothing was recorded in 1970");
    assert_eq!(seq(last), last_recorded(&log, last).map_or(Seq(0), |it| it.0));
    let head = Seq(log.len() as u64);
    assert_eq!(look.position(head.into()).unwrap().unwrap().seq, head);
    assert_eq!(look.position(head.next().into()).unwrap(), None, "past the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Also with a clock that goes back, other logs in the store, and forgotten events.
    #[test]
    fn a_time_means_the_last_event_that_ipse_recorded_by_then(
        steps in prop::collection::vec((0..12_u64, 0..50_u64), 1..60),
        seed: u32,
    ) {
        let world = World::new();
        let other = world.second_identity();
        other.log(V1).append(&[recorded(900, 1, 25), reported(901, seed, 3)], PASS).unwrap();
        let mut log = world.log(V1);
        let mut intents = Vec::new();
        for (n, (kind, second)) in (0..).zip(&steps) {
            let event = match kind {
                0..5 => recorded(n, *kind, *second),
                _ => reported(n, seed, *second),
            };
            if event.event_type == "intent" {
                intents.push(event.event_ref);
            }
            let next = if *kind == 11 { PASS } else { NextStep::Nothing };
            log.append(&[event], next).unwrap();
        }
        check_times(&world, 0..51);
        let before: Vec<_> = (0..51).map(|it| last_recorded(&all(&world), at(it))).collect();
        log.forget(&Selection::Refs(intents)).unwrap();
        check_times(&world, 0..51);
        let after: Vec<_> = (0..51).map(|it| last_recorded(&all(&world), at(it))).collect();
        prop_assert_eq!(after, before, "forgetting moves no answer");
    }
}

/// Whether an event is to be found, from its JSON alone.
fn is_wanted(filter: &LogFilter, stored: &Stored) -> bool {
    let event: Value = serde_json::from_str(&stored.canonical).unwrap_or_default();
    let is = |wanted: &Option<String>, value: &Value| {
        wanted.as_ref().is_none_or(|wanted| value.as_str() == Some(wanted))
    };
    let data = &event["data"];
    filter.since.is_none_or(|since| since <= stored.time)
        && filter.until.is_none_or(|until| stored.time <= until)
        && is(&filter.event_type, &Value::from(stored.event_type.as_str()))
        && is(&filter.skill, &data["skill_id"])
        && is(&filter.target, &data["target_class"])
        && is(&filter.source, &event["source"])
        && (!filter.failed || event["type"] == "execution_result" && data["outcome"] == "failed")
}

fn filters() -> impl Strategy<Value = LogFilter> {
    let word = |words: &'static [&'static str]| {
        prop::option::weighted(0.3, prop::sample::select(words))
            .prop_map(|it| it.map(str::to_owned))
    };
    let types = &["intent", "note", "execution_result", "consolidation_run", "forget", "ipse.note"];
    (
        prop::option::weighted(0.3, 0..60_u64),
        prop::option::weighted(0.3, 0..60_u64),
        word(&["s0", "s2", "grasp", "none"]),
        word(&["t1", "cup"]),
        prop::bool::weighted(0.2),
        word(types),
        word(&["arm-0", "arm-2", "ipse", "none"]),
    )
        .prop_map(|(since, until, skill, target, failed, event_type, source)| LogFilter {
            since: since.map(at),
            until: until.map(at),
            skill,
            target,
            failed,
            event_type,
            source,
        })
}

fn searched(world: &World, filter: &LogFilter, newest_first: bool, at_once: u64) -> Vec<Stored> {
    let (reader, mut found) = (world.reader(), Vec::new());
    let snapshot = reader.view(&world.identity).unwrap();
    let range = Seq(1)..=Seq::MAX;
    let mut search = LogSearch::new(snapshot.view(), range, filter, newest_first, at_once).unwrap();
    loop {
        match search.step().unwrap() {
            Found::Row(row) => found.push(row.stored),
            Found::Nothing => {}
            Found::End => return found,
        }
    }
}

/// All pages of a query.
fn paged(world: &World, filter: &LogFilter, limit: u64) -> Vec<Stored> {
    let (mut rows, mut after) = (Vec::new(), Seq(0));
    loop {
        let query = LogQuery { after, limit, filter: filter.clone() };
        let page = look(world).log(&query).unwrap();
        assert!(page.rows.len() as u64 <= limit);
        rows.extend(page.rows.into_iter().map(|row: LogRow| row.stored));
        match page.next_after {
            Some(next) => {
                assert!(next > after, "a page goes on");
                after = next;
            }
            None => return rows,
        }
    }
}

/// A log of more than two chunks, with passes, intents and forgotten events of each kind in each.
fn long_log(seed: u32) -> World {
    let world = World::new();
    let mut log = world.log(V1);
    let events: Vec<Admitted> = (0..9300)
        .map(|n| match n % 13 {
            5 => recorded(n, n / 13, n * 7 % 60),
            _ => reported(n, seed, n * 11 % 60),
        })
        .collect();
    for batch in events.chunks(700) {
        log.append(batch, PASS).unwrap();
    }
    let can_go = |event: &&Admitted| !event.event_type.starts_with("ipse.");
    let gone = events.iter().filter(can_go).filter(|event| event.event_type != "forget");
    let gone: Vec<EventRef> = gone.step_by(6).map(|event| event.event_ref).collect();
    log.forget(&Selection::Refs(gone)).unwrap();
    world
}

#[test]
fn a_filter_finds_what_a_walk_over_all_events_finds() {
    let world = long_log(77);
    let log = all(&world);
    assert!(log.iter().filter(|stored| stored.is_forgotten()).count() > 1000);
    let found = Cell::new(0);
    proptest!(ProptestConfig::with_cases(120), |(filter in filters(), limit in 1..400_u64)| {
        let want: Vec<_> = log.iter().filter(|it| is_wanted(&filter, it)).cloned().collect();
        found.set(found.get() + want.len());
        prop_assert_eq!(&searched(&world, &filter, false, limit), &want, "{:?}", filter);
        let mut back = searched(&world, &filter, true, limit);
        back.reverse();
        prop_assert_eq!(&back, &want, "newest first: {:?}", filter);
        prop_assert_eq!(&paged(&world, &filter, limit), &want, "in pages: {:?}", filter);
    });
    assert!(found.get() > 10_000, "{}", found.get());
}

/// Each part of a filter alone finds some events and not all, so the comparison above means
/// something.
#[test]
fn each_part_of_a_filter_decides() {
    let world = long_log(5);
    let log = all(&world);
    let some = |text: &str| Some(text.to_owned());
    for filter in [
        LogFilter { since: Some(at(30)), ..LogFilter::default() },
        LogFilter { until: Some(at(30)), ..LogFilter::default() },
        LogFilter { skill: some("s1"), ..LogFilter::default() },
        LogFilter { skill: some("grasp"), ..LogFilter::default() },
        LogFilter { target: some("cup"), ..LogFilter::default() },
        LogFilter { failed: true, ..LogFilter::default() },
        LogFilter { event_type: some("intent"), ..LogFilter::default() },
        LogFilter { source: some("ipse"), ..LogFilter::default() },
        LogFilter { source: some("arm-1"), ..LogFilter::default() },
    ] {
        let found = searched(&world, &filter, false, 64).len();
        assert!(found > 20 && found < log.len() - 20, "{found}: {filter:?}");
    }
    let forgotten = LogFilter { event_type: some("intent"), ..LogFilter::default() };
    let found = searched(&world, &forgotten, false, 64);
    assert!(found.iter().any(Stored::is_forgotten), "a type is never forgotten");
}

/// The work of a page is bounded by the positions that it searches and by the events that it reads.
#[test]
fn a_filter_that_matches_nothing_gives_short_pages_that_go_on() {
    let world = World::new();
    let mut log = world.log(V1);
    let events = |range: std::ops::Range<u64>| -> Vec<_> {
        range.map(|n| admit_line(&format!(
            "{{\"id\":\"{n}\",\"type\":\"note\",\"time\":\"2026-05-06T10:00:00Z\",\"data\":{{}}}}"
        ))).collect()
    };
    for n in 0..7 {
        log.append(&events(n * 10_000..(n + 1) * 10_000), NextStep::Nothing).unwrap();
    }
    let filter = LogFilter { source: Some("no-one".into()), ..LogFilter::default() };
    let query = |after| LogQuery { after, limit: 1000, filter: filter.clone() };
    let page = look(&world).log(&query(Seq(0))).unwrap();
    assert_eq!((page.rows.len(), page.next_after), (0, Some(Seq(1 << 16))));
    let page = look(&world).log(&query(Seq(1 << 16))).unwrap();
    assert_eq!((page.rows.len(), page.next_after), (0, None));

    let world = World::new();
    let intents: Vec<_> = (0..9000).map(|n| recorded(n, 0, n)).collect();
    world.log(V1).append(&intents, NextStep::Nothing).unwrap();
    let filter = LogFilter { skill: Some("nothing".into()), ..LogFilter::default() };
    let page = look(&world).log(&LogQuery { after: Seq(0), limit: 1000, filter }).unwrap();
    assert_eq!(page.rows.len(), 0, "intents name their skill in their content alone");
    let next = page.next_after.unwrap();
    // Events are read together, and the page ends between two of them.
    assert!((4096 - 64..4096 + 64).contains(&next.0), "{next}");
}
