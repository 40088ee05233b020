//! Acts of governance at the command line: the handle that changes settings, producers, tokens and
//! keys, and the tree head that it owes.
//!
//! **Invariant:** a log is opened for an act only if it continues the last tree head in the key
//! directory, as for an append.

use crate::context::Context;
use crate::terminal::Terminal;
use crate::tree_heads::check_last_head;
use ipse::SystemHost;
use ipse::keys::Role;
use ipse_core::Identity;
use ipse_engine::{Governor, Watch, owes_key_change};
use ipse_store::Store;

/// Opens a governor of settings or of tokens.
type Open =
    fn(&Store, Identity, Box<dyn ipse_engine::Host>) -> Result<Governor, ipse_engine::Error>;

impl Context {
    /// Opens the settings, producers and keys of an identity.
    pub(crate) fn governor(
        &self,
        terminal: &mut Terminal<'_>,
        identity: Identity,
    ) -> anyhow::Result<Governor> {
        self.governing(terminal, identity, Governor::open)
    }

    /// Opens the tokens of an identity.
    pub(crate) fn token_governor(
        &self,
        terminal: &mut Terminal<'_>,
        identity: Identity,
    ) -> anyhow::Result<Governor> {
        self.governing(terminal, identity, Governor::of_tokens)
    }

    fn governing(
        &self,
        terminal: &mut Terminal<'_>,
        identity: Identity,
        open: Open,
    ) -> anyhow::Result<Governor> {
        let store = self.store_to_write(terminal)?;
        let mut governor = open(store, identity, Box::new(SystemHost::new()))?;
        match self.notary(terminal, &identity)? {
            Some(notary) => governor.set_notary(Box::new(notary))?,
            None => check_last_head(store, &self.keys(), &identity)?,
        }
        Ok(governor)
    }

    /// Signs the tree head that an act owes. Prints a warning if it could not be signed.
    pub(crate) fn tell_act_head(
        &self,
        terminal: &mut Terminal<'_>,
        governor: &mut Governor,
    ) -> anyhow::Result<()> {
        governor.sign_owed_head();
        self.tell_head_error(terminal, governor.take_head_error()).map(drop)
    }

    /// Appends the changes of keys that a log is owed, after a command that was interrupted.
    pub(crate) fn complete_key_changes(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<()> {
        let store = self.store_to_write(terminal)?;
        for identity in Watch::open(store)?.identities()? {
            if !owes_key_change(store.reader()?.view(&identity)?.view())? {
                continue;
            }
            let mut governor = self.governor(terminal, identity)?;
            self.keys().complete_changes(&mut governor, &identity)?;
            self.tell_act_head(terminal, &mut governor)?;
        }
        Ok(())
    }

    /// Records that the logs of the store are owed the act about the replacement of a key.
    pub(crate) fn announce_key_change(
        &self,
        terminal: &mut Terminal<'_>,
        role: Role,
    ) -> anyhow::Result<()> {
        let store = self.store_to_write(terminal)?;
        for identity in Watch::open(store)?.identities()? {
            // No tree head is compared: a new key is the remedy for a log that does not continue
            // its last one. Nothing is appended here.
            let mut governor = Governor::open(store, identity, Box::new(SystemHost::new()))?;
            self.keys().announce_change(&mut governor, role, &identity)?;
        }
        Ok(())
    }
}
