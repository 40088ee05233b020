//! `may-attempt` and `suggest` from the command line.

use crate::store::{Store, vector};
use serde_json::{Value, json};

/// A store whose log begins with a rule set, with the events of a vector.
fn store(rules: &str, log: &str) -> Store {
    let store = Store::nothing();
    let manifest = vector("manifest/golden.toml");
    store.run(&["init", "--manifest", manifest.to_str().unwrap(), "--rules", rules]).fine();
    if !log.is_empty() {
        store.import(std::fs::read_to_string(vector(log)).unwrap()).fine();
    }
    store
}

/// Attempts of one day: how often each force was tried, and how often it worked.
fn forces(day: &str, tried: &[(u32, u32, u32)]) -> String {
    let attempt = |(force, n, worked): &(u32, u32, u32)| {
        let (force, worked) = (*force, *worked);
        (0..*n).map(move |at| {
            json!({"id": format!("{force}-{at}"), "source": "arm", "type": "execution_result",
                "time": format!("{day}T{:02}:{:02}:00Z", at / 60, at % 60),
                "data": {"skill_id": "grasp", "success": at < worked,
                    "params": {"force_n": force}}})
            .to_string()
        })
    };
    tried.iter().flat_map(attempt).collect::<Vec<_>>().join("\n")
}

const LAB: [&str; 7] =
    ["may-attempt", "--skill", "grasp", "--target", "cup", "--environment", "lab"];

#[test]
fn an_attempt_is_skipped_until_it_is_due() {
    let store = store("v2", "facts-v2/outage.events.jsonl");
    let ask = |more: &[&str]| store.run(&[&LAB[..], more].concat());
    let before = ["--now", "2024-10-24T10:58:59Z"];
    let due = ["--now", "2024-10-24T10:59:00Z"];
    let skipped = ask(&before).ended(1, &[]).out;
    assert!(skipped.starts_with("skip grasp + cup + lab (skip)"), "{skipped}");
    let words = skipped.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("at most 0.091, below 0.5"), "{words}");
    assert!(words.contains("Another one is due at 2024-10-24T10:59:00Z."), "{words}");
    assert!(ask(&due).ended(0, &[]).out.contains("(retry_due)"));
    assert!(ask(&[]).ended(0, &[]).out.contains("(retry_due)"), "the clock is past it");
    let low = ask(&[&before[..], &["--threshold", "0.09"]].concat()).ended(0, &[]).out;
    assert!(low.contains("(high_enough)"), "{low}");
    let quorum = ask(&[&before[..], &["--quorum"]].concat()).ended(0, &[]).out;
    assert!(quorum.contains("(no_robust)"), "{quorum}");
    let answer = ask(&[&before[..], &["--json"]].concat()).ended(1, &[]).json();
    assert_eq!((&answer["attempt"], &answer["reason"]), (&false.into(), &"skip".into()));
    assert_eq!(answer["fact"]["fact_key"], "grasp + cup + lab");
    assert_eq!((&answer["now"], &answer["threshold"]), (&before[1].into(), &0.5.into()));
    // Another key is another fact: there is no fallback.
    let other = store.run(&["may-attempt", "--skill", "grasp", "--json"]).ended(0, &[]).json();
    assert_eq!((&other["reason"], &other["fact"]), (&"no_fact".into(), &Value::Null));
}

#[test]
fn it_is_in_no_fact_and_no_text() {
    let store = store("v2", "facts-v2/outage.events.jsonl");
    let all = [&["facts", "--json"][..], &["facts", "--format", "grounding"], &["snapshot"]];
    for args in all {
        let out = store.run(args).fine().out;
        assert!(!out.contains("\"attempt\"") && !out.contains("skip"), "{out}");
    }
}

#[test]
fn under_v1_it_always_says_attempt_and_suggests_what_is_recommended() {
    let store = store("v1", "facts/glass_cup.events.jsonl");
    let cup = ["--skill", "manipulation.grasp", "--target", "glass_cup", "--environment"];
    let cup = [&cup[..], &["sim_relaxed"]].concat();
    let may = store.run(&[&["may-attempt", "--json"][..], &cup].concat()).ended(0, &[]).json();
    assert_eq!((&may["attempt"], &may["reason"]), (&true.into(), &"rules_v1".into()));
    let suggest = |param: &str| {
        let args = ["suggest", "--json", "--param", param, "--candidates", "20,30"];
        store.run(&[&args[..], &cup].concat()).fine().json()
    };
    let force = suggest("force_n");
    assert_eq!((&force["value"], &force["reason"]), (&25.into(), &"rules_v1".into()));
    assert_eq!(suggest("speed")["value"], Value::Null);
}

