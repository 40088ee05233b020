//! Summing a whole log: the same contributions as event by event, at memory speed.
//!
//! Texts are interned to small integers, samples of a parameter are kept and counted together, and
//! chunks are read column by column.
//!
//! **Invariant:** for the wanted facts, the resulting groups equal those of [`crate::Groups::fold`]
//! over the same events: the rules are stated once, in `feed`; only the way of adding differs.

mod chunk;
mod sums;

use crate::Group;
use crate::days::{Day, day_of};
use crate::evidence;
use crate::feed::{Part, Seen, Sink, Trait, feed};
use crate::rules::{BulkFold, Skip, Totals, Wanted};
use crate::samples::{Home, Samples};
use crate::symbols::{ANY, FALSE, NAMELESS, Places, Symbol, Symbols, TRUE};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use chunk::{Local, Scratch};
use core::marker::PhantomData;
use core::ops::Range;
use ipse_core::chunk::{Chunk, FIELDS, OUTCOME, SOURCE, outcome_of};
use ipse_core::{Event, EventKind, FactKey, FactKind, Outcome, Property, Seq};
use sums::Sum;
pub(crate) use sums::{FromSums, Sums};
use sums::{Last, Names};

/// The sums of a log under construction.
pub(crate) struct Bulk<'w, T> {
    symbols: Symbols,
    groups: Groups<'w>,
    samples: Samples,
    classes: Vec<Counted>,
    class_places: Places<ClassKey>,
    local: Local,
    scratch: Scratch,
    /// A source whose events feed no fact.
    left_out: Option<Symbol>,
    into: PhantomData<T>,
}

/// The fields of an event; texts as symbols plus one.
type ClassKey = [u32; FIELDS];
/// Events of one class: their number, the last of them, and the groups that they count in.
struct Counted {
    event_type: Symbol,
    target: Option<Symbol>,
    source: Option<Symbol>,
    success: bool,
    n: i64,
    /// The number of them by day, if the rules want days. A day may occur several times.
    days: Vec<(Day, i64)>,
    /// The number of them whose properties feed a fact.
    fed: i64,
    last: Option<Last>,
    plan: Result<Vec<Target>, Skip>,
    /// The groups that use their parameters: a skill's, and a pattern's.
    takers: [Option<usize>; 2],
}

/// The destinations of the samples of a parameter, for events of one class.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Route {
    homes: [Home; 2],
    success: bool,
}

impl Route {
    const NOWHERE: Home = Home::MAX;
    const UNKNOWN: Route = Route { homes: [Home::MAX - 1; 2], success: false };

    fn is_known(&self) -> bool {
        self.homes[0] != Self::UNKNOWN.homes[0]
    }

    #[inline]
    fn push(self, value: i64, day: u32, samples: &mut Samples) {
        // Only the first taker, a skill, keeps days.
        for (home, day) in self.homes.into_iter().zip([day, 0]) {
            if home != Self::NOWHERE {
                samples.push(home, value, self.success, day);
            }
        }
    }
}

/// The contribution of each event of a class to one group.
#[derive(Clone, Copy)]
struct Target {
    group: usize,
    part: Part<Symbol>,
    params: bool,
    supports: bool,
}

/// The sums of all wanted facts, by key.
struct Groups<'w> {
    wanted: Wanted<'w>,
    sums: Vec<Sum>,
    places: Places<[u32; 4]>,
}

/// The place of every fact that is not wanted.
const UNWANTED: usize = u32::MAX as usize - 1;

impl Groups<'_> {
    /// The place of a fact's sums; `None` if it is not wanted.
    fn find(&mut self, symbols: &Symbols, kind: FactKind, key: [Symbol; 3]) -> Option<usize> {
        let Groups { wanted, sums, places } = self;
        let place = places.find_or_add([kind as u32, key[0], key[1], key[2]], || {
            let new = Sum::new(kind, key);
            if !wanted(&new.key(symbols)) {
                return UNWANTED;
            }
            sums.push(new);
            sums.len() - 1
        });
        (place != UNWANTED).then_some(place)
    }
}

