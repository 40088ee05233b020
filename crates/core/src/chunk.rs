//! Column chunks: the typed columns of a run of events, stored together, for reading at memory
//! speed.
//!
//! A chunk is its dictionary (texts, the distinct values of each field, the distinct lists of
//! parameters) and columns of small numbers that point into it. Neighbouring chunks mostly have the
//! same dictionary, byte for byte; a reader that notices this skips decoding it.
//!
//! **Invariants:** a chunk is a function of its events, byte for byte, so it can always be
//! recomputed and compared; it has its own dictionary, so an event can be removed by encoding this
//! one chunk again; damaged bytes give `None` on decoding or a code out of range, never a panic.

use crate::event::{Event, Property};
use crate::wire::{self, Wire};
use crate::{Micro, Outcome};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Events in a full chunk.
pub const CHUNK_EVENTS: usize = 4096;
/// Events in a small chunk. The newest events are in small chunks until they fill a full one.
pub const SMALL_EVENTS: usize = 256;

/// The id that means "no text".
pub const NO_TEXT: usize = 0;

/// The fields of an event besides time, parameters and properties: type, outcome, skill, target,
/// environment, zone, reason and source, in this order. Texts are ids; an outcome is one more than
/// its index in `Outcome::ALL`; 0 is none.
pub const FIELDS: usize = 8;
/// The index of the type among the fields.
pub const TYPE: usize = 0;
/// The index of the outcome among the fields.
pub const OUTCOME: usize = 1;
/// The index of the skill among the fields.
pub const SKILL: usize = 2;
/// The index of the target among the fields.
pub const TARGET: usize = 3;
/// The index of the source among the fields.
pub const SOURCE: usize = 7;

fn fields(event: &Event<'_>, texts: &Texts<'_>) -> [usize; FIELDS] {
    let columns = &event.columns;
    [
        texts.id(Some(event.event_type)),
        columns.outcome.map_or(0, |outcome| outcome as usize + 1),
        texts.id(columns.skill),
        texts.id(columns.target),
        texts.id(columns.environment),
        texts.id(columns.zone),
        texts.id(columns.reason),
        texts.id(columns.source),
    ]
}

/// The outcome that a field value means.
pub fn outcome_of(field: usize) -> Option<Outcome> {
    Outcome::ALL.get(field.wrapping_sub(1)).copied()
}

/// A column of indexes into a short list.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    width: usize,
    data: &'a [u8],
}

impl<'a> Codes<'a> {
    fn encode(codes: &[usize], out: &mut Vec<u8>) {
        let width: u8 = match codes.iter().max() {
            None | Some(0) => 0,
            Some(1..=0xff) => 1,
            // A chunk has fewer than 2¹⁶ events, so no list in it is longer.
            Some(_) => 2,
        };
        out.push(width);
        for code in codes {
            out.extend_from_slice(&code.to_le_bytes()[..usize::from(width)]);
        }
    }

    fn decode(wire: &mut Wire<'a>, count: usize) -> Option<Self> {
        let width = usize::from(wire.byte().filter(|width| *width <= 2)?);
        let data = wire.bytes(width.checked_mul(count)?)?;
        Some(Codes { width, data })
    }

    /// Calls `each` with every code and the item of `column` at the same index.
    #[inline]
    pub fn zip<T>(&self, column: &mut [T], mut each: impl FnMut(&mut T, u32)) {
        match self.width {
            0 => column.iter_mut().for_each(|item| each(item, 0)),
            1 => {
                let codes = column.iter_mut().zip(self.data);
                codes.for_each(|(item, code)| each(item, (*code).into()));
            }
            _ => column
                .iter_mut()
                .zip(self.data.as_chunks().0)
                .for_each(|(item, code)| each(item, u16::from_le_bytes(*code).into())),
        }
    }

    /// The code at an index.
    pub fn get(&self, place: usize) -> Option<usize> {
        match self.width {
            0 => Some(0),
            1 => self.data.get(place).map(|code| usize::from(*code)),
            _ => self.data.as_chunks().0.get(place).map(|code| u16::from_le_bytes(*code).into()),
        }
    }

