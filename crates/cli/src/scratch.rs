//! A directory for work that leaves nothing behind.
//!
//! **Invariant:** it goes when the work is done, when it fails, and when somebody interrupts it:
//! whoever is told to stop (INT, TERM, HUP) takes it away first. Only `kill -9` leaves it.

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::path::Path;
use std::thread::JoinHandle;
use tempfile::TempDir;

/// What a shell expects of a program that a signal ended.
const SIGNALLED: i32 = 128;

/// How often it is tried to remove what somebody still writes to.
const TRIES: usize = 10;

/// A temporary directory.
pub(crate) struct Scratch {
    directory: TempDir,
    signals: Handle,
    watch: Option<JoinHandle<()>>,
}

impl Scratch {
    /// Makes one where the system has its temporary files.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let made = tempfile::Builder::new().prefix("ipse-").tempdir();
        let directory = made.context("could not make a temporary directory (TMPDIR says where)")?;
        let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]);
        let mut signals = signals.context("could not watch for signals")?;
        let (handle, path) = (signals.handle(), directory.path().to_owned());
        let watch = std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                // The work goes on meanwhile, and may put a file there while it is emptied. If it
                // cannot be removed, nobody is left to tell.
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
            // A watch that panicked has nothing left to do.
            let _ = watch.join();
        }
    }
}
