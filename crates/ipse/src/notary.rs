//! The notary of a store: signs with the log's key and keeps the last tree head next to it.

use crate::keys::{KeyDirectory, KeyError};
use ipse_core::{Identity, Time};
use ipse_engine::Notary;
use ipse_ledger::{Note, NoteSigner};
use std::any::Any;
use std::io;
use std::time::UNIX_EPOCH;

/// Signs the tree heads of one log with the key in a directory, and stores the last one there.
pub struct DirectoryNotary {
    keys: KeyDirectory,
    identity: Identity,
    signer: NoteSigner,
}

impl DirectoryNotary {
    /// Reads the log's key. If `log.vkey` exists, the key must match it, so that readers who have
    /// `log.vkey` accept the signatures. A `log.vkey` that cannot be read is an error.
    pub fn open(
        keys: &KeyDirectory,
        identity: &Identity,
        passphrase: Option<&str>,
    ) -> Result<Self, KeyError> {
        let signer = keys.log_signer(identity, passphrase)?;
        Ok(DirectoryNotary { keys: keys.clone(), identity: *identity, signer })
    }
}

impl Notary for DirectoryNotary {
    fn lock(&self) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(self.keys.lock()?))
    }

    fn last(&self) -> io::Result<Option<String>> {
        Ok(self.keys.last_head(&self.identity)?.map(|(note, _)| note))
    }

    fn last_time(&self) -> Option<Time> {
        let (_, time) = self.keys.last_head(&self.identity).ok()??;
        let micros = time.duration_since(UNIX_EPOCH).ok()?.as_micros();
        Time::from_micros(i64::try_from(micros).ok()?)
    }

    fn sign(&self, text: &str) -> Option<String> {
        self.signer.sign(text)
    }

    fn signed(&self, note: &str) -> bool {
        Note::parse(note).is_ok_and(|note| note.verify(&[self.signer.public()]).is_ok())
    }

    fn keep(&self, note: &str) -> io::Result<()> {
        self.keys.keep_head(&self.identity, note)
    }
}
