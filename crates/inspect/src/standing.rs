//! Who an agent is, and how far its log has come.
//!
//! **Invariant:** whether the identity is unchanged is decided by the SHA-256 of the stored bytes
//! of the manifest, never by what the store says about itself.

use crate::answer::counted;
use crate::{Error, Page};
use ipse_core::json::{Members, Object, Value};
use ipse_core::{Identity, json_parse, sha256};
use ipse_engine::census;
use ipse_store::sqlite::Reader;

/// The widest value that stands beside its name.
const BESIDE: usize = 60;

/// An agent and its log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The identity under which the manifest was registered.
    pub identity: Identity,
    /// The stored bytes of the manifest.
    pub manifest: String,
    /// Events of producers that are there.
    pub events: u64,
    /// Events that were forgotten.
    pub forgotten: u64,
    /// Passes.
    pub passes: u64,
}

impl Standing {
    /// Reads it.
    pub fn read(reader: &Reader, identity: &Identity) -> Result<Self, Error> {
        let name = identity.to_string();
        let manifest = reader.manifests()?.into_iter().find(|(hash, _)| *hash == name);
        let manifest = manifest.map(|(_, canonical)| canonical).unwrap_or_default();
        let snapshot = reader.view(identity)?;
        let (census, passes) = (census(snapshot.view())?, snapshot.view().pass_count()?);
        let (events, forgotten) = (census.events, census.forgotten);
        Ok(Standing { identity: *identity, manifest, events, forgotten, passes })
    }

    /// The identity that the stored manifest gives now.
    pub fn hashed(&self) -> Identity {
        Identity(sha256(&[self.manifest.as_bytes()]))
    }

    /// Whether the stored manifest still gives the identity.
    pub fn is_unchanged(&self) -> bool {
        self.hashed() == self.identity
    }

    /// For programs. The manifest is null if the stored bytes are no JSON object.
    pub fn json(&self) -> Members {
        let manifest = parsed(&self.manifest).map_or("null", |_| self.manifest.as_str());
        Members::new()
            .text("identity_hash", &self.identity.to_string())
            .raw("manifest", manifest)
            .raw("events", self.events)
            .raw("forgotten", self.forgotten)
            .raw("passes", self.passes)
            .raw("unchanged", self.is_unchanged())
    }

    /// For people.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        page.line(format!("identity\n  {}", self.identity));
        let manifest = parsed(&self.manifest).unwrap_or_default();
        if manifest.is_empty() {
            page.line("the stored manifest cannot be read");
        }
        for (name, value) in manifest.iter() {
            let text = value.as_text().unwrap_or("(cannot be read)");
            // A hash beside its name would not fit eighty columns.
            match text.len() > BESIDE {
                true => page.line(format!("{name}\n  {text}")),
                false => page.line(format!("{name:<16}{text}")),
            }
        }
        let (events, passes) = (counted(self.events, "event"), counted(self.passes, "pass"));
        let forgotten = match self.forgotten {
            0 => String::new(),
            n => format!(", {n} forgotten"),
        };
        page.line(format!("since then      {events}, {passes}{forgotten}"));
        match self.is_unchanged() {
            true => page.line("the identity is unchanged"),
            false => {
                let now = self.hashed();
                page.line(format!("the identity is CHANGED: the stored manifest gives\n  {now}"));
            }
        }
        page
    }
}

/// The members of a manifest, which stand in the order of its canonical form.
fn parsed(manifest: &str) -> Option<Object<'_>> {
    match json_parse::parse(manifest.as_bytes(), 1).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
