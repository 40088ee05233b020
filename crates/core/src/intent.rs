//! Names of intents, confirmations and verdicts in the log.
//!
//! **Invariant:** the gates that judge and the code that reads verdicts back share these names, and
//! nothing else.

use crate::EventRef;
use alloc::format;
use alloc::string::String;

/// The type of an event with a planner's intent.
pub const INTENT: &str = "intent";
/// The type of an event with a person's decision about an intent.
pub const CONFIRMATION: &str = "ipse.confirmation";

/// The longest name and version of a planner, in bytes: they are labels for people who read a
/// trail.
pub const MAX_PLANNER_BYTES: usize = 64;

/// The id of the outcome of an intent, within its source. It follows from the intent's name, so
/// that a retried report is a duplicate.
pub fn outcome_id(intent: &EventRef) -> String {
    format!("outcome:{intent}")
}

/// The id of the decision about an intent. It follows from the intent's name, so that the log
/// itself rejects a second decision.
pub fn confirmation_id(intent: &EventRef) -> String {
    format!("confirm:{intent}")
}

/// The verdict about an intent, in ascending severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ruling {
    /// Admitted as requested.
    Admitted,
    /// Admitted with numbers moved into the policy's bounds.
    Clamped,
    /// Admitted once a person has confirmed it.
    NeedsConfirmation,
    /// Not admitted.
    Denied,
}

impl Ruling {
    /// Every ruling.
    pub const ALL: [Ruling; 4] =
        [Ruling::Admitted, Ruling::Clamped, Ruling::NeedsConfirmation, Ruling::Denied];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Ruling::Admitted => "admitted",
            Ruling::Clamped => "clamped",
            Ruling::NeedsConfirmation => "needs_confirmation",
            Ruling::Denied => "denied",
        }
    }

    /// The ruling with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ruling| ruling.name() == name)
    }
}
