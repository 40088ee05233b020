//! The one error of the library.
//!
//! **Invariants:** `Display` says what failed and why; [`Error::code`] is a word for programs that
//! stays the same from version to version. Errors of storage and of keys have the reason of the
//! system as their `source`, and no other error repeats its text in a `source`.

use crate::keys::KeyError;
use ipse_core::{EventRef, FactId, Seq};
use ipse_door::Refusal;
use ipse_exchange::Error as ExchangeError;
use ipse_gates::FileError;
use ipse_intents::{DecisionError, IntentError, OutcomeError};
use ipse_manifest::ManifestError;
use ipse_store::Error as StoreError;
use std::fmt;
use std::path::Path;

/// What the library returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation of the library failed. Nothing was half done, except that an import that stops
/// keeps the lines that its error names.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The event was refused; it is not in the log.
    #[error("the event was refused: {0}")]
    Refused(Refusal),
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
    #[error("the intent was rejected: {0}")]
    Intent(IntentError),
    /// A decision about an intent does not hold.
    #[error("the decision does not hold: {0}")]
    Decision(DecisionError),
    /// The outcome of an intent is not in the log.
    #[error("the outcome was not recorded: {0}")]
    Outcome(OutcomeError),
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
    /// The fact has no such page of evidence.
    #[error("the evidence has {pages} pages, from 1 on: there is no page {asked}")]
    NoPage {
        /// The page that was asked for.
        asked: usize,
        /// How many there are.
        pages: u64,
    },
    /// There is no such event.
    #[error("this log has no event {0}")]
    NoEvent(EventRef),
    /// A key that the caller trusts cannot be read.
    #[error("a trusted key cannot be used: {0}")]
    TrustedKey(String),
    /// A bundle did not verify; nothing was taken in.
    #[error("the bundle did not verify: {0}")]
    Unverified(String),
    /// A file could not be read or written.
    #[error("could not use {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why. It is part of the text of this error, so it is not its `source`.
        r#source: std::io::Error,
    },
}

struct Lines<'e>(&'e [FileError]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |error: &FileError| format!("{}, {error}", error.file.name());
        let lines: Vec<String> = self.0.iter().map(line).collect();
        f.write_str(&lines.join("; "))
    }
}

/// Errors that a variant wraps as they are. Their texts are in that of the variant, so they are no
/// `source`, which would be printed once more.
macro_rules! wraps {
    ($($error:ty => $variant:ident,)*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::$variant(error)
            }
        })*
    };
}

wraps! {
    Vec<FileError> => GateFiles,
    Refusal => Refused,
    IntentError => Intent,
    DecisionError => Decision,
    OutcomeError => Outcome,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::Engine(error.into())
    }
}

impl Error {
    /// Of a file that could not be read or written.
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Self {
        Error::File { path: path.display().to_string(), source }
    }

    /// The code for programs. All of them:
    ///
    /// | code | when |
    /// |---|---|
    /// | `bad_key` | a key cannot be used, or a trusted key cannot be read |
    /// | `bad_manifest` | a field of a manifest is missing or malformed |
    /// | `not_a_number` | a parameter or a property is not a finite number |
    /// | `bad_intent` | an intent cannot be read |
    /// | `intent_too_large` | an intent with its verdict is larger than an event may be |
    /// | `not_found` | there is no such fact, event or intent |
    /// | `not_waiting` | an intent does not wait for a decision |
    /// | `too_late` | the time to confirm an intent is over |
    /// | `bad_outcome` | the report of an outcome cannot be read |
    /// | `not_admitted` | an intent may not be acted on, so it has no outcome |
    /// | `gates_not_configured` | the agent was opened without gate files |
    /// | `bad_gate_files` | the gate files cannot be read, or contradict each other |
    /// | `gates_not_bound` | the manifest names other gate files |
    /// | `beyond_the_log` | the log does not reach that position |
    /// | `no_page` | the evidence of a fact has no such page |
    /// | `bundle_not_verified` | a bundle does not verify under the trusted keys |
    /// | `file` | a file or a stream cannot be read or written |
    /// | `log_not_empty` | a bundle is taken into an empty log only |
    /// | `cannot_export` | no tree head covers the log, or the content fits no bundle |
    /// | `no_store` | there is no store at that path |
    /// | `not_a_store` | the file is not a store |
    /// | `other_schema` | a newer ipse wrote the store, or it must be brought up to date |
    /// | `unknown_identity` | the identity is not registered in the store |
    /// | `store_busy` | another process holds the store for too long |
    /// | `store_read_only` | this process may not write to the store |
    /// | `store_gone` | the store was removed or replaced |
    /// | `disk_full` | there is no space left |
    /// | `store_unavailable` | the store cannot be used for another reason |
    /// | `store_damaged` | stored bytes contradict each other ([`Error::is_damage`]) |
    /// | `log_rolled_back` | the log is older than its last signed tree head |
    /// | `unknown_rules` | the log follows a rule set that this version does not have |
    /// | `too_many_observations` | a fact has more observations than can be counted |
    /// | `never_forgotten` | an event of this type cannot be forgotten |
    /// | `open_again` | an earlier failure left this handle unusable: open the agent again |
    ///
    /// A refused event has the code of its [`Rule`](crate::Rule), such as `invalid_json`,
    /// `missing`, `conflict` or `forgotten`; `truncated` is also the code of an import whose reader
    /// failed.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => engine_code(error),
            Error::Exchange(error) => exchange_code(error),
            Error::Key(_) | Error::TrustedKey(_) => "bad_key",
            Error::Manifest(_) => "bad_manifest",
            Error::Refused(refusal) => refusal.rule.code(),
            Error::NotANumber(_) => "not_a_number",
            Error::Intent(error) => error.code(),
            Error::Decision(error) => error.code(),
            Error::Outcome(error) => error.code(),
            Error::NoGates => "gates_not_configured",
            Error::GateFiles(_) => "bad_gate_files",
            Error::ForeignGates { .. } => "gates_not_bound",
            Error::Beyond { .. } => "beyond_the_log",
            Error::NoFact(_) | Error::NoEvent(_) => "not_found",
            Error::NoPage { .. } => "no_page",
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
        Engine::UnknownRules { .. } => "unknown_rules",
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
        ExchangeError::Cut { .. } => "truncated",
        ExchangeError::Input(_) | ExchangeError::Output(_) | ExchangeError::Spool(_) => "file",
        ExchangeError::Damaged(_) | ExchangeError::ForeignManifest => "store_damaged",
        ExchangeError::Unregistered(_) => "unknown_identity",
        ExchangeError::NotEmpty(_) => "log_not_empty",
        _ => "cannot_export",
    }
}
