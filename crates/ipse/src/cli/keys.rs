//! `key`: keys are made, listed and revoked.
//!
//! **Invariants:** what is printed is public; a private half goes to a file that only its owner can
//! read. Who may sign for an identity is written in the store.

use super::Exit;
use super::asking;
use super::context::{Context, shell_word};
use super::key_args::{KeyAction, NewKey};
use super::output;
use super::passphrase;
use super::terminal::Terminal;
use anyhow::{Context as _, bail};
use ipse::keys::{self, Held, KeyDirectory, KeyError, Role};
use ipse::{DirectoryNotary, SystemHost};
use ipse_core::json::{self, Members};
use ipse_core::{Identity, hex};
use ipse_engine::{Watch, sign_head};
use ipse_ledger::{NoteKey, TreeHead, dsse};
use ipse_store::sqlite::{Reader, Settings};
use std::path::{Path, PathBuf};

const PRODUCER: &str = "producer";
const REVOKED: &str = "revoked";

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    action: KeyAction,
) -> anyhow::Result<Exit> {
    match action {
        KeyAction::New { key: NewKey::Log { lock } } => {
            new_of_store(context, terminal, Role::Log, lock.passphrase)
        }
        KeyAction::New { key: NewKey::Operator { lock } } => {
            new_of_store(context, terminal, Role::Operator, lock.passphrase)
        }
        KeyAction::New { key: NewKey::Producer { name, public: Some(public), .. } } => {
            register(context, terminal, &name, &public)
        }
        KeyAction::New { key: NewKey::Producer { name, out, lock, .. } } => {
            new_producer(context, terminal, &name, out, lock.passphrase)
        }
        KeyAction::List => list(context, terminal),
        KeyAction::Revoke { name, yes } => revoke(context, terminal, &name, yes),
    }
}

fn new_of_store(
    context: &Context,
    terminal: &mut Terminal<'_>,
    role: Role,
    encrypt: bool,
) -> anyhow::Result<Exit> {
    let identities = Watch::open(&context.store)?.identities()?;
    let directory = context.keys();
    // Asked before a passphrase is typed for nothing.
    if directory.has(role) && !directory.is_unfinished(role) {
        return Err(KeyError::Exists(directory.path().join(format!("{}.key", role.name()))).into());
    }
    let passphrase = passphrase::chosen_if(encrypt, terminal)?;
    let passphrase = passphrase.as_ref().map(|passphrase| passphrase.as_str());
    let random = &mut SystemHost::random;
    let made = match role {
        Role::Log => directory.new_log(&identities, random, passphrase)?,
        Role::Operator => vec![directory.new_operator(random, passphrase)?],
    };
    let name = role.name();
    for key in &made {
        show_new(context, terminal, &Row::new(name, key, state_of(directory.held(role))))?;
    }
    writeln!(terminal.err, "made {name}.key in {}; keep it", directory.path().display())?;
    if role == Role::Log {
        // What the key before it signed counts no more.
        for identity in identities {
            let notary = DirectoryNotary::open(&directory, &identity, passphrase)?;
            sign_head(&context.store, &identity, &notary)?;
        }
    }
    Ok(Exit::Fine)
}

fn show_new(context: &Context, terminal: &mut Terminal<'_>, row: &Row) -> anyhow::Result<()> {
    match context.json {
        true => terminal.json(&row.json())?,
        false => writeln!(terminal.out, "{}", row.public_key)?,
    }
    Ok(())
}

