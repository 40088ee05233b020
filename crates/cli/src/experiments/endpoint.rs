//! A server in this process and a planner that queries it over a real connection, for `reproduce
//! runtime`.
//!
//! **Invariant:** a query takes as long as for any planner: it writes the request, waits, and reads
//! the whole response. The caller parses the response.

use crate::wiring::Wiring;
use anyhow::{Context as _, bail};
use ipse::SystemHost;
use ipse_access::{NewToken, Role, Tokens, make};
use ipse_core::Identity;
use ipse_engine::Host;
use ipse_engine::facts::Filter;
use ipse_http::Service;
use ipse_reproduce::runtime::Endpoint;
use ipse_store::Store;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// The time after which a response is an error.
const PATIENCE: Duration = Duration::from_secs(30);

/// A planner's connection, and the server behind it.
pub(super) struct PlannerClient {
    connection: BufReader<TcpStream>,
    token: String,
    /// Stops the server when it is dropped.
    _stop: oneshot::Sender<()>,
    _runtime: Runtime,
}

impl PlannerClient {
    /// Serves a store to a planner of an identity, and creates its token.
    pub(super) fn begin(store: &Store, identity: &Identity) -> anyhow::Result<Self> {
        let new = NewToken { role: Role::Planner, name: None, sources: Vec::new(), expires: None };
        let (text, token) = make(identity, new, SystemHost::random(), SystemHost::new().now())?;
        Tokens::open(store)?.put(identity, &token)?;
        let service = Service::open(store, Arc::new(Wiring::on(store)))?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let plain = |stream| std::future::ready(Ok(stream));
        runtime.spawn(ipse_http::serve(listener, service, plain, async {
            // A message or a closed channel: in both cases the client is gone.
            let _: Result<(), _> = stopped.await;
        }));
        let connection = TcpStream::connect(address)?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let connection = BufReader::new(connection);
        Ok(PlannerClient { connection, token: text, _stop: stop, _runtime: runtime })
    }

    fn answer(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.connection.read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 200 ") {
            bail!("the server answered {}", line.trim_end());
        }
        let mut length = None;
        loop {
            line.clear();
            self.connection.read_line(&mut line)?;
            if line.trim_end().is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
        }
        let mut body = vec![0; length.context("the response has no content-length")?];
        self.connection.read_exact(&mut body)?;
        Ok(String::from_utf8(body)?)
    }
}

impl Endpoint for PlannerClient {
    fn ask(&mut self, filter: &Filter) -> Result<String, String> {
        let request = format!(
            "GET /api/agent/semantic?{} HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {}\r\n\r\n",
            query(filter),
            self.token
        );
        let asked = self.connection.get_mut().write_all(request.as_bytes()).map_err(Into::into);
        asked.and_then(|()| self.answer()).map_err(|error| format!("{error:#}"))
    }
}

fn query(filter: &Filter) -> String {
    let Filter { skill, target, environment, zone, kind, limit } = filter;
    let mut query = form_urlencoded::Serializer::new(String::new());
    let kind = kind.map(|kind| kind.name().to_owned());
    let limit = limit.map(|limit| limit.to_string());
    let parts = [
        ("skill_id", skill),
        ("target_class", target),
        ("environment", environment),
        ("zone", zone),
        ("kind", &kind),
        ("limit", &limit),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    query.finish()
}
