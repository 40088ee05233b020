//! `serve`: the HTTP server; planners read, producers append. The range of each setting and its
//! default are in `settings`.
//!
//! **Invariants**
//! - While no token exists, only a loopback address is bound: no request could be answered.
//! - On HUP, INT or TERM the server accepts no new connection, finishes running requests, and
//!   leaves a store that needs no repair. A second signal ends it at once.
//! - If the store is removed or replaced, the process ends with an error. A store that is older
//!   than its last signed tree head is not served.
//! - A log line that cannot be written is dropped; the server continues.

mod dev;
mod settings;
#[cfg(feature = "tls")]
mod tls;

use crate::context::Context;
use crate::gate_files::GateFiles;
use crate::hints::is_writable;
use crate::notify::Notifier;
use crate::terminal::{Terminal, counted};
use crate::wiring::Wiring;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use dev::DevTokens;
use ipse::Policy;
use ipse_engine::Error;
use ipse_http::{Hosts, Service};
use settings::Settings;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// The time limit for stopping: connections get less, the rest is for the store.
const GRACE: Duration = Duration::from_secs(15);
/// The interval at which the server reads changes by other processes.
const REFRESH: Duration = Duration::from_millis(500);
/// The interval at which the drift alarms are looked at.
const DRIFT: Duration = Duration::from_secs(1);
/// Threads for blocking work. If all are busy, more blocking requests wait.
const WAITING_THREADS: usize = 64;

