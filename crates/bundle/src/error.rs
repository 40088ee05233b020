//! What can go wrong before verification begins, and while a bundle is written.

use crate::archive::{MAX_MEMBER_BYTES, MAX_MEMBERS};
use std::io;

/// Why a bundle could not be written, or why keys or anchors could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Writing failed.
    #[error("cannot write the bundle")]
    Write(#[from] io::Error),
    /// A name that no member has, or not at this place.
    #[error("`{0}` has no place here in a bundle")]
    Order(String),
    /// A member that every bundle has was not written.
    #[error("`{0}` is missing from the bundle")]
    Missing(String),
    /// Another number of bytes was written than promised.
    #[error("`{name}` was promised with {promised} bytes and got {written}")]
    Length {
        /// The member.
        name: String,
        /// How many were promised.
        promised: u64,
        /// How many came.
        written: u64,
    },
    /// A member is longer than [`MAX_MEMBER_BYTES`].
    #[error("`{0}` is longer than {MAX_MEMBER_BYTES} bytes, the most that a header can say")]
    TooLong(String),
    /// There are more members than [`MAX_MEMBERS`].
    #[error("a bundle has at most {MAX_MEMBERS} members")]
    TooMany,
    /// A text that should be keys is not.
    #[error("{0}")]
    Key(String),
    /// A text that should be tree heads is not.
    #[error("{0}")]
    Anchors(String),
}
