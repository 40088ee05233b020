//! Functions that answers share, for reading stored events.

use ipse_core::event::MAX_DEPTH;
use ipse_core::json_parse;

pub use ipse_consult::answer::{clean, consulted, counted, facts, proof, written};

/// The `data` of an event, as JSON.
pub(crate) fn data_of(canonical: &str) -> Option<String> {
    let value = json_parse::parse(canonical.as_bytes(), MAX_DEPTH).ok()?;
    value.as_object()?.get("data").map(written)
}

/// Reads a value from an event's `data`.
pub(crate) fn from_data<T>(
    canonical: &str,
    read: impl FnOnce(&ipse_core::json::Object<'_>) -> Option<T>,
) -> Option<T> {
    let value = json_parse::parse(canonical.as_bytes(), MAX_DEPTH).ok()?;
    read(value.as_object()?.get("data")?.as_object()?)
}
