//! The evaluation of small logs whose results were computed by hand.
//!
//! **Invariant:** every log is run three times, with its lines in three orders and one result.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_core::json::Members;
use ipse_core::{EventRef, Time};
use ipse_reproduce::evaluate::{
    DecisionLog, Evaluation, History, Learning, Lines, Part, PlannerKind, Run, Source, evaluate,
};
use ipse_reproduce::random::Python;
use serde_json::{Value, json};

/// 2026-01-05T00:00:00Z.
const START: i64 = 1_767_571_200_000_000;
const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// An event `at` microseconds after the start. Its target and outcome are in `data` if given.
fn event(id: usize, at: i64, target: Option<&str>, outcome: &str) -> String {
    let data = Members::new()
        .text("skill_id", "grasp")
        .optional("target_class", target.map(|target| format!("\"{target}\"")))
        .text("outcome", outcome)
        .finish();
    line("execution_result", id, at, &data)
}

fn line(event_type: &str, id: usize, at: i64, data: &str) -> String {
    Members::new()
        .text("id", &format!("e{id}"))
        .text("type", event_type)
        .text("time", &Time::from_micros(START + at).unwrap().to_string())
        .raw("data", data)
        .finish()
}

/// Attempts in order: time, target, and `+` for a success or `-` for a failure.
fn attempts(list: &[(i64, &str, char)]) -> Vec<String> {
    let one = |(id, (at, target, end)): (usize, &(i64, &str, char))| {
        event(id, *at, Some(target), if *end == '+' { "success" } else { "failed" })
    };
    list.iter().enumerate().map(one).collect()
}

/// Attempts one minute apart, each a target and its outcome: `"cup- mug+"`.
fn by_the_minute(list: &str) -> Vec<String> {
    fn attempt((minute, text): (i64, &str)) -> (i64, &str, char) {
        let (target, end) = text.split_at(text.len() - 1);
        (minute * MINUTE, target, end.chars().next().unwrap())
    }
    attempts(&(0..).zip(list.split_whitespace()).map(attempt).collect::<Vec<_>>())
}

/// The planners that skip below one half, in the order of the counts that a test gives.
const BELOW_HALF: [(PlannerKind, Learning); 6] = [
    (PlannerKind::V1Never, Learning::Frozen),
    (PlannerKind::V1Day, Learning::Frozen),
    (PlannerKind::V1Never, Learning::Daily),
    (PlannerKind::V1Day, Learning::Daily),
    (PlannerKind::V1Never, Learning::PerEvent),
    (PlannerKind::V1Day, Learning::PerEvent),
];

fn run(found: &Evaluation, (kind, learning): (PlannerKind, Learning)) -> &Run {
    found.runs.iter().find(|run| (run.kind, run.learning) == (kind, learning)).unwrap()
}

/// The runs of the planners that skip below one half.
fn below_half(found: &Evaluation) -> [&Run; 6] {
    BELOW_HALF.map(|one| run(found, one))
}

fn ask(lines: &[String]) -> Evaluation {
    let log = DecisionLog::read(lines, 0);
    let mut reported = (0, 0);
    let found = evaluate("synthetic.jsonl", &log, History::default(), &mut |done, of| {
        assert!(done >= reported.0 && done <= of, "{done} of {of}");
        reported = (done, of);
    });
    let all = 11 * log.decisions() as u64;
    assert_eq!(reported, (all, all));
    found
}

/// The result of a log, which must not depend on the order of its lines.
fn answer(lines: &[String]) -> Evaluation {
    let found = ask(lines);
    let mut other = lines.to_vec();
    other.reverse();
    assert_eq!(ask(&other).json(), found.json(), "backwards");
    Python::new(7).shuffle(&mut other);
    assert_eq!(ask(&other).json(), found.json(), "shuffled");
    invariants(&found);
    found
}

