//! Chance: whatever comes in, nothing panics, and what comes out is what it must be.
//!
//! These are the fuzz tests: random bytes, files and intents with slips of the pen, and worlds made
//! up from whole rules, which an oracle judges too.

use super::fixture::{POLICY, REGISTRY, TEMPERAMENT, gates};
use super::mutate::{Slip, slipped, slips};
use super::oracle::Oracle;
use ipse_core::json_parse::parse;
use ipse_gates::{
    FileError, GateFile, Gates, Intent, Past, Policy, Registry, Ruling, Temperament, Verdict,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const INTENTS: [&str; 5] = [
    r#"{"skill_id":"arm.grasp","target_class":"cup","environment":"ward","params":{"force_n":35,
        "retries":5,"grip":"soft","gentle":true,"note":"mind the rim","offset_m":-2.5}}"#,
    r#"{"skill_id":"arm.grasp","target_class":"tray","environment":"lab","params":{"force_n":99}}"#,
    r#"{"skill_id":"arm.throw","params":{"force_n":12.5},"consultation":{"checkpoint":7,
        "fact_ids":["fa_0"],"query":{"limit":20},"rule_version":"v1"}}"#,
    r#"{"skill_id":"arm.wave","params":{"times":4}}"#,
    r#"{"skill_id":"arm.hit"}"#,
];

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Errors have a place in the file, in order, and words.
fn check_errors(text: &str, errors: &[FileError]) {
    assert!(!errors.is_empty() && errors.len() <= 64);
    let lines = text.matches('\n').count() + 1;
    assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)), "{errors:?}");
    assert!(errors.is_sorted_by_key(|error| error.line), "{errors:?}");
    assert!(errors.iter().all(|error| !error.message.is_empty()));
    assert!(errors.iter().all(|error| !error.field.chars().any(char::is_control)));
}

fn parse_all(text: &str) {
    let _ = GateFile::of(text);
    let errors = [
        Registry::parse(text).map(|it| it.holds()).err(),
        Policy::parse(text).map(|it| it.holds()).err(),
        Temperament::parse(text).map(|it| it.holds()).err(),
    ];
    assert!(errors.iter().filter(|errors| errors.is_none()).count() <= 1, "one kind at most");
    errors.iter().flatten().for_each(|errors| check_errors(text, errors));
}

/// What must hold of every verdict.
fn check_verdict(verdict: &Verdict) {
    let gates: Vec<String> = verdict.gates().collect();
    for json in gates.iter().cloned().chain(verdict.admitted_params()) {
        let mut canonical = String::new();
        parse(json.as_bytes(), 8).unwrap().write(&mut canonical);
        assert_eq!(json, canonical);
    }
    assert!(gates.iter().all(|json| json.len() <= 4096), "{gates:?}");
    assert_eq!(verdict.admitted_params().is_none(), verdict.ruling == Ruling::Denied);
    let gravest = verdict.ran().iter().map(|gate| gate.ruling).max();
    assert_eq!(gravest, Some(verdict.ruling));
    for gate in verdict.ran() {
        let known = gate.findings.iter().map(|finding| finding.code.ruling()).max();
        assert!(known.unwrap_or(Ruling::Admitted) <= gate.ruling);
        assert_eq!(gate.findings.is_empty(), gate.ruling == Ruling::Admitted);
    }
    assert!(!verdict.summary().is_empty());
}

fn judge_all(gates: &Gates, recent: u64) {
    for body in INTENTS {
        let intent = Intent::read(body.as_bytes()).unwrap();
        let verdict = gates.judge(&intent, &Past::counted(recent));
        check_verdict(&verdict);
        assert_eq!(verdict, gates.judge(&intent, &Past::counted(recent)), "the same again");
    }
}

