//! The validated envelope of a producer.
//!
//! **Invariant:** a [`SignedBatch`] exists only for an envelope with a strictly validated signature
//! of a registered producer, about events of this identity.

use ipse_core::{Digest, EventRef, Identity};
use ipse_door::{Refusal, Rule, printable};
use ipse_ledger::dsse::{self, EnvelopeError};
use ipse_ledger::{NoteKey, SentStatement};
use ipse_store::Producer;

/// Why the envelope of a producer is rejected.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SignatureError {
    /// The envelope itself is invalid.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The statement does not list events.
    #[error("the statement does not list events")]
    NoEvents,
    /// The statement is for another identity.
    #[error("the statement is about another identity")]
    OtherIdentity,
    /// No key of a registered producer signed it.
    #[error("it is not signed by a producer that is registered for this identity")]
    UnknownProducer,
    /// The producer's key was revoked.
    #[error("the key that signed it was revoked")]
    Revoked,
    /// The statement names an event that is neither in the batch nor in the log.
    #[error("it names {0}, which is not in the log and was not sent with it unchanged")]
    Incomplete(EventRef),
    /// The statement names a stored event that has other content or another salt.
    #[error("it names {0}, which is in the log with other content or another salt")]
    Contradicts(EventRef),
    /// The statement names an event that ipse wrote.
    #[error("it names {0}, which ipse wrote about itself")]
    NotAProducers(EventRef),
    /// The statement names a stored event from before the act that registered the key: the log
    /// would show a signature that the key could not give.
    #[error("it names {0}, which was in the log before its key was registered")]
    BeforeKey(EventRef),
    /// The statement names an event that is dated too far ahead.
    #[error("it names {0}, which is dated too far ahead of the clock here")]
    Ahead(EventRef),
    /// The statement names an event of this source, which its key may not use.
    #[error("it names {0} of source `{source}`, which its key may not use", source = printable(.1))]
    SourceNotAllowed(EventRef, String),
}

impl SignatureError {
    /// The refusal of the envelope, and of events that are refused with it.
    pub fn refusal(&self) -> Refusal {
        let rule = match self {
            SignatureError::Ahead(_) => Rule::TimeAhead,
            SignatureError::SourceNotAllowed(..) => Rule::SourceNotAllowed,
            _ => Rule::WrongSignature,
        };
        Refusal::new("signatures", rule, &self.to_string())
    }
}

/// A valid envelope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedBatch {
    pub(crate) envelope: String,
    pub(crate) signer: String,
    /// Whether its events are rejected if the envelope is rejected later.
    pub(crate) insists: bool,
    /// Its events by digest.
    events: Vec<([u8; 32], EventRef)>,
}

impl SignedBatch {
    /// Validates an envelope that one of these producers signed.
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

    /// The same batch, with events that are rejected if the envelope is rejected.
    #[must_use]
    pub fn insisting(self) -> Self {
        SignedBatch { insists: true, ..self }
    }

    /// Whether the statement lists the event with this digest.
    pub fn covers(&self, digest: &Digest) -> bool {
        self.events.binary_search_by_key(&digest.0, |(digest, _)| *digest).is_ok()
    }

    /// The names and digests of its events.
    pub fn events(&self) -> impl Iterator<Item = (&EventRef, &[u8; 32])> {
        self.events.iter().map(|(digest, name)| (name, digest))
    }

    /// The names of its events.
    pub fn names(&self) -> impl Iterator<Item = &EventRef> {
        self.events.iter().map(|(_, name)| name)
    }

    /// The verifier key of the signer.
    pub fn signer(&self) -> &str {
        &self.signer
    }
}

/// The keys of registered producers, including revoked ones: their earlier signatures stay valid.
pub fn registered(producers: &[Producer]) -> Vec<NoteKey> {
    producers.iter().filter_map(|producer| NoteKey::parse(&producer.key)).collect()
}
