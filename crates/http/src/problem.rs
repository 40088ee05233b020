//! What went wrong, as RFC 9457 has it: `application/problem+json` with a code and a request id.
//!
//! **Invariants:** every answer that is not a success is a problem; its words are for whoever asked
//! and hold nothing of another identity, nor of the inside of this process.

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ipse_core::json::Members;

/// The media type.
const PROBLEM: &str = "application/problem+json";

/// A request that was not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// Seconds after which it may be tried again.
    retry_after: Option<u32>,
    /// Members beside the usual ones, as JSON.
    more: Vec<(&'static str, String)>,
}

impl Problem {
    /// A problem of that code.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Problem { status, code, detail: detail.into(), retry_after: None, more: Vec::new() }
    }

    /// 400: the request cannot be read.
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 401, the same for a token that is missing, unknown, expired or revoked.
    pub fn unauthorized() -> Self {
        let detail =
            "send a valid token as `Authorization: Bearer …`; `ipse token create` makes one";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    /// 403: a token of another role.
    pub fn forbidden(role: &str) -> Self {
        let detail = format!("a token of the role {role} may not do this");
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// 404: not there, or somebody else's.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// 429: the queue is full.
    pub fn too_many(detail: impl Into<String>) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Problem { retry_after: Some(1), ..Self::new(status, "queue_full", detail) }
    }

    /// 429: one token asks too fast.
    pub fn too_fast(seconds: u32, detail: impl Into<String>) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Problem { retry_after: Some(seconds), ..Self::new(status, "too_fast", detail) }
    }

    /// 503: it could not be done now.
    pub fn unavailable(code: &'static str, detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Problem { retry_after: Some(1), ..Self::new(status, code, detail) }
    }

    /// 503: the log is not the one that was signed. A retry does not help, so there is no
    /// `Retry-After`: an operator has to act.
    pub fn rolled_back() -> Self {
        let detail = "the log does not continue the last signed tree head, so nothing is appended: \
                      the operator has to put the newer store back";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "log_rolled_back", detail)
    }

    /// 500: stored bytes contradict each other. A retry does not help, so there is no
    /// `Retry-After`.
    pub fn damaged() -> Self {
        let detail = "the stored data behind this answer is damaged: the operator has to run `ipse \
                      verify`; the same request will fail again";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store_damaged", detail)
    }

    /// 503: the facts follow rules that this build does not have. A retry does not help, so there
    /// is no `Retry-After`.
    fn unknown_rules(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unknown_rules", detail)
    }

    /// The same with another member.
    pub fn with(mut self, name: &'static str, json: impl ToString) -> Self {
        self.more.push((name, json.to_string()));
        self
    }

    /// 500: something broke off.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "it broke off; the log says why")
    }

    /// Its code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The rule that was broken, if the problem names one.
    pub fn rule(&self) -> Option<&str> {
        let (_, json) = self.more.iter().find(|(name, _)| *name == "rule")?;
        json.strip_prefix('"')?.strip_suffix('"')
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The answer to the request of that id.
    pub fn answer(&self, request_id: &str) -> Response {
        let title = self.status.canonical_reason().unwrap_or("problem");
        let members = Members::new()
            .text("type", "about:blank")
            .text("title", title)
            .raw("status", self.status.as_u16())
            .text("code", self.code)
            .text("detail", &self.detail)
            .text("request_id", request_id);
        let members = self.more.iter().fold(members, |all, (name, json)| all.raw(*name, json));
        let mut response = (self.status, members.finish()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl IntoResponse for Problem {
    /// An empty answer that carries the problem: the outermost layer, which knows the request id,
    /// writes it.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A method that a path does not have.
pub(crate) fn method_not_allowed(allowed: &str) -> Response {
    let detail = format!("this path takes {allowed}");
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail);
    let mut response = problem.into_response();
    if let Ok(value) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

impl From<ipse_engine::Error> for Problem {
    /// What the engine could not do, now: its words may name files, so they stay inside.
    fn from(error: ipse_engine::Error) -> Self {
        if error.is_rolled_back() {
            return Problem::rolled_back();
        }
        if error.is_damage() {
            tracing::error!(%error, "the store is damaged");
            return Problem::damaged();
        }
        if matches!(error, ipse_engine::Error::UnknownRules { .. }) {
            return Problem::unknown_rules(error.to_string());
        }
        tracing::warn!(%error, "the store could not answer");
        Problem::unavailable("store_unavailable", "the store could not answer; the log says why")
    }
}
