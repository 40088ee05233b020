//! Files that a manifest names by their SHA-256, stored so that a bundle can carry them.
//!
//! **Invariants:** a stored file hashes to its name, never changes and is never removed. The
//! connection that stores files can do nothing else.

use crate::read::{View, known_log};
use crate::session::{Duty, Result};
use crate::{Error, Store};
use ipse_core::{Digest, Identity, sha256};

/// The largest stored file: the limit of a gate file.
pub const MAX_ARTEFACT_BYTES: usize = 1 << 20;

impl Store {
    /// Stores the bytes of a file for an identity, durably. Returns whether it is new.
    pub fn put_artefact(&self, identity: &Identity, bytes: &[u8]) -> Result<bool> {
        if bytes.len() > MAX_ARTEFACT_BYTES {
            return Err(Error::Limit("a stored file has at most 1048576 bytes"));
        }
        let session = self.writing(Duty::Artefacts)?;
        let log = known_log(&*session, identity)?;
        session.put_artefact(log, &Digest(sha256(&[bytes])), bytes)
    }
}

impl View<'_> {
    /// The bytes of a stored file by its SHA-256.
    pub fn artefact(&self, sha256: &Digest) -> Result<Option<Vec<u8>>> {
        self.session.artefact(self.log, sha256)
    }

    /// The names of the stored files, in the order in which they were stored. A name of another
    /// length is damage.
    pub fn artefacts(&self) -> Result<Vec<Vec<u8>>> {
        self.session.artefacts(self.log)
    }
}
