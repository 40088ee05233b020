//! A router over a temporary store with one agent and a token of every role, and functions that
//! send requests to it.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use ipse_access::{NewToken, Owner, Role, Tokens, make};
use ipse_core::{Identity, Time};
use ipse_engine::{Error, Host, Memory, Policy};
use ipse_gates::Gates;
use ipse_http::{Hosts, Platform, Route, Service, router};
use ipse_store::{Location, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tower::ServiceExt;

const GATES: [&str; 3] = [
    include_str!("../../../../examples/gates/ecm-registry.toml"),
    include_str!("../../../../examples/gates/policy.toml"),
    include_str!("../../../../examples/gates/temperament.toml"),
];

fn now() -> Time {
    Time::parse("2026-05-07T00:00:00Z").unwrap()
}

/// A constant clock, constant salts, and the listen address.
struct Still(Store, IpAddr);

impl Host for Still {
    fn now(&self) -> Time {
        now()
    }

    fn salt(&mut self) -> [u8; 16] {
        [7; 16]
    }
}

impl Platform for Still {
    fn now(&self) -> Time {
        now()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn random(&self) -> [u8; 16] {
        [7; 16]
    }

    fn open(&self, identity: &Identity) -> Result<Memory, Error> {
        let policy = Policy { every: 1, quiet: Duration::from_secs(1) };
        Memory::open(&self.0, *identity, policy, Box::new(Still(self.0.clone(), self.1)), None)
    }

    fn bundle(&self, _: &Identity) -> Result<File, String> {
        Err("there are no keys here".to_owned())
    }

    fn gates(&self, _: &Identity) -> Result<Option<Arc<Gates>>, Error> {
        let [registry, policy, temperament] = GATES;
        Ok(Some(Arc::new(Gates::new(registry, policy, temperament).unwrap())))
    }

    fn intents_per_minute(&self) -> u64 {
        60_000
    }

    fn hosts(&self) -> Hosts {
        Hosts::new(self.1, [])
    }
}

pub struct World {
    service: Arc<Service>,
    tokens: BTreeMap<&'static str, String>,
    runtime: tokio::runtime::Runtime,
    _directory: TempDir,
}

/// A response. The body is empty for a success of `/api/agent/stream`, which does not end.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
    /// The body as it was received, possibly compressed.
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    pub fn problem(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The code of a problem; empty for a success.
    pub fn code(&self) -> String {
        let is_problem = self.header("content-type") == "application/problem+json";
        let code = is_problem.then(|| self.problem()["code"].as_str().unwrap().to_owned());
        code.unwrap_or_default()
    }
}

impl World {
    pub fn new() -> Self {
        Self::listening_on(Ipv4Addr::LOCALHOST.into())
    }

    /// A world whose server listens on an address.
    pub fn listening_on(address: IpAddr) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let opened = Store::create(&Location::file(path)).unwrap();
        let identity = opened.register("{\"agent_id\":\"a\"}").unwrap().identity;
        let mut store = Tokens::open(&opened).unwrap();
        let mut tokens = BTreeMap::new();
        for (place, role) in Role::ALL.into_iter().enumerate() {
            let new = NewToken { role, name: None, sources: Vec::new(), expires: None };
            let owner = match role {
                Role::Observer => Owner::Store,
                _ => Owner::Identity(identity),
            };
            let (text, token) = make(owner, new, [place as u8; 32], now()).unwrap();
            store.put(owner, &token).unwrap();
            tokens.insert(role.name(), text);
        }
        let service = Service::open(&opened, Arc::new(Still(opened.clone(), address))).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        World { service, tokens, runtime, _directory: directory }
    }

    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    pub fn token(&self, role: Role) -> &str {
        &self.tokens[role.name()]
    }

    /// Serves on a free port of loopback, until the world ends.
    pub fn listen(&self) -> SocketAddr {
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let plain = |socket| std::future::ready(Ok::<_, std::io::Error>(socket));
        let service = self.service.clone();
        self.runtime.spawn(ipse_http::serve(listener, service, plain, std::future::pending()));
        address
    }

    pub fn ask(
        &self,
        route: &Route,
        address: &str,
        role: Option<Role>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(route.method.clone()).uri(address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(role) = role {
            let text = format!("Bearer {}", self.tokens[role.name()]);
            request = request.header("authorization", text);
        }
        self.answer(request.body(Body::from(body.to_owned())).unwrap())
    }

    pub fn get(&self, address: &str, role: Option<Role>, headers: &[(&str, &str)]) -> Answer {
        self.ask(&ipse_http::ROUTES[0], address, role, headers, "")
    }

    pub fn send(&self, method: &str, address: &str) -> Answer {
        self.answer(Request::builder().method(method).uri(address).body(Body::empty()).unwrap())
    }

    fn answer(&self, mut request: Request<Body>) -> Answer {
        request.headers_mut().insert("host", HeaderValue::from_static("localhost"));
        self.runtime.block_on(async {
            let response = router(self.service.clone()).oneshot(request).await.unwrap();
            let (status, headers) = (response.status(), response.headers().clone());
            let endless = headers.get("content-type").is_some_and(|it| it == "text/event-stream");
            let body = match endless {
                true => Vec::new(),
                false => to_bytes(response.into_body(), 1 << 24).await.unwrap().to_vec(),
            };
            let text = String::from_utf8_lossy(&body).into_owned();
            Answer { status, headers, body: text, bytes: body }
        })
    }
}
