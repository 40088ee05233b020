//! `key new`: creates a key of the store or of a producer, or registers a public half.
//!
//! **Invariant:** no key is overwritten. After an interruption the same command continues with the
//! private half that is already written.

use super::list::{Row, state_of};
use super::producers;
use crate::context::Context;
use crate::hints::shell_word;
use crate::output;
use crate::passphrase;
use crate::sources::{SourceArgs, sources_cell};
use crate::terminal::{Terminal, shown};
use crate::{CommandResult, Exit};
use anyhow::{Context as _, anyhow, bail};
use ipse::keys::{self, KeyError, Role};
use ipse::{DirectoryNotary, SystemHost};
use ipse_core::Identity;
use ipse_engine::{Watch, sign_head};
use ipse_ledger::{NoteKey, dsse};
use ipse_store::{Producer, Reader};
use std::path::{Path, PathBuf};

/// The largest file that is read as a verifier key, which is one line.
const MAX_NOTE_FILE: u64 = 4 << 10;

/// Creates a key of the store. The operator's key needs no store if the key directory is given: a
/// manifest can then name the key before the store exists.
pub(super) fn of_store(
    context: &Context,
    terminal: &mut Terminal<'_>,
    role: Role,
    encrypt: bool,
) -> CommandResult {
    let identities = match role == Role::Operator && context.names_key_directory() {
        true => Vec::new(),
        false => Watch::open(context.store()?)?.identities()?,
    };
    let directory = context.keys();
    // Checked before the user has to type a passphrase.
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
    if !identities.is_empty() || context.is_there() {
        context.complete_key_changes(terminal)?;
    }
    if role == Role::Log {
        // Tree heads of an earlier key are no longer valid: sign one with the new key.
        for identity in identities {
            let notary = DirectoryNotary::open(&directory, &identity, passphrase)?;
            sign_head(context.store()?, &identity, &notary)?;
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

/// Creates a producer's key, and registers its public half.
pub(super) fn producer(terminal: &mut Terminal<'_>, new: &NewProducer<'_>) -> CommandResult {
    let NewProducer { context, name, out, .. } = *new;
    keys::check_producer_name(name)?;
    let (reader, identity) = context.read_to_write(terminal)?;
    check_free(&reader, &identity, name, None)?;
    if let Some(file) = out {
        output::check_free(context, file, &[])?;
    }
    let mut governor = context.governor(terminal, identity)?;
    let (key, place) = (new.key(terminal, &reader, &identity)?, new.place());
    let put = governor.put_producer(&key, new.sources.as_deref());
    let stored = put.with_context(|| {
        format!(
            "the key is in {}, but its public half is not registered; run the same command again",
            place.display()
        )
    })?;
    show_new(context, terminal, &Row::of_producer(&key, stored))?;
    context.tell_act_head(terminal, &mut governor)?;
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

/// A producer's key to create.
///
/// The private half is written first, then the public half, then it is registered. *If the process
/// dies in between:* the private half exists and the store does not know its public half. The same
/// command then continues with that private half.
pub(super) struct NewProducer<'n> {
    pub(super) context: &'n Context,
    pub(super) name: &'n str,
    /// The file of the private half, if not in the key directory.
    pub(super) out: Option<&'n Path>,
    pub(super) encrypt: bool,
    /// The sources that the key may use; any if absent.
    pub(super) sources: Option<Vec<String>>,
}

impl NewProducer<'_> {
    fn place(&self) -> PathBuf {
        let in_directory = || self.context.keys().producer_file(self.name);
        self.out.map_or_else(in_directory, Path::to_path_buf)
    }

    /// Creates the key, or continues with the one that an interrupted command left.
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

    /// Returns the public half of an existing private half.
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

    /// Looks up the state of a public half in the store.
    fn standing(
        &self,
        reader: &Reader,
        identity: &Identity,
        left: &NoteKey,
    ) -> anyhow::Result<Standing> {
        let mut standing = Standing::Unknown;
        for of in Watch::open(self.context.store()?)?.identities()? {
            for (key, Producer { revoked, .. }) in producers(reader, &of)? {
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

/// The state of a producer's key in the store.
enum Standing {
    /// No identity has it.
    Unknown,
    /// It was revoked for this identity, and no other has it.
    Revoked,
    /// Any other registration.
    Used,
}

/// Registers the public half of a producer's key that was made elsewhere.
pub(super) fn register(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    public: &str,
    sources: &SourceArgs,
) -> CommandResult {
    let sources = sources.of_producer()?;
    keys::check_producer_name(name)?;
    let key = given_key(name, public)?;
    let (reader, identity) = context.read_to_write(terminal)?;
    check_free(&reader, &identity, name, Some(&key))?;
    let mut governor = context.governor(terminal, identity)?;
    let stored = governor.put_producer(&key, sources.as_deref())?;
    context.tell_act_head(terminal, &mut governor)?;
    if stored.revoked {
        bail!("that key was revoked permanently: {name} needs a new one");
    }
    if stored.sources != sources {
        bail!(
            "that key is registered with other sources, which never change ({}): revoke it, and \
             register a new one",
            sources_cell(stored.sources.as_deref())
        );
    }
    show_new(context, terminal, &Row::of_producer(&key, stored))?;
    writeln!(terminal.err, "registered; {name} may sign for {identity}")?;
    Ok(Exit::Fine)
}

/// The public half that was given: a verifier key, or a file with one, or a PEM file.
fn given_key(name: &str, public: &str) -> anyhow::Result<NoteKey> {
    let written = || note_file(Path::new(public));
    if let Some(key) = NoteKey::parse(public.trim()).or_else(written) {
        if key.name() != name {
            bail!("the key is called `{}`, not `{name}`", ipse_door::printable(key.name()));
        }
        return Ok(key);
    }
    let file = Path::new(public);
    if file.symlink_metadata().is_err() {
        // The value is not printed: it may be a private key, given by mistake.
        bail!(
            "--public is neither a file nor a verifier key, or the key is weak: give \
             NAME+ID+KEY, as `ipse key new producer` prints it, or a PEM file, as `openssl pkey \
             -pubout` writes it"
        );
    }
    // Converted to text, because the hints for key errors apply to keys of the store.
    keys::read_verifier(file, name).map_err(|error| match error {
        KeyError::Io { source, .. } => {
            anyhow::Error::new(source).context(format!("could not read {}", shown(file)))
        }
        error => anyhow!("{error}"),
    })
}

/// Reads a verifier key from a small ordinary file.
fn note_file(file: &Path) -> Option<NoteKey> {
    let there = file.metadata().ok().filter(|there| there.is_file())?;
    let text = (there.len() <= MAX_NOTE_FILE).then(|| std::fs::read_to_string(file).ok())??;
    NoteKey::parse(text.trim())
}

/// Checks that a name has one key at a time, and a key one name. Under a second name a revoked key
/// would be valid again, and one producer would look like two.
fn check_free(
    reader: &Reader,
    identity: &Identity,
    name: &str,
    wanted: Option<&NoteKey>,
) -> anyhow::Result<()> {
    for (key, Producer { revoked, .. }) in producers(reader, identity)? {
        if key.name() == name && !revoked && Some(&key) != wanted {
            bail!("`{name}` has a key already, {key}; revoke it first: ipse key revoke {name}");
        }
        let renamed = |wanted: &NoteKey| key.key() == wanted.key() && key.name() != name;
        if wanted.is_some_and(renamed) {
            let (other, how) = (key.name(), if revoked { "revoked" } else { "registered" });
            bail!(
                "that key is {how} as `{other}`: a key has one name, so `{name}` needs a new one"
            );
        }
        let same_id =
            |wanted: &NoteKey| key != *wanted && dsse::key_id(&key) == dsse::key_id(wanted);
        if wanted.is_some_and(same_id) {
            bail!("another key of `{name}` has the same id; create a key with another id");
        }
    }
    Ok(())
}
