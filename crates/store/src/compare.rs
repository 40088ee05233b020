//! Compares the chunks and the subtrees of a store with its log, for an auditor who reads the log.
//!
//! **Invariant:** both are caches. Nothing here decides whether an event is valid: the caller gives
//! the events and the hashes that the log has, and learns which stored copies differ.

use crate::read::View;
use crate::session::Result;
use crate::tree::STORED_LEVEL;
use ipse_core::chunk::{self, CHUNK_EVENTS, SMALL_EVENTS};
use ipse_core::{Admitted, Event, Seq};
use ipse_ledger::{Hash, TreeHead};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A chunk that is not the one of its events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChunkDamage {
    /// It is not stored.
    Missing(RangeInclusive<Seq>),
    /// It has the names of its events in another order.
    Reordered(RangeInclusive<Seq>),
    /// It has other content.
    Differs(RangeInclusive<Seq>),
    /// No chunk ends at its position.
    Foreign(Seq),
}

impl ChunkDamage {
    /// The chunk and the problem.
    pub fn describe(&self) -> (String, &'static str) {
        let (range, problem) = match self {
            ChunkDamage::Foreign(last) => {
                let problem = "is at a position where no chunk ends";
                return (format!("chunk that ends at seq {last}"), problem);
            }
            ChunkDamage::Missing(range) => (range, "is missing"),
            ChunkDamage::Reordered(range) => (range, "was sealed with its events in another order"),
            ChunkDamage::Differs(range) => (range, "differs from the events it covers"),
        };
        (format!("chunk of seq {}..{}", range.start(), range.end()), problem)
    }
}

/// The chunks of a log, compared event by event.
pub struct ChunkComparison<'v> {
    view: View<'v>,
    /// The last positions of stored chunks that were not reached.
    ends: BTreeSet<Seq>,
    /// The events since the last full chunk, without their content.
    rows: Vec<Admitted>,
    /// Whether one of these events is missing or cannot be read.
    broken: bool,
    damage: Vec<ChunkDamage>,
}

impl<'v> ChunkComparison<'v> {
    /// Begins at the start of the log.
    pub fn new(view: View<'v>) -> Result<Self> {
        let ends = view.chunk_ends()?.into_iter().collect();
        Ok(ChunkComparison { view, ends, rows: Vec::new(), broken: false, damage: Vec::new() })
    }

    /// Skips positions that are missing in the log.
    pub fn skip(&mut self) {
        self.broken = true;
    }

    /// Adds the event at the next position, without its content. `None` if it cannot be read.
    pub fn next(&mut self, seq: Seq, event: Option<Admitted>) -> Result<()> {
        self.broken |= event.as_ref().and_then(Admitted::typed).is_none();
        self.rows.extend(event);
        match seq.0.is_multiple_of(SMALL_EVENTS as u64) {
            true => self.end(seq),
            false => Ok(()),
        }
    }

    /// Compares the chunk that ends at a position, if one exists or must exist.
    fn end(&mut self, seq: Seq) -> Result<()> {
        let is_full = seq.0.is_multiple_of(CHUNK_EVENTS as u64);
        let size = if is_full { CHUNK_EVENTS } else { SMALL_EVENTS };
        let range = Seq(seq.0 + 1 - size as u64)..=seq;
        let is_stored = self.ends.remove(&seq);
        if is_stored && !self.broken && self.rows.len() >= size {
            let rows = &self.rows[self.rows.len() - size..];
            let events: Vec<Event<'_>> = rows.iter().filter_map(Admitted::typed).collect();
            let names = rows.iter().filter(|_| is_full).flat_map(|row| row.event_ref.0);
            let expected = (chunk::encode(&events), names.collect::<Vec<u8>>());
            match self.view.raw_chunk(seq)? {
                Some((_, names)) if is_reordered(&names, &expected.1) => {
                    self.damage.push(ChunkDamage::Reordered(range));
                }
                stored if stored.as_ref() != Some(&expected) => {
                    self.damage.push(ChunkDamage::Differs(range));
                }
                _ => {}
            }
        } else if !is_stored && is_full {
            self.damage.push(ChunkDamage::Missing(range));
        }
        if is_full {
            self.rows.clear();
            self.broken = false;
        }
        Ok(())
    }

    /// Ends at the end of the log. Returns the damage.
    pub fn finish(self) -> Vec<ChunkDamage> {
        self.damage.into_iter().chain(self.ends.into_iter().map(ChunkDamage::Foreign)).collect()
    }
}

/// Whether both have the same names in another order.
fn is_reordered(stored: &[u8], expected: &[u8]) -> bool {
    let sorted = |names: &[u8]| {
        let mut names: Vec<[u8; 16]> = names.as_chunks().0.to_vec();
        names.sort_unstable();
        names
    };
    stored != expected && sorted(stored) == sorted(expected)
}

/// The stored subtrees of a log, compared entry by entry.
pub struct TreeComparison<'v> {
    view: View<'v>,
    /// The size of the stored tree head. The stored tree has the same size.
    size: u64,
    /// The ends of stored subtrees that were not reached, and of those that differ.
    ends: BTreeSet<Seq>,
    odd: Vec<Seq>,
    missing: u64,
    /// The subtrees that end with the next entry, the smallest first.
    ending: Vec<Hash>,
}

impl<'v> TreeComparison<'v> {
    /// Begins at the start of the log.
    pub fn new(view: View<'v>) -> Result<Self> {
        let head = view.tree_head()?;
        let size = head.as_deref().and_then(TreeHead::of_note).map_or(0, |head| head.size);
        let ends = view.tree_ends()?.into_iter().collect();
        let (odd, ending) = (Vec::new(), Vec::new());
        Ok(TreeComparison { view, size, ends, odd, missing: 0, ending })
    }

    /// Adds a subtree that ends with the next entry. Small ones are not stored.
    pub fn add(&mut self, level: u32, hash: &Hash) {
        self.ending.extend((level >= STORED_LEVEL).then_some(*hash));
    }

    /// Compares the subtrees that end with the entry at the next position.
    pub fn next(&mut self, seq: Seq) -> Result<()> {
        match self.ends.remove(&seq) {
            true if self.view.stored_nodes(seq)?.as_ref() != Some(&self.ending) => {
                self.odd.push(seq);
            }
            false if !self.ending.is_empty() && seq.0 <= self.size => self.missing += 1,
            _ => {}
        }
        self.ending.clear();
        Ok(())
    }

    /// The ends of stored subtrees that differ from the log.
    pub fn odd(&self) -> impl Iterator<Item = Seq> {
        self.odd.iter().copied().chain(self.ends.iter().rev().copied())
    }

    /// The number of subtrees that are not stored. They are computed when they are needed.
    pub fn missing(&self) -> u64 {
        self.missing
    }
}