    /// The greatest code.
    pub fn greatest(&self) -> usize {
        // A fold of `max` becomes vector instructions; the iterator's own `max` does not.
        match self.width {
            0 => 0,
            1 => self.data.iter().fold(0, |greatest: u8, code| greatest.max(*code)).into(),
            _ => {
                let codes = self.data.as_chunks().0.iter().map(|code| u16::from_le_bytes(*code));
                codes.fold(0, u16::max).into()
            }
        }
    }
}

/// Integers that differ from a base by small multiples of a power of ten.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    base: i64,
    scale: i64,
    width: usize,
    data: &'a [u8],
}

impl<'a> Packed<'a> {
    fn encode(values: &[i64], out: &mut Vec<u8>) {
        let base = values.iter().copied().min().unwrap_or(0);
        let offset = |value: &i64| value.wrapping_sub(base).cast_unsigned();
        let mut digits = 0;
        while digits < 6 && values.iter().all(|v| offset(v).is_multiple_of(10_u64.pow(digits + 1)))
        {
            digits += 1;
        }
        let scale = 10_u64.pow(digits);
        let greatest = values.iter().map(offset).max().unwrap_or(0) / scale;
        let width: u8 = match greatest {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        wire::write_i128(base.into(), out);
        out.push(digits as u8);
        out.push(width);
        for value in values {
            out.extend_from_slice(&(offset(value) / scale).to_le_bytes()[..usize::from(width)]);
        }
    }

    fn decode(wire: &mut Wire<'a>, count: usize) -> Option<Self> {
        let base = wire.i64()?;
        let digits = wire.byte().filter(|digits| *digits <= 6)?;
        let width = usize::from(wire.byte().filter(|width| matches!(width, 0 | 1 | 2 | 4 | 8))?);
        let data = wire.bytes(width.checked_mul(count)?)?;
        let scale = 10_i64.pow(digits.into());
        Some(Packed { base, scale, width, data })
    }

    /// Unpacks all integers into `out`, replacing its content.
    pub fn unpack(&self, count: usize, out: &mut Vec<i64>) {
        out.clear();
        let value = |raw: u64| self.base.wrapping_add(raw.cast_signed().wrapping_mul(self.scale));
        match self.width {
            0 => out.resize(count, self.base),
            1 => out.extend(self.data.iter().map(|byte| value(u64::from(*byte)))),
            2 => out.extend(
                self.data.as_chunks().0.iter().map(|b| value(u16::from_le_bytes(*b).into())),
            ),
            4 => out.extend(
                self.data.as_chunks().0.iter().map(|b| value(u32::from_le_bytes(*b).into())),
            ),
            _ => out.extend(self.data.as_chunks().0.iter().map(|b| value(u64::from_le_bytes(*b)))),
        }
    }
}

/// The parameters of all events that have the same parameter names.
#[derive(Debug)]
pub struct Shape<'a> {
    /// The number of events.
    pub members: usize,
    /// The values of each parameter, for the events of this shape in order.
    pub values: Vec<Packed<'a>>,
}

/// A property in a chunk, with texts as ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkProperty {
    /// A usable number.
    Number(Micro),
    /// A text.
    Text(usize),
    /// A boolean.
    Bool(bool),
}

/// A decoded chunk.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// The number of events.
    pub count: usize,
    /// The bytes of its [`Dictionary`].
    pub dictionary: &'a [u8],
    /// Each field of each event, as an index into the dictionary's list.
    pub fields: [Codes<'a>; FIELDS],
    /// The times in microseconds.
    pub times: Packed<'a>,
    /// The shape of each event.
    pub shape: Codes<'a>,
    /// The parameters, by shape.
    pub shapes: Vec<Shape<'a>>,
    /// The events that have properties, ascending, with name ids.
    pub properties: Vec<(usize, Vec<(usize, ChunkProperty)>)>,
}