/// Serve the store over HTTP: planners read, producers append
///
/// Every request needs a token (`ipse token create`) and acts on the identity in its token. Ctrl-C
/// stops the server after it has finished running requests.
///
/// Example: ipse serve --listen 127.0.0.1:7477
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Read settings from this TOML file; a setting is named as its flag, with _ for -
    #[arg(long, env = "IPSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Listen on this address [default: 127.0.0.1:7477]; other than loopback needs a token first
    #[arg(long, env = "IPSE_LISTEN", value_name = "ADDRESS:PORT")]
    listen: Option<String>,

    /// Run a pass after this many new events [default: 64]
    #[arg(long, env = "IPSE_PASS_EVERY", value_name = "N")]
    pass_every: Option<String>,

    /// Run a pass after this many milliseconds without an event [default: 1000]
    #[arg(long, env = "IPSE_PASS_QUIET", value_name = "MS")]
    pass_quiet: Option<String>,

    /// Set the log level: error, warn, info, debug (debug logs every request) [default: info]
    #[arg(long, env = "IPSE_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<String>,

    /// Set the format of log lines: text or json [default: text]
    #[arg(long, env = "IPSE_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<String>,

    /// Serve TLS with this certificate chain, PEM (in builds with the feature tls)
    #[arg(long, env = "IPSE_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<String>,

    /// Use this private key for the certificate, PEM
    #[arg(long, env = "IPSE_TLS_KEY", value_name = "FILE")]
    tls_key: Option<String>,

    /// Judge intents by this registry, with --policy and --temperament; each must be the file whose
    /// hash is in the manifest
    #[arg(long, env = "IPSE_ECM_REGISTRY", value_name = "FILE")]
    ecm_registry: Option<String>,

    /// Use this policy: clamps, forbidden ranges, rate limits
    #[arg(long, env = "IPSE_POLICY", value_name = "FILE")]
    policy: Option<String>,

    /// Use this temperament: risk appetite, ethical floor, when a person must confirm
    #[arg(long, env = "IPSE_TEMPERAMENT", value_name = "FILE")]
    temperament: Option<String>,

    /// Allow one token this many intents a minute, a sixth of them at once [default: 600]
    #[arg(long, env = "IPSE_INTENT_RATE", value_name = "N")]
    intent_rate: Option<String>,

    /// Accept the host of this URL too, such as that of a proxy; repeatable. On loopback the server
    /// accepts requests for localhost, 127.0.0.1, [::1] and the hosts of these URLs
    #[arg(long, env = "IPSE_PUBLIC_URL", value_name = "URL", value_delimiter = ',')]
    public_url: Vec<String>,

    /// Serve one agent on loopback for trying things out: print the addresses and a token of each
    /// role. The tokens are in memory only and end with the process
    #[arg(long)]
    dev: bool,

    /// Print the settings with the source of each, and exit
    #[arg(long)]
    print_config: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let settings = Settings::gather(context, args)?;
    if args.print_config {
        return settings.print(context, terminal);
    }
    if context.names_identity() {
        bail!("serve takes no --identity: all agents of a store are served, selected by the token");
    }
    let context = context.with_store(settings.store.clone(), settings.key_dir.clone());
    let secure = Transport::of(&settings)?;
    log_as(&settings, context.json);
    let store = context.store_to_write(terminal)?;
    let gates = gates(&context, &settings)?;
    let policy = Policy { every: settings.pass_every, quiet: settings.pass_quiet };
    let hosts = Hosts::new(settings.listen.ip(), settings.public_hosts.clone());
    let dev = args.dev.then(|| DevTokens::make(store, settings.listen.ip())).transpose()?;
    let tokens = dev.as_ref().map(DevTokens::tokens).unwrap_or_default();
    let wiring = Wiring::new(&context, store, policy, gates, settings.intent_rate, hosts);
    let wiring = wiring.with_tokens(tokens);
    let service = Service::open(store, Arc::new(wiring))?;
    let no_tokens = !service.has_tokens()?;
    if no_tokens && !settings.listen.ip().is_loopback() {
        let listen = settings.listen;
        bail!("no token exists, so {listen} is not opened: run `ipse token create`");
    }
    // Half of the cores serve from memory; the others are for the logs and for clients.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .worker_threads((cores / 2).max(1))
        .max_blocking_threads(WAITING_THREADS)
        .build()
        .context("could not start the server's threads")?;
    let listener = runtime.block_on(TcpListener::bind(settings.listen));
    let listener = listener.with_context(|| format!("could not listen on {}", settings.listen))?;
    // Signals are watched before readiness is reported: a stop may follow at once.
    let (stop, stopped) = oneshot::channel();
    watch_signals(stop).context("could not watch for signals")?;
    let notifier = Notifier::from_environment();
    if let Some(dev) = &dev {
        let address = listener.local_addr().context("could not read the address")?;
        dev.tell(terminal, &format!("{}://{address}", secure.scheme()))?;
    }
    notifier.ready(&tell(&listener, &secure, service.agent_count() as u64)?);
    if settings.store.path().is_some_and(|store| !is_writable(store)) {
        tracing::warn!("this user may not write the store: reads work, events are rejected");
    }
    if no_tokens {
        tracing::warn!("no token exists, so every request is rejected: run `ipse token create`");
    }
    let served = runtime.block_on(serve(listener, service.clone(), secure, stopped, notifier));
    end(runtime, service);
    served.map(|()| Exit::Fine)
}

/// Reads the gate files if they are given; at least one agent must be bound to them.
fn gates(context: &Context, settings: &Settings) -> anyhow::Result<Option<GateFiles>> {
    let Some(paths) = &settings.gates else { return Ok(None) };
    let files = GateFiles::read(paths)?;
    let manifests = context.store()?.reader()?.manifests()?;
    let (bound, all) = (files.bound(&manifests)?, counted(manifests.len() as u64, "agent"));
    tracing::info!("gates judge the intents of {bound} of {all}");
    // A store that this user may only read is served too; its bundles then lack the files.
    if let Err(error) = files.store(context.store()?) {
        tracing::warn!("the gate files were not stored, so bundles may lack them: {error:#}");
    }
    Ok(Some(files))
}

/// Finishes accepted work and closes the logs; only then it logs that the server stopped.
fn end(runtime: Runtime, service: Arc<Service>) {
    runtime.shutdown_timeout(GRACE);
    drop(service);
    tracing::info!("stopped");
}

