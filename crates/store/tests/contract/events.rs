//! Events: appending, finding, reading, scanning, forgetting, restoring.

use crate::place::{Place, event, event_of};
use ipse_core::chunk::{CHUNK_EVENTS, Chunk};
use ipse_core::{Admitted, Event, EventRef, Seq};
use ipse_ledger::Entry;
use ipse_store::{Appended, Error, Scan, View};
use std::ops::{ControlFlow, Range};

const CONTINUE: ControlFlow<()> = ControlFlow::Continue(());

pub(crate) fn positions_are_dense_and_events_are_read_back(place: &Place) {
    let appended = place.append(1..6);
    assert_eq!(appended, (1..6).map(|n| Appended::New(Seq(n))).collect::<Vec<_>>());
    let (reader, event) = (place.reader(), event(3));
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    assert_eq!((view.head().unwrap(), view.identity()), (Seq(5), place.identity));
    let stored = view.stored(Seq(3)).unwrap().unwrap();
    assert_eq!((stored.event_ref, stored.digest), (event.event_ref, event.digest));
    assert_eq!((stored.canonical, stored.time), (event.canonical.clone(), event.time));
    assert_eq!(view.find(&event.event_ref).unwrap(), Some(Seq(3)));
    assert_eq!(view.event_ref(Seq(3)).unwrap(), event.event_ref);
    assert_eq!(view.digest(Seq(3)).unwrap(), event.digest);
    assert!(view.stored(Seq(6)).unwrap().is_none());
    assert!(view.event_ref(Seq(6)).is_err() && view.entries_at(&[Seq(6)]).is_err());
    let other = reader_head(place, &place.other);
    assert_eq!(other, Seq(0), "the other log is empty");
}

/// More positions than fit in a page, newest first.
pub(crate) fn events_at_positions_come_in_the_order_that_was_asked_for(place: &Place) {
    place.append(1..1300);
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    let seqs: Vec<_> = (1..1300).rev().map(Seq).collect();
    let names: Vec<_> = (1..1300).rev().map(|n| event(n).event_ref).collect();
    assert_eq!(view.event_refs(&seqs).unwrap(), names);
    let mut seen = Vec::new();
    let mut see = |seqs: &[Seq]| {
        view.each_event_at(seqs, |seq, event| {
            seen.push((seq, event.event_ref));
            Ok::<_, ipse_store::Error>(())
        })
    };
    see(&seqs).unwrap();
    assert!(see(&[Seq(1300)]).is_err(), "the event does not exist");
    assert_eq!(seen, seqs.into_iter().zip(names).collect::<Vec<_>>());
    assert!(view.event_refs(&[]).unwrap().is_empty());
}

fn reader_head(place: &Place, identity: &ipse_core::Identity) -> Seq {
    place.reopened().reader().unwrap().view(identity).unwrap().view().head().unwrap()
}

pub(crate) fn a_name_is_taken_once_within_a_set_and_across_sets(place: &Place) {
    let other = event_of(1, "execution_result", "another text");
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    let set = [event(1), event(2), event(1), other.clone()];
    let appended = batch.append_all(&set, |_| None).unwrap();
    let (one, two) = (Seq(1), Seq(2));
    let want =
        [Appended::New(one), Appended::New(two), Appended::Duplicate(one), Appended::Conflict(one)];
    assert_eq!(appended, want);
    batch.commit().unwrap();
    let mut batch = writer.begin().unwrap();
    let appended = batch.append_all(&[other, event(2), event(3)], |_| None).unwrap();
    assert_eq!(
        appended,
        [Appended::Conflict(one), Appended::Duplicate(two), Appended::New(Seq(3))]
    );
    drop(batch);
    assert_eq!(reader_head(place, &place.identity), Seq(2));
}

pub(crate) fn what_is_not_admitted_is_looked_up_and_not_stored(place: &Place) {
    place.append(1..2);
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    let only_three =
        |it: &Admitted| (it.event_ref != event(3).event_ref).then_some(Appended::Unsigned);
    let appended = batch.append_all(&[event(1), event(2), event(3)], only_three).unwrap();
    assert_eq!(appended, [Appended::Duplicate(Seq(1)), Appended::Unsigned, Appended::New(Seq(2))]);
    assert_eq!(
        batch.find_all(&[event(2).event_ref, event(3).event_ref]).unwrap(),
        [None, Some(Seq(2))]
    );
    batch.commit().unwrap();
}

/// More events than fit in any page.
const MANY: u64 = 2600;

