//! Texts as small integers, and keys of three of them as indexes into a vector.
//!
//! **Invariant:** numbers are assigned in the order of first use and never leave this crate: no
//! published byte depends on them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A text's number.
pub(crate) type Symbol = u32;

/// `*`, the text of a missing part of a key.
pub(crate) const ANY: Symbol = 0;
/// `true`
pub(crate) const TRUE: Symbol = 1;
/// `false`
pub(crate) const FALSE: Symbol = 2;
/// The empty name, for the numbers of a property.
pub(crate) const NAMELESS: Symbol = 3;

pub(crate) struct Symbols {
    texts: Vec<String>,
    numbers: BTreeMap<String, Symbol>,
    /// The last list that was interned: the next one is nearly the same.
    last: Vec<Symbol>,
    /// The last text of each column of single events: the next one is likely the same.
    near: Vec<Symbol>,
}

impl Default for Symbols {
    fn default() -> Self {
        let mut symbols = Symbols {
            texts: Vec::new(),
            numbers: BTreeMap::new(),
            last: Vec::new(),
            near: Vec::new(),
        };
        for (number, text) in ["*", "true", "false", ""].into_iter().enumerate() {
            let given = symbols.intern(text);
            debug_assert_eq!(given as usize, number, "BUG: a reserved symbol moved");
        }
        symbols
    }
}

impl Symbols {
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        // More than 2³² distinct texts do not fit into memory.
        let number = Symbol::try_from(self.texts.len()).unwrap_or(Symbol::MAX);
        self.texts.push(String::from(text));
        self.numbers.insert(String::from(text), number);
        number
    }

    /// Numbers for an ascending list of texts, found by walking along the previous list.
    pub(crate) fn intern_sorted(&mut self, texts: &[&str]) -> Vec<Symbol> {
        let before = core::mem::take(&mut self.last);
        let mut at = 0;
        let mut numbers = Vec::with_capacity(texts.len());
        for text in texts {
            while at < before.len() && self.text(before[at]) < *text {
                at += 1;
            }
            let known = at < before.len() && self.text(before[at]) == *text;
            numbers.push(if known { before[at] } else { self.intern(text) });
        }
        self.last.clone_from(&numbers);
        numbers
    }

    /// The number of a text that likely equals the last one of its column.
    pub(crate) fn intern_near(&mut self, column: usize, text: &str) -> Symbol {
        if let Some(near) = self.near.get(column)
            && self.text(*near) == text
        {
            return *near;
        }
        let symbol = self.intern(text);
        if column >= self.near.len() {
            self.near.resize(column + 1, ANY);
        }
        self.near[column] = symbol;
        symbol
    }

    pub(crate) fn count(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol as usize]
    }
}

/// A hash map from a short key to a place: open addressing, linear probing, at most half full.
pub(crate) struct Places<K> {
    slots: Vec<Slot<K>>,
    used: usize,
}

#[derive(Clone, Copy)]
struct Slot<K> {
    key: K,
    place: u32,
}

const NO_PLACE: u32 = u32::MAX;
const LEAST_SLOTS: usize = 64;

impl<const N: usize> Default for Places<[u32; N]> {
    fn default() -> Self {
        Places { slots: Vec::new(), used: 0 }
    }
}

impl<const N: usize> Places<[u32; N]> {
    /// The place of a key; `add` creates one for a new key.
    #[inline]
    pub(crate) fn find_or_add(&mut self, key: [u32; N], add: impl FnOnce() -> usize) -> usize {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(&key);
        if self.slots[slot].place == NO_PLACE {
            self.used += 1;
            // More than 2³² places do not fit into memory.
            let place = u32::try_from(add()).unwrap_or(NO_PLACE - 1);
            self.slots[slot] = Slot { key, place };
        }
        self.slots[slot].place as usize
    }

    #[inline]
    fn slot(&self, key: &[u32; N]) -> usize {
        let mask = self.slots.len() - 1;
        let mix = |mixed: u64, part: &u32| {
            (mixed ^ u64::from(*part)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        };
        let mut slot = (key.iter().fold(0, mix) >> 16) as usize;
        loop {
            slot &= mask;
            let found = &self.slots[slot];
            if found.place == NO_PLACE || found.key == *key {
                return slot;
            }
            slot += 1;
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(LEAST_SLOTS);
        let empty = Slot { key: [0; N], place: NO_PLACE };
        let old = core::mem::replace(&mut self.slots, alloc::vec![empty; size]);
        for slot in old.into_iter().filter(|slot| slot.place != NO_PLACE) {
            let place = self.slot(&slot.key);
            self.slots[place] = slot;
        }
    }
}
