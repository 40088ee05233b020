//! Facts and tallies against the sums of the log.

use super::ground::{Folding, Walked};
use super::{Report, SkippedCounts};
use crate::Error;
use ipse_consolidate::{Derived, Group, RuleSet, Tally, Totals};
use ipse_core::{FactId, FactKey, FactKind, Identity, hex, sha256};
use ipse_store::sqlite::{RawFact, View};
use std::collections::BTreeMap;

pub(super) fn check<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    registered: &Identity,
    manifest: &str,
    walked: Walked<'_, R>,
    report: &mut Report,
) -> Result<SkippedCounts, Error> {
    let [at_checkpoint, at_tallied] = walked.sums;
    let forgotten = walked.forgets.most();
    let stored = view.raw_facts()?;
    // If manifest and identity disagree, which has been told, facts may stand under either.
    let hashed = Identity(sha256(&[manifest.as_bytes()]));
    let identity =
        if stored.iter().any(|row| stands_under(row, &hashed)) { &hashed } else { registered };
    let (mut expected, mut too_many) = (BTreeMap::new(), None);
    let totals = whole(rules, at_checkpoint, |key, group| match group.publish(rules, &key) {
        Ok(fact) => expected.extend(fact.map(|fact| (key, fact))),
        Err(limit) => too_many = Some(limit),
    });
    if let Some(limit) = too_many {
        return Err(limit.into());
    }
    for row in &stored {
        let place = format!("{} fact `{}`", row.kind, ipse_door::printable(&row.key));
        let kind = FactKind::parse(&row.kind);
        let key = kind.map(|kind| FactKey::from_text(kind, row.key.clone()));
        match key.as_ref().and_then(|key| expected.remove(key)) {
            None => report.error(place, "does not follow from the log"),
            Some(fact) => {
                let id = FactId::new(identity, &fact.key);
                compare(row, &id, &fact, &place, report);
                if !(0..=forgotten.cast_signed()).contains(&row.forgotten) {
                    let message = "counts more forgotten observations than events were forgotten";
                    report.error(place, message);
                }
            }
        }
    }
    for key in expected.into_keys() {
        let place = format!("{} fact `{}`", key.kind(), ipse_door::printable(key.text()));
        report.error(place, "is missing");
    }
    tallies(view, rules, identity, at_tallied, report)?;
    Ok(totals.skipped)
}

/// Passes every sum of a log to `each`; those of derived facts come last.
fn whole<R: RuleSet>(
    rules: &R,
    sums: Folding<'_, R>,
    mut each: impl FnMut(FactKey, Group<R::Tally>),
) -> Totals {
    let mut derived = Derived::default();
    let totals = sums.finish(|key, group| {
        derived.add(rules, &key, &group);
        each(key, group);
    });
    derived.into_groups().into_iter().for_each(|(key, group)| each(key, group));
    totals
}

fn stands_under(row: &RawFact, identity: &Identity) -> bool {
    let key = FactKind::parse(&row.kind).map(|kind| FactKey::from_text(kind, row.key.clone()));
    key.is_some_and(|key| row.fact_id == FactId::new(identity, &key).0)
}

fn compare(row: &RawFact, id: &FactId, fact: &ipse_core::Fact, place: &str, report: &mut Report) {
    let last = fact.last;
    let rules = [
        (row.value != fact.value, "has another value than the log gives it"),
        (row.last_us != last.time.micros(), "has another time than its last supporting event"),
        (row.last_ref != last.event_ref.0, "names another last supporting event"),
        (row.fact_id != id.0, "stands under another id than its own"),
    ];
    for (_, message) in rules.into_iter().filter(|(wrong, _)| *wrong) {
        report.error(place, message);
    }
}

fn tallies<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    identity: &Identity,
    sums: Folding<'_, R>,
    report: &mut Report,
) -> Result<(), Error> {
    let mut stored: BTreeMap<Vec<u8>, Vec<u8>> = view.raw_tallies()?.into_iter().collect();
    whole(rules, sums, |key, group| {
        // A sum of zero is not stored, and the sum of a derived fact may be zero.
        if group.tally.is_zero() {
            return;
        }
        let mut state = Vec::new();
        group.tally.encode(&mut state);
        let place =
            format!("tally of the {} fact `{}`", key.kind(), ipse_door::printable(key.text()));
        match stored.remove(FactId::new(identity, &key).0.as_slice()) {
            None => report.error(place, "is missing"),
            Some(found) if found != state => {
                report.error(place, "differs from the sum over the log");
            }
            Some(_) => {}
        }
    });
    for id in stored.into_keys() {
        report.error(format!("tally fa_{}", hex::encode(&id)), "belongs to no fact");
    }
    Ok(())
}
