//! Statements of producers.
//!
//! **Invariants:** an envelope is stored unchanged, in the transaction of its events, and never
//! changes. The positions that it covers are stored with it and can be derived again.

use crate::read::{PAGE, View};
use crate::session::Result;
use crate::{Error, Producer, Signatures};
use ipse_core::Seq;
use ipse_core::wire::{self, Wire};
use std::ops::RangeInclusive;

/// A statement of a producer, without its envelope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// The number of the statement, from 1.
    pub number: u64,
    /// The verifier key that signed it.
    pub signer: String,
    /// The positions of its events, ascending.
    pub events: Vec<RangeInclusive<Seq>>,
}

impl Signed {
    /// Whether the statement covers a position.
    pub fn covers(&self, seq: Seq) -> bool {
        let after = self.events.partition_point(|run| *run.start() <= seq);
        after > 0 && self.events[after - 1].contains(&seq)
    }

    /// Whether the statement covers exactly these positions, which ascend.
    pub fn covers_exactly(&self, seqs: &[Seq]) -> bool {
        !seqs.is_empty() && runs(seqs) == self.events
    }
}

impl View<'_> {
    /// The number of statements.
    pub fn statement_count(&self) -> Result<u64> {
        self.session.statement_count(self.log)
    }

    /// Every statement, oldest first, without its envelope.
    pub fn statements(&self) -> Result<Vec<Signed>> {
        let mut all: Vec<Signed> = Vec::new();
        loop {
            let from = all.last().map_or(0, |signed| signed.number + 1);
            let page = self.session.statements(self.log, from, PAGE)?;
            let whole = page.len() == PAGE;
            for row in page {
                let events = decode(&row.events).ok_or_else(|| {
                    Error::Corrupt(format!("the events of statement {} cannot be read", row.number))
                })?;
                all.push(Signed { number: row.number, signer: row.signer, events });
            }
            if !whole {
                return Ok(all);
            }
        }
    }

    /// The envelope of a statement.
    pub fn envelope(&self, number: u64) -> Result<String> {
        Ok(self.session.envelopes(self.log, &[number])?.remove(0))
    }

    /// The keys of producers, including revoked ones.
    pub fn producers(&self) -> Result<Vec<Producer>> {
        self.session.producers(self.log)
    }

    /// The signature requirement.
    pub fn signatures(&self) -> Result<Signatures> {
        self.session.signatures(self.log)
    }

    /// How many hours ahead of the clock of the receiver an event may be dated; `None` means any
    /// time.
    pub fn max_ahead(&self) -> Result<Option<u64>> {
        self.session.max_ahead(self.log)
    }
}

/// Groups ascending positions into ranges.
fn runs(seqs: &[Seq]) -> Vec<RangeInclusive<Seq>> {
    let mut runs: Vec<RangeInclusive<Seq>> = Vec::new();
    for seq in seqs {
        match runs.last_mut() {
            Some(run) if run.end().next() == *seq => *run = *run.start()..=*seq,
            _ => runs.push(*seq..=*seq),
        }
    }
    runs
}

/// Encodes ascending positions for the store.
pub(crate) fn encode_runs(seqs: &[Seq]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut before = 0;
    for run in runs(seqs) {
        let (start, end) = (run.start().0, run.end().0);
        wire::write_u128((start - before).into(), &mut out);
        wire::write_u128((end - start).into(), &mut out);
        before = end;
    }
    out
}

fn decode(bytes: &[u8]) -> Option<Vec<RangeInclusive<Seq>>> {
    let mut wire = Wire(bytes);
    let mut before: u64 = 0;
    let mut runs = Vec::new();
    while !wire.0.is_empty() {
        let start = before.checked_add(u64::try_from(wire.u128()?).ok()?)?;
        let end = start.checked_add(u64::try_from(wire.u128()?).ok()?)?;
        runs.push(Seq(start)..=Seq(end));
        before = end;
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_survive_their_bytes() {
        for seqs in [&[][..], &[1], &[1, 2, 3], &[5, 6, 9, 1 << 39, (1 << 39) + 1]] {
            let seqs: Vec<Seq> = seqs.iter().copied().map(Seq).collect();
            assert_eq!(decode(&encode_runs(&seqs)), Some(runs(&seqs)));
            let signed = Signed { number: 1, signer: String::new(), events: runs(&seqs) };
            for seq in (0..12).map(Seq) {
                assert_eq!(signed.covers(seq), seqs.contains(&seq), "{seq}");
            }
        }
        assert_eq!(decode(&[0x80]), None);
    }
}
