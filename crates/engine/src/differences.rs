//! The differences between the facts as of a position and the stored facts. They come from the
//! events in between.
//!
//! **Invariants**
//! - The stored sum plus the difference is exactly the sum up to the position.
//! - A derived fact differs if one of its sources differs. Then the differences of all its sources
//!   are computed, including those of unwanted facts.

use crate::Error;
use crate::scan::fold_wanted;
use ipse_consolidate::{Derived, Group, RuleSet, Tally, Wanted};
use ipse_core::{FactKey, Seq, Support};
use ipse_store::Progress;
use ipse_store::View;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The effect of the events of a stretch on the stored sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    TakeBack,
    /// The events are in neither the stored sums nor the requested ones.
    Nothing,
}

/// Events between the stored state and the requested position.
pub(crate) struct Stretch {
    range: RangeInclusive<Seq>,
    step: Step,
    /// Whether the events are between the stored facts and the position. Only facts that such
    /// events feed differ from the stored ones.
    differs: bool,
}

impl Stretch {
    /// The stretches, at most two, because stored sums may end before the stored facts. Those that
    /// make facts differ come first.
    pub(crate) fn between(progress: &Progress, seq: Seq) -> Vec<Stretch> {
        let Progress { tallied, checkpoint, .. } = *progress;
        let stretch = |after: Seq, last: Seq, step, differs| Stretch {
            range: after.next()..=last,
            step,
            differs,
        };
        let mut stretches = if seq == checkpoint {
            Vec::new()
        } else if seq <= tallied {
            vec![
                stretch(seq, tallied, Step::TakeBack, true),
                stretch(tallied, checkpoint, Step::Nothing, true),
            ]
        } else if seq < checkpoint {
            vec![
                stretch(seq, checkpoint, Step::Nothing, true),
                stretch(tallied, seq, Step::Add, false),
            ]
        } else {
            vec![
                stretch(checkpoint, seq, Step::Add, true),
                stretch(tallied, checkpoint, Step::Add, false),
            ]
        };
        stretches.retain(|stretch| stretch.len() > 0);
        stretches
    }

    pub(crate) fn len(&self) -> u64 {
        (self.range.end().0 + 1).saturating_sub(self.range.start().0)
    }
}

/// The difference between the stored sum of a fact and the requested one.
#[derive(Default)]
pub(crate) struct Difference<T> {
    /// The stored sum plus this is the requested sum.
    sum: T,
    /// The greatest supporting event between the stored fact and the position.
    last: Option<Support>,
    /// Whether the fact differs from the stored one. If not, only a derived fact needs the sum.
    pub(crate) differs: bool,
    /// Whether this is a derived fact. Its sum may be zero although events support it.
    is_derived: bool,
}

/// The facts that differ from the stored ones.
pub(crate) struct Differences<T> {
    /// Facts that events feed: those that differ, and the sources of derived facts that differ.
    pub(crate) fed: BTreeMap<FactKey, Difference<T>>,
    /// Derived facts that differ.
    pub(crate) derived: BTreeSet<FactKey>,
}

impl<T: Tally> Differences<T> {
    /// Finds the differences of the wanted facts.
    pub(crate) fn find<R: RuleSet<Tally = T>>(
        view: View<'_>,
        rules: &R,
        stretches: &[Stretch],
        wanted: Wanted<'_>,
    ) -> Result<Self, Error> {
        let mut found = Differences { fed: BTreeMap::new(), derived: BTreeSet::new() };
        let behind = behind(rules, wanted);
        for Stretch { range, step, differs } in stretches {
            let mut parts = Vec::new();
            let needed = |key: &FactKey| match differs {
                true => behind(key),
                false => found.needs(rules, key),
            };
            fold_wanted(view, rules, range.clone(), &needed, |key, group| {
                parts.push((key, group));
            })?;
            for (key, group) in parts {
                if *differs {
                    let derived = rules.derived_keys(&key).into_iter();
                    found.derived.extend(derived.filter(wanted));
                }
                let difference = found.fed.entry(key).or_default();
                match step {
                    Step::Add => difference.sum.add(&group.tally),
                    Step::TakeBack => difference.sum.add(&group.tally.negated()),
                    Step::Nothing => {}
                }
                difference.last = difference.last.max(group.last.filter(|_| *differs));
                difference.differs |= *differs;
            }
        }
        Ok(found)
    }

