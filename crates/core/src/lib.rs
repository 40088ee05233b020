//! The basic types of ipse: identity, seq, time, event, fact, exact numbers, canonical JSON.
//!
//! **Invariants**
//! - `no_std`: no file, clock, environment, thread or random map can be named here.
//! - No floating-point arithmetic: a double is read, printed or compared, never computed with.
//! - Every byte format that two programs must agree on (canonical JSON, decimal text, refs, ids,
//!   typed columns) is written by exactly one function in this crate.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod chunk;
pub mod decimal;
pub mod event;
pub mod fact;
mod file_kind;
pub mod hex;
pub mod html;
pub mod id;
pub mod intent;
pub mod json;
pub mod json_parse;
pub mod judge;
pub mod sources;
pub mod text;
pub mod time;
pub mod wire;

pub use decimal::Micro;
pub use event::{Admitted, Columns, Event, EventKind, Outcome, Property};
pub use fact::{EvidenceKey, Fact, FactKey, FactKind, Support};
pub use file_kind::FileKind;
pub use id::{Digest, EventRef, FactId, Hashing, Identity, Seq, sha256};
pub use intent::Ruling;
pub use time::Time;

/// The longest text, in UTF-8 bytes, that may name a part of a fact: longer ones are free text.
pub const MAX_TEXT_BYTES: usize = 1024;

/// The source under which ipse itself appends housekeeping events; refused from producers.
pub const HOUSE_SOURCE: &str = "ipse";

/// Event types that ipse writes about itself; they feed no fact and are refused from producers.
pub fn is_housekeeping(event_type: &str) -> bool {
    matches!(event_type, event::PASS_RECORD | event::FORGET | intent::INTENT)
        || event_type.starts_with("ipse.")
}
