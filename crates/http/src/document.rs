//! The interface, described: `/openapi.json` for programs, `/docs` for people.
//!
//! **Invariants:** what is served is the committed file, byte for byte; the page is made from that
//! file and from the table of routes alone, holds no script, and loads nothing from anywhere.

mod html;
mod page;
mod types;

use crate::problem::Problem;
use crate::query::Query;
use crate::semantic::has;
use axum::extract::RawQuery;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ipse_core::{hex, sha256};
use std::sync::LazyLock;

/// The document.
const DOCUMENT: &str = include_str!("../openapi.json");
/// The page may load nothing and send nothing; its styles stand in it, its icon is empty.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Something that is made once and is the same for everybody.
struct Fixed {
    body: &'static str,
    tag: String,
}

impl Fixed {
    fn new(body: &'static str) -> Self {
        let tag = format!("\"{}\"", hex::encode(&sha256(&[body.as_bytes()])[..16]));
        Fixed { body, tag }
    }

    /// The body, or that it is what the client has already.
    fn answer(
        &self,
        asked: &HeaderMap,
        kind: &'static str,
        more: &[(HeaderName, &'static str)],
    ) -> Response {
        let tag = HeaderValue::from_str(&self.tag).unwrap_or(HeaderValue::from_static("\"\""));
        let mut response = match has(asked, &tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.body.into_response(),
        };
        let same = response.status() == StatusCode::NOT_MODIFIED;
        let headers = response.headers_mut();
        headers.insert(ETAG, tag);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if same {
            return response;
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, value) in more {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

static FILE: LazyLock<Fixed> = LazyLock::new(|| Fixed::new(DOCUMENT));
static PAGE: LazyLock<Fixed> = LazyLock::new(|| Fixed::new(page::page(DOCUMENT).leak()));

pub(crate) async fn document(
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    Ok(FILE.answer(&headers, "application/json", &[]))
}

pub(crate) async fn docs(RawQuery(raw): RawQuery, headers: HeaderMap) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let more = [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "no-referrer")];
    Ok(PAGE.answer(&headers, "text/html; charset=utf-8", &more))
}
