//! The tables of cases under `tests/cases`, one for each gate.
//!
//! A case is an intent on a line of its own, and under it, indented, its result: the ruling
//! with the admitted parameters, then every finding. `grasp TARGET PLACE PARAMS` is short for a
//! grasp; `after N` says how many went before. Lines that begin with `@` change the files of the
//! fixture.

use super::fixture::{Files, check, reported};
use ipse_gates::{Intent, Past, RateLimit, Verdict};

fn judge(files: &Files, case: &str) -> Verdict {
    let (intent, recent) = case.rsplit_once(" after ").unwrap_or((case, "0"));
    let body = written_out(intent);
    let intent = Intent::read(body.as_bytes()).expect(case);
    files.gates().expect(case).judge(&intent, &Past::counted(recent.parse().unwrap()))
}

fn written_out(intent: &str) -> String {
    let mut words = intent.splitn(4, ' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("grasp"), Some(target), Some(place), Some(params)) => format!(
            "{{\"skill_id\":\"arm.grasp\",\"target_class\":\"{target}\",\
             \"environment\":\"{place}\",\"params\":{{{params}}}}}"
        ),
        _ => intent.to_string(),
    }
}

#[track_caller]
fn check_verdicts(table: &str) {
    let mut files = Files::base();
    check(table, 20, |line| match line.strip_prefix('@') {
        Some(directive) => {
            files.change(directive);
            Vec::new()
        }
        None => reported(&judge(&files, line)),
    });
}

#[test]
fn admission() {
    check_verdicts(include_str!("../cases/admission.txt"));
}

#[test]
fn policy() {
    check_verdicts(include_str!("../cases/policy.txt"));
}

#[test]
fn contract() {
    check_verdicts(include_str!("../cases/contract.txt"));
}

#[test]
fn limits_of_time_are_those_of_the_files() {
    let mut files = Files::base();
    let gates = files.gates().unwrap();
    let limit = |intents, seconds| Some(RateLimit { intents, seconds });
    assert_eq!(gates.rate_limit("arm.grasp"), limit(3, 60));
    assert_eq!(gates.rate_limit("arm.throw"), limit(1, 1));
    assert_eq!(gates.rate_limit("arm.wave"), None, "the policy does not name it");
    assert_eq!(gates.rate_limit("arm.fly"), None, "there is no such skill");
    assert_eq!(gates.confirm_within(), Some(300));
    files.change("temperament confirm_within_s = 300 => ");
    assert_eq!(files.gates().unwrap().confirm_within(), None);
}
