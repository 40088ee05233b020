//! Events as producers send them, in canonical form with their salt, so that the log must hold
//! exactly the sent bytes.

use ipse_core::{hex, sha256};

pub(crate) const ONE: &str = "application/cloudevents+json";
pub(crate) const BATCH: &str = "application/cloudevents-batch+json";
pub(crate) const LINES: &str = "application/x-ndjson";

/// An attempt at a skill. Source, id and skill must need no escapes.
pub(crate) fn event(source: &str, id: &str, skill: &str, success: bool) -> String {
    let salt = hex::encode(&sha256(&[source.as_bytes(), b"/", id.as_bytes()])[..16]);
    format!(
        "{{\"data\":{{\"environment\":\"ward\",\"skill_id\":\"{skill}\",\"success\":{success},\
         \"target_class\":\"cup\"}},\"id\":\"{id}\",\"salt\":\"{salt}\",\"source\":\"{source}\",\
         \"specversion\":\"1.0\",\"time\":\"2026-05-06T10:00:00Z\",\"type\":\"execution_result\"}}"
    )
}

/// The digest of a canonical event, as the log stores it.
pub(crate) fn digest(event: &str) -> String {
    hex::encode(&sha256(&[event.as_bytes()]))
}

/// Events as a JSON array.
pub(crate) fn batch(events: &[String]) -> String {
    format!("[{}]", events.join(","))
}

/// Events as lines.
pub(crate) fn lines(events: &[String]) -> String {
    events.iter().flat_map(|event| [event, "\n"]).collect()
}

/// The ref of an event that [`event`] made.
pub(crate) fn ref_of(event: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(event).unwrap();
    let [source, id] = ["source", "id"].map(|name| json[name].as_str().unwrap().to_string());
    let hash = hex::encode(&sha256(&[source.as_bytes(), b"\n", id.as_bytes()]));
    format!("ev_{}", &hash[..32])
}
