//! A person's decision about an intent that waits for one.
//!
//! **Invariant:** the id of the event is derived from the intent's ref, so the log itself rejects a
//! second decision, even one from another process.

use ipse_core::EventRef;
use ipse_core::intent::{CONFIRMATION, confirmation_id};
use ipse_core::json::Members;
use ipse_door::admit_own;
use ipse_engine::{Error, Host, IntentStanding as Standing, Memory, Proposal};
use ipse_inspect::Look;
use std::fmt;

/// A decision about an intent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The agent may act.
    Confirmed,
    /// The agent must not act.
    Declined,
}

impl Decision {
    /// All decisions.
    pub const ALL: [Decision; 2] = [Decision::Confirmed, Decision::Declined];

    /// The name of the decision in JSON.
    pub fn name(self) -> &'static str {
        self.standing().name()
    }

    /// Reads the name of a decision.
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

/// The reason why a decision was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecisionError {
    /// The intent is unknown or was forgotten.
    NoIntent,
    /// The time to confirm the intent has expired.
    TooLate,
    /// The intent does not wait for a decision. Its standing is final.
    NotWaiting(Standing),
}

impl DecisionError {
    /// The error code in HTTP problems.
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
            DecisionError::NoIntent => f.write_str("the intent is unknown or was forgotten"),
            DecisionError::TooLate => f.write_str(
                "the time to confirm this intent has expired; the planner may propose it again",
            ),
            DecisionError::NotWaiting(standing) => {
                write!(f, "this intent does not wait for a decision: it is {}", standing.name())
            }
        }
    }
}

impl std::error::Error for DecisionError {}

/// Records a decision about an intent, durably. `by` names the person or the program in the record.
/// If another decision was recorded first, it stays and this one is an error. To repeat the
/// recorded decision is not an error.
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