#[test]
fn a_suggestion_says_why_and_can_be_cited() {
    let store = store("v2", "");
    store.import(forces("2026-05-06", &[(25, 40, 38), (27, 9, 1)])).fine();
    let args = ["suggest", "--skill", "grasp", "--param", "force_n", "--candidates", "29,25,27"];
    let out = store.run(&args).fine().out;
    assert!(out.starts_with("try force_n = 29 for grasp + * + *"), "{out}");
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "25 was tried 40 times, 38 worked; 29 was never tried and could be better";
    assert!(words.contains(&format!("{why}.")), "{words}");
    assert!(words.contains("49 values since 2026-05-06"), "{words}");
    let answer = store.run(&[&args[..], &["--json"]].concat()).fine().json();
    assert_eq!((&answer["value"], &answer["why"]), (&29.into(), &why.into()));
    assert_eq!(answer["window"], json!({"n": 49, "since": "2026-05-06"}));
    assert_eq!((&answer["tried"], &answer["high"]), (&false.into(), &1.into()));
    // The consultation is the one that a query for this fact gives.
    let facts = ["facts", "--skill", "grasp", "--target", "*", "--environment", "*", "--kind"];
    let facts = [&facts[..], &["skill_success_rate", "--json"]].concat();
    let read = store.run(&facts).fine().json();
    assert_eq!(answer["consultation"]["fact_ids"][0], read["facts"][0]["fact_id"]);
    // A range is the same list.
    let range = ["suggest", "--skill", "grasp", "--param", "force_n", "--json", "--from", "25"];
    let range = [&range[..], &["--to", "29.9", "--step", "2"]].concat();
    assert_eq!(store.run(&range).fine().json(), answer);
    // Events behind the newest pass that wrote its sums are counted too.
    let more = forces("2026-05-07", &[(29, 9, 0)]).replace("\"29-", "\"later-");
    store.import(more).fine();
    let later = store.run(&[&args[..], &["--json"]].concat()).fine().json();
    assert_eq!((&later["value"], &later["window"]["n"]), (&25.into(), &58.into()));
}

#[test]
fn wrong_questions_are_refused_and_change_nothing() {
    let store = store("v2", "");
    let grasp = ["suggest", "--skill", "grasp", "--param", "force_n"];
    let many = (0..300).map(|it| it.to_string()).collect::<Vec<_>>().join(",");
    let cases: [(&[&str], &[&str]); 9] = [
        (&[], &["bad_candidates", "--candidates", "--ecm-registry"]),
        (&["--candidates", ""], &["there is no candidate"]),
        (&["--candidates", "1,x"], &["`x` is no number"]),
        (&["--candidates", "20001,20002"], &["equal to four significant digits"]),
        (&["--candidates", &many], &["more than 256"]),
        (&["--from", "1", "--to", "9", "--step", "0"], &["bad_candidates", "step"]),
        (&["--from", "1", "--to", "9"], &["--step"]),
        (&["--candidates", "1", "--from", "1", "--to", "9", "--step", "1"], &["cannot be used"]),
        (&["--candidates", "1,2", "--prefer", "1e99"], &["--prefer"]),
    ];
    for (args, words) in cases {
        store.run(&[&grasp[..], args].concat()).ended(2, words);
    }
    for (args, words) in [
        (&["--threshold", "1.1"][..], "from 0 to 1"),
        (&["--now", "tomorrow"], "2026-05-06T10:00:00Z"),
    ] {
        store.run(&[&LAB[..], args].concat()).ended(2, &[words]);
    }
    store.run(&["may-attempt"]).ended(2, &["--skill"]);
    let negative = ["--candidates", "-5,0,5"];
    let found = store.run(&[&grasp[..], &negative, &["--json"]].concat()).fine().json();
    assert_eq!(found["value"], 0, "nothing is known: the middle");
}
