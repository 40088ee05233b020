//! Column chunks: the typed columns of a run of events, side by side, for reading at memory speed.
//!
//! **Invariants:** a chunk is a function of the events in it, byte for byte, so it can always be
//! made again and compared; its dictionaries are its own, so an event can be taken out by making
//! the one chunk anew; damaged bytes give `None` on decoding or an id out of range, never a panic.

use crate::decimal::cell_unit;
use crate::event::{Event, Property};
use crate::wire::{self, Wire};
use crate::{Micro, Outcome};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Events in a full chunk.
pub const CHUNK_EVENTS: usize = 4096;

/// The id of no text.
pub const NO_TEXT: usize = 0;

/// Integers that differ from a base by small multiples of a power of ten.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    base: i64,
    scale: i64,
    greatest: i64,
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
        wire::write_u128(greatest.into(), out);
        out.push(digits as u8);
        out.push(width);
        for value in values {
            out.extend_from_slice(&(offset(value) / scale).to_le_bytes()[..usize::from(width)]);
        }
    }

    fn decode(wire: &mut Wire<'a>, count: usize) -> Option<Self> {
        let base = wire.i64()?;
        let greatest = u64::try_from(wire.u128()?).ok()?;
        let digits = wire.byte().filter(|digits| *digits <= 6)?;
        let width = usize::from(wire.byte().filter(|width| matches!(width, 0 | 1 | 2 | 4 | 8))?);
        let (data, rest) = wire.0.split_at_checked(width.checked_mul(count)?)?;
        wire.0 = rest;
        let scale = 10_i64.pow(digits.into());
        let greatest = base.wrapping_add(greatest.cast_signed().wrapping_mul(scale));
        Some(Packed { base, scale, greatest, width, data })
    }

    /// Whether every integer is a multiple of the place value that `digits` significant digits
    /// leave to the greatest of them: then none of them loses anything by such a rounding.
    pub fn is_multiple_of_cell(&self, digits: u32) -> bool {
        let unit = cell_unit(self.greatest, digits).max(cell_unit(self.base, digits));
        self.base % unit == 0 && (self.scale % unit == 0 || self.width == 0)
    }

    /// All integers, in place of what was in `out`.
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

/// Events that carry the same parameters: their names, and a column for each.
#[derive(Debug)]
pub struct Shape<'a> {
    /// The ids of the names.
    pub names: Vec<usize>,
    /// How many events.
    pub members: usize,
    /// The values of each, for the events of this shape in order.
    pub values: Vec<Packed<'a>>,
}

/// A property as a chunk has it, texts by id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkProperty {
    /// A usable number.
    Number(Micro),
    /// A text.
    Text(usize),
    /// A boolean.
    Bool(bool),
}

/// What events have in common but for time, parameters and properties. Texts by id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Class {
    /// The type.
    pub event_type: usize,
    /// The outcome: 0 none, else one more than its place in `Outcome::ALL`.
    pub outcome: usize,
    /// Skill, target and environment.
    pub triple: [usize; 3],
    /// The zone.
    pub zone: usize,
    /// The failure reason.
    pub reason: usize,
}

impl Class {
    const FIELDS: usize = 7;

    fn fields(&self) -> [usize; Self::FIELDS] {
        let [skill, target, environment] = self.triple;
        [self.event_type, self.outcome, skill, target, environment, self.zone, self.reason]
    }

    fn read(wire: &mut Wire<'_>) -> Option<Self> {
        Some(Class {
            event_type: wire.length()?,
            outcome: wire.length()?,
            triple: [wire.length()?, wire.length()?, wire.length()?],
            zone: wire.length()?,
            reason: wire.length()?,
        })
    }

    /// The outcome itself.
    pub fn outcome(&self) -> Option<Outcome> {
        Outcome::ALL.get(self.outcome.wrapping_sub(1)).copied()
    }
}

/// A decoded chunk. Texts are named by ids from 1; 0 is no text.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// How many events.
    pub count: usize,
    /// The texts, in ascending order; id 1 is the first.
    pub texts: Vec<&'a str>,
    /// The distinct classes.
    pub classes: Vec<Class>,
    /// Which class each event is of.
    pub class: Packed<'a>,
    /// Microseconds.
    pub times: Packed<'a>,
    /// Which shape.
    pub shape: Packed<'a>,
    /// The distinct lists of parameters.
    pub shapes: Vec<Shape<'a>>,
    /// The events that have properties, ascending, with name ids.
    pub properties: Vec<(usize, Vec<(usize, ChunkProperty)>)>,
}

