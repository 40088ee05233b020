//! Events that a producer signed: an envelope that was opened and found good.
//!
//! **Invariant:** an [`SignedBatch`] exists only for an envelope that a registered producer signed
//! strictly, about events sent to this very identity.

use ipse_core::{Digest, EventRef, Identity};
use ipse_ledger::dsse::{self, EnvelopeError};
use ipse_ledger::{NoteKey, SentStatement};

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
    #[error("no producer that is registered for this identity signed it")]
    UnknownProducer,
    /// The producer's key was revoked.
    #[error("the key that signed it was revoked")]
    Revoked,
    /// It speaks of an event that is nowhere.
    #[error("it names {0}, which did not come with it as it was signed, and is not in the log")]
    Incomplete(EventRef),
    /// It speaks of an event that was sent before, with other content or another salt.
    #[error("it names {0}, which is in the log with other content or another salt")]
    Contradicts(EventRef),
    /// It speaks of an event that ipse wrote.
    #[error("it names {0}, which ipse wrote about itself")]
    NotAProducers(EventRef),
}

/// An envelope that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedBatch {
    pub(crate) envelope: String,
    pub(crate) signer: String,
    /// Whether its events are not wanted if it counts for nothing after all.
    pub(crate) insists: bool,
    /// Its events by digest.
    events: Vec<([u8; 32], EventRef)>,
}

impl SignedBatch {
    /// Opens an envelope that one of these producers signed.
    pub fn open(
        envelope: &str,
        identity: &Identity,
        producers: &[NoteKey],
    ) -> Result<Self, SignatureError> {
        let opened = dsse::open_any_form(envelope.as_bytes(), SentStatement::TYPE, producers);
        let (statement, signers) = opened.map_err(|error| match error {
            EnvelopeError::Untrusted | EnvelopeError::OtherKey => SignatureError::UnknownProducer,
            error => SignatureError::Envelope(error),
        })?;
        let sent = SentStatement::read(&statement).ok_or(SignatureError::NoEvents)?;
        if sent.identity != *identity {
            return Err(SignatureError::OtherIdentity);
        }
        let by_digest = |(name, digest): &(EventRef, Digest)| (digest.0, *name);
        let mut events: Vec<_> = sent.events.iter().map(by_digest).collect();
        events.sort_unstable();
        let signer = signers.first().map(ToString::to_string).unwrap_or_default();
        Ok(SignedBatch { envelope: envelope.to_string(), signer, insists: false, events })
    }

    /// The same, with events that are not let in unsigned.
    #[must_use]
    pub fn insisting(self) -> Self {
        SignedBatch { insists: true, ..self }
    }

    /// Whether it lists an event.
    pub fn covers(&self, digest: &Digest) -> bool {
        self.events.binary_search_by_key(&digest.0, |(digest, _)| *digest).is_ok()
    }

    /// Its events: names and digests.
    pub fn events(&self) -> impl Iterator<Item = (&EventRef, &[u8; 32])> {
        self.events.iter().map(|(digest, name)| (name, digest))
    }

    /// The names of its events.
    pub fn names(&self) -> impl Iterator<Item = &EventRef> {
        self.events.iter().map(|(_, name)| name)
    }

    /// The verifier key of who signed it.
    pub fn signer(&self) -> &str {
        &self.signer
    }
}

/// The keys of registered producers, revoked ones included: what they signed before stays signed.
pub fn registered(producers: &[(String, bool)]) -> Vec<NoteKey> {
    producers.iter().filter_map(|(key, _)| NoteKey::parse(key)).collect()
}
