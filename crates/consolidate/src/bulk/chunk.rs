//! Reading a chunk into the sums, column by column.
//!
//! **Invariant:** a code out of range means a damaged chunk and ends the reading; nothing is
//! guessed.

use super::sums::{FromSums, Last, Names};
use super::{Bulk, ClassKey, Route};
use crate::days::DAY_MICROS;
use crate::feed::Trait;
use crate::symbols::{FALSE, Places, Symbol, TRUE};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use ipse_core::chunk::{Chunk, ChunkProperty, Dictionary, FIELDS, NO_TEXT, OUTCOME, SOURCE};
use ipse_core::{EventRef, Micro, Seq};

/// The most combinations of fields for which a table holds the class of each; beyond that, classes
/// are found by hashing.
const MAX_TABLE: usize = 1 << 16;
/// The most routes that are kept from chunk to chunk; beyond that, each is found when it is needed.
const MAX_ROUTES: usize = 1 << 20;
/// A combination without a class yet.
const UNSEEN: u32 = u32::MAX;
/// No time is within a day of this beginning.
const NO_DAY: i64 = i64::MIN / 2;

/// The beginning of the day of a time in microseconds.
fn beginning(time: i64) -> i64 {
    time.div_euclid(DAY_MICROS) * DAY_MICROS
}

/// Columns of the current chunk, unpacked.
#[derive(Default)]
pub(super) struct Scratch {
    times: Vec<i64>,
    /// The number of each event's day among the samples, if the rules want days.
    days: Vec<u32>,
    values: Vec<i64>,
    /// The class of each event, by its number under the dictionary.
    class: Vec<u32>,
    keys: Vec<ClassKey>,
    shape: Vec<u32>,
    members: Vec<Members>,
}

/// The events of one shape, in the order of its columns.
#[derive(Default)]
struct Members {
    classes: Vec<u32>,
    days: Vec<u32>,
    /// The requested events.
    inside: Range<usize>,
}

impl Scratch {
    /// Sorts the events by shape.
    fn gather(&mut self, chunk: &Chunk<'_>, places: &Range<usize>) {
        self.members.resize_with(chunk.shapes.len(), Members::default);
        for members in &mut self.members {
            members.classes.clear();
            members.days.clear();
        }
        if let [all] = &mut self.members[..] {
            all.classes.extend_from_slice(&self.class);
            all.days.extend_from_slice(&self.days);
            all.inside = places.clone();
            return;
        }
        self.shape.clear();
        self.shape.resize(chunk.count, 0);
        chunk.shape.zip(&mut self.shape, |shape, code| *shape = code);
        let mut sort = |part: Range<usize>| {
            for (class, shape) in self.class[part.clone()].iter().zip(&self.shape[part]) {
                self.members[*shape as usize].classes.push(*class);
            }
            self.members.iter().map(|members| members.classes.len()).collect()
        };
        let begin: Vec<usize> = sort(0..places.start);
        let end: Vec<usize> = sort(places.clone());
        sort(places.end..chunk.count);
        for (shape, day) in self.shape.iter().zip(&self.days) {
            self.members[*shape as usize].days.push(*day);
        }
        for (members, (begin, end)) in self.members.iter_mut().zip(begin.iter().zip(end)) {
            members.inside = *begin..end;
        }
    }
}

/// A dictionary in terms of the whole log, and the counts under it.
#[derive(Default)]
pub(super) struct Local {
    /// The bytes of the dictionary, to detect that the next chunk has the same.
    bytes: Vec<u8>,
    symbols: Vec<Symbol>,
    /// The meaning of each code of each field, as in a class key.
    fields: [Vec<u32>; FIELDS],
    shapes: Vec<Vec<Symbol>>,
    /// Class of each combination of codes; empty if there are too many combinations.
    table: Vec<u32>,
    places: Places<ClassKey>,
    classes: Vec<usize>,
    /// The counts of each class.
    running: Vec<Running>,
    /// The last event of a class, by number and name, if another has the same time.
    named: BTreeMap<u32, (u64, EventRef)>,
    /// The destinations of samples, by column of all shapes and by class.
    routes: Vec<Vec<Route>>,
}

