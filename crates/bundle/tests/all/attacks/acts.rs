//! Attacks on acts of governance: keys that signed before or after their time, and acts that do not
//! follow from each other.

use super::{Attack, Case, refused};
use crate::forge::{Log, MANIFEST, camera, house, report, reported, robot, signer, trusted};
use ipse_core::Seq;
use ipse_ledger::act::{
    Act, ActEvent, Baseline, KeyChange, LogSettings, ProducerKey, StoreKey, TokenRecord,
};
use ipse_ledger::{KeyStatement, NoteSigner, dsse};

fn producer(key: &NoteSigner) -> ProducerKey {
    ProducerKey { key: key.public(), sources: Some(vec!["robot-7".to_owned()]) }
}

/// Appends an act.
fn act(log: &mut Log, act: Act) {
    act_with(log, act, |data| data);
}

/// Appends an act with other data.
fn act_with(log: &mut Log, act: Act, change: impl FnOnce(String) -> String) {
    let seq = log.rows.len() as u64 + 1;
    let event = ActEvent { act, by: "cli".to_owned() };
    log.push(&house(seq, &ActEvent::id(Seq(seq)), "ipse.act", &change(event.data())));
}

/// A log in which a key is registered at 1, signs 2 to 5, and is revoked at 6. Then 7 to 9 follow.
fn governed() -> Log {
    let mut log = Log::new(MANIFEST);
    act(&mut log, Act::ProducerRegistered(producer(&robot())));
    log.events(2..=5);
    act(&mut log, Act::ProducerRevoked(producer(&robot())));
    log.events(7..=9);
    log
}

fn token() -> TokenRecord {
    TokenRecord {
        token_id: format!("tk_{}", "7".repeat(32)),
        role: "planner".to_owned(),
        name: None,
        sources: None,
        expires: None,
    }
}

fn baseline() -> Act {
    let settings = LogSettings::default();
    let (producers, tokens) = (vec![(producer(&robot()), true)], vec![token().token_id]);
    Act::Baseline(Baseline { settings, producers, tokens })
}

fn with(change: fn(&mut Log)) -> Case {
    let mut log = governed();
    change(&mut log);
    Case::of(log.draft().pack())
}

const ACT: &str = "act at seq";

pub const ATTACKS: &[Attack] = &[
    refused(
        "signed before its key was registered",
        "signatures/",
        "registered later, at seq 3",
        || {
            let mut log = Log::new(MANIFEST);
            log.events(1..=2);
            act(&mut log, Act::ProducerRegistered(producer(&robot())));
            log.events(4..=5);
            log.signed_by(&robot(), 1..=2);
            Case::of(log.draft().pack())
        },
    ),
    refused("signed after its key was revoked", "signatures/", "revoked before, at seq 6", || {
        with(|log| log.signed_by(&robot(), 7..=8))
    }),
    refused("signed by a key without an act", "signatures/", "no act registered the key", || {
        with(|log| log.signed_by(&camera(), 2..=4))
    }),
    refused(
        "signed after a baseline that revoked",
        "signatures/",
        "revoked before, at seq 2",
        || {
            let mut log = Log::new(MANIFEST);
            log.events(1..=1);
            act(&mut log, baseline());
            log.events(3..=4);
            log.signed_by(&robot(), 3..=4);
            Case::of(log.draft().pack())
        },
    ),
    refused("a baseline after other acts", ACT, "other acts stand before it", || {
        with(|log| act(log, baseline()))
    }),
    refused("a key registered twice", ACT, "was registered before", || {
        with(|log| act(log, Act::ProducerRegistered(producer(&robot()))))
    }),
    refused("a key revoked twice", ACT, "revokes a key twice", || {
        with(|log| act(log, Act::ProducerRevoked(producer(&robot()))))
    }),
    refused("an unknown key revoked", ACT, "was not registered", || {
        with(|log| act(log, Act::ProducerRevoked(producer(&camera()))))
    }),
    refused("a setting changed from another value", ACT, "was not in force", || {
        with(|log| act(log, Act::Signatures("require".to_owned(), "off".to_owned())))
    }),
    refused("a token revoked that was not created", ACT, "was not created", || {
        with(|log| act(log, Act::TokenRevoked(token())))
    }),
    refused("a token created twice", ACT, "was created before", || {
        with(|log| {
            act(log, Act::TokenCreated(token()));
            act(log, Act::TokenCreated(token()));
        })
    }),
    refused("a new key that the old one did not sign", ACT, "is not the old key's", || {
        with(|log| {
            let (old, new) = (signer("operator", 2).public(), signer("operator", 9).public());
            let old = ipse_core::hex::encode(&old.id());
            let (role, signature) = (StoreKey::Operator, Some("{}".to_owned()));
            act(log, Act::KeyChanged(KeyChange { role, old, new, signature }));
        })
    }),
    refused("an act with an additional member", ACT, "cannot be read", || {
        with(|log| act_with(log, Act::Erased, |data| data.replace('{', r#"{"a":1,"#)))
    }),
    refused("an act by an unknown writer", ACT, "cannot be read", || {
        with(|log| act_with(log, Act::Erased, |data| data.replace("cli", "root")))
    }),
    refused("an act under the id of another", ACT, "cannot be read", || {
        with(|log| {
            let data = ActEvent { act: Act::Erased, by: "cli".to_owned() }.data();
            log.push(&house(10, "act:9", "ipse.act", &data));
        })
    }),
    refused("an act forgotten", "events.jsonl, seq 6", "cannot be forgotten", || {
        with(|log| log.forget(&[6]))
    }),
    refused("the acts before a range left out", "events.jsonl, seq 1", "is missing", || {
        let mut draft = governed().draft_of(7, 9, 0);
        draft.events.retain(|line| !line.contains("ipse.act"));
        Case::of(draft.pack())
    }),
    refused("no acts at all", "signatures", "the log has no acts", || {
        Case::of(crate::forge::week().draft().pack())
    })
    .in_vain(),
];

/// Acts that follow are notes, and a key may sign between registration and revocation.
#[test]
fn acts_in_order_are_notes() {
    let mut log = governed();
    log.signed_by(&robot(), 2..=5);
    let new = signer("operator", 9);
    let statement = KeyStatement {
        identity: log.identity(),
        role: StoreKey::Operator,
        old: ipse_core::hex::encode(&signer("operator", 2).public().id()),
        new: new.public(),
    };
    let signature = Some(dsse::sign(&statement.statement(), &signer("operator", 2)));
    let KeyStatement { role, old, new, .. } = statement;
    let change = KeyChange { role, old, new, signature };
    act(&mut log, Act::KeyChanged(change));
    act(&mut log, Act::Signatures("record".to_owned(), "require".to_owned()));
    let report = report(&log.draft().pack(), &trusted(), &[]);
    let text = reported(&report);
    assert!(report.passed(), "{text}");
    for line in [
        "NOTE  act at seq 1: producer_registered: robot-7+",
        "NOTE  act at seq 10: key_changed: operator ",
        ", signed by the old key (cli)",
        "NOTE  act at seq 11: signatures: record -> require (cli)",
        "PASS  acts: 4 acts: each follows from the ones before; signatures: require",
        "4 events signed by 1 producer",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

/// A range carries the acts before it, so the positions of its statements are compared.
#[test]
fn a_range_carries_the_acts_before_it() {
    let mut log = governed();
    log.signed_by(&robot(), 2..=5);
    let case = report(&log.draft_of(4, 9, 0).pack(), &trusted(), &[]);
    assert!(case.passed(), "{}", reported(&case));
    assert!(reported(&case).contains("act at seq 1: producer_registered"));
}