/// A file with slips, which other readers would take as text.
fn slipped_text(text: &str, slips: &[Slip]) -> String {
    String::from_utf8_lossy(&slipped(text, slips)).into_owned()
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn any_text_is_a_file_or_has_errors(text in "\\PC{0,40}", bytes: Vec<u8>) {
        parse_all(&text);
        parse_all(&String::from_utf8_lossy(&bytes));
        parse_all(&format!("format = \"ipse-policy/1\"\n{text}"));
    }

    #[test]
    fn any_bytes_are_an_intent_or_are_refused(bytes: Vec<u8>, text in "\\PC{0,40}") {
        let _ = Intent::read(&bytes);
        let _ = Intent::read(text.as_bytes());
    }

    #[test]
    fn a_file_with_slips_is_read_or_has_errors(slips in slips(), which in 0_usize..3, recent: u64) {
        let mut files = [REGISTRY, POLICY, TEMPERAMENT].map(ToString::to_string);
        let file = &mut files[which];
        *file = slipped_text(file, &slips);
        parse_all(file);
        let [registry, policy, temperament] = &files;
        match Gates::new(registry, policy, temperament) {
            Ok(gates) => judge_all(&gates, recent),
            Err(errors) => prop_assert!(!errors.is_empty()),
        }
    }

    #[test]
    fn an_intent_with_slips_is_judged_or_refused(
        slips in slips(),
        which in 0..INTENTS.len(),
        recent in 0_u64..5,
    ) {
        let body = slipped(INTENTS[which], &slips);
        if let Ok(intent) = Intent::read(&body) {
            check_verdict(&gates().judge(&intent, &Past::counted(recent)));
        }
    }
}

/// A number on a coarse grid, so that bounds are hit exactly, with finer ones between.
fn grid() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1_i32..=15).prop_map(|n| f64::from(n) * 10.0),
        (-10_i32..=150).prop_map(|n| f64::from(n) + 0.000_001),
    ]
}

fn scope() -> impl Strategy<Value = String> {
    let one = |name: &'static str, values: [&'static str; 2]| {
        proptest::option::of(proptest::sample::select(values.to_vec()))
            .prop_map(move |it| it.map(|it| format!(", {name} = \"{it}\"")).unwrap_or_default())
    };
    (one("target_class", ["cup", "tray"]), one("environment", ["ward", "lab"]))
        .prop_map(|(target, place)| target + &place)
}

/// One end of a range, or both, under these names; the ends overlap a little, so that some worlds
/// contradict themselves.
fn range(low: &'static str, high: &'static str) -> impl Strategy<Value = String> {
    let end = |name, tens: std::ops::RangeInclusive<i32>| {
        let fine = proptest::sample::select(vec![0.0, 0.000_001, 5.0]);
        (tens, fine)
            .prop_map(move |(tens, fine)| format!(", {name} = {:?}", f64::from(tens) * 10.0 + fine))
    };
    let (low, high) = (end(low, 0..=5), end(high, 5..=13));
    (low, high, 0..4).prop_map(|(low, high, which)| match which {
        0 => low,
        1 => high,
        _ => low + &high,
    })
}

/// A forbidden range anywhere, often narrow, so that clamps lead into it and out of it.
fn forbidden_range() -> impl Strategy<Value = String> {
    (0..=13, 0..=3, 0..6, scope()).prop_map(|(from, width, open, scope)| {
        let from_text = if open == 0 { String::new() } else { format!(", from = {}", from * 10) };
        let to = if open == 1 { String::new() } else { format!(", to = {}", (from + width) * 10) };
        format!("{{ param = \"force_n\"{from_text}{to}{scope} }}")
    })
}

/// A rule about the force with bounds under these names.
fn rule(low: &'static str, high: &'static str) -> impl Strategy<Value = String> {
    (range(low, high), scope())
        .prop_map(|(range, scope)| format!("{{ param = \"force_n\"{range}{scope} }}"))
}

fn value_rule() -> impl Strategy<Value = String> {
    let values =
        ["grip\", equals = \"firm\"", "grip\", equals = \"soft\"", "gentle\", equals = true"];
    (proptest::sample::select(values.to_vec()), scope())
        .prop_map(|(value, scope)| format!("{{ param = \"{value}{scope} }}"))
}

/// A policy and a temperament about grasping; not all of them can be read.
fn world() -> impl Strategy<Value = (String, String)> {
    let clamps = proptest::collection::vec(rule("min", "max"), 0..4);
    let forbids =
        proptest::collection::vec(prop_oneof![3 => forbidden_range(), 1 => value_rule()], 0..3);
    let checks = proptest::collection::vec(
        prop_oneof![2 => rule("below", "above"), 1 => value_rule()],
        0..3,
    );
    (clamps, forbids, checks, 0..=10_u32).prop_map(|(clamps, forbids, checks, appetite)| {
        let policy = format!(
            "format = \"ipse-policy/1\"\nunlisted_skills = \"deny\"\n[skills.\"arm.grasp\"]\n\
             rate_limit = {{ intents = 4, seconds = 9 }}\nclamp = [{}]\nforbid = [{}]\n",
            clamps.join(", "),
            forbids.join(", ")
        );
        let checks: Vec<String> = checks
            .iter()
            .map(|check| check.replacen('{', "{ skill_id = \"arm.grasp\",", 1))
            .collect();
        let temperament = format!(
            "format = \"ipse-temperament/1\"\nrisk_appetite = {}\nethical_floor = 0.4\n\
             human_check = [{}]\n",
            f64::from(appetite) / 10.0,
            checks.join(", ")
        );
        (policy, temperament)
    })
}

