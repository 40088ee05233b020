//! The Merkle tree, tree heads, their cosignatures, statements of producers, and damage.

use crate::place::{Place, event};
use ipse_core::Seq;
use ipse_ledger::Entry;
use ipse_ledger::tree::{Edge, Hash, entry_hash};
use ipse_store::{Cosigned, Error, PutCosignature, View};

/// The root over the first entries, computed without stored subtrees.
fn root(view: View<'_>, size: u64) -> Hash {
    let mut edge = Edge::default();
    view.each_entry(Seq(1)..=Seq(size), |entry: Entry, _| {
        let mut line = String::new();
        let (name, digest) = (&entry.event_ref, &entry.digest);
        let (time, kind) = (entry.time, &entry.event_type);
        ipse_ledger::write_entry(entry.seq, name, time, kind, digest, &mut line);
        edge.push(entry_hash(line.as_bytes()), |_, _, _| {});
        Ok::<_, Error>(())
    })
    .unwrap();
    edge.root()
}

pub(crate) fn the_tree_follows_from_the_entries(place: &Place) {
    let mut heads = place.store.heads(&place.identity).unwrap();
    let mut last = 0;
    for end in [1, 255, 256, 257, 700] {
        place.append(last + 1..end + 1);
        last = end;
        let grown = heads.grow().unwrap();
        assert_eq!(grown.size, end);
        assert_eq!(grown.root, root(heads.view(), end), "{end} entries");
        heads.put(&grown, &format!("head {end}")).unwrap();
    }
    let view = heads.view();
    assert_eq!(view.tree_ends().unwrap(), [Seq(256), Seq(512)]);
    assert_eq!(view.stored_nodes(Seq(512)).unwrap().unwrap().len(), 2);
    assert_eq!(view.tree_root(300).unwrap(), root(view, 300));
    // Another handle starts with the stored subtrees.
    let again = place.store.heads(&place.identity).unwrap().grow().unwrap();
    assert_eq!((again.size, again.root), (700, root(view, 700)));
    assert_eq!(again.stored.as_deref(), Some("head 700"));
}

pub(crate) fn a_tree_head_is_swapped_only_for_the_one_that_was_seen(place: &Place) {
    place.append(1..4);
    let mut one = place.store.heads(&place.identity).unwrap();
    let mut other = place.store.heads(&place.identity).unwrap();
    let (ours, theirs) = (one.grow().unwrap(), other.grow().unwrap());
    one.put(&ours, "first").unwrap();
    assert!(matches!(other.put(&theirs, "second"), Err(Error::HeadMoved)));
    assert_eq!(one.view().tree_head().unwrap().as_deref(), Some("first"));
    let theirs = other.grow().unwrap();
    other.put(&theirs, "second").unwrap();
    assert_eq!(one.view().tree_head().unwrap().as_deref(), Some("second"));
    let foreign = place.store.heads(&place.other).unwrap();
    assert_eq!(foreign.view().tree_head().unwrap(), None);
}

pub(crate) fn statements_are_numbered_and_kept_as_they_came(place: &Place) {
    place.append(1..9);
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    batch.put_statement("key", &[Seq(1), Seq(2), Seq(4)], "an envelope").unwrap();
    batch.put_statement("key", &[Seq(7)], "another").unwrap();
    batch.commit().unwrap();
    let mut batch = writer.begin().unwrap();
    batch.put_statement("lost", &[Seq(8)], "lost").unwrap();
    drop(batch);
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    let [one, two] = view.statements().unwrap().try_into().unwrap();
    assert_eq!(one.events, [Seq(1)..=Seq(2), Seq(4)..=Seq(4)]);
    assert!(one.covers(Seq(4)) && !one.covers(Seq(3)) && two.covers_exactly(&[Seq(7)]));
    assert_eq!((view.statement_count().unwrap(), view.envelope(2).unwrap()), (2, "another".into()));
    assert!(view.envelope(3).is_err());
}

pub(crate) fn a_healthy_store_has_no_damage(place: &Place) {
    place.append(1..4200);
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    assert!(snapshot.file_damage().unwrap().is_empty());
    assert!(snapshot.schema_damage().unwrap().is_empty());
    assert!(snapshot.rows_of_nobody().unwrap().is_empty());
    assert_eq!(snapshot.wal_damage().unwrap(), None);
    assert!(!snapshot.erase_pending().unwrap());
    let names: Vec<_> = (1..4200).map(|number| event(number).event_ref).collect();
    assert!(snapshot.view().index_damage(&names).unwrap().is_empty());
    assert!(!snapshot.view().index_damage(&names[1..]).unwrap().is_empty(), "other names");
    assert_eq!(snapshot.view().raw_chunk(Seq(4096)).unwrap().unwrap().1.len(), 4096 * 16);
    assert_eq!(snapshot.view().sealed_refs(Seq(4096)).unwrap(), names[..4096]);
}

fn cosigned(size: u64, key: &str) -> Cosigned {
    let (key, line, note) = (key.to_owned(), format!("— {key} {size}"), format!("note {size}"));
    Cosigned { size, key, line, note }
}

pub(crate) fn cosignatures_stay_with_their_tree_head(place: &Place) {
    let mut writer = place.store.cosigner(&place.identity).unwrap();
    assert!(writer.view().newest_cosignatures().unwrap().is_empty());
    for (size, key) in [(7, "b"), (3, "b"), (7, "a"), (9, "a")] {
        assert_eq!(writer.put(&cosigned(size, key)).unwrap(), PutCosignature::New);
    }
    let other = Cosigned { line: "another line".into(), ..cosigned(7, "a") };
    assert_eq!(writer.put(&other).unwrap(), PutCosignature::Known, "the first one stays");
    let reader = place.reopened().reader().unwrap();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    assert_eq!(view.cosignatures(7).unwrap(), [cosigned(7, "a"), cosigned(7, "b")]);
    assert_eq!(view.cosignatures(8).unwrap(), []);
    assert_eq!(view.newest_cosignatures().unwrap(), [cosigned(9, "a")]);
    let all = [cosigned(3, "b"), cosigned(7, "a"), cosigned(7, "b"), cosigned(9, "a")];
    assert_eq!(view.all_cosignatures().unwrap(), all);
    let foreign = place.store.cosigner(&place.other).unwrap();
    assert_eq!(foreign.view().all_cosignatures().unwrap(), []);
}

/// The limit of a page counts tree heads, so a page never ends within one.
pub(crate) fn a_tree_head_has_as_many_cosignatures_as_fit_into_a_note(place: &Place) {
    let mut writer = place.store.cosigner(&place.identity).unwrap();
    for number in 0..15 {
        let put = writer.put(&cosigned(5, &format!("w{number:02}"))).unwrap();
        assert_eq!(put, PutCosignature::New, "{number}");
    }
    assert_eq!(writer.put(&cosigned(5, "w15")).unwrap(), PutCosignature::Full);
    assert_eq!(writer.put(&cosigned(5, "w03")).unwrap(), PutCosignature::Known);
    assert_eq!(writer.put(&cosigned(6, "w15")).unwrap(), PutCosignature::New);
    assert_eq!(writer.view().cosignatures(5).unwrap().len(), 15);
    assert!(writer.put(&cosigned(1 << 40, "w")).is_err(), "no log is that long");
    for size in 100..1300 {
        writer.put(&cosigned(size, "w")).unwrap();
    }
    assert_eq!(writer.view().all_cosignatures().unwrap().len(), 16 + 1200);
}
