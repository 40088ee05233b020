//! Tree heads: signed after passes. No two contradict each other, after restores, kills and
//! concurrent signing.
#![allow(missing_docs, clippy::unwrap_used)]

mod notary;
mod world;

use ipse_consolidate::V1;
use ipse_core::{Seq, Time};
use ipse_engine::{
    Error, HEAD_EVERY, Host, Log, Memory, NextStep, Notary, Policy, Selection, Trigger, head_of,
    sign_head,
};
use ipse_inspect::verify::ExternalEvidence;
use ipse_ledger::tree::{consistency, is_consistent};
use ipse_ledger::{Note, NoteSigner, SecretKey, TreeHead};
use ipse_store::{Location, Store};
use notary::TestNotary;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use world::{TestHost, World, admitted};

/// A clock that a test sets.
struct Clock(Arc<AtomicI64>, TestHost);

impl Host for Clock {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::Relaxed)).unwrap()
    }

    fn salt(&mut self) -> ipse_door::Salt {
        self.1.salt()
    }
}

fn append(log: &mut Log, from: u64, to: u64) {
    let events: Vec<_> = (from..to).map(|n| admitted(n, "s", n % 3 > 0)).collect();
    log.append(&events, NextStep::Consolidate(Trigger::Manual)).unwrap();
}

/// Checks by proofs from the store that every pair of signed heads is consistent.
fn assert_consistent(world: &World, notary: &TestNotary) {
    let reader = world.reader();
    let snapshot = reader.view(&world.identity).unwrap();
    let heads: Vec<TreeHead> = notary.heads().iter().map(|note| head_of(note).unwrap()).collect();
    for (old, new) in heads.iter().zip(heads.iter().skip(1)) {
        let proof = consistency(&snapshot.view(), old.size, new.size).unwrap().unwrap();
        assert!(is_consistent((old.size, &old.root), (new.size, &new.root), &proof));
    }
}

#[test]
fn a_head_is_signed_after_a_pass_and_covers_its_record() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let mut log = world.log(V1);
    log.set_notary(Box::new(notary.clone())).unwrap();
    append(&mut log, 0, 5);
    let [note] = notary.heads().try_into().unwrap();
    let head = head_of(&note).unwrap();
    assert_eq!((head.size, world.head()), (6, Seq(6)));
    Note::parse(&note).unwrap().verify(&[notary.signer.public()]).unwrap();
    let stored = world.reader().view(&world.identity).unwrap().view().tree_head().unwrap();
    assert_eq!(stored.as_ref(), Some(&note));
    assert_eq!(log.sign_head().unwrap(), Some(note), "signing again gives the same head");
    assert_eq!(notary.heads().len(), 1);
    world.assert_healthy();
    let origin = TreeHead::origin_of(&world.identity);
    let signer = NoteSigner::new(&origin, SecretKey::from_seed(&[9; 32])).unwrap();
    let next = TestNotary { signer, ..TestNotary::new(&world) };
    let note = sign_head(&world.store, &world.identity, &next).unwrap();
    Note::parse(&note).unwrap().verify(&[next.signer.public()]).unwrap();
    assert_eq!(head_of(&note), Some(head), "another key signs the same head again");
}

#[test]
fn heads_follow_each_other_at_most_once_a_second_and_on_demand() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let clock = Arc::new(AtomicI64::new(1_000_000_000));
    let host = Clock(clock.clone(), TestHost(0));
    let mut log = Log::open(&world.store, world.identity, Box::new(host)).unwrap();
    log.set_notary(Box::new(notary.clone())).unwrap();
    append(&mut log, 0, 1);
    append(&mut log, 1, 2);
    assert_eq!((notary.heads().len(), log.owes_head()), (1, true));
    clock.fetch_add(HEAD_EVERY - 1, Ordering::Relaxed);
    log.sign_head_if_due();
    assert_eq!(notary.heads().len(), 1);
    clock.fetch_add(1, Ordering::Relaxed);
    log.sign_head_if_due();
    assert_eq!((notary.heads().len(), log.owes_head()), (2, false));
    append(&mut log, 2, 3);
    log.sign_head().unwrap();
    assert_eq!(notary.heads().len(), 3, "on demand at any time");
    clock.fetch_sub(HEAD_EVERY * 10, Ordering::Relaxed);
    append(&mut log, 3, 4);
    assert_eq!(notary.heads().len(), 4, "a clock that went back is no reason to wait");
    assert_consistent(&world, &notary);
}

