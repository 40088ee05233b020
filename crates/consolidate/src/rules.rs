//! What a rule set is: a version, what an event contributes, and how a sum becomes a value.
//!
//! **Invariants:** a rule set sees events, keys and sums; no identity, position or clock is among
//! the arguments, so none can be in a fact.

use crate::{Group, Tally};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use ipse_core::{Event, FactKey, Support};

/// Observations of one fact at most: beyond 2³² − 1 the confidence would leave `i128`.
pub const MAX_OBSERVATIONS: u64 = u32::MAX as u64;

/// A versioned `f`.
pub trait RuleSet {
    /// The sum it keeps for each fact.
    type Tally: Tally;

    /// The name that every fact carries as `rule_version`.
    fn version(&self) -> &'static str;

    /// Canonical JSON that pins the rules; its hash stands in every pass record.
    fn descriptor(&self) -> String;

    /// What an event adds to which facts; or why it adds nothing. Housekeeping adds nothing.
    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Self::Tally>>, Skip>;

    /// The canonical JSON value of a sum, or nothing if no event supports it.
    fn publish(
        &self,
        key: &FactKey,
        tally: &Self::Tally,
        last: &Support,
    ) -> Result<Option<String>, LimitError>;
}

/// `c(event)` for one fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contribution<T> {
    /// The fact it goes to.
    pub key: FactKey,
    /// What it adds.
    pub tally: T,
    /// Whether the event is counted in `n_observations`.
    pub supports: bool,
}

impl<T> Contribution<T> {
    /// The sum over this one event.
    pub fn into_group(self, event: &Event<'_>) -> (FactKey, Group<T>) {
        let support = Support { time: event.time, event_ref: event.event_ref };
        (self.key, Group { tally: self.tally, last: self.supports.then_some(support) })
    }
}

/// Why an event feeds no fact: the fixed reason codes of pass records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Skip {
    /// Written by ipse itself; never counted as skipped.
    Housekeeping,
    /// An attempt that says neither `outcome` nor `success`.
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
    /// The code on the wire.
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
    /// The fact.
    pub key: FactKey,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, key) = (self.key.kind(), self.key.text());
        write!(f, "the {kind} fact `{key}` has more than {MAX_OBSERVATIONS} observations")
    }
}

impl core::error::Error for LimitError {}
