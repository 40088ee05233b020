//! Attacks on ipse's records of intents: verdicts, decisions, types.

use super::{Attack, Case, refused};
use crate::forge::{decision, gates, house, intent, intent_data, time_text, week};
use ipse_core::json::Members;
use ipse_core::{Admitted, EventRef};

/// A week, then these events; the first is at seq 65.
fn with(events: &[Admitted]) -> Case {
    let mut log = week();
    for event in events {
        log.push(event);
    }
    Case::of(log.draft().pack())
}

/// A week with an intent that a server does not write.
fn with_intent(data: Members) -> Case {
    with(&[intent(65, data)])
}

/// A week with an intent with changed data.
fn changed(verdict: &str, from: &str, to: &str) -> Case {
    let data = intent_data(verdict).finish();
    assert!(data.contains(from), "{from} is not in {data}");
    with(&[house(65, &id(65), "intent", &data.replacen(from, to, 1))])
}

/// A week with an intent under another id.
fn named(id: &str) -> Case {
    with(&[house(65, id, "intent", &intent_data("admitted").finish())])
}

fn id(n: u64) -> String {
    format!("intent:{n:032x}")
}

/// A verdict over these results.
fn verdict(word: &str, results: &[&str]) -> Case {
    let own = intent_data(word).finish();
    let (before, rest) = own.split_once("\"gates\":").unwrap();
    let after = rest.split_once("\"none\"}]").unwrap().1;
    let data = format!("{before}\"gates\":{}{after}", gates(results));
    with(&[house(65, &id(65), "intent", &data)])
}

/// An intent that waits, until `minutes` after it if given.
fn waiting(minutes: Option<u64>) -> Admitted {
    let by = minutes.map(|minutes| time_text(65 + minutes));
    intent(65, intent_data("needs_confirmation").optional("confirm_by", by))
}

/// A decision with other data about an intent that waits.
fn decided(data: &str) -> Case {
    let waiting = waiting(None);
    let name = waiting.event_ref;
    let data = data.replace("REF", &name.to_string());
    with(&[waiting, house(66, &format!("confirm:{name}"), "ipse.confirmation", &data)])
}

const INTENT: &str = "intent at seq 65";
const GRAVEST: &str = "its verdict is not the most severe";
const GATES: &str = "its gates are not";
const UNREADABLE: &str = "cannot be read";
const DECISION: &str = "confirmation at seq 66";
const NO_INTENT: &str = "is not an earlier intent that waited";

/// The data of an intent with a consultation.
fn consulted() -> Members {
    let consultation = r#"{"checkpoint":0,"fact_ids":[],"query":{},"rule_version":"v1"}"#;
    let data = intent_data("admitted").raw("consultation", consultation);
    data.text("consultation_id", "co_00000000000000000000000000000000")
}

