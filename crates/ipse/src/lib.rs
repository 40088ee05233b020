//! Memory for long-running agents that learn without becoming someone else.
//!
//! A robot that asks its memory which grip force to use, and tells it how that went. (The store is
//! in a temporary directory of the crate `tempfile`; a program has a path of its own.)
//!
//! ```
#![doc = include_str!("../examples/robot_loop.rs")]
//! ```
//!
//! An [`Agent`] has an identity, the SHA-256 of its [`Manifest`], and a log of [`Event`]s. Its
//! [`Fact`]s are a function of the log, so they change while the identity stays the same. The
//! example `tour` goes through all of it: register, record, import, consult, propose, explain,
//! forget, export and verify.
//!
//! Every operation returns [`Result`]; [`Error::code`] is the word for programs. A recommended
//! value has 4 significant digits ([`Recommended`]).
//!
//! Cargo features, off by default: `passphrase` reads private keys that are encrypted (see
//! [`keys`]), `gzip` imports compressed files.
//!
//! **SQLite.** Forgetting clears single pages of the store if SQLite was built with
//! `SQLITE_ENABLE_DBPAGE_VTAB`; otherwise it rewrites the whole file, which takes longer on a large
//! store and gives the same result. Cargo does not hand such a setting from a library to a program:
//! put it into the program's own `.cargo/config.toml` as
//! `[env] LIBSQLITE3_FLAGS = "-DSQLITE_ENABLE_DBPAGE_VTAB=1"`. [`forgets_in_place`] tells which
//! way this program has.
//!
//! **Invariants:** this crate wires and renames, it computes nothing; clock and randomness enter
//! ipse here ([`SystemHost`]) and nowhere else.
#![forbid(unsafe_code)]

mod agent;
mod answer;
mod bundle;
mod error;
mod event;
mod fact;
pub mod files;
mod gates;
mod host;
mod intent;
pub mod keys;
mod notary;
mod value;

pub use agent::{Agent, Opening, Receipt};
pub use answer::Answer;
pub use bundle::import_bundle;
pub use error::{Error, Result};
pub use event::{Attempt, Event};
pub use fact::{Fact, Query, Recommended};
pub use gates::{GATE_FIELDS, GateFiles, fields_of as gate_fields_of};
pub use host::SystemHost;
pub use intent::{Intent, OutcomeReport};
pub use ipse_core::{Admitted, Digest};
pub use ipse_core::{EventRef, FactId, FactKey, FactKind, Identity, Outcome, Seq, Time};
pub use ipse_door::{Refusal, Rule};
pub use ipse_engine::facts::{Filter, ScoredFact};
pub use ipse_engine::trail::{Found, IntentStanding, Listing, Proposal};
pub use ipse_engine::{
    Acknowledged, Appended, Claim, Error as EngineError, FactTable, Forgotten, Host, Log, LogView,
    Memory, Notary, PassCommitted, PassReport, Policy, Selection, SignedBatch, Status, Trigger,
    Watch,
};
pub use ipse_exchange::{BundleReceipt, Error as ExchangeError, Exported, Imported};
pub use ipse_gates::{FileError, GateFile, Gates};
pub use ipse_inspect::{
    Diff, Heads, IntentPage, LogEntry, LogPage, LogRow, Look, Page, PassEntry, PassPage, Proof,
    SignedHead, SkillRow, Skills, Standing, explain, verify,
};
pub use ipse_intents::{Decision, DecisionError, IntentError, OutcomeError};
pub use ipse_ledger::{Bundled, NoteKey, NoteSigner};
pub use ipse_manifest::{FIELDS as MANIFEST_FIELDS, Manifest, ManifestError};
pub use ipse_store::{Location, forgets_in_place};
pub use notary::DirectoryNotary;
pub use value::Value;