/// A grasp; the force comes last.
fn grasp() -> impl Strategy<Value = String> {
    let target = proptest::sample::select(vec!["cup", "tray", "tray", "moon"]);
    let place = proptest::sample::select(vec!["ward", "lab", "lab"]);
    let more = proptest::sample::select(vec![
        "",
        "\"grip\":\"firm\",",
        "\"grip\":\"soft\",\"gentle\":true,",
        "\"gentle\":false,\"retries\":3,",
        "\"retries\":2.5,",
    ]);
    (target, place, more).prop_map(|(target, place, more)| {
        format!(
            "{{\"skill_id\":\"arm.grasp\",\"target_class\":\"{target}\",\
             \"environment\":\"{place}\",\"params\":{{{more}\"force_n\":"
        )
    })
}

fn judged(gates: &Gates, body: &str, recent: u64) -> Verdict {
    gates.judge(&Intent::read(body.as_bytes()).unwrap(), &Past::counted(recent))
}

/// Parameters with numbers as one text, however they were written.
fn comparable(params: BTreeMap<String, serde_json::Value>) -> BTreeMap<String, String> {
    let text = |value: serde_json::Value| {
        value.as_f64().map_or(value.to_string(), |number| number.to_string())
    };
    params.into_iter().map(|(name, value)| (name, text(value))).collect()
}

fn force(verdict: &Verdict) -> Option<f64> {
    let params: serde_json::Value = serde_json::from_str(&verdict.admitted_params()?).unwrap();
    params["force_n"].as_f64()
}

proptest! {
    #![proptest_config(cases(8000))]

    /// What is admitted, and why not, as the oracle has it; and a greater wish never gets less.
    #[test]
    fn the_oracle_agrees(
        (policy, temperament) in world(),
        grasp in grasp(),
        one in grid(),
        other in grid(),
        recent in 0_i64..6,
    ) {
        let Ok(gates) = Gates::new(REGISTRY, &policy, &temperament) else { return Ok(()) };
        let oracle = Oracle::new(REGISTRY, &policy, &temperament);
        let mut forces = BTreeMap::new();
        for asked in [one, other] {
            let body = format!("{grasp}{asked:?}}}}}");
            let verdict = judged(&gates, &body, recent.unsigned_abs());
            check_verdict(&verdict);
            let (ruling, params) = oracle.judge(&serde_json::from_str(&body).unwrap(), recent);
            prop_assert_eq!(verdict.ruling.name(), ruling, "{}\n{}\n{}", body, policy, temperament);
            let ours = verdict.admitted_params().map(|json| {
                let all: BTreeMap<String, serde_json::Value> = serde_json::from_str(&json).unwrap();
                comparable(all)
            });
            let theirs = params.map(comparable);
            prop_assert_eq!(ours, theirs, "{}\n{}", body, policy);
            forces.insert(asked.to_bits(), (asked, force(&verdict)));
        }
        let mut forces: Vec<_> = forces.into_values().collect();
        forces.sort_by(|a, b| a.0.total_cmp(&b.0));
        let admitted: Vec<f64> = forces.iter().filter_map(|(_, force)| *force).collect();
        prop_assert!(admitted.is_sorted(), "{:?}", forces);
    }
}

/// The worlds above are worth something only if most can be read and all rulings occur.
#[test]
fn the_made_up_worlds_are_not_empty() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut rulings: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..2000 {
        let (policy, temperament) = world().new_tree(&mut runner).unwrap().current();
        let ruling = Gates::new(REGISTRY, &policy, &temperament).map(|gates| {
            let (grasp, asked) = (grasp(), grid()).new_tree(&mut runner).unwrap().current();
            judged(&gates, &format!("{grasp}{asked:?}}}}}"), 0).ruling.name()
        });
        *rulings.entry(ruling.unwrap_or("unread")).or_default() += 1;
    }
    let count = |name| rulings.get(name).copied().unwrap_or(0);
    assert!(count("unread") < 600, "{rulings:?}");
    for ruling in Ruling::ALL {
        assert!(count(ruling.name()) > 50, "{rulings:?}");
    }
}
