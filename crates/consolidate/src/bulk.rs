//! Summing a whole log: the same contributions as event by event, at the speed of memory.
//!
//! Texts are interned to small integers, samples of a parameter are collected in vectors and
//! counted by sorting, and chunks are read column by column.
//!
//! **Invariant:** the groups that come out equal those of [`crate::Groups::fold`] over the same
//! events: the rules are stated once, in `feed`; only the way of adding differs.

use crate::feed::{Part, Seen, Sink, Trait, feed, key_length};
use crate::rules::{Folded, Skip};
use crate::samples::Samples;
use crate::symbols::{ANY, FALSE, NAMELESS, Places, Symbol, Symbols, TRUE};
use crate::v1::Observed;
use crate::{BulkFold, Group};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::chunk::{Chunk, ChunkProperty, NO_TEXT, Triple};
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
    places: Places,
    events: u64,
    skipped: BTreeMap<(Symbol, Skip), u64>,
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
    params: Vec<(Symbol, Samples)>,
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
    fn add(&mut self, text: Symbol) {
        if let Some((_, n)) = self.few.iter_mut().find(|(other, _)| *other == text) {
            *n += 1;
        } else if self.few.len() < FEW_TEXTS {
            self.few.push((text, 1));
        } else {
            *self.many.entry(text).or_default() += 1;
        }
    }
}

/// The event being folded, as the sink needs it.
struct Current<'b> {
    bulk: &'b mut Bulk,
    /// Name, value and fine cell of each parameter.
    params: &'b [(Symbol, i64, i64)],
    success: bool,
    time: i64,
    seq: u64,
    refs: &'b mut dyn FnMut(Seq) -> Option<EventRef>,
}

impl Sink<Symbol> for Current<'_> {
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
        let place = self.bulk.place(kind, key);
        let sums = &mut self.bulk.groups[place];
        sums.add(part);
        if params {
            for (index, (name, value, fine)) in self.params.iter().enumerate() {
                sums.samples(index, *name).push(*value, *fine, self.success);
            }
        }
        if supports {
            sums.support(self.time, self.seq, self.refs);
        }
    }
}

