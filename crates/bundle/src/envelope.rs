//! The form of envelopes in a bundle.
//!
//! **Invariant:** an envelope that no hash covers has only one valid form: canonical JSON, no
//! additional members, one signature.

use ipse_core::json::{Object, Value};
use ipse_core::json_parse;

/// The longest envelope. The largest statement that a producer may sign is smaller.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// The maximum nesting of an envelope.
const DEPTH: usize = 16;

/// Checks the form of an envelope; returns the error.
pub(crate) fn fault(bytes: &[u8]) -> Option<&'static str> {
    let Ok(value) = json_parse::parse(bytes, DEPTH) else { return Some("this is not JSON") };
    let mut canonical = String::new();
    value.write(&mut canonical);
    if canonical.as_bytes() != bytes {
        return Some("the envelope is not in canonical form");
    }
    let object = value.as_object()?;
    let has = |object: &Object<'_>, names: &[&str]| {
        object.iter().map(|(name, _)| name).eq(names.iter().copied())
    };
    if !has(object, &["payload", "payloadType", "signatures"]) {
        return Some("the envelope has missing or unknown members");
    }
    match object.get("signatures") {
        Some(Value::Array(signatures)) if signatures.len() > 1 => {
            Some("more than one key signed it; exactly one is allowed")
        }
        Some(Value::Array(signatures)) => {
            let fits = |signature: &Value<'_>| {
                signature.as_object().is_some_and(|object| has(object, &["keyid", "sig"]))
            };
            (!signatures.iter().all(fits)).then_some("a signature has missing or unknown members")
        }
        _ => None,
    }
}
