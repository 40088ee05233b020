//! Error responses by RFC 9457: `application/problem+json` with a code and a request id.
//!
//! **Invariants:** every response that is not a success is a problem. Its text is for the client,
//! and contains no data of other identities and no internals of the process.

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ipse_core::json::Members;

/// The media type of problems.
const PROBLEM: &str = "application/problem+json";

/// An error response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// Seconds after which the client may retry.
    retry_after: Option<u32>,
    /// Additional members, as JSON.
    more: Vec<(&'static str, String)>,
}

impl Problem {
    /// A problem with this code.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Problem { status, code, detail: detail.into(), retry_after: None, more: Vec::new() }
    }

    /// 400: the request is malformed.
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 401. It is the same for a token that is missing, unknown, expired or revoked.
    pub fn unauthorized() -> Self {
        let detail =
            "send a valid token as `Authorization: Bearer …`; `ipse token create` makes one";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    /// 403: the role of the token does not permit the request.
    pub fn forbidden(role: &str, allowed: &str) -> Self {
        let detail =
            format!("a token of the role {role} may not do this; it needs a token of: {allowed}");
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// 404: unknown, or an object of another identity.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// 429: the queue is full.
    pub fn too_many(detail: impl Into<String>) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Problem { retry_after: Some(1), ..Self::new(status, "queue_full", detail) }
    }

    /// 429: the rate limit of the token is exceeded.
    pub fn too_fast(seconds: u32, detail: impl Into<String>) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Problem { retry_after: Some(seconds), ..Self::new(status, "too_fast", detail) }
    }

    /// 503: the request may succeed later.
    pub fn unavailable(code: &'static str, detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Problem { retry_after: Some(1), ..Self::new(status, code, detail) }
    }

    /// 503: the log does not continue the last signed tree head. A retry does not help, so there is
    /// no `Retry-After`: an operator has to act.
    pub fn rolled_back() -> Self {
        let detail = "the log does not continue the last signed tree head, so appends are \
                      rejected: the operator has to restore the newer store";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "log_rolled_back", detail)
    }

    /// 500: the stored data is corrupt. A retry does not help, so there is no
    /// `Retry-After`.
    pub fn damaged() -> Self {
        let detail = "the stored data for this response is damaged: the operator has to run `ipse \
                      verify`; the same request will fail again";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store_damaged", detail)
    }

    /// 503: the facts follow a rule set that this build does not have. A retry does not help, so
    /// there is no `Retry-After`.
    fn unknown_rules(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unknown_rules", detail)
    }

    /// Adds a member.
    pub fn with(mut self, name: &'static str, json: impl ToString) -> Self {
        self.more.push((name, json.to_string()));
        self
    }

    /// 500: internal error.
    pub fn internal() -> Self {
        let detail = "internal error; see the server log for this request_id";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// The code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The violated rule, if the problem names one.
    pub fn rule(&self) -> Option<&str> {
        let (_, json) = self.more.iter().find(|(name, _)| *name == "rule")?;
        json.strip_prefix('"')?.strip_suffix('"')
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The response to the request with this id.
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
    /// An empty response that carries the problem. The outermost layer, which knows the request id,
    /// writes it.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// 405: the path does not have this method.
pub(crate) fn method_not_allowed(allowed: &str) -> Response {
    let detail = format!("this path allows {allowed}");
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail);
    let mut response = problem.into_response();
    if let Ok(value) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

impl From<ipse_engine::Error> for Problem {
    /// The problem of an error of the engine. The text of the error may name files, so it is logged
    /// and not sent.
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
        tracing::warn!(%error, "the store could not be read or written");
        let detail = "the store could not be read or written; see the server log";
        Problem::unavailable("store_unavailable", detail)
    }
}
