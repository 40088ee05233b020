//! Which paths there are, and who may use them: one table, from which the router is built.
//!
//! **Invariants:** a path that is not here does not exist; a role that is not named for it is
//! turned away before a byte of the body is read.

use crate::service::Service;
use crate::{
    audit, document, events, health, intents, metrics, operations, queries, semantic, stream,
};
use axum::http::Method;
use axum::routing::{MethodRouter, get, post};
use ipse_access::Role::{self, Auditor, Observer, Operator, Planner, Producer};
use std::sync::Arc;

/// Who may use a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Anybody.
    Open,
    /// Whoever has a token of one of these roles.
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

/// One verb of one path.
#[derive(Clone, Debug)]
pub struct Route {
    /// The verb.
    pub method: Method,
    /// The path, with what varies in braces.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
    /// Whether it is asked for by hand and changes something, so that it is worth a line.
    pub(crate) by_hand: bool,
    /// Whether it is made for browsers, so that the host of a request is checked wherever the
    /// server listens. No route is yet: `/docs` holds nothing that is not public.
    pub browser: bool,
    pub(crate) handler: fn() -> MethodRouter<Arc<Service>>,
}

const ANY: Access = Access::Roles(&[Planner, Producer, Operator, Auditor]);
const MEASURERS: Access = Access::Roles(&[Planner, Producer, Operator, Auditor, Observer]);
const READERS: Access = Access::Roles(&[Planner, Operator, Auditor]);
const OVERSEERS: Access = Access::Roles(&[Operator, Auditor]);
const PLANNERS: Access = Access::Roles(&[Planner]);
const PRODUCERS: Access = Access::Roles(&[Producer]);
const AUDITORS: Access = Access::Roles(&[Auditor]);
const OPERATORS: Access = Access::Roles(&[Operator]);

const fn reading(
    path: &'static str,
    access: Access,
    handler: fn() -> MethodRouter<Arc<Service>>,
) -> Route {
    Route { method: Method::GET, path, access, by_hand: false, browser: false, handler }
}

const fn writing(
    path: &'static str,
    access: Access,
    handler: fn() -> MethodRouter<Arc<Service>>,
) -> Route {
    Route { method: Method::POST, path, access, by_hand: false, browser: false, handler }
}

const fn by_hand(path: &'static str, handler: fn() -> MethodRouter<Arc<Service>>) -> Route {
    Route { method: Method::POST, path, access: OPERATORS, by_hand: true, browser: false, handler }
}

/// Every route.
pub static ROUTES: [Route; 27] = [
    reading("/api/agent/semantic", READERS, || get(semantic::semantic)),
    reading("/api/agent/grounding", READERS, || get(semantic::grounding_text)),
    writing("/api/agent/events", PRODUCERS, || post(events::append)),
    writing("/api/agent/intents", PLANNERS, || post(intents::propose)),
    reading("/api/agent/intents", READERS, || get(intents::intents)),
    reading("/api/agent/intents/{event_ref}", READERS, || get(intents::intent)),
    by_hand("/api/agent/intents/{event_ref}/confirm", || post(intents::confirm)),
    writing("/api/agent/intents/{event_ref}/outcome", PRODUCERS, || post(intents::outcome)),
    reading("/api/agent/skills", READERS, || get(queries::skills)),
    reading("/api/agent/identity", ANY, || get(queries::identity)),
    reading("/api/agent/facts/{fact_id}", READERS, || get(queries::fact)),
    reading("/api/agent/facts/{fact_id}/explanation", READERS, || get(queries::explanation)),
    reading("/api/agent/passes", OVERSEERS, || get(queries::passes)),
    reading("/api/agent/log", OVERSEERS, || get(queries::log)),
    reading("/api/agent/stream", READERS, || get(stream::stream)),
    by_hand("/api/agent/consolidate", || post(operations::consolidate)),
    by_hand("/api/agent/forget", || post(operations::forget)),
    reading("/api/audit/tree-head", AUDITORS, || get(audit::tree_head)),
    reading("/api/audit/proof", AUDITORS, || get(audit::proof)),
    reading("/api/audit/actions/{event_ref}", AUDITORS, || get(audit::action)),
    reading("/api/audit/bundle", AUDITORS, || get(audit::bundle)),
    reading("/metrics", MEASURERS, || get(metrics::metrics)),
    reading("/health/live", Access::Open, || get(health::live)),
    reading("/health/ready", Access::Open, || get(health::ready)),
    reading("/version", Access::Open, || get(health::version)),
    reading("/openapi.json", Access::Open, || get(document::document)),
    reading("/docs", Access::Open, || get(document::docs)),
];
