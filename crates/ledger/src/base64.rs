//! Base 64 as RFC 4648 has it in section 4, and only in its one canonical form.

use alloc::string::String;
use alloc::vec::Vec;
use base64ct::{Base64, Encoding};

/// The text of bytes.
pub fn encode(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// `None` for anything but the text that `encode` gives: padding, and no stray bits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = Base64::decode_vec(text).ok()?;
    (encode(&bytes) == text).then_some(bytes)
}

pub(crate) fn decode_hash(text: &str) -> Option<[u8; 32]> {
    decode(text)?.try_into().ok()
}
