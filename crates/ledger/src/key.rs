//! Ed25519 keys with strict verification.
//!
//! **Invariants:** a public key of small order cannot be constructed. A signature that only a
//! lenient verifier accepts is rejected. A secret key is never printed.

use core::fmt;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

/// A public key for verification.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The key from 32 bytes. `None` if they are not a point, or if the key is weak.
    pub fn new(bytes: &[u8; 32]) -> Option<Self> {
        let key = VerifyingKey::from_bytes(bytes).ok()?;
        (!key.is_weak() && is_canonical(bytes)).then_some(PublicKey(key))
    }

    /// The 32 bytes of the key.
    pub fn bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Whether a signature over a message is valid under this key.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        signature.is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

/// Whether the coordinate in these bytes is below the field's prime, 2²⁵⁵ − 19. Other programs
/// would treat another encoding of the same point as another key.
fn is_canonical(bytes: &[u8; 32]) -> bool {
    let [low, middle @ .., high] = bytes;
    !(high & 0x7f == 0x7f && middle.iter().all(|byte| *byte == 0xff) && *low >= 0xed)
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ipse_core::hex::encode(&self.bytes()))
    }
}

/// A secret key for signing. Its memory is zeroed on drop.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key from a seed of 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        SecretKey(SigningKey::from_bytes(seed))
    }

    /// The public key.
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
