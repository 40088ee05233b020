//! Consultations in trails: verified, unverified and forgotten ones; proofs.

use crate::log::{Log, ME, grasp, signer};
use ipse_consult::Consultation;
use ipse_consult::facts::Filter;
use ipse_consult::trail::{Found, Listing, Trail};
use ipse_core::{EventRef, Seq};
use ipse_ledger::{ProofFile, TreeHead};
use serde_json::{Value, json};

/// Attempts with a glass cup, so that there are facts.
fn lived(n: u64) -> Log {
    let mut log = Log::default();
    for n in 0..n {
        let (force, worked) = if n % 5 == 4 { (15, false) } else { (25, true) };
        log.attempt(&format!(
            r#"{{"skill_id":"manipulation.grasp","target_class":"glass_cup","environment":"ward3",
            "zone":"dock","failure_reason":"slip","params":{{"force_n":{force}}},
            "success":{worked}}}"#
        ));
    }
    log
}

fn cups() -> Filter {
    Filter { target: Some("glass_cup".to_owned()), limit: Some(2), ..Filter::default() }
}

fn ids(consultation: &Consultation) -> Vec<Value> {
    let json: Value = serde_json::from_str(&consultation.json).unwrap();
    json["fact_ids"].as_array().unwrap().clone()
}

#[test]
fn a_true_consultation_is_verified_and_its_facts_are_those_of_then() {
    let mut log = lived(15);
    let said = log.consult(&cups());
    let then = log.facts();
    let intent = log.intent(&grasp("clamped", Some(&said)));
    let more: Vec<String> = lived(9).facts().iter().map(|it| it.fact.value.clone()).collect();
    for _ in 0..9 {
        log.attempt(
            r#"{"skill_id":"manipulation.grasp","target_class":"glass_cup",
            "environment":"ward3","success":false}"#,
        );
    }
    let json = log.json(&intent);
    let reported = &json["consultation"];
    assert_eq!(reported["consultation_id"], said.id());
    assert_eq!(reported["consultation"], serde_json::from_str::<Value>(&said.json).unwrap());
    assert_eq!((&reported["recorded"], &reported["now"]), (&json!("verified"), &json!("verified")));
    assert_eq!(reported["missing_fact_ids"], json!([]));
    let facts = json["facts"].as_array().unwrap();
    assert_eq!(facts.iter().map(|it| it["fact_id"].clone()).collect::<Vec<_>>(), ids(&said));
    assert_eq!(facts.len(), 2);
    for fact in facts {
        let mut fact = fact.clone();
        let evidence = fact.as_object_mut().unwrap().remove("evidence").unwrap();
        let total = fact.as_object_mut().unwrap().remove("evidence_total").unwrap();
        let same = |it: &&std::sync::Arc<ipse_consult::facts::ScoredFact>| {
            it.said(&ME).id == fact["fact_id"].as_str().unwrap()
        };
        let known = then.iter().find(same).unwrap();
        let said: Value = serde_json::from_str(&known.said(&ME).json).unwrap();
        assert_eq!(fact, said, "as in the answer to the planner");
        assert!(!more.contains(&known.fact.value));
        assert_eq!(total, fact["n_observations"]);
        let seqs: Vec<u64> =
            evidence.as_array().unwrap().iter().map(|it| it["seq"].as_u64().unwrap()).collect();
        assert!(seqs.is_sorted_by(|a, b| a > b), "newest first: {seqs:?}");
        assert!(seqs.iter().all(|seq| *seq <= 15), "none from later: {seqs:?}");
        assert_eq!(seqs.len() as u64, total.as_u64().unwrap().min(10));
    }
}

#[test]
fn a_trail_shows_which_part_of_the_consultation_the_planner_gave() {
    let mut log = lived(15);
    let said = log.consult(&cups());
    let whole = grasp("clamped", Some(&said));
    let with = |basis: &str| {
        whole.replacen("\"consultation_id\"", &format!("{basis}\"consultation_id\""), 1)
    };
    for (basis, want) in [
        ("", None),
        ("\"consultation_basis\":\"query\",", Some("query: ipse derived the facts from ")),
        ("\"consultation_basis\":\"x\\u001b\",", Some("unknown: x\\u001b")),
    ] {
        let intent = log.intent(&with(basis));
        let (json, text) = (log.json(&intent), log.trail(&intent).text());
        assert_eq!(json["consultation"]["now"], "verified", "{basis}");
        let recorded = json["consultation"].get("consultation_basis").is_some();
        assert_eq!(recorded, want.is_some(), "{basis}");
        match want {
            None => assert!(!text.contains("basis "), "{text}"),
            Some(want) => assert!(text.contains(&format!("  basis      {want}")), "{text}"),
        }
    }
}