fn log_as(settings: &Settings, json: bool) {
    let lines = tracing_subscriber::fmt()
        // It would report a failed write with `eprintln`, which panics then.
        .log_internal_errors(false)
        .with_max_level(settings.log_level)
        .with_writer(std::io::stderr)
        .with_target(false);
    if settings.log_json || json { lines.json().flatten_event(true).init() } else { lines.init() }
}

/// Logs the address of the server, and returns the message.
fn tell(listener: &TcpListener, secure: &Transport, agents: u64) -> anyhow::Result<String> {
    let address = listener.local_addr().context("could not read the address of the listener")?;
    let (scheme, counted) = (secure.scheme(), counted(agents, "agent"));
    let serving = format!("serving {counted} on {scheme}://{address}");
    tracing::info!("{serving}; Ctrl-C stops");
    if scheme == "http" && !address.ip().is_loopback() {
        tracing::warn!("tokens are sent unencrypted: use a proxy with TLS, or set tls_cert");
    }
    Ok(serving)
}

async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    secure: Transport,
    stopped: oneshot::Receiver<()>,
    notifier: Notifier,
) -> anyhow::Result<()> {
    let mut looker = tokio::spawn(look_after(service.clone()));
    tokio::spawn(watch_drift(service.clone()));
    let mut gone = None;
    let graceful = async {
        tokio::select! {
            _ = stopped => looker.abort(),
            error = &mut looker => gone = error.ok(),
        }
        notifier.stopping();
        tracing::info!("stopping: finishing running requests");
        tokio::spawn(async {
            tokio::time::sleep(GRACE).await;
            tracing::error!("stopped at once: running requests took longer than {GRACE:?}");
            std::process::exit(1);
        });
    };
    match secure {
        Transport::Plain => {
            let plain = |stream| std::future::ready(Ok::<_, std::io::Error>(stream));
            ipse_http::serve(listener, service, plain, graceful).await;
        }
        #[cfg(feature = "tls")]
        Transport::Tls(tls) => {
            ipse_http::serve(listener, service, |stream| tls.accept(stream), graceful).await;
        }
    }
    gone.map_or(Ok(()), |error| Err(error.into()))
}

/// Refreshes the service at intervals, until the store is gone.
async fn look_after(service: Arc<Service>) -> Error {
    loop {
        tokio::time::sleep(REFRESH).await;
        let service = service.clone();
        // A refresh that panics is retried at the next interval.
        if let Ok(Err(gone)) = tokio::task::spawn_blocking(move || service.refresh()).await {
            return gone;
        }
    }
}

/// Computes the drift alarms at intervals, apart from the refresh, which must not wait for them.
async fn watch_drift(service: Arc<Service>) {
    loop {
        tokio::time::sleep(DRIFT).await;
        let service = service.clone();
        // A computation that panics is retried at the next interval.
        let _ = tokio::task::spawn_blocking(move || service.watch_drift()).await;
    }
}

/// The transport of connections: plain TCP or TLS.
enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Tls(tokio_rustls::TlsAcceptor),
}

impl Transport {
    fn of(settings: &Settings) -> anyhow::Result<Self> {
        match &settings.tls {
            None => Ok(Transport::Plain),
            #[cfg(feature = "tls")]
            Some((cert, key)) => tls::acceptor(cert, key).map(Transport::Tls),
            #[cfg(not(feature = "tls"))]
            Some(_) => bail!(
                "this ipse was built without TLS: build it with --features tls, or use a reverse \
                 proxy with TLS"
            ),
        }
    }

    fn scheme(&self) -> &'static str {
        match self {
            Transport::Plain => "http",
            #[cfg(feature = "tls")]
            Transport::Tls(_) => "https",
        }
    }
}

/// The first signal starts a graceful stop; the second ends the process at once.
fn watch_signals(stop: oneshot::Sender<()>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        let mut stop = Some(stop);
        for signal in signals.forever() {
            match stop.take() {
                Some(stop) => drop(stop.send(())),
                None => std::process::exit(128 + signal),
            }
        }
    });
    Ok(())
}
