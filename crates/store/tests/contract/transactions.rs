//! Transactions, isolation, locking, and the small handles: settings, tokens, registering.

use crate::place::{Place, event, fact};
use ipse_core::{Identity, Seq, Time};
use ipse_store::{
    Appended, DEFAULT_MAX_AHEAD, Error, MAX_LIVE_TOKENS, Owner, Producer, Signatures, TokenRow,
};

pub(crate) fn a_batch_is_all_or_nothing(place: &Place) {
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    batch.append_all(&[event(1), event(2)], |_| None).unwrap();
    assert_eq!(batch.view().head().unwrap(), Seq(2), "a batch sees what it wrote");
    drop(batch);
    assert_eq!(head(place), Seq(0));
    let mut batch = writer.begin().unwrap();
    assert_eq!(batch.append(&event(2)).unwrap(), Appended::New(Seq(1)), "the cache is empty");
    batch.commit().unwrap();
    assert_eq!(head(place), Seq(1));
}

fn head(place: &Place) -> Seq {
    place.reopened().reader().unwrap().view(&place.identity).unwrap().view().head().unwrap()
}

pub(crate) fn a_pass_that_fails_keeps_the_events(place: &Place) {
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    batch.append(&event(1)).unwrap();
    let pass = batch.pass().unwrap();
    pass.put_facts(&[fact(&place.identity, "a", "1")]).unwrap();
    drop(pass);
    assert_eq!(batch.append(&event(2)).unwrap(), Appended::New(Seq(2)));
    batch.commit().unwrap();
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    assert_eq!(snapshot.view().head().unwrap(), Seq(2));
    assert_eq!(snapshot.view().facts().unwrap(), []);
}

pub(crate) fn a_pass_alone_that_fails_ends_its_batch(place: &Place) {
    place.append(1..3);
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    let pass = batch.pass().unwrap();
    pass.put_facts(&[fact(&place.identity, "a", "1")]).unwrap();
    drop(pass);
    assert!(matches!(batch.append(&event(3)), Err(Error::Limit(_))));
    assert!(matches!(batch.commit(), Err(Error::Limit(_))));
    let mut batch = writer.begin().unwrap();
    batch.append(&event(3)).unwrap();
    batch.commit().unwrap();
    assert_eq!(head(place), Seq(3), "the writer still works");
}

pub(crate) fn a_snapshot_is_of_one_moment(place: &Place) {
    place.append(1..3);
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    assert_eq!(snapshot.view().head().unwrap(), Seq(2));
    place.append(3..5);
    assert_eq!(snapshot.view().head().unwrap(), Seq(2), "the reader did not wait, same state");
    assert_eq!(snapshot.view().find(&event(4).event_ref).unwrap(), None);
    drop(snapshot);
    assert_eq!(reader.view(&place.identity).unwrap().view().head().unwrap(), Seq(4));
}