/// Computes where the events of a class count.
struct Planner<'b, 'w> {
    symbols: &'b Symbols,
    groups: &'b mut Groups<'w>,
    plan: Vec<Target>,
}

impl Sink<Symbol> for Planner<'_, '_> {
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
        let group = self.groups.find(self.symbols, kind, key);
        self.plan.extend(group.map(|group| Target { group, part, params, supports }));
    }
}

impl<T: FromSums> BulkFold<T> for Bulk<'_, T> {
    fn fold(
        &mut self,
        chunk: &Chunk<'_>,
        first: Seq,
        places: Range<usize>,
        refs: &mut Names<'_>,
    ) -> Option<()> {
        self.follow(chunk, refs)?;
        let places = places.start..places.end.min(chunk.count);
        let mut scratch = core::mem::take(&mut self.scratch);
        let folded = self.fold_columns(chunk, &mut scratch, first, places, refs);
        self.scratch = scratch;
        folded
    }

    fn fold_event(&mut self, seq: Seq, event: &Event<'_>, refs: &mut Names<'_>) {
        let columns = &event.columns;
        let texts = [columns.skill, columns.target, columns.environment, columns.zone];
        let source = columns.source.filter(|_| T::DATED);
        let mut key = [0; FIELDS];
        key[0] = self.symbols.intern_near(0, event.event_type) + 1;
        key[OUTCOME] = columns.outcome.map_or(0, |outcome| outcome as u32 + 1);
        for (place, text) in texts.into_iter().chain([columns.reason, source]).enumerate() {
            key[2 + place] = text.map_or(0, |text| self.symbols.intern_near(1 + place, text) + 1);
        }
        let class = self.class(key);
        let event_ref = Some(event.event_ref);
        let worked = self.classes[class].success;
        let last = Last { time: event.time.micros(), seq: seq.0, event_ref, worked };
        let day = if T::DATED { day_of(event.time) } else { 0 };
        self.classes[class].count::<T>(1, day, last, refs);
        let day = if T::DATED { self.number_day(day) } else { 0 };
        for (place, (name, value)) in columns.params.iter().enumerate() {
            let name = self.symbols.intern_near(FIELDS + place, name);
            self.route(class, place, name).push(value.get(), day, &mut self.samples);
        }
        let own: Vec<_> = columns.properties.iter().map(|own| self.property(own)).collect();
        self.fold_properties(class, &own, last, refs);
        self.samples.settle();
    }

    fn weight(&self) -> usize {
        self.groups.sums.len() + self.samples.homes() + self.classes.len() + self.symbols.count()
    }

    fn supporters(&self, chunk: &Chunk<'_>, key: &FactKey) -> Option<Vec<usize>> {
        evidence::supporters(chunk, key)
    }

    fn finish(
        mut self: Box<Self>,
        refs: &mut Names<'_>,
        each: &mut dyn FnMut(FactKey, Group<T>),
    ) -> Option<Totals> {
        self.settle(refs);
        let totals = self.spread(refs);
        let (symbols, mut samples) = (self.symbols, self.samples);
        let mut groups: Vec<Option<Sum>> = self.groups.sums.into_iter().map(Some).collect();
        let filled = (0..).zip(groups.iter().flatten()).filter(|(_, sums)| !sums.is_empty());
        let mut keys: Vec<(FactKey, usize)> =
            filled.map(|(place, sums)| (sums.key(&symbols), place)).collect();
        keys.sort_unstable();
        for (key, place) in keys {
            if let Some(sums) = groups[place].take() {
                each(key, sums.finish::<T>(&symbols, &mut samples, refs)?);
            }
        }
        Some(totals)
    }
}

impl Counted {
    /// Counts events of one day.
    fn count_day(&mut self, day: Day, n: i64) {
        self.n += n;
        match self.days.last_mut() {
            Some((last, sum)) if *last == day => *sum += n,
            _ if n == 0 => {}
            _ => self.days.push((day, n)),
        }
    }

    fn count<T: FromSums>(&mut self, n: i64, day: Day, last: Last, refs: &mut Names<'_>) {
        match T::DATED {
            true => self.count_day(day, n),
            false => self.n += n,
        }
        self.last = Some(self.last.map_or(last, |before| before.later(last, refs)));
    }
}

