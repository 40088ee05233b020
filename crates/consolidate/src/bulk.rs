//! Summing a whole log: the same contributions as event by event, at the speed of memory.
//!
//! Texts are interned to small integers, samples of a parameter are collected in vectors and
//! counted by sorting, and chunks are read column by column.
//!
//! **Invariant:** the groups that come out equal those of [`crate::Groups::fold`] over the same
//! events: the rules are stated once, in `feed`; only the way of adding differs.

use crate::feed::{Part, Seen, Sink, Trait, feed, key_length};
use crate::histogram::{FINE_DIGITS, fine_of};
use crate::rules::{Folded, Skip};
use crate::samples::Samples;
use crate::symbols::{ANY, FALSE, NAMELESS, Places, Symbol, Symbols, TRUE};
use crate::v1::Observed;
use crate::{BulkFold, Group};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;
use ipse_core::chunk::{Chunk, ChunkProperty, NO_TEXT};
use ipse_core::{
    Event, EventKind, EventRef, FactKey, FactKind, Micro, Outcome, Property, Seq, Support, Time,
};

/// Distinct texts of a group that are searched one by one; beyond, a tree is kept.
const FEW_TEXTS: usize = 16;

/// The sums of a log under construction.
#[derive(Default)]
pub(crate) struct Bulk {
    symbols: Symbols,
    groups: Vec<Sums>,
    /// The samples of all groups, side by side.
    samples: Vec<Samples>,
    places: Places<[u32; 4]>,
    classes: Vec<Counted>,
    class_places: Places<ClassKey>,
    scratch: Scratch,
}

/// Type, outcome, skill, target, environment, zone and reason; texts as symbols plus one.
type ClassKey = [u32; 7];

/// Events of one class: how many, the last of them, and where they count.
struct Counted {
    event_type: Symbol,
    target: Option<Symbol>,
    success: bool,
    n: i64,
    /// Those of them whose properties feed a fact.
    fed: i64,
    last: Option<Last>,
    plan: Result<Vec<Target>, Skip>,
    /// The groups that take their parameters: a skill's, and a pattern's.
    takers: [Option<usize>; 2],
}

/// What each event of a class adds to one group.
#[derive(Clone, Copy)]
struct Target {
    group: usize,
    part: Part<Symbol>,
    params: bool,
    supports: bool,
}

/// Columns of the chunk at hand, unpacked, and what is counted in it.
#[derive(Default)]
struct Scratch {
    times: Vec<i64>,
    ids: Vec<i64>,
    values: Vec<i64>,
    /// Class of each event, by its number in the chunk.
    class: Vec<usize>,
    /// Events of each shape, in the order of its columns.
    members: Vec<Vec<usize>>,
    /// How many events of each class, and the last of them.
    counts: Vec<(i64, Option<Last>)>,
    /// Where the samples of each class go, in the column at hand.
    homes: Vec<Option<[Option<usize>; 2]>>,
}

/// The sum behind one fact.
struct Sums {
    kind: FactKind,
    key: [Symbol; 3],
    successes: i64,
    failures: i64,
    incidents: i64,
    uncounted: [i64; Outcome::ALL.len()],
    texts: Texts,
    /// Name and place of each parameter's samples.
    params: Vec<(Symbol, usize)>,
    last: Option<Last>,
}

/// The last supporting event so far; its ref is looked up only when a tie or the end asks.
#[derive(Clone, Copy)]
struct Last {
    time: i64,
    seq: u64,
    event_ref: Option<EventRef>,
}

#[derive(Default)]
struct Texts {
    few: Vec<(Symbol, i64)>,
    many: BTreeMap<Symbol, i64>,
}

impl Texts {
    fn add(&mut self, text: Symbol, times: i64) {
        if let Some((_, n)) = self.few.iter_mut().find(|(other, _)| *other == text) {
            *n += times;
        } else if self.few.len() < FEW_TEXTS {
            self.few.push((text, times));
        } else {
            *self.many.entry(text).or_default() += times;
        }
    }
}

/// Finds out where the events of a class count.
struct Planner<'b> {
    groups: &'b mut Vec<Sums>,
    places: &'b mut Places<[u32; 4]>,
    plan: Vec<Target>,
}

impl Sink<Symbol> for Planner<'_> {
    fn any(&self) -> Symbol {
        ANY
    }

    fn add(
        &mut self,
        kind: FactKind,
        key: [Symbol; 3],
        part: Part<Symbol>,
        params: bool,
        supports: bool,
    ) {
        let group = find_group(self.groups, self.places, kind, key);
        self.plan.push(Target { group, part, params, supports });
    }
}

