//! Who is let in, before anything else is looked at; and the id that every answer carries.

use crate::problem::{Problem, method_not_allowed};
use crate::routes::{Access, ROUTES, Route};
use crate::service::{Caller, Service};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use ipse_engine::token::Token;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The header that names a request.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const BEARER: &str = "Bearer ";

/// What a request is called.
#[derive(Clone, Default)]
struct RequestId(String);

/// All routes over a service.
pub fn router(service: Arc<Service>) -> Router {
    let mut verbs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut router = Router::new();
    for route in &ROUTES {
        let allowed = verbs.entry(route.path).or_default();
        allowed.push(route.method.as_str());
        if route.method == Method::GET {
            allowed.push(Method::HEAD.as_str());
        }
        let gate = (service.clone(), route);
        let handler = (route.handler)().route_layer(from_fn_with_state(gate, admit));
        router = router.route(route.path, handler);
    }
    router
        .method_not_allowed_fallback(move |request: Request| {
            let path = request.extensions().get::<axum::extract::MatchedPath>();
            let allowed = path.and_then(|path| verbs.get(path.as_str())).map(|all| all.join(", "));
            async move { method_not_allowed(&allowed.unwrap_or_default()) }
        })
        .fallback(|| async { Problem::not_found("there is no such path") })
        .layer(from_fn_with_state(service.clone(), name))
        .with_state(service)
}

/// Lets in whoever may use a route.
async fn admit(
    State((service, route)): State<(Arc<Service>, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    if route.access == Access::Open {
        return next.run(request).await;
    }
    let caller = match caller(&service, request.headers()) {
        Ok(caller) => caller,
        Err(problem) => {
            service.metrics.turned_away.inc();
            return problem.into_response();
        }
    };
    let begun = service.outside().elapsed();
    let (agent, token) = (caller.agent.clone(), caller.token.clone());
    let id = request.extensions_mut().remove::<RequestId>().unwrap_or_default();
    let response = if route.access.admits(caller.role()) {
        request.extensions_mut().insert(caller);
        next.run(request).await
    } else {
        Problem::forbidden(caller.role().name()).into_response()
    };
    let took = service.outside().elapsed().saturating_sub(begun);
    agent.metrics.answered(route, response.status(), took);
    told(&id, route, &token, &response, took);
    response
}

/// Says in the log what was asked, by whom, and what came of it: what changes something always.
fn told(id: &RequestId, route: &Route, token: &Token, response: &Response, took: Duration) {
    let (request_id, method, path, token_id) =
        (&*id.0, route.method.as_str(), route.path, token.id);
    let (status, micros) = (response.status().as_u16(), took.as_micros());
    if route.by_hand {
        tracing::info!(request_id, method, path, %token_id, status, micros, "an operator asked");
    } else {
        tracing::debug!(request_id, method, path, %token_id, status, micros, "a request");
    }
}

fn caller(service: &Service, headers: &HeaderMap) -> Result<Caller, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let text = given.next().and_then(|value| value.to_str().ok()?.split_at_checked(BEARER.len()));
    let text = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(BEARER)).map(|(_, text)| text);
    let text = text.filter(|_| given.next().is_none()).ok_or_else(Problem::unauthorized)?;
    service.admit(text)
}

/// Gives a request its id, and writes the problem if there was one.
async fn name(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let id = service.request_id();
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        if problem.status().is_server_error() {
            tracing::warn!(request_id = id, code = problem.code(), "a request failed");
        }
        let mut answer = problem.answer(&id);
        // What a handler said beside the problem, such as the verbs of a path.
        for (name, value) in response.headers() {
            answer.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
        response = answer;
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID.clone(), value);
    }
    response
}
