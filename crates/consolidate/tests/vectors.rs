//! `f` against the worked cases: every vector, backwards, shuffled, cut and after subtraction.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_consolidate::{
    EVERY_FACT, Group, Groups, RuleSet, Skip, Tally, V1, V2, Wanted, confidence, f, snapshot,
};
use ipse_core::chunk::{self, Chunk};
use ipse_core::{Admitted, Columns, Event, FactKey, Micro, Seq, decimal};
use ipse_door::{Origin, admit};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

fn json(name: &str) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(vectors().join(name)).unwrap()).unwrap()
}

/// The events of a log that pass the door, each once.
fn read_log(path: &Path) -> Vec<Admitted> {
    let mut events: Vec<Admitted> = Vec::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let Ok(event) = admit(line.as_bytes(), Origin::Producer, || [0; 16]) else { continue };
        if !events.iter().any(|other| other.event_ref == event.event_ref) {
            events.push(event);
        }
    }
    events
}

fn typed(event: &Admitted) -> Event<'_> {
    Event {
        event_ref: event.event_ref,
        time: event.time,
        event_type: &event.event_type,
        columns: Columns::decode(&event.columns).unwrap(),
    }
}

/// A small deterministic shuffle: the n-th of a fixed sequence of orders.
fn shuffled<T>(mut items: Vec<T>, n: u64) -> Vec<T> {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(last, (state % (last as u64 + 1)) as usize);
    }
    items
}

fn check<R: RuleSet>(rules: &R, log: &[Admitted], want: &str) {
    let facts =
        |events: Vec<&Admitted>| snapshot(&f(rules, events.into_iter().map(typed)).unwrap());
    assert_eq!(facts(log.iter().collect()), want);
    assert_eq!(facts(log.iter().rev().collect()), want);
    for n in 1..=100 {
        assert_eq!(facts(shuffled(log.iter().collect(), n)), want, "shuffle {n}");
    }
}

/// The cases of both rule sets; every case is a log for either.
fn cases() -> Vec<PathBuf> {
    [cases_in("facts"), cases_in("facts-v2")].concat()
}

fn cases_in(directory: &str) -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(vectors().join(directory))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(".events.jsonl"))
        .collect();
    cases.sort();
    assert!(cases.len() >= 14, "the vectors are there");
    cases
}

fn beside(case: &Path, ending: &str) -> PathBuf {
    PathBuf::from(case.to_str().unwrap().replace(".events.jsonl", ending))
}

#[test]
fn every_case_in_every_order() {
    every_case(&V1, "facts");
    every_case(&V2, "facts-v2");
}

fn every_case<R: RuleSet>(rules: &R, directory: &str) {
    for case in cases_in(directory) {
        let want = fs::read_to_string(beside(&case, ".snapshot.jsonl")).unwrap();
        check(rules, &read_log(&case), &want);
    }
}

#[test]
fn forgetting_is_never_having_had_and_is_subtraction() {
    forgetting(&V1, "facts");
    forgetting(&V2, "facts-v2");
}

fn forgetting<R: RuleSet<Tally: core::fmt::Debug>>(rules: &R, directory: &str) {
    let mut seen = 0;
    for case in cases_in(directory) {
        let Ok(forget) = fs::read_to_string(beside(&case, ".forget.json")) else { continue };
        let forget: Vec<String> = serde_json::from_str(&forget).unwrap();
        let want = fs::read_to_string(beside(&case, ".forgotten.snapshot.jsonl")).unwrap();
        let log = read_log(&case);
        let (gone, kept): (Vec<_>, Vec<_>) =
            log.iter().cloned().partition(|event| forget.contains(&event.event_ref.to_string()));
        assert_eq!(gone.len(), forget.len());
        check(rules, &kept, &want);
        assert_eq!(sums(rules, &kept), subtract(rules, sums(rules, &log), &gone));
        seen += 1;
    }
    assert!(seen >= 3, "the vectors are there");
}

type Sums<R> = BTreeMap<FactKey, <R as RuleSet>::Tally>;

