//! The parts of a walk that need no store and no bundle.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_audit::{Check, Context, Index, Outcome, Walk};
use ipse_consolidate::Skip;
use ipse_consult::intents::Content;
use ipse_core::json::Value;
use ipse_core::{Digest, EventRef, Identity, Seq, json_parse};
use ipse_ledger::{Hash, NoteKey, RulesEvent, TreeHead};

fn name(n: usize) -> EventRef {
    EventRef::new("source", &n.to_string())
}

/// Makes a check without keys.
fn run(check: Check, walk: &Walk, names: &[EventRef], from: Seq) -> Outcome {
    let identity = &Identity([0; 32]);
    check.run(walk, &Context { names, from, identity, operators: &[] })
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
    let continues = |size: usize| index.continues(&head(size as u64, roots[size])).is_ok();
    assert_eq!([0, 1, 2, 3].map(continues), [true, false, true, false]);
    let fault = |size, root| index.continues(&head(size, root)).unwrap_err();
    assert!(fault(2, roots[1]).contains("not those that were signed"));
    assert!(fault(9, roots[4]).contains("covers 9 entries, but there are 4"));
}

#[test]
fn a_pass_record_follows_the_one_before_it_whether_that_is_there_or_not() {
    let mut walk = Walk::default();
    let contents = [Content::Unknown, Content::Bytes(b"{}"), Content::Bytes(b"{}")];
    for (seq, content) in (1..).zip(contents) {
        let fault = walk.next(Seq(seq), name(1), "consolidation_run", content);
        let place = format!("pass record at seq {seq}");
        let unreadable = Some((place, "cannot be read".to_owned()));
        assert_eq!(fault, unreadable.filter(|_| content != Content::Unknown));
    }
    let follows: Vec<_> = walk.records.iter().map(|record| (record.seq, record.follows)).collect();
    assert_eq!(follows, [(Seq(2), Some(Seq(1))), (Seq(3), Some(Seq(2)))]);
    assert_eq!(run(Check::Passes, &walk, &[], Seq(0)).faults, [], "reported by the walk");
}

#[test]
fn a_forget_event_that_ipse_cannot_have_written_is_a_fault_at_its_place() {
    let own = EventRef::new("ipse", "forget:7");
    for (name, message) in [(own, "cannot be read"), (name(7), "its id is not forget:7")] {
        let fault = Walk::default().next(Seq(7), name, "forget", Content::Bytes(b"{}"));
        assert_eq!(fault, Some(("forget event at seq 7".to_owned(), message.to_owned())));
    }
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
                walk.fed(event_type, [("v9", skip), ("v1", under_v1)]);
            };
        take(1, "note", "{}", [None, Some(Skip::NoObject)]);
        take(2, "note", "{}", [Some(Skip::NoZone), Some(Skip::NoObject)]);
        let house = [Some(Skip::Housekeeping); 2];
        take(3, "consolidation_run", &record(1, notes), house);
        assert_eq!(walk.records[0].lists_idle, Some(fits), "{notes} notes");
    }
}

#[test]
fn the_list_and_the_id_of_a_pass_record_are_compared() {
    let (list, id) = ("its list of skipped events", "its id is not pass:");
    let own = EventRef::new("ipse", "pass:v1:1-0");
    for (record_name, notes, expected) in [
        (own, 1, vec![]),
        (own, 2, vec![list]),
        (name(1), 1, vec![id]),
        (name(1), 2, vec![list, id]),
    ] {
        let mut walk = Walk::default();
        walk.next(Seq(1), name(1), "note", Content::Bytes(b"{}"));
        walk.fed("note", [("v1", Some(Skip::NoObject))]);
        let record = record(1, notes);
        walk.next(Seq(2), record_name, "consolidation_run", Content::Bytes(record.as_bytes()));
        walk.fed("consolidation_run", [("v1", Some(Skip::Housekeeping))]);
        let names = [name(1), record_name];
        let wrong = run(Check::Passes, &walk, &names, Seq(0)).faults;
        let found = |text: &&str| wrong.iter().any(|(_, wrong)| wrong.starts_with(text));
        assert_eq!([list, id].into_iter().filter(found).collect::<Vec<_>>(), expected);
        assert!(wrong.iter().all(|(place, _)| place == "pass record at seq 2"), "{wrong:?}");
        // The events before `from` are not known.
        let wrong = run(Check::Passes, &walk, &names, Seq(2)).faults;
        assert!(!wrong.iter().any(|(_, wrong)| wrong.starts_with(list)), "{wrong:?}");
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
        walk.fed(event_type, [("v1", Some(skip))]);
    };
    for (notes, first, listed, _) in cases {
        (0..notes).for_each(|_| take("note", "{}", Skip::NoObject));
        take("consolidation_run", &record(first, listed), Skip::Housekeeping);
    }
    let lists: Vec<_> = walk.records.iter().map(|record| record.lists_idle).collect();
    assert_eq!(lists, cases.map(|(_, _, _, fits)| Some(fits)));
    assert_eq!(walk.idle["v1"][0].len(), 1, "housekeeping is never counted");
}

