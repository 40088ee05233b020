//! Explaining: from a fact to the events it rests on, and from an event to the facts it feeds.
//!
//! **Invariants:** there is no index by event. Evidence is found by walking the log from its end,
//! until enough is found. A fact's sum is the stored tally plus the events after it.

mod event;
mod explanation;
mod planned;
mod words;

pub use event::ExplainedEvent;
pub use explanation::{Explanation, PAGE};
pub use planned::Planned;

use crate::Error;
use ipse_consolidate::{BulkFold, Derived, EVERY_FACT, Group, RuleSet, Tally, with_rules};
use ipse_core::chunk::Chunk;
use ipse_core::{Event, FactId, FactKey, Identity, Seq};
use ipse_engine::{fold_range, rules_of, stored_group};
use ipse_store::{Scan, View};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The positions of the events that a fact rests on, newest first: `wanted` after `skipped`.
pub fn evidence(
    view: View<'_>,
    key: &FactKey,
    up_to: Seq,
    skipped: usize,
    wanted: usize,
) -> Result<Vec<Seq>, Error> {
    with_rules!(rules_of(view)?, |rules| {
        evidence_under(view, rules, key, up_to, skipped, wanted)
    })
}

/// Like [`evidence`], with the caller's rules.
pub fn evidence_under<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    key: &FactKey,
    up_to: Seq,
    skipped: usize,
    wanted: usize,
) -> Result<Vec<Seq>, Error> {
    let enough = skipped.saturating_add(wanted);
    let found = newest_evidence(view, rules, std::slice::from_ref(key), up_to, enough)?;
    Ok(found.into_iter().flatten().skip(skipped).collect())
}

/// The positions of the newest events that each of these facts rests on, newest first, up to
/// `wanted` for each. One walk, which ends when all have enough.
pub(crate) fn newest_evidence<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    keys: &[FactKey],
    up_to: Seq,
    enough: usize,
) -> Result<Vec<Vec<Seq>>, Error> {
    let up_to = up_to.min(view.head()?);
    let sought = sources(view, rules, keys, up_to)?;
    let sought = sought.into_iter().map(|keys| (keys, Vec::new())).collect();
    let mut search = Search { rules, bulk: rules.bulk(EVERY_FACT), enough, sought };
    view.scan_back(up_to, &mut search)?;
    let newest = |(_, mut found): (_, Vec<Seq>)| {
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.truncate(enough);
        found
    };
    Ok(search.sought.into_iter().map(newest).collect())
}

/// The keys under which events support each of these facts: its own key, and the keys of the facts
/// that it is derived from, stored or new since the checkpoint.
fn sources<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    keys: &[FactKey],
    up_to: Seq,
) -> Result<Vec<BTreeSet<FactKey>>, Error> {
    let alone = |key: &FactKey| BTreeSet::from([key.clone()]);
    let found = RefCell::new(keys.iter().map(alone).collect::<Vec<_>>());
    if !rules.derives() {
        return Ok(found.into_inner());
    }
    let add = |key: &FactKey| {
        let derived = rules.derived_keys(key);
        for (of, found) in keys.iter().zip(&mut *found.borrow_mut()) {
            found.extend(derived.contains(of).then(|| key.clone()));
        }
    };
    let stored = |key: &FactKey| {
        add(key);
        false
    };
    view.each_fact(stored, |_| Ok::<_, Error>(()))?;
    let since = view.progress()?.checkpoint.next()..=up_to;
    fold_range(view, rules, since, |key, _| add(&key))?;
    Ok(found.into_inner())
}

struct Search<'s, R: RuleSet> {
    rules: &'s R,
    bulk: Option<Box<dyn BulkFold<R::Tally>>>,
    enough: usize,
    /// The keys of each fact, and the positions found under them.
    sought: Vec<(BTreeSet<FactKey>, Vec<Seq>)>,
}

impl<R: RuleSet> Scan<Error> for Search<'_, R> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let damaged = || Error::Damaged(format!("chunk from seq {first} on"));
        let bulk = self.bulk.as_ref().ok_or_else(damaged)?;
        let (enough, sought) = (self.enough, self.sought.iter_mut());
        for (keys, found) in sought.filter(|(_, found)| found.len() < enough) {
            // An event may support a fact under several keys.
            let mut here = BTreeSet::new();
            for key in &*keys {
                here.extend(bulk.supporters(chunk, key).ok_or_else(damaged)?);
            }
            let inside = here.into_iter().filter(|place| places.contains(place));
            found.extend(inside.map(|place| Seq(first.0 + place as u64)));
        }
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        let contributions = self.rules.contributions(event).unwrap_or_default();
        let supported = |keys: &BTreeSet<FactKey>| {
            contributions.iter().any(|part| part.supports && keys.contains(&part.key))
        };
        let sought = self.sought.iter_mut().filter(|(keys, _)| supported(keys));
        sought.for_each(|(_, found)| found.push(seq));
        Ok(())
    }

    fn enough(&self) -> bool {
        self.sought.iter().all(|(_, found)| found.len() >= self.enough)
    }
}

/// The sum of a fact, as of the checkpoint.
pub fn group_under<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    identity: &Identity,
    key: &FactKey,
) -> Result<Group<R::Tally>, Error> {
    let progress = view.progress()?;
    let stored = |key: &FactKey| stored_group(view, &FactId::new(identity, key));
    let mut whole: Group<R::Tally> = stored(key)?;
    let (last, mut sources) = (whole.last, Vec::new());
    let since = progress.tallied.next()..=progress.checkpoint.min(view.head()?);
    fold_range(view, rules, since, |other, part| {
        if other == *key {
            whole.merge(&part);
        } else if rules.derived_keys(&other).contains(key) {
            sources.push((other, part));
        }
    })?;
    let mut derived = Derived::default();
    for (other, part) in sources {
        let had = stored(&other)?.tally;
        let mut has = had.clone();
        has.add(&part.tally);
        derived.replace(rules, &other, &had, &has);
    }
    whole.tally.add(&derived.take(key).tally);
    Ok(Group { last, ..whole })
}

/// The facts that the event at a position feeds, and whether it supports each.
pub fn feeds(view: View<'_>, seq: Seq) -> Result<Vec<(FactKey, bool)>, Error> {
    with_rules!(rules_of(view)?, |rules| feeds_under(view, rules, seq))
}

/// Like [`feeds`], with the caller's rules.
pub fn feeds_under<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
) -> Result<Vec<(FactKey, bool)>, Error> {
    let (mut fed, mut derived) = (Vec::new(), BTreeMap::new());
    view.each_event(seq..=seq, |_, event| {
        for part in rules.contributions(event).unwrap_or_default() {
            for to in rules.derived_keys(&part.key) {
                *derived.entry(to).or_insert(false) |= part.supports;
            }
            fed.push((part.key, part.supports));
        }
        Ok::<_, Error>(())
    })?;
    fed.extend(derived);
    Ok(fed)
}
