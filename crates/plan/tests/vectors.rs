//! Both rules against the vectors of rule set v2, and the laws that hold for any input.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_consolidate::days::Days;
use ipse_consolidate::histogram::Histogram;
use ipse_consolidate::v2::{Dated, Verdict};
use ipse_consolidate::{Group, Groups, Rules, V2};
use ipse_core::json::Value as Json;
use ipse_core::{FactKey, FactKind, Micro, Time, json_parse};
use ipse_door::{Origin, admit};
use ipse_plan::{
    BadCandidates, Candidates, Knowledge, Question, Reason, Standing, Suggestion, Threshold,
    may_attempt, suggest,
};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/facts-v2");
    fs::read_to_string(vectors.join(name)).unwrap()
}

fn micro(value: i64) -> Micro {
    Micro::new(value).unwrap()
}

/// The sums of all facts of a log, derived facts included.
fn sums(name: &str) -> BTreeMap<FactKey, Group<Dated>> {
    let (mut groups, mut seen) = (Groups::default(), BTreeSet::new());
    for line in read(&format!("{name}.events.jsonl")).lines() {
        let Ok(event) = admit(line.as_bytes(), Origin::Producer, || [0; 16]) else { continue };
        if seen.insert(event.event_ref) {
            groups.fold(&V2, &event.typed().unwrap());
        }
    }
    groups.into_whole(&V2).into_iter().collect()
}

/// The figures of a fact, from its sum and from its published value: they must be equal.
fn standing(key: &FactKey, group: &Group<Dated>) -> Option<Standing> {
    let of_sum = Standing::of(&group.tally, &group.last?);
    let published = group.publish(&V2, key).unwrap();
    let of_value =
        published.and_then(|fact| match json_parse::parse(fact.value.as_bytes(), 8).unwrap() {
            Json::Object(value) => Standing::read(&value),
            _ => None,
        });
    assert_eq!(of_sum, of_value, "{}", key.text());
    of_sum
}

#[test]
fn may_attempt_gives_the_reasons_of_the_vectors() {
    let all: Value = serde_json::from_str(&read("functions.json")).unwrap();
    let cases = all["may_attempt"].as_array().unwrap();
    assert!(cases.len() >= 570, "the vectors are there");
    let (mut logs, mut reasons) = (BTreeMap::new(), BTreeSet::new());
    for case in cases {
        let log = case["events"].as_str().unwrap();
        let facts = logs.entry(log).or_insert_with(|| sums(log));
        let wanted = case["fact_key"].as_str().unwrap();
        let is_it =
            |key: &&FactKey| key.kind() == FactKind::SkillSuccessRate && key.text() == wanted;
        let key = facts.keys().find(is_it);
        let verdict = key.and_then(|key| {
            let advice = FactKey::new(FactKind::SkillAdvice, &[&key.parts()[0]]);
            Some(facts.get(&advice)?.tally.advice.judge()?.1)
        });
        let known = Knowledge {
            rules: Rules::V2,
            fact: key.and_then(|key| standing(key, &facts[key])),
            verdict: verdict.filter(|_| case["with_advice"].as_bool().unwrap()),
        };
        let question = Question {
            now: Time::parse(case["now"].as_str().unwrap()).unwrap(),
            threshold: Threshold::new(micro(case["threshold"].as_i64().unwrap() * 100)).unwrap(),
            quorum: case["quorum"].as_bool().unwrap(),
        };
        let reason = may_attempt(&known, &question);
        assert_eq!(reason.name(), case["reason"].as_str().unwrap(), "{case}");
        assert_eq!(reason.attempt(), case["attempt"].as_bool().unwrap(), "{case}");
        reasons.insert(reason);
        let v1 = may_attempt(&Knowledge { rules: Rules::V1, ..known }, &question);
        assert_eq!(v1, Reason::RulesV1);
        let unknown = Knowledge { fact: None, ..known };
        assert_eq!(may_attempt(&unknown, &question), Reason::NoFact);
    }
    let others = [Reason::RulesV1, Reason::NoFact];
    let rest = Reason::ALL.into_iter().filter(|reason| !others.contains(reason));
    assert_eq!(reasons, rest.collect(), "the vectors have every other reason");
}

/// The sums by day of `[day, value, n, successes]` rows.
fn days(rows: &[(i64, i64, i64, i64)]) -> Days<Histogram> {
    let mut days = Days::default();
    for (day, value, n, successes) in rows {
        for place in 0..*n {
            days.put(*day, &Histogram::of(micro(*value), place < *successes));
        }
    }
    days
}

