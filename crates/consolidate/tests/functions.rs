//! The small functions of rule set v2 against `vectors/facts-v2/functions.json`.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_consolidate::confidence::wilson;
use ipse_consolidate::days::{Day, Days, Rate, day_text};
use ipse_consolidate::drift::Monitor;
use ipse_consolidate::stretch::{bounds, robust, stretch};
use ipse_consolidate::v2::Advice;
use ipse_consolidate::{RuleSet, Tally, V2};
use ipse_core::{FactKey, FactKind};
use ipse_door::{Origin, admit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/facts-v2")
}

/// The cases of one function; there are at least `least`.
fn cases(name: &str, least: usize) -> Vec<Value> {
    let all = fs::read_to_string(vectors().join("functions.json")).unwrap();
    let all: Value = serde_json::from_str(&all).unwrap();
    let cases = all[name].as_array().unwrap().clone();
    assert!(cases.len() >= least, "the vectors of {name} are there");
    cases
}

fn rows(days: &Value) -> Vec<(Day, Rate)> {
    let row = |row: &Value| {
        let number = |place: usize| row[place].as_i64().unwrap();
        (number(0), Rate { n: number(1), s: number(2) })
    };
    let rows = days.as_array().unwrap().iter().map(row);
    let mut rows: Vec<_> = rows.filter(|(_, rate)| rate.n > 0).collect();
    rows.sort_unstable_by_key(|(day, _)| *day);
    rows
}

/// A number in steps of 1/10⁴.
fn steps(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 10_000.0).round() as i64
}

#[test]
fn bounds_of_a_rate() {
    for case in cases("W", 9) {
        let [a, n, k, want] = ["a", "n", "K", "W"].map(|name| case[name].as_i64().unwrap());
        assert_eq!(wilson(a, n, k.into()), want, "{case}");
    }
}

#[test]
fn the_newest_stretch() {
    for case in cases("stretch", 40) {
        let days = rows(&case["days"]);
        let (place, cut) = stretch(&days);
        assert_eq!(days[place].0, case["since"].as_i64().unwrap(), "{case}");
        assert_eq!(cut.map(|cut| cut.day), (place > 0).then_some(days[place].0), "{case}");
    }
}

#[test]
fn no_source_has_more_weight_than_the_median() {
    for case in cases("robust", 15) {
        let sources: Vec<_> = case["sources"].as_object().unwrap().values().map(rows).collect();
        let found = robust(sources.iter().map(Vec::as_slice));
        let want = &case["robust"];
        assert_eq!(found.is_none(), want.is_null(), "{case}");
        let Some(found) = found else { continue };
        let (low, high) = bounds(found.rate, 3);
        assert_eq!(found.sources as u64, want["sources"].as_u64().unwrap(), "{case}");
        assert_eq!(found.rate.n, want["n"].as_i64().unwrap(), "{case}");
        assert_eq!(found.rate.s, want["successes"].as_i64().unwrap(), "{case}");
        assert_eq!((low, high), (steps(&want["low"]), steps(&want["high"])), "{case}");
    }
}

#[test]
fn advice_on_a_skill() {
    for case in cases("advice", 30) {
        let mut sum = Advice::default();
        for (_, rate) in rows(&Value::Array(
            case["counts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| serde_json::json!([0, c[0], c[1]]))
                .collect(),
        )) {
            sum.add(&Advice::of(rate));
        }
        match sum.judge() {
            None => assert!(case["skill"].is_null() && case["verdict"].is_null(), "{case}"),
            Some((skill, verdict)) => {
                assert_eq!(skill, steps(&case["skill"]), "{case}");
                assert_eq!(verdict.name(), case["verdict"].as_str().unwrap(), "{case}");
            }
        }
    }
}

/// Attempts by day of the skill facts of a log.
fn attempts(name: &str) -> BTreeMap<FactKey, Days<Rate>> {
    let log = fs::read_to_string(vectors().join(format!("{name}.events.jsonl"))).unwrap();
    let (mut found, mut seen) = (BTreeMap::<FactKey, Days<Rate>>::new(), Vec::new());
    for line in log.lines() {
        let Ok(event) = admit(line.as_bytes(), Origin::Producer, || [0; 16]) else { continue };
        if seen.contains(&event.event_ref) {
            continue;
        }
        seen.push(event.event_ref);
        for part in V2.contributions(&event.typed().unwrap()).unwrap_or_default() {
            if part.key.kind() == FactKind::SkillSuccessRate {
                found.entry(part.key).or_default().add(&part.tally.by_day());
            }
        }
    }
    found
}

#[test]
fn drift_reports() {
    for case in cases("drift", 9) {
        let attempts = attempts(case["events"].as_str().unwrap());
        let monitor = Monitor::of(attempts.iter().map(|(key, days)| (key.clone(), days)));
        let report = monitor.report(monitor.newest());
        let got: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(got, case["report"], "{}", case["events"]);
    }
}

/// The alarms of a log are the days on which the report of that day first says so.
#[test]
fn alarms_begin_on_days_whose_report_says_drift() {
    let mut found = 0;
    for name in ["outage", "repaired", "two_changes", "world_1", "world_2", "world_3", "world_4"] {
        let attempts = attempts(name);
        let monitor = Monitor::of(attempts.iter().map(|(key, days)| (key.clone(), days)));
        let first = attempts.values().map(|days| days.all()[0].0).min().unwrap();
        let on = |day: &Day| monitor.report(*day).drift;
        let want: Vec<Day> =
            (first..=monitor.newest()).filter(|day| on(day) && !on(&(day - 1))).collect();
        assert_eq!(monitor.alarms(), want, "{name}");
        found += want.len();
    }
    assert!(found > 0, "some of these worlds raise an alarm");
    assert!(Monitor::of([]).alarms().is_empty());
    assert_eq!(day_text(Monitor::of([]).newest()), "1970-01-01");
}