pub const ATTACKS: &[Attack] = &[
    refused("admitted over a denied gate", INTENT, GRAVEST, || {
        verdict("admitted", &["passed", "denied"])
    }),
    refused("admitted over a clamp", INTENT, GRAVEST, || {
        verdict("admitted", &["passed", "clamped", "passed"])
    }),
    refused("clamped over a wait", INTENT, GRAVEST, || {
        verdict("clamped", &["passed", "clamped", "needs_confirmation"])
    }),
    refused("denied over gates that passed", INTENT, GRAVEST, || {
        verdict("denied", &["passed", "passed", "passed"])
    }),
    refused("admitted without the contract", INTENT, GATES, || {
        verdict("admitted", &["passed", "passed"])
    }),
    refused("admitted without a gate", INTENT, GATES, || verdict("admitted", &[])),
    refused("a gate behind one that denied", INTENT, GATES, || {
        verdict("denied", &["denied", "passed", "passed"])
    }),
    refused("a result of another gate", INTENT, GATES, || {
        verdict("clamped", &["clamped", "passed", "passed"])
    }),
    refused("a result that no gate has", INTENT, GATES, || {
        verdict("admitted", &["passed", "fine", "passed"])
    }),
    refused("an audit that no audit says", INTENT, GATES, || {
        changed("admitted", "\"none\"", "\"passed\"")
    }),
    refused("gates in another order", INTENT, GATES, || {
        changed("admitted", "\"gate\":\"policy\"", "\"gate\":\"contract\"")
    }),
    refused("denied with parameters", INTENT, "must have admitted_params if", || {
        with_intent(intent_data("denied").raw("admitted_params", "{}"))
    }),
    refused("admitted without parameters", INTENT, "must have admitted_params if", || {
        changed("admitted", "\"admitted_params\":{\"force_n\":24},", "")
    }),
    refused("a time limit without a wait", INTENT, "has confirm_by but does not wait", || {
        with_intent(intent_data("admitted").raw("confirm_by", time_text(70)))
    }),
    refused("intent with a short id", INTENT, "its id is not intent:", || named("intent:00")),
    refused("intent with an id in upper case", INTENT, "its id is not intent:", || {
        named(&format!("intent:{}", "AB".repeat(16)))
    }),
    refused("intent with the id of a pass", INTENT, "its id is not intent:", || named("pass:1")),
    refused("intent that says nothing", INTENT, UNREADABLE, || with_intent(Members::new())),
    refused("intent with a member more", INTENT, UNREADABLE, || {
        with_intent(intent_data("admitted").raw("x", 1))
    }),
    refused("intent with another verdict", INTENT, UNREADABLE, || {
        changed("admitted", "\"verdict\":\"admitted\"", "\"verdict\":\"maybe\"")
    }),
    refused("intent with a list of parameters", INTENT, UNREADABLE, || {
        changed("admitted", "{\"force_n\":60}", "[60]")
    }),
    refused("intent with a limit that is no time", INTENT, UNREADABLE, || {
        with_intent(intent_data("needs_confirmation").text("confirm_by", "tomorrow"))
    }),
    refused("intent with half a consultation", INTENT, UNREADABLE, || {
        with_intent(intent_data("admitted").raw("consultation", "{}"))
    }),
    refused("intent with a basis of nothing", INTENT, UNREADABLE, || {
        with_intent(intent_data("admitted").text("consultation_basis", "query"))
    }),
    refused("intent with a basis that no planner gives", INTENT, UNREADABLE, || {
        with_intent(consulted().text("consultation_basis", "whole"))
    }),
    refused("intent with a basis that is no text", INTENT, UNREADABLE, || {
        with_intent(consulted().raw("consultation_basis", "null"))
    }),
    refused("intent of a planner that is a text", INTENT, UNREADABLE, || {
        with_intent(intent_data("admitted").text("planner", "p 1"))
    }),
    refused("intent of a planner without a version", INTENT, UNREADABLE, || {
        with_intent(intent_data("admitted").raw("planner", r#"{"name":"p"}"#))
    }),
    refused("intent of a planner with a member more", INTENT, UNREADABLE, || {
        let planner = r#"{"name":"p","version":"1","x":1}"#;
        with_intent(intent_data("admitted").raw("planner", planner))
    }),
    refused("intent of a planner with a long name", INTENT, UNREADABLE, || {
        let planner = Members::new().text("name", &"p".repeat(65)).text("version", "1").finish();
        with_intent(intent_data("admitted").raw("planner", planner))
    }),
    refused("intent with a member beside its data", INTENT, UNREADABLE, || {
        let event = intent(65, intent_data("admitted")).canonical;
        let event = event.replacen('{', "{\"subject\":\"x\",", 1);
        let origin = ipse_door::Origin::House;
        with(&[ipse_door::admit(event.as_bytes(), origin, || [0; 16]).unwrap()])
    }),
    refused("confirmation six weeks late", DECISION, "is late", || {
        let waiting = waiting(Some(5));
        let late = decision(65 + 6 * 7 * 24 * 60, &waiting.event_ref, "confirmed");
        with(&[waiting, late])
    }),
    refused("confirmation a minute late", DECISION, "is late", || {
        let waiting = waiting(Some(1));
        let late = decision(67, &waiting.event_ref, "confirmed");
        with(&[waiting, late])
    }),
    refused("second decision", "confirmation at seq 67", "seq 66 is the decision about", || {
        let waiting = waiting(None);
        let name = waiting.event_ref;
        let data = format!(r#"{{"decision":"confirmed","intent":"{name}","token_id":"1"}}"#);
        let second = house(67, "confirm:again", "ipse.confirmation", &data);
        with(&[waiting, decision(66, &name, "declined"), second])
    }),
    refused("confirmation of what was admitted", DECISION, NO_INTENT, || {
        let admitted = intent(65, intent_data("admitted"));
        let decision = decision(66, &admitted.event_ref, "confirmed");
        with(&[admitted, decision])
    }),
    refused("confirmation of what was denied", DECISION, NO_INTENT, || {
        let denied = intent(65, intent_data("denied"));
        let decision = decision(66, &denied.event_ref, "confirmed");
        with(&[denied, decision])
    }),
    refused("confirmation before its intent", "confirmation at seq 65", NO_INTENT, || {
        let waiting = waiting(None);
        with(&[decision(64, &waiting.event_ref, "confirmed"), waiting])
    }),
    refused("confirmation of nothing", "confirmation at seq 65", NO_INTENT, || {
        with(&[decision(65, &EventRef([7; 16]), "confirmed")])
    }),
    refused("confirmation of an attempt", "confirmation at seq 65", NO_INTENT, || {
        with(&[decision(65, &week().name(11), "declined")])
    }),
    refused("confirmation under another id", DECISION, "its id is not confirm:ev_", || {
        let waiting = waiting(None);
        let data =
            format!(r#"{{"decision":"declined","intent":"{}","token_id":"1"}}"#, waiting.event_ref);
        with(&[waiting, house(66, "confirm:it", "ipse.confirmation", &data)])
    }),
    refused("decision of another word", DECISION, UNREADABLE, || {
        decided(r#"{"decision":"maybe","intent":"REF","token_id":"1"}"#)
    }),
    refused("decision without a token", DECISION, UNREADABLE, || {
        decided(r#"{"decision":"confirmed","intent":"REF"}"#)
    }),
    refused("decision with a member more", DECISION, UNREADABLE, || {
        decided(r#"{"decision":"confirmed","intent":"REF","token_id":"1","why":"x"}"#)
    }),
    refused("decision about no name", DECISION, UNREADABLE, || {
        decided(r#"{"decision":"confirmed","intent":"it","token_id":"1"}"#)
    }),
    refused("housekeeping of an unknown type", "seq 65", "not a type that ipse writes", || {
        with(&[house(65, "x", "ipse.x", "{}")])
    }),
    refused("unknown type before the range", "seq 65", "not a type that ipse writes", || {
        let mut log = week();
        log.push(&house(65, "x", "ipse.x", "{}"));
        log.events(66..=66);
        Case::of(log.draft_of(66, 66, 0).pack())
    }),
];