#[test]
fn forged_stale_and_forgotten_consultations_are_distinguished() {
    let mut log = lived(15);
    let said = log.consult(&cups()).json;
    let swap = |from: &str, to: &str| {
        let json = said.replace(from, to);
        assert_ne!(json, said);
        Some(Consultation { json })
    };
    let first = ids(&Consultation { json: said.clone() })[0].to_string();
    let other = "\"fa_00000000000000000000000000000000\"";
    for (forged, missing, facts) in [
        (swap(&first, other), 1, 1),
        (swap(&format!("{first},"), ""), 0, 1),
        (swap(&format!("{first},"), &format!("{first},{first},")), 0, 2),
        (swap("\"checkpoint\":15", "\"checkpoint\":14"), 0, 2),
        (swap("\"checkpoint\":15", "\"checkpoint\":99"), 2, 0),
        (swap("\"checkpoint\":15", "\"checkpoint\":0"), 2, 0),
        (swap("\"v1\"", "\"v2\""), 2, 0),
        (swap("\"limit\":2", "\"limit\":1"), 0, 2),
    ] {
        let forged = forged.unwrap();
        let unchanged = forged.json.contains("\"checkpoint\":14");
        let intent = log.intent(&grasp("admitted", Some(&forged)));
        let json = log.json(&intent);
        // One event earlier the fact ids are the same, so the claim is verified.
        let want = if unchanged { "verified" } else { "unverified" };
        assert_eq!(json["consultation"]["now"], want, "{}", forged.json);
        assert_eq!(json["consultation"]["recorded"], "verified", "as recorded");
        let count = |list: &Value| list.as_array().unwrap().len();
        assert_eq!(count(&json["consultation"]["missing_fact_ids"]), missing, "{}", forged.json);
        assert_eq!(count(&json["facts"]), facts, "{}", forged.json);
    }
    for echoed in ["7", "\"co_1\"", "[]", "{}", "{\"checkpoint\":15}"] {
        let data = grasp("admitted", Some(&Consultation { json: echoed.to_owned() }));
        let intent = log.intent(&data);
        let json = log.json(&intent);
        assert_eq!(json["consultation"]["consultation_id"], Value::Null, "{echoed}");
        assert_eq!(json["consultation"]["now"], "unverified");
        assert_eq!(json["consultation"]["consultation"].to_string(), echoed);
    }
    // A planner cannot have read what came after its intent.
    let intent =
        log.intent(&grasp("admitted", swap("\"checkpoint\":15", "\"checkpoint\":99").as_ref()));
    while log.len() < 120 {
        log.attempt("{}");
    }
    assert_eq!(log.json(&intent)["consultation"]["now"], "unverified");
    assert_eq!(log.json(&intent)["facts"], json!([]));
}

#[test]
fn what_was_forgotten_since_is_said() {
    let mut log = lived(4);
    let dock = log.push("arm", "d", "incident", "{\"zone\":\"ramp\"}");
    for _ in 0..2 {
        log.push("arm", &format!("r{}", log.len()), "incident", "{\"zone\":\"ramp\"}");
    }
    let early = log.intent(&grasp("admitted", None));
    log.forget(&early);
    let all = Filter::default();
    let said = log.consult(&all);
    assert!(ids(&said).len() >= 3, "{}", said.json);
    let intent = log.intent(&grasp("admitted", Some(&said)));
    let forged = said
        .json
        .replace("\"fact_ids\":[", "\"fact_ids\":[\"fa_00000000000000000000000000000000\",");
    let forged = log.intent(&grasp("admitted", Some(&Consultation { json: forged })));
    assert_eq!(log.json(&forged)["consultation"]["now"], "unverified", "that was forgotten before");
    let now = |log: &Log| log.json(&intent)["consultation"]["now"].clone();
    let silent = log.intent(&grasp("admitted", None));
    log.forget(&silent);
    assert_eq!(now(&log), "verified");
    assert_eq!(log.json(&forged)["consultation"]["now"], "unverified", "an intent feeds no fact");
    let later = log.attempt("{}");
    log.forget(&later);
    assert_eq!(log.json(&forged)["consultation"]["now"], "unverified", "that came later");
    log.forget(&dock);
    assert_eq!(now(&log), "forgotten since", "the names are the same, and values may be others");
    for seq in [6, 7] {
        let name = EventRef::new("arm", &format!("r{}", seq - 1));
        log.forget(&name);
    }
    assert_eq!(now(&log), "forgotten since");
    let json = log.json(&intent);
    assert_eq!(json["consultation"]["missing_fact_ids"].as_array().unwrap().len(), 1);
    assert_eq!(json["facts"].as_array().unwrap().len(), ids(&said).len() - 1);
}

#[test]
fn an_intent_without_consultation_says_so() {
    let mut log = lived(3);
    let intent = log.grasp("admitted");
    let json = log.json(&intent);
    assert_eq!((&json["consultation"], &json["facts"]), (&Value::Null, &json!([])));
    assert!(!log.asked.borrow().contains(&"facts_at"), "nothing is derived for that");
}