/// The lists that the columns of a chunk point to.
#[derive(Debug)]
pub struct Dictionary<'a> {
    /// The texts, in ascending order; id 1 is the first.
    pub texts: Vec<&'a str>,
    /// The distinct values of each field.
    pub fields: [Vec<usize>; FIELDS],
    /// The distinct lists of parameters: the ids of their names.
    pub shapes: Vec<Vec<usize>>,
}

/// Encodes events as a chunk.
pub fn encode(events: &[Event<'_>]) -> Vec<u8> {
    let texts = Texts::of(events);
    let values: Vec<[usize; FIELDS]> = events.iter().map(|event| fields(event, &texts)).collect();
    let names = |event: &Event<'_>| -> Vec<usize> {
        event.columns.params.iter().map(|(name, _)| texts.id(Some(name))).collect()
    };
    let shape_of: Vec<Vec<usize>> = events.iter().map(names).collect();
    let shapes = numbered(&shape_of);
    let lists: [List; FIELDS] = core::array::from_fn(|field| {
        List::of(texts.sorted.len(), values.iter().map(|values| values[field]))
    });

    let mut out = Vec::with_capacity(events.len() * 24);
    wire::write_len(events.len(), &mut out);
    let dictionary = encode_dictionary(&texts, &lists, &shapes);
    wire::write_len(dictionary.len(), &mut out);
    out.extend_from_slice(&dictionary);
    for (field, list) in lists.iter().enumerate() {
        let codes: Vec<usize> = values.iter().map(|values| list.codes[values[field]]).collect();
        Codes::encode(&codes, &mut out);
    }
    let times: Vec<i64> = events.iter().map(|event| event.time.micros()).collect();
    Packed::encode(&times, &mut out);
    let codes: Vec<usize> = shape_of.iter().map(|shape| shapes[shape]).collect();
    Codes::encode(&codes, &mut out);
    encode_shapes(events, &shapes, &codes, &mut out);
    encode_properties(events, &texts, &mut out);
    out
}

/// Numbers distinct lists in order.
fn numbered(lists: &[Vec<usize>]) -> BTreeMap<&Vec<usize>, usize> {
    let mut distinct = BTreeSet::new();
    let mut last = None;
    // Most lists equal the previous one.
    for list in lists.iter().filter(|list| last.replace(*list) != Some(*list)) {
        distinct.insert(list);
    }
    distinct.into_iter().zip(0..).collect()
}

/// The distinct values of a field, ascending, and the code of each.
struct List {
    values: Vec<usize>,
    codes: Vec<usize>,
}

impl List {
    fn of(texts: usize, values: impl Iterator<Item = usize>) -> Self {
        let mut codes = alloc::vec![0; (texts + 1).max(Outcome::ALL.len() + 1)];
        values.for_each(|value| codes[value] = 1);
        let used = codes.iter_mut().enumerate().filter(|(_, used)| **used == 1);
        let values = used.zip(0..).map(|((value, code), number)| {
            *code = number;
            value
        });
        List { values: values.collect(), codes }
    }
}

/// Every text of a chunk. The id of a text is one more than its index in ascending order.
struct Texts<'e> {
    sorted: Vec<&'e str>,
    /// Open addressing, at most half full: one more than the index in `seen`, 0 if empty.
    slots: Vec<u32>,
    seen: Vec<&'e str>,
    ids: Vec<usize>,
}

