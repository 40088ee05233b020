//! A request of a planner: the intent, and the consultation that it echoes.
//!
//! **Invariant:** a request that cannot be read is rejected with the field and the rule, and
//! nothing of it is judged or recorded.

use ipse_engine::Claim;
use ipse_gates::Intent;
use std::fmt;

/// An intent that can be read.
#[derive(Debug)]
pub struct Request<'b> {
    pub(crate) intent: Intent<'b>,
    pub(crate) claim: Option<Claim>,
}

impl<'b> Request<'b> {
    /// Reads the JSON of an intent.
    pub fn read(body: &'b [u8]) -> Result<Self, IntentError> {
        let intent = Intent::read(body).map_err(|bad| IntentError::Bad {
            rule: bad.rule,
            field: bad.field,
            message: bad.message,
        })?;
        let claim = intent.consultation.as_ref().map(Claim::read).transpose();
        let claim = claim.map_err(|message| IntentError::Bad {
            rule: "bad_consultation",
            field: "consultation".to_owned(),
            message,
        })?;
        Ok(Request { intent, claim })
    }

    /// The consultation that the planner says it read, if it says so.
    pub fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }
}

/// Why an intent was neither judged nor recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IntentError {
    /// It cannot be read.
    Bad {
        /// The rule that it breaks.
        rule: &'static str,
        /// The member that breaks it.
        field: String,
        /// What is wrong.
        message: String,
    },
    /// With its verdict it exceeds the size of an event.
    TooLarge,
}

impl IntentError {
    /// The code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            IntentError::Bad { .. } => "bad_intent",
            IntentError::TooLarge => "intent_too_large",
        }
    }
}

impl fmt::Display for IntentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntentError::Bad { rule, field, message } if field.is_empty() => {
                write!(f, "{message} [{rule}]")
            }
            IntentError::Bad { rule, field, message } => write!(f, "`{field}`: {message} [{rule}]"),
            IntentError::TooLarge => f.write_str(
                "the intent with its verdict is larger than an event may be: consult fewer facts, \
                 or name fewer parameters",
            ),
        }
    }
}

impl std::error::Error for IntentError {}
