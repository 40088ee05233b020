//! The description of the interface: `/openapi.json` for programs, `/docs` for people.
//!
//! **Invariants:** `/openapi.json` is the committed file, byte for byte. The page is generated from
//! that file and the table of routes only. It contains no script and loads nothing.

mod html;
mod page;
mod types;

use crate::problem::Problem;
use crate::query::Query;
use crate::semantic::has;
use axum::body::Bytes;
use axum::extract::RawQuery;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    REFERRER_POLICY, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use ipse_core::{hex, sha256};
use std::io::Write;
use std::sync::LazyLock;

/// The OpenAPI document.
const DOCUMENT: &str = include_str!("../openapi.json");
/// The page may load nothing and send nothing. Its styles are inline, its icon is empty.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                                      img-src data:; base-uri 'none'; form-action 'none'; \
                                      frame-ancestors 'none'";

/// A static response, generated once: plain and compressed.
struct Fixed {
    plain: Form,
    gzip: Form,
}

/// One form of a static response, and its `ETag`.
struct Form {
    body: Bytes,
    tag: HeaderValue,
}

impl Form {
    fn new(body: Bytes) -> Self {
        let tag = format!("\"{}\"", hex::encode(&sha256(&[&body])[..16]));
        let tag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""));
        Form { body, tag }
    }
}

impl Fixed {
    fn new(body: impl Into<Bytes>) -> Self {
        let plain = body.into();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory does not fail. If it did, the plain form would be used.
        let written = encoder.write_all(&plain).and_then(|()| encoder.finish());
        let gzip = written.map_or_else(|_| plain.clone(), Bytes::from);
        Fixed { plain: Form::new(plain), gzip: Form::new(gzip) }
    }

    /// The body, or 304 if the client has it already.
    fn answer(
        &self,
        asked: &HeaderMap,
        kind: &'static str,
        more: &[(HeaderName, &'static str)],
    ) -> Response {
        let gzip = takes_gzip(asked);
        let form = if gzip { &self.gzip } else { &self.plain };
        let same = has(asked, &form.tag);
        let mut response = match same {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => form.body.clone().into_response(),
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, form.tag.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if same {
            return response;
        }
        if gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, value) in more {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Whether a client accepts gzip: it names gzip with a weight above zero.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let lists = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let mut weights = parts.filter_map(|part| part.strip_prefix("q="));
        named && !weights.any(|weight| weight.parse::<f64>().is_ok_and(|weight| weight <= 0.0))
    })
}

static FILE: LazyLock<Fixed> = LazyLock::new(|| Fixed::new(DOCUMENT));
static PAGE: LazyLock<Fixed> = LazyLock::new(|| Fixed::new(page::page(DOCUMENT)));

pub(crate) async fn document(
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    Ok(FILE.answer(&headers, "application/json", &[]))
}

pub(crate) async fn docs(RawQuery(raw): RawQuery, headers: HeaderMap) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let more = [(CONTENT_SECURITY_POLICY, PAGE_POLICY), (REFERRER_POLICY, "no-referrer")];
    Ok(PAGE.answer(&headers, "text/html; charset=utf-8", &more))
}
