//! Memory for long-running agents that learn without becoming someone else.
//!
//! This crate is what programs depend on: a facade over the parts of ipse. An agent registers its
//! [`Manifest`] once, appends what it lives through to a [`Memory`], and reads facts; whatever it
//! learns, its identity stays byte-equal.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("ipse.db");
//! let manifest = ipse::Manifest::new(|field| {
//!     Some(match field {
//!         "commissioned_at" => "2026-05-01T00:00:00Z".into(),
//!         hash if hash.ends_with("_hash") => "1".repeat(64),
//!         name => format!("my {name}"),
//!     })
//! })?;
//! let identity = ipse::register(&path, &manifest)?;
//!
//! let memory = ipse::open(&path, identity, ipse::Policy { every: 1, ..Default::default() })?;
//! memory.subscribe(|pass| assert_eq!(pass.rows_touched, 1))?;
//! memory.append(
//!     br#"{"id":"1","source":"arm","type":"execution_result","time":"2026-05-06T10:00:00Z",
//!          "data":{"skill_id":"grasp","target_class":"cup","success":true}}"#,
//! )??;
//!
//! let facts = memory.known().choose(&ipse::Filter::default());
//! assert_eq!(facts[0].fact.key.text(), "grasp + cup + *");
//! # Ok(())
//! # }
//! ```
//!
//! **Invariants:** this crate wires and renames, it computes nothing; clock and randomness enter
//! ipse here ([`SystemHost`]) and nowhere else.
#![forbid(unsafe_code)]

pub mod files;
mod host;
pub mod keys;
mod notary;

pub use host::SystemHost;
pub use ipse_core::{EventRef, Fact, FactId, FactKey, FactKind, Identity, Seq, Time};
pub use ipse_door::{Refusal, Rule};
pub use ipse_engine::facts::{Consulted, Filter};
pub use ipse_engine::grounding::grounding;
pub use ipse_engine::{
    Error, Forgotten, Known, Memory, PassCommitted, PassReport, Policy, Trigger, Which,
};
pub use ipse_manifest::{Manifest, ManifestError};
pub use ipse_store::Appended;
pub use notary::DirectoryNotary;

use ipse_store::sqlite::{Reader, create};
use std::path::Path;

/// Registers a manifest in the store at `path`, making the store if there is none.
pub fn register(path: &Path, manifest: &Manifest) -> Result<Identity, Error> {
    Ok(create(path)?.register(&manifest.canonical())?.identity)
}

/// Opens an identity's log for a program that lives long, and folds what is past its checkpoint.
/// Tree heads are signed if the log's key lies beside the store and needs no passphrase; see
/// [`open_with`] for keys that lie elsewhere. A damaged half of that key is an
/// error.
pub fn open(path: &Path, identity: Identity, policy: Policy) -> Result<Memory, Error> {
    let keys = keys::KeyDirectory::of_store(path);
    let notary = match DirectoryNotary::open(&keys, &identity, None) {
        Ok(notary) => Some(notary),
        Err(error) if error.is_damage() => {
            return Err(Error::Notary(std::io::Error::other(error)));
        }
        Err(_) => None,
    };
    open_with(path, identity, policy, notary)
}

/// The same with a notary of the caller's choice, or none.
pub fn open_with(
    path: &Path,
    identity: Identity,
    policy: Policy,
    notary: Option<DirectoryNotary>,
) -> Result<Memory, Error> {
    let notary = notary.map(|notary| Box::new(notary) as Box<dyn ipse_engine::Notary>);
    Memory::open(path, identity, policy, Box::new(SystemHost::new()), notary)
}

/// What an identity knows, read from a store that somebody else may be writing.
pub fn known(path: &Path, identity: &Identity) -> Result<Known, Error> {
    let reader = Reader::open(path)?;
    let snapshot = reader.view(identity)?;
    Known::read(snapshot.view())
}