/// Two writers of one log, as in two processes: positions stay dense and names unique.
pub(crate) fn writers_take_turns(place: &Place) {
    let store = place.reopened();
    let identity = place.identity;
    std::thread::scope(|scope| {
        for process in 0..2_u64 {
            let store = &store;
            scope.spawn(move || {
                let mut writer = store.writer(&identity).unwrap();
                for round in 0..20 {
                    let mut batch = writer.begin().unwrap();
                    // Both writers send every second event.
                    let own = event(1000 * process + round);
                    batch.append_all(&[own, event(5000 + round)], |_| None).unwrap();
                    batch.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(head(place), Seq(60));
}

pub(crate) fn a_watch_sees_what_others_write(place: &Place) {
    let mut watch = place.store.watch().unwrap();
    let all = watch.changed().unwrap();
    assert!(all.len() == 2 && all.contains(&place.identity), "the first call returns all");
    assert_eq!(watch.changed().unwrap(), []);
    place.append(1..2);
    assert_eq!(watch.changed().unwrap(), [place.identity], "one log of two has changed");
    assert_eq!(watch.changed().unwrap(), []);
    // `again` reports an identity even if nothing changes meanwhile.
    watch.again(&place.identity);
    assert_eq!(watch.changed().unwrap(), [place.identity]);
    assert_eq!(watch.changed().unwrap(), []);
    let third = place.store.register("{\"agent_id\":\"third\"}").unwrap().identity;
    assert_eq!(watch.changed().unwrap(), [third], "it was registered since");
    // Settings are not watched.
    place.store.settings().unwrap().set_retention(&place.identity, Some("1h")).unwrap();
    assert_eq!(watch.changed().unwrap(), []);
}

pub(crate) fn everything_is_there_after_reopening(place: &Place) {
    place.append(1..20);
    let store = place.reopened();
    let reader = store.reader().unwrap();
    let snapshot = reader.view(&place.identity).unwrap();
    let names: Vec<_> = (1..20).map(|n| event(n).event_ref).collect();
    let found = snapshot.view().find_all(&names).unwrap();
    assert_eq!(found, (1..20).map(|n| Some(Seq(n))).collect::<Vec<_>>());
}

pub(crate) fn readers_use_connections_again(place: &Place) {
    place.append(1..3);
    for _ in 0..3 {
        let reader = place.reader();
        let snapshot = reader.view(&place.identity).unwrap();
        let _ = snapshot.view().head().unwrap();
        drop(snapshot);
        drop(reader);
        place.append(3..4);
    }
    let many: Vec<_> = (0..20).map(|_| place.reader()).collect();
    for reader in &many {
        assert_eq!(reader.view(&place.identity).unwrap().view().head().unwrap(), Seq(3));
    }
}

pub(crate) fn an_unknown_identity_is_an_error(place: &Place) {
    let stranger = Identity([9; 32]);
    let unknown = |error: Option<Error>| matches!(error, Some(Error::UnknownIdentity(_)));
    assert!(unknown(place.store.writer(&stranger).err()));
    assert!(unknown(place.store.eraser(&stranger).err()));
    assert!(unknown(place.store.heads(&stranger).err()));
    assert!(unknown(place.reader().view(&stranger).err()));
    assert!(unknown(place.store.tokens().unwrap().view(&stranger).err()));
    let mut settings = place.store.settings().unwrap();
    assert!(unknown(settings.set_retention(&stranger, None).err()));
}

pub(crate) fn registering_is_idempotent(place: &Place) {
    let again = place.store.register("{\"agent_id\":\"a\"}").unwrap();
    assert_eq!((again.identity, again.created), (place.identity, false));
    let manifests = place.reader().manifests().unwrap();
    let hashes = [&place.identity, &place.other].map(ToString::to_string);
    assert_eq!(manifests.iter().map(|(hash, _)| hash.clone()).collect::<Vec<_>>(), hashes);
    assert_eq!(manifests[1].1, "{\"agent_id\":\"b\"}");
}

pub(crate) fn settings_belong_to_an_identity(place: &Place) {
    let mut settings = place.store.settings().unwrap();
    settings.set_retention(&place.identity, Some("1h")).unwrap();
    settings.set_retention(&place.identity, Some("2h")).unwrap();
    settings.set_signatures(&place.identity, Signatures::Require).unwrap();
    let list = ["a", "b*"].map(str::to_owned);
    let mut put = |key: &str, sources| {
        let put = settings.put_producer(&place.identity, key, sources).unwrap();
        (put.revoked, put.sources)
    };
    assert_eq!(put("arm+1+k", Some(&list)), (false, Some(list.to_vec())));
    assert_eq!(put("arm+1+k", None), (false, Some(list.to_vec())), "a list never changes");
    assert_eq!(put("leg+1+k", None), (false, None));
    assert_eq!(put("leg+1+k", Some(&list)), (false, None));
    assert!(!settings.revoke_producer(&place.identity, "ar").unwrap(), "a whole name");
    assert!(settings.revoke_producer(&place.identity, "arm").unwrap());
    assert!(!settings.revoke_producer(&place.identity, "arm").unwrap());
    let put = settings.put_producer(&place.identity, "arm+1+k", None).unwrap();
    assert!(put.revoked, "revoked permanently");
    let reader = place.reader();
    assert_eq!(reader.retention(&place.identity).unwrap().as_deref(), Some("2h"));
    assert_eq!(reader.retention(&place.other).unwrap(), None);
    let arm = Producer { key: "arm+1+k".into(), revoked: true, sources: Some(list.to_vec()) };
    let leg = Producer { key: "leg+1+k".into(), revoked: false, sources: None };
    assert_eq!(reader.producers(&place.identity).unwrap(), [arm, leg]);
    assert_eq!(reader.producers(&place.other).unwrap(), []);
    let policy = |identity| reader.view(identity).unwrap().view().signatures().unwrap();
    assert_eq!(policy(&place.identity), Signatures::Require);
    assert_eq!(policy(&place.other), Signatures::Record);
    settings.set_retention(&place.identity, None).unwrap();
    assert_eq!(reader.retention(&place.identity).unwrap(), None);
    let ahead = |identity| reader.view(identity).unwrap().view().max_ahead().unwrap();
    for identity in [&place.identity, &place.other] {
        assert_eq!(ahead(identity), Some(DEFAULT_MAX_AHEAD));
    }
    let (one, other) = (&place.identity, &place.other);
    for (hours, of) in [(Some(48), one), (None, one), (Some(1), other)] {
        settings.set_max_ahead(of, hours).unwrap();
        assert_eq!(ahead(of), hours);
    }
    assert_eq!(ahead(&place.identity), None, "the setting of another identity does not count");
    assert_eq!(policy(&place.identity), Signatures::Require);
    assert_eq!(policy(&place.other), Signatures::Record);
}

fn at(micros: i64) -> Time {
    Time::from_micros(micros).unwrap()
}

fn token(number: u64) -> TokenRow {
    let mut token_id = [0; 16];
    token_id[..8].copy_from_slice(&number.to_be_bytes());
    let (name, sources) = (Some("arm".into()), Some(vec!["arm-7".into(), "ärmel".into()]));
    let (created, expires, revoked, last_used) = (at(100), Some(at(1000)), None, None);
    let (hash, role) = ([1; 32], "producer".into());
    TokenRow { token_id, hash, role, name, sources, created, expires, revoked, last_used }
}

pub(crate) fn live_tokens_are_limited_and_revoked_permanently(place: &Place) {
    let mut tokens = place.store.tokens().unwrap();
    assert!(!tokens.any_live(at(200)).unwrap());
    for number in 0..MAX_LIVE_TOKENS {
        tokens.put(&place.identity, &token(number)).unwrap();
    }
    let one_more = tokens.put(&place.identity, &token(MAX_LIVE_TOKENS));
    assert!(matches!(one_more, Err(Error::TooManyTokens)));
    tokens.put(&place.other, &token(0)).unwrap();
    let id = token(0).token_id;
    assert!(tokens.note_use(&place.identity, &id, None, at(200)).unwrap());
    assert!(!tokens.note_use(&place.identity, &id, None, at(201)).unwrap(), "another was first");
    assert!(tokens.revoke(&place.identity, &id, at(300)).unwrap());
    assert!(!tokens.revoke(&place.identity, &id, at(301)).unwrap());
    tokens.put(&place.identity, &token(MAX_LIVE_TOKENS)).unwrap();
    let row = tokens.view(&place.identity).unwrap().token(&id).unwrap();
    let want = TokenRow { revoked: Some(at(300)), last_used: Some(at(200)), ..token(0) };
    assert_eq!(row, Some(want));
    assert_eq!(tokens.view(&place.other).unwrap().tokens().unwrap(), [token(0)]);
    assert!(tokens.any_live(at(999)).unwrap() && !tokens.any_live(at(1000)).unwrap());
}

pub(crate) fn tokens_of_the_store_belong_to_no_identity(place: &Place) {
    let mut tokens = place.store.tokens().unwrap();
    let of_store = TokenRow { role: "observer".into(), ..token(7) };
    tokens.put(Owner::Store, &of_store).unwrap();
    assert!(tokens.any_live(at(200)).unwrap());
    assert_eq!(tokens.tokens(Owner::Store).unwrap(), std::slice::from_ref(&of_store));
    assert_eq!(place.store.reader().unwrap().store_tokens().unwrap(), [of_store]);
    // A token of an identity with the same id is another token.
    let id = token(7).token_id;
    assert_eq!(tokens.token(&place.identity, &id).unwrap(), None);
    tokens.put(&place.identity, &token(7)).unwrap();
    assert!(!tokens.revoke(&place.other, &id, at(300)).unwrap());
    assert!(tokens.revoke(Owner::Store, &id, at(300)).unwrap());
    assert_eq!(tokens.token(&place.identity, &id).unwrap().unwrap().revoked, None);
    assert!(tokens.note_use(Owner::Store, &id, None, at(301)).unwrap());
    let row = tokens.token(Owner::Store, &id).unwrap().unwrap();
    assert_eq!((row.revoked, row.last_used), (Some(at(300)), Some(at(301))));
    // The limit is the same as for an identity.
    let observer = |number| TokenRow { role: "observer".into(), ..token(number) };
    for number in 100..100 + MAX_LIVE_TOKENS {
        tokens.put(Owner::Store, &observer(number)).unwrap();
    }
    let one_more = tokens.put(Owner::Store, &observer(1));
    assert!(matches!(one_more, Err(Error::TooManyTokens)));
    // Only the role observer belongs to the store, and to nothing else.
    assert!(tokens.put(Owner::Store, &token(2)).is_err());
    assert!(tokens.put(&place.other, &observer(2)).is_err());
    assert_eq!(tokens.tokens(&place.other).unwrap(), []);
    // The audit does not report them as rows without an owner.
    let reader = place.store.reader().unwrap();
    let snapshot = reader.view(&place.identity).unwrap();
    assert_eq!(snapshot.rows_of_nobody().unwrap(), []);
}

/// Everything that an identity has before its first event.
fn furnished(place: &Place) {
    let mut settings = place.store.settings().unwrap();
    settings.put_producer(&place.other, "arm+1+k", None).unwrap();
    settings.set_signatures(&place.other, Signatures::Require).unwrap();
    settings.set_retention(&place.other, Some("48h")).unwrap();
}

pub(crate) fn an_identity_without_events_is_removed_with_all_that_is_its_own(place: &Place) {
    furnished(place);
    place.append(0..3);
    assert!(matches!(place.store.remove(&place.identity), Err(Error::NotEmpty)));
    place.store.remove(&place.other).unwrap();
    assert!(matches!(place.store.remove(&place.other), Err(Error::UnknownIdentity(_))));
    let reader = place.reader();
    let hashes: Vec<String> = reader.manifests().unwrap().into_iter().map(|it| it.0).collect();
    assert_eq!(hashes, [place.identity.to_string()]);
    assert_eq!(reader.view(&place.identity).unwrap().rows_of_nobody().unwrap(), []);
    // The same manifest and another one begin with nothing.
    for manifest in ["{\"agent_id\":\"b\"}", "{\"agent_id\":\"c\"}"] {
        let again = place.store.register(manifest).unwrap();
        assert!(again.created, "{manifest}");
        let reader = place.reader();
        assert_eq!(reader.producers(&again.identity).unwrap().len(), 0);
        assert_eq!(reader.retention(&again.identity).unwrap(), None);
        let snapshot = reader.view(&again.identity).unwrap();
        assert_eq!(snapshot.view().signatures().unwrap(), Signatures::Record);
        assert_eq!(snapshot.view().head().unwrap(), Seq(0));
    }
}

/// A handle that was opened before the removal cannot write to the log of the next identity.
pub(crate) fn a_removed_log_is_not_written_to_and_not_used_again(place: &Place) {
    let mut old = place.store.writer(&place.other).unwrap();
    place.store.remove(&place.other).unwrap();
    let next = place.store.register("{\"agent_id\":\"c\"}").unwrap().identity;
    assert!(matches!(old.begin().map(drop), Err(Error::UnknownIdentity(_))));
    // Even the same identity, registered again, is another log.
    place.store.register("{\"agent_id\":\"b\"}").unwrap();
    assert!(matches!(old.begin().map(drop), Err(Error::UnknownIdentity(_))));
    let reader = place.reader();
    assert_eq!(reader.view(&next).unwrap().view().head().unwrap(), Seq(0));
    assert_eq!(reader.view(&place.identity).unwrap().rows_of_nobody().unwrap(), []);
}
