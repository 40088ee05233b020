//! What facts tell a planner, and the walk back from what was done to what was known then.
//!
//! **Invariants**
//! - Pure: facts, entries and canonical bytes in, words out. No store, file, clock or environment
//!   can be named here, so a store and a bundle of the same log tell the same, byte for byte.
//! - Reading decides nothing: no verdict of a gate is made here, and none is changed.
//! - No bytes make this panic: what it reads may come out of a bundle that a stranger wrote.
#![forbid(unsafe_code)]

pub mod answer;
mod claim;
mod consultation;
pub mod facts;
pub mod grounding;
pub mod intents;
pub mod trail;

pub use claim::{Claim, MAX_FACTS, Status};
pub use consultation::Consultation;

use std::fmt;

/// A fact that is none: its value lacks the figures that every fact has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damaged {
    /// The text of its key.
    pub key: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the stored fact `{}` cannot be read", self.key)
    }
}

impl std::error::Error for Damaged {}
