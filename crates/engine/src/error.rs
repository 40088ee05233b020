//! Errors of the engine.

use ipse_consolidate::LimitError;
use ipse_core::{EventRef, Seq};

/// An error of the engine.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] ipse_store::Error),
    /// A tally exceeds the range of exact arithmetic.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The facts of a log follow rules that this build does not have. They are not changed.
    #[error(
        "unknown_rules: the facts of this log follow rule set `{version}` ({rule_set}), which this \
         ipse does not have: a newer ipse is needed"
    )]
    UnknownRules {
        /// The rule version of the newest pass.
        version: String,
        /// The hash of the rule set, in hex.
        rule_set: String,
    },
    /// The rules were not changed.
    #[error(transparent)]
    Rules(#[from] crate::RulesError),
    /// Derived data cannot be read. It can be rebuilt from the log.
    #[error("the stored {0} cannot be read")]
    Damaged(String),
    /// An event was changed after it was stored.
    #[error("event {0} does not match its digest: it was changed after it was stored")]
    Altered(Seq),
    /// The event to be forgotten does not exist.
    #[error("no event {0} in this log")]
    UnknownEvent(EventRef),
    /// Pass records and `forget` events cannot be forgotten.
    #[error("{0} is a {1} event, and those are never forgotten")]
    NeverForgotten(EventRef, String),
    /// The store has fewer entries than a signed tree head covers.
    #[error("a tree head over {signed} entries was signed, and the store has {stored}")]
    Behind {
        /// The number of signed entries.
        signed: u64,
        /// The number of stored entries.
        stored: u64,
    },
    /// The entries of the store do not match a signed tree head.
    #[error("the first {signed} entries are not those that were signed")]
    Forked {
        /// The number of signed entries.
        signed: u64,
    },
    /// A tree head is invalid or could not be signed. The text is a full sentence.
    #[error("{0}")]
    NoHead(&'static str),
    /// An act that no verifier could read, such as a retention with a very long number.
    #[error("the act `{0}` has a value that cannot be recorded, so nothing was changed")]
    BadAct(&'static str),
    /// An error of the directory that holds the keys and the last tree head.
    #[error("the key directory could not be used")]
    Notary(#[source] std::io::Error),
    /// An earlier commit failed. It may be durable or not, so nothing more is written.
    #[error("an earlier write failed and may not be on the disk; open the store again")]
    Broken,
    /// A thread of this process panicked while it held the log.
    #[error("another thread of this process failed while it was writing")]
    Poisoned,
}

impl From<ipse_consult::Damaged> for Error {
    fn from(damaged: ipse_consult::Damaged) -> Self {
        Error::Damaged(format!("fact `{}`", damaged.key))
    }
}

impl Error {
    /// The error for unknown rules. Both texts come from a file, so they are escaped.
    pub(crate) fn unknown_rules(version: &str, rule_set: String) -> Self {
        let printable = ipse_door::printable;
        Error::UnknownRules { version: printable(version), rule_set: printable(&rule_set) }
    }

    /// Whether the log does not continue a signed tree head: it has fewer entries, or others.
    pub fn is_rolled_back(&self) -> bool {
        self.rolled_back().is_some()
    }

    /// A copy of the error, if it says that the log does not continue a signed tree head.
    pub(crate) fn rolled_back(&self) -> Option<Self> {
        match *self {
            Error::Behind { signed, stored } => Some(Error::Behind { signed, stored }),
            Error::Forked { signed } => Some(Error::Forked { signed }),
            _ => None,
        }
    }

    /// Whether stored bytes are corrupt or contradict each other. A retry never helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Damaged(_) | Error::Altered(_) | Error::NoHead(_) => true,
            Error::Store(error) => matches!(error, ipse_store::Error::Corrupt(_)),
            _ => false,
        }
    }

    /// Whether the store was removed, replaced or emptied while it was open.
    pub fn is_gone(&self) -> bool {
        self.gone().is_some()
    }

    /// A copy of the error, if it says that the store was removed, replaced or emptied.
    pub fn gone(&self) -> Option<Error> {
        match self {
            Error::Store(ipse_store::Error::Gone(path)) => {
                Some(Error::Store(ipse_store::Error::Gone(path.clone())))
            }
            _ => None,
        }
    }
}