fn find_group(
    groups: &mut Vec<Sums>,
    places: &mut Places<[u32; 4]>,
    kind: FactKind,
    key: [Symbol; 3],
) -> usize {
    places.find_or_add([kind as u32, key[0], key[1], key[2]], || {
        groups.push(Sums::new(kind, key));
        groups.len() - 1
    })
}

impl Last {
    fn at(time: i64, first: Seq, place: usize) -> Self {
        Last { time, seq: first.0 + place as u64, event_ref: None }
    }

    /// The later of two events; refs decide where times are equal.
    fn later(self, other: Last, refs: &mut dyn FnMut(Seq) -> Option<EventRef>) -> Last {
        match self.time.cmp(&other.time) {
            Ordering::Less => other,
            Ordering::Greater => self,
            Ordering::Equal => {
                let mut named = |last: Last| Last {
                    event_ref: last.event_ref.or_else(|| refs(Seq(last.seq))),
                    ..last
                };
                let (ours, theirs) = (named(self), named(other));
                if ours.event_ref < theirs.event_ref { theirs } else { ours }
            }
        }
    }
}

impl Sums {
    fn new(kind: FactKind, key: [Symbol; 3]) -> Self {
        Sums {
            kind,
            key,
            successes: 0,
            failures: 0,
            incidents: 0,
            uncounted: [0; Outcome::ALL.len()],
            texts: Texts::default(),
            params: Vec::new(),
            last: None,
        }
    }

    /// Adds `n` times the same.
    fn add(&mut self, part: Part<Symbol>, n: i64) {
        match part {
            Part::Ended(Outcome::Success, _) => self.successes += n,
            Part::Ended(Outcome::Failed, reason) => {
                self.failures += n;
                reason.into_iter().for_each(|reason| self.texts.add(reason, n));
            }
            Part::Ended(outcome, _) => self.uncounted[outcome as usize] += n,
            Part::Failure => self.failures += n,
            Part::Incident(reason) => {
                self.incidents += n;
                reason.into_iter().for_each(|reason| self.texts.add(reason, n));
            }
            Part::Property(Trait::Text(text)) => self.texts.add(text, n),
            // Numbers go to the samples.
            Part::Property(Trait::Number(_)) => {}
        }
    }

    /// The place of a parameter's samples, which most likely is `likely` among the group's own.
    fn home(&mut self, likely: usize, name: Symbol, samples: &mut Vec<Samples>) -> usize {
        let place = match self.params.get(likely) {
            Some((other, place)) if *other == name => Some(*place),
            _ => self.params.iter().find(|(other, _)| *other == name).map(|(_, place)| *place),
        };
        place.unwrap_or_else(|| {
            samples.push(Samples::default());
            self.params.push((name, samples.len() - 1));
            samples.len() - 1
        })
    }

    /// Whether nothing was added: a group that was planned, but whose events never came.
    fn is_empty(&self) -> bool {
        let counts = self.successes + self.failures + self.incidents;
        counts + self.uncounted.iter().sum::<i64>() == 0
            && self.params.is_empty()
            && self.texts.few.is_empty()
    }

    fn support(&mut self, last: Last, refs: &mut dyn FnMut(Seq) -> Option<EventRef>) {
        self.last = Some(self.last.map_or(last, |before| before.later(last, refs)));
    }