impl<'w, T: FromSums> Bulk<'w, T> {
    /// Empty sums of the wanted facts.
    pub(crate) fn of(wanted: Wanted<'w>) -> Self {
        Bulk {
            symbols: Symbols::default(),
            groups: Groups { wanted, sums: Vec::new(), places: Places::default() },
            samples: Samples::new(T::DATED),
            classes: Vec::new(),
            class_places: Places::default(),
            local: Local::default(),
            scratch: Scratch::default(),
            left_out: None,
            into: PhantomData,
        }
    }

    /// The same without the events of one source.
    pub(crate) fn without(wanted: Wanted<'w>, source: &str) -> Self {
        let mut bulk = Self::of(wanted);
        bulk.left_out = Some(bulk.symbols.intern(source));
        bulk
    }

    /// The number of one event's day.
    fn number_day(&mut self, day: Day) -> u32 {
        if let Some(number) = self.samples.day(day) {
            return number;
        }
        self.samples.forget_days();
        self.samples.day(day).unwrap_or_default()
    }

    /// Adds the events of each class to the groups they count in.
    fn spread(&mut self, refs: &mut Names<'_>) -> Totals {
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
                Ok(plan) => plan.iter().filter(|_| class.n > 0).for_each(|target| {
                    let sums = &mut self.groups.sums[target.group];
                    match T::DATED {
                        true => sums.add_days(target.part, class.source, &class.days),
                        false => sums.add(target.part, class.n),
                    }
                    let last = class.last.filter(|_| target.supports);
                    last.into_iter().for_each(|last| sums.support(last, refs));
                }),
            }
            events += class.n.unsigned_abs();
        }
        let named = |((name, skip), n)| (String::from(self.symbols.text(name)), skip, n);
        Totals { events, skipped: skipped.into_iter().map(named).collect() }
    }

    /// The destination of a parameter of events of a class; it most likely is the `likely`-th.
    fn route(&mut self, class: usize, likely: usize, name: Symbol) -> Route {
        let Counted { takers, success, .. } = self.classes[class];
        let mut home = |taker: usize| self.groups.sums[taker].home(likely, name, &mut self.samples);
        let homes = takers.map(|taker| taker.map_or(Route::NOWHERE, &mut home));
        Route { homes, success }
    }

    /// The place of a class; for a new class the rules are evaluated.
    fn class(&mut self, key: ClassKey) -> usize {
        let Bulk { symbols, groups, classes, left_out, .. } = self;
        self.class_places.find_or_add(key, || {
            let mut class = planned(key, symbols, groups);
            if left_out.is_some() && class.source == *left_out {
                class.plan = Err(Skip::Housekeeping);
                class.takers = [None; 2];
            }
            classes.push(class);
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
            let Some(group) = self.groups.find(&self.symbols, kind, key) else { continue };
            let sums = &mut self.groups.sums[group];
            sums.add(Part::Property(*property), 1);
            sums.support(last, refs);
            if let Trait::Number(value) = property {
                let home = sums.home(0, NAMELESS, &mut self.samples);
                self.samples.push(home, *value, false, 0);
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

/// The contributions of the events of a class by the rules, without their properties.
fn planned(key: ClassKey, symbols: &Symbols, groups: &mut Groups<'_>) -> Counted {
    let text = |place: usize| key[place].checked_sub(1);
    let kind = EventKind::of(text(0).map_or("", |symbol| symbols.text(symbol)));
    let outcome = outcome_of(key[OUTCOME] as usize);
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
    let mut planner = Planner { symbols, groups, plan: Vec::new() };
    let fed = feed(&seen, core::iter::empty(), &mut planner);
    let plan = fed.map(|()| planner.plan);
    let mut takers = [None; 2];
    let all = plan.iter().flatten().filter(|target| target.params);
    takers.iter_mut().zip(all).for_each(|(taker, target)| *taker = Some(target.group));
    let success = outcome == Some(Outcome::Success);
    let (target, source) = (text(3), text(SOURCE));
    let (n, days, fed, last) = (0, Vec::new(), 0, None);
    Counted { event_type, target, source, success, n, days, fed, last, plan, takers }
}
