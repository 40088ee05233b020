//! Summing a whole log: the same contributions as event by event, at the speed of memory.
//!
//! Texts are interned to small integers, samples of a parameter are collected in vectors and
//! counted by sorting, and chunks are read column by column.
//!
//! **Invariant:** the groups that come out equal those of [`crate::Groups::fold`] over the same
//! events: the rules are stated once, in `feed`; only the way of adding differs.

mod chunk;
mod sums;

use crate::feed::{Part, Seen, Sink, Trait, feed};
use crate::histogram::fine_of;
use crate::rules::{BulkFold, Folded, Skip};
use crate::samples::Samples;
use crate::symbols::{ANY, FALSE, NAMELESS, Places, Symbol, Symbols, TRUE};
use crate::v1::Observed;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use chunk::Scratch;
use core::ops::Range;
use ipse_core::chunk::Chunk;
use ipse_core::{Event, EventKind, FactKind, Micro, Outcome, Property, Seq};
use sums::{Last, Names, Sums};

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

impl BulkFold<Observed> for Bulk {
    fn fold(
        &mut self,
        chunk: &Chunk<'_>,
        first: Seq,
        places: Range<usize>,
        refs: &mut Names<'_>,
    ) -> Option<()> {
        let local = self.local(chunk)?;
        let places = places.start..places.end.min(chunk.count);
        let mut scratch = core::mem::take(&mut self.scratch);
        let folded = self.fold_columns(chunk, &local, &mut scratch, first, places, refs);
        self.scratch = scratch;
        folded
    }

    fn fold_event(&mut self, seq: Seq, event: &Event<'_>, refs: &mut Names<'_>) {
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

    fn finish(mut self: Box<Self>, refs: &mut Names<'_>) -> Option<Folded<Observed>> {
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
    fn count(&mut self, last: Last, refs: &mut Names<'_>) {
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

    fn fold_properties(
        &mut self,
        class: usize,
        own: &[(Symbol, Trait<Symbol>)],
        last: Last,
        refs: &mut Names<'_>,
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
