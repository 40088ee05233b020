//! Watching a store for what others do to it.
//!
//! **Invariant:** while nobody writes, watching costs one look at a number, however many logs the
//! store has.

use crate::Error;
use ipse_core::{Identity, Seq};
use ipse_store::sqlite::Reader;
use std::path::Path;

/// A store that is watched.
pub struct Watch {
    reader: Reader,
    seen: Option<i64>,
}

impl Watch {
    /// Begins to watch.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Watch { reader: Reader::open(path)?, seen: None })
    }

    /// Whether anybody wrote since this was asked last, or it is asked for the first time; an error
    /// if the store was removed or replaced.
    pub fn moved(&mut self) -> Result<bool, Error> {
        let version = Some(self.reader.version()?);
        Ok(std::mem::replace(&mut self.seen, version) != version)
    }

    /// Whether what was forgotten may still be in the store's files. Whoever opens the store for
    /// writing tries to erase it.
    pub fn erase_pending(&self) -> Result<bool, Error> {
        Ok(self.reader.erase_pending()?)
    }

    /// The identities of the store.
    pub fn identities(&self) -> Result<Vec<Identity>, Error> {
        let damaged = |hash: &str| Error::Damaged(format!("an identity is no hash: {hash}"));
        let all = self.reader.manifests()?;
        all.iter().map(|(hash, _)| Identity::parse(hash).ok_or_else(|| damaged(hash))).collect()
    }

    /// The checkpoint of an identity's log.
    pub(crate) fn checkpoint(&self, identity: &Identity) -> Result<Seq, Error> {
        Ok(self.reader.view(identity)?.view().progress()?.checkpoint)
    }
}