impl Bulk {
    fn place(&mut self, kind: FactKind, key: [Symbol; 3]) -> usize {
        let (places, groups) = (&mut self.places, &mut self.groups);
        places.find_or_add(kind as u32, key, || {
            groups.push(Sums::new(kind, key));
            groups.len() - 1
        })
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

    fn add(&mut self, part: Part<Symbol>) {
        match part {
            Part::Ended(Outcome::Success, _) => self.successes += 1,
            Part::Ended(Outcome::Failed, reason) => {
                self.failures += 1;
                reason.into_iter().for_each(|reason| self.texts.add(reason));
            }
            Part::Ended(outcome, _) => self.uncounted[outcome as usize] += 1,
            Part::Failure => self.failures += 1,
            Part::Incident(reason) => {
                self.incidents += 1;
                reason.into_iter().for_each(|reason| self.texts.add(reason));
            }
            Part::Property(Trait::Text(text)) => self.texts.add(text),
            Part::Property(Trait::Number(value)) => {
                let fine = crate::histogram::fine_of(Micro::new(value).unwrap_or_default());
                self.samples(0, NAMELESS).push(value, fine, false);
            }
        }
    }

    /// The samples of a parameter, most likely where it stood in the last event.
    fn samples(&mut self, likely: usize, name: Symbol) -> &mut Samples {
        let found = match self.params.get(likely) {
            Some((other, _)) if *other == name => Some(likely),
            _ => self.params.iter().position(|(other, _)| *other == name),
        };
        let place = found.unwrap_or_else(|| {
            self.params.push((name, Samples::default()));
            self.params.len() - 1
        });
        &mut self.params[place].1
    }

    fn support(&mut self, time: i64, seq: u64, refs: &mut dyn FnMut(Seq) -> Option<EventRef>) {
        match &mut self.last {
            Some(last) if last.time > time => {}
            Some(last) if last.time == time => {
                let ours = refs(Seq(seq));
                let theirs = last.event_ref.or_else(|| refs(Seq(last.seq)));
                *last = if ours > theirs {
                    Last { time, seq, event_ref: ours }
                } else {
                    Last { event_ref: theirs, ..*last }
                };
            }
            last => *last = Some(Last { time, seq, event_ref: None }),
        }
    }

    fn finish(
        self,
        symbols: &Symbols,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<(FactKey, Group<Observed>)> {
        let parts = self.key.map(|symbol| symbols.text(symbol));
        let key = FactKey::new(self.kind, &parts[..key_length(self.kind)]);
        let text = |symbol: Symbol| String::from(symbols.text(symbol));
        let counted = |(symbol, n): (Symbol, i64)| (text(symbol), n);
        let uncounted = Outcome::ALL.into_iter().zip(self.uncounted).filter(|(_, n)| *n > 0);
        let tally = Observed {
            successes: self.successes,
            failures: self.failures,
            incidents: self.incidents,
            uncounted: uncounted.collect(),
            numbers: self.params.into_iter().map(|(n, s)| (text(n), s.finish())).collect(),
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
        places: core::ops::Range<usize>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<()> {
        let local = Local::new(chunk, &mut self.symbols)?;
        // Events of one shape stand in its columns in the order of the chunk.
        let mut in_shape = alloc::vec![0_usize; chunk.shapes.len()];
        let mut properties = chunk.properties.iter().peekable();
        let mut params: Vec<(Symbol, i64, i64)> = Vec::new();
        for place in 0..places.end.min(chunk.count) {
            let shape = chunk.shape.id(place);
            let row = in_shape.get_mut(shape)?;
            *row += 1;
            let own = properties.next_if(|(other, _)| *other == place);
            if place < places.start {
                continue;
            }
            params.clear();
            local.read_params(chunk, shape, *row - 1, &mut params)?;
            let seen = local.seen(chunk, place)?;
            let event_type = local.symbol(chunk.types.id(place))??;
            let success = seen.outcome == Some(Outcome::Success);
            let own = local.properties(own.map_or(&[], |(_, own)| own))?;
            let (time, seq) = (chunk.times.get(place), first.0 + place as u64);
            let mut sink = Current { bulk: self, params: &params, success, time, seq, refs };
            let fed = feed(&seen, own.into_iter(), &mut sink);
            self.count(event_type, fed.err());
        }
        Some(())
    }

    fn fold_event(
        &mut self,
        seq: Seq,
        event: &Event<'_>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) {
        let columns = &event.columns;
        let mut near = |column: usize, text: Option<&str>| {
            text.map(|text| self.symbols.intern_near(column, text))
        };
        let seen = Seen {
            kind: EventKind::of(event.event_type),
            outcome: columns.outcome,
            skill: near(0, columns.skill),
            target: near(1, columns.target),
            environment: near(2, columns.environment),
            zone: near(3, columns.zone),
            reason: near(4, columns.reason),
        };
        let event_type = self.symbols.intern_near(5, event.event_type);
        let mut params = Vec::with_capacity(columns.params.len());
        for (place, (name, value)) in columns.params.iter().enumerate() {
            let name = self.symbols.intern_near(6 + place, name);
            params.push((name, value.get(), crate::histogram::fine_of(*value)));
        }
        let own: Vec<_> = columns.properties.iter().map(|own| self.property(own)).collect();
        let mut sink = Current {
            success: seen.outcome == Some(Outcome::Success),
            bulk: self,
            params: &params,
            time: event.time.micros(),
            seq: seq.0,
            refs,
        };
        let fed = feed(&seen, own.into_iter(), &mut sink);
        self.count(event_type, fed.err());
    }

    fn finish(
        self: Box<Self>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<Folded<Observed>> {
        let symbols = self.symbols;
        let groups = self.groups.into_iter().map(|sums| sums.finish(&symbols, refs));
        let mut groups: Vec<_> = groups.collect::<Option<_>>()?;
        groups.sort_by(|a, b| a.0.cmp(&b.0));
        let skipped = self
            .skipped
            .into_iter()
            .map(|((name, skip), n)| (String::from(symbols.text(name)), skip, n));
        Some(Folded { groups, events: self.events, skipped: skipped.collect() })
    }
}

impl Bulk {
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

    fn count(&mut self, event_type: Symbol, skip: Option<Skip>) {
        if skip != Some(Skip::Housekeeping) {
            self.events += 1;
            if let Some(skip) = skip {
                *self.skipped.entry((event_type, skip)).or_default() += 1;
            }
        }
    }
}

/// A chunk's ids as symbols of the whole log.
struct Local {
    symbols: Vec<Symbol>,
    kinds: Vec<EventKind>,
    triples: Vec<[Option<Symbol>; 3]>,
    names: Vec<Vec<Symbol>>,
}

impl Local {
    fn new(chunk: &Chunk<'_>, all: &mut Symbols) -> Option<Self> {
        let symbols = all.intern_sorted(&chunk.texts);
        let mut local = Local {
            kinds: chunk.texts.iter().map(|text| EventKind::of(text)).collect(),
            symbols,
            triples: Vec::new(),
            names: Vec::new(),
        };
        let triple = |[skill, target, environment]: &Triple| {
            Some([local.symbol(*skill)?, local.symbol(*target)?, local.symbol(*environment)?])
        };
        let triples = chunk.triples.iter().map(triple).collect::<Option<_>>()?;
        let names = |shape: &ipse_core::chunk::Shape<'_>| {
            shape.names.iter().map(|name| local.symbol(*name)?).collect::<Option<Vec<_>>>()
        };
        let names = chunk.shapes.iter().map(names).collect::<Option<_>>()?;
        (local.triples, local.names) = (triples, names);
        Some(local)
    }

    /// The symbol of an id; the outer `None` means that the chunk is damaged.
    #[inline]
    fn symbol(&self, id: usize) -> Option<Option<Symbol>> {
        match id {
            NO_TEXT => Some(None),
            id => self.symbols.get(id - 1).map(|symbol| Some(*symbol)),
        }
    }

    #[inline]
    fn seen(&self, chunk: &Chunk<'_>, place: usize) -> Option<Seen<Symbol>> {
        let [skill, target, environment] = *self.triples.get(chunk.triple.id(place))?;
        Some(Seen {
            kind: *self.kinds.get(chunk.types.id(place).wrapping_sub(1))?,
            outcome: chunk.outcome(place),
            skill,
            target,
            environment,
            zone: self.symbol(chunk.zones.id(place))?,
            reason: self.symbol(chunk.reasons.id(place))?,
        })
    }

    #[inline]
    fn read_params(
        &self,
        chunk: &Chunk<'_>,
        shape: usize,
        row: usize,
        params: &mut Vec<(Symbol, i64, i64)>,
    ) -> Option<()> {
        let values = &chunk.shapes.get(shape)?.values;
        for (name, column) in self.names.get(shape)?.iter().zip(values) {
            let value = column.checked(row)?;
            params.push((*name, value, crate::histogram::fine_of(Micro::new(value)?)));
        }
        Some(())
    }

    fn properties(&self, own: &[(usize, ChunkProperty)]) -> Option<Vec<(Symbol, Trait<Symbol>)>> {
        let read = |(name, property): &(usize, ChunkProperty)| {
            let property = match property {
                ChunkProperty::Number(value) => Trait::Number(value.get()),
                ChunkProperty::Text(text) => Trait::Text(self.symbol(*text)??),
                ChunkProperty::Bool(true) => Trait::Text(TRUE),
                ChunkProperty::Bool(false) => Trait::Text(FALSE),
            };
            Some((self.symbol(*name)??, property))
        };
        own.iter().map(read).collect()
    }
}
