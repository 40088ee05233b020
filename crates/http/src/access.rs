//! Who is let in, before anything else is looked at; and the id that every answer carries.

use crate::listen::keeping;
use crate::places::Peer;
use crate::problem::{Problem, method_not_allowed};
use crate::routes::{Access, ROUTES, Route};
use crate::service::{Caller, Service};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use ipse_access::TokenId;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// The header that names a request.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const BEARER: &str = "Bearer ";
/// Bytes of an answer from which on it takes room until it is read.
const LARGE_BYTES: u64 = 256 << 10;
/// Bytes of such an answer that go out at once.
const PIECE_BYTES: usize = 64 << 10;

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
    if let Some(peer) = request.extensions().get::<Arc<Peer>>() {
        peer.identified();
    }
    let begun = service.outside().elapsed();
    let (agent, token_id) = (caller.agent.clone(), caller.token.id);
    let admitted = route.access.admits(caller.role());
    let mut response = if admitted {
        request.extensions_mut().insert(caller);
        next.run(request).await
    } else {
        Problem::forbidden(caller.role().name()).into_response()
    };
    let took = service.outside().elapsed().saturating_sub(begun);
    agent.metrics.answered(route, response.status(), took);
    response.extensions_mut().insert(Asker { token_id, by_hand: route.by_hand && admitted });
    held(&service, response).await.unwrap_or_else(Problem::into_response)
}

/// Who asked, for the log; and whether an operator did something.
#[derive(Clone, Copy)]
struct Asker {
    token_id: TokenId,
    by_hand: bool,
}

/// An answer that takes room until it is read, if it is large. It goes out in pieces, so that it is
/// let go when the last of them is on its way and not before.
async fn held(service: &Service, response: Response) -> Result<Response, Problem> {
    let large = response.body().size_hint().exact().filter(|bytes| *bytes > LARGE_BYTES);
    let Some(size) = large else { return Ok(response) };
    let kib = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
    let room = service.unread.clone().try_acquire_many_owned(kib);
    let room =
        room.map_err(|_| Problem::too_many("too many large answers are unread; try again"))?;
    let (mut head, body) = response.into_parts();
    let whole = to_bytes(body, usize::MAX).await.map_err(|_| Problem::internal())?;
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let pieces = (0..whole.len()).step_by(PIECE_BYTES).map(move |from| {
        Ok::<_, Infallible>(whole.slice(from..whole.len().min(from + PIECE_BYTES)))
    });
    let body = Body::from_stream(tokio_stream::iter(pieces));
    Ok(Response::from_parts(head, keeping(body, room)))
}

/// Says in the log what was asked, by whom, and what came of it: what changed something always.
fn told(id: &str, asked: &(Method, Uri), response: &Response, asker: Option<Asker>, micros: u64) {
    let ((method, uri), status, request_id) = (asked, response.status().as_u16(), id);
    let path = ipse_door::printable(uri.path());
    let token_id = asker.map(|asker| asker.token_id.to_string());
    if asker.is_some_and(|asker| asker.by_hand) {
        tracing::info!(request_id, %method, path, token_id, status, micros, "an operator asked");
    } else {
        tracing::debug!(request_id, %method, path, token_id, status, micros, "a request");
    }
}

fn caller(service: &Service, headers: &HeaderMap) -> Result<Caller, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let text = given.next().and_then(|value| value.to_str().ok()?.split_at_checked(BEARER.len()));
    let text = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(BEARER)).map(|(_, text)| text);
    let text = text.filter(|_| given.next().is_none()).ok_or_else(Problem::unauthorized)?;
    service.admit(text)
}

/// Gives a request its id, tells of it, and writes the problem if there was one.
async fn name(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let id = service.request_id();
    let asked = (request.method().clone(), request.uri().clone());
    let begun = service.outside().elapsed();
    let mut response = next.run(request).await;
    let asker = response.extensions_mut().remove::<Asker>();
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
    if asker.is_some_and(|asker| asker.by_hand) || tracing::enabled!(tracing::Level::DEBUG) {
        let took = service.outside().elapsed().saturating_sub(begun).as_micros();
        told(&id, &asked, &response, asker, u64::try_from(took).unwrap_or(u64::MAX));
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID.clone(), value);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // An answer without a rule of its own is kept by no cache: it is of one moment and one token.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
