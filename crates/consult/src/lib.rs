//! Facts for planners, and the trail from an action back to the facts that were known then.
//!
//! **Invariants**
//! - Pure: facts, entries and canonical bytes in, text out. The crate has no access to a store,
//!   file, clock or environment, so a store and a bundle of the same log give the same bytes.
//! - Reading has no effect on gates: no verdict is made or changed here.
//! - No input causes a panic: the bytes may come from an untrusted bundle.
#![forbid(unsafe_code)]

pub mod answer;
mod claim;
mod consultation;
pub mod facts;
pub mod grounding;
pub mod intents;
pub mod trail;

pub use claim::{Basis, Claim, Echo, MAX_FACTS, Status};
pub use consultation::Consultation;

use std::fmt;

/// An invalid fact: its value lacks the members that every fact has.
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
