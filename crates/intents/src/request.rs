//! A planner's request: the intent, and the consultation that it echoes.
//!
//! **Invariant:** an invalid request is rejected with the field and the rule. It is neither judged
//! nor recorded.

use ipse_engine::Echo;
use ipse_gates::Intent;
use std::fmt;

/// A valid intent.
#[derive(Debug)]
pub struct Request<'b> {
    pub(crate) intent: Intent<'b>,
    pub(crate) echo: Option<Echo>,
}

impl<'b> Request<'b> {
    /// Reads and validates the JSON of an intent.
    pub fn read(body: &'b [u8]) -> Result<Self, IntentError> {
        let intent = Intent::read(body).map_err(|bad| IntentError::Bad {
            rule: bad.rule,
            field: bad.field,
            message: bad.message,
        })?;
        let echo = intent.consultation.as_ref().map(Echo::read).transpose();
        let echo = echo.map_err(IntentError::bad_consultation)?;
        Ok(Request { intent, echo })
    }

    /// The consultation that the planner echoes, if any.
    pub fn echo(&self) -> Option<&Echo> {
        self.echo.as_ref()
    }
}

/// The reason why an intent was neither judged nor recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IntentError {
    /// The intent is not valid.
    Bad {
        /// The violated rule.
        rule: &'static str,
        /// The member that violates the rule.
        field: String,
        /// The description of the error.
        message: String,
    },
    /// The intent with its verdict exceeds the maximum size of an event.
    TooLarge,
}

impl IntentError {
    pub(crate) fn bad_consultation(message: String) -> Self {
        IntentError::Bad { rule: "bad_consultation", field: "consultation".to_owned(), message }
    }

    /// The error code in HTTP problems.
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
