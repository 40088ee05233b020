//! Memory for long-running agents that learn without becoming someone else.
//!
//! Example: a robot reads the recommended grip force from its memory and records each result. (The
//! store is in a temporary directory of the crate `tempfile`; a program uses its own path.)
//!
//! ```
#![doc = include_str!("../examples/robot_loop.rs")]
//! ```
//!
//! An [`Agent`] has an identity, the SHA-256 of its [`Manifest`], and a log of [`Event`]s. Its
//! [`Fact`]s are a function of the log, so they change while the identity stays the same. The
//! example `tour` shows every operation: register, record, import, consult, propose, explain,
//! forget, export and verify.
//!
//! | to | use |
//! |---|---|
//! | record one event, or many at once | [`Agent::record`], [`Agent::record_all`] |
//! | import a file, and list the refused lines | [`Agent::import`] |
//! | read facts and recommended values | [`Agent::fact`], [`Agent::facts`], [`Fact::recommended`] |
//! | ask whether to try, and which value | [`Agent::may_attempt`], [`Agent::suggest`] |
//! | find the events behind a fact | [`Agent::explain`] |
//! | ask the gates before an action | [`Agent::consult`], [`Agent::propose`], [`Agent::report`] |
//! | decide about intents that wait | [`Agent::waiting`], [`Agent::decide`] |
//! | read the log | [`Look::log`] of [`Agent::look`] |
//! | forget events | [`Agent::forget`] |
//! | export a log as a bundle | [`Agent::export`] |
//! | verify a bundle, or import it | [`verify_bundle`], [`import_bundle`] |
//! | find the agents of a store | [`identities()`] |
//!
//! **Facts follow passes.** A recorded event is durable at once. It changes facts with the next
//! pass: by default after 64 new events, or after one second without a new one ([`Policy`]).
//!
//! Every operation returns [`Result`]; programs match on [`Error::code`]. A recommended value has 4
//! significant digits ([`Recommended`]). The confidence of a fact is no success rate: a skill that
//! always fails has a high one. Compare [`Fact::success_rate`] as well.
//!
//! Cargo features, off by default: `passphrase` reads private keys that are encrypted (see
//! [`keys`]), `gzip` imports compressed files.
//!
//! **SQLite.** Forgetting clears single pages of the store if SQLite was built with
//! `SQLITE_ENABLE_DBPAGE_VTAB`. Otherwise it rewrites the whole file, which takes longer on a large
//! store and gives the same result. Cargo does not pass such a setting from a library to a program:
//! put it into the program's own `.cargo/config.toml` as `[env] LIBSQLITE3_FLAGS =
//! "-DSQLITE_ENABLE_DBPAGE_VTAB=1"`. [`forgets_in_place`] reports which method this program uses.
//!
//! **Invariants:** this crate connects the other crates and computes nothing itself. Clock and
//! randomness enter ipse only here ([`SystemHost`]).
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
mod identities;
mod intent;
pub mod keys;
mod notary;
mod past;
mod plan;
mod value;

pub use agent::{Agent, Opening, Receipt};
pub use answer::Answer;
pub use bundle::{import_bundle, verify_bundle};
pub use error::{Error, Result};
pub use event::{Attempt, Event};
pub use fact::{Fact, Query, Recommended};
pub use gates::{GATE_FIELDS, GateFiles, fields_of as gate_fields_of};
pub use host::SystemHost;
pub use identities::identities;
pub use intent::{Intent, OutcomeReport};
pub use ipse_bundle::{Line as BundleLine, Report as BundleReport, Verdict};
pub use ipse_core::time::TimeError;
pub use ipse_core::{Admitted, Digest};
pub use ipse_core::{EventRef, FactId, FactKey, FactKind, Identity, Outcome, Seq, Time};
pub use ipse_core::{Fact as FactRecord, Micro, Support};
pub use ipse_door::{Refusal, Rule, Unused, UnusedMembers};
pub use ipse_engine::facts::{Chosen, Filter, ScoredFact};
pub use ipse_engine::trail::{AttemptStanding, Found, IntentStanding, Listing, Proposal, Trail};
pub use ipse_engine::{
    Acknowledged, Appended, Claim, Error as EngineError, FactTable, Forgotten, Host, Log, LogView,
    Memory, Notary, PassCommitted, PassReport, Policy, Selection, SignedBatch, Status, Trigger,
    Watch,
};
pub use ipse_exchange::{BundleReceipt, Error as ExchangeError, Exported, Imported, InputKind};
pub use ipse_gates::{FileError, GateFile, Gates};
pub use ipse_inspect::{
    AttemptAdvice, Block, Changed, Day, Derivation, Diff, Difference, DriftReport, DriftSeries,
    Figure, Heads, IntentPage, LogEntry, LogFilter, LogPage, LogQuery, LogRow, Look,
    ManifestComparison, Moment, MomentError, Page, PassEntry, PassPage, PastFacts, PlannedAttempt,
    Position, Proof, Rules, SignedBy, SignedHead, SkillRow, Skills, Standing, ValueAdvice, explain,
    read_day, verify,
};
pub use ipse_intents::{Decision, DecisionError, IntentError, OutcomeError};
pub use ipse_ledger::{Bundled, NoteKey, NoteSigner};
pub use ipse_manifest::{FIELDS as MANIFEST_FIELDS, Manifest, ManifestError};
pub use ipse_plan::{BadCandidates, Candidates, Question, Reason, Suggestion, Threshold};
pub use ipse_store::{Error as StoreError, Location, RawPass, Stored, forgets_in_place};
pub use notary::DirectoryNotary;
pub use value::Value;
