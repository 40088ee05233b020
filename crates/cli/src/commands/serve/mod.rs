//! `serve`: planners read, producers append, over HTTP. The range of each setting and its default
//! are in `settings`.
//!
//! **Invariants**
//! - Nothing but loopback is bound while no token exists: no request could be answered.
//! - On HUP, INT or TERM the server takes no new connection, finishes what was begun, and leaves a
//!   store that needs no repair; a second signal ends it at once.
//! - A store that was removed or replaced is served no longer: the process ends with an error. A
//!   store that is older than what was signed is not served at all.
//! - A log line that cannot be written is lost, and nothing else is.

mod settings;
#[cfg(feature = "tls")]
mod tls;

use crate::context::Context;
use crate::gate_files::GateFiles;
use crate::notify::Notifier;
use crate::terminal::{Terminal, counted};
use crate::wiring::Wiring;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
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

/// How long stopping may take at most: connections are given less, the rest is for the store.
const GRACE: Duration = Duration::from_secs(15);
/// How often it is looked what other processes did.
const REFRESH: Duration = Duration::from_millis(500);
/// Threads for what waits for the disk; more requests of that kind wait for one of them.
const WAITING_THREADS: usize = 64;

/// Serve the store over HTTP: planners read, producers append
///
/// Every request needs a token (`ipse token create`), and the token says whose log it is about.
/// Ctrl-C stops it: what was begun is finished first.
///
/// Example: ipse serve --listen 127.0.0.1:7477
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// A file of settings, in TOML: a setting is named as its flag, with _ for -
    #[arg(long, env = "IPSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where to listen [default: 127.0.0.1:7477]; anything but loopback needs a token first
    #[arg(long, env = "IPSE_LISTEN", value_name = "ADDRESS:PORT")]
    listen: Option<String>,

    /// A pass follows the append that makes so many events new [default: 64]
    #[arg(long, env = "IPSE_PASS_EVERY", value_name = "N")]
    pass_every: Option<String>,

    /// A pass follows once no event came for so long, in milliseconds [default: 1000]
    #[arg(long, env = "IPSE_PASS_QUIET", value_name = "MS")]
    pass_quiet: Option<String>,

    /// What is worth a line: error, warn, info or debug, which tells every request [default: info]
    #[arg(long, env = "IPSE_LOG_LEVEL", value_name = "LEVEL")]
    log_level: Option<String>,

    /// How a line is written: text, or json for programs [default: text]
    #[arg(long, env = "IPSE_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<String>,

    /// The certificate chain to speak TLS with, PEM (in builds with the feature tls)
    #[arg(long, env = "IPSE_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<String>,

    /// The private key of that certificate, PEM
    #[arg(long, env = "IPSE_TLS_KEY", value_name = "FILE")]
    tls_key: Option<String>,

    /// What the agent can do: skills and their parameters. With it and the next two, intents are
    /// judged; each must be the file that the manifest was registered with
    #[arg(long, env = "IPSE_ECM_REGISTRY", value_name = "FILE")]
    ecm_registry: Option<String>,

    /// What the agent must never do: clamps, forbidden ranges, rate limits
    #[arg(long, env = "IPSE_POLICY", value_name = "FILE")]
    policy: Option<String>,

    /// How bold the agent is: risk appetite, ethical floor, what a person has to confirm
    #[arg(long, env = "IPSE_TEMPERAMENT", value_name = "FILE")]
    temperament: Option<String>,

    /// How many intents one token may propose in a minute, a sixth of them at once [default: 600]
    #[arg(long, env = "IPSE_INTENT_RATE", value_name = "N")]
    intent_rate: Option<String>,

    /// A URL under which clients reach the server, through a proxy for instance; repeatable. On
    /// loopback the server answers to localhost, 127.0.0.1, [::1] and the hosts of these URLs
    #[arg(long, env = "IPSE_PUBLIC_URL", value_name = "URL", value_delimiter = ',')]
    public_url: Vec<String>,

    /// Print the settings, and where each one comes from, and do nothing else
    #[arg(long)]
    print_config: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let settings = Settings::gather(context, args)?;
    if args.print_config {
        return settings.print(context, terminal);
    }
    if context.names_identity() {
        bail!("all agents of a store are served: a token says whose log a request is about");
    }
    let context = context.with_store(settings.store.clone(), settings.key_dir.clone());
    let secure = Transport::of(&settings)?;
    log_as(&settings, context.json);
    let store = context.store_to_write(terminal)?;
    let gates = gates(&context, &settings)?;
    let policy = Policy { every: settings.pass_every, quiet: settings.pass_quiet };
    let hosts = Hosts::new(settings.listen.ip(), settings.public_hosts.clone());
    let wiring = Wiring::new(&context, store, policy, gates, settings.intent_rate, hosts);
    let service = Service::open(store, Arc::new(wiring))?;
    let nobody = !service.has_tokens()?;
    if nobody && !settings.listen.ip().is_loopback() {
        let listen = settings.listen;
        bail!("no token exists, so {listen} is not opened: `ipse token create` makes one");
    }
    // Half of the cores answer from memory; the others are for logs, and whoever asks.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .worker_threads((cores / 2).max(1))
        .max_blocking_threads(WAITING_THREADS)
        .build()
        .context("could not start the server's threads")?;
    let listener = runtime.block_on(TcpListener::bind(settings.listen));
    let listener = listener.with_context(|| format!("could not listen on {}", settings.listen))?;
    // Whoever reads that it serves may stop it at once.
    let (stop, stopped) = oneshot::channel();
    watch_signals(stop).context("could not watch for signals")?;
    let notifier = Notifier::from_environment();
    notifier.ready(&tell(&listener, &secure, service.agent_count() as u64)?);
    if nobody {
        tracing::warn!("no token exists, so nobody can come in: `ipse token create` makes one");
    }
    let served = runtime.block_on(serve(listener, service.clone(), secure, stopped, notifier));
    end(runtime, service);
    served.map(|()| Exit::Fine)
}