fn new_producer(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    out: Option<PathBuf>,
    encrypt: bool,
) -> anyhow::Result<Exit> {
    keys::check_producer_name(name)?;
    let (reader, identity) = context.read_or_migrate()?;
    check_free(&reader, &identity, name, None)?;
    if let Some(file) = &out {
        output::check_free(context, file, &[])?;
    }
    let mut settings = Settings::open(&context.store)?;
    let new = NewProducer { context, name, out: out.as_deref(), encrypt };
    let (key, place) = (new.key(terminal, &reader, &identity)?, new.place());
    settings.put_producer(&identity, &key.to_string()).with_context(|| {
        format!(
            "the key is in {}, but its public half is not registered; run the same command again",
            place.display()
        )
    })?;
    show_new(context, terminal, &Row::new(PRODUCER, &key, REGISTERED.into()))?;
    let file = shell_word(&place.to_string_lossy());
    let key_file = place.file_name().unwrap_or_default().to_string_lossy();
    let key_file = shell_word(&key_file);
    writeln!(
        terminal.err,
        "registered; the private half is {file}: take it to the producer, and sign there with\n  \
         ipse sign EVENTS --key {key_file} --name {name} --identity {identity}"
    )?;
    Ok(Exit::Fine)
}

/// A producer's key that is asked for.
///
/// The private half is written first, then the public half, then it is registered. *If the process
/// dies in between:* the private half is there and the store does not know its public half. The
/// same command then goes on with that private half.
struct NewProducer<'n> {
    context: &'n Context,
    name: &'n str,
    /// Where the private half goes, if not into the key directory.
    out: Option<&'n Path>,
    encrypt: bool,
}

impl NewProducer<'_> {
    fn place(&self) -> PathBuf {
        let in_directory = || self.context.keys().producer_file(self.name);
        self.out.map_or_else(in_directory, Path::to_path_buf)
    }

    /// Makes the key, or goes on with the one that an interrupted command left.
    fn key(
        &self,
        terminal: &mut Terminal<'_>,
        reader: &Reader,
        identity: &Identity,
    ) -> anyhow::Result<NoteKey> {
        let directory = self.context.keys();
        if self.place().symlink_metadata().is_ok() {
            let left = self.left(terminal)?;
            match self.standing(reader, identity, &left)? {
                Standing::Unknown => return Ok(left),
                Standing::Used => return Err(KeyError::Exists(self.place()).into()),
                // Its revocation was interrupted.
                Standing::Revoked => directory.revoke_producer(self.name)?,
            };
        }
        let passphrase = passphrase::chosen_if(self.encrypt, terminal)?;
        let passphrase = passphrase.as_ref().map(|passphrase| passphrase.as_str());
        let random = &mut SystemHost::random;
        Ok(match self.out {
            Some(file) => keys::new_key_file(file, self.name, random, passphrase)?,
            None => directory.new_producer(self.name, random, passphrase)?,
        })
    }

    /// The public half of the private half that is there.
    fn left(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<NoteKey> {
        let (directory, place, mut is_plain) = (self.context.keys(), self.place(), true);
        let read = passphrase::open(terminal, |word| {
            is_plain = word.is_none();
            let read = match self.out {
                Some(file) => keys::read_signer(file, self.name, word).map(|key| key.public()),
                None => directory.complete_producer(self.name, word),
            };
            read.map_err(|error| match error {
                // No command that was interrupted leaves such a file.
                KeyError::Malformed { path, .. } | KeyError::Unsafe(path) if path == place => {
                    KeyError::Exists(path)
                }
                error => error,
            })
        })?;
        if self.encrypt && is_plain {
            bail!(
                "{} was made without a passphrase: run the same command without --passphrase, or \
                 delete the file",
                place.display()
            );
        }
        Ok(read)
    }

    /// What the store knows of a public half.
    fn standing(
        &self,
        reader: &Reader,
        identity: &Identity,
        left: &NoteKey,
    ) -> anyhow::Result<Standing> {
        let mut standing = Standing::Unknown;
        for of in Watch::open(&self.context.store)?.identities()? {
            for (key, revoked) in producers(reader, &of)? {
                let here = of == *identity && key == *left && self.out.is_none();
                match key.key() == left.key() {
                    true if here && revoked => standing = Standing::Revoked,
                    true => return Ok(Standing::Used),
                    false => {}
                }
            }
        }
        Ok(standing)
    }
}

