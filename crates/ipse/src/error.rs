//! The one error of the library.
//!
//! **Invariants:** `Display` says what failed, `source` says why; [`Error::code`] is a word for
//! programs that stays the same from version to version.

use crate::keys::KeyError;
use ipse_core::{EventRef, FactId, Seq};
use ipse_door::Refusal;
use ipse_exchange::Error as ExchangeError;
use ipse_gates::FileError;
use ipse_intents::{Rejected, Undecided};
use ipse_manifest::ManifestError;
use ipse_store::Error as StoreError;
use std::fmt;

/// What the library returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation of the library failed. Nothing was half done.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The event was refused; it is not in the log.
    #[error("the event was refused")]
    Refused(#[from] Refusal),
    /// A key could not be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A manifest lacks a field, or a field cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The engine or the store could not.
    #[error(transparent)]
    Engine(#[from] ipse_engine::Error),
    /// Import, export or a bundle failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A parameter is not a finite number.
    #[error("the parameter `{0}` is not a finite number")]
    NotANumber(String),
    /// The intent cannot be judged.
    #[error("the intent was rejected")]
    Rejected(#[from] Rejected),
    /// A decision about an intent does not hold.
    #[error("the decision does not hold")]
    Undecided(#[from] Undecided),
    /// The agent was opened without gates.
    #[error("no gates judge this agent's intents: open it with its three gate files")]
    NoGates,
    /// A gate file cannot be read.
    #[error("the gate files cannot be read: {}", Lines(.0))]
    GateFiles(Vec<FileError>),
    /// The gate files are not those that the manifest names.
    #[error("the manifest binds the agent to another file: its {field} is not that of this one")]
    ForeignGates {
        /// The field of the manifest.
        field: &'static str,
    },
    /// The log does not reach so far.
    #[error("the log ends at {head}, before seq {asked}")]
    Beyond {
        /// What was asked for.
        asked: Seq,
        /// The last position.
        head: Seq,
    },
    /// There is no such fact.
    #[error("this agent has no fact {0}")]
    NoFact(FactId),
    /// There is no such event.
    #[error("this log has no event {0}")]
    NoEvent(EventRef),
    /// A bundle did not verify; nothing was taken in.
    #[error("the bundle did not verify: {0}")]
    Unverified(String),
    /// A file could not be read or written.
    #[error("could not use {path}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

struct Lines<'e>(&'e [FileError]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("; "))
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::Engine(error.into())
    }
}

impl Error {
    /// The code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => engine_code(error),
            Error::Exchange(error) => exchange_code(error),
            Error::Key(_) => "bad_key",
            Error::Manifest(_) => "bad_manifest",
            Error::Refused(refusal) => refusal.rule.code(),
            Error::NotANumber(_) => "not_a_number",
            Error::Rejected(rejected) => rejected.code(),
            Error::Undecided(undecided) => undecided.code(),
            Error::NoGates => "gates_not_configured",
            Error::GateFiles(_) => "bad_gate_files",
            Error::ForeignGates { .. } => "gates_not_bound",
            Error::Beyond { .. } => "beyond_the_log",
            Error::NoFact(_) | Error::NoEvent(_) => "not_found",
            Error::Unverified(_) => "bundle_not_verified",
            Error::File { .. } => "file",
        }
    }

    /// Whether stored bytes contradict each other: trying again never helps.
    pub fn is_damage(&self) -> bool {
        self.code() == "store_damaged"
    }
}

fn engine_code(error: &ipse_engine::Error) -> &'static str {
    use ipse_engine::Error as Engine;
    match error {
        error if error.is_damage() => "store_damaged",
        error if error.is_rolled_back() => "log_rolled_back",
        Engine::Store(error) => store_code(error),
        Engine::Limit(_) => "too_many_observations",
        Engine::UnknownEvent(_) => "not_found",
        Engine::NeverForgotten(..) => "never_forgotten",
        Engine::Broken | Engine::Poisoned => "open_again",
        Engine::Notary(_) => "bad_key",
        _ => "store_unavailable",
    }
}

fn store_code(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotFound(_) | StoreError::NoDirectory(_) => "no_store",
        StoreError::Gone(_) => "store_gone",
        StoreError::Foreign(_) => "not_a_store",
        StoreError::Newer { .. } | StoreError::Older { .. } => "other_schema",
        StoreError::UnknownIdentity(_) => "unknown_identity",
        StoreError::Busy(_) => "store_busy",
        StoreError::ReadOnly => "store_read_only",
        StoreError::Full => "disk_full",
        _ => "store_unavailable",
    }
}

fn exchange_code(error: &ExchangeError) -> &'static str {
    match error {
        ExchangeError::Engine(error) | ExchangeError::Pass(error) => engine_code(error),
        ExchangeError::Stopped { source, .. } => engine_code(source),
        ExchangeError::Store(error) => store_code(error),
        ExchangeError::Refused(refusal) => refusal.rule.code(),
        ExchangeError::Input(_) | ExchangeError::Output(_) | ExchangeError::Spool(_) => "file",
        ExchangeError::Damaged(_) | ExchangeError::ForeignManifest => "store_damaged",
        ExchangeError::Unregistered(_) => "unknown_identity",
        ExchangeError::NotEmpty(_) => "log_not_empty",
        _ => "cannot_export",
    }
}
