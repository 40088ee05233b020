//! Explaining: from a fact to the events it rests on, and from an event to the facts it feeds.
//!
//! **Invariants:** there is no index by event. Evidence is found by walking the log from its end,
//! until enough is found. A fact's sum is the stored tally plus the events after it.

mod change;
mod distance;
mod event;
mod explanation;
mod planned;
mod words;

pub use change::{Change, WithoutSource};
pub use distance::MissingRecommendation;
pub use event::ExplainedEvent;
pub use explanation::{Explanation, PAGE};
pub use planned::Planned;
pub use words::Units;

use crate::Error;
use ipse_consolidate::{BulkFold, Derived, EVERY_FACT, Group, RuleSet, Tally, with_rules};
use ipse_core::chunk::Chunk;
use ipse_core::{Event, EvidenceKey, FactId, FactKey, Identity, Seq, Time};
use ipse_engine::{fold_range, rules_of, stored_group};
use ipse_store::{Scan, View};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The positions of the events that a fact rests on, newest first: `wanted` after `skipped`.
pub fn evidence(
    view: View<'_>,
    fact: &EvidenceKey,
    up_to: Seq,
    skipped: usize,
    wanted: usize,
) -> Result<Vec<Seq>, Error> {
    with_rules!(rules_of(view)?, |rules| {
        evidence_under(view, rules, fact, up_to, skipped, wanted)
    })
}

/// Like [`evidence`], with the caller's rules.
pub fn evidence_under<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    fact: &EvidenceKey,
    up_to: Seq,
    skipped: usize,
    wanted: usize,
) -> Result<Vec<Seq>, Error> {
    let enough = skipped.saturating_add(wanted);
    let found = newest_evidence(view, rules, std::slice::from_ref(fact), up_to, enough)?;
    Ok(found.into_iter().flatten().skip(skipped).collect())
}

/// The positions of the newest events that each of these facts rests on, newest first, up to
/// `wanted` for each. One walk, which ends when all have enough.
pub(crate) fn newest_evidence<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    facts: &[EvidenceKey],
    up_to: Seq,
    enough: usize,
) -> Result<Vec<Vec<Seq>>, Error> {
    let up_to = up_to.min(view.head()?);
    let keys = sources(view, rules, facts, up_to)?.into_iter();
    let sought = keys.zip(facts).map(|(keys, fact)| Sought { fact, keys, found: Vec::new() });
    let (bulk, sought) = (rules.bulk(EVERY_FACT), sought.collect());
    let mut search = Search { rules, bulk, enough, sought, times: Vec::new() };
    view.scan_back(up_to, &mut search)?;
    let newest = |Sought { mut found, .. }: Sought<'_>| {
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
    facts: &[EvidenceKey],
    up_to: Seq,
) -> Result<Vec<BTreeSet<FactKey>>, Error> {
    let alone = |fact: &EvidenceKey| BTreeSet::from([fact.key.clone()]);
    let found = RefCell::new(facts.iter().map(alone).collect::<Vec<_>>());
    if !facts.iter().any(|fact| rules.is_derived(&fact.key)) {
        return Ok(found.into_inner());
    }
    let add = |key: &FactKey| {
        let derived = rules.derived_keys(key);
        for (of, found) in facts.iter().zip(&mut *found.borrow_mut()) {
            found.extend(derived.contains(&of.key).then(|| key.clone()));
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
    sought: Vec<Sought<'s>>,
    /// The times of the current chunk.
    times: Vec<i64>,
}

/// A fact whose evidence is sought.
struct Sought<'s> {
    fact: &'s EvidenceKey,
    /// The keys under which events support it.
    keys: BTreeSet<FactKey>,
    /// The positions found so far.
    found: Vec<Seq>,
}

impl<R: RuleSet> Scan<Error> for Search<'_, R> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let damaged = || Error::Damaged(format!("chunk from seq {first} on"));
        let bulk = self.bulk.as_ref().ok_or_else(damaged)?;
        if self.sought.iter().any(|sought| sought.fact.since.is_some()) {
            chunk.times.unpack(chunk.count, &mut self.times);
        }
        let (enough, times) = (self.enough, &self.times);
        for Sought { fact, keys, found } in
            self.sought.iter_mut().filter(|sought| sought.found.len() < enough)
        {
            // An event may support a fact under several keys.
            let mut here = BTreeSet::new();
            for key in &*keys {
                here.extend(bulk.supporters(chunk, key).ok_or_else(damaged)?);
            }
            let since = fact.since.map(Time::micros);
            let counts = |place: &usize| {
                places.contains(place) && since.is_none_or(|since| since <= times[*place])
            };
            let inside = here.into_iter().filter(counts);
            found.extend(inside.map(|place| Seq(first.0 + place as u64)));
        }
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        let contributions = self.rules.contributions(event).unwrap_or_default();
        let supported = |sought: &&mut Sought<'_>| {
            let supports = |key: &FactKey| sought.keys.contains(key);
            sought.fact.counts(event.time)
                && contributions.iter().any(|part| part.supports && supports(&part.key))
        };
        let sought = self.sought.iter_mut().filter(supported);
        sought.for_each(|sought| sought.found.push(seq));
        Ok(())
    }

    fn enough(&self) -> bool {
        self.sought.iter().all(|sought| sought.found.len() >= self.enough)
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