pub(crate) fn pages_join_without_a_gap(place: &Place) {
    place.append(1..MANY + 1);
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    let (mut entries, mut events, mut contents) = (Vec::new(), Vec::new(), 0);
    let all = Seq(1)..=Seq(MANY);
    view.each_entry(all.clone(), |entry: Entry, forgotten| {
        assert!(!forgotten);
        entries.push(entry.seq.0);
        Ok::<_, Error>(())
    })
    .unwrap();
    view.each_event(all.clone(), |seq, event| {
        assert_eq!(event.event_type, "execution_result");
        events.push(seq.0);
        Ok::<_, Error>(())
    })
    .unwrap();
    view.each_content(all.clone(), |_| {
        contents += 1;
        Ok::<_, Error>(())
    })
    .unwrap();
    let want: Vec<u64> = (1..=MANY).collect();
    assert_eq!((&entries, &events, contents), (&want, &want, MANY));
    let mut raw = 0;
    view.each_raw_event(|row| {
        raw += 1;
        assert_eq!(row.seq.0, raw);
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!(raw, MANY);
    let mut newest = Vec::new();
    view.each_stored(false, Some(3), |stored| {
        newest.push(stored.seq.0);
        Ok::<_, Error>(CONTINUE)
    })
    .unwrap();
    assert_eq!(newest, [MANY - 2, MANY - 1, MANY]);
}

pub(crate) fn events_are_found_by_type_by_text_and_from_the_end(place: &Place) {
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    for (number, kind, text) in [
        (1, "note", "a needle"),
        (2, "intent", "x"),
        (3, "note", "y"),
        (4, "intent", "needle"),
        (5, "other", "z"),
    ] {
        batch.append(&event_of(number, kind, text)).unwrap();
    }
    batch.commit().unwrap();
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    let all = Seq(1)..=Seq(5);
    let mut back = Vec::new();
    view.house_back("intent", all.clone(), |stored| {
        back.push(stored.seq.0);
        Ok::<_, Error>(CONTINUE)
    })
    .unwrap();
    assert_eq!(back, [4, 2]);
    let mut first = Vec::new();
    view.house_back("intent", all.clone(), |stored| {
        first.push(stored.seq.0);
        Ok::<_, Error>(ControlFlow::Break(()))
    })
    .unwrap();
    assert_eq!(first, [4], "it ends where the callback breaks");
    let mut holding = Vec::new();
    view.each_holding("needle", all.clone(), |seq, _| {
        holding.push(seq.0);
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!(holding, [1, 4]);
    let last = |kind, range| view.last_of_type(kind, range).unwrap().map(|it| it.seq.0);
    assert_eq!(last("note", all.clone()), Some(3));
    assert_eq!(last("note", Seq(1)..=Seq(2)), Some(1));
    assert_eq!((last("missing", all), last("other", Seq(1)..=Seq(4))), (None, None));
}

#[derive(Default)]
struct Seen {
    seqs: Vec<u64>,
    chunks: usize,
    most: Option<usize>,
}

impl Scan<Error> for Seen {
    fn chunk(&mut self, first: Seq, _: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        self.chunks += 1;
        self.seqs.extend(places.map(|place| first.0 + place as u64));
        Ok(())
    }

    fn event(&mut self, seq: Seq, _: &Event<'_>) -> Result<(), Error> {
        self.seqs.push(seq.0);
        Ok(())
    }

    fn enough(&self) -> bool {
        self.most.is_some_and(|most| self.seqs.len() >= most)
    }
}

fn scanned(view: View<'_>, first: u64, end: u64) -> Seen {
    let mut seen = Seen::default();
    view.scan(Seq(first)..=Seq(end), &mut seen).unwrap();
    seen
}

pub(crate) fn a_scan_passes_every_event_once_in_both_directions(place: &Place) {
    let full = CHUNK_EVENTS as u64;
    place.append(1..2 * full + 301);
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    for (first, end) in [
        (1, 2 * full + 300),
        (1, full),
        (5, full - 5),
        (full - 1, full + 1),
        (full + 1, 2 * full + 7),
        (2 * full + 1, 2 * full + 300),
        (7, 9),
    ] {
        let want: Vec<u64> = (first..=end).collect();
        assert_eq!(scanned(view, first, end).seqs, want, "{first}..{end}");
    }
    assert_eq!(scanned(view, 1, 2 * full).chunks, 2);
    for end in [0, 1, full - 1, full, full + 1, 2 * full + 300] {
        let mut seen = Seen::default();
        view.scan_back(Seq(end), &mut seen).unwrap();
        seen.seqs.sort_unstable();
        assert_eq!(seen.seqs, (1..=end).collect::<Vec<_>>(), "back from {end}");
    }
    let mut some = Seen { most: Some(10), ..Seen::default() };
    view.scan_back(Seq(2 * full + 300), &mut some).unwrap();
    assert!(some.seqs.len() < 2 * full as usize && some.seqs.contains(&(2 * full + 300)));
}

pub(crate) fn missing_chunks_are_made_again(place: &Place) {
    // The writer of another process seals the chunk that this one began.
    let full = CHUNK_EVENTS as u64;
    let mut one = place.writer();
    let mut batch = one.begin().unwrap();
    batch.append_all(&(1..full - 1).map(event).collect::<Vec<_>>(), |_| None).unwrap();
    batch.commit().unwrap();
    let two = place.reopened();
    let mut two = two.writer(&place.identity).unwrap();
    let mut batch = two.begin().unwrap();
    batch.append_all(&(full - 1..full + 3).map(event).collect::<Vec<_>>(), |_| None).unwrap();
    batch.commit().unwrap();
    let mut batch = one.begin().unwrap();
    let found = batch.append_all(&[event(1), event(full), event(full + 9)], |_| None).unwrap();
    let new = Appended::New(Seq(full + 3));
    assert_eq!(found, [Appended::Duplicate(Seq(1)), Appended::Duplicate(Seq(full)), new]);
    batch.commit().unwrap();
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    assert_eq!(snapshot.view().chunk_ends().unwrap(), [Seq(full)]);
    assert_eq!(scanned(snapshot.view(), 1, full + 3).seqs.len() as u64, full + 3);
}

/// A chunk and an index run that were sealed in a rolled-back batch are not used for events that
/// another process appends at the same positions.
pub(crate) fn a_chunk_that_was_rolled_back_is_not_believed(place: &Place) {
    let full = CHUNK_EVENTS as u64;
    let mut one = place.writer();
    let mut batch = one.begin().unwrap();
    batch.append_all(&(1..full + 1).map(event).collect::<Vec<_>>(), |_| None).unwrap();
    drop(batch);
    let store = place.reopened();
    let mut two = store.writer(&place.identity).unwrap();
    let mut batch = two.begin().unwrap();
    let theirs: Vec<Admitted> = (10_001..10_001 + full).map(event).collect();
    batch.append_all(&theirs, |_| None).unwrap();
    batch.commit().unwrap();
    let mut batch = one.begin().unwrap();
    let appended = batch.append_all(&theirs, |_| None).unwrap();
    assert!(appended.iter().all(|it| matches!(it, Appended::Duplicate(_))), "one was stored twice");
    assert_eq!(batch.append(&event(1)).unwrap(), Appended::New(Seq(full + 1)));
}

pub(crate) fn forgetting_takes_the_content_and_leaves_the_entry(place: &Place) {
    place.append(1..301);
    let mut eraser = place.store.eraser(&place.identity).unwrap();
    let mut erasing = eraser.begin().unwrap();
    erasing.batch().append(&event_of(1, "forget", &event(3).event_ref.to_string())).unwrap();
    erasing.erase(&[Seq(3), Seq(5)]).unwrap();
    erasing.commit().unwrap();
    drop(eraser);
    let erased = place.store.finish_erasing(ipse_store::Patience::Some).unwrap();
    assert_eq!(erased, ipse_store::Erased::Gone);
    let reader = place.reader();
    assert!(!reader.erase_pending().unwrap());
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    let stored = view.stored(Seq(3)).unwrap().unwrap();
    assert!(stored.is_forgotten() && stored.digest == event(3).digest);
    let [(_, gone), (_, kept)] = view.entries_at(&[Seq(5), Seq(4)]).unwrap().try_into().unwrap();
    assert_eq!((gone, kept), (true, false));
    assert_eq!(view.forgotten_by(&event(3).event_ref, Seq(3)).unwrap(), Some(Seq(301)));
    assert_eq!(view.forgotten_by(&event(4).event_ref, Seq(4)).unwrap(), None);
    drop(snapshot);
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    assert_eq!(batch.append(&event(3)).unwrap(), Appended::Forgotten(Seq(3)));
}

pub(crate) fn a_log_is_restored_only_where_there_is_none(place: &Place) {
    let entry = |seq: u64, event: &Admitted| Entry {
        seq: Seq(seq),
        event_ref: event.event_ref,
        time: event.time,
        event_type: event.event_type.clone(),
        digest: event.digest,
    };
    let mut writer = place.writer();
    let mut restoring = writer.restore().unwrap();
    let (one, two) = (event(1), event(2));
    let log = vec![(entry(1, &one), Some(one.clone())), (entry(2, &two), None)];
    restoring.put(log).unwrap();
    let gap = restoring.put(vec![(entry(9, &event(3)), Some(event(3)))]);
    assert!(matches!(gap, Err(Error::Corrupt(_))), "positions are kept");
    drop(restoring);
    let mut restoring = writer.restore().unwrap();
    restoring.put(vec![(entry(1, &one), Some(one)), (entry(2, &two), None)]).unwrap();
    restoring.put_pass((Seq(2), Seq(1), Seq(1)), "v1", [3; 32]).unwrap();
    restoring.commit().unwrap();
    assert!(matches!(writer.restore().err(), Some(Error::NotEmpty)));
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    assert!(snapshot.view().stored(Seq(2)).unwrap().unwrap().is_forgotten());
    let none: [EventRef; 0] = [];
    assert_eq!(snapshot.view().find_all(&none).unwrap(), []);
}
