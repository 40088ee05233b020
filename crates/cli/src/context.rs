//! The context of a command: the store, its keys, and the selected identity.
//!
//! **Invariant:** a log is opened for writing only if it continues the last tree head in the key
//! directory.

use crate::args::Args;
use crate::erasure::note_pending_erase;
use crate::terminal::Terminal;
use crate::tree_heads::check_last_head;
use anyhow::{Context as _, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use ipse::SystemHost;
use ipse::keys::KeyDirectory;
use ipse_core::{Identity, Time};
use ipse_engine::{Host, Log, Watch};
use ipse_store::{Location, Migrated, Patience, Reader, Store};
use std::cell::OnceCell;
use std::path::PathBuf;

/// The shortest prefix of an identity. A shorter one could easily match another identity.
const MIN_PREFIX: usize = 4;

pub(crate) struct Context {
    /// Path or address of the store.
    pub(crate) location: Location,
    /// The store, after it was opened.
    opened: OnceCell<Store>,
    keys: Option<PathBuf>,
    prefix: Option<String>,
    pub(crate) json: bool,
    /// The arguments from the command line and the environment.
    matches: Option<ArgMatches>,
}

impl Context {
    pub(crate) fn new(args: &Args, matches: ArgMatches) -> Self {
        Context {
            location: Location::file(&args.store),
            opened: OnceCell::new(),
            keys: args.key_dir.clone(),
            prefix: args.identity.clone(),
            json: args.json,
            matches: Some(matches),
        }
    }

    /// The source of an argument of the command; `None` if it was not given.
    pub(crate) fn given(&self, name: &str) -> Option<ValueSource> {
        self.matches.as_ref()?.subcommand()?.1.value_source(name)
    }

    /// Whether `--identity` was given.
    pub(crate) fn names_identity(&self) -> bool {
        self.prefix.is_some()
    }

    /// Whether `--key-dir` or its environment variable was given.
    pub(crate) fn names_key_directory(&self) -> bool {
        self.keys.is_some()
    }

    /// The same context for the identity with this beginning.
    pub(crate) fn with_identity(&self, prefix: &str) -> Self {
        let (prefix, keys) = (Some(prefix.to_owned()), self.keys.clone());
        Context { prefix, keys, json: self.json, ..Context::on(self.location.clone()) }
    }

    /// The same context for another store with its keys.
    pub(crate) fn with_store(&self, location: Location, keys: Option<PathBuf>) -> Self {
        Context { keys, json: self.json, ..Context::on(location) }
    }

    /// A context on one store, without arguments.
    pub(crate) fn on(location: Location) -> Self {
        let (keys, prefix, json, matches) = (None, None, false, None);
        Context { location, opened: OnceCell::new(), keys, prefix, json, matches }
    }

    /// A context on one identity of a store that is open, with its keys.
    pub(crate) fn of(store: &Store, keys: &KeyDirectory, identity: &Identity) -> Self {
        let keys = Some(keys.path().to_owned());
        let prefix = Some(identity.to_string());
        let opened = OnceCell::from(store.clone());
        Context { keys, prefix, opened, ..Context::on(store.location().clone()) }
    }

    /// The key directory.
    pub(crate) fn keys(&self) -> KeyDirectory {
        match &self.keys {
            Some(path) => KeyDirectory::at(path),
            None => KeyDirectory::of_store(&self.location),
        }
    }

    pub(crate) fn now(&self) -> Time {
        SystemHost::new().now()
    }

    /// Returns an error if the address of the store is invalid.
    pub(crate) fn check_location(&self) -> anyhow::Result<()> {
        Ok(Location::parse(self.location.to_string()).map(drop)?)
    }

    /// Opens the store for reading. An older schema is an error, and nothing is changed.
    pub(crate) fn store(&self) -> anyhow::Result<&Store> {
        match self.opened.get() {
            Some(store) => Ok(store),
            None => {
                let store = Store::open(&self.location)?;
                Ok(self.opened.get_or_init(|| store))
            }
        }
    }

    /// Migrates the store if it exists; a missing store is no error.
    pub(crate) fn migrate_if_there(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<()> {
        match Store::migrate(&self.location) {
            Err(ipse_store::Error::NotFound(_)) => Ok(()),
            migrated => note_migrated(terminal, migrated?),
        }
    }

    /// Whether the store exists.
    pub(crate) fn is_there(&self) -> bool {
        self.opened.get().is_some() || Store::open(&self.location).is_ok()
    }

    /// Opens the store for a command that writes. An older schema is migrated first.
    pub(crate) fn store_to_write(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<&Store> {
        if self.opened.get().is_none() {
            let (store, migrated) = Store::open_migrated(&self.location)?;
            note_migrated(terminal, migrated)?;
            self.opened.get_or_init(|| store);
            // An act that cannot be recorded now stays owed, and blocks no command.
            let _ = self.complete_key_changes(terminal);
        }
        let store = self.store()?;
        // If another process reads the store, or the disk is full, the bytes stay for now.
        let _ = store.finish_erasing(Patience::None);
        Ok(store)
    }

    /// Opens the store for reading, and selects the identity.
    pub(crate) fn read(&self) -> anyhow::Result<(Reader, Identity)> {
        let reader = self.store()?.reader()?;
        let identity = self.choose(&reader)?;
        Ok((reader, identity))
    }

    /// As [`Self::read`], but selects the preferred identity of several if the store has it.
    pub(crate) fn read_preferring(
        &self,
        preferred: Identity,
    ) -> anyhow::Result<(Reader, Identity)> {
        let reader = self.store()?.reader()?;
        let name = preferred.to_string();
        let registered = reader.manifests()?.iter().any(|(hash, _)| *hash == name);
        let identity = match registered && self.prefix.is_none() {
            true => preferred,
            false => self.choose(&reader)?,
        };
        Ok((reader, identity))
    }

    /// Opens the log of the selected identity for writing.
    pub(crate) fn write(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<Log> {
        let (_, identity) = self.read_to_write(terminal)?;
        let log = self.write_as(terminal, identity)?;
        note_pending_erase(terminal, log.erase_pending())?;
        Ok(log)
    }

    /// Opens the log of an identity for writing. If the log does not continue the last tree head in
    /// the key directory, this is an error and nothing is appended.
    pub(crate) fn write_as(
        &self,
        terminal: &mut Terminal<'_>,
        identity: Identity,
    ) -> anyhow::Result<Log> {
        let store = self.store_to_write(terminal)?;
        let mut log = Log::open(store, identity, Box::new(SystemHost::new()))?;
        match self.notary(terminal, &identity)? {
            Some(notary) => log.set_notary(Box::new(notary))?,
            None => check_last_head(store, &self.keys(), &identity)?,
        }
        Ok(log)
    }

    /// As [`Self::read`], for a command that writes.
    pub(crate) fn read_to_write(
        &self,
        terminal: &mut Terminal<'_>,
    ) -> anyhow::Result<(Reader, Identity)> {
        self.store_to_write(terminal)?;
        self.read()
    }

    /// The selected identity, or all identities of the store if none is selected.
    pub(crate) fn identities(&self) -> anyhow::Result<Vec<Identity>> {
        if self.prefix.is_some() {
            return Ok(vec![self.choose(&self.store()?.reader()?)?]);
        }
        Ok(Watch::open(self.store()?)?.identities()?)
    }

    /// The selected identity; a whole identity needs no store.
    pub(crate) fn identity(&self) -> anyhow::Result<Identity> {
        let given = self.prefix.as_deref().map(str::to_ascii_lowercase);
        if let Some(identity) = given.as_deref().and_then(Identity::parse) {
            return Ok(identity);
        }
        let (_, identity) = self.read().context(
            "no identity: give all 64 digits of --identity, or a store that has the identity",
        )?;
        Ok(identity)
    }

    fn choose(&self, reader: &Reader) -> anyhow::Result<Identity> {
        let known: Vec<String> = reader.manifests()?.into_iter().map(|(hash, _)| hash).collect();
        let prefix = self.prefix.as_deref().unwrap_or("").to_ascii_lowercase();
        if self.prefix.is_some() && prefix.len() < MIN_PREFIX {
            bail!("--identity needs at least {MIN_PREFIX} digits");
        }
        let found: Vec<&String> = known.iter().filter(|hash| hash.starts_with(&prefix)).collect();
        match found.as_slice() {
            [one] => Identity::parse(one).context("the store is damaged: an identity is no hash"),
            [] if known.is_empty() => bail!("no identity is registered in this store"),
            [] => {
                let all = Self::listed(reader, &known.iter().collect::<Vec<_>>())?;
                bail!("no identity here begins with {prefix}; the identities are:\n{all}")
            }
            _ if self.prefix.is_none() => bail!(
                "this store holds several identities; select one with --identity PREFIX:\n{}",
                Self::listed(reader, &found)?
            ),
            many => {
                bail!("several identities begin with {prefix}:\n{}", Self::listed(reader, many)?)
            }
        }
    }

    /// Lists registered identities with their names, one on each line.
    fn listed(reader: &Reader, chosen: &[&String]) -> anyhow::Result<String> {
        let mut lines = Vec::new();
        for (hash, canonical) in reader.manifests()? {
            let value = ipse_core::json_parse::parse(canonical.as_bytes(), 1).ok();
            let name = value.as_ref().and_then(|v| v.as_object()?.get("agent_id")?.as_text());
            if chosen.contains(&&hash) {
                lines.push(format!("  {hash} {}", name.unwrap_or("")));
            }
        }
        Ok(lines.join("\n"))
    }
}

/// Prints a note if an older store was migrated.
fn note_migrated(terminal: &mut Terminal<'_>, migrated: Option<Migrated>) -> anyhow::Result<()> {
    if let Some(Migrated { from, to }) = migrated {
        writeln!(terminal.err, "note: migrated the store from schema {from} to {to}")?;
    }
    Ok(())
}

/// The manifest that an identity was registered with.
pub(crate) fn stored_manifest(reader: &Reader, identity: &Identity) -> anyhow::Result<String> {
    let wanted = identity.to_string();
    let found = reader.manifests()?.into_iter().find(|(hash, _)| *hash == wanted);
    Ok(found.map(|(_, canonical)| canonical).unwrap_or_default())
}
