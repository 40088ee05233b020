//! The agents of a store.
//!
//! **Invariant:** the store is only read: no schema is migrated and no pass runs.

use crate::Result;
use ipse_core::Identity;
use ipse_store::{Location, Store};
use std::path::Path;

/// The identities in a store, oldest first. Opens the store for reading only.
///
/// ```no_run
/// for identity in ipse::identities("fleet.db")? {
///     println!("{identity}");
/// }
/// # Ok::<(), ipse::Error>(())
/// ```
pub fn identities(store: impl AsRef<Path>) -> Result<Vec<Identity>> {
    let store = Store::open(&Location::parse(store)?)?;
    let damaged = |hash: &str| ipse_engine::Error::Damaged(format!("identity {hash} is no hash"));
    let manifests = store.reader()?.manifests()?;
    let identity = |hash: &str| Identity::parse(hash).ok_or_else(|| damaged(hash).into());
    manifests.iter().map(|(hash, _)| identity(hash)).collect()
}
