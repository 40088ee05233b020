//! Facts, their tallies, and the list of passes.

use crate::place::{Place, event, event_of, fact};
use ipse_core::{FactId, Seq};
use ipse_store::{Error, PassRecord, Progress};

pub(crate) fn facts_and_sums_are_sets(place: &Place) {
    place.append(1..4);
    let (one, two) = (fact(&place.identity, "a", "1"), fact(&place.identity, "b", "2"));
    let (ids, missing) = ([one.0, two.0], FactId([9; 16]));
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    batch.append(&event(9)).unwrap();
    let pass = batch.pass().unwrap();
    assert_eq!(pass.put_facts(&[one.clone(), two.clone()]).unwrap(), [true, true]);
    let changed = fact(&place.identity, "b", "3");
    assert_eq!(pass.put_facts(&[one.clone(), changed.clone()]).unwrap(), [false, true]);
    pass.put_tallies(&[(one.0, Some(vec![1, 2])), (two.0, Some(vec![3]))]).unwrap();
    pass.count_forgotten(&[(one.0, 2), (one.0, 3)]).unwrap();
    let view = pass.view();
    let sums = view.tallies(&[two.0, missing, one.0]).unwrap();
    assert_eq!(sums, [Some(vec![3]), None, Some(vec![1, 2])]);
    assert_eq!(view.facts_by_id(&[missing, two.0]).unwrap(), [None, Some(changed.1.clone())]);
    assert_eq!((view.forgotten_of(&one.0).unwrap(), view.forgotten_of(&missing).unwrap()), (5, 0));
    pass.put_tallies(&[(one.0, None), (two.0, Some(vec![4]))]).unwrap();
    assert_eq!(pass.view().tallies(&ids).unwrap(), [None, Some(vec![4])]);
    assert_eq!(pass.remove_facts(&[one.0, missing]).unwrap(), [true, false]);
    assert_eq!(pass.put_facts(&[]).unwrap(), Vec::<bool>::new());
    commit(pass, 9, 4);
    batch.commit().unwrap();
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    assert_eq!(view.facts().unwrap(), [changed.1]);
    let mut wanted = 0;
    view.each_fact(
        |key| key.text() == "nothing",
        |_| {
            wanted += 1;
            Ok::<_, Error>(())
        },
    )
    .unwrap();
    assert_eq!((wanted, view.tally_bytes().unwrap()), (0, 1));
    assert_eq!((view.raw_facts().unwrap().len(), view.raw_tallies().unwrap().len()), (1, 1));
}

/// Finishes a pass up to a position.
fn commit(pass: ipse_store::Pass<'_>, id: u64, last: u64) -> Seq {
    let event = event_of(id, "consolidation_run", "p");
    let (checkpoint, tallied) = (Seq(last), Seq(0));
    let rule_version = "v1".to_owned();
    let progress = Progress { checkpoint, tallied, rule_version, rule_set: [1; 32] };
    pass.commit(&PassRecord { event: &event, first: Seq(1), progress }).unwrap()
}

pub(crate) fn facts_of_another_identity_do_not_exist(place: &Place) {
    place.append(1..3);
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    let pass = batch.pass().unwrap();
    let known = fact(&place.identity, "a", "1");
    pass.put_facts(std::slice::from_ref(&known)).unwrap();
    pass.put_tallies(&[(known.0, Some(vec![1]))]).unwrap();
    commit(pass, 9, 2);
    batch.commit().unwrap();
    let reader = place.reader();
    let snapshot = reader.view(&place.other).unwrap();
    let view = snapshot.view();
    assert_eq!((view.fact(&known.0).unwrap(), view.tally(&known.0).unwrap()), (None, None));
    assert_eq!((view.facts().unwrap(), view.progress().unwrap()), (vec![], Progress::default()));
}

pub(crate) fn another_rule_set_starts_from_nothing(place: &Place) {
    place.append(1..3);
    let mut writer = place.writer();
    let mut batch = writer.begin().unwrap();
    let pass = batch.pass().unwrap();
    let many: Vec<_> = (0..1500).map(|n| fact(&place.identity, &n.to_string(), "1")).collect();
    assert!(pass.put_facts(&many).unwrap().iter().all(|changed| *changed));
    assert_eq!(pass.view().facts().unwrap().len(), many.len(), "more than a page");
    commit(pass, 8, 2);
    batch.commit().unwrap();
    let mut batch = writer.begin().unwrap();
    batch.append(&event(5)).unwrap();
    let pass = batch.pass().unwrap();
    pass.start_over().unwrap();
    assert_eq!(pass.view().facts().unwrap(), []);
    commit(pass, 9, 4);
    batch.commit().unwrap();
    let reader = place.reader();
    assert_eq!(reader.view(&place.identity).unwrap().view().facts().unwrap(), []);
}

pub(crate) fn passes_are_listed_and_give_the_progress(place: &Place) {
    place.append(1..3);
    let mut writer = place.writer();
    let mut seqs = Vec::new();
    for id in 10..13 {
        let mut batch = writer.begin().unwrap();
        batch.append(&event(id)).unwrap();
        let last = batch.head().0;
        seqs.push(commit(batch.pass().unwrap(), id, last));
        batch.commit().unwrap();
    }
    assert_eq!(seqs, [Seq(4), Seq(6), Seq(8)]);
    let reader = place.reader();
    let snapshot = reader.view(&place.identity).unwrap();
    let view = snapshot.view();
    let progress = view.progress().unwrap();
    assert_eq!((progress.checkpoint, progress.rule_set), (Seq(7), [1; 32]));
    assert_eq!(view.pass_count().unwrap(), 3);
    let listed = view.raw_passes().unwrap();
    assert_eq!(listed.iter().map(|pass| pass.seq).collect::<Vec<_>>(), seqs);
    let at = |pass: Option<ipse_store::RawPass>| pass.map(|pass| pass.seq.0);
    assert_eq!(at(view.pass_over(Seq(4)).unwrap()), Some(6));
    assert_eq!(at(view.pass_over(Seq(8)).unwrap()), None);
    assert_eq!(at(view.pass_before(Seq(7)).unwrap()), Some(6));
    assert_eq!(at(view.pass_before(Seq(3)).unwrap()), None);
    let mut back = Vec::new();
    view.passes_back(Seq(1)..=Seq(7), |stored| {
        back.push(stored.seq.0);
        Ok::<_, Error>(std::ops::ControlFlow::Continue(()))
    })
    .unwrap();
    assert_eq!(back, [6, 4]);
}