fn sums<R: RuleSet>(rules: &R, log: &[Admitted]) -> Sums<R> {
    let mut sums = Sums::<R>::new();
    for event in log {
        for part in rules.contributions(&typed(event)).unwrap_or_default() {
            sums.entry(part.key).or_default().add(&part.tally);
        }
    }
    sums
}

fn subtract<R: RuleSet>(rules: &R, mut sums: Sums<R>, gone: &[Admitted]) -> Sums<R> {
    for event in gone {
        for part in rules.contributions(&typed(event)).unwrap_or_default() {
            sums.get_mut(&part.key).unwrap().add(&part.tally.negated());
        }
    }
    sums.retain(|_, sum| !sum.is_zero());
    sums
}

#[test]
fn sums_survive_their_encoding() {
    survive(&V1);
    survive(&V2);
}

fn survive<R: RuleSet<Tally: core::fmt::Debug>>(rules: &R) {
    for case in cases() {
        for sum in sums(rules, &read_log(&case)).values() {
            let mut bytes = Vec::new();
            sum.encode(&mut bytes);
            let mut wire = ipse_core::wire::Wire(&bytes);
            assert_eq!(Tally::decode(&mut wire).as_ref(), Some(sum));
        }
    }
}

#[test]
fn a_log_cut_in_two_merges_to_the_whole() {
    cut(&V1);
    cut(&V2);
}

fn cut<R: RuleSet<Tally: core::fmt::Debug>>(rules: &R) {
    for case in cases() {
        let log = read_log(&case);
        let whole = sums(rules, &log);
        let cut = log.len() / 3;
        let mut first = sums(rules, &log[..cut]);
        for (key, sum) in sums(rules, &log[cut..]) {
            first.entry(key).or_default().add(&sum);
        }
        assert_eq!(first, whole);
    }
}

#[test]
fn a_group_without_support_is_no_fact() {
    let mut groups = Groups::default();
    let line = br#"{"id":"1","kind":"execution_result","time":"2026-05-06T10:00:00Z",
        "data":{"skill_id":"s","outcome":"denied"}}"#;
    let event = admit(line, Origin::Producer, || [0; 16]).unwrap();
    assert_eq!(groups.fold(&V1, &typed(&event)), None, "it is kept in the sum");
    assert_eq!(groups.publish(&V1).unwrap(), []);
    assert_eq!(Group::<<V1 as RuleSet>::Tally>::default().last, None);
}

#[test]
fn numbers() {
    let numbers = json("numbers.json");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    for case in numbers["decimal"].as_array().unwrap() {
        let (num, den) = (text(&case["num"]).parse().unwrap(), text(&case["den"]).parse().unwrap());
        let digits = case["digits"].as_u64().unwrap() as u32;
        let got = match case["mode"].as_str().unwrap() {
            "floor" => decimal::quotient_floor(num, den, digits),
            _ => decimal::quotient(num, den, digits),
        };
        assert_eq!(got, text(&case["text"]), "{case}");
    }
    for case in numbers["parse"].as_array().unwrap() {
        let number = text(&case["text"]).parse::<f64>().ok();
        let got = number.and_then(Micro::from_f64).map(|micro| micro.get().to_string());
        assert_eq!(got.as_deref(), case["micro"].as_str(), "{case}");
    }
    for case in numbers["cell"].as_array().unwrap() {
        let micro = Micro::new(text(&case["micro"]).parse().unwrap()).unwrap();
        assert_eq!(micro.cell(4).get().to_string(), text(&case["sig4"]), "{case}");
        assert_eq!(micro.cell(4).cell(2).get().to_string(), text(&case["sig2"]), "{case}");
    }
}

#[test]
fn confidences() {
    let vectors = json("confidence.json");
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() > 90);
    for case in cases {
        let (agree, n) = (case["agree"].as_i64().unwrap(), case["n"].as_i64().unwrap());
        let k = confidence::BASE;
        assert_eq!(confidence::wilson(agree, n, k), case["floor_1e4"].as_i64().unwrap(), "{case}");
        let significant = confidence::significant(agree, n - agree, k);
        assert_eq!(significant, case["sig"].as_bool().unwrap(), "{case}");
    }
}

