//! `GET /`: what is here, as a page for people and as JSON for programs.
//!
//! **Invariant:** the answer depends on the table of routes and the version only. It names no agent
//! and no token.

use crate::document::PAGE_POLICY;
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::{Access, ROUTES, Route};
use crate::{json, text};
use axum::extract::RawQuery;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use ipse_core::html::escaped;
use ipse_core::json::{Members, list, quoted};

pub(crate) async fn index(RawQuery(raw): RawQuery, asked: HeaderMap) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let mut response = match wants_page(&asked) {
        true => text("text/html; charset=utf-8", page()),
        false => json(StatusCode::OK, document()),
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("accept"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// Whether a client asks for HTML, as browsers do.
fn wants_page(asked: &HeaderMap) -> bool {
    let lists = asked.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| {
        let kind = one.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/html")
    })
}

fn roles(route: &Route) -> Vec<&'static str> {
    match route.access {
        Access::Open => Vec::new(),
        Access::Roles(roles) => roles.iter().map(|role| role.name()).collect(),
    }
}

fn document() -> String {
    let route = |route: &Route| {
        Members::new()
            .text("method", route.method.as_str())
            .text("path", route.path)
            .raw("roles", list(roles(route).into_iter().map(quoted)))
            .finish()
    };
    Members::new()
        .text("name", "ipse")
        .text("version", env!("CARGO_PKG_VERSION"))
        .text("documentation", "/docs")
        .text("openapi", "/openapi.json")
        .text("ready", "/health/ready")
        .raw("routes", list(ROUTES.iter().map(route)))
        .finish()
}

fn page() -> String {
    let row = |route: &Route| {
        let roles = match roles(route) {
            none if none.is_empty() => "no token".to_owned(),
            roles => roles.join(", "),
        };
        let (method, path) = (route.method.as_str(), escaped(route.path));
        format!("<tr><td>{method}</td><td><code>{path}</code></td><td>{roles}</td></tr>")
    };
    let rows: String = ROUTES.iter().map(row).collect();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>ipse</title><style>\
         body{{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}}\
         td,th{{text-align:left;padding:.1rem 1rem .1rem 0}}</style><h1>ipse {version}</h1>\
         <p>Memory for long-running agents, over HTTP. <a href=\"/docs\">/docs</a> describes \
         every route; <a href=\"/openapi.json\">/openapi.json</a> is the same for programs; \
         <a href=\"/health/ready\">/health/ready</a> says whether the server can work.</p>\
         <p>A request needs a token of one of the listed roles: <code>Authorization: Bearer \
         TOKEN</code>. <code>ipse token create --role ROLE</code> makes one.</p>\
         <table><tr><th>Method<th>Path<th>Roles</tr>{rows}</table></html>\n",
        version = env!("CARGO_PKG_VERSION")
    )
}
