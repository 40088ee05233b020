//! Verification of a log, wherever it is stored: one walk over its entries and events.
//!
//! **Invariants**
//! - Pure: entries and canonical bytes in, faults out. No store and no archive can be named here,
//!   so the verifiers of both make the same checks; each adds the checks of its own container.
//! - What is kept of an event is its name, its position and, if asked for, its digest. Memory does
//!   not follow the content.
//! - No bytes make this panic: they may come out of a bundle that a stranger wrote.
#![forbid(unsafe_code)]

mod index;
mod walk;

pub use index::Index;
pub use walk::{Record, Walk, differences};
