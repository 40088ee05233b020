//! Settings of an identity: retention, registered producers, the signature requirement, and how far
//! ahead an event may be dated.

use crate::read::known_log;
use crate::session::{Duty, Result};
use crate::store::Writing;
use crate::{Producer, Signatures, Store};
use ipse_core::Identity;

/// The handle that changes settings.
pub struct Settings {
    session: Writing,
}

impl Settings {
    pub(crate) fn open(store: &Store) -> Result<Self> {
        Ok(Settings { session: store.writing(Duty::Configure)? })
    }

    /// Sets how long the events of an identity are kept; `None` means permanently.
    pub fn set_retention(&mut self, identity: &Identity, retention: Option<&str>) -> Result<()> {
        self.session.set_retention(known_log(&*self.session, identity)?, retention)
    }

    /// Registers the verifier key of a producer for an identity, for these sources, or for any.
    /// Returns the stored key: one that is registered already does not change.
    pub fn put_producer(
        &mut self,
        identity: &Identity,
        key: &str,
        sources: Option<&[String]>,
    ) -> Result<Producer> {
        self.session.put_producer(known_log(&*self.session, identity)?, key, sources)
    }

    /// Revokes the keys of the producer with this name. Returns whether one was valid.
    pub fn revoke_producer(&mut self, identity: &Identity, name: &str) -> Result<bool> {
        self.session.revoke_producer(known_log(&*self.session, identity)?, name)
    }

    /// Sets the signature requirement of an identity.
    pub fn set_signatures(&mut self, identity: &Identity, signatures: Signatures) -> Result<()> {
        self.session.set_signatures(known_log(&*self.session, identity)?, signatures)
    }

    /// Sets how many hours ahead of the clock an event may be dated; `None` means any time.
    pub fn set_max_ahead(&mut self, identity: &Identity, hours: Option<u64>) -> Result<()> {
        self.session.set_max_ahead(known_log(&*self.session, identity)?, hours)
    }
}
