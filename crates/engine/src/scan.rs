//! Summing a range of the log, the fast way where the rule set has one.

use crate::Error;
use ipse_consolidate::{BulkFold, Folded, Groups, RuleSet, Skip, Tally};
use ipse_core::chunk::Chunk;
use ipse_core::{Event, EventRef, Seq};
use ipse_store::sqlite::{Scan, View};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// What the events of a range sum up to.
pub(crate) fn fold_range<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
) -> Result<Folded<R::Tally>, Error> {
    match rules.bulk() {
        Some(bulk) => in_bulk(view, bulk, range),
        None => one_by_one(view, rules, range),
    }
}

fn one_by_one<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
) -> Result<Folded<R::Tally>, Error> {
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
    let skipped = skipped.into_iter().map(|((name, skip), n)| (name, skip, n)).collect();
    Ok(Folded { groups: groups.into_groups(), events, skipped })
}

fn in_bulk<T: Tally>(
    view: View<'_>,
    bulk: Box<dyn BulkFold<T>>,
    range: RangeInclusive<Seq>,
) -> Result<Folded<T>, Error> {
    let mut refs = |seq: Seq| view.event_ref(seq).ok();
    let mut sums = Bulk { bulk, refs: &mut refs };
    view.scan(range, &mut sums)?;
    sums.bulk.finish(sums.refs).ok_or_else(|| Error::Damaged("log".into()))
}

struct Bulk<'r, T> {
    bulk: Box<dyn BulkFold<T>>,
    refs: &'r mut dyn FnMut(Seq) -> Option<EventRef>,
}

impl<T> Scan<Error> for Bulk<'_, T> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        self.bulk
            .fold(chunk, first, places, self.refs)
            .ok_or_else(|| Error::Damaged(format!("chunk from seq {first} on")))
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        self.bulk.fold_event(seq, event, self.refs);
        Ok(())
    }
}
