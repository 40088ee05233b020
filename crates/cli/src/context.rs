//! The context of a command: the store, its keys, and whose log is meant.
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
use ipse_store::Error as StoreError;
use ipse_store::sqlite::Reader;
use std::path::PathBuf;

/// Fewer digits of an identity than these are too easily somebody else's.
const MIN_PREFIX: usize = 4;

pub(crate) struct Context {
    pub(crate) store: PathBuf,
    keys: Option<PathBuf>,
    prefix: Option<String>,
    pub(crate) json: bool,
    /// What was typed, or stands in the environment.
    matches: Option<ArgMatches>,
}

impl Context {
    pub(crate) fn new(args: &Args, matches: ArgMatches) -> Self {
        Context {
            store: args.store.clone(),
            keys: args.key_dir.clone(),
            prefix: args.identity.clone(),
            json: args.json,
            matches: Some(matches),
        }
    }

    /// Where an argument of the command comes from; `None` if nobody gave it.
    pub(crate) fn given(&self, name: &str) -> Option<ValueSource> {
        self.matches.as_ref()?.subcommand()?.1.value_source(name)
    }

    /// Whether somebody named an identity.
    pub(crate) fn names_identity(&self) -> bool {
        self.prefix.is_some()
    }

    /// The same for another store with its keys.
    pub(crate) fn with_store(&self, store: PathBuf, keys: Option<PathBuf>) -> Self {
        Context { store, keys, prefix: None, json: self.json, matches: None }
    }

    /// A context on one store, without arguments.
    pub(crate) fn on(store: PathBuf) -> Self {
        Context { store, keys: None, prefix: None, json: false, matches: None }
    }

    /// A context on one identity of a store, with its keys.
    pub(crate) fn of(store: PathBuf, keys: &KeyDirectory, identity: &Identity) -> Self {
        let keys = Some(keys.path().to_owned());
        let prefix = Some(identity.to_string());
        Context { store, keys, prefix, json: false, matches: None }
    }

    /// Where the keys are.
    pub(crate) fn keys(&self) -> KeyDirectory {
        match &self.keys {
            Some(path) => KeyDirectory::at(path),
            None => KeyDirectory::of_store(&self.store),
        }
    }

    pub(crate) fn now(&self) -> Time {
        SystemHost::new().now()
    }

    /// The name must be a file's: PostgreSQL is not there yet.
    pub(crate) fn check_store_name(&self) -> anyhow::Result<()> {
        let name = self.store.to_string_lossy();
        if name.starts_with("postgres://") || name.starts_with("postgresql://") {
            bail!("this ipse stores in files; PostgreSQL is not supported yet");
        }
        if name.is_empty() {
            bail!("the store's path is empty");
        }
        Ok(())
    }

    /// The store for reading, and whose log is meant.
    pub(crate) fn read(&self) -> anyhow::Result<(Reader, Identity)> {
        let reader = Reader::open(&self.store)?;
        let identity = self.choose(&reader)?;
        Ok((reader, identity))
    }

    /// The log for writing.
    pub(crate) fn write(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<Log> {
        let (_, identity) = self.read_or_migrate()?;
        let log = self.write_as(terminal, identity)?;
        note_pending_erase(terminal, log.erase_pending())?;
        Ok(log)
    }

    /// The log of an identity for writing. An error, and nothing is appended, if it does not
    /// continue the last tree head in the key directory.
    pub(crate) fn write_as(
        &self,
        terminal: &mut Terminal<'_>,
        identity: Identity,
    ) -> anyhow::Result<Log> {
        let mut log = Log::open(&self.store, identity, Box::new(SystemHost::new()))?;
        match self.notary(terminal, &identity)? {
            Some(notary) => log.set_notary(Box::new(notary))?,
            None => check_last_head(&self.store, &self.keys(), &identity)?,
        }
        Ok(log)
    }

    /// Whose log is meant, in a store that is brought up to date if it is older.
    pub(crate) fn read_or_migrate(&self) -> anyhow::Result<(Reader, Identity)> {
        let reader = self.reader_of_newest_schema()?;
        let identity = self.choose(&reader)?;
        Ok((reader, identity))
    }

    /// The identities that are meant, where all of a store's may be.
    pub(crate) fn identities(&self) -> anyhow::Result<Vec<Identity>> {
        let reader = self.reader_of_newest_schema()?;
        if self.prefix.is_some() {
            return Ok(vec![self.choose(&reader)?]);
        }
        Ok(Watch::open(&self.store)?.identities()?)
    }

    /// Whose log is meant; a whole identity needs no store.
    pub(crate) fn identity(&self) -> anyhow::Result<Identity> {
        let given = self.prefix.as_deref().map(str::to_ascii_lowercase);
        if let Some(identity) = given.as_deref().and_then(Identity::parse) {
            return Ok(identity);
        }
        self.check_store_name()?;
        let (_, identity) = self.read().context(
            "to whom do the events go? give all 64 digits of --identity, or a store that has it",
        )?;
        Ok(identity)
    }

    fn reader_of_newest_schema(&self) -> anyhow::Result<Reader> {
        match Reader::open(&self.store) {
            // An older schema is brought up to date by opening it for writing.
            Err(StoreError::Older { .. }) => {
                ipse_store::sqlite::create(&self.store)?;
                Ok(Reader::open(&self.store)?)
            }
            opened => Ok(opened?),
        }
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
                bail!("no identity here begins with {prefix}; there are:\n{all}")
            }
            _ if self.prefix.is_none() => bail!(
                "this store holds several identities; say which with --identity PREFIX:\n{}",
                Self::listed(reader, &found)?
            ),
            many => {
                bail!("several identities begin with {prefix}:\n{}", Self::listed(reader, many)?)
            }
        }
    }

    /// The registered identities, for people to choose from.
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

/// The manifest that an identity was registered with.
pub(crate) fn stored_manifest(reader: &Reader, identity: &Identity) -> anyhow::Result<String> {
    let wanted = identity.to_string();
    let found = reader.manifests()?.into_iter().find(|(hash, _)| *hash == wanted);
    Ok(found.map(|(_, canonical)| canonical).unwrap_or_default())
}
