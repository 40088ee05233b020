//! Intents: what a planner proposes is audited, judged and recorded, and a person decides.
//!
//! **Invariants**
//! - An intent that can be read is judged, and its verdict is durable in the log before the caller
//!   gets it: an intent that is not on record must not be acted on.
//! - The verdict is a function of the intent, the three gate files and the number of earlier
//!   intents. Facts are read by the audit gate alone, which runs last and changes no verdict.
//! - An outcome is reported of an intent that may be acted on, and of no other.
//! - A decision about an intent is made once. It is an event of its own; the intent stays as it is.
#![forbid(unsafe_code)]

mod audit;
mod decide;
mod desk;
mod outcome;
mod request;
mod windows;

pub use audit::Audit;
pub use decide::{Decision, DecisionError, decide};
pub use desk::{Desk, Judgement};
pub use outcome::{OutcomeError, Report};
pub use request::{IntentError, Request};
