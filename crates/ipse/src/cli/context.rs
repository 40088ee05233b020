//! What every command shares: the store, the identity, and hints that go with errors.

use super::args::Args;
use super::heads::{check_last_head, head_hint};
use super::terminal::Terminal;
use anyhow::{Context as _, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use ipse::SystemHost;
use ipse::keys::{KeyDirectory, KeyError, MAX_NAME_BYTES};
use ipse_consolidate::V1;
use ipse_core::{Identity, Time};
use ipse_engine::{Host, Log, Watch};
use ipse_store::Error as StoreError;
use ipse_store::sqlite::Reader;
use std::path::{Path, PathBuf};

/// Fewer digits of an identity than these are too easily somebody else's.
const MIN_PREFIX: usize = 4;

/// Why forgotten bytes may have to stay for a while.
pub(crate) const STILL_THERE: &str = "somebody reads it, or the disk is full";

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
    pub(crate) fn write(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<Log<V1>> {
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
    ) -> anyhow::Result<Log<V1>> {
        let mut log = Log::open(&self.store, identity, V1, Box::new(SystemHost::new()))?;
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

    /// What to do about an error.
    pub(crate) fn hint(&self, error: &anyhow::Error) -> Option<String> {
        if let Some(error) = error.chain().find_map(key_error) {
            return key_hint(error);
        }
        if let Some(hint) = error.chain().find_map(|cause| head_hint(cause.downcast_ref()?)) {
            return Some(hint.to_string());
        }
        let store = shell_word(&self.store.to_string_lossy());
        if error.chain().any(is_altered) {
            return Some(format!("ipse --store {store} verify tells what else does not fit"));
        }
        error.chain().find_map(store_error).and_then(|error| store_hint(error, &store))
    }
}

/// The error of a store, also inside one of the engine.
fn store_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e StoreError> {
    match cause.downcast_ref::<ipse_engine::Error>() {
        Some(ipse_engine::Error::Store(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// What to do about a store that cannot be used.
fn store_hint(error: &StoreError, store: &str) -> Option<String> {
    Some(match error {
        StoreError::NotFound(_) => format!(
            "make one: ipse --store {store} init --manifest agent.toml \
                 (ipse manifest new prints a template)"
        ),
        StoreError::Foreign(_) => {
            "name another path with --store; ipse never touches a file it did not make".into()
        }
        StoreError::Newer { .. } => "open it with the ipse that wrote it, or a newer one".into(),
        StoreError::Older { .. } => {
            "any command that writes brings it up to date, such as: ipse consolidate".into()
        }
        StoreError::Busy(_) => {
            "wait until it has finished, or end it; nothing was changed here".into()
        }
        StoreError::ReadOnly => {
            format!("let this user write {store} and its directory; reading commands work as it is")
        }
        StoreError::NoDirectory(_) => "make the directory first".into(),
        StoreError::TooManyTokens => {
            "revoke what nobody uses: ipse token list, then ipse token revoke TOKEN_ID".into()
        }
        StoreError::Gone(_) => {
            "stop every process that uses the store, put the file back or begin with `ipse \
                 init`, and run the same command again"
                .into()
        }
        StoreError::CannotOpen { .. } => {
            format!("check that this user may read and write {store} and its directory")
        }
        StoreError::NotDurable { .. } => {
            "let this user read the directory; if that is so already, suspect the disk".into()
        }
        StoreError::Full => {
            "free some space and run the same command again; nothing was half written".into()
        }
        StoreError::Corrupt(_) => {
            "copy the file away before anything else; ipse rebuild compares facts and log".into()
        }
        _ => return None,
    })
}

/// The error of a key, also inside an I/O error of a notary.
fn key_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e KeyError> {
    cause.downcast_ref().or_else(|| {
        let inner = cause.downcast_ref::<std::io::Error>()?.get_ref()?;
        inner.downcast_ref()
    })
}

/// What to do about a key that cannot be used.
fn key_hint(error: &KeyError) -> Option<String> {
    let shown = |path: &Path| shell_word(&path.to_string_lossy());
    Some(match error {
        error if error.is_of_public_half() => return public_hint(error),
        KeyError::Io { what: "read", path, .. } => format!("let this user read {}", shown(path)),
        KeyError::Missing(path) if path.ends_with("log.key") => missing(path, "log", "log.vkey"),
        KeyError::Missing(path) if path.ends_with("operator.key") => {
            missing(path, "operator", "operator.pub")
        }
        KeyError::Missing(path) => {
            format!("ipse key new producer NAME --out {} makes one", shown(path))
        }
        KeyError::Exists(path) if path.parent().is_some_and(|it| it.ends_with("producers")) => {
            format!(
                "no key is overwritten; to register this one: ipse key new producer NAME --public \
                 \"$(cat {})\"",
                shown(&path.with_extension("vkey"))
            )
        }
        KeyError::Exists(_) => {
            "no key is overwritten: name another file, or revoke it first (ipse key revoke)".into()
        }
        KeyError::NoPassphrase(_) => {
            "name a file with the passphrase in IPSE_PASSPHRASE_FILE, or run this on a terminal"
                .into()
        }
        KeyError::WrongPassphrase(_) => {
            "it was taken from IPSE_PASSPHRASE, IPSE_PASSPHRASE_FILE or the terminal".into()
        }
        KeyError::UnsafeDirectory(path) => format!(
            "chmod go-w {}, or move the key to a directory that only you may write to",
            shown(path)
        ),
        KeyError::Unsafe(path) => format!(
            "chmod 600 {}; if others may have read it, revoke it and make another",
            shown(path)
        ),
        KeyError::Malformed { .. } => {
            "put back a copy of it; a private key is PKCS#8 PEM, as `openssl genpkey -algorithm \
             ed25519` makes it"
                .into()
        }
        KeyError::Weak(_) => "make another; anybody can sign under this one".into(),
        KeyError::Name(_) => format!(
            "1 to {MAX_NAME_BYTES} of A-Z a-z 0-9 . _ - and no dot first; `log` and `operator` \
             are taken"
        ),
        _ => return None,
    })
}

/// What to do about a public half that is damaged, or is another key's.
fn public_hint(error: &KeyError) -> Option<String> {
    let shown = |path: &Path| shell_word(&path.to_string_lossy());
    Some(match error {
        KeyError::Mismatch { private, public } => format!(
            "one of them was changed: put back a copy of it. If {} is the right one, delete {} and \
             run {}; if it is lost, revoke the key and make another (ipse key revoke)",
            shown(private),
            shown(public),
            completion(public)
        ),
        KeyError::Malformed { path, .. } | KeyError::Weak(path) => format!(
            "put back a copy of it, or delete it and run {}, which makes it from the private half",
            completion(path)
        ),
        KeyError::Io { path, .. } => format!("let this user read and write {}", shown(path)),
        _ => return None,
    })
}

/// The command that makes a public half from the private one.
fn completion(public: &Path) -> String {
    let producer = public.parent().is_some_and(|parent| parent.ends_with("producers"));
    match public.file_stem().filter(|_| producer) {
        Some(name) => format!("`ipse key new producer {}`", shell_word(&name.to_string_lossy())),
        None => "`ipse init` with each manifest".into(),
    }
}

/// What to do about a private half that is not there.
fn missing(path: &Path, role: &str, public: &str) -> String {
    match path.with_file_name(public).exists() {
        true => format!(
            "put it back, or name its directory with --key-dir; if it is lost: ipse key revoke \
             {role}, then ipse key new {role}"
        ),
        false => format!(
            "ipse key new {role} makes it; if it is elsewhere, name its directory with --key-dir"
        ),
    }
}

/// Says so if forgotten bytes had to stay.
pub(crate) fn note_pending_erase(terminal: &mut Terminal<'_>, pending: bool) -> anyhow::Result<()> {
    if pending {
        writeln!(terminal.err, "note: forgotten bytes are still in the store: {STILL_THERE}")?;
    }
    Ok(())
}

/// A path as it can be pasted into a shell.
pub(crate) fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+:@".contains(c);
    if path.chars().all(plain) {
        path.to_string()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

/// Whether an event is not the one that was appended.
fn is_altered(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(cause.downcast_ref(), Some(ipse_engine::Error::Altered(_)))
}
