//! Errors of the engine.

use ipse_consolidate::LimitError;
use ipse_core::{EventRef, Seq};

/// Why the engine could not do what was asked.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The store could not.
    #[error(transparent)]
    Store(#[from] ipse_store::Error),
    /// A fact grew beyond what can be counted exactly.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The facts of a log follow rules that this build does not have. They stay as they are.
    #[error(
        "the facts of this log follow rule set `{version}` ({rule_set}), which this ipse does not \
         have: a newer ipse is needed"
    )]
    UnknownRules {
        /// The version that the newest pass names.
        version: String,
        /// The hash of the rule set, in hex.
        rule_set: String,
    },
    /// Derived state cannot be read; it can be rebuilt from the log.
    #[error("the stored {0} cannot be read")]
    Damaged(String),
    /// An event is not the one that was appended.
    #[error("the event at seq {0} is not what its digest says")]
    Altered(Seq),
    /// There is no such event to be forgotten.
    #[error("no event {0} in this log")]
    UnknownEvent(EventRef),
    /// What ipse wrote about passes and forgetting stays.
    #[error("{0} is a {1} event, and those are never forgotten")]
    NeverForgotten(EventRef, String),
    /// The store holds less than was signed.
    #[error("a tree head over {signed} entries was signed, and the store has {stored}")]
    Behind {
        /// How many entries were signed.
        signed: u64,
        /// How many there are.
        stored: u64,
    },
    /// The store holds something else than was signed.
    #[error("the first {signed} entries are not those that were signed")]
    Forked {
        /// How many entries were signed.
        signed: u64,
    },
    /// A note that should be a tree head.
    #[error("there is no tree head {0}")]
    NoHead(&'static str),
    /// Where keys and the last head are kept.
    #[error("the key directory could not be used")]
    Notary(#[source] std::io::Error),
    /// A commit failed earlier: whether it is durable is unknown, so nothing more is written.
    #[error("an earlier write failed on its way to the disk; open the store anew")]
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
    /// The error for the rules that a pass record names. Both texts come from a file.
    pub(crate) fn unknown_rules(version: &str, rule_set: String) -> Self {
        let printable = ipse_door::printable;
        Error::UnknownRules { version: printable(version), rule_set: printable(&rule_set) }
    }

    /// Whether the log is not the one that was signed: it has fewer entries, or others.
    pub fn is_rolled_back(&self) -> bool {
        self.rolled_back().is_some()
    }

    /// The same error again, if the log is not the one that was signed.
    pub(crate) fn rolled_back(&self) -> Option<Self> {
        match *self {
            Error::Behind { signed, stored } => Some(Error::Behind { signed, stored }),
            Error::Forked { signed } => Some(Error::Forked { signed }),
            _ => None,
        }
    }

    /// Whether stored bytes contradict each other: trying again never helps.
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

    /// The same error once more, if the store was removed, replaced or emptied.
    pub fn gone(&self) -> Option<Error> {
        match self {
            Error::Store(ipse_store::Error::Gone(path)) => {
                Some(Error::Store(ipse_store::Error::Gone(path.clone())))
            }
            _ => None,
        }
    }
}
