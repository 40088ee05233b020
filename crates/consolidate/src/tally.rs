//! Tallies: exact, mergeable state. The type guarantees that the order of events has no effect.
//!
//! **Laws**, checked by one property test for every implementor:
//! `a + b = b + a`, `(a + b) + c = a + (b + c)`, `a + 0 = a`, `a + (−a) = 0`;
//! and a part that sums to zero is removed, so equal sums have equal bytes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::wire::{self, Wire};

/// An element of an Abelian group, with one encoding.
pub trait Tally: Clone + Default + Eq {
    /// Adds another sum.
    fn add(&mut self, other: &Self);

    /// The inverse: adding it removes this sum.
    #[must_use]
    fn negated(&self) -> Self;

    /// Whether this is the neutral element.
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads an encoding; damaged bytes give `None`.
    fn decode(wire: &mut Wire<'_>) -> Option<Self>;
}

impl Tally for i64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn negated(&self) -> Self {
        -self
    }

    fn encode(&self, out: &mut Vec<u8>) {
        wire::write_i128((*self).into(), out);
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        wire.i64()
    }
}

/// The keys that a sparse sum may have.
pub trait Component: Clone + Ord {
    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads an encoding; damaged bytes give `None`.
    fn decode(wire: &mut Wire<'_>) -> Option<Self>;
}

impl Component for String {
    fn encode(&self, out: &mut Vec<u8>) {
        wire::write_text(self, out);
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        wire.text().map(String::from)
    }
}

/// A sparse sum: components that reach zero are removed.
impl<K: Component, T: Tally> Tally for BTreeMap<K, T> {
    fn add(&mut self, other: &Self) {
        for (key, part) in other {
            match self.get_mut(key) {
                Some(sum) => {
                    sum.add(part);
                    if sum.is_zero() {
                        self.remove(key);
                    }
                }
                None => {
                    self.insert(key.clone(), part.clone());
                }
            }
        }
    }

    fn negated(&self) -> Self {
        self.iter().map(|(key, part)| (key.clone(), part.negated())).collect()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        wire::write_len(self.len(), out);
        for (key, part) in self {
            key.encode(out);
            part.encode(out);
        }
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        let count = wire.length()?;
        (0..count).map(|_| Some((K::decode(wire)?, T::decode(wire)?))).collect()
    }
}
