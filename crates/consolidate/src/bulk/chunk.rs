//! Reading a chunk into the sums, column by column.
//!
//! **Invariant:** ids out of range are damage and end the reading; nothing is guessed.

use super::Bulk;
use super::sums::{Last, Names};
use crate::feed::Trait;
use crate::histogram::{FINE_DIGITS, fine_of};
use crate::symbols::{FALSE, Symbol, TRUE};
use alloc::vec::Vec;
use core::ops::Range;
use ipse_core::chunk::{Chunk, ChunkProperty, NO_TEXT};
use ipse_core::{Micro, Outcome, Seq};

/// Columns of the chunk at hand, unpacked, and what is counted in it.
#[derive(Default)]
pub(super) struct Scratch {
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

impl Bulk {
    pub(super) fn local(&mut self, chunk: &Chunk<'_>) -> Option<Local> {
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

    pub(super) fn fold_columns(
        &mut self,
        chunk: &Chunk<'_>,
        local: &Local,
        scratch: &mut Scratch,
        first: Seq,
        places: Range<usize>,
        refs: &mut Names<'_>,
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
        refs: &mut Names<'_>,
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
}

/// A chunk's ids as symbols and classes of the whole log. `None` means that the chunk is damaged.
pub(super) struct Local {
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
