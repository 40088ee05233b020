//! Lookup of the last supporting events of facts in the log.
//!
//! A sum can be subtracted, a maximum cannot. The lookup is needed only for facts whose last event
//! is forgotten or is after the requested position.
//!
//! **Invariant:** the search goes back from the position and ends when all earlier events are older
//! than the found ones.

use crate::Error;
use crate::scan::fold_wanted;
use ipse_consolidate::{BulkFold, EVERY_FACT, RuleSet};
use ipse_core::chunk::{CHUNK_EVENTS, Chunk};
use ipse_core::{Event, FactKey, Seq, Support, Time};
use ipse_store::{Scan, View};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Up to this many facts are searched in each chunk one by one; more are folded together.
const FEW: usize = 8;

/// The result of a lookup.
#[derive(Default)]
pub(crate) struct Latest {
    /// The last supporting event of each fact that has one.
    pub(crate) found: BTreeMap<FactKey, Support>,
    /// The number of events that were folded or searched.
    pub(crate) events: u64,
}

/// The last supporting event of each fact up to a position. A fact in `derived` is supported by the
/// events that support its sources.
pub(crate) fn latest<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    mut keys: BTreeSet<FactKey>,
    derived: &BTreeSet<FactKey>,
    up_to: Seq,
) -> Result<Latest, Error> {
    let mut latest = Latest::default();
    if keys.is_empty() {
        return Ok(latest);
    }
    let peaks = Peaks::read(view, up_to)?;
    let (mut end, mut blocks) = (up_to, 1);
    // Chunks can be searched for the supporting events of a fact, but not of a derived fact.
    let summed = |keys: &BTreeSet<FactKey>| keys.len() > FEW || !keys.is_disjoint(derived);
    while summed(&keys) && end.0 > 0 {
        let first = Seq((end.0 - 1).saturating_sub(blocks * BLOCK - BLOCK) / BLOCK * BLOCK + 1);
        let derived = |key: &FactKey| {
            let derived = rules.derived_keys(key).into_iter();
            derived.filter(|to| keys.contains(to)).collect::<Vec<_>>()
        };
        let wanted = |key: &FactKey| keys.contains(key) || !derived(key).is_empty();
        fold_wanted(view, rules, first..=end, &wanted, |key, group| {
            let Some(last) = group.last else { return };
            let derived = derived(&key);
            for key in Some(key).filter(|key| keys.contains(key)).into_iter().chain(derived) {
                let found = latest.found.entry(key).or_insert(last);
                *found = last.max(*found);
            }
        })?;
        latest.events += end.0 - first.0 + 1;
        end = Seq(first.0 - 1);
        keys.retain(|key| latest.found.get(key).is_none_or(|last| !peaks.is_over(last, end)));
        // Each step covers twice as many blocks, so that the number of steps is small.
        blocks *= 2;
    }
    let sought = keys.into_iter().map(|key| (latest.found.remove(&key), key)).collect();
    let bulk = rules.bulk(EVERY_FACT);
    let mut search =
        Search { view, rules, bulk, sought, peaks: &peaks, times: Vec::new(), end, events: 0 };
    view.scan_back(end, &mut search)?;
    latest.events += search.events;
    let found = search.sought.into_iter().filter_map(|(best, key)| Some((key, best?)));
    latest.found.extend(found);
    Ok(latest)
}

/// Positions per block: a full chunk.
const BLOCK: u64 = CHUNK_EVENTS as u64;

/// For each block, the latest time of all events up to its end.
struct Peaks(Vec<i64>);

impl Peaks {
    /// Reads the times of all complete blocks before the block of a position.
    fn read(view: View<'_>, up_to: Seq) -> Result<Self, Error> {
        let blocks = up_to.0.saturating_sub(1) / BLOCK;
        let mut peaks = PeakScan { peaks: Vec::new(), times: Vec::new() };
        if blocks > 0 {
            view.scan(Seq(1)..=Seq(blocks * BLOCK), &mut peaks)?;
        }
        let mut greatest = i64::MIN;
        peaks.peaks.iter_mut().for_each(|peak| {
            greatest = greatest.max(*peak);
            *peak = greatest;
        });
        Ok(Peaks(peaks.peaks))
    }

