//! The three gate files of an agent, and whether its manifest names them.
//!
//! **Invariants**
//! - Gates judge for an agent only if all three files hash to the fields of its manifest: a changed
//!   threshold is another file, and an agent that is bound to it is another agent.
//! - The bytes that are hashed are the bytes that are read.

use crate::{Error, Result};
use ipse_core::{hex, json_parse, sha256};
use ipse_gates::{FileError, Gates};
use std::sync::Arc;

/// The manifest's fields, in the order of [`GateFiles::new`].
pub const GATE_FIELDS: [&str; 3] = ["ecm_registry_hash", "policy_hash", "temperament_hash"];

/// Registry, policy and temperament: the files that judge intents.
#[derive(Clone)]
pub struct GateFiles {
    hashes: [String; 3],
    gates: Arc<Gates>,
}

impl GateFiles {
    /// Reads the texts of registry, policy and temperament.
    pub fn new(
        registry: &str,
        policy: &str,
        temperament: &str,
    ) -> std::result::Result<Self, Vec<FileError>> {
        let gates = Gates::new(registry, policy, temperament)?;
        let hash = |text: &str| hex::encode(&sha256(&[text.as_bytes()]));
        let hashes = [registry, policy, temperament].map(hash);
        Ok(GateFiles { hashes, gates: Arc::new(gates) })
    }

    /// The SHA-256 of each file, in the order of [`GATE_FIELDS`].
    pub fn hashes(&self) -> &[String; 3] {
        &self.hashes
    }

    /// The gates, if a manifest binds its agent to these very files.
    pub fn gates_of(&self, manifest: &str) -> Option<Arc<Gates>> {
        (fields_of(manifest)? == self.hashes).then(|| self.gates.clone())
    }

    /// The same with the reason if it does not.
    pub(crate) fn bound_to(&self, manifest: &str) -> Result<Arc<Gates>> {
        let fields = fields_of(manifest).unwrap_or_default();
        for ((field, named), hash) in GATE_FIELDS.iter().zip(&fields).zip(&self.hashes) {
            if named != hash {
                return Err(Error::ForeignGates { field });
            }
        }
        Ok(self.gates.clone())
    }
}

/// The hashes of the three files that a manifest names.
pub fn fields_of(manifest: &str) -> Option<[String; 3]> {
    let value = json_parse::parse(manifest.as_bytes(), 1).ok()?;
    let object = value.as_object()?;
    let [registry, policy, temperament] =
        GATE_FIELDS.map(|field| object.get(field)?.as_text().map(str::to_owned));
    Some([registry?, policy?, temperament?])
}
