//! The parts of a walk that need no store and no bundle.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_audit::{Index, Walk};
use ipse_consolidate::Skip;
use ipse_consult::intents::Content;
use ipse_core::{Digest, EventRef, Identity, Seq};
use ipse_ledger::{Hash, TreeHead};

fn name(n: usize) -> EventRef {
    EventRef::new("source", &n.to_string())
}

#[test]
fn names_are_found_and_duplicates_are_reported_in_log_order() {
    let mut index = Index::default();
    index.names = [3, 1, 2, 1, 4].map(name).to_vec();
    assert_eq!(index.sort(), [[1, 3]]);
    assert_eq!([3, 2, 4, 5].map(|n| index.find(&name(n))), [Some(0), Some(2), Some(4), None]);
}

#[test]
fn an_event_is_looked_up_with_its_digest_if_digests_are_kept() {
    let mut index = Index::default();
    index.names = [2, 1].map(name).to_vec();
    index.sort();
    assert_eq!(index.look_up(&name(1)), None, "no digest is kept");
    index.digests = vec![Digest([2; 32]), Digest([1; 32])];
    let found = [1, 2, 3].map(|n| index.look_up(&name(n)));
    assert_eq!(found, [Some((Seq(2), Digest([1; 32]))), Some((Seq(1), Digest([2; 32]))), None]);
}

#[test]
fn a_log_continues_the_heads_that_were_asked_for_and_no_others() {
    let head =
        |size, root| TreeHead { origin: TreeHead::origin_of(&Identity([0; 32])), size, root };
    let mut index = Index::new([0, 2, 9].into_iter());
    let mut roots: Vec<Hash> = vec![index.edge.root()];
    for n in 0..4 {
        index.grow([n; 32], |_, _, _| {});
        roots.push(index.edge.root());
    }
    let continues = |size: usize| index.continues(&head(size as u64, roots[size]));
    assert_eq!([0, 1, 2, 3].map(continues), [true, false, true, false]);
    assert!(!index.continues(&head(2, roots[1])), "another root");
    assert!(!index.continues(&head(9, roots[4])), "beyond the end");
}

#[test]
fn a_pass_record_follows_the_one_before_it_whether_that_is_there_or_not() {
    let mut walk = Walk::default();
    let contents = [Content::Unknown, Content::Bytes(b"{}"), Content::Bytes(b"{}")];
    for (seq, content) in (1..).zip(contents) {
        assert_eq!(walk.next(Seq(seq), name(1), "consolidation_run", content), []);
    }
    let follows: Vec<_> = walk.records.iter().map(|record| (record.seq, record.follows)).collect();
    assert_eq!(follows, [(Seq(2), Some(Seq(1))), (Seq(3), Some(Seq(2)))]);
    let wrong: Vec<_> = walk.passes(&[], Seq(0)).map(|(_, whole, wrong)| (whole, wrong)).collect();
    assert_eq!(wrong, [(false, vec!["cannot be read"]), (false, vec!["cannot be read"])]);
}

#[test]
fn a_forget_event_that_cannot_be_read_is_a_fault_at_its_place() {
    let mut walk = Walk::default();
    let fault = walk.next(Seq(7), name(7), "forget", Content::Bytes(b"{}")).remove(0);
    assert_eq!(fault, ("forget event at seq 7".to_owned(), "cannot be read".to_owned()));
}

/// A pass record that lists this many notes as skipped.
fn record(first: u64, notes: u64) -> String {
    let skipped =
        if notes > 0 { format!("{{\"note\":{{\"no_object\":{notes}}}}}") } else { "{}".into() };
    let data = format!(
        "{{\"events_processed\":0,\"events_skipped\":{notes},\"first_processed_event_id\":null,\
         \"first_seq\":{first},\"last_processed_event_id\":null,\"last_seq\":0,\"rows_touched\":0,\
         \"rule_set_sha256\":\"\",\"rule_version\":\"v1\",\"skipped\":{skipped},\
         \"trigger\":\"manual\"}}"
    );
    format!(
        "{{\"data\":{data},\"id\":\"\",\"salt\":\"\",\"source\":\"ipse\",\"specversion\":\"1.0\",\
         \"time\":\"\",\"type\":\"consolidation_run\"}}"
    )
}

/// A log whose rules changed: the record is under `v1`, and the facts follow other rules.
#[test]
fn a_pass_record_lists_the_events_that_its_own_rules_skip() {
    for (notes, fits) in [(0, false), (2, true), (3, false)] {
        let mut walk = Walk::default();
        let mut take =
            |seq, event_type: &str, content: &str, [skip, under_v1]: [Option<Skip>; 2]| {
                walk.next(Seq(seq), name(1), event_type, Content::Bytes(content.as_bytes()));
                walk.fed_under(event_type, skip, &[("v1", under_v1)]);
            };
        take(1, "note", "{}", [None, Some(Skip::NoObject)]);
        take(2, "note", "{}", [Some(Skip::NoZone), Some(Skip::NoObject)]);
        let house = [Some(Skip::Housekeeping); 2];
        take(3, "consolidation_run", &record(1, notes), house);
        assert_eq!(walk.records[0].lists_idle, fits, "{notes} notes");
    }
}

#[test]
fn a_pass_record_lists_the_events_of_its_range_that_feed_no_fact() {
    // Notes before the record, its first position, the number it lists, and whether they match.
    let cases =
        [(2, 1, 2, true), (1, 4, 1, true), (1, 6, 2, false), (0, 1, 4, true), (0, 9, 0, true)];
    let (mut walk, mut seq) = (Walk::default(), 0);
    let mut take = |event_type: &str, content: &str, skip| {
        seq += 1;
        walk.next(Seq(seq), name(1), event_type, Content::Bytes(content.as_bytes()));
        walk.fed(event_type, Some(skip));
    };
    for (notes, first, listed, _) in cases {
        (0..notes).for_each(|_| take("note", "{}", Skip::NoObject));
        take("consolidation_run", &record(first, listed), Skip::Housekeeping);
    }
    let lists: Vec<bool> = walk.records.iter().map(|record| record.lists_idle).collect();
    assert_eq!(lists, cases.map(|(_, _, _, fits)| fits));
    assert_eq!(walk.idle[0].len(), 1, "housekeeping is never counted");
}
