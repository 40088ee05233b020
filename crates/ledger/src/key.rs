//! Ed25519 keys, strict and nothing else.
//!
//! **Invariants:** a public key of small order cannot be made; a signature that only a lenient
//! verifier accepts is refused; a secret key is never printed.

use core::fmt;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

/// A key to verify with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The key of 32 bytes; `None` if they are no point, or one under which anybody can sign.
    pub fn new(bytes: &[u8; 32]) -> Option<Self> {
        let key = VerifyingKey::from_bytes(bytes).ok()?;
        (!key.is_weak() && is_canonical(bytes)).then_some(PublicKey(key))
    }

    /// Its 32 bytes.
    pub fn bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Whether a signature over a message is this key's.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        signature.is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

/// Whether the coordinate in these bytes is below the field's prime, 2²⁵⁵ − 19. Another encoding of
/// the same point would be another key to everybody else.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    let [low, middle @ .., high] = bytes;
    !(high & 0x7f == 0x7f && middle.iter().all(|byte| *byte == 0xff) && *low >= 0xed)
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ipse_core::hex::encode(&self.bytes()))
    }
}

/// A key to sign with; forgotten by memory when it is dropped.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key of a seed of 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        SecretKey(SigningKey::from_bytes(seed))
    }

    /// The other half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey of {:?}", self.public())
    }
}