    /// Whether the sum of a fact is needed in stretches that make no fact differ.
    fn needs<R: RuleSet<Tally = T>>(&self, rules: &R, key: &FactKey) -> bool {
        let differs = |to: &FactKey| self.derived.contains(to);
        self.fed.contains_key(key) || rules.derived_keys(key).iter().any(differs)
    }

    pub(crate) fn contains(&self, key: &FactKey) -> bool {
        self.fed.get(key).is_some_and(|it| it.differs) || self.derived.contains(key)
    }
}

/// Selects the facts whose sums are needed: wanted facts, and the sources of wanted derived facts.
pub(crate) fn behind<R: RuleSet>(rules: &R, wanted: Wanted<'_>) -> impl Fn(&FactKey) -> bool {
    move |key| wanted(key) || rules.derived_keys(key).iter().any(wanted)
}

/// The differences of derived facts.
#[derive(Default)]
pub(crate) struct DerivedDifferences<T: Tally> {
    sums: Derived<T>,
    lasts: BTreeMap<FactKey, Option<Support>>,
}

impl<T: Tally> DerivedDifferences<T> {
    /// Adds the effect of a difference in one source.
    pub(crate) fn follow<R: RuleSet<Tally = T>>(
        &mut self,
        rules: &R,
        key: &FactKey,
        stored: &T,
        difference: &Difference<T>,
    ) {
        let mut whole = stored.clone();
        whole.add(&difference.sum);
        self.sums.replace(rules, key, stored, &whole);
        for to in rules.derived_keys(key) {
            let last = self.lasts.entry(to).or_default();
            *last = difference.last.max(*last);
        }
    }

    pub(crate) fn take(&mut self, key: &FactKey) -> Difference<T> {
        let (sum, last) = (self.sums.take(key).tally, self.lasts.remove(key).flatten());
        Difference { sum, last, differs: true, is_derived: true }
    }
}

/// The sum of a fact as of the requested position.
pub(crate) enum MovedSum<T> {
    Whole(Group<T>),
    /// The last supporting event is after the position; an earlier one must be found.
    Orphan(Group<T>),
}

/// Whether the stored sum or fact lacks events that it must include. This detects tables that were
/// emptied by hand, which would otherwise look like a log with fewer events.
pub(crate) fn lacks<T: Tally>(
    stored: &Group<T>,
    difference: &Difference<T>,
    progress: &Progress,
    seq: Seq,
) -> bool {
    let gone = stored.tally.is_zero() && !difference.sum.is_zero() && !difference.is_derived;
    let sum = seq <= progress.tallied && gone;
    sum || seq <= progress.checkpoint && stored.last < difference.last
}

pub(crate) fn moved<T: Tally>(
    mut group: Group<T>,
    difference: Difference<T>,
    progress: &Progress,
    seq: Seq,
) -> MovedSum<T> {
    group.tally.add(&difference.sum);
    if seq > progress.checkpoint {
        group.last = group.last.max(difference.last);
        return MovedSum::Whole(group);
    }
    match difference.last {
        // The last supporting event is at or before the position.
        None => MovedSum::Whole(group),
        Some(_) if group.last > difference.last => MovedSum::Whole(group),
        // The first event of the fact is after the position.
        Some(_) if group.tally.is_zero() && !difference.is_derived => {
            MovedSum::Whole(Group::default())
        }
        Some(_) => MovedSum::Orphan(group),
    }
}
