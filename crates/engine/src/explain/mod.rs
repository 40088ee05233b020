//! Explaining: from a fact to the events it rests on, and from an event to the facts it feeds.
//!
//! **Invariants:** nothing is indexed by event: evidence is found by walking the log from its end,
//! and stops when there is enough of it; a fact's sum is the stored one and what came after it.

mod explanation;
mod planned;
mod words;

pub use explanation::{Explanation, PAGE, explained_event, said_by, source_and_id};
pub use planned::Planned;

use crate::Error;
use crate::hot::stored_group;
use crate::scan::fold_range;
use ipse_consolidate::{BulkFold, EVERY_FACT, Group, RuleSet};
use ipse_core::chunk::Chunk;
use ipse_core::{Event, FactId, FactKey, Identity, Seq};
use ipse_store::sqlite::{Scan, View};
use std::ops::Range;

/// The positions of the events behind a fact, newest first: `wanted` of them after `skipped`.
pub fn evidence<R: RuleSet>(
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

/// The positions of the newest events behind each of these facts, newest first, at most so many
/// for each; in one walk, which ends when there is enough of all.
pub(crate) fn newest_evidence<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    keys: &[FactKey],
    up_to: Seq,
    enough: usize,
) -> Result<Vec<Vec<Seq>>, Error> {
    let sought = keys.iter().map(|key| (key, Vec::new())).collect();
    let mut search = Search { rules, bulk: rules.bulk(EVERY_FACT), enough, sought };
    view.scan_back(up_to.min(view.head()?), &mut search)?;
    let newest = |(_, mut found): (_, Vec<Seq>)| {
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.truncate(enough);
        found
    };
    Ok(search.sought.into_iter().map(newest).collect())
}

struct Search<'s, R: RuleSet> {
    rules: &'s R,
    bulk: Option<Box<dyn BulkFold<R::Tally>>>,
    enough: usize,
    /// What was found of each.
    sought: Vec<(&'s FactKey, Vec<Seq>)>,
}

impl<R: RuleSet> Scan<Error> for Search<'_, R> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let damaged = || Error::Damaged(format!("chunk from seq {first} on"));
        let bulk = self.bulk.as_ref().ok_or_else(damaged)?;
        let (enough, sought) = (self.enough, self.sought.iter_mut());
        for (key, found) in sought.filter(|(_, found)| found.len() < enough) {
            let here = bulk.supporters(chunk, key).ok_or_else(damaged)?;
            let inside = here.into_iter().filter(|place| places.contains(place));
            found.extend(inside.map(|place| Seq(first.0 + place as u64)));
        }
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        let contributions = self.rules.contributions(event).unwrap_or_default();
        for part in contributions.iter().filter(|part| part.supports) {
            let sought = self.sought.iter_mut().filter(|(key, _)| part.key == **key);
            sought.for_each(|(_, found)| found.push(seq));
        }
        Ok(())
    }

    fn enough(&self) -> bool {
        self.sought.iter().all(|(_, found)| found.len() >= self.enough)
    }
}

/// The sum behind a fact, as of the checkpoint.
pub fn group<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    identity: &Identity,
    key: &FactKey,
) -> Result<Group<R::Tally>, Error> {
    let progress = view.progress()?;
    let id = FactId::new(identity, key);
    let mut whole: Group<R::Tally> = stored_group(view, &id)?;
    let last = whole.last;
    let since = progress.tallied.next()..=progress.checkpoint.min(view.head()?);
    fold_range(view, rules, since, |other, part| {
        if other == *key {
            whole.merge(&part);
        }
    })?;
    Ok(Group { last, ..whole })
}

/// The facts that the event at a position feeds, and whether it supports each.
pub fn feeds<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
) -> Result<Vec<(FactKey, bool)>, Error> {
    let mut fed = Vec::new();
    view.each_event(seq..=seq, |_, event| {
        let contributions = rules.contributions(event).unwrap_or_default();
        fed.extend(contributions.into_iter().map(|part| (part.key, part.supports)));
        Ok::<_, Error>(())
    })?;
    Ok(fed)
}
