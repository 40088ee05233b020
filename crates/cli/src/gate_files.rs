//! Gate files: the three of a server, read once, and the registry of a single command. Both are
//! compared with the manifests of the agents.
//!
//! **Invariants**
//! - Gates judge for an agent only if all three files hash to the fields of its manifest. A file
//!   with a changed threshold has another hash, and an agent bound to it is another agent.
//! - The bytes that are hashed are the bytes that are read.

use crate::input::read_file;
use crate::terminal::shown;
use anyhow::{Context as _, bail};
use ipse::{GATE_FIELDS, gate_fields_of};
use ipse_core::judge::GATE_FILES;
use ipse_core::{Digest, Identity, hex, sha256};
use ipse_gates::{Gates, MAX_FILE_BYTES, Registry};
use ipse_store::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The gate files of a server, with their paths.
pub(crate) struct GateFiles {
    paths: [PathBuf; 3],
    files: ipse::GateFiles,
}

impl GateFiles {
    /// Reads registry, policy and temperament.
    pub(crate) fn read(paths: &[PathBuf; 3]) -> anyhow::Result<Self> {
        let [registry, policy, temperament] = paths.each_ref().map(|path| text(path));
        let files = ipse::GateFiles::new(&registry?, &policy?, &temperament?);
        let files = files.map_err(|errors| {
            let line = |error: &ipse_gates::FileError| {
                let path = &paths[error.file as usize];
                format!("\n  {}: {error}", path.display())
            };
            let lines: String = errors.iter().map(line).collect();
            anyhow::anyhow!("the gate files are not valid:{lines}")
        })?;
        Ok(GateFiles { paths: paths.clone(), files })
    }

    /// Returns the gates if a manifest binds its agent to these files.
    pub(crate) fn gates_of(&self, manifest: &str) -> Option<Arc<Gates>> {
        self.files.gates_of(manifest)
    }

    /// Stores the files for every agent that is bound to them, so that its bundles carry them.
    /// Returns the number of stored files.
    pub(crate) fn store(&self, store: &Store) -> anyhow::Result<u64> {
        let mut stored = 0;
        for (hash, manifest) in store.reader()?.manifests()? {
            let Some(identity) =
                Identity::parse(&hash).filter(|_| self.gates_of(&manifest).is_some())
            else {
                continue;
            };
            for text in self.files.texts() {
                stored += u64::from(put(store, &identity, text.as_bytes())?);
            }
        }
        Ok(stored)
    }

    /// Counts the manifests that bind their agents to these files; an error if none does.
    pub(crate) fn bound(&self, manifests: &[(String, String)]) -> anyhow::Result<usize> {
        let bound = manifests.iter().filter(|(_, manifest)| self.gates_of(manifest).is_some());
        let bound = bound.count();
        if bound > 0 {
            return Ok(bound);
        }
        let named: Vec<[String; 3]> =
            manifests.iter().filter_map(|(_, manifest)| gate_fields_of(manifest)).collect();
        for (place, field) in GATE_FIELDS.iter().enumerate() {
            let (path, hash) = (self.paths[place].display(), &self.files.hashes()[place]);
            let others: Vec<&str> = named.iter().map(|fields| &*fields[place]).collect();
            match others[..] {
                _ if others.contains(&&**hash) => {}
                [other] => bail!(
                    "{path} is not the file that the agent is bound to: its SHA-256 is {hash}, \
                     and the manifest's {field} is {other}"
                ),
                _ => bail!(
                    "no agent of this store is bound to {path}: its SHA-256 is {hash}, and no \
                     manifest has that as its {field}"
                ),
            }
        }
        bail!("no agent of this store is bound to all three files together")
    }
}

/// Stores a file that a manifest names, unless it is stored.
pub(crate) fn put(store: &Store, identity: &Identity, file: &[u8]) -> anyhow::Result<bool> {
    let name = Digest(sha256(&[file]));
    if store.reader()?.view(identity)?.view().artefact(&name)?.is_some() {
        return Ok(false);
    }
    Ok(store.put_artefact(identity, file)?)
}

/// The gate files of a directory that are there, under their usual names.
pub(crate) fn in_directory(directory: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let paths = GATE_FILES.map(|name| directory.join(name));
    let there = paths.iter().filter(|path| !matches!(path.try_exists(), Ok(false)));
    let files = there.map(|path| text(path).map(String::into_bytes));
    let files: Vec<Vec<u8>> = files.collect::<anyhow::Result<_>>()?;
    if files.is_empty() {
        bail!("there is none of {} in {}", GATE_FILES.join(", "), shown(directory));
    }
    Ok(files)
}

/// Reads the text of a gate file.
pub(crate) fn text(path: &Path) -> anyhow::Result<String> {
    let name = shown(path);
    let bytes = read_file(path, MAX_FILE_BYTES as u64).with_context(|| {
        format!("could not read {name} (`ipse gates new KIND` prints an example)")
    })?;
    String::from_utf8(bytes).ok().with_context(|| format!("{name} is not UTF-8 text"))
}

/// Reads a registry, and checks that a manifest has its hash.
pub(crate) fn registry(path: &Path, manifest: &str) -> anyhow::Result<Registry> {
    let (text, name) = (text(path)?, path.display());
    let hash = hex::encode(&sha256(&[text.as_bytes()]));
    let [named, ..] = gate_fields_of(manifest).unwrap_or_default();
    if named != hash {
        let field = GATE_FIELDS[0];
        bail!(
            "{name} is not the file that the agent is bound to: its SHA-256 is {hash}, and the \
             manifest's {field} is {named}"
        );
    }
    Registry::parse(&text).map_err(|errors| {
        let lines: String = errors.iter().map(|error| format!("\n  {name}: {error}")).collect();
        anyhow::anyhow!("the registry cannot be read:{lines}")
    })
}