fn invariants(found: &Evaluation) {
    assert_eq!(found.runs.len(), 11);
    for run in &found.runs {
        let counts = &run.counts;
        assert_eq!(counts.avoided + counts.lost(), counts.skipped);
        assert_eq!(counts.decisions, found.later.decisions);
        assert_eq!(counts.failures, found.later.failures);
        assert!(counts.avoided <= counts.failures && counts.lost() <= counts.successes());
        assert!(run.keys_skipped <= found.later.keys && run.keys_skipped <= counts.skipped);
        assert!(run.hindsight <= counts.avoided);
        let idle = run.kind == PlannerKind::Always;
        assert!(!idle || counts.skipped == 0, "a planner that always tries skips nothing");
    }
    let sheet = found.sheet();
    assert!(sheet.rows.iter().all(|row| row.len() == sheet.head.len()));
    let (head, rows) = sheet.data.as_ref().unwrap();
    assert!(rows.iter().all(|row| row.len() == head.len()));
    let all = found.json() + &found.words() + &format!("{sheet:?}");
    assert!(!all.contains("NaN") && !all.contains("inf"), "{all}");
    for_programs(found);
}

/// Checks the JSON against the result.
fn for_programs(found: &Evaluation) {
    let parsed: Value = serde_json::from_str(&found.json()).unwrap();
    assert_eq!(parsed["words"], found.words());
    let Lines { events, duplicates, conflicts, refused } = found.lines;
    let names = ["events", "duplicates", "conflicts", "refused"];
    assert_eq!(names.map(|name| &parsed[name]), [events, duplicates, conflicts, refused]);
    let part = |part: &Part| {
        json!({
            "decisions": part.decisions, "failures": part.failures,
            "successes": part.successes(), "keys": part.keys, "lost_fields": part.lost_fields,
        })
    };
    let parts = [part(&found.history), part(&found.later)];
    assert_eq!(["history", "later"].map(|name| parsed[name].clone()), parts);
    assert_eq!(parsed["planners"].as_array().unwrap().len(), 11);
    for (ours, run) in parsed["planners"].as_array().unwrap().iter().zip(&found.runs) {
        let all = &run.counts;
        let want = json!({
            "planner": run.kind.name(), "facts": run.learning.name(), "net": run.net(),
            "decisions": all.decisions, "failures": all.failures, "successes": all.successes(),
            "skipped": all.skipped, "avoided": all.avoided, "lost": all.lost(),
            "unknown_failures": run.unknown_failures, "hindsight": run.hindsight,
            "keys_skipped": run.keys_skipped,
        });
        want.as_object().unwrap().iter().for_each(|(name, want)| assert_eq!(ours[name], *want));
        let figures = ["lift", "gain_pct"].map(|name| ours[name].as_f64());
        assert_eq!(figures, [all.lift(), all.gain().map(|gain| 100.0 * gain)]);
    }
}

/// Checks skipped, avoided and lost of each planner that skips below one half.
fn check(lines: &[String], want: [(u64, u64, u64); 6]) -> Evaluation {
    let found = answer(lines);
    let counts = below_half(&found).map(|run| &run.counts);
    let got = counts.map(|all| (all.skipped, all.avoided, all.lost()));
    assert_eq!(got, want);
    found
}

fn begins(found: &Evaluation, with: &str) {
    assert!(found.words().starts_with(with), "{}", found.words());
}