fn rows(cells: &Value) -> Vec<(i64, i64, i64, i64)> {
    let row = |row: &Value| {
        let [day, value, n, s] = [0, 1, 2, 3].map(|place| row[place].as_i64().unwrap());
        (day, value, n, s)
    };
    cells.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn suggest_gives_the_answers_of_the_vectors() {
    let cases: Vec<Value> = serde_json::from_str(&read("suggest.json")).unwrap();
    assert!(cases.len() >= 94, "the vectors are there");
    for case in &cases {
        let values = case["candidates"].as_array().unwrap();
        let values: Vec<Micro> = values.iter().map(|it| micro(it.as_i64().unwrap())).collect();
        let want = &case["want"];
        let Ok(candidates) = Candidates::list(&values) else {
            assert_eq!(want["error"], "bad_candidates", "{case}");
            continue;
        };
        let prefer = case["prefer"].as_i64().map(micro);
        let got = suggest(&days(&rows(&case["cells"])), &candidates, prefer);
        let number = |name: &str| want[name].as_i64();
        assert_eq!(Some(got.value.get()), number("value"), "{case}");
        assert_eq!(Some(got.rate.n), number("n"), "{case}");
        assert_eq!(Some(got.rate.s), number("successes"), "{case}");
        assert_eq!(Some(got.high), number("high"), "{case}");
        assert_eq!(Some(got.anchor.get()), number("anchor"), "{case}");
        assert_eq!(got.window.since, number("first_day"), "{case}");
        assert_eq!(Some(got.window.n), number("window_n"), "{case}");
    }
}

#[test]
fn the_reason_is_in_words() {
    let candidates = Candidates::list(&[25, 27, 29].map(|it| micro(it * 1_000_000))).unwrap();
    let why = |rows: &[(i64, i64, i64, i64)]| suggest(&days(rows), &candidates, None).why();
    let busy = (20_000, 25_000_000, 40, 38);
    assert_eq!(
        why(&[busy]),
        "25 was tried 40 times, 38 worked; 27 was never tried and could be better"
    );
    let others = [(20_000, 27_000_000, 9, 1), (20_000, 29_000_000, 1, 0)];
    let tried = [&[busy], &others[..]].concat();
    assert_eq!(why(&tried), "25 was tried 40 times, 38 worked");
    let [_, other] = others;
    let two = [(20_000, 27_000_000, 9, 8), (20_000, 25_000_000, 30, 20), other];
    let words = "25 was tried 30 times, 20 worked; 27 was tried 9 times, 8 worked and could be \
                 better";
    assert_eq!(why(&two), words);
}

#[test]
fn candidates_are_a_list_or_a_range() {
    let list =
        |values: &[i64]| Candidates::list(&values.iter().map(|it| micro(*it)).collect::<Vec<_>>());
    let range = |from, to, step| Candidates::range(micro(from), micro(to), micro(step));
    let shown = |bad: Result<Candidates, BadCandidates>| bad.unwrap_err().to_string();
    assert_eq!(range(5, 11, 2).unwrap(), list(&[11, 5, 9, 7]).unwrap());
    assert_eq!(range(5, 5, 9).unwrap().cells(), [5]);
    assert_eq!(shown(list(&[])), "there is no candidate");
    assert_eq!(shown(range(6, 5, 1)), "there is no candidate");
    assert_eq!(shown(range(5, 9, 0)), "the step of the candidates is not above zero");
    assert_eq!(shown(range(5, 9, -1)), "the step of the candidates is not above zero");
    assert_eq!(range(1, 256, 1).unwrap().cells().len(), 256);
    assert_eq!(shown(range(1, 257, 1)), "there are more than 256 candidates");
    assert_eq!(shown(range(1, 1_000_000_000_000_000, 1)), "there are more than 256 candidates");
    assert_eq!(
        shown(list(&[20_001_000_000, 20_002_000_000])),
        "two candidates are equal to four significant digits: 20000"
    );
}

/// The rule as its page has it, candidate by candidate.
fn by_the_book(
    rows: &[(i64, i64, i64, i64)],
    candidates: &[i64],
    prefer: Option<i64>,
) -> (i64, i64) {
    let mut by_day: BTreeMap<i64, i64> = BTreeMap::new();
    rows.iter().for_each(|(day, _, n, _)| *by_day.entry(*day).or_default() += n);
    let (mut since, mut inside) = (i64::MAX, 0);
    for (day, n) in by_day.iter().rev().filter(|(_, n)| **n > 0) {
        if inside >= 512 {
            break;
        }
        (since, inside) = (*day, inside + n);
    }
    let window: Vec<_> = rows.iter().filter(|row| row.0 >= since && row.2 > 0).collect();
    let nearest =
        |value: i64| *candidates.iter().min_by_key(|it| ((*it - value).abs(), **it)).unwrap();
    let last = candidates.len() - 1;
    let counted = |value: i64, candidate: i64| match candidates {
        [only] => value == *only,
        _ => {
            2 * (candidates[0] - value) <= candidates[1] - candidates[0]
                && 2 * (value - candidates[last]) <= candidates[last] - candidates[last - 1]
                && nearest(value) == candidate
        }
    };
    let hits = || window.iter().filter(|row| row.3 > 0);
    let anchor = hits().map(|row| row.0).max().map(|newest| {
        let mut won: BTreeMap<i64, i64> = BTreeMap::new();
        hits()
            .filter(|row| row.0 == newest)
            .for_each(|row| *won.entry(row.1).or_default() += row.3);
        *won.iter().min_by_key(|(value, s)| (-**s, **value)).unwrap().0
    });
    let anchor = anchor.or(prefer).unwrap_or(candidates[last / 2]);
    let high = |candidate: i64| {
        let of = window.iter().filter(|row| counted(row.1, candidate));
        let (n, s) = of.fold((0, 0), |(n, s), row| (n + row.2, s + row.3));
        10_000 - ipse_consolidate::confidence::wilson(n - s, n, 3)
    };
    let rank = |candidate: &&i64| (-high(**candidate), (**candidate - anchor).abs(), **candidate);
    (*candidates.iter().min_by_key(rank).unwrap(), anchor)
}

proptest! {
    #[test]
    fn suggest_is_the_rule_by_the_book(
        rows in proptest::collection::vec((0_i64..9, -9_i64..40, 0_i64..200, 0_i64..200), 0..24),
        candidates in proptest::collection::btree_set(-5_i64..35, 1..9),
        prefer in proptest::option::of(-9_i64..40),
    ) {
        let rows: Vec<_> =
            rows.into_iter().map(|(day, value, n, s)| (day, value, n, s.min(n))).collect();
        let cells: Vec<i64> = candidates.into_iter().collect();
        let all: Vec<Micro> = cells.iter().map(|it| micro(*it)).collect();
        let found = suggest(&days(&rows), &Candidates::list(&all).unwrap(), prefer.map(micro));
        let (value, anchor) = by_the_book(&rows, &cells, prefer);
        prop_assert_eq!((found.value.get(), found.anchor.get()), (value, anchor));
        let Suggestion { window, .. } = found;
        prop_assert_eq!(window.since.is_none(), window.n == 0);
    }

    /// A key that is skipped now is due within a week, whatever its fact is.
    #[test]
    fn no_skip_lasts_longer_than_a_week(
        high in 0_i64..=1_000_000,
        robust in proptest::option::of(0_i64..=1_000_000),
        last_failed: bool,
        retry in 0_i64..4_000_000_000_000_000,
        now in 0_i64..4_000_000_000_000_000,
        quorum: bool,
    ) {
        let time = |micros| Time::from_micros(micros).unwrap();
        let fact = Standing {
            high: micro(high),
            robust_high: robust.map(micro),
            last_failed,
            retry_after: time(retry),
        };
        let verdict = Some(Verdict::Informative);
        let known = Knowledge { rules: Rules::V2, fact: Some(fact), verdict };
        let on = |now| may_attempt(&known, &Question { quorum, ..Question::at(now) });
        let week = 7 * 86_400_000_000;
        prop_assert!(on(time(now)).attempt() || on(time(now + week)).attempt());
        let misled = Knowledge { verdict: Some(Verdict::Misleading), ..known };
        prop_assert_eq!(may_attempt(&misled, &Question::at(time(now))), Reason::Misleading);
    }
}

#[test]
fn candidates_are_read_from_text() {
    let shown = |text: &str| Candidates::parse(text).unwrap_err().to_string();
    let cells = |text: &str| Candidates::parse(text).unwrap().cells().to_vec();
    assert_eq!(cells("30, 2e1,-0.5"), [-500_000, 20_000_000, 30_000_000]);
    assert_eq!(shown(" "), "there is no candidate");
    assert_eq!(shown("1,,2"), "`` is no number from -10^9 to 10^9");
    assert_eq!(shown("1,x\n"), "`x` is no number from -10^9 to 10^9");
    assert_eq!(shown("1e10"), "`1e10` is no number from -10^9 to 10^9");
    assert!(Candidates::numbers(&[1.0, f64::NAN]).is_err());
}

#[test]
fn the_default_list_has_equal_distances_and_leaves_out_what_is_not_kept() {
    let between = |min, max| Candidates::between(micro(min), micro(max), |_| true);
    let tens: Vec<i64> = (0..=20).map(|place| place * 7_000_000).collect();
    assert_eq!(between(0, 140_000_000).unwrap().cells(), tens);
    assert_eq!(between(5, 5).unwrap().cells(), [5], "equal cells are one candidate");
    assert_eq!(between(0, 3).unwrap().cells(), [0, 1, 2, 3], "rounded half-even to micro-units");
    let low = Candidates::between(micro(0), micro(140_000_000), |it| it.get() <= 60_000_000);
    assert_eq!(low.unwrap().cells().last(), Some(&56_000_000));
    let nothing = Candidates::between(micro(0), micro(1), |_| false);
    assert_eq!(nothing, Err(BadCandidates::None));
    let widest = between(-1_000_000_000_000_000, 1_000_000_000_000_000).unwrap();
    assert_eq!(widest.cells().len(), 21);
}

#[test]
fn thresholds_are_rates() {
    for good in ["0", "0.5", "1", "0.333333"] {
        assert_eq!(Threshold::parse(good).unwrap().get().to_string(), good);
    }
    for bad in ["", "-0.1", "1.000001", "half", "nan", "1e9"] {
        assert!(Threshold::parse(bad).is_none(), "{bad}");
    }
    assert_eq!(Threshold::default(), Threshold::parse("0.5").unwrap());
}
