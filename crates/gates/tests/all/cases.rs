//! The tables of cases under `tests/cases`, one for each gate.
//!
//! A case is an intent on a line of its own, and under it, indented, what becomes of it: the ruling
//! with the admitted parameters, then every finding. `grasp TARGET PLACE PARAMS` is short for a
//! grasp; `after N` says how many went before. Lines that begin with `@` change the files of the
//! fixture.

use super::fixture::{Files, check, told};
use ipse_gates::{Intent, Verdict};

fn judge(files: &Files, case: &str) -> Verdict {
    let (intent, recent) = case.rsplit_once(" after ").unwrap_or((case, "0"));
    let body = written_out(intent);
    let intent = Intent::read(body.as_bytes()).expect(case);
    files.gates().expect(case).judge(&intent, recent.parse().unwrap())
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
        None => told(&judge(&files, line)),
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