#[test]
fn what_always_fails_is_avoided() {
    let found = check(
        &by_the_minute(
            "cup- mug+ cup- mug+ cup- mug+ cup- mug+ \
             cup- mug+ cup- mug+ cup- mug+ mug- mug+",
        ),
        [(3, 3, 0); 6],
    );
    assert_eq!((found.history.decisions, found.later.decisions, found.later.failures), (8, 8, 4));
    let run = &below_half(&found)[0];
    assert_eq!((run.counts.lift(), run.counts.gain()), (Some(2.0), Some(0.75)));
    assert_eq!((run.keys_skipped, found.later.keys), (1, 2));
    assert_eq!(
        found.sheet().rows[0],
        ["always try", "-", "0 (0.0 %)", "0 (0.0 %)", "0 (0.0 %)", "+0", "-", "-", "+0.0"]
    );
    let row = found.runs.iter().position(|run| run == below_half(&found)[0]).unwrap();
    assert_eq!(
        found.sheet().rows[row],
        [
            "v1, never again",
            "frozen",
            "3 (37.5 %)",
            "3 (75.0 %)",
            "0 (0.0 %)",
            "+3",
            "2.00",
            "[1.00, 2.00]",
            "+75.0",
        ]
    );
    // The facts of v2 know four failures and no success, and skip too.
    begins(&found, "Whether memory helps beyond these keys cannot be said: 1 of them were skipped");
}

/// Attempts one second apart: so close that no retry is due.
fn by_the_second(list: &str) -> Vec<String> {
    let one = |(id, text): (usize, &str)| {
        let (target, end) = text.split_at(text.len() - 1);
        let outcome = if end == "+" { "success" } else { "failed" };
        event(id, i64::try_from(id).unwrap() * 1_000_000, Some(target), outcome)
    };
    list.split_whitespace().enumerate().map(one).collect()
}

/// Rounds of an attempt at each of a number of bad keys and as many good ones.
fn rounds(keys: usize, count: usize) -> String {
    let one = (0..keys).map(|key| format!("bad{key}- good{key}+ ")).collect::<String>();
    one.repeat(count)
}

/// The planner with `v2` is sure of a key after four failures, and then skips.
#[test]
fn many_keys_make_the_answer_sure() {
    let known = rounds(20, 10);
    let found = check(&by_the_second(&format!("{known}{known}")), [(200, 200, 0); 6]);
    let v2 = run(&found, (PlannerKind::V2, Learning::Frozen));
    assert_eq!((v2.counts.skipped, v2.counts.avoided, v2.net()), (200, 200, 200));
    begins(
        &found,
        "Memory helps here. With the facts of v2 and may_attempt after each attempt, 200",
    );
    let [low, high] = v2.interval.unwrap().ends.unwrap();
    assert!(1.0 < low && low < 2.0 && 2.0 < high, "{low} {high}");
    let turned = known.replace("- good", "* good").replace('+', "-").replace('*', "+");
    let found = answer(&by_the_second(&format!("{known}{turned}")));
    begins(&found, "Memory harms here: skipping at random would be better. With the facts");
}

#[test]
fn few_keys_are_not_believed() {
    for (keys, begin) in [
        (5, "Whether memory helps beyond these keys cannot be said: 5 of"),
        (6, "Memory helps here."),
    ] {
        begins(&answer(&by_the_second(&rounds(keys, 20))), begin);
    }
}

#[test]
fn nothing_failed_and_nothing_was_skipped() {
    let found = check(&by_the_minute("mug+ mug+ mug+ mug+"), [(0, 0, 0); 6]);
    let words = "No failure to avoid: all 2 later decisions succeeded, and none was skipped.";
    assert_eq!(found.words(), words);
}

#[test]
fn one_half_is_attempted() {
    let found = check(&by_the_minute("cup- cup+ cup- cup-"), {
        // After the first later failure the rate is one third.
        [(0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 1, 0), (1, 1, 0)]
    });
    begins(&found, "This log does not show whether memory helps: all 2 later decisions");
}

/// Seven failures within an hour; a success a week later, and one each day after that.
#[test]
fn a_storm_that_passes_costs_successes_unless_it_is_tried_again() {
    let mut list: Vec<_> = (0..7).map(|minute| (minute * MINUTE, "edge", '-')).collect();
    list.extend((7..13).map(|day| (day * DAY, "edge", '+')));
    // A microsecond less than a day after the last attempt.
    list.push((13 * DAY - 1, "edge", '+'));
    let (never, after) = ((7, 0, 7), (1, 0, 1));
    let found = check(&attempts(&list), [never, after, never, after, never, after]);
    begins(
        &found,
        "No failure to avoid: all 7 later decisions succeeded, and up to 7 of them were",
    );
    assert_eq!(below_half(&found)[0].counts.lift(), None);
}

