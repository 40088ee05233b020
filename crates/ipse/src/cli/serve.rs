//! `serve`: planners read, producers append, over HTTP.
//!
//! **Invariants**
//! - Nothing but loopback is bound while no token exists: nobody could come in, and nobody should
//!   be invited to try.
//! - Whoever is told to stop (HUP, INT, TERM) takes no new connection, finishes what was begun, and
//!   leaves a store that needs no repair; a second signal ends it at once.
//! - A store that was removed or replaced is served no longer: the process ends with an error. A
//!   store that is older than what was signed is not served at all.
//! - A log line that cannot be written is lost, and nothing else is.

use super::Exit;
use super::context::Context;
use super::gate_files::GateFiles;
use super::serve_args::ServeArgs;
use super::settings::Settings;
use super::terminal::{Terminal, counted};
use super::wired::Wired;
use anyhow::{Context as _, bail};
use ipse_engine::Error;
use ipse_engine::token::Tokens;
use ipse_http::Service;
use ipse_store::sqlite::Reader;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::num::NonZero;
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

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ServeArgs,
) -> anyhow::Result<Exit> {
    let settings = Settings::gather(context, args)?;
    if args.print_config {
        return settings.print(context, terminal);
    }
    if context.names_identity() {
        bail!("all agents of a store are served: a token says whose log a request is about");
    }
    let context = context.with_store(settings.store.clone(), settings.key_dir.clone());
    context.check_store_name()?;
    let secure = Secure::of(&settings)?;
    log_as(&settings, context.json);
    // A store of an older ipse is brought up to date by whoever opens it for writing.
    drop(Tokens::open(&context.store)?);
    let gates = gates(&context, &settings)?;
    let service = Service::open(&context.store, Arc::new(Wired::new(&context, &settings, gates)))?;
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
    tell(&listener, &secure, service.agent_count() as u64)?;
    if nobody {
        tracing::warn!("no token exists, so nobody can come in: `ipse token create` makes one");
    }
    let served = runtime.block_on(serve(listener, service.clone(), secure, stopped));
    end(runtime, service);
    served.map(|()| Exit::Fine)
}

/// The gates, if their files are given: each must be the one that an agent here is bound to.
fn gates(context: &Context, settings: &Settings) -> anyhow::Result<Option<GateFiles>> {
    let Some(paths) = &settings.gates else { return Ok(None) };
    let files = GateFiles::read(paths)?;
    let manifests = Reader::open(&context.store)?.manifests()?;
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

fn tell(listener: &TcpListener, secure: &Secure, agents: u64) -> anyhow::Result<()> {
    let address = listener.local_addr().context("could not tell where it listens")?;
    let (scheme, counted) = (secure.scheme(), counted(agents, "agent"));
    tracing::info!("serving {counted} on {scheme}://{address}; Ctrl-C stops");
    if scheme == "http" && !address.ip().is_loopback() {
        tracing::warn!("tokens travel in the clear: let a proxy speak TLS, or set tls_cert");
    }
    Ok(())
}

async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    secure: Secure,
    stopped: oneshot::Receiver<()>,
) -> anyhow::Result<()> {
    let mut looker = tokio::spawn(look_after(service.clone()));
    let mut gone = None;
    let graceful = async {
        tokio::select! {
            _ = stopped => looker.abort(),
            error = &mut looker => gone = error.ok(),
        }
        tracing::info!("stopping: what was begun is finished");
        tokio::spawn(async {
            tokio::time::sleep(GRACE).await;
            tracing::error!("stopped at once: what was begun took longer than {GRACE:?}");
            std::process::exit(1);
        });
    };
    match secure {
        Secure::Plain => {
            let plain = |stream| std::future::ready(Ok::<_, std::io::Error>(stream));
            ipse_http::serve(listener, service, plain, graceful).await;
        }
        #[cfg(feature = "tls")]
        Secure::Tls(tls) => {
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
enum Secure {
    Plain,
    #[cfg(feature = "tls")]
    Tls(tokio_rustls::TlsAcceptor),
}

impl Secure {
    fn of(settings: &Settings) -> anyhow::Result<Self> {
        match &settings.tls {
            None => Ok(Secure::Plain),
            #[cfg(feature = "tls")]
            Some((cert, key)) => super::tls::acceptor(cert, key).map(Secure::Tls),
            #[cfg(not(feature = "tls"))]
            Some(_) => bail!(
                "this ipse was built without TLS: build it with --features tls, or let a reverse \
                 proxy speak TLS"
            ),
        }
    }

    fn scheme(&self) -> &'static str {
        match self {
            Secure::Plain => "http",
            #[cfg(feature = "tls")]
            Secure::Tls(_) => "https",
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
