//! Intents of planners: they are audited, judged and recorded, and a person may decide.
//!
//! **Invariants**
//! - A valid intent is judged, and its verdict is durable in the log before it is returned. An
//!   intent that is not recorded must not be acted on.
//! - The verdict is a function of the intent, the three gate files and the past in the log: earlier
//!   intents, and attempts that a contract names. Only the audit gate reads facts. It runs last and
//!   changes no verdict.
//! - An outcome is accepted only for an intent that may be acted on.
//! - An intent has at most one decision, in a separate event. The intent itself does not change.
#![forbid(unsafe_code)]

mod attempts;
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
