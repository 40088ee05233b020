//! Append, passes, tree heads, reading, forgetting and rebuilding over a store.
//!
//! **Invariants**
//! - Facts, checkpoint and pass record commit together; a pass over nothing new writes nothing.
//! - The cost of a pass follows the new events, not the history: sums are kept hot, saved from time
//!   to time, and completed from the store only where a new event touches them.
//! - Clock and randomness are arguments ([`Host`]).
//! - No path leads from here to `ipse-manifest`: a pass cannot name who the agent is.
//!
//! ```compile_fail,E0432
//! use ipse_manifest::Manifest;
//! ```
#![forbid(unsafe_code)]

pub mod answer;
mod as_of;
mod census;
mod changes;
mod diff;
mod endorsed;
mod error;
pub mod explain;
mod forget;
mod head;
mod hot;
mod known;
mod latest;
mod log;
mod look;
mod memory;
mod pass;
mod proof;
mod rebuild;
mod restore;
mod scan;
mod signed;
mod signers;
pub mod token;
pub mod verify;
mod walk;
mod watch;

pub use as_of::{AsOf, Start, as_of, as_of_from, chosen_as_of};
pub use census::{Census, census};
pub use diff::{Changed, Diff, Figure, diff};
pub use endorsed::{Endorsed, SignatureError, registered};
pub use error::Error;
pub use forget::{Forgotten, Preview, Which, preview};
pub use head::{HEAD_EVERY, Notary, check_head, head_of, sign_head};
pub use hot::{SAVE_EVERY, SLICE};
pub use ipse_consult::trail::{IntentStanding, Proposed, Told};
pub use ipse_consult::{Claim, Consultation, Status, facts, grounding, trail};
pub use ipse_ledger::account::{MAX_SKIPPED_TYPES, Skipped};
pub use ipse_store::Appended;
pub use known::Known;
pub use log::{Acknowledged, Host, Log, Past, Then};
pub use look::{Heads, LogEntry, Look, SignedHead, Standing};
pub use memory::{Memory, Policy};
pub use pass::{PassCommitted, PassReport, Trigger};
pub use proof::prove;
pub use rebuild::{Rebuilt, rebuild};
pub use restore::{Whole, restore};
pub use signers::{SignedBy, Signers};
pub use walk::Walked;
pub use watch::Watch;
