//! For any content of an intent or an attempt, the trail ends, and its JSON is canonical.

use crate::log::{Log, ME, grasp};
use ipse_consult::facts::Filter;
use ipse_consult::trail::{Found, Listing, Trail};
use ipse_core::json_parse;
use proptest::prelude::*;

/// A JSON value with names that a trail reads.
fn value() -> impl Strategy<Value = String> {
    let words = [
        "null",
        "true",
        "7",
        "-1",
        "1e300",
        "40",
        "\"\"",
        "\"admitted\"",
        "\"denied\"",
        "\"needs_confirmation\"",
        "\"audit\"",
        "\"verified\"",
        "\"v1\"",
        "\"\u{202e}x\"",
        "\"fa_00000000000000000000000000000000\"",
        "\"ev_00000000000000000000000000000000\"",
    ];
    let leaf = proptest::sample::select(words.to_vec()).prop_map(str::to_owned);
    let names = proptest::sample::select(
        &[
            "gate",
            "result",
            "findings",
            "code",
            "detail",
            "checkpoint",
            "fact_ids",
            "query",
            "rule_version",
            "limit",
            "kind",
            "force_n",
            "intent",
        ][..],
    );
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let members = proptest::collection::btree_map(names.clone(), inner.clone(), 0..4);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
            members.prop_map(|all| {
                let all: Vec<_> = all.iter().map(|(name, it)| format!("\"{name}\":{it}")).collect();
                format!("{{{}}}", all.join(","))
            }),
        ]
    })
}

/// The members of an intent, each valid or arbitrary.
fn data() -> impl Strategy<Value = String> {
    let log = lived();
    let said = log.consult(&Filter::default());
    let good: serde_json::Value = serde_json::from_str(&grasp("clamped", Some(&said))).unwrap();
    let good: Vec<(String, String)> =
        good.as_object().unwrap().iter().map(|(n, v)| (n.clone(), v.to_string())).collect();
    let member = move |(name, it): (String, String)| {
        prop_oneof![
            4 => Just(Some(format!("\"{name}\":{it}"))),
            1 => Just(None),
            2 => value().prop_map(move |it| Some(format!("\"{name}\":{it}"))),
        ]
    };
    let members: Vec<_> = good.into_iter().map(member).collect();
    members
        .prop_map(|all| format!("{{{}}}", all.into_iter().flatten().collect::<Vec<_>>().join(",")))
}

fn lived() -> Log {
    let mut log = Log::default();
    for n in 0..6 {
        log.attempt(&format!(r#"{{"skill_id":"s","zone":"z","success":{}}}"#, n % 2 == 0));
    }
    log
}

proptest! {
    #[test]
    fn anything_may_stand_there(
        data in data(),
        acted in value(),
        params in value(),
        decision in value(),
    ) {
        let mut log = lived();
        let intent = log.intent(&data);
        let decision = format!(r#"{{"intent":"{intent}","decision":{decision}}}"#);
        let decided =
            log.push("ipse", &format!("confirm:{intent}"), "ipse.confirmation", &decision);
        let attempt = log.attempt(&format!(
            r#"{{"intent":"{intent}","params":{params},"skill_id":{acted},"env":{acted}}}"#
        ));
        for name in [intent, decided, attempt] {
            let listing = Listing { evidence: 3, page: 1 };
            let Found::Action(trail) = Trail::of(&log, &ME, &name, listing).unwrap() else {
                panic!("no action");
            };
            let json = trail.json();
            let value = json_parse::parse(json.as_bytes(), 64).unwrap();
            let mut canonical = String::new();
            value.write(&mut canonical);
            prop_assert_eq!(&canonical, &json);
            let page = trail.text();
            let control = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            prop_assert!(!page.contains(control), "{page:?}");
            prop_assert!(page.lines().all(|line| line.chars().count() < 600));
        }
    }
}
