//! Signatures under each signature requirement, below the command line.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::V1;
use ipse_core::{Admitted, Time};
use ipse_door::{Origin, Rule, admit};
use ipse_engine::{NextStep, SignatureError, SignedBatch, refusal_of, refusal_under};
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
            assert!(!settings.put_producer(&world.identity, &key, None).unwrap().revoked);
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
    world.store.settings().unwrap().put_producer(&world.identity, &key, None).unwrap();
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

/// An event of a source, with a time.
fn event(source: &str, id: u32, time: &str) -> Admitted {
    let event = format!(
        r#"{{"id":"{id}","source":"{source}","type":"execution_result","time":"{time}",
           "data":{{"skill_id":"s","success":true}}}}"#
    );
    admit(event.as_bytes(), Origin::Producer, || [7; 16]).unwrap()
}

const DAY: &str = "2026-05-06T10:00:00Z";

fn source_of(error: Option<SignatureError>) -> Option<String> {
    match error {
        Some(SignatureError::SourceNotAllowed(_, source)) => Some(source),
        None => None,
        other => panic!("{other:?}"),
    }
}

/// A batch is stored whole under a key that may use all its sources, else not at all.
#[test]
fn a_key_signs_events_of_its_sources_only() {
    for (list, sources, foreign) in [
        (None, &["a", "b"][..], None),
        (Some(&["a", "b"][..]), &["a", "b"], None),
        (Some(&["a"]), &["a", "b"], Some("b")),
        (Some(&["a"]), &["b", "a"], Some("b")),
        (Some(&["otel:*"]), &["otel:x", "otel:y"], None),
        (Some(&["otel:*"]), &["otel:x", "otel"], Some("otel")),
    ] {
        for policy in [Signatures::Off, Signatures::Record, Signatures::Require] {
            let world = World::new();
            let ids = 0..sources.len() as u32;
            let events: Vec<_> =
                sources.iter().zip(ids).map(|(source, id)| event(source, id, DAY)).collect();
            let (endorsed, key) = endorsed(&world, &events);
            let list: Option<Vec<String>> =
                list.map(|list| list.iter().map(ToString::to_string).collect());
            let mut settings = world.store.settings().unwrap();
            settings.put_producer(&world.identity, &key, list.as_deref()).unwrap();
            settings.set_signatures(&world.identity, policy).unwrap();
            let foreign = foreign.filter(|_| policy != Signatures::Off).map(str::to_owned);
            let mut log = world.log(V1);
            // An unsigned event of the same batch has no key, and thus no list.
            let alone = event("other", 9, DAY);
            let sent = [&events[..], &[alone]].concat();
            let done = log.append_signed(&sent, Some(&endorsed), NextStep::Nothing).unwrap();
            let is_new = |appended: &Appended| matches!(appended, Appended::New(_));
            let (signed, unsigned) = done.appended.split_at(events.len());
            assert_eq!(signed.iter().all(is_new), foreign.is_none(), "{list:?} {sources:?}");
            assert_eq!(is_new(&unsigned[0]), policy != Signatures::Require);
            if foreign.is_some() {
                let code = |one: &Appended| refusal_under(*one, done.unkept.as_ref()).unwrap().rule;
                assert!(signed.iter().all(|one| code(one) == Rule::SourceNotAllowed), "{signed:?}");
                assert_eq!(done.signed, 0);
            }
            assert_eq!(source_of(done.unkept), foreign, "{list:?} {sources:?} {policy:?}");
            world.assert_healthy();
        }
    }
}

/// A key cannot sign a stored event of another source either. A statement that is stored, as after
/// the import of a bundle, stays valid.
#[test]
fn the_sources_of_stored_events_count_and_a_stored_statement_stays() {
    let world = World::new();
    let events = [event("b", 1, DAY)];
    let mut log = world.log(V1);
    log.append(&events, NextStep::Nothing).unwrap();
    let (sent, key) = endorsed(&world, &events);
    let mut settings = world.store.settings().unwrap();
    let list = ["a".to_owned()];
    settings.put_producer(&world.identity, &key, Some(&list)).unwrap();
    for events in [&events[..], &[]] {
        let done = log.append_signed(events, Some(&sent), NextStep::Nothing).unwrap();
        assert_eq!(source_of(done.unkept).as_deref(), Some("b"));
    }
    let mut writer = world.store.writer(&world.identity).unwrap();
    let mut batch = writer.begin().unwrap();
    let envelope = world_envelope(&world, &events);
    batch.put_statement(&key, &[ipse_core::Seq(1)], &envelope).unwrap();
    batch.commit().unwrap();
    let done = log.append_signed(&events, Some(&sent), NextStep::Nothing).unwrap();
    assert_eq!((done.unkept, done.signed), (None, 1));
    world.assert_healthy();
}

