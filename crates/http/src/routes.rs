//! The table of all routes and the roles that may use them. The router is built from it.
//!
//! **Invariants:** a path that is not in the table does not exist. A request of a role that is not
//! listed is rejected before a byte of the body is read.

use crate::service::Service;
use crate::{
    audit, document, drift, events, health, index, intents, metrics, operations, plan, queries,
    rules, semantic, stream,
};
use axum::http::Method;
use axum::routing::{MethodRouter, get, post};
use ipse_access::Role::{self, Auditor, Observer, Operator, Planner, Producer};
use std::sync::Arc;

/// The access rule of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// No token is required.
    Open,
    /// A token with one of these roles is required.
    Roles(&'static [Role]),
}

impl Access {
    /// Whether a role may use the route.
    pub fn admits(self, role: Role) -> bool {
        match self {
            Access::Open => true,
            Access::Roles(roles) => roles.contains(&role),
        }
    }

    /// The names of the roles, for messages.
    pub(crate) fn names(self) -> String {
        let roles = match self {
            Access::Open => Role::ALL.as_slice(),
            Access::Roles(roles) => roles,
        };
        roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ")
    }
}

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Route {
    /// The HTTP method.
    pub method: Method,
    /// The path, with parameters in braces.
    pub path: &'static str,
    /// The access rule.
    pub access: Access,
    /// Whether an operator uses it to change something, so that every request is logged.
    pub(crate) by_hand: bool,
    /// Whether it is for browsers, so that the host of a request is checked on every listen
    /// address. No route is so far: `/docs` contains only public data.
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

/// All routes.
pub static ROUTES: [Route; 36] = [
    reading("/", Access::Open, || get(index::index)),
    reading("/api/agent/semantic", READERS, || get(semantic::semantic)),
    reading("/api/agent/grounding", READERS, || get(semantic::grounding_text)),
    writing("/api/agent/events", PRODUCERS, || post(events::append)),
    writing("/api/agent/intents", PLANNERS, || post(intents::propose)),
    reading("/api/agent/intents", READERS, || get(intents::intents)),
    reading("/api/agent/intents/{event_ref}", READERS, || get(intents::intent)),
    by_hand("/api/agent/intents/{event_ref}/confirm", || post(intents::confirm)),
    writing("/api/agent/intents/{event_ref}/outcome", PRODUCERS, || post(intents::outcome)),
    reading("/api/agent/skills", READERS, || get(queries::skills)),
    reading("/api/agent/may-attempt", READERS, || get(plan::may_attempt)),
    reading("/api/agent/suggest", READERS, || get(plan::suggest)),
    reading("/api/agent/identity", ANY, || get(queries::identity)),
    reading("/api/agent/facts/{fact_id}", READERS, || get(queries::fact)),
    reading("/api/agent/facts/{fact_id}/explanation", READERS, || get(queries::explanation)),
    reading("/api/agent/passes", OVERSEERS, || get(queries::passes)),
    reading("/api/agent/rules", OVERSEERS, || get(rules::rules)),
    reading("/api/agent/rules/{sha256}", OVERSEERS, || get(rules::rule_set)),
    reading("/api/agent/rules/{sha256}/report", OVERSEERS, || get(rules::report)),
    reading("/api/agent/drift", OVERSEERS, || get(drift::report)),
    reading("/api/agent/drift/series", OVERSEERS, || get(drift::series)),
    reading("/api/agent/log", OVERSEERS, || get(queries::log)),
    reading("/api/agent/stream", READERS, || get(stream::stream)),
    by_hand("/api/agent/consolidate", || post(operations::consolidate)),
    by_hand("/api/agent/forget", || post(operations::forget)),
    reading("/api/audit/tree-head", AUDITORS, || get(audit::tree_head)),
    reading("/api/audit/proof", AUDITORS, || get(audit::proof)),
    reading("/api/audit/consistency", AUDITORS, || get(audit::consistency)),
    reading("/api/audit/actions/{event_ref}", AUDITORS, || get(audit::action)),
    reading("/api/audit/bundle", AUDITORS, || get(audit::bundle)),
    reading("/metrics", MEASURERS, || get(metrics::metrics)),
    reading("/health/live", Access::Open, || get(health::live)),
    reading("/health/ready", Access::Open, || get(health::ready)),
    reading("/version", Access::Open, || get(health::version)),
    reading("/openapi.json", Access::Open, || get(document::document)),
    reading("/docs", Access::Open, || get(document::docs)),
];
