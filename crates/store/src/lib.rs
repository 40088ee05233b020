//! The log and the facts on disk, behind narrow handles.
//!
//! **Invariants**
//! - Reading, writing, forgetting and registering are apart: a [`Reader`] cannot write, a
//!   [`Writer`] cannot reach a manifest or an event that is there, an [`Eraser`] can delete the
//!   content of events and add none, a [`HeadWriter`] can put tree heads only, a [`TokenWriter`]
//!   tokens only.
//! - Acknowledged means durable: [`Batch::commit`] returns after the data is on the disk, and an
//!   error there is final.
//! - The handles are written once, over a private contract (`session.rs`) that an engine
//!   implements. `sqlite/` is the engine for files.
//! - Facts become durable only together with the record that explains them.
//! - This crate has no path to `ipse-manifest`: to a store, a manifest is bytes under a key.
//!
//! ```compile_fail,E0432
//! use ipse_manifest::Manifest;
//! ```
#![forbid(unsafe_code)]

mod audit;
mod erase;
mod error;
#[cfg(feature = "faults")]
mod failing;
mod location;
mod pass;
mod read;
mod restore;
mod scan;
mod seal;
mod session;
mod setting;
mod sqlite;
mod statement;
mod store;
mod token;
mod tree;
mod watch;
mod write;

pub use audit::{Pair, RawEvent, RawFact, RawPass};
pub use erase::{Eraser, Erasing};
pub use error::{Cause, Error};
#[cfg(feature = "faults")]
pub use failing::{Failure, Faults};
pub use location::Location;
pub use pass::Pass;
pub use read::{Reader, Snapshot, View};
pub use restore::Restoring;
pub use scan::Scan;
pub use setting::Settings;
pub use sqlite::forgets_in_place;
pub use statement::Signed;
pub use store::{Erased, FileBytes, Migrated, Patience, Store};
pub use token::{Owner, TokenWriter};
pub use tree::{Grown, HeadWriter, STORED_LEVEL};
pub use watch::Watch;
pub use write::{Batch, Writer};

use ipse_core::{Admitted, Digest, EventRef, Identity, Seq, Time};

/// What became of an event that was handed to the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Appended {
    /// It is new and stands here now.
    New(Seq),
    /// It was there already, with equal content.
    Duplicate(Seq),
    /// Another event of that source and id stands here.
    Conflict(Seq),
    /// An event of that source and id stood here and was forgotten.
    Forgotten(Seq),
    /// The log takes signed events only, and this one is not signed as it must be.
    Unsigned,
}

/// What is to be done about producers' signatures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Signatures {
    /// They are passed over.
    Off = 0,
    /// They are checked and kept; unsigned events are taken too.
    Record = 1,
    /// What is unsigned or wrongly signed is refused.
    Require = 2,
}

impl Signatures {
    /// All of them.
    pub const ALL: [Signatures; 3] = [Signatures::Off, Signatures::Record, Signatures::Require];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Signatures::Off => "off",
            Signatures::Record => "record",
            Signatures::Require => "require",
        }
    }

    /// What a word means.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// One event as it stands in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Its position.
    pub seq: Seq,
    /// Its name.
    pub event_ref: EventRef,
    /// Its type.
    pub event_type: String,
    /// When it happened.
    pub time: Time,
    /// SHA-256 of its canonical bytes.
    pub digest: Digest,
    /// Its canonical bytes; empty once it is forgotten.
    pub canonical: String,
}

impl Stored {
    /// Whether its content was forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.canonical.is_empty()
    }
}

/// Live tokens of one identity at most: far more than programs that speak for one agent, and few
/// enough to be looked through.
pub const MAX_LIVE_TOKENS: u64 = 1000;

/// An access token as it stands in the store: never its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRow {
    /// Its name for people and programs.
    pub token_id: [u8; 16],
    /// SHA-256 of its text.
    pub hash: [u8; 32],
    /// The word for what it may do.
    pub role: String,
    /// What it was called.
    pub name: Option<String>,
    /// The sources that a producer may send under; any if absent.
    pub sources: Option<Vec<String>>,
    /// When it was made.
    pub created: Time,
    /// From when on it is not good any more; never if absent.
    pub expires: Option<Time>,
    /// When it was revoked.
    pub revoked: Option<Time>,
    /// When it was last seen, to about a minute.
    pub last_used: Option<Time>,
}

/// How far the facts of a log have come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// The last seq that a pass has folded.
    pub checkpoint: Seq,
    /// The seq up to which the stored tallies reach.
    pub tallied: Seq,
    /// The rule version of the facts; empty before the first pass.
    pub rule_version: String,
    /// The hash of the rule set of the facts; zero before the first pass.
    pub rule_set: [u8; 32],
}

/// What makes a pass durable: its own event, and what it covered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassRecord<'a> {
    /// The `consolidation_run` event.
    pub event: &'a Admitted,
    /// The first seq of the range.
    pub first: Seq,
    /// How far facts and tallies have come.
    pub progress: Progress,
}

/// A manifest that was registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registered {
    /// The SHA-256 of its canonical bytes.
    pub identity: Identity,
    /// Whether it was new.
    pub created: bool,
}
