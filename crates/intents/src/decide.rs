//! A person's decision about an intent that waits.
//!
//! **Invariant:** the id of the event follows from the intent's ref, so the log itself refuses a
//! second decision, of whichever process.

use ipse_core::EventRef;
use ipse_core::intent::{CONFIRMATION, confirmation_id};
use ipse_core::json::Members;
use ipse_door::admit_own;
use ipse_engine::{Error, Host, IntentStanding as Standing, Memory, Proposal};
use ipse_inspect::Look;
use std::fmt;

/// What a person says to an intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The agent may act.
    Confirmed,
    /// The agent must not act.
    Declined,
}

impl Decision {
    /// Both of them.
    pub const ALL: [Decision; 2] = [Decision::Confirmed, Decision::Declined];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        self.standing().name()
    }

    /// The decision behind a word.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.name() == name)
    }

    fn standing(self) -> Standing {
        match self {
            Decision::Confirmed => Standing::Confirmed,
            Decision::Declined => Standing::Declined,
        }
    }
}

/// Why a decision does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecisionError {
    /// There is no such intent, or it was forgotten.
    NoIntent,
    /// The time to confirm it is over.
    TooLate,
    /// The intent does not wait: it stands so, and stays so.
    NotWaiting(Standing),
}

impl DecisionError {
    /// The code for programs.
    pub fn code(self) -> &'static str {
        match self {
            DecisionError::NoIntent => "not_found",
            DecisionError::TooLate => "too_late",
            DecisionError::NotWaiting(_) => "not_waiting",
        }
    }
}

impl fmt::Display for DecisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecisionError::NoIntent => {
                f.write_str("this agent has no intent of that name, or it was forgotten")
            }
            DecisionError::TooLate => f.write_str(
                "the time to confirm this intent is over; the planner may propose it again",
            ),
            DecisionError::NotWaiting(standing) => {
                write!(f, "this intent is {}, and stays so", standing.name())
            }
        }
    }
}

impl std::error::Error for DecisionError {}

/// Decides about an intent, durably. `by` names the person or the program in the record. The
/// decision that is on record afterwards counts, whoever made it: if it is this one, it is no
/// error to make it again.
pub fn decide(
    memory: &Memory,
    look: &Look,
    name: &EventRef,
    decision: Decision,
    by: &str,
    host: &mut dyn Host,
) -> Result<Result<Proposal, DecisionError>, Error> {
    let Some(before) = look.intent(name)? else { return Ok(Err(DecisionError::NoIntent)) };
    let now = host.now();
    if before.standing() == Standing::Waiting {
        let late = before.confirm_by().is_some_and(|until| now > until);
        if decision == Decision::Confirmed && late {
            return Ok(Err(DecisionError::TooLate));
        }
        let data = Members::new()
            .text("intent", &name.to_string())
            .text("decision", decision.name())
            .text("token_id", by)
            .finish();
        let event = admit_own(CONFIRMATION, &confirmation_id(name), now, &data, host.salt());
        memory.append_all(&[event.expect("BUG: a decision is a small event")])?;
    }
    let Some(after) = look.intent(name)? else { return Ok(Err(DecisionError::NoIntent)) };
    match after.standing() {
        standing if standing == decision.standing() => Ok(Ok(after)),
        standing => Ok(Err(DecisionError::NotWaiting(standing))),
    }
}
