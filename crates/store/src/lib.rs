//! The log and the facts on disk, behind narrow handles.
//!
//! **Invariants**
//! - Each handle has one duty: a [`Reader`] cannot write, a [`Writer`] cannot change a manifest or
//!   a stored event, an [`Eraser`] deletes the content of events and adds none, a [`HeadWriter`]
//!   stores tree heads only, a [`CosignatureWriter`] cosignatures only, a [`TokenWriter`] tokens
//!   only, and [`Store::put_artefact`] files only. [`Acts`] changes settings or tokens, in the
//!   transaction that appends the event about it.
//! - Acknowledged means durable: [`Batch::commit`] returns after the data is on the disk, and an
//!   error there is final.
//! - The handles do not depend on the engine: they use a private contract (`session.rs`) that an
//!   engine implements. `sqlite/` is the engine for files.
//! - Facts become durable only together with the record that explains them.
//! - This crate does not depend on `ipse-manifest`: to a store, a manifest is bytes under a key.
//!
//! ```compile_fail,E0432
//! use ipse_manifest::Manifest;
//! ```
#![forbid(unsafe_code)]

mod act;
mod artefact;
mod audit;
mod compare;
mod cosignature;
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

pub use act::{Acting, Acts, BASELINE, Owed};
pub use artefact::MAX_ARTEFACT_BYTES;
pub use audit::{Pair, RawEvent, RawFact, RawPass};
pub use compare::{ChunkComparison, ChunkDamage, TreeComparison};
pub use cosignature::{CosignatureWriter, Cosigned, PutCosignature};
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

use ipse_core::event::MAX_DEPTH;
use ipse_core::{Admitted, Digest, EventRef, Identity, Seq, Time, json_parse};

/// The result of appending one event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Appended {
    /// The event is new and is stored at this position.
    New(Seq),
    /// A duplicate of the event at this position.
    Duplicate(Seq),
    /// A conflict: the event at this position has the same source and id, and other content.
    Conflict(Seq),
    /// The event at this position had the same source and id, and was forgotten.
    Forgotten(Seq),
    /// The log accepts signed events only, and no valid signature covers this one. Or the signature
    /// of its batch was rejected, and the batch with it.
    Unsigned,
    /// The event is dated after this time, the latest that the log accepts at the moment.
    Ahead(Time),
}

/// How many hours ahead of the clock of the receiver an event may be dated, if no other number is
/// set: clocks and time zones that are set wrongly differ by less.
pub const DEFAULT_MAX_AHEAD: u64 = 24;

/// The key of a producer that may sign events of an identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Producer {
    /// The verifier key.
    pub key: String,
    /// Whether the key is revoked. It stays revoked.
    pub revoked: bool,
    /// The event sources that the key may sign; any if absent.
    pub sources: Option<Vec<String>>,
}

/// The signature requirement of a log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Signatures {
    /// Signatures are ignored.
    Off = 0,
    /// Signatures are checked and stored; unsigned events are accepted too.
    Record = 1,
    /// Events without a valid signature are rejected.
    Require = 2,
}

impl Signatures {
    /// All values, in the order of strictness.
    pub const ALL: [Signatures; 3] = [Signatures::Off, Signatures::Record, Signatures::Require];

    /// The name in settings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Signatures::Off => "off",
            Signatures::Record => "record",
            Signatures::Require => "require",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// One event as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The position in the log.
    pub seq: Seq,
    /// The event ref.
    pub event_ref: EventRef,
    /// The event type.
    pub event_type: String,
    /// When it happened.
    pub time: Time,
    /// SHA-256 of the canonical bytes.
    pub digest: Digest,
    /// The canonical bytes; empty if the event is forgotten.
    pub canonical: String,
}

impl Stored {
    /// Whether the content was forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.canonical.is_empty()
    }

    /// The text of a member of its `data`, such as `skill_id`. `None` if the event is forgotten,
    /// or if the member is missing or not a text.
    pub fn data_text(&self, member: &str) -> Option<String> {
        let event = json_parse::parse(self.canonical.as_bytes(), MAX_DEPTH).ok()?;
        let data = event.as_object()?.get("data")?.as_object()?;
        data.get(member)?.as_text().map(str::to_owned)
    }
}

/// Maximum number of live tokens of one identity: far more than one agent needs, and few enough
/// for a linear search.
pub const MAX_LIVE_TOKENS: u64 = 1000;

/// An access token as it is stored. The token text itself is never stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRow {
    /// The public id of the token.
    pub token_id: [u8; 16],
    /// SHA-256 of the token text.
    pub hash: [u8; 32],
    /// The name of the role.
    pub role: String,
    /// A label for people.
    pub name: Option<String>,
    /// The event sources that a producer may use; any if absent.
    pub sources: Option<Vec<String>>,
    /// When the token was created.
    pub created: Time,
    /// When the token expires; never if absent.
    pub expires: Option<Time>,
    /// When the token was revoked.
    pub revoked: Option<Time>,
    /// When the token was last used, to about a minute.
    pub last_used: Option<Time>,
}

/// How far the passes over a log have come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// The last position that a pass has read.
    pub checkpoint: Seq,
    /// The last position that the stored tallies include.
    pub tallied: Seq,
    /// The rule version of the facts; empty before the first pass.
    pub rule_version: String,
    /// The hash of the rule set of the facts; zero before the first pass.
    pub rule_set: [u8; 32],
}

/// The record that makes a pass durable: its event and its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassRecord<'a> {
    /// The `consolidation_run` event.
    pub event: &'a Admitted,
    /// The first position of the range.
    pub first: Seq,
    /// The progress of facts and tallies after the pass.
    pub progress: Progress,
}

/// A manifest that was registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registered {
    /// The SHA-256 of its canonical bytes.
    pub identity: Identity,
    /// Whether the manifest was new.
    pub created: bool,
}
