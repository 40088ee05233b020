//! Tree heads at the command line: the notary that signs them, and the evidence about a log that is
//! outside its store.

use crate::context::Context;
use crate::hints::tree_head_hint;
use crate::passphrase;
use crate::terminal::Terminal;
use ipse::DirectoryNotary;
use ipse::keys::{KeyDirectory, KeyError};
use ipse_core::Identity;
use ipse_engine::{Error, Log, Notary, check_head};
use ipse_exchange::Keys;
use ipse_inspect::verify::ExternalEvidence;
use ipse_store::Store;
use std::io;

impl Context {
    /// Opens the notary of an identity's log. If its private key is missing or cannot be used, this
    /// prints a note and returns `None`. A damaged key is an error, and so is a public half that
    /// cannot be read or belongs to another key.
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

    /// Signs the tree head that the log owes, however new the last one is: this process does not
    /// come back to sign it later. Prints a warning if it could not be signed; returns whether it
    /// could.
    pub(crate) fn tell_head(
        &self,
        terminal: &mut Terminal<'_>,
        log: &mut Log,
    ) -> anyhow::Result<bool> {
        log.sign_owed_head();
        self.tell_head_error(terminal, log.take_head_error())
    }

    /// Prints a warning if a tree head could not be signed; returns whether it could.
    pub(crate) fn tell_head_error(
        &self,
        terminal: &mut Terminal<'_>,
        error: Option<Error>,
    ) -> anyhow::Result<bool> {
        let Some(error) = error else { return Ok(true) };
        let hint = tree_head_hint(&error);
        let error = anyhow::Error::from(error);
        writeln!(terminal.err, "WARNING: no tree head was signed: {error:#}")?;
        if let Some(hint) = hint {
            writeln!(terminal.err, "hint: {hint}")?;
        }
        Ok(false)
    }

    /// Opens the keys of an export: the operator's, the log's, and the notary if its key is usable.
    pub(crate) fn export_keys(
        &self,
        terminal: &mut Terminal<'_>,
        identity: &Identity,
    ) -> anyhow::Result<Keys> {
        let directory = self.keys();
        let operator = passphrase::open(terminal, |word| directory.operator_signer(word))?;
        let notary = self.notary(terminal, identity)?;
        let notary = notary.map(|notary| Box::new(notary) as Box<dyn Notary>);
        Ok(Keys { operator, log: self.outside(identity)?.log_keys, notary, gates: Vec::new() })
    }

    /// Reads the evidence about a log that is outside its store.
    pub(crate) fn outside(&self, identity: &Identity) -> anyhow::Result<ExternalEvidence> {
        Ok(self.keys().evidence(identity)?)
    }
}

/// Whether the log's key is damaged. A missing private key is not damage: such a log continues
/// unsigned.
pub(crate) fn is_damage(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(KeyError::is_damage)
}

/// Compares a log without a usable key with the last tree head in the key directory. Returns an
/// error if the log does not continue it.
pub(crate) fn check_last_head(
    store: &Store,
    keys: &KeyDirectory,
    identity: &Identity,
) -> Result<(), Error> {
    match keys.last_head(identity) {
        Ok(Some((note, _))) => check_head(store, identity, &note),
        Ok(None) => Ok(()),
        // The keys belong to another user, whose commands compare.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(Error::Notary(error)),
    }
}
