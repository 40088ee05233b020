//! Authentication and authorisation of requests, before the handler runs, and the request id in
//! every response.

use crate::line::{Asker, Line};
use crate::listen::keeping;
use crate::places::Peer;
use crate::problem::{Problem, method_not_allowed};
use crate::routes::{Access, ROUTES, Route};
use crate::service::{Bearer, Service};
use crate::trace::TRACERESPONSE;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// The header that names a request.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const BEARER: &str = "Bearer ";
/// A response larger than this many bytes counts against [`Service::unread`] until it is read.
const LARGE_BYTES: u64 = 256 << 10;
/// Bytes of such a response that are sent at once.
const PIECE_BYTES: usize = 64 << 10;

/// The router of all routes.
pub fn router(service: Arc<Service>) -> Router {
    routed(service, &ROUTES)
}

/// The router of the given routes.
fn routed(service: Arc<Service>, routes: &'static [Route]) -> Router {
    let mut verbs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut router = Router::new();
    for route in routes {
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
        .fallback(|| async { Problem::not_found("unknown path; /docs lists the paths") })
        .layer(from_fn_with_state(service.clone(), name))
        .with_state(service)
}

/// Checks the host and the token of a request, then runs the handler of the route.
async fn admit(
    State((service, route)): State<(Arc<Service>, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    if route.browser
        && let Err(problem) = service.hosts.check_browser(&request)
    {
        return problem.into_response();
    }
    if route.access == Access::Open {
        return next.run(request).await;
    }
    let guest = match guest(&service, request.headers()) {
        Ok(guest) => guest,
        Err(problem) => {
            service.metrics.turned_away.inc();
            return problem.into_response();
        }
    };
    if let Some(peer) = request.extensions().get::<Arc<Peer>>() {
        peer.identified();
    }
    let begun = service.outside().elapsed();
    let (token_id, role) = (guest.token().id, guest.token().role);
    let admitted = route.access.admits(role);
    let agent = match guest {
        Bearer::Caller(caller) => {
            let agent = caller.agent.clone();
            request.extensions_mut().insert(caller);
            Some(agent)
        }
        Bearer::Observer(_) => None,
    };
    let mut response = match admitted {
        true => next.run(request).await,
        false => Problem::forbidden(role.name(), &route.access.names()).into_response(),
    };
    let took = service.outside().elapsed().saturating_sub(begun);
    if let Some(agent) = agent {
        agent.metrics.answered(route, response.status(), took);
    }
    response.extensions_mut().insert(Asker { token_id, by_hand: route.by_hand && admitted });
    held(&service, response).await.unwrap_or_else(Problem::into_response)
}

/// Reserves memory for a large response until it is read. The response is sent in pieces, so that
/// the memory is released when the last piece is sent and not before.
async fn held(service: &Service, response: Response) -> Result<Response, Problem> {
    let large = response.body().size_hint().exact().filter(|bytes| *bytes > LARGE_BYTES);
    let Some(size) = large else { return Ok(response) };
    let kib = u32::try_from(size.div_ceil(1024)).unwrap_or(u32::MAX);
    let room = service.unread.clone().try_acquire_many_owned(kib);
    let room =
        room.map_err(|_| Problem::too_many("too many large responses are unread; try again"))?;
    let (mut head, body) = response.into_parts();
    let whole = to_bytes(body, usize::MAX).await.map_err(|_| Problem::internal())?;
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let pieces = (0..whole.len()).step_by(PIECE_BYTES).map(move |from| {
        Ok::<_, Infallible>(whole.slice(from..whole.len().min(from + PIECE_BYTES)))
    });
    let body = Body::from_stream(tokio_stream::iter(pieces));
    Ok(Response::from_parts(head, keeping(body, room)))
}

fn guest(service: &Service, headers: &HeaderMap) -> Result<Bearer, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let text = given.next().and_then(|value| value.to_str().ok()?.split_at_checked(BEARER.len()));
    let text = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(BEARER)).map(|(_, text)| text);
    let text = text.filter(|_| given.next().is_none()).ok_or_else(Problem::unauthorized)?;
    service.admit(text)
}

/// Assigns the request id, logs the request, and writes the problem if there was one.
async fn name(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let id = service.request_id();
    let mut line = Line::new(&request, service.outside().elapsed());
    let mut response = match service.hosts.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let problem = response.extensions_mut().remove::<Problem>();
    line.ended(&mut response, problem.as_ref());
    if let Some(problem) = problem {
        let mut answer = problem.answer(&id);
        // Headers that a handler set in addition to the problem, such as `Allow`.
        for (name, value) in response.headers() {
            answer.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
        response = answer;
    }
    line.write(&id, service.outside().elapsed());
    let headers = response.headers_mut();
    if let Some(value) = line.trace().and_then(|trace| trace.answer(&id)) {
        headers.insert(TRACERESPONSE.clone(), value);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID.clone(), value);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The default is `no-store`: a response is valid for one moment and one token.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use axum::http::StatusCode;
    use axum::http::header::HOST;
    use axum::routing::get;
    use tower::ServiceExt;

    const fn open(path: &'static str, browser: bool) -> Route {
        let (method, access) = (Method::GET, Access::Open);
        Route { method, path, access, by_hand: false, browser, handler: || get(|| async { "" }) }
    }

    static PATHS: [Route; 2] = [open("/for-browsers", true), open("/for-programs", false)];

    async fn status(world: &World, path: &str, host: &str) -> StatusCode {
        let request = Request::builder().uri(path).header(HOST, host).body(Body::empty()).unwrap();
        let answer = routed(world.service().clone(), &PATHS).oneshot(request).await.unwrap();
        answer.status()
    }

    #[test]
    fn the_host_is_checked_everywhere_on_loopback_and_for_browsers_elsewhere() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (listen, path, host, want) in [
            ("127.0.0.1", "/for-browsers", "evil.example", 403),
            ("127.0.0.1", "/for-programs", "evil.example", 403),
            ("127.0.0.1", "/nowhere", "evil.example", 403),
            ("127.0.0.1", "/for-browsers", "localhost", 200),
            ("192.0.2.7", "/for-browsers", "evil.example", 403),
            ("192.0.2.7", "/for-browsers", "192.0.2.7:7477", 200),
            ("192.0.2.7", "/for-programs", "evil.example", 200),
            ("192.0.2.7", "/nowhere", "evil.example", 404),
        ] {
            let world = World::listening_on(listen.parse().unwrap());
            let answered = runtime.block_on(status(&world, path, host));
            assert_eq!(answered.as_u16(), want, "{host}{path} on {listen}");
        }
    }
}
