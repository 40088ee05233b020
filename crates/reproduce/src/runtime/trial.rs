//! Measures one size of the log: passes over it, then a planner's requests.
//!
//! **Invariants**
//! - Between two clock readings only the pass or the request runs. Opening, copying, closing and
//!   dropping an answer happen before or after.
//! - Every pass runs on a log without an earlier pass.

use super::stream::{Scratch, Stream};
use super::{Instruments, Point, Scale, Work};
use crate::Error;
use ipse_core::json::Value;
use ipse_core::{FactKey, FactKind, json_parse};
use ipse_engine::facts::Filter;
use ipse_engine::{FactTable, Trigger};
use std::hint::black_box;

/// A prime step, so that consecutive requests use distant keys.
const SPREAD: usize = 7919;

/// The nesting of a response: object, facts, fact, value, parameters, parameter.
const ANSWER_DEPTH: usize = 8;

/// The measurements of one pass.
struct Trial {
    wall: u64,
    grown: u64,
    resident: Option<[u64; 2]>,
    /// The store after the pass.
    store: Scratch,
}

/// Measures a stream at its current length.
pub(super) fn point(
    stream: &Stream<'_>,
    instruments: &dyn Instruments,
    scale: Scale<'_>,
    work: &mut Work<'_>,
) -> Result<Point, Error> {
    let mut next = || {
        let trial = trial(stream, instruments)?;
        work.did(Work::trial(stream.events));
        Ok::<_, Error>(trial)
    };
    let mut last = next()?;
    let (mut pass, mut grown, mut resident) = (Vec::new(), 0, last.resident);
    for _ in 0..scale.trials {
        // The next copy uses the same path, so drop this one first.
        drop(last);
        last = next()?;
        pass.push(last.wall);
        grown = last.grown.max(grown);
        resident = wider(resident, last.resident);
    }
    pass.sort_unstable();
    let known = known(stream, &last.store)?;
    let [query, choice, lookup] = requests(&known, instruments, scale.requests)?;
    let http = over_http(&known, instruments, scale.requests, (&last.store, stream))?;
    let (keys, events, facts) = (stream.keys, stream.events, known.len() as u64);
    Ok(Point { keys, events, pass, facts, grown, query, choice, lookup, http, resident })
}

/// The minimum before and the maximum of the peaks. A process keeps some memory after a pass, so
/// that later passes start higher and would seem to need less.
fn wider(one: Option<[u64; 2]>, other: Option<[u64; 2]>) -> Option<[u64; 2]> {
    let ([before, peak], [other_before, other_peak]) = one.zip(other)?;
    Some([before.min(other_before), peak.max(other_peak)])
}

/// Runs one pass over a copy of the store.
fn trial(stream: &Stream<'_>, instruments: &dyn Instruments) -> Result<Trial, Error> {
    let store = stream.copy()?;
    let before = store.bytes()?;
    let mut log = stream.open(&store)?;
    instruments.reset_peak();
    let resident = instruments.resident();
    let begun = instruments.nanos();
    let report = log.consolidate(Trigger::Manual)?;
    let wall = instruments.nanos().saturating_sub(begun);
    let peak = instruments.peak();
    drop(log);
    report.ok_or(Error::NoFact)?;
    let grown = store.bytes()?.saturating_sub(before);
    let resident = resident.zip(peak).map(|(resident, peak)| [resident, peak.max(resident)]);
    Ok(Trial { wall, grown, resident, store })
}

/// The table that planners read.
fn known(stream: &Stream<'_>, store: &Scratch) -> Result<FactTable, Error> {
    let reader = store.open()?.reader()?;
    let snapshot = reader.view(&stream.identity)?;
    Ok(FactTable::read(snapshot.view())?)
}

/// Times a planner's requests one by one: by kind, by skill, target and environment, by key.
fn requests(
    known: &FactTable,
    instruments: &dyn Instruments,
    count: usize,
) -> Result<[Vec<u64>; 3], Error> {
    let keys = rates(known)?;
    let by_kind = Filter { kind: Some(FactKind::SkillSuccessRate), ..Filter::default() };
    let filters: Vec<Filter> = keys.iter().map(filter).collect();
    let at = |number: usize| number * SPREAD % keys.len();
    let many = |request: &dyn Fn(usize) -> u64| {
        let mut all: Vec<u64> = (0..count).map(request).collect();
        all.sort_unstable();
        all
    };
    Ok([
        many(&|_| timed(instruments, || known.choose(black_box(&by_kind)))),
        many(&|number| {
            let filter = &filters[at(number)];
            timed(instruments, || known.choose(black_box(filter)))
        }),
        many(&|number| {
            let key = &keys[at(number)];
            timed(instruments, || known.get(black_box(key)))
        }),
    ])
}

/// Times a planner's requests by skill, target and environment over HTTP, one by one.
fn over_http(
    known: &FactTable,
    instruments: &dyn Instruments,
    count: usize,
    (store, stream): (&Scratch, &Stream<'_>),
) -> Result<Vec<u64>, Error> {
    let filters: Vec<Filter> = rates(known)?.iter().map(filter).collect();
    let served = instruments.serve(&store.open()?, &stream.identity);
    let mut endpoint = served.map_err(Error::Endpoint)?;
    let mut all = Vec::new();
    for number in 0..count {
        let filter = &filters[number * SPREAD % filters.len()];
        let mut answer = Ok(String::new());
        all.push(timed(instruments, || answer = endpoint.ask(black_box(filter))));
        let answer = answer.map_err(Error::Endpoint)?;
        if facts_in(&answer) != Some(known.choose(filter).len()) {
            return Err(Error::Endpoint(format!("unexpected response {answer}")));
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// The number of facts in a response.
fn facts_in(answer: &str) -> Option<usize> {
    let answer = json_parse::parse(answer.as_bytes(), ANSWER_DEPTH).ok()?;
    match answer.as_object()?.get("facts")? {
        Value::Array(facts) => Some(facts.len()),
        _ => None,
    }
}

/// The keys of all success rates.
fn rates(known: &FactTable) -> Result<Vec<FactKey>, Error> {
    let kind = FactKind::SkillSuccessRate;
    let keys = known.iter().map(|fact| &fact.fact.key).filter(|key| key.kind() == kind);
    let keys: Vec<FactKey> = keys.cloned().collect();
    if keys.is_empty() { Err(Error::NoFact) } else { Ok(keys) }
}

/// A filter for the skill, target and environment of a success rate.
fn filter(key: &FactKey) -> Filter {
    let parts = key.parts();
    let part = |place: usize| parts.get(place).cloned();
    let (skill, target, environment) = (part(0), part(1), part(2));
    Filter { skill, target, environment, kind: Some(key.kind()), ..Filter::default() }
}

fn timed<T>(instruments: &dyn Instruments, request: impl FnOnce() -> T) -> u64 {
    let begun = instruments.nanos();
    let answer = black_box(request());
    let wall = instruments.nanos().saturating_sub(begun);
    drop(answer);
    wall
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_asks_for_what_the_key_is_about() {
        let key = FactKey::new(FactKind::SkillSuccessRate, &["grasp", "cup", "ward"]);
        let Filter { skill, target, environment, zone, kind, limit } = filter(&key);
        let parts = [skill, target, environment, zone].map(Option::unwrap_or_default);
        assert_eq!(parts, ["grasp", "cup", "ward", ""]);
        assert_eq!((kind, limit), (Some(FactKind::SkillSuccessRate), None));
    }
}
