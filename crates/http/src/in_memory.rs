//! Tokens that are valid while the server runs, and are not in the store.
//!
//! **Invariant:** nothing here writes: their uses are not recorded, and they end with the process.

use ipse_access::{Owner, Token};
use ipse_core::Time;

/// The tokens with their owners.
pub(crate) struct InMemory(pub(crate) Vec<(Owner, Token)>);

impl InMemory {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The valid token with this hash.
    pub(crate) fn valid(&self, hash: &[u8; 32], now: Time) -> Option<(Owner, Token)> {
        self.0.iter().find(|(_, token)| token.lets_in(hash, now)).cloned()
    }

    /// Whether a token is one of these.
    pub(crate) fn holds(&self, token: &Token) -> bool {
        self.0.iter().any(|(_, held)| held.id == token.id)
    }
}
