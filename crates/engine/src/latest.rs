//! The last supporting event of a fact, looked up in the log: needed only when the one that was the
//! last is forgotten.

use crate::Error;
use crate::scan::fold_range;
use ipse_consolidate::{BulkFold, EVERY_FACT, RuleSet};
use ipse_core::chunk::Chunk;
use ipse_core::{Event, FactKey, Seq, Support, Time};
use ipse_store::sqlite::{Scan, View};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// So many facts are looked up one by one; for more, all are summed at once.
const FEW: usize = 8;

/// The greatest supporting event of each fact, among those up to a position.
pub(crate) fn latest<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    keys: &BTreeSet<FactKey>,
    up_to: Seq,
) -> Result<BTreeMap<FactKey, Support>, Error> {
    let mut found = BTreeMap::new();
    if keys.len() > FEW {
        fold_range(view, rules, Seq(1)..=up_to, |key, group| {
            if keys.contains(&key) {
                found.extend(group.last.map(|last| (key, last)));
            }
        })?;
        return Ok(found);
    }
    for key in keys {
        let bulk = rules.bulk(EVERY_FACT);
        let mut search = Search { view, rules, bulk, key, times: Vec::new(), best: None };
        view.scan_back(up_to, &mut search)?;
        found.extend(search.best.map(|last| (key.clone(), last)));
    }
    Ok(found)
}

struct Search<'s, R: RuleSet> {
    view: View<'s>,
    rules: &'s R,
    bulk: Option<Box<dyn BulkFold<R::Tally>>>,
    key: &'s FactKey,
    times: Vec<i64>,
    best: Option<Support>,
}

impl<R: RuleSet> Scan<Error> for Search<'_, R> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let damaged = || Error::Damaged(format!("chunk from seq {first} on"));
        chunk.times.unpack(chunk.count, &mut self.times);
        let best = self.best.map_or(i64::MIN, |best| best.time.micros());
        // Most chunks lie before what was found already.
        if self.times.iter().all(|time| *time < best) {
            return Ok(());
        }
        let found = self.bulk.as_ref().map(|bulk| bulk.supporters(chunk, self.key));
        for place in found.flatten().ok_or_else(damaged)? {
            let time = Time::from_micros(self.times[place]).ok_or_else(damaged)?;
            // A name is needed only where times are equal.
            if places.contains(&place) && self.best.is_none_or(|best| time >= best.time) {
                let event_ref = self.view.event_ref(Seq(first.0 + place as u64))?;
                self.best = self.best.max(Some(Support { time, event_ref }));
            }
        }
        Ok(())
    }

    fn event(&mut self, _: Seq, event: &Event<'_>) -> Result<(), Error> {
        let parts = self.rules.contributions(event).unwrap_or_default();
        if parts.iter().any(|part| part.supports && part.key == *self.key) {
            let this = Support { time: event.time, event_ref: event.event_ref };
            self.best = self.best.max(Some(this));
        }
        Ok(())
    }
}
