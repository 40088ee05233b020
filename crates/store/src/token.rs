//! Access tokens: the handle that adds and revokes tokens and records their use.
//!
//! **Invariants**
//! - This crate never sees a token, only its SHA-256.
//! - A row is inserted once. After that only `revoked` and `last_used` change, and a revoked token
//!   stays revoked. Triggers of the engine enforce this.
//! - A call for one owner reads and writes rows of that owner only.

use crate::read::{View, known_log};
use crate::session::{Duty, Log, Result};
use crate::store::Writing;
use crate::{Store, TokenRow};
use ipse_core::{Identity, Time};

/// The owner of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// An identity of the store.
    Identity(Identity),
    /// The store itself: the token gives no access to a log.
    Store,
}

impl From<&Identity> for Owner {
    fn from(identity: &Identity) -> Self {
        Owner::Identity(*identity)
    }
}

/// The handle on tokens. It has its own connection.
pub struct TokenWriter {
    session: Writing,
}

impl TokenWriter {
    pub(crate) fn open(store: &Store) -> Result<Self> {
        Ok(TokenWriter { session: store.writing(Duty::Tokens)? })
    }

    /// The current log and facts of an identity. Each read sees the state at the time of that read.
    pub fn view(&self, identity: &Identity) -> Result<View<'_>> {
        let log = known_log(&*self.session, identity)?;
        Ok(View { session: &*self.session, log })
    }

    /// The log of an owner; `None` for the store itself.
    fn log(&self, of: impl Into<Owner>) -> Result<Option<Log>> {
        match of.into() {
            Owner::Identity(identity) => known_log(&*self.session, &identity).map(Some),
            Owner::Store => Ok(None),
        }
    }

    /// All tokens of an owner, oldest first, with expired and revoked ones.
    pub fn tokens(&self, of: impl Into<Owner>) -> Result<Vec<TokenRow>> {
        self.session.tokens(self.log(of)?)
    }

    /// The token with this id.
    pub fn token(&self, of: impl Into<Owner>, token_id: &[u8; 16]) -> Result<Option<TokenRow>> {
        self.session.token(self.log(of)?, token_id)
    }

    /// Whether the store or any identity has a live token.
    pub fn any_live(&self, now: Time) -> Result<bool> {
        self.session.any_live_token(now)
    }

    /// Adds a token. Fails without a change if the owner has the maximum number of live tokens.
    pub fn put(&mut self, of: impl Into<Owner>, token: &TokenRow) -> Result<()> {
        self.session.put_token(self.log(of)?, token)
    }

    /// Revokes a token permanently. Returns whether it was valid.
    pub fn revoke(&mut self, of: impl Into<Owner>, token_id: &[u8; 16], now: Time) -> Result<bool> {
        self.session.revoke_token(self.log(of)?, token_id, now)
    }

    /// Sets the last use of a token if it is still `previous`. Returns whether it was: if several
    /// processes update the same row at once, one of them writes.
    pub fn note_use(
        &mut self,
        of: impl Into<Owner>,
        token_id: &[u8; 16],
        previous: Option<Time>,
        now: Time,
    ) -> Result<bool> {
        self.session.note_use(self.log(of)?, token_id, previous, now)
    }
}

impl View<'_> {
    /// All tokens of the identity, oldest first, with expired and revoked ones.
    pub fn tokens(&self) -> Result<Vec<TokenRow>> {
        self.session.tokens(Some(self.log))
    }

    /// The tokens of the store itself, oldest first.
    pub fn store_tokens(&self) -> Result<Vec<TokenRow>> {
        self.session.tokens(None)
    }

    /// The token with this id.
    pub fn token(&self, token_id: &[u8; 16]) -> Result<Option<TokenRow>> {
        self.session.token(Some(self.log), token_id)
    }
}
