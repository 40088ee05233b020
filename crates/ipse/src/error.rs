//! The error type of the library.
//!
//! **Invariants:** `Display` shows the failure and its reason. [`Error::code`] is stable across
//! versions. Errors of storage and of keys have the system error as their `source`; no other error
//! repeats its text in a `source`.

use crate::keys::KeyError;
use ipse_core::time::TimeError;
use ipse_core::{EventRef, FactId, Seq};
use ipse_door::Refusal;
use ipse_exchange::Error as ExchangeError;
use ipse_gates::FileError;
use ipse_intents::{DecisionError, IntentError, OutcomeError};
use ipse_manifest::ManifestError;
use ipse_plan::BadCandidates;
use ipse_store::Error as StoreError;
use std::fmt;
use std::path::Path;

/// The result of a library operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why an operation failed. No operation is left half done, except that a stopped import
/// keeps the lines that its error names.
///
/// `Display` says what failed. For errors of files, storage and keys, the cause of the system is in
/// [`source`](std::error::Error::source): print it too.
///
/// ```
/// # use ipse::{Agent, Identity};
/// use std::error::Error as _;
///
/// let Err(error) = Agent::open("/nowhere/robot.db", Identity([0; 32])) else { return };
/// match error.code() {
///     "no_store" | "unknown_identity" => println!("register the manifest first"),
///     "store_busy" => println!("try again"),
///     "bad_key" => println!("compare the key directory with its backup"),
///     code => println!("{code}"),
/// }
/// let mut cause = error.source();
/// println!("{error}");
/// while let Some(error) = cause {
///     println!("  because {error}");
///     cause = error.source();
/// }
/// ```
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The event was rejected; it is not in the log.
    #[error("the event was refused: {0}")]
    Refused(Refusal),
    /// A key could not be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A manifest lacks a field, or a field cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The engine or the store failed.
    #[error(transparent)]
    Engine(#[from] ipse_engine::Error),
    /// Import, export or a bundle failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A text is not a time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A parameter, a property or a member of the data is not a finite number.
    #[error("the value of `{0}` is not a finite number")]
    NotANumber(String),
    /// The intent is invalid.
    #[error("the intent was rejected: {0}")]
    Intent(IntentError),
    /// The decision about an intent was rejected.
    #[error("the decision was rejected: {0}")]
    Decision(DecisionError),
    /// The outcome of an intent was not recorded.
    #[error("the outcome was not recorded: {0}")]
    Outcome(OutcomeError),
    /// The agent was opened without gate files.
    #[error("this agent was opened without gates: open it with its three gate files")]
    NoGates,
    /// A gate file is invalid.
    #[error("the gate files are invalid: {}", Lines(.0))]
    GateFiles(Vec<FileError>),
    /// The gate files are not those that the manifest names.
    #[error("the manifest names another gate file: its {field} does not match this file")]
    ForeignGates {
        /// The manifest field that differs.
        field: &'static str,
    },
    /// The position is beyond the end of the log.
    #[error("the log ends at {head}, before seq {asked}")]
    Beyond {
        /// The requested position.
        asked: Seq,
        /// The last position.
        head: Seq,
    },
    /// The agent has no fact with this id.
    #[error("this agent has no fact {0}")]
    NoFact(FactId),
    /// The page of evidence does not exist.
    #[error("page {asked} does not exist: the evidence has pages 1 to {pages}")]
    NoPage {
        /// The requested page.
        asked: usize,
        /// The number of pages.
        pages: u64,
    },
    /// The log has no event with this name.
    #[error("this log has no event {0}")]
    NoEvent(EventRef),
    /// The candidates of a suggestion cannot be used.
    #[error("the candidates cannot be used: {0}")]
    Candidates(BadCandidates),
    /// A key that the caller trusts cannot be read.
    #[error("a trusted key cannot be used: {0}")]
    TrustedKey(String),
    /// An anchor of the caller is not a signed tree head.
    #[error("an anchor cannot be used: {0}")]
    Anchor(String),
    /// A bundle did not verify; nothing was imported.
    #[error("the bundle did not verify: {0}")]
    Unverified(String),
    /// A file could not be read or written.
    #[error("could not use {path}: {source}")]
    File {
        /// The path of the file.
        path: String,
        /// The system error. It is part of this error's text, so it is not its `source`.
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

/// Errors that a variant wraps unchanged. The text of the variant includes theirs, so they are not
/// a `source`: a `source` would be printed a second time.
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
    BadCandidates => Candidates,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::Engine(error.into())
    }
}

impl Error {
    /// An error for a file that could not be read or written.
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Self {
        Error::File { path: path.display().to_string(), source }
    }

