//! Envelopes as they must stand in a bundle.
//!
//! **Invariant:** an envelope that nothing else covers has one form only: canonical JSON, no member
//! more, one signature.

use ipse_core::json::{Object, Value};
use ipse_core::json_parse;

/// The longest envelope: the most that a producer may sign at once stays below it.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Nesting of an envelope at most.
const DEPTH: usize = 16;

/// What is wrong with the form of an envelope that must be in its only one.
pub(crate) fn fault(bytes: &[u8]) -> Option<&'static str> {
    let Ok(value) = json_parse::parse(bytes, DEPTH) else { return Some("this is no JSON") };
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
        return Some("the envelope has other members than an envelope has");
    }
    match object.get("signatures") {
        Some(Value::Array(signatures)) if signatures.len() > 1 => {
            Some("more than one key signed it; one is the form")
        }
        Some(Value::Array(signatures)) => {
            let fits = |signature: &Value<'_>| {
                signature.as_object().is_some_and(|object| has(object, &["keyid", "sig"]))
            };
            (!signatures.iter().all(fits)).then_some("a signature has other members than it has")
        }
        _ => None,
    }
}