fn world_envelope(world: &World, events: &[Admitted]) -> String {
    let signer = NoteSigner::new("arm", SecretKey::from_seed(&[5; 32])).unwrap();
    let events = events.iter().map(|event| (event.event_ref, event.digest)).collect();
    dsse::sign(&SentStatement { identity: world.identity, events }.statement(), &signer)
}

/// The clock of these tests is at 2026-05-07T00:00:00Z.
#[test]
fn an_event_that_is_dated_too_far_ahead_is_refused() {
    let world = World::new();
    let mut log = world.log(V1);
    for (id, hours, time, latest) in [
        (1, Some(24), "2026-05-08T00:00:00Z", None),
        (2, Some(24), "2026-05-08T00:00:00.000001Z", Some("2026-05-08T00:00:00Z")),
        (3, Some(24), "2026-05-08T02:00:00+02:00", None),
        (4, Some(1), "2026-05-07T01:00:01Z", Some("2026-05-07T01:00:00Z")),
        (5, Some(48), "2026-05-08T00:00:00.000001Z", None),
        (6, None, "9999-12-31T23:59:59Z", None),
        (7, Some(876_000), "2126-04-14T00:00:00Z", Some("2126-04-13T00:00:00Z")),
        (8, Some(u64::MAX), "9999-12-31T23:59:59Z", None),
        (9, Some(1), "1970-01-01T00:00:00Z", None),
    ] {
        world.store.settings().unwrap().set_max_ahead(&world.identity, hours).unwrap();
        let event = event("a", id, time);
        let done = log.append(std::slice::from_ref(&event), NextStep::Nothing).unwrap();
        let ahead = latest.map(|latest| Appended::Ahead(Time::parse(latest).unwrap()));
        match ahead {
            Some(ahead) => {
                assert_eq!(done.appended, [ahead], "{id}");
                let refusal = refusal_of(ahead).unwrap();
                assert_eq!((&*refusal.field, refusal.rule), ("time", Rule::TimeAhead));
                assert!(refusal.message.contains(latest.unwrap()), "{refusal}");
            }
            None => assert!(matches!(done.appended[0], Appended::New(_)), "{id}"),
        }
        // A stored event is a duplicate, whatever the limit is now.
        world.store.settings().unwrap().set_max_ahead(&world.identity, Some(1)).unwrap();
        let again = log.append(&[event], NextStep::Nothing).unwrap().appended[0];
        assert_eq!(matches!(again, Appended::Duplicate(_)), ahead.is_none(), "{id}");
    }
    world.assert_healthy();
}

/// A statement is stored with all its events or not at all.
#[test]
fn a_statement_about_an_event_from_the_future_is_not_stored() {
    let world = World::new();
    let events = [event("a", 1, DAY), event("a", 2, "2027-01-01T00:00:00Z")];
    let (sent, key) = endorsed(&world, &events);
    let mut settings = world.store.settings().unwrap();
    settings.put_producer(&world.identity, &key, None).unwrap();
    settings.set_max_ahead(&world.identity, Some(24)).unwrap();
    let mut log = world.log(V1);
    let done = log.append_signed(&events, Some(&sent), NextStep::Nothing).unwrap();
    assert!(matches!(done.appended[..], [Appended::New(_), Appended::Ahead(_)]));
    assert_eq!(done.unkept, Some(SignatureError::Ahead(events[1].event_ref)));
    world.assert_healthy();
    settings.set_max_ahead(&world.identity, None).unwrap();
    let done = log.append_signed(&events, Some(&sent), NextStep::Nothing).unwrap();
    assert_eq!((done.unkept, done.signed), (None, 2));
    world.assert_healthy();
}
