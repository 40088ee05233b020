//! Import of events from files, and export and import of logs as bundles.
//!
//! **Invariants**
//! - Every event passes the door, from any source; a refused one stores nothing and does not stop
//!   the import.
//! - A batch that is reported durable is durable.
//! - A bundle shows the store at one moment. It is streamed; a caller that writes a file must give
//!   it its name only when it is complete.
//! - Only a bundle that verifies under the caller's trusted keys is imported, and always
//!   completely.
//! - Clock, randomness, keys and files are arguments.
#![forbid(unsafe_code)]

mod bundle_import;
mod cosigned;
mod error;
mod export;
mod import;
mod imported_files;
mod input_kind;
mod lines;
mod moved;
mod parcel;

pub use bundle_import::{BundleReceipt, take_in};
pub use error::Error;
pub use export::{Export, Exported, Keys, Range, spool, with_export};
pub use import::{
    Imported, MAX_LISTED, Options, Progress, Signing, import, import_shared, refusals_json,
    rehearse,
};
pub use imported_files::{FileUse, ImportedFiles};
pub use input_kind::InputKind;
pub use lines::{Line, Lines, check_lines, is_gzip};
