//! How far a parameter is from a recommendation, against facts of a log to which that many
//! successes were really appended.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_consolidate::distance::{Distance, MAX_TRIED, Nearest};
use ipse_consolidate::{Groups, RuleSet, V1, V2, f};
use ipse_core::{Admitted, FactKind};
use ipse_door::{Origin, admit};
use proptest::prelude::*;
use serde_json::Value;

/// One attempt: its day, its value of `force`, whether it has a `speed` too, and whether it worked.
type Try = (u8, i64, bool, bool);

/// The day of an attempt that was not made yet.
const LATER: u8 = 200;

fn event(number: usize, (day, force, has_speed, worked): Try) -> Admitted {
    let speed = if has_speed { format!(",\"speed\":{}", number % 3) } else { String::new() };
    let (month, day) = (1 + day / 28, 1 + day % 28);
    let line = format!(
        "{{\"id\":\"{number}\",\"type\":\"execution_result\",\
         \"time\":\"2026-{month:02}-{day:02}T10:00:00Z\",\"data\":{{\"skill_id\":\"s\",\
         \"target_class\":\"c\",\"success\":{worked},\
         \"params\":{{\"force\":{force}{speed}}}}}}}"
    );
    admit(line.as_bytes(), Origin::Producer, || [7; 16]).unwrap()
}

fn events(tries: &[Try]) -> Vec<Admitted> {
    tries.iter().enumerate().map(|(number, tried)| event(number, *tried)).collect()
}

/// Whether the published fact recommends a force.
fn is_recommended<R: RuleSet>(rules: &R, tries: &[Try]) -> bool {
    let events = events(tries);
    let facts = f(rules, events.iter().map(|event| event.typed().unwrap())).unwrap();
    let fact = facts.iter().find(|fact| fact.key.kind() == FactKind::SkillSuccessRate).unwrap();
    let value: Value = serde_json::from_str(&fact.value).unwrap();
    !value["params"]["force"]["recommended"].is_null()
}

/// The sum behind the fact of the skill.
fn tally<R: RuleSet>(rules: &R, tries: &[Try]) -> R::Tally {
    let mut groups = Groups::default();
    for event in events(tries) {
        groups.fold(rules, &event.typed().unwrap());
    }
    let mut all = groups.into_groups().into_iter();
    all.find(|(key, _)| key.kind() == FactKind::SkillSuccessRate).unwrap().1.tally
}

/// The log with this many successes at a value on a later day.
fn appended(tries: &[Try], value: i64, more: i64) -> Vec<Try> {
    let new = (0..more).map(|_| (LATER, value, false, true));
    tries.iter().copied().chain(new).collect()
}

/// A value that was tried, of a cell.
fn force(nearest: &Nearest) -> i64 {
    assert_eq!(nearest.value % 1_000_000, 0);
    nearest.value / 1_000_000
}

fn is_exact<R: RuleSet>(
    rules: &R,
    tries: &[Try],
    found: Option<&Distance<'_>>,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.is_none(), is_recommended(rules, tries), "{:?}", tries);
    let Some(found) = found else { return Ok(()) };
    prop_assert_eq!(found.tried.n, i64::try_from(tries.len()).unwrap());
    let Some(nearest) = found.nearest else { return Ok(()) };
    let with = |more: i64| is_recommended(rules, &appended(tries, force(&nearest), more));
    prop_assert!(with(nearest.more), "{:?} is not enough: {:?}", nearest, tries);
    prop_assert!(!with(nearest.more - 1), "one fewer than {:?} is enough: {:?}", nearest, tries);
    let (low, high) = nearest.tried;
    let inside = |(_, force, _, _): &&Try| (low..=high).contains(&(force * 1_000_000));
    prop_assert!(nearest.inside.n <= i64::try_from(tries.iter().filter(inside).count()).unwrap());
    Ok(())
}

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let by_force = |force: i64, luck: u8| (20..30).contains(&force) != (luck == 0);
    let one = (0_u8..40, 1_i64..6, any::<bool>(), 0_u8..5);
    let hill = one.prop_map(move |(day, fifth, speed, luck)| {
        (day, fifth * 10, speed, by_force(fifth * 10, luck))
    });
    let any = (0_u8..40, 1_i64..40, any::<bool>(), any::<bool>());
    prop_oneof![proptest::collection::vec(hill, 1..60), proptest::collection::vec(any, 1..40),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn so_many_successes_are_enough_under_v1_and_fewer_nowhere(tries in tries()) {
        let tally = tally(&V1, &tries);
        let all = Distance::of_observed(&tally);
        let found = all.iter().find(|it| it.name == "force");
        is_exact(&V1, &tries, found)?;
        if let Some(nearest) = found.and_then(|it| it.nearest) {
            for (value, _) in tally.numbers["force"].fine() {
                let fewer = appended(&tries, value / 1_000_000, nearest.more - 1);
                prop_assert!(!is_recommended(&V1, &fewer), "fewer at {}: {:?}", value, tries);
            }
        }
    }

    #[test]
    fn so_many_successes_are_enough_under_v2_and_one_fewer_is_not(tries in tries()) {
        let tally = tally(&V2, &tries);
        let all = Distance::of_dated(&tally);
        is_exact(&V2, &tries, all.iter().find(|it| it.name == "force"))?;
    }
}

/// The kitchen of a newcomer: 16 of 18 worked at 20 and 25, 3 of 43 elsewhere, with a second
/// parameter that has no effect.
#[test]
fn a_clear_hill_that_just_misses_says_by_how_much() {
    let mut all = Vec::new();
    let add = |all: &mut Vec<Try>, force: i64, worked: usize, failed: usize| {
        all.extend((0..worked + failed).map(|n| (1, force, true, n < worked)));
    };
    add(&mut all, 20, 6, 2);
    add(&mut all, 25, 10, 0);
    for (force, worked, failed) in [(5, 0, 9), (10, 1, 8), (15, 1, 8), (30, 1, 7), (40, 0, 8)] {
        add(&mut all, force, worked, failed);
    }
    let tally = tally(&V1, &all);
    let found = Distance::of_observed(&tally);
    let force = found.iter().find(|it| it.name == "force").unwrap();
    let nearest = force.nearest.unwrap();
    assert_eq!((nearest.inside.successes, nearest.inside.n), (16, 18));
    assert_eq!((nearest.tried, nearest.more), ((20_000_000, 25_000_000), 1));
    assert!(!force.changed);
}

/// A range that was better until the rate inside it fell: the rules of `v2` do not recommend it,
/// and the distance says that the rate changed.
#[test]
fn a_change_of_the_rate_is_named() {
    let fell = (0..50_u8).map(|n| (n / 10, 25, false, n < 40));
    let outside = (0..20_u8).map(|n| (n / 7, 40, false, false));
    let all: Vec<Try> = fell.chain(outside).collect();
    let tally = tally(&V2, &all);
    let found = Distance::of_dated(&tally);
    assert!(found[0].changed, "{found:?}");
    assert!(found[0].nearest.is_none_or(|it| it.more <= MAX_TRIED));
}