/// The tree covers all entries, at sizes around stored subtrees, however it grew.
#[test]
fn the_root_is_that_of_the_entries_however_it_grew() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let mut log = world.log(V1);
    let mut to = 0;
    for step in [1, 254, 1, 1, 255, 257, 1300, 1, 3000] {
        let events: Vec<_> = (to..to + step).map(|n| admitted(n, "s", true)).collect();
        to += step;
        log.append(&events, NextStep::Nothing).unwrap();
        sign_head(&world.store, &world.identity, &notary).unwrap();
        let reader = world.reader();
        let snapshot = reader.view(&world.identity).unwrap();
        let mut edge = ipse_ledger::Edge::default();
        let all = Seq(1)..=world.head();
        let push = |entry: ipse_ledger::Entry, _| {
            edge.push(entry.hash(), |_, _, _| {});
            Ok::<_, ipse_store::Error>(())
        };
        snapshot.view().each_entry(all, push).unwrap();
        let head = head_of(notary.heads().last().unwrap()).unwrap();
        assert_eq!((head.size, head.root), (edge.size(), edge.root()));
        assert_eq!(snapshot.view().tree_root(head.size).unwrap(), head.root);
    }
    assert_consistent(&world, &notary);
    world.assert_healthy();
    let rows: i64 =
        world.raw().query_row("SELECT count(*) FROM tree", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, to.cast_signed() / 256);
    // Stored subtrees are derived: without them the proofs are the same.
    world.delete_derived(&["tree"]);
    assert_consistent(&world, &notary);
    append(&mut log, to, to + 1);
    sign_head(&world.store, &world.identity, &notary).unwrap();
    assert_consistent(&world, &notary);
    world.assert_healthy();
}

#[test]
fn an_older_copy_is_noticed_and_nothing_is_signed() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let mut log = world.log(V1);
    log.set_notary(Box::new(notary.clone())).unwrap();
    append(&mut log, 0, 5);
    let copy = world.path.with_extension("copy");
    world.store.copy_to(&copy).unwrap();
    let copy = Store::open(&Location::file(copy)).unwrap();
    append(&mut log, 5, 10);
    log.sign_head().unwrap();
    drop(log);
    let before = notary.heads();
    let restored = |store: &Store| sign_head(store, &world.identity, &notary);
    let behind = restored(&copy);
    assert!(matches!(behind, Err(Error::Behind { signed: 12, stored: 6 })), "{behind:?}");
    let open = |notary: Option<&TestNotary>| {
        let mut log = Log::open(&copy, world.identity, Box::new(TestHost(90))).unwrap();
        let set = notary.map_or(Ok(()), |notary| log.set_notary(Box::new(notary.clone())));
        set.map(|()| log)
    };
    assert!(matches!(open(Some(&notary)).err(), Some(Error::Behind { signed: 12, stored: 6 })));
    let host = Box::new(TestHost(90));
    let memory: Option<Box<dyn Notary>> = Some(Box::new(notary.clone()));
    let memory = Memory::open(&copy, world.identity, Policy::default(), host, memory);
    assert!(matches!(memory.err(), Some(Error::Behind { signed: 12, stored: 6 })));
    // Without a notary it accepts events. When it is as long again, it is another log.
    append(&mut open(None).unwrap(), 100, 110);
    assert!(matches!(open(Some(&notary)).err(), Some(Error::Forked { signed: 12 })));
    assert!(matches!(restored(&copy), Err(Error::Forked { signed: 12 })));
    assert_eq!(notary.heads(), before, "nothing was signed");
    restored(&world.store).unwrap();
    assert_eq!(notary.heads(), before, "the newer copy works as before");
}

