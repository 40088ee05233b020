//! The three gate files of an agent, and the check that its manifest names them.
//!
//! **Invariants**
//! - Gates judge intents of an agent only if all three files hash to the fields of its manifest. A
//!   changed threshold is another file, and an agent that is bound to it is another agent.
//! - The hashed bytes are the parsed bytes.

use crate::{Error, Result};
use ipse_core::{Digest, Identity, hex, json_parse, sha256};
use ipse_gates::{FileError, Gates};
use ipse_store::Store;
use std::sync::Arc;

pub use ipse_core::judge::GATE_FIELDS;

/// Registry, policy and temperament: the files that judge intents.
#[derive(Clone, Debug)]
pub struct GateFiles {
    hashes: [String; 3],
    texts: [String; 3],
    gates: Arc<Gates>,
}

impl GateFiles {
    /// Parses the texts of registry, policy and temperament.
    pub fn new(
        registry: &str,
        policy: &str,
        temperament: &str,
    ) -> std::result::Result<Self, Vec<FileError>> {
        let gates = Gates::new(registry, policy, temperament)?;
        let hash = |text: &str| hex::encode(&sha256(&[text.as_bytes()]));
        let hashes = [registry, policy, temperament].map(hash);
        let texts = [registry, policy, temperament].map(str::to_owned);
        Ok(GateFiles { hashes, texts, gates: Arc::new(gates) })
    }

    /// The texts of the files, in the order of [`GATE_FIELDS`].
    pub fn texts(&self) -> &[String; 3] {
        &self.texts
    }

    /// The SHA-256 of each file, in the order of [`GATE_FIELDS`].
    pub fn hashes(&self) -> &[String; 3] {
        &self.hashes
    }

    /// Returns the gates if the manifest names exactly these files.
    pub fn gates_of(&self, manifest: &str) -> Option<Arc<Gates>> {
        (fields_of(manifest)? == self.hashes).then(|| self.gates.clone())
    }

    /// Stores the files that the store lacks, so that bundles carry them.
    pub(crate) fn keep(&self, store: &Store, identity: &Identity) -> Result<()> {
        for text in &self.texts {
            let name = Digest(sha256(&[text.as_bytes()]));
            if store.reader()?.view(identity)?.view().artefact(&name)?.is_none() {
                store.put_artefact(identity, text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Like [`GateFiles::gates_of`], but returns the first field that differs as the error.
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

/// The hashes of the three gate files in a manifest.
pub fn fields_of(manifest: &str) -> Option<[String; 3]> {
    let value = json_parse::parse(manifest.as_bytes(), 1).ok()?;
    let object = value.as_object()?;
    let [registry, policy, temperament] =
        GATE_FIELDS.map(|field| object.get(field)?.as_text().map(str::to_owned));
    Some([registry?, policy?, temperament?])
}
