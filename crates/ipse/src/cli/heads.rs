//! Tree heads at the command line: who signs them, what is said if nobody can, and `tree-head`.

use super::Exit;
use super::context::Context;
use super::passphrase;
use super::terminal::{Terminal, counted};
use anyhow::Context as _;
use ipse::DirectoryNotary;
use ipse::keys::{KeyDirectory, KeyError};
use ipse_core::Identity;
use ipse_core::json::Members;
use ipse_engine::verify::Outside;
use ipse_engine::{Error, Log, check_head, head_of, sign_head};
use std::io;
use std::path::Path;

impl Context {
    /// The notary of an identity's log; `None`, and a note, if its private key is missing or may
    /// not be used. A damaged key is an error, and so is a public half that cannot be read or is of
    /// another key.
    pub(crate) fn notary(
        &self,
        terminal: &mut Terminal<'_>,
        identity: &Identity,
    ) -> anyhow::Result<Option<DirectoryNotary>> {
        let keys = self.keys();
        let open = |passphrase: Option<&str>| DirectoryNotary::open(&keys, identity, passphrase);
        match passphrase::open(terminal, open) {
            Ok(notary) => Ok(Some(notary)),
            Err(error) if is_damage(&error) => Err(error),
            Err(error) => {
                writeln!(terminal.err, "note: tree heads are not signed: {error:#}")?;
                Ok(None)
            }
        }
    }

    /// Says so if a tree head could not be signed; whether all is well.
    pub(crate) fn tell_head(
        &self,
        terminal: &mut Terminal<'_>,
        log: &mut Log,
    ) -> anyhow::Result<bool> {
        let Some(error) = log.take_head_error() else { return Ok(true) };
        let hint = head_hint(&error);
        let error = anyhow::Error::from(error);
        writeln!(terminal.err, "WARNING: no tree head was signed: {error:#}")?;
        if let Some(hint) = hint {
            writeln!(terminal.err, "hint: {hint}")?;
        }
        Ok(false)
    }

    /// What is known about a log outside its store.
    pub(crate) fn outside(&self, identity: &Identity) -> anyhow::Result<Outside> {
        let keys = self.keys();
        let name = ipse_ledger::TreeHead::origin_of(identity);
        let known = keys.log_keys()?;
        let log_keys = known.into_iter().filter(|key| key.name() == name).collect();
        let last = keys.last_head(identity).context("could not read the last tree head")?;
        Ok(Outside { log_keys, last_head: last.map(|(note, _)| note) })
    }
}

/// Whether the log's key is damaged. A log without a private key goes on unsigned; that is not the
/// same.
pub(crate) fn is_damage(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(KeyError::is_damage)
}

/// Compares a log with the last tree head in the key directory, where the log's key is missing;
/// an error if the log does not continue it.
pub(crate) fn check_last_head(
    store: &Path,
    keys: &KeyDirectory,
    identity: &Identity,
) -> Result<(), Error> {
    match keys.last_head(identity) {
        Ok(Some((note, _))) => check_head(store, identity, &note),
        Ok(None) => Ok(()),
        // The keys belong to another user, who compares.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(Error::Notary(error)),
    }
}

/// What to do if a head cannot be signed.
pub(crate) fn head_hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Behind { .. } | Error::Forked { .. } => Some(
            "this store is an older copy, or has lost its end: put the newer one back. If that \
             one is lost for good, stop all servers; `ipse key revoke log` and `ipse key new log` \
             begin a new history, and holders of older tree heads will see the break",
        ),
        Error::NoHead(_) => Some(
            "the note under heads/ among the keys, or the one in the store, is damaged: put back a \
             copy of it (somebody who was given it has one), or begin anew with `ipse key revoke \
             log` and `ipse key new log`",
        ),
        _ => None,
    }
}

pub(crate) fn tree_head(
    context: &Context,
    terminal: &mut Terminal<'_>,
    sign: bool,
) -> anyhow::Result<Exit> {
    let (reader, identity) = match sign {
        true => context.read_or_migrate()?,
        false => context.read()?,
    };
    let note = if sign {
        let keys = context.keys();
        let open = |passphrase: Option<&str>| DirectoryNotary::open(&keys, &identity, passphrase);
        let notary = passphrase::open(terminal, open)?;
        Some(sign_head(&context.store, &identity, &notary)?)
    } else {
        reader.view(&identity)?.view().tree_head()?
    };
    let Some(note) = note else {
        writeln!(terminal.err, "no tree head is signed yet: `ipse tree-head --sign` does it")?;
        return Ok(Exit::Found);
    };
    let head = head_of(&note).context("the stored tree head cannot be read: ipse verify")?;
    if context.json {
        let json = Members::new()
            .text("identity_hash", &identity.to_string())
            .raw("tree_size", head.size)
            .text("root_sha256", &ipse_core::hex::encode(&head.root))
            .text("note", &note)
            .finish();
        terminal.json(&json)?;
    } else {
        terminal.out.write_all(note.as_bytes())?;
        let entries = reader.view(&identity)?.view().head()?.0;
        if entries > head.size {
            let tail = counted(entries - head.size, "newer event");
            writeln!(terminal.err, "note: {tail} not under it: --sign signs all")?;
        }
    }
    Ok(Exit::Fine)
}
