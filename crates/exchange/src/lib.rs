//! Events come in from files, and logs travel as bundles: import, export, and taking a bundle in.
//!
//! **Invariants**
//! - Every event passes the door, from whichever source; a refused one stores nothing and stops
//!   nothing.
//! - A batch that is reported durable is durable.
//! - A bundle is of one moment. It is streamed; whoever names a file makes sure that it stands
//!   under its name only when it is whole.
//! - A bundle that did not verify under the caller's trusted keys is not taken in; any other one
//!   is taken in whole.
//! - Clock, randomness, keys and files are arguments.
#![forbid(unsafe_code)]

mod bundle_import;
mod error;
mod export;
mod import;
mod lines;
mod parcel;

pub use bundle_import::{BundleReceipt, take_in};
pub use error::Error;
pub use export::{Export, Exported, Keys, Range, spool, with_export};
pub use import::{
    Imported, MAX_LISTED, Options, Progress, Signing, import, import_shared, refusals_json,
};
pub use lines::{Line, Lines, is_gzip};