    fn finish(
        self,
        symbols: &Symbols,
        samples: &mut [Samples],
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<(FactKey, Group<Observed>)> {
        let parts = self.key.map(|symbol| symbols.text(symbol));
        let key = FactKey::new(self.kind, &parts[..key_length(self.kind)]);
        let text = |symbol: Symbol| String::from(symbols.text(symbol));
        let counted = |(symbol, n): (Symbol, i64)| (text(symbol), n);
        let uncounted = Outcome::ALL.into_iter().zip(self.uncounted).filter(|(_, n)| *n > 0);
        let numbers = self
            .params
            .into_iter()
            .map(|(name, place)| (text(name), core::mem::take(&mut samples[place]).finish()));
        let tally = Observed {
            successes: self.successes,
            failures: self.failures,
            incidents: self.incidents,
            uncounted: uncounted.collect(),
            numbers: numbers.collect(),
            texts: self.texts.few.into_iter().chain(self.texts.many).map(counted).collect(),
        };
        let last = match self.last {
            None => None,
            Some(last) => Some(Support {
                time: Time::from_micros(last.time)?,
                event_ref: last.event_ref.or_else(|| refs(Seq(last.seq)))?,
            }),
        };
        Some((key, Group { tally, last }))
    }
}

impl BulkFold<Observed> for Bulk {
    fn fold(
        &mut self,
        chunk: &Chunk<'_>,
        first: Seq,
        places: Range<usize>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<()> {
        let local = self.local(chunk)?;
        let places = places.start..places.end.min(chunk.count);
        let mut scratch = core::mem::take(&mut self.scratch);
        let folded = self.fold_columns(chunk, &local, &mut scratch, first, places, refs);
        self.scratch = scratch;
        folded
    }

    fn fold_event(
        &mut self,
        seq: Seq,
        event: &Event<'_>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) {
        let columns = &event.columns;
        let texts = [columns.skill, columns.target, columns.environment, columns.zone];
        let mut key = [0; 7];
        key[0] = self.symbols.intern_near(0, event.event_type) + 1;
        key[1] = columns.outcome.map_or(0, |outcome| outcome as u32 + 1);
        for (place, text) in texts.into_iter().chain([columns.reason]).enumerate() {
            key[2 + place] = text.map_or(0, |text| self.symbols.intern_near(1 + place, text) + 1);
        }
        let class = self.class(key);
        let last = Last { time: event.time.micros(), seq: seq.0, event_ref: Some(event.event_ref) };
        self.classes[class].count(last, refs);
        let (takers, success) = (self.classes[class].takers, self.classes[class].success);
        for (place, (name, value)) in columns.params.iter().enumerate() {
            let name = self.symbols.intern_near(6 + place, name);
            let fine = fine_of(*value);
            for taker in takers.into_iter().flatten() {
                let home = self.groups[taker].home(place, name, &mut self.samples);
                self.samples[home].push(value.get(), fine, success);
            }
        }
        let own: Vec<_> = columns.properties.iter().map(|own| self.property(own)).collect();
        self.fold_properties(class, &own, last, refs);
    }

    fn finish(
        mut self: Box<Self>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<Folded<Observed>> {
        let mut events = 0;
        let mut skipped = BTreeMap::new();
        for class in core::mem::take(&mut self.classes) {
            match class.plan {
                Err(Skip::Housekeeping) => continue,
                // An event whose properties feed facts is not skipped.
                Err(skip) if class.n > class.fed => {
                    let reasons: &mut u64 = skipped.entry((class.event_type, skip)).or_default();
                    *reasons += (class.n - class.fed).unsigned_abs();
                }
                Err(_) => {}
                Ok(plan) => plan.iter().for_each(|target| {
                    let sums = &mut self.groups[target.group];
                    sums.add(target.part, class.n);
                    let last = class.last.filter(|_| target.supports);
                    last.into_iter().for_each(|last| sums.support(last, refs));
                }),
            }
            events += class.n.unsigned_abs();
        }
        let (symbols, mut samples) = (self.symbols, self.samples);
        let groups = self.groups.into_iter().filter(|sums| !sums.is_empty());
        let groups = groups.map(|sums| sums.finish(&symbols, &mut samples, refs));
        let mut groups: Vec<_> = groups.collect::<Option<_>>()?;
        groups.sort_by(|a, b| a.0.cmp(&b.0));
        let named = |((name, skip), n)| (String::from(symbols.text(name)), skip, n);
        Some(Folded { groups, events, skipped: skipped.into_iter().map(named).collect() })
    }
}

impl Counted {
    #[inline]
    fn count(&mut self, last: Last, refs: &mut dyn FnMut(Seq) -> Option<EventRef>) {
        self.n += 1;
        self.last = match self.last {
            Some(before) if before.time > last.time => Some(before),
            Some(before) if before.time == last.time => Some(before.later(last, refs)),
            _ => Some(last),
        };
    }
}

impl Bulk {
    /// The place of a class; a new one is planned by the rules.
    fn class(&mut self, key: ClassKey) -> usize {
        let (classes, groups, places) = (&mut self.classes, &mut self.groups, &mut self.places);
        let symbols = &self.symbols;
        self.class_places.find_or_add(key, || {
            let event_type = key[0].checked_sub(1).map_or("", |symbol| symbols.text(symbol));
            classes.push(planned(key, EventKind::of(event_type), groups, places));
            classes.len() - 1
        })
    }

    fn local(&mut self, chunk: &Chunk<'_>) -> Option<Local> {
        let symbols = self.symbols.intern_sorted(&chunk.texts);
        let (classes, success, names) = (Vec::new(), Vec::new(), Vec::new());
        let mut local = Local { symbols, classes, success, names };
        for class in &chunk.classes {
            let [skill, target, environment] = class.triple;
            let texts = [skill, target, environment, class.zone, class.reason];
            let mut key = [0; 7];
            key[0] = local.plus_one(class.event_type)?;
            key[1] = u32::try_from(class.outcome).ok()?;
            for (part, text) in key[2..].iter_mut().zip(texts) {
                *part = local.plus_one(text)?;
            }
            local.classes.push(self.class(key));
            local.success.push(class.outcome() == Some(Outcome::Success));
        }
        for shape in &chunk.shapes {
            let names = shape.names.iter().map(|name| local.symbol(*name));
            local.names.push(names.collect::<Option<_>>()?);
        }
        Some(local)
    }

    fn fold_columns(
        &mut self,
        chunk: &Chunk<'_>,
        local: &Local,
        scratch: &mut Scratch,
        first: Seq,
        places: Range<usize>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<()> {
        chunk.times.unpack(chunk.count, &mut scratch.times);
        chunk.class.unpack(chunk.count, &mut scratch.ids);
        scratch.class.clear();
        for id in &scratch.ids {
            let id = usize::try_from(*id).ok().filter(|id| *id < local.classes.len())?;
            scratch.class.push(id);
        }
        self.count(local, scratch, first, places.clone(), refs);
        self.fold_params(chunk, local, scratch, places.clone())?;
        for (place, own) in chunk.properties.iter().filter(|(place, _)| places.contains(place)) {
            let own = own.iter().map(|own| local.property(own)).collect::<Option<Vec<_>>>()?;
            let class = local.classes[*scratch.class.get(*place)?];
            self.fold_properties(class, &own, Last::at(scratch.times[*place], first, *place), refs);
        }
        Some(())
    }

    /// Counts the events of each class, and finds the last of them.
    fn count(
        &mut self,
        local: &Local,
        scratch: &mut Scratch,
        first: Seq,
        places: Range<usize>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) {
        scratch.counts.clear();
        scratch.counts.resize(local.classes.len(), (0, None));
        for place in places {
            let (n, last) = &mut scratch.counts[scratch.class[place]];
            let time = scratch.times[place];
            *n += 1;
            match last {
                Some(last) if last.time > time => {}
                Some(before) if before.time == time => {
                    *last = Some(before.later(Last::at(time, first, place), refs));
                }
                _ => *last = Some(Last::at(time, first, place)),
            }
        }
        for ((n, last), class) in scratch.counts.iter().zip(&local.classes) {
            let class = &mut self.classes[*class];
            class.n += n;
            class.last = match (class.last, *last) {
                (Some(before), Some(last)) => Some(before.later(last, refs)),
                (before, last) => before.or(last),
            };
        }
    }

    /// Hands every parameter of the events at `places` to the groups that take it, by columns.
    fn fold_params(
        &mut self,
        chunk: &Chunk<'_>,
        local: &Local,
        scratch: &mut Scratch,
        places: Range<usize>,
    ) -> Option<()> {
        if chunk.shapes.iter().all(|shape| shape.names.is_empty()) {
            return Some(());
        }
        chunk.shape.unpack(chunk.count, &mut scratch.ids);
        scratch.members.resize_with(chunk.shapes.len(), Vec::new);
        scratch.members.iter_mut().for_each(Vec::clear);
        for (place, shape) in scratch.ids.iter().enumerate() {
            scratch.members.get_mut(usize::try_from(*shape).ok()?)?.push(place);
        }
        for (number, (shape, names)) in chunk.shapes.iter().zip(&local.names).enumerate() {
            for (index, (name, column)) in names.iter().zip(&shape.values).enumerate() {
                if scratch.members[number].len() != shape.members {
                    return None;
                }
                column.unpack(shape.members, &mut scratch.values);
                let exact = column.is_multiple_of_cell(FINE_DIGITS);
                self.fold_column(local, scratch, number, (index, *name, exact), &places)?;
            }
        }
        Some(())
    }

    /// One parameter of the events of one shape; its values are unpacked.
    fn fold_column(
        &mut self,
        local: &Local,
        scratch: &mut Scratch,
        shape: usize,
        (index, name, exact): (usize, Symbol, bool),
        places: &Range<usize>,
    ) -> Option<()> {
        scratch.homes.clear();
        scratch.homes.resize(local.classes.len(), None);
        for (value, place) in scratch.values.iter().zip(&scratch.members[shape]) {
            if !places.contains(place) {
                continue;
            }
            let value = Micro::new(*value)?;
            let fine = if exact { value.get() } else { fine_of(value) };
            let class = scratch.class[*place];
            let homes = match scratch.homes[class] {
                Some(homes) => homes,
                None => {
                    let takers = self.classes[local.classes[class]].takers;
                    let mut home =
                        |taker: usize| self.groups[taker].home(index, name, &mut self.samples);
                    *scratch.homes[class].insert(takers.map(|taker| taker.map(&mut home)))
                }
            };
            let success = local.success[class];
            for home in homes.into_iter().flatten() {
                self.samples[home].push(value.get(), fine, success);
            }
        }
        Some(())
    }

    fn fold_properties(
        &mut self,
        class: usize,
        own: &[(Symbol, Trait<Symbol>)],
        last: Last,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) {
        let class = &mut self.classes[class];
        let housekeeping = matches!(class.plan, Err(Skip::Housekeeping));
        let (Some(target), false) = (class.target, housekeeping || own.is_empty()) else { return };
        class.fed += 1;
        for (name, property) in own {
            let key = [target, *name, ANY];
            let kind = FactKind::ObjectProperty;
            let group = find_group(&mut self.groups, &mut self.places, kind, key);
            let sums = &mut self.groups[group];
            sums.add(Part::Property(*property), 1);
            sums.support(last, refs);
            if let Trait::Number(value) = property {
                let home = sums.home(0, NAMELESS, &mut self.samples);
                let fine = fine_of(Micro::new(*value).unwrap_or_default());
                self.samples[home].push(*value, fine, false);
            }
        }
    }

    fn property(&mut self, (name, property): &(&str, Property<'_>)) -> (Symbol, Trait<Symbol>) {
        let name = self.symbols.intern(name);
        let property = match property {
            Property::Number(value) => Trait::Number(value.get()),
            Property::Text(text) => Trait::Text(self.symbols.intern(text)),
            Property::Bool(true) => Trait::Text(TRUE),
            Property::Bool(false) => Trait::Text(FALSE),
        };
        (name, property)
    }
}

/// What the rules say of events of a class, their properties aside.
fn planned(
    key: ClassKey,
    kind: EventKind,
    groups: &mut Vec<Sums>,
    places: &mut Places<[u32; 4]>,
) -> Counted {
    let text = |place: usize| key[place].checked_sub(1);
    let outcome = Outcome::ALL.get((key[1] as usize).wrapping_sub(1)).copied();
    let event_type = text(0).unwrap_or(ANY);
    let seen = Seen {
        kind,
        outcome,
        skill: text(2),
        target: text(3),
        environment: text(4),
        zone: text(5),
        reason: text(6),
    };
    let mut planner = Planner { groups, places, plan: Vec::new() };
    let fed = feed(&seen, core::iter::empty(), &mut planner);
    let plan = fed.map(|()| planner.plan);
    let mut takers = [None; 2];
    let all = plan.iter().flatten().filter(|target| target.params);
    takers.iter_mut().zip(all).for_each(|(taker, target)| *taker = Some(target.group));
    let success = outcome == Some(Outcome::Success);
    let (n, fed, last) = (0, 0, None);
    Counted { event_type, target: text(3), success, n, fed, last, plan, takers }
}

/// A chunk's ids as symbols and classes of the whole log. `None` means that the chunk is damaged.
struct Local {
    symbols: Vec<Symbol>,
    classes: Vec<usize>,
    /// Whether attempts of each class worked.
    success: Vec<bool>,
    names: Vec<Vec<Symbol>>,
}

impl Local {
    fn symbol(&self, id: usize) -> Option<Symbol> {
        self.symbols.get(id.checked_sub(1)?).copied()
    }

    /// One more than the symbol; 0 for no text.
    fn plus_one(&self, id: usize) -> Option<u32> {
        if id == NO_TEXT { Some(0) } else { self.symbol(id).map(|symbol| symbol + 1) }
    }

    fn property(&self, own: &(usize, ChunkProperty)) -> Option<(Symbol, Trait<Symbol>)> {
        let property = match own.1 {
            ChunkProperty::Number(value) => Trait::Number(value.get()),
            ChunkProperty::Text(text) => Trait::Text(self.symbol(text)?),
            ChunkProperty::Bool(true) => Trait::Text(TRUE),
            ChunkProperty::Bool(false) => Trait::Text(FALSE),
        };
        Some((self.symbol(own.0)?, property))
    }
}
