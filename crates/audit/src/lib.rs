//! Verification of a log in any container: one walk over its entries and events.
//!
//! **Invariants**
//! - Pure: entries and canonical bytes in, faults out. The crate has no access to a store or an
//!   archive, so both verifiers make the same checks with the same texts. Each adds the checks of
//!   its own container.
//! - Only the name, the position and optionally the digest of an event are kept. Memory does not
//!   depend on the content.
//! - Gates are an argument: intents are judged again by a judge that the caller gives.
//! - No input causes a panic: the bytes may come from an untrusted bundle.
#![forbid(unsafe_code)]

mod again;
mod check;
mod index;
mod past;
mod recorded;
mod walk;

pub use again::{Again, AgainLimits, JudgingAgain};
pub use check::{Check, Context, Outcome};
pub use index::Index;
pub use walk::{Record, Walk, differences};
