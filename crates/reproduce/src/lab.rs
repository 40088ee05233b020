//! Scratch stores in which experiments run. They are real stores.
//!
//! **Invariants:** an experiment appends through the door, runs passes, and reads facts from the
//! table that planners read. It has no other access to an agent's facts.

use crate::Error;
use ipse_core::{Admitted, Identity};
use ipse_door::{Origin, Refusal, admit};
use ipse_engine::{FactTable, Host, Memory, PassReport, Policy};
use ipse_manifest::{Manifest, ManifestError};
use ipse_store::{Appended, Location, Reader, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Events that are appended in one transaction.
pub(crate) const BATCH: usize = 4096;
/// A pass runs only when an experiment requests it.
const BY_HAND: Policy = Policy { every: u64::MAX, quiet: Duration::from_secs(u32::MAX as u64) };
/// A pass runs with every append, in the same transaction.
const AT_ONCE: Policy = Policy { every: 1, ..BY_HAND };

/// A directory for scratch stores, and the clock and randomness that they use.
pub struct Lab<'l> {
    /// The directory of the stores. The caller creates and deletes it.
    pub directory: &'l Path,
    /// Creates clock and randomness for each opened log.
    pub host: &'l dyn Fn() -> Box<dyn Host>,
}

impl Lab<'_> {
    /// The path of the store with a name.
    pub fn store(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("db")
    }

    /// The path of a new store; earlier calls with the same name have other paths.
    pub fn fresh_store(&self, name: &str) -> PathBuf {
        let mut stores = (1_u64..).map(|number| self.store(&format!("{name}-{number}")));
        stores.find(|store| !store.exists()).expect("BUG: numbers do not end")
    }

    /// Registers and opens an agent with a name in a store.
    pub fn agent(&self, store: &Path, name: &str) -> Result<Agent, Error> {
        self.agent_of(store, &manifest(name)?)
    }

    /// Like [`Lab::agent`], with a pass after every append.
    pub fn eager_agent(&self, store: &Path, name: &str) -> Result<Agent, Error> {
        self.open(store, &manifest(name)?, AT_ONCE)
    }

    /// Registers and opens an agent with a manifest.
    pub fn agent_of(&self, store: &Path, manifest: &Manifest) -> Result<Agent, Error> {
        self.open(store, manifest, BY_HAND)
    }

    fn open(&self, store: &Path, manifest: &Manifest, passes: Policy) -> Result<Agent, Error> {
        let store = Store::create(&Location::file(store))?;
        let identity = store.register(&manifest.canonical())?.identity;
        // An experiment takes events of any time, whatever the clock of this machine says.
        store.settings()?.set_max_ahead(&identity, None)?;
        let memory = Memory::open(&store, identity, passes, (self.host)(), None)?;
        Ok(Agent { identity, memory, host: (self.host)(), store })
    }
}

/// The manifest of an experiment's agent.
pub(crate) fn manifest(name: &str) -> Result<Manifest, ManifestError> {
    Manifest::new(|field| {
        Some(match field {
            "agent_id" => name.to_owned(),
            "commissioned_at" => "2026-05-01T00:00:00Z".to_owned(),
            hash if hash.ends_with("_hash") => "0".repeat(64),
            _ => "ipse reproduce".to_owned(),
        })
    })
}

/// One agent of an experiment.
pub struct Agent {
    /// The identity of the agent.
    pub identity: Identity,
    memory: Memory,
    host: Box<dyn Host>,
    store: Store,
}

impl Agent {
    /// Validates one line at the door.
    pub fn admit_one(&mut self, line: &[u8]) -> Result<Admitted, Refusal> {
        admit(line, Origin::Producer, || self.host.salt())
    }

    /// Validates lines at the door. The first rejected line is an error.
    pub fn admit(
        &mut self,
        lines: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Vec<Admitted>, Error> {
        lines.into_iter().map(|line| Ok(self.admit_one(line.as_ref())?)).collect()
    }

    /// Appends admitted events durably and returns the result for each. Only an agent of
    /// [`Lab::eager_agent`] runs a pass here.
    pub fn live(&self, events: &[Admitted]) -> Result<Vec<Appended>, Error> {
        let mut appended = Vec::with_capacity(events.len());
        for batch in events.chunks(BATCH) {
            let done = self.memory.append_all(batch)?;
            if let Some(error) = done.pass_error.or(self.memory.take_pass_error()?) {
                return Err(error.into());
            }
            appended.extend(done.appended);
        }
        Ok(appended)
    }

    /// Appends lines and runs a pass.
    pub fn learn(&mut self, lines: &[String]) -> Result<(), Error> {
        let events = self.admit(lines)?;
        self.live(&events)?;
        self.consolidate().map(drop)
    }

    /// Runs one pass; `None` if there are no new events.
    pub fn consolidate(&self) -> Result<Option<PassReport>, Error> {
        Ok(self.memory.consolidate()?)
    }

    /// The facts as of the last pass: the table that planners read.
    pub fn known(&self) -> Arc<FactTable> {
        self.memory.known()
    }

    /// The canonical bytes of all facts.
    pub fn snapshot(&self) -> Result<String, Error> {
        let facts = self.reader()?.view(&self.identity)?.view().facts()?;
        Ok(ipse_consolidate::snapshot(&facts))
    }

    /// The identity, recomputed from the manifest in the store.
    pub fn recomputed_identity(&self) -> Result<Identity, Error> {
        let name = self.identity.to_string();
        let stored = self.reader()?.manifests()?.into_iter().find(|(other, _)| *other == name);
        let (_, canonical) = stored.ok_or(Error::NoManifest)?;
        Ok(Manifest::from_canonical(canonical.as_bytes())?.identity())
    }

    /// A read-only connection.
    pub fn reader(&self) -> Result<Reader, Error> {
        Ok(self.store.reader()?)
    }
}
