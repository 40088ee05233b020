//! The line of a request in the server log.
//!
//! **Invariants**
//! - A rejected request with a valid token is logged at `info` with its code and rule, so that an
//!   operator sees why a producer is rejected. A failure is a warning.
//! - A client cannot flood the log: requests without a valid token, and requests that are too fast
//!   (429), are logged at `debug`. Metrics count them.
//! - A line contains neither a token nor a body.

use crate::events::RefusedEvents;
use crate::problem::Problem;
use crate::trace::Trace;
use axum::extract::Request;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use ipse_access::TokenId;
use std::time::Duration;
use tracing::Level;

/// The token of a request, for the log, and whether an operator changed something.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) token_id: TokenId,
    pub(crate) by_hand: bool,
}

/// A request, for the server log.
pub(crate) struct Line {
    method: Method,
    uri: Uri,
    trace: Option<Trace>,
    begun: Duration,
    /// The code and the rule of a rejection, and the number of events that were not stored.
    code: Option<&'static str>,
    rule: Option<String>,
    refused: Option<u64>,
    status: StatusCode,
    asker: Option<Asker>,
}

impl Line {
    pub(crate) fn new(request: &Request, begun: Duration) -> Self {
        let (code, rule, refused, asker) = (None, None, None, None);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (trace, status) = (Trace::of(request.headers()), StatusCode::OK);
        Line { method, uri, trace, begun, code, rule, refused, status, asker }
    }

    /// The trace that the request belongs to.
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Records the response.
    pub(crate) fn ended(&mut self, response: &mut Response, problem: Option<&Problem>) {
        self.status = response.status();
        self.asker = response.extensions_mut().remove::<Asker>();
        self.code = problem.map(Problem::code);
        self.rule = problem.and_then(Problem::rule).map(str::to_owned);
        self.refused = matches!(self.code, Some("refused" | "conflict")).then_some(1);
        if let Some(refused) = response.extensions_mut().remove::<RefusedEvents>() {
            self.rule = Some(refused.rule.to_owned());
            self.refused = Some(refused.count);
        }
    }

    fn is_refusal(&self) -> bool {
        self.status.is_client_error() || self.refused.is_some()
    }

    fn level(&self) -> Level {
        let by_hand = self.asker.is_some_and(|asker| asker.by_hand);
        match self.status {
            status if status.is_server_error() => Level::WARN,
            _ if by_hand => Level::INFO,
            StatusCode::TOO_MANY_REQUESTS => Level::DEBUG,
            _ if self.asker.is_some() && self.is_refusal() => Level::INFO,
            _ => Level::DEBUG,
        }
    }

    /// Writes the line, if its level is enabled.
    pub(crate) fn write(&self, request_id: &str, now: Duration) {
        let level = self.level();
        if level == Level::DEBUG && !tracing::enabled!(Level::DEBUG) {
            return;
        }
        let Line { method, code, refused, .. } = self;
        let (rule, trace_id) = (self.rule.as_deref(), self.trace.as_ref().map(Trace::id));
        let (path, status) = (ipse_door::printable(self.uri.path()), self.status.as_u16());
        let token_id = self.asker.map(|asker| asker.token_id.to_string());
        let micros = now.saturating_sub(self.begun).as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        macro_rules! line {
            ($level:ident, $words:literal) => {
                tracing::$level!(request_id, %method, path, token_id, status, code, rule, refused,
                    trace_id, micros, $words)
            };
        }
        match level {
            Level::WARN => line!(warn, "a request failed"),
            Level::INFO if self.is_refusal() => line!(info, "a request was refused"),
            Level::INFO => line!(info, "an operator request"),
            _ => line!(debug, "a request"),
        }
    }
}