/// The log of `vectors/rules`: four changes of rules, and a proposal that was withdrawn.
const CHANGES: &str = include_str!("../../../vectors/rules/changes.events.jsonl");

/// A text of an event, such as its type.
fn text_of<'v>(event: &'v Value<'_>, name: &str) -> &'v str {
    event.as_object().unwrap().get(name).unwrap().as_text().unwrap()
}

/// Walks over these lines; returns the faults of events.
fn walked(lines: &[Vec<u8>]) -> (Walk, Vec<(String, String)>) {
    let (mut walk, mut faults) = (Walk::default(), Vec::new());
    for (seq, line) in (1..).map(Seq).zip(lines) {
        let Ok(event) = json_parse::parse(line, 16) else { continue };
        let name = EventRef::new(text_of(&event, "source"), text_of(&event, "id"));
        let event_type = text_of(&event, "type").to_owned();
        faults.extend(walk.next(seq, name, &event_type, Content::Bytes(line)));
    }
    (walk, faults)
}

#[test]
fn the_vector_of_changes_gives_the_rules_in_force_at_every_position() {
    let expected = include_str!("../../../vectors/rules/changes.in_force.json").trim_end();
    let expected = json_parse::parse(expected.as_bytes(), 4).unwrap();
    let identity = Identity::parse(text_of(&expected, "identity_hash")).unwrap();
    let operator = include_str!("../../../vectors/rules/operator.vkey").trim_end();
    let operator = NoteKey::parse(operator).unwrap();
    let lines: Vec<Vec<u8>> = CHANGES.lines().map(|line| line.as_bytes().to_vec()).collect();
    let (walk, faults) = walked(&lines);
    assert_eq!(faults, []);
    let mut context = Context { names: &[], from: Seq(0), identity: &identity, operators: &[] };
    let unchecked = Check::Rules.run(&walk, &context);
    assert!(unchecked.limits[0].contains("not checked") && unchecked.faults.is_empty());
    let operators = [operator];
    context.operators = &operators;
    let found = Check::Rules.run(&walk, &context);
    assert_eq!((found.faults, found.untrusted, found.limits), Default::default());
    let Some(Value::Array(versions)) = expected.as_object().unwrap().get("rules_in_force") else {
        panic!("the vector lists the rules of every position")
    };
    assert_eq!(versions.len(), lines.len() + 1);
    for (seq, version) in (0..).map(Seq).zip(versions) {
        assert_eq!(walk.rules.at(seq).version, version.as_text().unwrap(), "seq {seq}");
    }
}

#[test]
fn a_change_of_rules_without_its_pass_is_a_fault_anywhere_in_the_log() {
    let lines: Vec<Vec<u8>> = CHANGES.lines().map(|line| line.as_bytes().to_vec()).collect();
    let (whole, _) = walked(&lines);
    let changes: Vec<Seq> = whole.rules.changes().iter().map(|(seq, _)| *seq).collect();
    for change in changes.into_iter().filter(|seq| whole.rules.is_change(*seq)) {
        let end = usize::try_from(change.0).unwrap();
        let mut other = lines.clone();
        other[end] = br#"{"id":"1","source":"s","type":"note"}"#.to_vec();
        for lines in [&lines[..end], &other] {
            let (walk, _) = walked(lines);
            let place = format!("rules event at seq {change}");
            let fault = (place, "is not followed by its pass".to_owned());
            assert_eq!(run(Check::Rules, &walk, &[], Seq(0)).faults, [fault]);
        }
    }
}

#[test]
fn a_changed_byte_of_a_rules_event_is_another_event_or_none() {
    let lines: Vec<Vec<u8>> = CHANGES.lines().map(|line| line.as_bytes().to_vec()).collect();
    let mut changed = 0;
    for (seq, line) in (1..).map(Seq).zip(&lines) {
        let Some(event) = RulesEvent::read(seq, line) else { continue };
        for at in 0..line.len() {
            for bit in [1, 32] {
                let mut other = line.clone();
                other[at] ^= bit;
                // The salt and the time are not part of the step.
                let read = RulesEvent::read(seq, &other).filter(|read| *read == event);
                assert!(read.is_none() || outside_data(line, at), "seq {seq}, byte {at}");
                changed += 1;
            }
        }
    }
    assert!(changed > 1000, "{changed}");
}

/// Whether a byte is not in the `data` of an event, which comes first in canonical form.
fn outside_data(line: &[u8], at: usize) -> bool {
    let end = line.windows(6).position(|text| text == b",\"id\":").unwrap();
    at >= end || at < 8
}