impl<'e> Texts<'e> {
    fn of(events: &'e [Event<'_>]) -> Self {
        let slots = alloc::vec![0; 256];
        let mut texts = Texts { sorted: Vec::new(), slots, seen: Vec::new(), ids: Vec::new() };
        for event in events {
            let columns = &event.columns;
            texts.add(event.event_type);
            let keys = [columns.skill, columns.target, columns.environment];
            let keys = keys.into_iter().chain([columns.zone, columns.reason, columns.source]);
            keys.flatten().for_each(|text| texts.add(text));
            columns.params.iter().for_each(|(name, _)| texts.add(name));
            for (name, property) in &columns.properties {
                texts.add(name);
                if let Property::Text(text) = property {
                    texts.add(text);
                }
            }
        }
        let mut order: Vec<usize> = (0..texts.seen.len()).collect();
        order.sort_unstable_by_key(|place| texts.seen[*place]);
        texts.ids.resize(order.len(), NO_TEXT);
        for (id, place) in (1..).zip(&order) {
            texts.ids[*place] = id;
        }
        texts.sorted = order.iter().map(|place| texts.seen[*place]).collect();
        texts
    }

    fn add(&mut self, text: &'e str) {
        let slot = self.slot(text);
        if self.slots[slot] != 0 {
            return;
        }
        self.seen.push(text);
        self.slots[slot] = self.seen.len() as u32;
        if self.seen.len() * 2 > self.slots.len() {
            self.slots = alloc::vec![0; self.slots.len() * 2];
            for place in 0..self.seen.len() {
                let slot = self.slot(self.seen[place]);
                self.slots[slot] = place as u32 + 1;
            }
        }
    }

    /// The slot of a text, occupied or free.
    fn slot(&self, text: &str) -> usize {
        let mix = |mixed: u64, part: u64| {
            (mixed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let (words, rest) = text.as_bytes().as_chunks();
        let mixed = words.iter().fold(0, |mixed, word| mix(mixed, u64::from_le_bytes(*word)));
        let mixed = rest.iter().fold(mixed, |mixed, byte| mix(mixed, u64::from(*byte) + 1));
        let mut slot = (mixed >> 16) as usize;
        loop {
            slot &= self.slots.len() - 1;
            match self.slots[slot] {
                0 => return slot,
                place if self.seen[place as usize - 1] == text => return slot,
                _ => slot += 1,
            }
        }
    }

    fn id(&self, text: Option<&str>) -> usize {
        text.map_or(NO_TEXT, |text| self.ids[self.slots[self.slot(text)] as usize - 1])
    }
}

fn encode_dictionary(
    texts: &Texts<'_>,
    fields: &[List; FIELDS],
    shapes: &BTreeMap<&Vec<usize>, usize>,
) -> Vec<u8> {
    let mut out = Vec::new();
    wire::write_len(texts.sorted.len(), &mut out);
    texts.sorted.iter().for_each(|text| wire::write_text(text, &mut out));
    for field in fields {
        write_ids(&field.values, &mut out);
    }
    wire::write_len(shapes.len(), &mut out);
    for names in shapes.keys() {
        write_ids(names, &mut out);
    }
    out
}

fn write_ids(ids: &[usize], out: &mut Vec<u8>) {
    wire::write_len(ids.len(), out);
    ids.iter().for_each(|id| wire::write_len(*id, out));
}

fn encode_shapes(
    events: &[Event<'_>],
    shapes: &BTreeMap<&Vec<usize>, usize>,
    shape_of: &[usize],
    out: &mut Vec<u8>,
) {
    let mut members: Vec<Vec<&Event<'_>>> = Vec::new();
    members.resize_with(shapes.len(), Vec::new);
    for (event, shape) in events.iter().zip(shape_of) {
        members[*shape].push(event);
    }
    wire::write_len(shapes.len(), out);
    for (names, members) in shapes.keys().zip(&members) {
        wire::write_len(names.len(), out);
        wire::write_len(members.len(), out);
        for place in 0..names.len() {
            let value = |event: &&Event<'_>| event.columns.params[place].1.get();
            let values: Vec<i64> = members.iter().map(value).collect();
            Packed::encode(&values, out);
        }
    }
}

fn encode_properties(events: &[Event<'_>], texts: &Texts<'_>, out: &mut Vec<u8>) {
    let with: Vec<_> =
        events.iter().enumerate().filter(|(_, e)| !e.columns.properties.is_empty()).collect();
    wire::write_len(with.len(), out);
    for (place, event) in with {
        wire::write_len(place, out);
        wire::write_len(event.columns.properties.len(), out);
        for (name, property) in &event.columns.properties {
            wire::write_len(texts.id(Some(name)), out);
            let (tag, value) = match property {
                Property::Number(value) => (0, i128::from(value.get())),
                Property::Text(text) => (1, texts.id(Some(text)) as i128),
                Property::Bool(value) => (2, i128::from(*value)),
            };
            out.push(tag);
            wire::write_i128(value, out);
        }
    }
}

impl<'a> Dictionary<'a> {
    /// Reads the dictionary of a chunk.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut wire = Wire(bytes);
        let texts = read_many(&mut wire, |wire| wire.text())?;
        let mut fields = [const { Vec::new() }; FIELDS];
        for field in &mut fields {
            *field = read_many(&mut wire, Wire::length)?;
        }
        let shapes = read_many(&mut wire, |wire| read_many(wire, Wire::length))?;
        wire.finish(Dictionary { texts, fields, shapes })
    }
}

impl<'a> Chunk<'a> {
    /// Reads the output of `encode`, except for the dictionary.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut wire = Wire(bytes);
        let count = wire.length().filter(|count| *count <= CHUNK_EVENTS)?;
        let length = wire.length()?;
        let dictionary = wire.bytes(length)?;
        let mut fields = [Codes { width: 0, data: &[] }; FIELDS];
        for field in &mut fields {
            *field = Codes::decode(&mut wire, count)?;
        }
        let times = Packed::decode(&mut wire, count)?;
        let shape = Codes::decode(&mut wire, count)?;
        let shapes = read_many(&mut wire, |wire| {
            let (names, members) = (wire.length()?, wire.length()?);
            let values = (0..names).map(|_| Packed::decode(wire, members)).collect::<Option<_>>();
            Some(Shape { members, values: values? })
        })?;
        let properties =
            read_many(&mut wire, |wire| Some((wire.length()?, read_many(wire, read_property)?)))?;
        wire.finish(Chunk { count, dictionary, fields, times, shape, shapes, properties })
    }

    /// Whether the event at a place is an attempt that worked; `None` if the chunk is damaged.
    pub fn worked(&self, place: usize) -> Option<bool> {
        let outcomes = &Dictionary::decode(self.dictionary)?.fields[OUTCOME];
        let outcome = outcome_of(*outcomes.get(self.fields[OUTCOME].get(place)?)?);
        Some(outcome == Some(Outcome::Success))
    }
}

fn read_many<'a, T>(
    wire: &mut Wire<'a>,
    mut read: impl FnMut(&mut Wire<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = wire.length()?;
    (0..count).map(|_| read(wire)).collect()
}

fn read_property(wire: &mut Wire<'_>) -> Option<(usize, ChunkProperty)> {
    let name = wire.length()?;
    let (tag, value) = (wire.byte()?, wire.i64()?);
    let property = match tag {
        0 => ChunkProperty::Number(Micro::new(value)?),
        1 => ChunkProperty::Text(usize::try_from(value).ok()?),
        2 => ChunkProperty::Bool(value == 1),
        _ => return None,
    };
    Some((name, property))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_integers_survive(values: Vec<i64>, unit in 0_u32..7) {
            let scaled: Vec<i64> =
                values.iter().map(|v| (v % 1_000_000) * 10_i64.pow(unit)).collect();
            for values in [values, scaled] {
                let mut bytes = Vec::new();
                Packed::encode(&values, &mut bytes);
                let mut wire = Wire(&bytes);
                let packed = Packed::decode(&mut wire, values.len()).unwrap();
                prop_assert!(wire.0.is_empty());
                let mut unpacked = Vec::new();
                packed.unpack(values.len(), &mut unpacked);
                prop_assert_eq!(unpacked, values);
            }
        }

        #[test]
        fn damaged_chunks_are_refused_not_believed(bytes: Vec<u8>) {
            let _ = Chunk::decode(&bytes);
        }
    }
}