/// What a store knows of a producer's key.
enum Standing {
    /// No identity has it.
    Unknown,
    /// It was revoked for this identity, and no other has it.
    Revoked,
    Used,
}

const REGISTERED: &str = "registered";

fn register(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    public: &str,
) -> anyhow::Result<Exit> {
    keys::check_producer_name(name)?;
    let Some(key) = NoteKey::parse(public.trim()) else {
        // It is not shown: it may be a private key, given by mistake.
        bail!(
            "what --public was given is no verifier key, or a weak one; \
             NAME+ID+KEY, as `ipse key new producer` prints it"
        );
    };
    if key.name() != name {
        bail!("the key is called `{}`, not `{name}`", ipse_door::printable(key.name()));
    }
    let (reader, identity) = context.read_or_migrate()?;
    check_free(&reader, &identity, name, Some(&key))?;
    if !Settings::open(&context.store)?.put_producer(&identity, &key.to_string())? {
        bail!("that key was revoked, and does not come back: {name} needs a new one");
    }
    show_new(context, terminal, &Row::new(PRODUCER, &key, REGISTERED.into()))?;
    writeln!(terminal.err, "registered; {name} may sign for {identity}")?;
    Ok(Exit::Fine)
}

/// A name means one key at a time.
fn check_free(
    reader: &Reader,
    identity: &Identity,
    name: &str,
    wanted: Option<&NoteKey>,
) -> anyhow::Result<()> {
    for (key, revoked) in producers(reader, identity)? {
        if key.name() == name && !revoked && Some(&key) != wanted {
            bail!("`{name}` has a key already, {key}; revoke it first: ipse key revoke {name}");
        }
        let same_id =
            |wanted: &NoteKey| key != *wanted && dsse::key_id(&key) == dsse::key_id(wanted);
        if wanted.is_some_and(same_id) {
            bail!("another key of `{name}` has the same id; make one that can be told from it");
        }
    }
    Ok(())
}

fn producers(reader: &Reader, identity: &Identity) -> anyhow::Result<Vec<(NoteKey, bool)>> {
    let damaged = "the store is damaged: a producer's key is none";
    let parsed =
        |(key, revoked): (String, bool)| Ok((NoteKey::parse(&key).context(damaged)?, revoked));
    reader.producers(identity)?.into_iter().map(parsed).collect()
}

/// A key, as it is listed.
struct Row {
    name: String,
    role: &'static str,
    key_id: String,
    public_key: String,
    state: String,
}

impl Row {
    fn new(role: &'static str, key: &NoteKey, state: String) -> Self {
        Row {
            name: key.name().to_string(),
            role,
            key_id: hex::encode(&key.id()),
            public_key: key.to_string(),
            state,
        }
    }

    fn json(&self) -> String {
        Members::new()
            .text("name", &self.name)
            .text("role", self.role)
            .text("key_id", &self.key_id)
            .text("public_key", &self.public_key)
            .text("state", &self.state)
            .finish()
    }
}

/// Where a private half is, in a word or two.
fn state_of(held: Result<Held, KeyError>) -> String {
    match held {
        Ok(Held::Plain) => "here",
        Ok(Held::Encrypted) => "here, encrypted",
        Err(KeyError::Missing(_)) => "public half only",
        Err(KeyError::Unsafe(_)) => "here, and others may read it",
        Err(_) => "here, and cannot be read",
    }
    .into()
}

