//! Errors before verification begins, and errors of writing a bundle.

use crate::archive::{MAX_MEMBER_BYTES, MAX_MEMBERS};
use std::io;

/// An error of writing a bundle, or of reading keys or anchors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Writing failed.
    #[error("cannot write the bundle")]
    Write(#[from] io::Error),
    /// The name is unknown or out of order.
    #[error("`{0}` is not a member that can come next in a bundle")]
    Order(String),
    /// A member that every bundle has was not written.
    #[error("`{0}` is missing from the bundle")]
    Missing(String),
    /// The number of bytes that were written is not the declared one.
    #[error("`{name}` was declared with {promised} bytes, but {written} were written")]
    Length {
        /// The member.
        name: String,
        /// The declared number of bytes.
        promised: u64,
        /// The number of bytes that were written.
        written: u64,
    },
    /// A member is longer than [`MAX_MEMBER_BYTES`].
    #[error("`{0}` is longer than {MAX_MEMBER_BYTES} bytes, the maximum of a header")]
    TooLong(String),
    /// There are more members than [`MAX_MEMBERS`].
    #[error("a bundle has at most {MAX_MEMBERS} members")]
    TooMany,
    /// A text does not contain valid keys.
    #[error("{0}")]
    Key(String),
    /// A text does not contain valid tree heads.
    #[error("{0}")]
    Anchors(String),
}
