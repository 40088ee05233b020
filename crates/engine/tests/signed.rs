//! Signatures under each signature requirement, below the command line.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::V1;
use ipse_core::Admitted;
use ipse_engine::{NextStep, SignatureError, SignedBatch};
use ipse_inspect::verify::ExternalEvidence;
use ipse_ledger::{NoteSigner, SecretKey, SentStatement, dsse};
use ipse_store::{Appended, Signatures};
use world::{World, admitted};

fn endorsed(world: &World, events: &[Admitted]) -> (SignedBatch, String) {
    let signer = NoteSigner::new("arm", SecretKey::from_seed(&[5; 32])).unwrap();
    let events = events.iter().map(|event| (event.event_ref, event.digest)).collect();
    let sent = SentStatement { identity: world.identity, events };
    let envelope = dsse::sign(&sent.statement(), &signer);
    let endorsed = SignedBatch::open(&envelope, &world.identity, &[signer.public()]).unwrap();
    (endorsed, signer.public().to_string())
}

/// The requirement is read in the transaction, whatever it was when the envelope was opened.
#[test]
fn the_policy_of_the_moment_decides() {
    let world = World::new();
    let mut log = world.log(V1);
    let mut settings = world.store.settings().unwrap();
    let statements = || {
        let reader = world.reader();
        reader.view(&world.identity).unwrap().view().statement_count().unwrap()
    };
    for (from, policy, registered, signed, kept) in [
        (0, Signatures::Record, false, 0, 0),
        (10, Signatures::Off, true, 0, 0),
        (20, Signatures::Record, true, 3, 1),
        (30, Signatures::Require, true, 3, 2),
    ] {
        let events: Vec<_> = (from..from + 3).map(|n| admitted(n, "s", true)).collect();
        let (endorsed, key) = endorsed(&world, &events);
        if registered {
            assert!(settings.put_producer(&world.identity, &key).unwrap());
        }
        settings.set_signatures(&world.identity, policy).unwrap();
        let done = log.append_signed(&events, Some(&endorsed), NextStep::Nothing).unwrap();
        assert!(done.appended.iter().all(|event| matches!(event, Appended::New(_))));
        assert_eq!((done.signed, statements()), (signed, kept), "{policy:?}");
        let unknown = (!registered).then_some(SignatureError::UnknownProducer);
        assert_eq!(done.unkept, unknown);
    }
    let unsigned = log.append(&[admitted(90, "s", true)], NextStep::Nothing).unwrap();
    assert_eq!(unsigned.appended, [Appended::Unsigned]);
    assert!(settings.revoke_producer(&world.identity, "arm").unwrap());
    let events = [admitted(40, "s", true)];
    let (endorsed, _) = endorsed(&world, &events);
    let done = log.append_signed(&events, Some(&endorsed), NextStep::Nothing).unwrap();
    assert_eq!(
        (done.appended, done.unkept),
        (vec![Appended::Unsigned], Some(SignatureError::Revoked))
    );
    world.assert_healthy();
}

/// A statement about content that differs from the log.
#[test]
fn a_statement_about_other_content_is_found() {
    let world = World::new();
    let mut events = vec![admitted(1, "s", true)];
    let (good, key) = endorsed(&world, &events);
    world.store.settings().unwrap().put_producer(&world.identity, &key).unwrap();
    world.log(V1).append_signed(&events, Some(&good), NextStep::Nothing).unwrap();
    world.assert_healthy();
    events[0].digest.0[0] ^= 1;
    let signer = NoteSigner::new("arm", SecretKey::from_seed(&[5; 32])).unwrap();
    let other = vec![(events[0].event_ref, events[0].digest)];
    let sent = SentStatement { identity: world.identity, events: other };
    let db = world.raw();
    let guard = "SELECT sql FROM sqlite_schema WHERE name = 'statement_is_frozen'";
    let guard: String = db.query_row(guard, [], |row| row.get(0)).unwrap();
    db.execute_batch("DROP TRIGGER statement_is_frozen").unwrap();
    let envelope = dsse::sign(&sent.statement(), &signer);
    db.execute("UPDATE statement SET envelope = ?1", [envelope]).unwrap();
    db.execute_batch(&guard).unwrap();
    let message = "producer statement 1: does not name the events that are stored as signed";
    assert_eq!(world.findings(&ExternalEvidence::default()), [message]);
}
