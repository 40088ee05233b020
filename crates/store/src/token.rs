//! Access tokens: the handle that adds, revokes and notes the use of tokens.
//!
//! **Invariants**
//! - No token gets here, only its SHA-256.
//! - A row is put once. After that only `revoked` and `last_used` move, and a revoked token stays
//!   revoked; the guards of the engine enforce it.
//! - A question about one owner reads and writes rows of that owner only.

use crate::read::{View, known_log};
use crate::session::{Duty, Log, Result};
use crate::store::Writing;
use crate::{Store, TokenRow};
use ipse_core::{Identity, Time};

/// Who a token belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// An identity of the store.
    Identity(Identity),
    /// The store itself: its token is about no log.
    Store,
}

impl From<&Identity> for Owner {
    fn from(identity: &Identity) -> Self {
        Owner::Identity(*identity)
    }
}

/// The handle on tokens: a connection of its own.
pub struct TokenWriter {
    session: Writing,
}

impl TokenWriter {
    pub(crate) fn open(store: &Store) -> Result<Self> {
        Ok(TokenWriter { session: store.writing(Duty::Tokens)? })
    }

    /// What can be read of an identity. Every question is answered as of when it is asked.
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

    /// All tokens of an owner, oldest first: also those that are expired or revoked.
    pub fn tokens(&self, of: impl Into<Owner>) -> Result<Vec<TokenRow>> {
        self.session.tokens(self.log(of)?)
    }

    /// The token of that id.
    pub fn token(&self, of: impl Into<Owner>, token_id: &[u8; 16]) -> Result<Option<TokenRow>> {
        self.session.token(self.log(of)?, token_id)
    }

    /// Whether the store or any identity has a token that is live.
    pub fn any_live(&self, now: Time) -> Result<bool> {
        self.session.any_live_token(now)
    }

    /// Adds a token. An error, and nothing is changed, if there are as many live ones as may be.
    pub fn put(&mut self, of: impl Into<Owner>, token: &TokenRow) -> Result<()> {
        self.session.put_token(self.log(of)?, token)
    }

    /// Revokes a token for good; returns whether it was valid.
    pub fn revoke(&mut self, of: impl Into<Owner>, token_id: &[u8; 16], now: Time) -> Result<bool> {
        self.session.revoke_token(self.log(of)?, token_id, now)
    }

    /// Notes that a token was used, if its last use is still the `previous` one; returns whether it
    /// was. So of several processes that decide at once on the same row, one writes.
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
    /// All tokens, oldest first: also those that are expired or revoked.
    pub fn tokens(&self) -> Result<Vec<TokenRow>> {
        self.session.tokens(Some(self.log))
    }

    /// The tokens of the store itself, oldest first.
    pub fn store_tokens(&self) -> Result<Vec<TokenRow>> {
        self.session.tokens(None)
    }

    /// The token of that id.
    pub fn token(&self, token_id: &[u8; 16]) -> Result<Option<TokenRow>> {
        self.session.token(Some(self.log), token_id)
    }
}
