//! Base 64 of RFC 4648 section 4, only in canonical form.

use alloc::string::String;
use alloc::vec::Vec;
use base64ct::{Base64, Encoding};

/// Encodes bytes.
pub fn encode(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Decodes a text. `None` unless `encode` gives exactly this text: with padding, no stray bits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = Base64::decode_vec(text).ok()?;
    (encode(&bytes) == text).then_some(bytes)
}

pub(crate) fn decode_hash(text: &str) -> Option<[u8; 32]> {
    decode(text)?.try_into().ok()
}
