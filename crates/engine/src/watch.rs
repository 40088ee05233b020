//! Watching a store for changes by other handles and processes.
//!
//! **Invariant:** while no other handle writes, a check compares one number, however many logs the
//! store has.

use crate::Error;
use ipse_core::{Identity, Seq};
use ipse_store::Store;

/// Detects changes of a store by other handles and processes.
pub struct Watch(ipse_store::Watch);

impl Watch {
    /// Starts to watch a store.
    pub fn open(store: &Store) -> Result<Self, Error> {
        Ok(Watch(store.watch()?))
    }

    /// The identities whose log another handle or process has changed since the last call, and
    /// those that were registered since. The first call returns all. Fails if the store was removed
    /// or replaced.
    pub fn changed(&mut self) -> Result<Vec<Identity>, Error> {
        Ok(self.0.changed()?)
    }

    /// Reports an identity again at the next call, because the caller could not handle its change.
    pub fn again(&mut self, identity: &Identity) {
        self.0.again(identity);
    }

    /// Whether forgotten content may still be in the store's files. The next process that opens the
    /// store for writing tries to erase it.
    pub fn erase_pending(&self) -> Result<bool, Error> {
        Ok(self.0.reader().erase_pending()?)
    }

    /// The identities of the store.
    pub fn identities(&self) -> Result<Vec<Identity>, Error> {
        let damaged = |hash: &str| Error::Damaged(format!("an identity is no hash: {hash}"));
        let all = self.0.reader().manifests()?;
        all.iter().map(|(hash, _)| Identity::parse(hash).ok_or_else(|| damaged(hash))).collect()
    }

    /// The checkpoint of an identity's log.
    pub(crate) fn checkpoint(&self, identity: &Identity) -> Result<Seq, Error> {
        Ok(self.0.reader().view(identity)?.view().progress()?.checkpoint)
    }
}