#[test]
fn every_event_that_is_named_is_proven_or_said_not_to_be() {
    let mut log = lived(15);
    let said = log.consult(&cups());
    let intent = log.intent(&grasp("needs_confirmation", Some(&said)));
    let decided = log.decide(&intent, "confirmed");
    let attempt = log.attempt(&format!(r#"{{"intent":"{intent}","success":true}}"#));
    for signed in [0, 1, 9, 15, 16, 17, log.len()] {
        log.signed = Some(signed);
        let json = log.json(&attempt);
        let mut named = vec![intent.to_string(), decided.to_string(), attempt.to_string()];
        for fact in json["facts"].as_array().unwrap() {
            let evidence = fact["evidence"].as_array().unwrap().iter();
            named.extend(evidence.map(|it| it["event_ref"].as_str().unwrap().to_owned()));
        }
        named.sort();
        named.dedup();
        let (mut reported, mut last) = (Vec::new(), None);
        for proof in json["proofs"].as_array().unwrap() {
            let text = |name: &str| proof[name].as_str().unwrap();
            let file = ProofFile::parse(text("proof")).unwrap();
            let keys = [signer().public()];
            let head =
                file.verify(text("entry").as_bytes(), &TreeHead::origin_of(&ME), &keys).unwrap();
            assert_eq!((head.size, Some(file.index)), (signed, proof["index"].as_u64()));
            let entry = ipse_ledger::Entry::parse(text("entry").as_bytes()).unwrap();
            assert_eq!(entry.event_ref.to_string(), text("event_ref"));
            assert_eq!(entry.seq, Seq(file.index + 1));
            assert!(last < Some(file.index), "by position");
            last = Some(file.index);
            reported.push(text("event_ref").to_owned());
        }
        let unproven = json["unproven"].as_array().unwrap().iter();
        reported.extend(unproven.map(|name| name.as_str().unwrap().to_owned()));
        reported.sort();
        assert_eq!(reported, named, "under a head of {signed}");
    }
}

#[test]
fn evidence_is_listed_as_much_as_is_wanted() {
    let mut log = lived(40);
    let said = log.consult(&cups());
    let intent = log.intent(&grasp("admitted", Some(&said)));
    for (wanted, want) in [(1, 1), (7, 7), (100, 40), (5000, 40)] {
        let Found::Action(trail) =
            Trail::of(&log, &ME, &intent, Listing { evidence: wanted, page: 1 }).unwrap()
        else {
            panic!("no action");
        };
        let json: Value = serde_json::from_str(&trail.json()).unwrap();
        let most = json["facts"].as_array().unwrap().iter();
        let most = most.map(|it| it["evidence"].as_array().unwrap().len()).max();
        assert_eq!(most, Some(want));
    }
}

#[test]
fn facts_come_in_pages_and_with_them_their_evidence_and_proofs() {
    let mut log = Log::default();
    for number in 0..3 {
        let object: Vec<String> = (0..40).map(|n| format!("\"p{number}_{n:02}\":{n}")).collect();
        let object = object.join(",");
        log.attempt(&format!(r#"{{"target_class":"shelf","success":true,"object":{{{object}}}}}"#));
    }
    let said = log.consult(&Filter { limit: Some(1000), ..Filter::default() });
    let intent = log.intent(&grasp("admitted", Some(&said)));
    let mut reported = Vec::new();
    for (page, count, next, events, place) in [
        (1, 50, json!(2), 3, "facts 1 to 50 of 120; continued on page 2"),
        (2, 50, json!(3), 3, "facts 51 to 100 of 120; continued on page 3"),
        (3, 20, Value::Null, 2, "facts 101 to 120 of 120"),
        (4, 0, Value::Null, 1, "no facts on this page, 120 in total"),
        (usize::MAX, 0, Value::Null, 1, "no facts on this page, 120 in total"),
    ] {
        let listing = Listing { page, ..Listing::default() };
        let Found::Action(trail) = Trail::of(&log, &ME, &intent, listing).unwrap() else {
            panic!("no action");
        };
        assert!(trail.text().contains(place), "{}", trail.text());
        let json: Value = serde_json::from_str(&trail.json()).unwrap();
        let facts = json["facts"].as_array().unwrap();
        assert_eq!((facts.len(), &json["next_page"]), (count, &next), "page {page}");
        reported.extend(facts.iter().map(|fact| fact["fact_id"].clone()));
        // The proven events are the listed ones: the intent, and the evidence of these facts.
        let named = json["proofs"].as_array().unwrap().len();
        let named = named + json["unproven"].as_array().unwrap().len();
        assert_eq!(named, events, "page {page}");
        assert_eq!(json["consultation"]["now"], "verified", "page {page}");
        assert_eq!(json["consultation"]["missing_fact_ids"], json!([]), "page {page}");
    }
    assert_eq!(reported, ids(&said), "each once, in the order of the consultation");
}
