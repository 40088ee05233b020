//! The signers of events, and of the observations of a fact.

use crate::Error;
use ipse_core::Seq;
use ipse_store::View;
use std::collections::BTreeSet;

/// The producers that signed the events of a log, by position.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signers {
    /// Runs of positions with one signer: first, last and signer, by first position.
    runs: Vec<(Seq, Seq, String)>,
    /// For each run, the highest last position up to it.
    reach: Vec<Seq>,
}

/// The number of signed events among some events, and their signers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SignedBy {
    /// The number of events with at least one signer.
    pub events: u64,
    /// The names of the producers.
    pub producers: BTreeSet<String>,
}

impl Signers {
    /// Reads the signers of a log.
    pub fn of(view: View<'_>) -> Result<Self, Error> {
        let mut runs = Vec::new();
        for statement in view.statements()? {
            let name = statement.signer.split('+').next().unwrap_or_default();
            let events = statement.events.iter();
            runs.extend(events.map(|run| (*run.start(), *run.end(), name.to_string())));
        }
        Ok(Self::new(runs))
    }

    fn new(mut runs: Vec<(Seq, Seq, String)>) -> Self {
        runs.sort();
        let mut far = Seq(0);
        let reach = runs.iter().map(|(_, last, _)| {
            far = far.max(*last);
            far
        });
        let reach = reach.collect();
        Signers { runs, reach }
    }

    /// Whether no event is signed.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The names of the producers that signed the event at a position.
    pub fn names(&self, seq: Seq) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let mut place = self.runs.partition_point(|(first, _, _)| *first <= seq);
        while place > 0 && self.reach[place - 1] >= seq {
            place -= 1;
            let (_, last, name) = &self.runs[place];
            if *last >= seq {
                names.insert(name.as_str());
            }
        }
        names
    }

    /// Counts the signed events at these positions, and collects their signers.
    pub fn count(&self, seqs: &[Seq]) -> SignedBy {
        let mut signed = SignedBy::default();
        for seq in seqs {
            let names = self.names(*seq);
            signed.events += u64::from(!names.is_empty());
            for name in names {
                if !signed.producers.contains(name) {
                    signed.producers.insert(name.to_string());
                }
            }
        }
        signed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_may_lie_within_each_other() {
        let run = |first, last, name: &str| (Seq(first), Seq(last), name.to_string());
        let signers = Signers::new(vec![run(1, 9, "a"), run(3, 4, "b"), run(6, 6, "c")]);
        let names = |seq| signers.names(Seq(seq)).into_iter().collect::<Vec<_>>().concat();
        let all: Vec<String> = (0..=10).map(names).collect();
        assert_eq!(all, ["", "a", "a", "ab", "ab", "a", "ac", "a", "a", "a", ""]);
        let counted = signers.count(&[Seq(2), Seq(4), Seq(10)]);
        assert_eq!((counted.events, counted.producers.len()), (2, 2));
    }
}