/// Events of one class: their number, and time and position of the last.
struct Running {
    n: i64,
    time: i64,
    seq: u64,
    /// The beginning of the day that is being counted, and the number of its events.
    day: i64,
    of_day: i64,
}

impl<T: FromSums> Bulk<'_, T> {
    /// Makes the dictionary of a chunk the current one.
    pub(super) fn follow(&mut self, chunk: &Chunk<'_>, refs: &mut Names<'_>) -> Option<()> {
        if self.local.bytes == chunk.dictionary && !self.local.bytes.is_empty() {
            return Some(());
        }
        self.settle(refs);
        let dictionary = Dictionary::decode(chunk.dictionary)?;
        let symbols = self.symbols.intern_sorted(&dictionary.texts);
        let symbol = |id: &usize| symbols.get(id.checked_sub(1)?).copied();
        // One more than the symbol; 0 for no text.
        let part = |id: &usize| if *id == NO_TEXT { Some(0) } else { symbol(id).map(|s| s + 1) };
        let mut fields = [const { Vec::new() }; FIELDS];
        for (number, (field, ids)) in fields.iter_mut().zip(&dictionary.fields).enumerate() {
            let outcome = |id: &usize| u32::try_from(*id).ok();
            let is_text = number != OUTCOME;
            // Rules without days do not tell sources apart either.
            let unused = number == SOURCE && !T::DATED;
            let part = |id: &usize| if unused { Some(0) } else { part(id) };
            *field = ids
                .iter()
                .map(|id| if is_text { part(id) } else { outcome(id) })
                .collect::<Option<_>>()?;
        }
        let names = |ids: &Vec<usize>| ids.iter().map(symbol).collect::<Option<Vec<_>>>();
        let shapes = dictionary.shapes.iter().map(names).collect::<Option<Vec<_>>>()?;
        let product = |size: usize, field: &Vec<u32>| size.checked_mul(field.len());
        let size = fields.iter().try_fold(1, product).filter(|size| *size <= MAX_TABLE);
        let mut table = core::mem::take(&mut self.local.table);
        table.clear();
        table.resize(size.unwrap_or(0), UNSEEN);
        let mut routes = Vec::new();
        routes.resize_with(shapes.iter().map(Vec::len).sum(), Vec::new);
        let bytes = chunk.dictionary.to_vec();
        self.local = Local { bytes, symbols, fields, shapes, table, routes, ..Local::default() };
        Some(())
    }

    /// Adds the counts under the current dictionary to the classes of the log.
    pub(super) fn settle(&mut self, refs: &mut Names<'_>) {
        let Local { bytes, classes, running, named, .. } = &mut self.local;
        bytes.clear();
        for (number, (class, running)) in (0..).zip(classes.iter().zip(running.drain(..))) {
            if running.n > 0 {
                let name = named.get(&number).filter(|(seq, _)| *seq == running.seq);
                let event_ref = name.map(|(_, event_ref)| *event_ref);
                let worked = self.classes[*class].success;
                let last = Last { time: running.time, seq: running.seq, event_ref, worked };
                let day = running.day.div_euclid(DAY_MICROS);
                let n = if T::DATED { running.of_day } else { running.n };
                self.classes[*class].count::<T>(n, day, last, refs);
            }
        }
    }

    pub(super) fn fold_columns(
        &mut self,
        chunk: &Chunk<'_>,
        scratch: &mut Scratch,
        first: Seq,
        places: Range<usize>,
        refs: &mut Names<'_>,
    ) -> Option<()> {
        let in_range = |(codes, field): (&ipse_core::chunk::Codes<'_>, &Vec<u32>)| {
            codes.greatest() < field.len()
        };
        if !chunk.fields.iter().zip(&self.local.fields).all(in_range) {
            return (chunk.count == 0).then_some(());
        }
        self.classify(chunk, scratch);
        chunk.times.unpack(chunk.count, &mut scratch.times);
        if T::DATED {
            self.number_days(scratch);
        }
        self.count(scratch, first, places.clone(), refs)?;
        self.fold_params(chunk, scratch, &places)?;
        for (place, own) in chunk.properties.iter().filter(|(place, _)| places.contains(place)) {
            let own = own.iter().map(|own| self.local.property(own)).collect::<Option<Vec<_>>>()?;
            let class = self.local.classes[*scratch.class.get(*place)? as usize];
            let worked = self.classes[class].success;
            let last = Last::at(scratch.times[*place], first, *place, worked);
            self.fold_properties(class, &own, last, refs);
        }
        self.samples.settle();
        Some(())
    }

    /// Finds the class of every event.
    fn classify(&mut self, chunk: &Chunk<'_>, scratch: &mut Scratch) {
        scratch.class.clear();
        scratch.class.resize(chunk.count, 0);
        if self.local.table.is_empty() {
            self.classify_by_hashing(chunk, scratch);
            return;
        }
        for (codes, field) in chunk.fields.iter().zip(&self.local.fields) {
            let radix = field.len() as u32;
            if radix > 1 {
                codes.zip(&mut scratch.class, |class, code| *class = *class * radix + code);
            }
        }
        for class in &mut scratch.class {
            let place = *class as usize;
            *class = self.local.table[place];
            if *class == UNSEEN {
                let key = self.local.key_at(place);
                *class = self.new_class(key);
                self.local.table[place] = *class;
            }
        }
    }

    fn classify_by_hashing(&mut self, chunk: &Chunk<'_>, scratch: &mut Scratch) {
        scratch.keys.clear();
        scratch.keys.resize(chunk.count, [0; FIELDS]);
        for (number, codes) in chunk.fields.iter().enumerate() {
            let meaning = &self.local.fields[number];
            codes.zip(&mut scratch.keys, |key, code| key[number] = meaning[code as usize]);
        }
        for (class, key) in scratch.class.iter_mut().zip(&scratch.keys) {
            let mut places = core::mem::take(&mut self.local.places);
            *class = places.find_or_add(*key, || self.new_class(*key) as usize) as u32;
            self.local.places = places;
        }
    }

    fn new_class(&mut self, key: ClassKey) -> u32 {
        let class = self.class(key);
        self.local.classes.push(class);
        self.local.running.push(Running { n: 0, time: i64::MIN, seq: 0, day: NO_DAY, of_day: 0 });
        (self.local.classes.len() - 1) as u32
    }

    /// Numbers the days of the events.
    fn number_days(&mut self, scratch: &mut Scratch) {
        if !self.try_number_days(scratch) {
            // A chunk alone never has more days than there is room for.
            self.samples.forget_days();
            self.try_number_days(scratch);
        }
    }

    /// Returns false if there is no room for a day.
    fn try_number_days(&mut self, scratch: &mut Scratch) -> bool {
        scratch.days.clear();
        let (mut begin, mut number) = (NO_DAY, 0);
        for time in &scratch.times {
            if !(0..DAY_MICROS).contains(&time.wrapping_sub(begin)) {
                begin = beginning(*time);
                match self.samples.day(begin.div_euclid(DAY_MICROS)) {
                    Some(found) => number = found,
                    None => return false,
                }
            }
            scratch.days.push(number);
        }
        true
    }

    /// Counts the events of each class, and finds the last of them.
    fn count(
        &mut self,
        scratch: &Scratch,
        first: Seq,
        places: Range<usize>,
        refs: &mut Names<'_>,
    ) -> Option<()> {
        let seqs = first.0 + places.start as u64..;
        let events = scratch.class[places.clone()].iter().zip(&scratch.times[places]);
        for ((class, time), seq) in events.zip(seqs) {
            let running = &mut self.local.running[*class as usize];
            running.n += 1;
            if T::DATED {
                if !(0..DAY_MICROS).contains(&time.wrapping_sub(running.day)) {
                    let day = core::mem::replace(&mut running.day, beginning(*time));
                    let n = core::mem::take(&mut running.of_day);
                    let class = self.local.classes[*class as usize];
                    self.classes[class].count_day(day.div_euclid(DAY_MICROS), n);
                }
                running.of_day += 1;
            }
            if *time > running.time {
                (running.time, running.seq) = (*time, seq);
            } else if *time == running.time {
                self.local.break_tie(*class, seq, refs)?;
            }
        }
        Some(())
    }

    /// Passes every parameter of the events at `places` to the groups that need it, column by
    /// column.
    fn fold_params(
        &mut self,
        chunk: &Chunk<'_>,
        scratch: &mut Scratch,
        places: &Range<usize>,
    ) -> Option<()> {
        let shapes = chunk.shapes.len();
        if shapes != self.local.shapes.len() || chunk.shape.greatest() >= shapes {
            return None;
        }
        scratch.gather(chunk, places);
        let mut column = 0;
        for (number, shape) in chunk.shapes.iter().enumerate() {
            let known = self.local.shapes[number].len() == shape.values.len();
            if !known || scratch.members[number].classes.len() != shape.members {
                return None;
            }
            for (index, values) in shape.values.iter().enumerate() {
                values.unpack(shape.members, &mut scratch.values);
                let name = self.local.shapes[number][index];
                self.fold_column(&scratch.members[number], &scratch.values, column, (index, name))?;
                column += 1;
            }
        }
        Some(())
    }

    /// Folds one parameter of the events of one shape; its values are unpacked.
    fn fold_column(
        &mut self,
        members: &Members,
        values: &[i64],
        column: usize,
        (index, name): (usize, Symbol),
    ) -> Option<()> {
        let mut routes = core::mem::take(&mut self.local.routes[column]);
        if self.local.classes.len() * self.local.routes.len() <= MAX_ROUTES {
            routes.resize(self.local.classes.len(), Route::UNKNOWN);
        }
        let inside = members.inside.clone();
        let days = if T::DATED { &members.days[inside.clone()] } else { &[][..] };
        let events = members.classes[inside.clone()].iter().zip(&values[inside]);
        for (place, (class, value)) in events.enumerate() {
            let day = if T::DATED { days[place] } else { 0 };
            let value = Micro::new(*value)?.get();
            let route = match routes.get(*class as usize) {
                Some(route) if route.is_known() => *route,
                known => {
                    let route = self.route(self.local.classes[*class as usize], index, name);
                    if known.is_some() {
                        routes[*class as usize] = route;
                    }
                    route
                }
            };
            route.push(value, day, &mut self.samples);
        }
        self.local.routes[column] = routes;
        Some(())
    }
}

impl Local {
    /// Another event of the class has the time of its last one: the greater name is the last.
    fn break_tie(&mut self, class: u32, seq: u64, refs: &mut Names<'_>) -> Option<()> {
        let running = &mut self.running[class as usize];
        let known = self.named.get(&class).filter(|(named, _)| *named == running.seq);
        let ours = known.map(|(_, name)| *name).or_else(|| refs(Seq(running.seq)))?;
        let theirs = refs(Seq(seq))?;
        if ours < theirs {
            running.seq = seq;
        }
        self.named.insert(class, (running.seq, ours.max(theirs)));
        Some(())
    }

    /// The class key of a combination of codes.
    fn key_at(&self, mut place: usize) -> ClassKey {
        let mut key = [0; FIELDS];
        for (part, field) in key.iter_mut().zip(&self.fields).rev() {
            *part = field[place % field.len()];
            place /= field.len();
        }
        key
    }

    fn symbol(&self, id: usize) -> Option<Symbol> {
        self.symbols.get(id.checked_sub(1)?).copied()
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