fn list(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let directory = context.keys();
    let mut rows = of_store(&directory, &identity)?;
    for (key, revoked) in producers(&reader, &identity)? {
        let state = if revoked { REVOKED } else { REGISTERED };
        rows.push(Row::new(PRODUCER, &key, state.into()));
    }
    if context.json {
        terminal.json(&json::list(rows.iter().map(Row::json)))?;
    } else if !rows.is_empty() {
        let cells = |row: &Row| {
            vec![row.name.clone(), row.role.into(), row.key_id.clone(), row.state.clone()]
        };
        let cells: Vec<_> = rows.iter().map(cells).collect();
        terminal.table(&["NAME", "ROLE", "KEY ID", "STATE"], &cells)?;
    }
    if rows.is_empty() {
        writeln!(terminal.err, "no keys in {}", directory.path().display())?;
    }
    Ok(Exit::fine_if(!rows.is_empty()))
}

/// The keys of the store that concern an identity.
fn of_store(directory: &KeyDirectory, identity: &Identity) -> anyhow::Result<Vec<Row>> {
    let origin = TreeHead::origin_of(identity);
    let mut rows = Vec::new();
    for key in directory.log_keys()?.iter().filter(|key| key.name() == origin) {
        rows.push(Row::new(Role::Log.name(), key, state_of(directory.held(Role::Log))));
    }
    match directory.operator_key() {
        Err(KeyError::Missing(_)) => {}
        key => {
            let state = state_of(directory.held(Role::Operator));
            rows.push(Row::new(Role::Operator.name(), &key?, state));
        }
    }
    for (role, key) in directory.revoked()? {
        if role == Role::Operator || key.name() == origin {
            rows.push(Row::new(role.name(), &key, REVOKED.into()));
        }
    }
    Ok(rows)
}

fn revoke(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    yes: bool,
) -> anyhow::Result<Exit> {
    let role = [Role::Log, Role::Operator].into_iter().find(|role| role.name() == name);
    let what = match role {
        Some(Role::Log) => "This will put away the key that signs the log, and its tree heads.",
        Some(Role::Operator) => "This will put away the operator's key.",
        None => {
            keys::check_producer_name(name)?;
            "This will refuse what the producer signs from now on."
        }
    };
    let directory = context.keys();
    if let Some(role) = role.filter(|role| !directory.has(*role)) {
        return Err(KeyError::Missing(directory.path().join(format!("{}.key", role.name()))).into());
    }
    if !yes && asking::is_seen() && !asking::agrees(terminal, what)? {
        writeln!(terminal.err, "nothing was changed")?;
        return Ok(Exit::Found);
    }
    let place = match role {
        Some(Role::Log) => passphrase::open(terminal, |word| directory.revoke_log(word))?,
        Some(Role::Operator) => passphrase::open(terminal, |word| directory.revoke_operator(word))?,
        None => return revoke_producer(context, terminal, name),
    };
    revoked(context, terminal, name, Some(&place))?;
    writeln!(terminal.err, "make another: ipse key new {name}")?;
    Ok(Exit::Fine)
}

fn revoke_producer(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read_or_migrate()?;
    let directory = context.keys();
    if !Settings::open(&context.store)?.revoke_producer(&identity, name)? {
        let here = directory.producer_key(name)?;
        let is_left = |(key, revoked): &(NoteKey, bool)| *revoked && Some(key) == here.as_ref();
        // A process that died below revoked it, and did not move its files.
        if !producers(&reader, &identity)?.iter().any(is_left) {
            writeln!(terminal.err, "no producer `{name}` may sign here; nothing was changed")?;
            return Ok(Exit::Found);
        }
    }
    // If the process dies here, the key is revoked. Its private half stays and signs nothing.
    let place = directory.revoke_producer(name)?;
    revoked(context, terminal, name, place.as_deref())?;
    Ok(Exit::Fine)
}

fn revoked(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    place: Option<&Path>,
) -> anyhow::Result<()> {
    match context.json {
        true => terminal.json(&Members::new().text(REVOKED, name).finish())?,
        false => writeln!(terminal.out, "revoked {name}")?,
    }
    if let Some(place) = place {
        writeln!(terminal.err, "its files are in {}", place.display())?;
    }
    Ok(())
}
