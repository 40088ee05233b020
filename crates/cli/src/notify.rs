//! Readiness: reports to a service manager over the socket that it named in `NOTIFY_SOCKET`.
//!
//! **Invariant:** a failed report is logged, and the server continues.

use anyhow::{Context as _, bail};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket of the service manager, if there is one.
pub(crate) struct Notifier(Option<(UnixDatagram, SocketAddr)>);

impl Notifier {
    /// The socket that the environment names.
    pub(crate) fn from_environment() -> Self {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let socket = name.map(|name| {
            let address = address(name.as_bytes())?;
            Ok::<_, anyhow::Error>((UnixDatagram::unbound()?, address))
        });
        Notifier(socket.transpose().unwrap_or_else(|error| {
            let error = format!("{error:#}");
            tracing::warn!(error, "NOTIFY_SOCKET is not usable: readiness is not reported");
            None
        }))
    }

    /// Reports that the server accepts requests.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// Reports that the server stops.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping\n");
    }

    fn tell(&self, state: &str) {
        let Some((socket, address)) = &self.0 else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::warn!(%error, "could not notify the service manager");
        }
    }
}

/// Parses a socket address: a path, or `@` and an abstract name.
fn address(name: &[u8]) -> anyhow::Result<SocketAddr> {
    match name {
        [b'/', ..] => {
            let path = std::ffi::OsStr::from_bytes(name);
            SocketAddr::from_pathname(path).context("the path is not a valid socket address")
        }
        #[cfg(target_os = "linux")]
        [b'@', rest @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(rest).context("the name is not a valid socket address")
        }
        _ => bail!("its value must begin with / or @"),
    }
}