    /// A stable code that programs can match on. All codes:
    ///
    /// | code | when |
    /// |---|---|
    /// | `bad_key` | a key cannot be used, or a trusted key cannot be read |
    /// | `bad_manifest` | a field of a manifest is missing or malformed |
    /// | `bad_time` | a text is not a time |
    /// | `not_a_number` | a parameter, a property or a member of the data is not a finite number |
    /// | `bad_intent` | an intent is invalid |
    /// | `intent_too_large` | an intent with its verdict is larger than an event may be |
    /// | `not_found` | the fact, event or intent does not exist |
    /// | `not_waiting` | an intent does not wait for a decision |
    /// | `too_late` | the time to confirm an intent has expired |
    /// | `bad_outcome` | the report of an outcome is invalid |
    /// | `not_admitted` | an intent may not be acted on, so it has no outcome |
    /// | `gates_not_configured` | the agent was opened without gate files |
    /// | `bad_gate_files` | the gate files are invalid or contradict each other |
    /// | `gates_not_bound` | the manifest names other gate files |
    /// | `beyond_the_log` | the position is beyond the end of the log |
    /// | `no_page` | the evidence of a fact has no such page |
    /// | `bad_candidates` | there are no candidates, too many, or two that are equal |
    /// | `bad_anchor` | an anchor is not a signed tree head |
    /// | `bundle_not_verified` | a bundle does not verify under the trusted keys |
    /// | `file` | a file or a stream cannot be read or written |
    /// | `not_json_lines` | the input of an import has another format, such as CSV |
    /// | `bundle_not_whole` | a bundle of a part of a log cannot be imported |
    /// | `log_not_empty` | a bundle can be imported only into an empty log |
    /// | `cannot_export` | no tree head covers the log, or the content does not fit into a bundle |
    /// | `no_store` | no store exists at that path |
    /// | `not_a_store` | the file is not a store |
    /// | `other_schema` | a newer ipse wrote the store, or it must be migrated |
    /// | `unknown_identity` | the identity is not registered in the store: register its manifest |
    /// | `store_busy` | another process locks the store for over 10 seconds: try again |
    /// | `store_read_only` | this process may not write to the store or to its directory |
    /// | `store_gone` | the store was removed or replaced |
    /// | `disk_full` | no space is left on the disk |
    /// | `already_governed` | the log has settings, keys or tokens here: import before them |
    /// | `signatures_on_record` | the acts of an imported log say which signatures it needs |
    /// | `not_first` | a log with events does not begin with other rules |
    /// | `store_unavailable` | the store cannot be used for another reason |
    /// | `store_damaged` | stored bytes contradict each other ([`Error::is_damage`]) |
    /// | `log_rolled_back` | the log is older than its last signed tree head |
    /// | `unknown_rules` | the log follows a rule set that this version does not have |
    /// | `too_many_observations` | a fact has more observations than can be counted |
    /// | `never_forgotten` | an event of this type cannot be forgotten |
    /// | `open_again` | a failure or panic left this handle unusable: open the agent again |
    ///
    /// A rejected event has the code of its [`Rule`](crate::Rule), such as `invalid_json`,
    /// `missing`, `conflict` or `forgotten`. `truncated` is also the code of an import whose reader
    /// failed.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Engine(error) => engine_code(error),
            Error::Exchange(error) => exchange_code(error),
            Error::Key(_) | Error::TrustedKey(_) => "bad_key",
            Error::Manifest(_) => "bad_manifest",
            Error::Refused(refusal) => refusal.rule.code(),
            Error::Time(_) => "bad_time",
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
            Error::Candidates(_) => "bad_candidates",
            Error::Anchor(_) => "bad_anchor",
            Error::Unverified(_) => "bundle_not_verified",
            Error::File { .. } => "file",
        }
    }

    /// Whether stored bytes contradict each other. Retrying never helps.
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
        Engine::Rules(error) => error.code(),
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
        StoreError::Foreign(_) | StoreError::Directory(_) => "not_a_store",
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
        ExchangeError::Bundle(ipse_bundle::Error::Write(_)) => "file",
        ExchangeError::NotLines(_) => "not_json_lines",
        ExchangeError::NotWhole => "bundle_not_whole",
        ExchangeError::Damaged(_) | ExchangeError::ForeignManifest => "store_damaged",
        ExchangeError::Unregistered(_) => "unknown_identity",
        ExchangeError::NotEmpty(_) => "log_not_empty",
        ExchangeError::NotPlain(_) => "already_governed",
        ExchangeError::SignaturesOnRecord(_) => "signatures_on_record",
        _ => "cannot_export",
    }
}
