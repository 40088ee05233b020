//! The portable archive: everything an auditor needs in one file, and its verification.
//!
//! **Invariants**
//! - Pure over bytes: a [`Source`] is read, a writer is written to. No file is opened, no clock or
//!   environment is read, nothing is printed.
//! - The same content gives the same bytes, and no other bytes verify: every byte of an archive is
//!   either a function of names and sizes, or covered by a signature.
//! - Keys inside a bundle are never trust. What counts is signed by a key that the caller brought.
//! - Nothing is allocated by a size that a bundle declares, and no bytes make this panic.
#![forbid(unsafe_code)]

mod archive;
mod envelope;
mod error;
mod header;
mod name;
mod open;
mod report;
mod source;
mod trust;
mod verify;
mod why;
mod write;

pub use archive::{MAX_MEMBER_BYTES, MAX_MEMBERS};
pub use error::Error;
pub use header::{BLOCK, is_bundle};
pub use ipse_consult::trail;
pub use ipse_core::EventRef;
pub use name::signature_name;
pub use open::{Log, Opened, open};
pub use report::{Line, MAX_LINES, Report, Verdict};
pub use source::Source;
pub use trust::{OPERATOR, Trust, anchors, pem};
pub use verify::verify;
pub use why::WhyError;
pub use write::Writer;