/// Truncates the log to a number of entries, bypassing its guards.
fn cut(world: &World, entries: u64) {
    let db = world.raw();
    let sql = "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema \
               WHERE type = 'trigger'";
    let drop: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    db.execute_batch(&drop).unwrap();
    db.execute("DELETE FROM event WHERE at > (1 << 40) + ?1", [entries.cast_signed()]).unwrap();
    db.execute("DELETE FROM pass WHERE at > (1 << 40) + ?1", [entries.cast_signed()]).unwrap();
}

/// A log that lost its end while it was open accepts nothing, and its signer is not called
/// repeatedly. When it continues the last head again, it accepts events.
#[test]
fn a_log_that_gets_shorter_while_it_is_open_takes_nothing() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let mut log = world.log(V1);
    log.set_notary(Box::new(notary.clone())).unwrap();
    append(&mut log, 0, 2);
    append(&mut log, 2, 5);
    log.sign_head().unwrap();
    let first = notary.heads().remove(0);
    log.check_signed().unwrap();
    cut(&world, 3);
    let events: Vec<_> = (5..6).map(|n| admitted(n, "s", true)).collect();
    for _ in 0..2 {
        let refused = log.append(&events, NextStep::Nothing);
        assert!(matches!(refused, Err(Error::Behind { signed: 7, stored: 3 })), "{refused:?}");
    }
    let judged = log.append_judged(|_| Ok::<_, Error>(Ok::<_, ()>((events[0].clone(), ()))));
    assert!(matches!(judged.err(), Some(Error::Behind { signed: 7, stored: 3 })));
    let forgotten = log.forget(&Selection::AllBut(1)).err();
    assert!(matches!(forgotten, Some(Error::Behind { signed: 7, stored: 3 })));
    log.sign_owed_head();
    assert!(log.take_head_error().is_none());
    assert_eq!(world.head(), Seq(3));
    notary.kept.lock().unwrap().clear();
    assert!(matches!(log.check_signed(), Err(Error::Behind { .. })), "no head: still rejected");
    notary.kept.lock().unwrap().push(first);
    log.check_signed().unwrap();
    log.append(&events, NextStep::Nothing).unwrap();
}

#[test]
fn a_log_that_was_refused_stays_so_when_others_make_it_as_long_again() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let mut log = world.log(V1);
    log.set_notary(Box::new(notary.clone())).unwrap();
    append(&mut log, 0, 5);
    log.sign_head().unwrap();
    cut(&world, 3);
    let mut refused = || log.append(&[admitted(5, "s", true)], NextStep::Nothing);
    assert!(matches!(refused(), Err(Error::Behind { stored: 3, .. })));
    let others: Vec<_> = (10..20).map(|n| admitted(n, "s", true)).collect();
    world.log(V1).append(&others, NextStep::Nothing).unwrap();
    assert!(matches!(refused(), Err(Error::Behind { stored: 3, .. })));
    assert_eq!(world.head(), Seq(13));
}

#[test]
fn a_head_that_the_store_never_got_is_taken_up() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let mut log = world.log(V1);
    append(&mut log, 0, 5);
    // The process dies between the notary and the store.
    let note = sign_head(&world.store, &world.identity, &notary).unwrap();
    world.raw().execute_batch("DELETE FROM tree_head; DELETE FROM tree").unwrap();
    assert_eq!(sign_head(&world.store, &world.identity, &notary).unwrap(), note);
    append(&mut log, 5, 6);
    world.raw().execute_batch("DELETE FROM tree_head").unwrap();
    sign_head(&world.store, &world.identity, &notary).unwrap();
    assert_consistent(&world, &notary);
    assert_eq!(notary.heads().len(), 2);
    // The notary fails: nothing is published.
    append(&mut log, 6, 7);
    let broken = TestNotary { broken: true, ..notary.clone() };
    let failed = sign_head(&world.store, &world.identity, &broken);
    assert!(matches!(failed, Err(Error::Notary(_))));
    let stored = world.reader().view(&world.identity).unwrap().view().tree_head().unwrap();
    assert_eq!(stored.as_ref(), notary.heads().last());
}

