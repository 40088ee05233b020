//! Look, explain, compare and verify: answers about a log that was written by others.
//!
//! **Invariants**
//! - Everything here reads one moment of a store, on a connection that only reads; no function
//!   appends, forgets, repairs or signs.
//! - An answer is a value; its JSON and its text are made of it and of nothing else, so that the
//!   command line and HTTP give the same members for the same question.
//! - No path leads from here to `ipse-manifest`.
//!
//! ```compile_fail,E0432
//! use ipse_manifest::Manifest;
//! ```
#![forbid(unsafe_code)]

pub mod answer;
mod diff;
pub mod explain;
mod intents;
mod log;
mod look;
mod page;
mod passes;
mod preview;
mod proof;
mod signers;
mod skills;
mod standing;
pub mod verify;
mod walk;

pub use diff::{Changed, Diff, Figure, diff};
pub use intents::IntentPage;
pub use ipse_engine::Error;
pub use log::{LogEntry, LogPage, LogRow, to_seconds};
pub use look::Look;
pub use page::{Block, Page};
pub use passes::{PassEntry, PassPage};
pub use preview::{Preview, preview, preview_under};
pub use proof::{Heads, Proof, SignedHead, prove};
pub use signers::{SignedBy, Signers};
pub use skills::{SkillRow, Skills};
pub use standing::{Difference, ManifestComparison, Standing};
pub use walk::StoreRecord;
