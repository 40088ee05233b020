//! Folding a range of the log, in bulk if the rule set supports it.
//!
//! **Invariant:** the sums of a slice exceed its limit by at most one event or one part of a chunk,
//! and a slice ends between two events.

use crate::Error;
use ipse_consolidate::{BulkFold, EVERY_FACT, Group, Groups, RuleSet, Skip, Tally, Totals, Wanted};
use ipse_core::chunk::{CHUNK_EVENTS, Chunk};
use ipse_core::{Event, EventRef, FactKey, Seq};
use ipse_store::{Pass, Scan, View};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

/// Up to this many events are folded one by one: a bulk fold would cost more than it saves.
const FEW: u64 = 16;

/// Folds the events of a range and passes each sum to `each`, sorted by kind and key.
pub fn fold_range<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Totals, Error> {
    fold_wanted(view, rules, range, EVERY_FACT, each)
}

/// The same for the wanted facts only.
pub(crate) fn fold_wanted<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    wanted: Wanted<'_>,
    each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Totals, Error> {
    fold(view, rules, range, &BTreeSet::new(), wanted, each)
}

/// The same without some events.
pub(crate) fn fold_without<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    without: &BTreeSet<Seq>,
    each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Totals, Error> {
    fold(view, rules, range, without, EVERY_FACT, each)
}

fn fold<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    without: &BTreeSet<Seq>,
    wanted: Wanted<'_>,
    each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Totals, Error> {
    Ok(fold_slice(view, rules, range, without, wanted, usize::MAX, each)?.totals)
}

/// The sum of one fact up to a position without the events of one source; `None` if the rules do
/// not tell sources apart.
pub fn group_without_source<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    up_to: Seq,
    key: &FactKey,
    source: &str,
) -> Result<Option<Group<R::Tally>>, Error> {
    let wanted = |other: &FactKey| other == key;
    let Some(bulk) = rules.bulk_without(&wanted, source) else { return Ok(None) };
    let mut sum = Group::default();
    let (range, nothing) = (Seq(1)..=up_to, BTreeSet::new());
    in_bulk(view, bulk, range, &nothing, usize::MAX, &mut |_, group| sum = group)?;
    Ok(Some(sum))
}

/// The folded beginning of a range.
pub(crate) struct Slice {
    pub(crate) totals: Totals,
    /// The last folded position.
    pub(crate) last: Seq,
}

/// The same for the part of the range that fits the limit, and at least one event.
fn fold_slice<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    without: &BTreeSet<Seq>,
    wanted: Wanted<'_>,
    limit: usize,
    mut each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Slice, Error> {
    let few = range.end().0.saturating_sub(range.start().0) < FEW;
    match rules.bulk(wanted).filter(|_| !few) {
        Some(bulk) => in_bulk(view, bulk, range, without, limit, &mut each),
        None => one_by_one(view, rules, range, without, limit, |key, group| {
            if wanted(&key) {
                each(key, group);
            }
        }),
    }
}

/// The memory limit of a fold, and the position at which it was reached.
struct Room {
    limit: usize,
    full_at: Option<Seq>,
}

impl Room {
    fn new(limit: usize) -> Self {
        Room { limit, full_at: None }
    }

    fn is_full(&self) -> bool {
        self.full_at.is_some()
    }

    /// Records the weight of all sums after folding up to a position.
    fn took(&mut self, last: Seq, weight: usize) {
        if weight >= self.limit {
            self.full_at = Some(last);
        }
    }

    fn slice(&self, totals: Totals, end: Seq) -> Slice {
        Slice { totals, last: self.full_at.unwrap_or(end) }
    }
}

/// The same for new events up to the last position. They are usually cached.
pub(crate) fn fold_new<R: RuleSet>(
    pass: &Pass<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    limit: usize,
    each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Slice, Error> {
    let (mut single, mut room) = (Single::default(), Room::new(limit));
    let few = range.end().0.saturating_sub(range.start().0) < FEW;
    let mut seqs = range.start().0..;
    let at_hand = few
        && pass.each_at_hand(range.clone(), |event| {
            let seq = Seq(seqs.next().unwrap_or_default());
            if !room.is_full() {
                single.fold(rules, event);
                room.took(seq, single.groups.count());
            }
        });
    if at_hand {
        return Ok(room.slice(single.finish(each), *range.end()));
    }
    fold_slice(pass.view(), rules, range, &BTreeSet::new(), EVERY_FACT, limit, each)
}

fn one_by_one<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    range: RangeInclusive<Seq>,
    without: &BTreeSet<Seq>,
    limit: usize,
    each: impl FnMut(FactKey, Group<R::Tally>),
) -> Result<Slice, Error> {
    let (mut single, mut room) = (Single::default(), Room::new(limit));
    let end = *range.end();
    view.each_event(range, |seq, event| {
        if !room.is_full() && !without.contains(&seq) {
            single.fold(rules, event);
            room.took(seq, single.groups.count());
        }
        Ok::<_, Error>(())
    })?;
    Ok(room.slice(single.finish(each), end))
}

/// A fold of single events.
struct Single<T> {
    groups: Groups<T>,
    events: u64,
    skipped: BTreeMap<(String, Skip), u64>,
}

impl<T> Default for Single<T> {
    fn default() -> Self {
        Single { groups: Groups::default(), events: 0, skipped: BTreeMap::new() }
    }
}

