//! The portable archive: everything an auditor needs in one file, and its verification.
//!
//! **Invariants**
//! - Pure over bytes: it reads a [`Source`] and writes to a writer. It opens no file, reads no
//!   clock or environment, and prints nothing.
//! - The same content gives the same bytes, and no other bytes verify: every byte of an archive is
//!   either a function of names and sizes, or covered by a signature.
//! - Keys inside a bundle are never trusted. Only signatures by keys from the caller count.
//! - No allocation depends on a size that a bundle declares, and no input causes a panic.
#![forbid(unsafe_code)]

mod archive;
mod envelope;
mod error;
mod header;
mod log;
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
pub use ipse_audit::Again;
pub use ipse_consult::trail;
pub use ipse_core::judge::GATE_FILES;
pub use ipse_core::{EventRef, FileKind};
pub use name::{gate_names, signature_name};
pub use open::{Log, Opened, open, open_judged};
pub use report::{Line, MAX_LINES, Report, Verdict};
pub use source::Source;
pub use trust::{OPERATOR, Trust, anchors, key_sha256, pem};
pub use verify::{GatesInput, verify, verify_judged};
pub use why::WhyError;
pub use write::Writer;
