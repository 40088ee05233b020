//! The event `ipse.act`: the vectors, and that only the bytes that ipse writes are read.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_core::Seq;
use ipse_core::json::{Members, list, quoted};
use ipse_ledger::act::{Act, ActEvent, LogSettings, ProducerKey};
use ipse_ledger::governance::PositionFault;
use ipse_ledger::{Governance, NoteSigner, SecretKey};
use proptest::prelude::*;

const EVENTS: &str = include_str!("../../../vectors/act/acts.events.jsonl");
const IN_FORCE: &str = include_str!("../../../vectors/act/acts.in_force.json");

fn events() -> Vec<(Seq, ActEvent)> {
    let read = |(seq, line): (u64, &str)| {
        let event = ActEvent::read(Seq(seq), line.as_bytes());
        (Seq(seq), event.unwrap_or_else(|| panic!("{line}")))
    };
    (1..).zip(EVENTS.lines()).map(read).collect()
}

fn governance() -> Governance {
    let mut governance = Governance::default();
    for (seq, event) in events() {
        governance.add(seq, event).unwrap();
    }
    governance
}

#[test]
fn the_acts_of_the_vector_give_its_settings() {
    let governance = governance();
    let LogSettings { signatures, retention, max_ahead } = governance.settings().clone();
    let producer = |known: &ipse_ledger::governance::KeyStanding| {
        Members::new()
            .text("public_key", &known.producer.key.to_string())
            .raw("revoked", known.revoked.unwrap())
            .raw("since", known.since)
            .finish()
    };
    let mut tokens = Members::new();
    for (id, token) in governance.tokens() {
        let word = if token.record.is_none() { "baseline" } else { "created" };
        tokens = tokens.text(id.as_str(), if token.revoked { "revoked" } else { word });
    }
    let in_force = Members::new()
        .raw("max_ahead", max_ahead.map_or("null".to_owned(), |hours| hours.to_string()))
        .raw("producers", list(governance.producers().map(producer)))
        .raw("retention", retention.map_or("null".to_owned(), |kept| quoted(&kept)))
        .text("signatures", &signatures)
        .raw("tokens", tokens.finish())
        .finish();
    assert_eq!(in_force, IN_FORCE.trim_end());
}

#[test]
fn every_act_is_in_the_vector_and_written_as_it_was_read() {
    let names: Vec<&str> = events().iter().map(|(_, event)| event.act.name()).collect();
    assert_eq!(names.len(), 10);
    for (line, (_, event)) in EVENTS.lines().zip(events()) {
        assert!(line.contains(&event.data()), "{line}");
    }
}

#[test]
fn a_key_signs_between_its_acts() {
    let governance = governance();
    let key = governance.producers().next().unwrap().producer.key.to_string();
    assert_eq!(governance.check(&key, Seq(1)), Err(PositionFault::Before(Seq(2))));
    assert_eq!(governance.check(&key, Seq(2)), Err(PositionFault::Before(Seq(2))));
    assert_eq!(governance.check(&key, Seq(3)), Ok(()));
    assert_eq!(governance.check(&key, Seq(9)), Ok(()));
    assert_eq!(governance.check(&key, Seq(10)), Err(PositionFault::After(Seq(10))));
    assert_eq!(governance.check("other", Seq(3)), Err(PositionFault::Unregistered));
    assert_eq!(Governance::default().check("other", Seq(3)), Ok(()), "nothing is known");
}

/// A large baseline has parts, which are below the size limit of events and give one state.
#[test]
fn a_large_baseline_has_parts() {
    let key = |n: u64| {
        let seed: [u8; 32] = std::array::from_fn(|at| n.to_be_bytes()[at % 8]);
        let key = NoteSigner::new(&format!("p{n}"), SecretKey::from_seed(&seed)).unwrap().public();
        let sources = Some((0..16).map(|at| format!("{at}-{}", "s".repeat(200))).collect());
        (ProducerKey { key, sources }, n.is_multiple_of(2))
    };
    let tokens = (0..1000).map(|n| format!("tk_{n:032x}")).collect();
    let parts = Act::baseline(&LogSettings::default(), (0..40).map(key).collect(), tokens);
    assert!(parts.len() > 3);
    let mut governance = Governance::default();
    for (seq, act) in (7..).map(Seq).zip(parts) {
        let event = ActEvent { act, by: "cli".to_owned() };
        assert!(event.data().len() < 60_000);
        governance.add(seq, event).unwrap();
    }
    assert_eq!((governance.producers().count(), governance.tokens().len()), (40, 1000));
    assert_eq!(governance.producers().filter(|known| known.revoked.is_some()).count(), 20);
}

proptest! {
    /// Any change of a byte gives another act or none, never a panic.
    #[test]
    fn only_the_bytes_that_ipse_writes_are_read(
        line in 0..10_usize, at in 0..2000_usize, byte in any::<u8>(),
    ) {
        let stored = EVENTS.lines().nth(line).unwrap();
        let mut bytes = stored.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let seq = Seq(line as u64 + 1);
        if let Some(event) = ActEvent::read(seq, &bytes) {
            let text = String::from_utf8(bytes).unwrap();
            prop_assert!(text.contains(&event.data()));
        }
    }

    #[test]
    fn garbage_is_no_act(bytes: Vec<u8>) {
        prop_assert_eq!(ActEvent::read(Seq(1), &bytes), None);
    }
}
