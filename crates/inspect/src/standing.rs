//! The identity of an agent, and the counts of its log.
//!
//! **Invariant:** the identity is unchanged only if the SHA-256 of the stored manifest bytes says
//! so. No other stored value counts.

use crate::answer::counted;
use crate::{Error, Page};
use ipse_core::json::{Members, Object, Value, list, quoted};
use ipse_core::{Identity, json_parse, sha256};
use ipse_engine::census;
use ipse_store::Reader;

/// The widest value that is printed on the line of its name.
const BESIDE: usize = 60;

/// An agent and its log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The identity under which the manifest was registered.
    pub identity: Identity,
    /// The stored bytes of the manifest.
    pub manifest: String,
    /// The number of producers' events, without forgotten ones, passes, `forget` events, intents
    /// and decisions.
    pub events: u64,
    /// The number of forgotten events, including intents.
    pub forgotten: u64,
    /// The number of pass records.
    pub passes: u64,
}

impl Standing {
    /// Reads the manifest and the counts from a store.
    pub fn read(reader: &Reader, identity: &Identity) -> Result<Self, Error> {
        let name = identity.to_string();
        let manifest = reader.manifests()?.into_iter().find(|(hash, _)| *hash == name);
        let manifest = manifest.map(|(_, canonical)| canonical).unwrap_or_default();
        let snapshot = reader.view(identity)?;
        let (census, passes) = (census(snapshot.view())?, snapshot.view().pass_count()?);
        let (events, forgotten) = (census.events, census.forgotten);
        Ok(Standing { identity: *identity, manifest, events, forgotten, passes })
    }

    /// The identity computed from the stored manifest.
    pub fn hashed(&self) -> Identity {
        Identity(sha256(&[self.manifest.as_bytes()]))
    }

    /// Whether the stored manifest hashes to the identity.
    pub fn is_unchanged(&self) -> bool {
        self.hashed() == self.identity
    }

    /// The standing as JSON members. The manifest is null if the bytes are not a JSON object.
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

    /// The standing as text. With a comparison, the last line is its result.
    pub fn page(&self, against: Option<&ManifestComparison>) -> Page {
        let mut page = Page::new();
        page.line(format!("identity\n  {}", self.identity));
        let manifest = parsed(&self.manifest).unwrap_or_default();
        if manifest.is_empty() {
            page.line("the stored manifest cannot be read");
        }
        for (name, value) in manifest.iter() {
            let text = value.as_text().unwrap_or("(cannot be read)");
            // A hash on the line of its name would not fit in eighty columns.
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
        page.line(format!("in the log      {events}, {passes}{forgotten}"));
        if !self.is_unchanged() {
            let now = self.hashed();
            page.line(format!("the identity is CHANGED: the stored manifest gives\n  {now}"));
        } else if against.is_none() {
            page.line("the identity is unchanged");
        }
        if let Some(file) = against {
            file.describe(&mut page);
        }
        page
    }

    /// Compares the stored manifest with the canonical bytes of another one, field by field.
    pub fn against(&self, canonical: &str) -> ManifestComparison {
        let (stored, other) = (parsed(&self.manifest), parsed(canonical));
        let (stored, other) = (stored.unwrap_or_default(), other.unwrap_or_default());
        let text = |of: &Object<'_>, name: &str| {
            of.get(name).and_then(Value::as_text).unwrap_or("(cannot be read)").to_owned()
        };
        let differs = other.iter().filter(|(name, value)| stored.get(name) != Some(*value));
        let differs = differs.map(|(name, _)| Difference {
            field: name.to_owned(),
            stored: text(&stored, name),
            file: text(&other, name),
        });
        let identity = Identity(sha256(&[canonical.as_bytes()]));
        ManifestComparison { identity, same: identity == self.identity, differs: differs.collect() }
    }
}

/// A manifest file compared with the stored manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestComparison {
    /// The identity of the file.
    pub identity: Identity,
    /// Whether it equals the stored identity.
    pub same: bool,
    /// The fields that differ, in the order of their names.
    pub differs: Vec<Difference>,
}

/// One field of a manifest that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The name of the field.
    pub field: String,
    /// The value in the store.
    pub stored: String,
    /// The value in the file.
    pub file: String,
}

impl ManifestComparison {
    /// The names of the fields that differ, as a JSON list.
    pub fn fields(&self) -> String {
        list(self.differs.iter().map(|difference| quoted(&difference.field)))
    }

    /// Writes the fields that differ, then the result on the last line.
    fn describe(&self, page: &mut Page) {
        for Difference { field, stored, file } in &self.differs {
            page.line(format!("{field} differs\n  store: {stored}\n  file:  {file}"));
        }
        match self.same {
            true => page.line("the manifest file gives the same identity"),
            false => page.line(format!(
                "the manifest file is another agent: it gives the identity\n  {}",
                self.identity
            )),
        }
    }
}

/// The members of a manifest, in canonical order.
fn parsed(manifest: &str) -> Option<Object<'_>> {
    match json_parse::parse(manifest.as_bytes(), 1).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