/// The bytes of a chunk of events.
pub fn encode(events: &[Event<'_>]) -> Vec<u8> {
    let texts = Texts::of(events);
    let mut out = Vec::with_capacity(events.len() * 24);
    wire::write_len(events.len(), &mut out);
    wire::write_len(texts.0.len(), &mut out);
    texts.0.keys().for_each(|text| wire::write_text(text, &mut out));

    let class = |event: &Event<'_>| {
        let columns = &event.columns;
        let triple = [columns.skill, columns.target, columns.environment];
        Class {
            event_type: texts.id(Some(event.event_type)),
            outcome: columns.outcome.map_or(0, |outcome| outcome as usize + 1),
            triple: triple.map(|text| texts.id(text)),
            zone: texts.id(columns.zone),
            reason: texts.id(columns.reason),
        }
    };
    let names = |event: &Event<'_>| -> Vec<usize> {
        event.columns.params.iter().map(|(name, _)| texts.id(Some(name))).collect()
    };
    let class_of: Vec<Class> = events.iter().map(class).collect();
    let shape_of: Vec<Vec<usize>> = events.iter().map(names).collect();
    let (classes, shapes) = (numbered(class_of.iter()), numbered(shape_of.iter()));
    wire::write_len(classes.len(), &mut out);
    for class in classes.keys() {
        class.fields().iter().for_each(|id| wire::write_len(*id, &mut out));
    }
    let as_id = |id: &usize| i64::try_from(*id).unwrap_or(i64::MAX);
    let column: Vec<i64> = class_of.iter().map(|class| as_id(&classes[class])).collect();
    Packed::encode(&column, &mut out);
    let times: Vec<i64> = events.iter().map(|event| event.time.micros()).collect();
    Packed::encode(&times, &mut out);
    let column: Vec<i64> = shape_of.iter().map(|shape| as_id(&shapes[shape])).collect();
    Packed::encode(&column, &mut out);
    encode_shapes(events, &shapes, &shape_of, &mut out);
    encode_properties(events, &texts, &mut out);
    out
}

/// Numbers distinct things in their order.
fn numbered<T: Ord>(things: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let distinct: BTreeSet<T> = things.collect();
    distinct.into_iter().zip(0..).collect()
}

/// Every text of a chunk, with its id.
struct Texts<'e>(BTreeMap<&'e str, usize>);

impl<'e> Texts<'e> {
    fn of(events: &'e [Event<'_>]) -> Self {
        let mut texts = BTreeSet::new();
        for event in events {
            let columns = &event.columns;
            let keys = [columns.skill, columns.target, columns.environment];
            texts.extend(keys.into_iter().chain([columns.zone, columns.reason]).flatten());
            texts.insert(event.event_type);
            texts.extend(columns.params.iter().map(|(name, _)| *name));
            for (name, property) in &columns.properties {
                texts.insert(name);
                if let Property::Text(text) = property {
                    texts.insert(text);
                }
            }
        }
        Texts(texts.into_iter().zip(1..).collect())
    }

    fn id(&self, text: Option<&str>) -> usize {
        text.map_or(NO_TEXT, |text| self.0[text])
    }
}

fn encode_shapes(
    events: &[Event<'_>],
    shapes: &BTreeMap<&Vec<usize>, usize>,
    shape_of: &[Vec<usize>],
    out: &mut Vec<u8>,
) {
    let mut members: Vec<Vec<&Event<'_>>> = Vec::new();
    members.resize_with(shapes.len(), Vec::new);
    for (event, shape) in events.iter().zip(shape_of) {
        members[shapes[shape]].push(event);
    }
    wire::write_len(shapes.len(), out);
    for (names, members) in shapes.keys().zip(&members) {
        wire::write_len(names.len(), out);
        names.iter().for_each(|name| wire::write_len(*name, out));
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

impl<'a> Chunk<'a> {
    /// Reads what `encode` wrote.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut wire = Wire(bytes);
        let count = wire.length().filter(|count| *count <= CHUNK_EVENTS)?;
        let texts = read_many(&mut wire, |wire| wire.text())?;
        let classes = read_many(&mut wire, Class::read)?;
        let class = Packed::decode(&mut wire, count)?;
        let times = Packed::decode(&mut wire, count)?;
        let shape = Packed::decode(&mut wire, count)?;
        let shapes = read_many(&mut wire, |wire| {
            let names = read_many(wire, Wire::length)?;
            let members = wire.length()?;
            let values = names.iter().map(|_| Packed::decode(wire, members)).collect::<Option<_>>();
            Some(Shape { names, members, values: values? })
        })?;
        let properties =
            read_many(&mut wire, |wire| Some((wire.length()?, read_many(wire, read_property)?)))?;
        wire.finish(Chunk { count, texts, classes, class, times, shape, shapes, properties })
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
