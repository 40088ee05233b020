//! What becomes of what a planner asks for, and how that is named in the log.
//!
//! **Invariant:** who judges and who reads verdicts back know the same words, and nothing else of
//! each other.

use crate::EventRef;
use alloc::format;
use alloc::string::String;

/// The type of what a planner asked for.
pub const INTENT: &str = "intent";
/// The type of what a person decided about it.
pub const CONFIRMATION: &str = "ipse.confirmation";

/// Bytes of a planner's name, and of its version, at most: they are labels for people who read a
/// trail.
pub const MAX_PLANNER_BYTES: usize = 64;

/// The id of the outcome of an intent, within its source: it follows from the intent's name, so
/// that a report that is sent again is a duplicate.
pub fn outcome_id(intent: &EventRef) -> String {
    format!("outcome:{intent}")
}

/// The id of the one decision about an intent: it follows from the intent's name, so that the log
/// itself refuses a second one.
pub fn confirmation_id(intent: &EventRef) -> String {
    format!("confirm:{intent}")
}

/// What becomes of an intent; the later ones outweigh those before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ruling {
    /// As asked.
    Admitted,
    /// With numbers moved into the policy's bounds.
    Clamped,
    /// Once a person has confirmed it.
    NeedsConfirmation,
    /// Not at all.
    Denied,
}

impl Ruling {
    /// Every ruling.
    pub const ALL: [Ruling; 4] =
        [Ruling::Admitted, Ruling::Clamped, Ruling::NeedsConfirmation, Ruling::Denied];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Ruling::Admitted => "admitted",
            Ruling::Clamped => "clamped",
            Ruling::NeedsConfirmation => "needs_confirmation",
            Ruling::Denied => "denied",
        }
    }

    /// The ruling that a word names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ruling| ruling.name() == name)
    }
}