/// A key that is new after the history: two attempts on one day, two on the next.
#[test]
fn passes_learn_when_they_come() {
    let mut list: Vec<_> = (0..4).map(|minute| (minute * MINUTE, "mug", '+')).collect();
    list.extend([0, HOUR, DAY, DAY + HOUR].map(|at| (DAY + at, "cup", '-')));
    let found = check(
        &attempts(&list),
        // Daily: the last attempt is a day old at the second attempt of the next day. Per event: it
        // is a day old at the first one.
        [(0, 0, 0), (0, 0, 0), (2, 2, 0), (1, 1, 0), (3, 3, 0), (2, 2, 0)],
    );
    let unknown = below_half(&found).map(|run| run.unknown_failures);
    assert_eq!(unknown, [4, 4, 2, 2, 1, 1]);
}

/// A key that is new after the history, attempted twice within a minute.
#[test]
fn a_day_begins_at_midnight_in_utc() {
    let twice = |at: i64| {
        let known = [(0, "mug", '+'), (1, "mug", '+')];
        attempts(&[&known[..], &[(at, "cup", '-'), (at + MINUTE, "cup", '-')]].concat())
    };
    let (none, one) = ((0, 0, 0), (1, 1, 0));
    check(&twice(2 * DAY - 2 * MINUTE), [none, none, none, none, one, one]);
    check(&twice(2 * DAY - MINUTE), [none, none, one, one, one, one]);
    check(&twice(2 * DAY), [none, none, none, none, one, one]);
}

#[test]
fn an_instant_is_never_cut_in_two() {
    let mut lines = attempts(&[
        (0, "cup", '-'),
        (0, "cup", '-'),
        (0, "mug", '+'),
        (0, "cup", '-'),
        (1, "cup", '-'),
        (2, "cup", '-'),
    ]);
    lines.push(line("note", 90, 0, "{}"));
    lines.push(line("note", 91, 1, "{}"));
    let found = check(&lines, [(2, 2, 0); 6]);
    assert_eq!((found.history.decisions, found.later.decisions), (4, 2));
}

#[test]
fn the_odd_decision_is_history() {
    let found = check(&by_the_minute("cup- mug+ cup-"), [(1, 1, 0); 6]);
    assert_eq!((found.history.decisions, found.later.decisions), (2, 1));
    let until = found.until.map(|time| time.to_string());
    assert_eq!(until.as_deref(), Some("2026-01-05T00:01:00Z"));
    let title = "synthetic.jsonl: 1 decision on 1 key after 2 of history, 1 failed";
    assert_eq!(found.sheet().title, title);
}

#[test]
fn tables_have_names_that_any_file_system_takes() {
    for (name, want) in [
        ("log.jsonl.gz", "evaluate-log"),
        ("my log (2)", "evaluate-my_log__2_"),
        ("../etc/x", "evaluate-_etc_x"),
        ("日誌", "evaluate-__"),
        ("", "evaluate-"),
    ] {
        let source = Source { name: name.to_owned(), lines: Vec::new(), too_long: 0 };
        assert_eq!(source.table_name(), want);
    }
}

/// Of two attempts at one instant the one with the lesser ref comes first, whatever its outcome.
#[test]
fn an_instant_is_in_the_order_of_refs() {
    for id in 10..18 {
        let mut lines = by_the_minute("mug+ mug+");
        lines.push(event(id, HOUR, Some("cup"), "failed"));
        lines.push(event(id + 10, HOUR, Some("cup"), "success"));
        let name = |id: usize| EventRef::new("import", &format!("e{id}"));
        // If the failure comes first, the planner skips the second attempt.
        let skipped = u64::from(name(id) < name(id + 10));
        let found = answer(&lines);
        assert_eq!(below_half(&found)[4].counts.lost(), skipped, "{id}");
    }
}