/// The gates, if their files are given: each must be the one that an agent here is bound to.
fn gates(context: &Context, settings: &Settings) -> anyhow::Result<Option<GateFiles>> {
    let Some(paths) = &settings.gates else { return Ok(None) };
    let files = GateFiles::read(paths)?;
    let manifests = context.store()?.reader()?.manifests()?;
    let (bound, all) = (files.bound(&manifests)?, counted(manifests.len() as u64, "agent"));
    tracing::info!("gates judge the intents of {bound} of {all}");
    Ok(Some(files))
}

/// What was taken in is finished, and the logs are closed, before anybody is told that it ended.
fn end(runtime: Runtime, service: Arc<Service>) {
    runtime.shutdown_timeout(GRACE);
    drop(service);
    tracing::info!("stopped");
}

fn log_as(settings: &Settings, json: bool) {
    let lines = tracing_subscriber::fmt()
        // It would report a line that cannot be written with `eprintln`, which then panics.
        .log_internal_errors(false)
        .with_max_level(settings.log_level)
        .with_writer(std::io::stderr)
        .with_target(false);
    if settings.log_json || json { lines.json().flatten_event(true).init() } else { lines.init() }
}

/// Says where it serves, and returns what it said.
fn tell(listener: &TcpListener, secure: &Transport, agents: u64) -> anyhow::Result<String> {
    let address = listener.local_addr().context("could not tell where it listens")?;
    let (scheme, counted) = (secure.scheme(), counted(agents, "agent"));
    let serving = format!("serving {counted} on {scheme}://{address}");
    tracing::info!("{serving}; Ctrl-C stops");
    if scheme == "http" && !address.ip().is_loopback() {
        tracing::warn!("tokens travel in the clear: let a proxy speak TLS, or set tls_cert");
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
    let mut gone = None;
    let graceful = async {
        tokio::select! {
            _ = stopped => looker.abort(),
            error = &mut looker => gone = error.ok(),
        }
        notifier.stopping();
        tracing::info!("stopping: what was begun is finished");
        tokio::spawn(async {
            tokio::time::sleep(GRACE).await;
            tracing::error!("stopped at once: what was begun took longer than {GRACE:?}");
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

/// Does what has to be done now and then, until the store is gone.
async fn look_after(service: Arc<Service>) -> Error {
    loop {
        tokio::time::sleep(REFRESH).await;
        let service = service.clone();
        // A look that panics is followed by the next one.
        if let Ok(Err(gone)) = tokio::task::spawn_blocking(move || service.refresh()).await {
            return gone;
        }
    }
}

/// What is spoken.
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
                "this ipse was built without TLS: build it with --features tls, or let a reverse \
                 proxy speak TLS"
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

/// The first signal begins the end; the second is the end.
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