#[test]
fn the_descriptor_is_canonical_and_names_the_version() {
    for (descriptor, version) in [(V1.descriptor(), V1.version()), (V2.descriptor(), V2.version())]
    {
        check_descriptor(&descriptor, version);
    }
}

fn check_descriptor(descriptor: &str, own: &str) {
    let value = ipse_core::json_parse::parse(descriptor.as_bytes(), 8).unwrap();
    let mut canonical = String::new();
    value.write(&mut canonical);
    assert_eq!(descriptor, canonical);
    let version = value.as_object().unwrap().get("rule_version").unwrap();
    assert_eq!(version.as_text(), Some(own));
}

/// The bulk way through chunks of `size` events gives the same groups as event by event.
fn check_bulk(log: &[Admitted], size: usize) {
    let even: Wanted<'_> = &|key| key.text().len().is_multiple_of(2);
    for wanted in [EVERY_FACT, even] {
        check_wanted(&V1, log, size, wanted);
        check_wanted(&V2, log, size, wanted);
    }
}

fn check_wanted<R>(rules: &R, log: &[Admitted], size: usize, wanted: Wanted<'_>)
where
    R: RuleSet<Tally: core::fmt::Debug>,
{
    let mut one_by_one = Groups::default();
    let mut events = 0;
    for event in log {
        let skip = one_by_one.fold(rules, &typed(event));
        assert_eq!(rules.skip(&typed(event)), skip);
        events += u64::from(skip != Some(Skip::Housekeeping));
    }
    let mut refs = |seq: Seq| log.get(seq.0 as usize - 1).map(|event| event.event_ref);
    let mut bulk = rules.bulk(wanted).unwrap();
    for (number, part) in log.chunks(size).enumerate() {
        let typed: Vec<Event<'_>> = part.iter().map(typed).collect();
        let bytes = chunk::encode(&typed);
        let chunk = Chunk::decode(&bytes).unwrap();
        let first = Seq((number * size) as u64 + 1);
        // In two steps, as a pass that ends inside a chunk takes them.
        let middle = part.len() / 2;
        bulk.fold(&chunk, first, 0..middle, &mut refs).unwrap();
        if number % 2 == 0 {
            bulk.fold(&chunk, first, middle..part.len(), &mut refs).unwrap();
        } else {
            for (place, event) in typed.iter().enumerate().skip(middle) {
                bulk.fold_event(Seq(first.0 + place as u64), event, &mut refs);
            }
        }
    }
    let mut groups = Vec::new();
    let totals = bulk.finish(&mut refs, &mut |key, group| groups.push((key, group))).unwrap();
    assert_eq!(totals.events, events);
    let mut want = one_by_one.into_groups();
    want.retain(|(key, _)| wanted(key));
    assert_eq!(groups, want);
}

#[test]
fn in_bulk_and_one_by_one_are_the_same_sums() {
    for case in cases() {
        let log = read_log(&case);
        for size in [1, 7, 4096] {
            check_bulk(&log, size);
            check_bulk(&shuffled(log.clone(), 5), size);
        }
    }
}

#[test]
fn many_samples_are_counted_as_few_are() {
    let line = |n: u64| {
        format!(
            "{{\"id\":\"{n}\",\"type\":\"execution_result\",\
             \"time\":\"2026-05-06T10:00:00Z\",\"data\":{{\"skill_id\":\"s\",\
             \"success\":{},\"failure_reason\":\"r{}\",\"params\":{{\"f\":{}.{:02}}}}}}}",
            n.is_multiple_of(3),
            n % 40,
            n * 7919 % 97,
            n * 104_729 % 100
        )
    };
    let log: Vec<Admitted> = (0..9000)
        .map(|n| admit(line(n).as_bytes(), Origin::Producer, || [0; 16]).unwrap())
        .collect();
    check_bulk(&log, 4096);
}

/// Enough texts that codes take two bytes and combinations no longer fit a table; parameters whose
/// shapes, units and signs change all the time; and evidence among them.
#[test]
fn many_texts_many_shapes_and_odd_numbers_are_the_same_sums() {
    let numbers =
        ["1e9", "-1e9", "0.000001", "-12.345678", "25", "25.01", "0", "123456.789", "1e-9"];
    let line = |n: usize| {
        let number = |k: usize| numbers[(n * 31 + k * 7) % numbers.len()];
        let params: Vec<String> =
            (0..n % 5).map(|k| format!("\"p{}\":{}", (n + k) % 9, number(k))).collect();
        format!(
            "{{\"id\":\"{n}\",\"type\":\"execution_result\",\"time\":\"2026-05-06T10:0{}:00Z\",\
             \"data\":{{\"skill_id\":\"s{}\",\"target_class\":\"t{}\",\"environment\":\"e{}\",\
             \"zone\":\"z{}\",\"success\":{},\"failure_reason\":\"r{}\",\"params\":{{{}}},\
             \"object\":{{\"a{}\":{}}}}}}}",
            n % 10,
            n % 700,
            n % 301,
            n % 7,
            n % 290,
            n.is_multiple_of(3),
            n % 11,
            params.join(","),
            n % 13,
            number(3),
        )
    };
    let log: Vec<Admitted> = (0..3000)
        .map(|n| admit(line(n).as_bytes(), Origin::Producer, || [0; 16]).unwrap())
        .collect();
    for size in [5, 1500, 4096] {
        check_bulk(&log, size);
    }
    check_evidence(&log, 1500);
}

/// A chunk names the same supporters of every fact as the contributions of each event do.
fn check_evidence(log: &[Admitted], size: usize) {
    let bulk = V1.bulk(EVERY_FACT).unwrap();
    for part in log.chunks(size) {
        let events: Vec<Event<'_>> = part.iter().map(typed).collect();
        let bytes = chunk::encode(&events);
        let chunk = Chunk::decode(&bytes).unwrap();
        let mut want: BTreeMap<FactKey, Vec<usize>> = BTreeMap::new();
        for (place, event) in events.iter().enumerate() {
            for part in V1.contributions(event).unwrap_or_default() {
                let places = want.entry(part.key).or_default();
                places.extend(part.supports.then_some(place));
            }
        }
        for (key, places) in want {
            assert_eq!(bulk.supporters(&chunk, &key), Some(places), "{}", key.text());
        }
    }
}

#[test]
fn chunks_know_the_evidence_of_every_vector() {
    for case in cases() {
        let log = read_log(&case);
        check_evidence(&log, 4096);
        check_evidence(&log, 3);
    }
}

/// More days than samples can be numbered by at a time: they are counted in between.
#[test]
fn thousands_of_days_are_the_same_sums() {
    let line = |n: u64| {
        let of_all = n * 7 % 5000;
        let (year, month) = (1970 + of_all / 336, 1 + of_all % 336 / 28);
        let day = 1 + of_all % 28;
        format!(
            "{{\"id\":\"{n}\",\"type\":\"execution_result\",\
             \"time\":\"{year}-{month:02}-{day:02}T10:00:00Z\",\"data\":{{\"skill_id\":\"s{}\",\
             \"success\":{},\"failure_reason\":\"r\",\"params\":{{\"f\":{}}}}}}}",
            n % 3,
            n.is_multiple_of(3),
            n % 17,
        )
    };
    let log: Vec<Admitted> = (0..14_000)
        .map(|n| admit(line(n).as_bytes(), Origin::Producer, || [0; 16]).unwrap())
        .collect();
    let days: std::collections::BTreeSet<i64> =
        log.iter().map(|event| event.time.micros() / 86_400_000_000).collect();
    assert!(days.len() > 4096, "{}", days.len());
    check_bulk(&log, 4096);
}