#[test]
fn one_instant_leaves_nothing_to_decide_on() {
    let lines: Vec<String> = (0..9).map(|id| event(id, 0, Some("cup"), "failed")).collect();
    let found = check(&lines, [(0, 0, 0); 6]);
    assert_eq!((found.history.decisions, found.later.decisions), (9, 0));
    assert_eq!(
        found.words(),
        "Nothing to decide on: no decision of this log is later than 2026-01-05T00:00:00Z, so all \
         9 are history."
    );
    assert_eq!(found.sheet().rows[0][2..], ["0", "0", "0", "+0", "-", "-", "-"]);
}

#[test]
fn an_empty_log_and_one_without_decisions_say_so() {
    let blank = ["", "  ", "\r"].map(str::to_owned);
    let note = [line("note", 1, 0, "{}"), event(2, 1, Some("cup"), "denied")];
    for (lines, events) in [(&[][..], 0), (&blank[..], 0), (&note[..], 2)] {
        let found = check(lines, [(0, 0, 0); 6]);
        assert_eq!((found.lines.events, found.lines.refused, found.until), (events, 0, None));
        begins(&found, "Nothing to decide on: no event of this log is an attempt");
    }
}

#[test]
fn unknown_keys_are_attempted() {
    let found = check(&by_the_minute("mug+ mug+ mug+ mug+ a- b- c- mug+"), [(0, 0, 0); 6]);
    assert_eq!(
        found.words(),
        "Memory changes nothing here: may_attempt never skips, because no key stays clearly below \
         one half. All 3 failures happen, and nothing is lost. Most failures (3 of 3) are on keys \
         that the history has no fact about: frozen facts cannot foresee them."
    );
    let interval = below_half(&found)[0].interval.unwrap();
    assert_eq!((interval.ends, interval.undefined), (None, 10_000));
    let found = check(&by_the_minute("mug+ mug+ mug+ a- b+ c-"), [(0, 0, 0); 6]);
    assert!(found.runs.iter().all(|run| run.unknown_failures == 2), "a success is none");
}