#[test]
fn two_processes_sign_one_log_and_never_two_histories() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let lock = Mutex::new(());
    std::thread::scope(|scope| {
        for process in 0..4_u64 {
            let (store, identity, notary, lock) =
                (&world.store, world.identity, notary.clone(), &lock);
            scope.spawn(move || {
                let host = Box::new(TestHost(u128::from(process) << 64));
                let mut log = Log::open(store, identity, host).unwrap();
                for round in 0..10 {
                    let from = process * 1000 + round * 10;
                    append(&mut log, from, from + 5);
                    let _held = lock.lock().unwrap();
                    sign_head(store, &identity, &notary).unwrap();
                }
            });
        }
    });
    assert!(notary.heads().len() > 10);
    assert_consistent(&world, &notary);
    world.assert_healthy();
}

#[test]
fn a_head_of_another_log_or_no_head_at_all_stops_signing() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    append(&mut world.log(V1), 0, 3);
    for bad in ["", "no note\n", &notary.signer.sign("ipse/other\n1\nAAAA\n").unwrap()] {
        notary.kept.lock().unwrap().push(bad.to_string());
        let refused = sign_head(&world.store, &world.identity, &notary);
        assert!(matches!(refused, Err(Error::NoHead(_))), "{bad:?}");
    }
}

/// The head in the store is checked too, because the keys may be new.
#[test]
fn a_stored_head_that_does_not_fit_stops_signing() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    append(&mut world.log(V1), 0, 3);
    sign_head(&world.store, &world.identity, &notary).unwrap();
    let origin = TreeHead::origin_of(&world.identity);
    let root = "A".repeat(43) + "=";
    for (size, behind) in [(9, true), (3, false)] {
        let note = notary.signer.sign(&format!("{origin}\n{size}\n{root}\n")).unwrap();
        world.raw().execute("UPDATE tree_head SET note = ?1", [note]).unwrap();
        let fresh = TestNotary::new(&world);
        let refused = sign_head(&world.store, &world.identity, &fresh);
        assert_eq!(matches!(refused, Err(Error::Behind { signed: 9, stored: 4 })), behind);
        assert_eq!(matches!(refused, Err(Error::Forked { signed: 3 })), !behind);
        assert!(fresh.heads().is_empty());
    }
}

#[test]
fn verify_holds_the_log_against_what_was_signed() {
    let world = World::new();
    let notary = TestNotary::new(&world);
    let mut log = world.log(V1);
    append(&mut log, 0, 300);
    let older = sign_head(&world.store, &world.identity, &notary).unwrap();
    append(&mut log, 300, 310);
    let note = sign_head(&world.store, &world.identity, &notary).unwrap();
    let outside = |last: &str| ExternalEvidence {
        log_keys: vec![notary.signer.public()],
        last_head: Some(last.to_string()),
        ..ExternalEvidence::default()
    };
    assert!(world.findings(&outside(&note)).is_empty());
    assert!(world.findings(&outside(&older)).is_empty());
    let root = "A".repeat(43) + "=";
    let origin = TreeHead::origin_of(&world.identity);
    let signed = |text: String| notary.signer.sign(&text).unwrap();
    let forked = signed(format!("{origin}\n301\n{root}\n"));
    let ahead = signed(format!("{origin}\n999\n{root}\n"));
    let other = signed(format!("ipse/x\n3\n{root}\n"));
    let stranger = NoteSigner::new(&origin, SecretKey::from_seed(&[8; 32])).unwrap();
    let strange = stranger.sign(&head_of(&note).unwrap().text()).unwrap();
    for (note, words) in [
        (forked, "not those that were signed"),
        (ahead, "an older copy"),
        (other, "belongs to another log"),
        (strange, "no trusted key named ipse/"),
        ("?".to_string(), "cannot be read"),
    ] {
        let findings = world.findings(&outside(&note));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains(words), "{findings:?}");
    }
    world.raw().execute_batch("UPDATE tree SET nodes = zeroblob(32)").unwrap();
    assert_eq!(world.findings(&outside(&note)), ["tree at seq 256: differs from the entries"]);
}
