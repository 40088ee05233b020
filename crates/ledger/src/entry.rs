//! Entries: the part of an event that is in the tree and stays when the event is forgotten.
//!
//! **Invariant:** an entry is RFC 8785 JSON with five members. Other bytes are rejected.

use crate::tree::{Hash, entry_hash};
use alloc::string::{String, ToString};
use core::fmt::Write;
use ipse_core::json::{Value, write_text};
use ipse_core::{Digest, EventRef, Seq, Time, hex, json_parse};

/// The longest type of an event.
const MAX_TYPE_BYTES: usize = 256;

/// One entry of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The position in the log.
    pub seq: Seq,
    /// The name of the event.
    pub event_ref: EventRef,
    /// The time of the event.
    pub time: Time,
    /// The type of the event.
    pub event_type: String,
    /// The SHA-256 of the canonical bytes of the event, including the salt.
    pub digest: Digest,
}

/// Appends the canonical bytes of an entry, from its parts.
pub fn write_entry(
    seq: Seq,
    event_ref: &EventRef,
    time: Time,
    event_type: &str,
    digest: &Digest,
    out: &mut String,
) {
    out.push_str("{\"digest\":\"");
    hex::write(&digest.0, out);
    out.push_str("\",\"event_ref\":\"ev_");
    hex::write(&event_ref.0, out);
    // Writing to a string cannot fail.
    let _ = write!(out, "\",\"seq\":{seq},\"time\":\"{time}\",\"type\":");
    write_text(event_type, out);
    out.push('}');
}

impl Entry {
    /// Appends the canonical bytes.
    pub fn write(&self, out: &mut String) {
        let Entry { seq, event_ref, time, event_type, digest } = self;
        write_entry(*seq, event_ref, *time, event_type, digest, out);
    }

    /// The canonical bytes.
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(256);
        self.write(&mut text);
        text
    }

    /// The leaf hash of the entry.
    pub fn hash(&self) -> Hash {
        entry_hash(self.canonical().as_bytes())
    }

    /// Reads canonical bytes. Rejects any other form.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let value = json_parse::parse(bytes, 1).ok()?;
        let object = value.as_object()?;
        let text = |name: &str| object.get(name).and_then(Value::as_text);
        let entry = Entry {
            seq: Seq(object.get("seq")?.as_count()?),
            event_ref: EventRef::parse(text("event_ref")?)?,
            time: Time::parse(text("time")?).ok()?,
            event_type: text("type")?.to_string(),
            digest: Digest(hex::decode(text("digest")?)?),
        };
        // The door's rule for types. A forgotten event has nothing else left to compare with.
        let type_fits = (1..=MAX_TYPE_BYTES).contains(&entry.event_type.len())
            && !entry.event_type.chars().any(char::is_control);
        (type_fits && entry.canonical().as_bytes() == bytes).then_some(entry)
    }
}
