//! Summing a range of the log, the fast way where the rule set has one.

use crate::Error;
use ipse_consolidate::{BulkFold, Group, Groups, RuleSet, Skip, Tally, Totals};
use ipse_core::chunk::Chunk;
use ipse_core::{Event, EventRef, FactKey, Seq};
use ipse_store::sqlite::{Scan, View};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// So few events are summed one by one: the tables of a bulk fold would cost more than they save.
const FEW: u64 = 16;

/// Hands what the events of a range sum up to to `each`, sorted by kind and key.
pub(crate) fn fold_range<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    mut each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Totals, Error> {
    let few = range.end().0.saturating_sub(range.start().0) < FEW;
    match rules.bulk().filter(|_| !few) {
        Some(bulk) => in_bulk(view, bulk, range, &mut each),
        None => one_by_one(view, rules, range, each),
    }
}

fn one_by_one<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    mut each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Totals, Error> {
    let mut groups = Groups::default();
    let mut events = 0;
    let mut skipped: BTreeMap<(String, Skip), u64> = BTreeMap::new();
    view.each_event(range, |_, event| {
        let skip = groups.fold(rules, event);
        if skip != Some(Skip::Housekeeping) {
            events += 1;
            if let Some(skip) = skip {
                *skipped.entry((event.event_type.to_string(), skip)).or_default() += 1;
            }
        }
        Ok::<_, Error>(())
    })?;
    groups.into_groups().into_iter().for_each(|(key, group)| each(key, group));
    let skipped = skipped.into_iter().map(|((name, skip), n)| (name, skip, n)).collect();
    Ok(Totals { events, skipped })
}

fn in_bulk<T: Tally>(
    view: View<'_>,
    bulk: Box<dyn BulkFold<T>>,
    range: RangeInclusive<Seq>,
    each: &mut dyn FnMut(FactKey, Group<T>),
) -> Result<Totals, Error> {
    let mut sums = Bulk { bulk, names: Names { view, chunk: Seq(0)..Seq(0), refs: None } };
    view.scan(range, &mut sums)?;
    let Bulk { bulk, mut names } = sums;
    let totals = bulk.finish(&mut |seq| names.of(seq), each);
    totals.ok_or_else(|| Error::Damaged("log".into()))
}

struct Bulk<'v, T> {
    bulk: Box<dyn BulkFold<T>>,
    names: Names<'v>,
}

/// Looks up the names of events; those of the chunk at hand together, once one is asked for.
struct Names<'v> {
    view: View<'v>,
    chunk: Range<Seq>,
    refs: Option<Vec<EventRef>>,
}

impl Names<'_> {
    fn of(&mut self, seq: Seq) -> Option<EventRef> {
        if self.chunk.contains(&seq) {
            let (first, last) = (self.chunk.start, Seq(self.chunk.end.0 - 1));
            let refs =
                self.refs.get_or_insert_with(|| self.view.sealed_refs(last).unwrap_or_default());
            if let Some(name) = refs.get((seq.0 - first.0) as usize) {
                return Some(*name);
            }
        }
        self.view.event_ref(seq).ok()
    }
}

impl<T> Scan<Error> for Bulk<'_, T> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let names = &mut self.names;
        (names.chunk, names.refs) = (first..Seq(first.0 + chunk.count as u64), None);
        self.bulk
            .fold(chunk, first, places, &mut |seq| names.of(seq))
            .ok_or_else(|| Error::Damaged(format!("chunk from seq {first} on")))
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        self.bulk.fold_event(seq, event, &mut |seq| self.names.of(seq));
        Ok(())
    }
}
