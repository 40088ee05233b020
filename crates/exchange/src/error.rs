//! Errors of import and export: `Display` gives the failed operation, `source` the reason.

use crate::input_kind::InputKind;
use ipse_core::{Identity, Seq};

/// The reason why events or a bundle could not be imported or exported.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The input could not be read.
    #[error("could not read the events")]
    Input(#[source] std::io::Error),
    /// The input is not JSON Lines. Nothing was read from it.
    #[error("the input is {0}, not JSON Lines")]
    NotLines(InputKind),
    /// The input could not be read to its end.
    #[error("could not read the events after line {line}; the lines up to it are stored")]
    Cut {
        /// The last line that was read. Lines up to it are durable or refused.
        line: u64,
        /// The cause.
        source: std::io::Error,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] ipse_engine::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ipse_store::Error),
    /// Storing stopped in the middle of the input.
    #[error("events are durable up to line {line} only")]
    Stopped {
        /// The last line that is durable.
        line: u64,
        /// The cause.
        source: ipse_engine::Error,
    },
    /// The events are stored, but the pass failed.
    #[error("the events are stored, but the pass failed")]
    Pass(#[source] ipse_engine::Error),
    /// No signed tree head exists to export under.
    #[error("no tree head is signed, and there is no key of the log to sign one")]
    NoHead,
    /// The stored tree head or pass record cannot be read.
    #[error("the {0} cannot be read")]
    Damaged(String),
    /// A position of the range lies beyond the signed tree head.
    #[error(
        "the range goes {end} seq {seq}, beyond the signed tree head, which covers {size} entries"
    )]
    Beyond {
        /// Which end of the range: `from` or `to`.
        end: &'static str,
        /// The position.
        seq: Seq,
        /// The number of entries that the head covers.
        size: u64,
    },
    /// The range ends before it begins.
    #[error("the range ends before it begins: from {0} to {1}")]
    EmptyRange(Seq, Seq),
    /// Events under the head were forgotten, and no newer head can be signed.
    #[error("events under the tree head were forgotten since, and there is no key to sign another")]
    Forgotten,
    /// No tree head has a cosignature.
    #[error("no tree head of this log has a cosignature of a witness")]
    NotCosigned,
    /// Events under a cosigned head were forgotten, and only a newer head covers that.
    #[error("events under the cosigned tree head over {0} entries were forgotten since")]
    ForgottenSince(u64),
    /// Auditors would not accept the tree head.
    #[error("the newest tree head is not signed with the key in log.vkey; sign one again")]
    ForeignHead,
    /// The head does not cover everything, and no newer one can be signed.
    #[error(
        "the newest tree head covers {size} of {head} events, and there is no key to sign another"
    )]
    Uncovered {
        /// The number of entries that the head covers.
        size: u64,
        /// The last position of the log.
        head: u64,
    },
    /// The manifest in the store is not that of the identity.
    #[error("the stored manifest is not that of the identity")]
    ForeignManifest,
    /// The bundle could not be written.
    #[error("could not write the bundle")]
    Output(#[from] std::io::Error),
    /// The temporary file of a spooled bundle could not be written.
    #[error("could not write a temporary file (TMPDIR says where)")]
    Spool(#[source] std::io::Error),
    /// The content does not fit a bundle, or could not be written to it.
    #[error(transparent)]
    Bundle(#[from] ipse_bundle::Error),
    /// Only whole logs can be imported.
    #[error("the bundle contains only a range of the log; import needs a bundle of a whole log")]
    NotWhole,
    /// The identity of a bundle must be registered first.
    #[error("identity {0} is not registered in this store")]
    Unregistered(Identity),
    /// A bundle can only be imported into an empty log.
    #[error(
        "the log of {0} is not empty in this store; a bundle needs an empty log: import right \
         after a plain `init`, before tokens and keys"
    )]
    NotEmpty(Identity),
    /// A bundle can only be imported where nothing was set.
    #[error(
        "{0} has settings, keys or tokens in this store already: import right after a plain \
         `init`, before tokens and keys"
    )]
    NotPlain(Identity),
    /// The log says which signatures it needs.
    #[error(
        "the acts of this log set signatures to {0}: import it as it is, then change it with \
         `ipse config signatures`"
    )]
    SignaturesOnRecord(String),
    /// An event of a verified bundle is refused by the door.
    #[error("an event of the bundle is refused")]
    Refused(#[from] ipse_door::Refusal),
}
