//! Which paths there are, and who may use them: one table, from which the router is built.
//!
//! **Invariants:** a path that is not here does not exist; a role that is not named for it is turned
//! away before a byte of the body is read.

use crate::service::Service;
use crate::{audit, events, health, looking, operating, semantic, stream};
use axum::http::Method;
use axum::routing::{MethodRouter, get, post};
use ipse_engine::token::Role;
use std::sync::Arc;

/// Who may use a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Anybody.
    Open,
    /// Whoever has one of these roles.
    Roles(&'static [Role]),
}

impl Access {
    /// Whether a role is let in.
    pub fn admits(self, role: Role) -> bool {
        match self {
            Access::Open => true,
            Access::Roles(roles) => roles.contains(&role),
        }
    }
}

/// One path with one verb.
#[derive(Clone, Copy)]
pub struct Route {
    /// The verb.
    pub method: Method_,
    /// The path, as axum writes it.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
    pub(crate) handler: fn() -> MethodRouter<Arc<Service>>,
}

/// The verbs that are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method_ {
    /// Reads.
    Get,
    /// Writes.
    Post,
}

impl Method_ {
    /// As HTTP has it.
    pub fn http(self) -> Method {
        match self {
            Method_::Get => Method::GET,
            Method_::Post => Method::POST,
        }
    }
}
