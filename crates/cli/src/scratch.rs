//! A temporary directory for one command.
//!
//! **Invariant:** the directory is removed when the command ends, fails or receives INT, TERM or
//! HUP. Only `kill -9` leaves it.

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::path::Path;
use std::thread::JoinHandle;
use tempfile::TempDir;

/// The exit code after a signal is this plus the signal's number, as shells expect.
const SIGNALLED: i32 = 128;

/// Attempts to remove a directory while the command still writes to it.
const TRIES: usize = 10;

/// A temporary directory.
pub(crate) struct Scratch {
    directory: TempDir,
    signals: Handle,
    watch: Option<JoinHandle<()>>,
}

impl Scratch {
    /// Creates one in the system's directory for temporary files.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let made = tempfile::Builder::new().prefix("ipse-").tempdir();
        let directory = made.context("could not create a temporary directory; set TMPDIR")?;
        let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]);
        let mut signals = signals.context("could not watch for signals")?;
        let (handle, path) = (signals.handle(), directory.path().to_owned());
        let watch = std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                // The command still runs and may create a file during the removal, so retry. If
                // all attempts fail, the directory stays: there is no way to report it.
                (0..TRIES).any(|_| std::fs::remove_dir_all(&path).is_ok());
                std::process::exit(SIGNALLED + signal);
            }
        });
        Ok(Scratch { directory, signals: handle, watch: Some(watch) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(watch) = self.watch.take() {
            // A watch that panicked has no work left.
            let _ = watch.join();
        }
    }
}
