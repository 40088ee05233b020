//! `verify` checks the intents and confirmations in a store.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../../bundle/tests/all/forge.rs"]
mod forge;
#[path = "../../engine/tests/world/mod.rs"]
mod world;

use forge::{decision, gates, house, intent, intent_data, time_text};
use ipse_consolidate::V1;
use ipse_core::{Admitted, EventRef};
use ipse_engine::{NextStep, Selection};
use ipse_inspect::verify::ExternalEvidence;
use world::{World, admitted};

fn waiting(n: u64, until: u64) -> Admitted {
    intent(n, intent_data("needs_confirmation").raw("confirm_by", time_text(until)))
}

/// The findings in a store with these events.
fn findings(events: &[Admitted]) -> Vec<String> {
    let world = World::new();
    world.log(V1).append(events, NextStep::Nothing).unwrap();
    world.findings(&ExternalEvidence::default())
}

#[test]
fn what_a_server_writes_is_healthy() {
    let world = World::new();
    let mut log = world.log(V1);
    let waits = [waiting(1, 10), waiting(2, 10), waiting(3, 10)];
    let names = waits.each_ref().map(|it| it.event_ref);
    log.append(&waits, NextStep::Nothing).unwrap();
    for (n, verdict) in (10..).zip(["admitted", "clamped", "denied"]) {
        log.append(&[intent(n, intent_data(verdict))], NextStep::Nothing).unwrap();
    }
    let (yes, no) = (decision(10, &names[0], "confirmed"), decision(900, &names[1], "declined"));
    log.append(&[yes, no, admitted(1, "s", true)], NextStep::Nothing).unwrap();
    world.assert_healthy();
    // An intent may be forgotten before or after the decision about it.
    let mut log = world.log(V1);
    log.forget(&Selection::Refs(vec![names[0], names[2]])).unwrap();
    log.append(&[decision(901, &names[2], "confirmed")], NextStep::Nothing).unwrap();
    world.assert_healthy();
}

#[test]
fn what_no_server_writes_is_found() {
    let own = intent_data("admitted").finish();
    let lied = own.replace(&gates(&["passed"; 3]), &gates(&["passed", "denied"]));
    assert_ne!(own, lied);
    let lied = house(1, &format!("intent:{:032x}", 1), "intent", &lied);
    let late = waiting(1, 2);
    let too_late = decision(3, &late.event_ref, "confirmed");
    let admitted = intent(1, intent_data("admitted"));
    let needless = decision(2, &admitted.event_ref, "confirmed");
    let unread = house(1, "confirm:x", "ipse.confirmation", "{}");
    for (events, words) in [
        (vec![lied], "intent at seq 1: its verdict is not the most severe"),
        (vec![house(1, "intent:1", "intent", &own)], "intent at seq 1: its id is not intent:"),
        (vec![intent(1, ipse_core::json::Members::new())], "intent at seq 1: cannot be read"),
        (vec![late, too_late], "confirmation at seq 2: is late"),
        (vec![admitted, needless], "confirmation at seq 2: "),
        (vec![decision(1, &EventRef([7; 16]), "declined")], "confirmation at seq 1: "),
        (vec![unread], "confirmation at seq 1: cannot be read"),
        (vec![house(1, "x", "ipse.x", "{}")], "seq 1: `ipse.x` is not a type that ipse writes"),
    ] {
        let found = findings(&events);
        assert!(matches!(&found[..], [one] if one.contains(words)), "{words}: {found:?}");
    }
}

/// A damaged intent is one finding. The decision about it is not another one.
#[test]
fn a_decision_about_a_damaged_intent_is_no_finding() {
    let world = World::new();
    let waits = waiting(1, 10);
    let yes = decision(2, &waits.event_ref, "confirmed");
    world.log(V1).append(&[waits, yes], NextStep::Nothing).unwrap();
    world.assert_healthy();
    let guard = "SELECT group_concat(name) FROM sqlite_schema WHERE tbl_name = 'event' \
                 AND type = 'trigger'";
    let db = world.raw();
    let guards: String = db.query_row(guard, [], |row| row.get(0)).unwrap();
    for name in guards.split(',') {
        db.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    let sql = "UPDATE event SET payload = replace(payload, 'needs_confirmation', 'admitted')";
    db.execute_batch(sql).unwrap();
    let found = world.findings(&ExternalEvidence::default());
    let critical: Vec<_> = found.iter().filter(|it| !it.contains("schema")).collect();
    assert!(matches!(&critical[..], [one] if one.contains("seq 1: payload")), "{found:?}");
}
