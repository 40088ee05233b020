//! Rules for planners: when to skip an attempt ([`may_attempt`]), and which value of a parameter to
//! try next ([`suggest()`]).
//!
//! **Invariants**
//! - Both are advice. No gate depends on this crate, so no verdict can follow from it.
//! - Both are functions of their arguments: no clock, no dice, no store. The same facts and the
//!   same question give the same answer, on any machine.
//! - Integers only.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod attempt;
mod candidates;
mod suggest;

pub use attempt::{Knowledge, Question, Reason, Standing, Threshold, may_attempt};
pub use candidates::{BadCandidates, Candidates, DEFAULT_CANDIDATES, MAX_CANDIDATES, number};
pub use suggest::{Suggestion, WINDOW_VALUES, Window, suggest};
