//! Events that a producer signed: an envelope that was opened and found good.
//!
//! **Invariant:** an [`Endorsed`] exists only for an envelope that a registered producer signed
//! strictly, about events sent to this very identity.

use ipse_core::{Digest, Identity};
use ipse_ledger::dsse::{self, EnvelopeError};
use ipse_ledger::{NoteKey, Sent};

/// Why a producer's envelope counts for nothing.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignatureError {
    /// The envelope itself.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// It does not list events.
    #[error("the statement does not list events")]
    NoEvents,
    /// It is for somebody else.
    #[error("the statement is about another identity")]
    OtherIdentity,
    /// No key of a registered producer signed it.
    #[error("no registered producer signed it, or only one whose key was revoked")]
    UnknownProducer,
}

/// An envelope that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endorsed {
    pub(crate) envelope: String,
    pub(crate) signer: String,
    /// The digests of its events, sorted.
    digests: Vec<[u8; 32]>,
}

impl Endorsed {
    /// Opens an envelope that one of these producers signed.
    pub fn open(
        envelope: &str,
        identity: &Identity,
        producers: &[NoteKey],
    ) -> Result<Self, SignatureError> {
        let opened = dsse::open(envelope.as_bytes(), Sent::TYPE, producers);
        let (statement, signers) = opened.map_err(|error| match error {
            EnvelopeError::Untrusted => SignatureError::UnknownProducer,
            error => SignatureError::Envelope(error),
        })?;
        let sent = Sent::read(&statement).ok_or(SignatureError::NoEvents)?;
        if sent.identity != *identity {
            return Err(SignatureError::OtherIdentity);
        }
        let mut digests: Vec<[u8; 32]> = sent.events.iter().map(|(_, digest)| digest.0).collect();
        digests.sort_unstable();
        let signer = signers.first().map(ToString::to_string).unwrap_or_default();
        Ok(Endorsed { envelope: envelope.to_string(), signer, digests })
    }

    /// Whether it lists an event.
    pub fn covers(&self, digest: &Digest) -> bool {
        self.digests.binary_search(&digest.0).is_ok()
    }

    /// The verifier key of who signed it.
    pub fn signer(&self) -> &str {
        &self.signer
    }
}

/// The keys that may sign, of those that are registered.
pub fn active(producers: &[(String, bool)]) -> Vec<NoteKey> {
    let active = producers.iter().filter(|(_, revoked)| !revoked);
    active.filter_map(|(key, _)| NoteKey::parse(key)).collect()
}
