//! The sender of a request with a valid token.
//!
//! **Invariant:** an observer acts on no log.

use crate::service::Caller;
use ipse_access::{Owner, Token};
use std::sync::Arc;

/// The sender of a valid token.
#[derive(Clone)]
pub(crate) enum Bearer {
    /// A caller that acts on one log.
    Caller(Caller),
    /// An observer of the server. It acts on no log.
    Observer(Arc<Token>),
}

impl Bearer {
    pub(crate) fn token(&self) -> &Token {
        match self {
            Bearer::Caller(caller) => &caller.token,
            Bearer::Observer(token) => token,
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        match self {
            Bearer::Caller(caller) => Owner::Identity(caller.agent.identity),
            Bearer::Observer(_) => Owner::Store,
        }
    }
}
