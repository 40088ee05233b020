//! Scratch stores in which experiments run: real ones, as every user has them.
//!
//! **Invariants:** an experiment appends through the door, consolidates in passes, and reads facts
//! from the table that planners read; it has no other way to what an agent knows.

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
/// Passes come when an experiment asks for them.
const BY_HAND: Policy = Policy { every: u64::MAX, quiet: Duration::from_secs(u32::MAX as u64) };
/// Passes come with every append, in the same transaction.
const AT_ONCE: Policy = Policy { every: 1, ..BY_HAND };

/// A directory for scratch stores, and the clock and randomness that they use.
pub struct Lab<'l> {
    /// The directory of the stores; the caller that made it deletes it.
    pub directory: &'l Path,
    /// Clock and randomness, one for each log that is opened.
    pub host: &'l dyn Fn() -> Box<dyn Host>,
}

impl Lab<'_> {
    /// The store of a name, empty if it is new.
    pub fn store(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("db")
    }

    /// A store that is new, whatever else was asked under that name.
    pub fn fresh_store(&self, name: &str) -> PathBuf {
        let mut stores = (1_u64..).map(|number| self.store(&format!("{name}-{number}")));
        stores.find(|store| !store.exists()).expect("BUG: numbers do not end")
    }

    /// An agent of a name in a store, registered and open.
    pub fn agent(&self, store: &Path, name: &str) -> Result<Agent, Error> {
        self.agent_of(store, &manifest(name)?)
    }

    /// The same, consolidating all that it lives through at once.
    pub fn eager_agent(&self, store: &Path, name: &str) -> Result<Agent, Error> {
        self.open(store, &manifest(name)?, AT_ONCE)
    }

    /// An agent of a manifest.
    pub fn agent_of(&self, store: &Path, manifest: &Manifest) -> Result<Agent, Error> {
        self.open(store, manifest, BY_HAND)
    }

    fn open(&self, store: &Path, manifest: &Manifest, passes: Policy) -> Result<Agent, Error> {
        let store = Store::create(&Location::file(store))?;
        let identity = store.register(&manifest.canonical())?.identity;
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
    /// Who it is.
    pub identity: Identity,
    memory: Memory,
    host: Box<dyn Host>,
    store: Store,
}

impl Agent {
    /// Lets a line through the door.
    pub fn admit_one(&mut self, line: &[u8]) -> Result<Admitted, Refusal> {
        admit(line, Origin::Producer, || self.host.salt())
    }

    /// Lets lines through the door, all of them or none.
    pub fn admit(
        &mut self,
        lines: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Vec<Admitted>, Error> {
        lines.into_iter().map(|line| Ok(self.admit_one(line.as_ref())?)).collect()
    }

    /// Lives through events, which passed the door, and says what became of each. They are durable,
    /// and consolidated only by an agent that does so at once.
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

    /// Lives through lines and consolidates them.
    pub fn learn(&mut self, lines: &[String]) -> Result<(), Error> {
        let events = self.admit(lines)?;
        self.live(&events)?;
        self.consolidate().map(drop)
    }

    /// One pass; `None` if there is nothing new.
    pub fn consolidate(&self) -> Result<Option<PassReport>, Error> {
        Ok(self.memory.consolidate()?)
    }

    /// What it knows, as of its last pass: the table that planners read.
    pub fn known(&self) -> Arc<FactTable> {
        self.memory.known()
    }

    /// The bytes of all facts.
    pub fn snapshot(&self) -> Result<String, Error> {
        let facts = self.reader()?.view(&self.identity)?.view().facts()?;
        Ok(ipse_consolidate::snapshot(&facts))
    }

    /// The identity, computed again from the manifest in the store.
    pub fn recomputed_identity(&self) -> Result<Identity, Error> {
        let name = self.identity.to_string();
        let stored = self.reader()?.manifests()?.into_iter().find(|(other, _)| *other == name);
        let (_, canonical) = stored.ok_or(Error::NoManifest)?;
        Ok(Manifest::from_canonical(canonical.as_bytes())?.identity())
    }

    /// A connection that only reads.
    pub fn reader(&self) -> Result<Reader, Error> {
        Ok(self.store.reader()?)
    }
}
