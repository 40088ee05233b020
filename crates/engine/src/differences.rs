//! How the facts up to a position differ from the stored ones: by the events in between.
//!
//! **Invariants**
//! - A difference added to the stored sum gives the sum up to the position, exactly.
//! - A derived fact differs if a fact that it is derived from does. Then all sums that it is
//!   derived from and that changed since they were stored are known, also those of unwanted facts.

use crate::Error;
use crate::scan::fold_wanted;
use ipse_consolidate::{Derived, Group, RuleSet, Tally, Wanted};
use ipse_core::{FactKey, Seq, Support};
use ipse_store::Progress;
use ipse_store::View;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What the events of a stretch do to the stored sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    TakeBack,
    /// They are in neither the stored sums nor those that are asked for.
    Nothing,
}

/// Events between the stored state and the position that is asked about.
pub(crate) struct Stretch {
    range: RangeInclusive<Seq>,
    step: Step,
    /// Whether they stand between the stored facts and the position. Only facts that such events
    /// feed differ from the stored ones.
    differs: bool,
}

impl Stretch {
    /// Stored sums may end before the stored facts do, so there are up to two stretches; first
    /// those that make facts differ.
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

/// What lies between the stored sum of a fact and the one that is asked for.
#[derive(Default)]
pub(crate) struct Difference<T> {
    /// Added to the stored sum it gives the other.
    sum: T,
    /// The greatest supporting event between the stored fact and the position.
    last: Option<Support>,
    /// Whether the fact differs from the stored one. If not, its sum is needed for a derived fact.
    pub(crate) differs: bool,
    /// Whether this is a derived fact. Its sum may be zero although events support it.
    is_derived: bool,
}

/// The facts that differ from the stored ones.
pub(crate) struct Differences<T> {
    /// Facts that events feed: those that differ, and those that a differing fact is derived from.
    pub(crate) fed: BTreeMap<FactKey, Difference<T>>,
    /// Derived facts that differ.
    pub(crate) derived: BTreeSet<FactKey>,
}

impl<T: Tally> Differences<T> {
    /// Finds those that are wanted.
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

    /// Whether the sum behind a fact is needed beyond the stretches that make facts differ.
    fn needs<R: RuleSet<Tally = T>>(&self, rules: &R, key: &FactKey) -> bool {
        let differs = |to: &FactKey| self.derived.contains(to);
        self.fed.contains_key(key) || rules.derived_keys(key).iter().any(differs)
    }

    pub(crate) fn contains(&self, key: &FactKey) -> bool {
        self.fed.get(key).is_some_and(|it| it.differs) || self.derived.contains(key)
    }
}

/// Chooses the facts whose sums are needed: those that are wanted, and the sources of wanted
/// derived facts.
pub(crate) fn behind<R: RuleSet>(rules: &R, wanted: Wanted<'_>) -> impl Fn(&FactKey) -> bool {
    move |key| wanted(key) || rules.derived_keys(key).iter().any(wanted)
}

/// How derived facts differ from the stored ones.
#[derive(Default)]
pub(crate) struct DerivedDifferences<T: Tally> {
    sums: Derived<T>,
    lasts: BTreeMap<FactKey, Option<Support>>,
}

impl<T: Tally> DerivedDifferences<T> {
    /// Adds the effect of a difference in one fact that they are derived from.
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

/// The sum behind a fact at the position that is asked about.
pub(crate) enum MovedSum<T> {
    Whole(Group<T>),
    /// Its last supporting event stands after the position; another one must be found.
    Orphan(Group<T>),
}

/// Whether what is stored lacks the events that stand between it and the position: tables that
/// were emptied by hand must not pass for a log that taught less.
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
        // The last supporting event stands up to the position.
        None => MovedSum::Whole(group),
        Some(_) if group.last > difference.last => MovedSum::Whole(group),
        // Nothing is left of a fact that began after the position.
        Some(_) if group.tally.is_zero() && !difference.is_derived => {
            MovedSum::Whole(Group::default())
        }
        Some(_) => MovedSum::Orphan(group),
    }
}