    /// Whether an event is known to be later than all events up to a position.
    fn is_over(&self, last: &Support, up_to: Seq) -> bool {
        let Some(block) = up_to.0.checked_sub(1).map(|before| before / BLOCK) else { return true };
        self.0.get(block as usize).is_some_and(|peak| last.time.micros() > *peak)
    }
}

struct PeakScan {
    peaks: Vec<i64>,
    times: Vec<i64>,
}

impl PeakScan {
    fn add(&mut self, seq: Seq, time: i64) {
        let block = ((seq.0 - 1) / BLOCK) as usize;
        if self.peaks.len() <= block {
            self.peaks.resize(block + 1, i64::MIN);
        }
        self.peaks[block] = self.peaks[block].max(time);
    }
}

impl Scan<Error> for PeakScan {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, _: Range<usize>) -> Result<(), Error> {
        chunk.times.unpack(chunk.count, &mut self.times);
        let peak = self.times.iter().copied().max();
        self.add(first, peak.unwrap_or(i64::MIN));
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        self.add(seq, event.time.micros());
        Ok(())
    }
}

struct Search<'s, R: RuleSet> {
    view: View<'s>,
    rules: &'s R,
    bulk: Option<Box<dyn BulkFold<R::Tally>>>,
    /// The facts, each with the last event found so far.
    sought: Vec<(Option<Support>, FactKey)>,
    peaks: &'s Peaks,
    times: Vec<i64>,
    /// The last position that is not searched yet.
    end: Seq,
    events: u64,
}

impl<R: RuleSet> Scan<Error> for Search<'_, R> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let damaged = || Error::Damaged(format!("chunk from seq {first} on"));
        self.end = Seq(first.0 - 1);
        self.events += places.len() as u64;
        chunk.times.unpack(chunk.count, &mut self.times);
        let peak = self.times.iter().copied().max().unwrap_or(i64::MIN);
        let bulk = self.bulk.as_ref().ok_or_else(damaged)?;
        let mut candidates = Vec::new();
        for (fact, (best, key)) in self.sought.iter().enumerate() {
            if best.is_some_and(|best| best.time.micros() > peak) {
                continue;
            }
            let mut supporters = bulk.supporters(chunk, key).ok_or_else(damaged)?;
            supporters.retain(|place| places.contains(place));
            let Some(latest) = supporters.iter().map(|place| self.times[*place]).max() else {
                continue;
            };
            let time = Time::from_micros(latest).ok_or_else(damaged)?;
            if best.is_none_or(|best| time >= best.time) {
                supporters.retain(|place| self.times[*place] == latest);
                for place in supporters {
                    let worked = chunk.worked(place).ok_or_else(damaged)?;
                    candidates.push((fact, time, worked, Seq(first.0 + place as u64)));
                }
            }
        }
        // If times are equal, the names decide. All names are read with one call.
        let seqs: Vec<_> = candidates.iter().map(|(_, _, _, seq)| *seq).collect();
        let names = self.view.event_refs(&seqs)?;
        for ((fact, time, worked, _), event_ref) in candidates.into_iter().zip(names) {
            let best = &mut self.sought[fact].0;
            *best = (*best).max(Some(Support { time, event_ref, worked }));
        }
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        self.end = self.end.min(Seq(seq.0 - 1));
        self.events += 1;
        let this = event.support();
        let parts = self.rules.contributions(event).unwrap_or_default();
        for part in parts.into_iter().filter(|part| part.supports) {
            for (best, _) in self.sought.iter_mut().filter(|(_, key)| *key == part.key) {
                *best = (*best).max(Some(this));
            }
        }
        Ok(())
    }

    fn enough(&self) -> bool {
        let over =
            |best: &Option<Support>| best.is_some_and(|it| self.peaks.is_over(&it, self.end));
        self.sought.iter().all(|(best, _)| over(best))
    }
}