impl<T: Tally> Single<T> {
    /// Adds one event.
    fn fold<R: RuleSet<Tally = T>>(&mut self, rules: &R, event: &Event<'_>) {
        let skip = self.groups.fold(rules, event);
        self.events += u64::from(skip != Some(Skip::Housekeeping));
        if let Some(skip) = skip.filter(|skip| *skip != Skip::Housekeeping) {
            *self.skipped.entry((event.event_type.to_string(), skip)).or_default() += 1;
        }
    }

    /// Passes every sum to `each`, sorted by kind and key.
    fn finish(self, mut each: impl FnMut(FactKey, Group<T>)) -> Totals {
        self.groups.into_groups().into_iter().for_each(|(key, group)| each(key, group));
        let skipped = self.skipped.into_iter().map(|((name, skip), n)| (name, skip, n)).collect();
        Totals { events: self.events, skipped }
    }
}

fn in_bulk<T: Tally>(
    view: View<'_>,
    bulk: Box<dyn BulkFold<T> + '_>,
    range: RangeInclusive<Seq>,
    without: &BTreeSet<Seq>,
    limit: usize,
    each: &mut dyn FnMut(FactKey, Group<T>),
) -> Result<Slice, Error> {
    let (names, room) = (Names { view, asked: BTreeMap::new() }, Room::new(limit));
    let (mut sums, end) = (Bulk { bulk, names, without, room }, *range.end());
    view.scan(range, &mut sums)?;
    let Bulk { bulk, mut names, room, .. } = sums;
    let totals = bulk.finish(&mut |seq| names.of(seq), each);
    Ok(room.slice(totals.ok_or_else(|| Error::Damaged("log".into()))?, end))
}

struct Bulk<'v, T> {
    bulk: Box<dyn BulkFold<T> + 'v>,
    names: Names<'v>,
    without: &'v BTreeSet<Seq>,
    room: Room,
}

/// Number of single lookups in a chunk before all of its names are read.
const FEW_NAMES: usize = 8;

/// Maximum number of chunks with cached names: 16 MB.
const MAX_ASKED: usize = 256;

/// Looks up the names of events: a few in a chunk one by one, many together.
struct Names<'v> {
    view: View<'v>,
    /// Lookups and cached names by chunk number.
    asked: BTreeMap<u64, ChunkNames>,
}

#[derive(Default)]
struct ChunkNames {
    times: usize,
    refs: Vec<EventRef>,
}

impl Names<'_> {
    fn of(&mut self, seq: Seq) -> Option<EventRef> {
        let size = CHUNK_EVENTS as u64;
        let number = (seq.0 - 1) / size;
        if self.asked.len() >= MAX_ASKED && !self.asked.contains_key(&number) {
            self.asked.clear();
        }
        let asked = self.asked.entry(number).or_default();
        asked.times += 1;
        if asked.times == FEW_NAMES {
            asked.refs = self.view.sealed_refs(Seq((number + 1) * size)).unwrap_or_default();
        }
        let place = (seq.0 - 1 - number * size) as usize;
        asked.refs.get(place).copied().or_else(|| self.view.event_ref(seq).ok())
    }
}

impl<T> Scan<Error> for Bulk<'_, T> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        // Names of earlier chunks are rarely needed again. Clearing them bounds the memory.
        self.names.asked.clear();
        let parts = 1 + most_weight(chunk) / self.room.limit;
        let (end, step) = (places.end, places.len().div_ceil(parts).max(1));
        for start in places.step_by(step) {
            if self.room.is_full() {
                break;
            }
            let stop = (start + step).min(end);
            self.part(first, chunk, start..stop)?;
            self.room.took(Seq(first.0 + stop as u64 - 1), self.bulk.weight());
        }
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        if !self.room.is_full() && !self.without.contains(&seq) {
            self.bulk.fold_event(seq, event, &mut |seq| self.names.of(seq));
            self.room.took(seq, self.bulk.weight());
        }
        Ok(())
    }

    fn enough(&self) -> bool {
        self.room.is_full()
    }
}

/// The maximum weight of the fold of a chunk, without texts: for each event three facts, its class,
/// and its parameters for two of the facts; and for each property a fact with its numbers.
fn most_weight(chunk: &Chunk<'_>) -> usize {
    let properties: usize = chunk.properties.iter().map(|(_, own)| own.len()).sum();
    let params: usize = chunk.shapes.iter().map(|shape| shape.members * shape.values.len()).sum();
    4 * chunk.count + 2 * params + 2 * properties
}

impl<T> Bulk<'_, T> {
    fn part(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let Bulk { bulk, names, without, .. } = self;
        let mut fold = |places: Range<usize>| {
            bulk.fold(chunk, first, places, &mut |seq| names.of(seq))
                .ok_or_else(|| Error::Damaged(format!("chunk from seq {first} on")))
        };
        let mut next = places.start;
        let covered = Seq(first.0 + places.start as u64)..Seq(first.0 + places.end as u64);
        for left_out in without.range(covered) {
            let place = (left_out.0 - first.0) as usize;
            if next < place {
                fold(next..place)?;
            }
            next = place + 1;
        }
        if next < places.end { fold(next..places.end) } else { Ok(()) }
    }
}
