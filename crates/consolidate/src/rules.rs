//! The interface of a rule set: a version, the contributions of an event, the facts that are
//! derived from other facts, and the value of a sum.
//!
//! **Invariants:** a rule set gets events, keys and sums, but no identity and no clock. Summing in
//! bulk also gets positions, but only to look up the name of an event.

use crate::{Group, Tally};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use ipse_core::chunk::Chunk;
use ipse_core::{Event, EventRef, FactKey, Seq, Support};

/// The most observations of one fact: beyond 2³² − 1 the confidence would overflow `i128`.
pub const MAX_OBSERVATIONS: u64 = u32::MAX as u64;

/// Returns whether a fact is wanted, by its key.
pub type Wanted<'w> = &'w dyn Fn(&FactKey) -> bool;

/// Every fact is wanted.
pub const EVERY_FACT: Wanted<'static> = &|_| true;

/// A versioned function from a log to facts.
pub trait RuleSet {
    /// The sum that is kept for each fact.
    type Tally: Tally;

    /// The name that every fact carries as `rule_version`.
    fn version(&self) -> &'static str;

    /// Canonical JSON that pins the rules; every pass record contains its hash.
    fn descriptor(&self) -> String;

    /// The contributions of an event, or the reason why there are none. Housekeeping contributes
    /// nothing.
    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Self::Tally>>, Skip>;

    /// The reason why an event contributes nothing; `None` if it contributes.
    fn skip(&self, event: &Event<'_>) -> Option<Skip> {
        self.contributions(event).err()
    }

    /// A faster way to sum many events, if the rule set has one; it must give equal groups. Facts
    /// that are not wanted are not summed.
    fn bulk<'w>(&self, _: Wanted<'w>) -> Option<Box<dyn BulkFold<Self::Tally> + 'w>> {
        None
    }

    /// The same without the events of one source, if the rule set tells sources apart.
    fn bulk_without<'w>(
        &self,
        _: Wanted<'w>,
        _source: &str,
    ) -> Option<Box<dyn BulkFold<Self::Tally> + 'w>> {
        None
    }

    /// Whether there are derived facts ([`RuleSet::derived`]). Rules without them pay nothing.
    fn derives(&self) -> bool {
        false
    }

    /// The contributions of one fact, given its whole sum, to the sums of derived facts. They need
    /// not be additive. Three laws hold:
    /// - The keys depend on `key` alone, so they are known before the sum is.
    /// - A sum of zero adds zero, so a fact that does not exist adds nothing.
    /// - No event contributes to a derived fact, and nothing is derived from one.
    fn derived(&self, _key: &FactKey, _whole: &Self::Tally) -> Vec<(FactKey, Self::Tally)> {
        Vec::new()
    }

    /// Whether a fact of this key is derived. Rules with derived facts that do not tell say yes.
    fn is_derived(&self, _: &FactKey) -> bool {
        self.derives()
    }

    /// The derived facts that a fact contributes to, whatever its sum is.
    fn derived_keys(&self, key: &FactKey) -> Vec<FactKey> {
        match self.derives() {
            true => {
                let derived = self.derived(key, &Self::Tally::default()).into_iter();
                derived.map(|(to, _)| to).collect()
            }
            false => Vec::new(),
        }
    }

    /// The canonical JSON value of a sum, or nothing if no event supports it. The last event has no
    /// effect on the confidence.
    fn publish(
        &self,
        key: &FactKey,
        tally: &Self::Tally,
        last: &Support,
    ) -> Result<Option<String>, LimitError>;
}

/// Summing chunks of events at once. `None` anywhere means that a chunk is damaged.
pub trait BulkFold<T> {
    /// Adds the events at `places` of a chunk whose first event is at position `first`. `refs`
    /// looks up the name of an event, if two have the same time.
    fn fold(
        &mut self,
        chunk: &Chunk<'_>,
        first: Seq,
        places: Range<usize>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    ) -> Option<()>;

    /// Adds one event.
    fn fold_event(
        &mut self,
        seq: Seq,
        event: &Event<'_>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
    );

    /// The amount of kept state: facts, their parameters, classes of events, and texts.
    fn weight(&self) -> usize;

    /// The places of a chunk's events that support a fact, ascending.
    fn supporters(&self, chunk: &Chunk<'_>, key: &FactKey) -> Option<Vec<usize>>;

    /// Passes every sum to `each`, sorted by kind and key.
    fn finish(
        self: Box<Self>,
        refs: &mut dyn FnMut(Seq) -> Option<EventRef>,
        each: &mut dyn FnMut(FactKey, Group<T>),
    ) -> Option<Totals>;
}

/// The numbers of summed and of skipped events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// The number of events, without housekeeping.
    pub events: u64,
    /// Events that fed no fact, by type and reason.
    pub skipped: Vec<(String, Skip, u64)>,
}

/// The contribution of an event to one fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contribution<T> {
    /// The fact that it belongs to.
    pub key: FactKey,
    /// The added sum.
    pub tally: T,
    /// Whether the event is counted in `n_observations`.
    pub supports: bool,
}

impl<T> Contribution<T> {
    /// The sum over this one event.
    pub fn into_group(self, event: &Event<'_>) -> (FactKey, Group<T>) {
        (self.key, Group { tally: self.tally, last: self.supports.then(|| event.support()) })
    }
}

/// The reason why an event feeds no fact: the fixed reason codes of pass records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Skip {
    /// Written by ipse itself; never counted as skipped.
    Housekeeping,
    /// An attempt that has neither `outcome` nor `success`.
    NoOutcome,
    /// An attempt that neither succeeded nor failed, and names no skill.
    OutcomeNotCounted,
    /// An attempt that names neither a skill nor a zone.
    NoSkillOrZone,
    /// An incident that names no zone.
    NoZone,
    /// Another type without a `target_class` and a usable property of an `object`.
    NoObject,
}

impl Skip {
    /// The code in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Skip::Housekeeping => "housekeeping",
            Skip::NoOutcome => "no_outcome",
            Skip::OutcomeNotCounted => "outcome_not_counted",
            Skip::NoSkillOrZone => "no_skill_or_zone",
            Skip::NoZone => "no_zone",
            Skip::NoObject => "no_object",
        }
    }
}

/// A fact has more observations than [`MAX_OBSERVATIONS`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitError {
    /// The fact with too many observations.
    pub key: FactKey,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, key) = (self.key.kind(), self.key.text());
        write!(f, "the {kind} fact `{key}` has more than {MAX_OBSERVATIONS} observations")
    }
}

impl core::error::Error for LimitError {}
