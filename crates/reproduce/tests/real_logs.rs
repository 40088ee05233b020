//! V3 on real logs, if they are available.
//!
//! **Invariant:** logs of third parties are read in place; if they are missing, the test prints so.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod laboratory;

use flate2::read::GzDecoder;
use ipse_core::{FactKey, FactKind, Time};
use ipse_reproduce::lab::Lab;
use ipse_reproduce::random::Python;
use ipse_reproduce::real::{Real, Source, ask};
use laboratory::lab;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// The lines of a real log; `None` if it is not available.
fn real_log(name: &str) -> Option<Vec<Vec<u8>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    let Ok(mut bytes) = std::fs::read(&path) else {
        eprintln!("SKIPPED: the real log {name} is not available (no ../shared/data)");
        return None;
    };
    if name.ends_with(".gz") {
        let packed = std::mem::take(&mut bytes);
        GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    }
    Some(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
}

/// The decisions that the facts after the history skip, and the failures among them.
fn skipped_by_facts(lab: &Lab<'_>, lines: &[Vec<u8>], until: Time) -> (u64, u64) {
    let text = |line: &Vec<u8>| String::from_utf8(line.clone()).unwrap();
    let lines: Vec<String> = lines.iter().map(text).filter(|line| !line.is_empty()).collect();
    let parsed = |line: &String| serde_json::from_str::<Value>(line).unwrap();
    let early =
        |line: &String| Time::parse(parsed(line)["time"].as_str().unwrap()).unwrap() <= until;
    let (history, later): (Vec<String>, Vec<String>) = lines.into_iter().partition(early);
    let mut agent = lab.agent(&lab.store("direct"), "direct").unwrap();
    agent.learn(&history).unwrap();
    let known = agent.known();
    let (mut skipped, mut avoided) = (0, 0);
    for data in later.iter().map(|line| parsed(line)["data"].clone()) {
        let part = |name: &str| data[name].as_str().unwrap_or("*").to_owned();
        let (Some(success), true) = (data["success"].as_bool(), data["skill_id"].is_string())
        else {
            continue;
        };
        let parts = [part("skill_id"), part("target_class"), part("environment")];
        let key = FactKey::new(FactKind::SkillSuccessRate, &parts.each_ref().map(String::as_str));
        let rate = known.get(&key).and_then(|fact| fact.value().get("success_rate")?.as_micro());
        if rate.is_some_and(|rate| rate.get() < 500_000) {
            skipped += 1;
            avoided += u64::from(!success);
        }
    }
    (skipped, avoided)
}

/// Runs a log. The policy without passes or retries must skip exactly what the facts imply.
fn check(name: &str) -> Option<(Source, Real)> {
    let source = Source { name: name.to_owned(), lines: real_log(name)?, too_long: 0 };
    let real = lab(|lab| {
        let real = ask(lab, &source, &mut |_, _| ()).unwrap();
        let frozen = &real.runs[0].counts;
        let direct = skipped_by_facts(lab, &source.lines, real.until.unwrap());
        assert_eq!((frozen.skipped, frozen.avoided), direct, "{name}");
        real
    });
    for run in &real.runs {
        assert_eq!(run.counts.avoided + run.counts.lost(), run.counts.skipped, "{name}");
        assert_eq!(run.counts.decisions, real.later.decisions, "{name}");
    }
    assert!(real.later.decisions > 0 && real.lines.refused == 0, "{name}");
    Some((source, real))
}

/// Runs the log again with its lines in another order.
fn check_twice(name: &str) {
    let Some((mut source, real)) = check(name) else { return };
    Python::new(3).shuffle(&mut source.lines);
    let again = lab(|lab| ask(lab, &source, &mut |_, _| ()).unwrap());
    assert_eq!(again.json(), real.json(), "{name}");
}

#[test]
fn a_language_models_tool_calls() {
    check_twice("tau_airline.jsonl");
}

#[test]
fn spans_of_agents() {
    check_twice("trail_otel.jsonl");
}

#[test]
fn skills_of_a_simulated_robot() {
    check("atomic_probe.jsonl");
}

#[test]
fn grasps_with_many_parameters() {
    check("biotac_grasp.jsonl.gz");
}