#[test]
fn what_neither_succeeded_nor_failed_is_no_decision() {
    let mut lines = by_the_minute("cup- mug+ cup- mug+");
    for (id, outcome) in ["denied", "interrupted", "canceled", "unknown", "odd"].iter().enumerate()
    {
        lines.push(event(10 + id, 30_000_000, Some("cup"), outcome));
        lines.push(event(20 + id, 150_000_000, Some("cup"), outcome));
    }
    lines.push(line("execution_result", 30, 150_000_000, r#"{"outcome":"failed"}"#));
    lines.push(line("attempt", 31, 150_000_000, r#"{"outcome":"failed","skill_id":"grasp"}"#));
    let found = check(&lines, [(1, 1, 0); 6]);
    assert_eq!((found.history.decisions, found.later.decisions), (2, 2));
}

#[test]
fn skipping_everything_is_no_better_than_at_random() {
    let history = "a- b- c- d- e- f- ".repeat(2);
    let found =
        check(&by_the_minute(&(history + &"a+ b- c+ d- e+ f- ".repeat(2))), [(12, 6, 6); 6]);
    let run = &below_half(&found)[0];
    assert_eq!((run.counts.lift(), run.counts.gain()), (Some(1.0), Some(0.0)));
    assert_eq!(run.interval.unwrap().ends, Some([1.0, 1.0]));
}

#[test]
fn one_key_has_no_interval() {
    let found = check(&by_the_minute("cup- cup- cup- cup+"), [(2, 1, 1); 6]);
    assert!(found.runs.iter().all(|run| run.interval.is_none()));
    assert!(!found.json().contains("\"interval\":") && !found.json().contains("undefined"));
}

#[test]
fn refused_lines_and_repeated_ones_are_counted_and_left_out() {
    let mut lines = by_the_minute("cup- mug+ cup- mug+");
    let plain = check(&lines, [(1, 1, 0); 6]);
    lines.push("{".to_owned());
    lines.push(line("ipse.pass", 9, 0, "{}"));
    lines.push(String::new());
    lines.push(lines[3].clone());
    // Of two events with one id and different content the earlier one counts, in any order of
    // lines.
    lines.push(event(0, DAY, Some("cup"), "success"));
    let found = check(&lines, [(1, 1, 0); 6]);
    let reported = &found.lines;
    assert_eq!(
        (reported.events, reported.refused, reported.duplicates, reported.conflicts),
        (4, 2, 1, 1)
    );
    assert_eq!((found.runs, found.later), (plain.runs, plain.later));
}

#[test]
fn a_log_of_which_nothing_passes_the_door_says_so() {
    for (too_long, refused, words) in [
        (0, 1, "Left out: 1 line rejected by the door."),
        (2, 3, "Left out: 3 lines rejected by the door."),
    ] {
        let log = DecisionLog::read(["{"], too_long);
        let found = evaluate("x", &log, History::default(), &mut |_, _| ());
        assert_eq!((found.lines.events, found.lines.refused), (0, refused));
        assert!(found.words().ends_with(words), "{}", found.words());
    }
}

/// A conflict at one instant: the result must not depend on the order of the lines.
#[test]
fn a_conflict_at_one_instant_is_settled_by_what_is_said() {
    let mut lines = by_the_minute("cup- mug+ cup+ mug+");
    lines.push(event(0, 0, Some("cup"), "success"));
    // An event that differs only in its type, which comes after the salt.
    lines.push(lines[1].replace("execution_result", "note"));
    let found = answer(&lines);
    assert_eq!((found.lines.events, found.lines.conflicts), (4, 2));
}

#[test]
fn failures_that_lose_their_target_are_counted_apart() {
    let mut lines = by_the_minute("cup+ cup+ cup+ cup+ cup+ cup+");
    let bare = |id: usize, minute: i64, outcome| event(id, minute * MINUTE + 1, None, outcome);
    lines.extend([bare(10, 0, "failed"), bare(11, 3, "failed"), bare(12, 4, "failed")]);
    let found = check(&lines, [(2, 2, 0); 6]);
    assert_eq!((found.later.lost_fields, below_half(&found)[0].hindsight), (2, 2));
    assert!(found.words().contains("2 of 2 failures came without a target or environment"));
    assert!(found.words().ends_with("up to 2 of the failures avoided are hindsight of this kind."));
    // After one success without a target, a missing target is no longer a lost field.
    lines.push(bare(13, 5, "success"));
    let found = answer(&lines);
    assert_eq!((found.later.lost_fields, below_half(&found)[0].hindsight), (0, 0));
}

#[test]
fn only_what_every_success_has_can_be_lost() {
    let environment = |id: usize, environment: &str, outcome: &str| {
        let data = format!(r#"{{"skill_id":"push"{environment},"outcome":"{outcome}"}}"#);
        line("execution_result", id, i64::try_from(id).unwrap() * MINUTE, &data)
    };
    let ward = r#","environment":"ward""#;
    let lost = |lines: &[String]| {
        let found = answer(lines);
        (found.later.lost_fields, below_half(&found)[0].hindsight)
    };
    let [fine, fine_too] = [0, 1].map(|id| environment(id, ward, "success"));
    let bare = |id: usize| environment(id, "", "failed");
    let once = [fine.clone(), fine_too.clone(), bare(2)];
    assert_eq!(lost(&once), (1, 0), "lost, and attempted because no fact exists");
    let twice = [fine, bare(1), bare(2), bare(3)];
    assert_eq!(lost(&twice), (2, 2), "lost, and skipped");
    assert_eq!(lost(&[0, 1, 2, 3].map(bare)), (0, 0), "no success has anything");
}
