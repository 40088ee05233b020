//! Copying the write-ahead log into the main file, on a separate thread.
//!
//! **Invariants**
//! - Durability does not depend on this: committed data is in the synced write-ahead log. If the
//!   process dies here, or a copy fails, the next copy repeats it.
//! - The writer never copies. It waits only if the log is much larger than usual, until the rest is
//!   copied and the log restarts. So the size of the log is bounded under any load.
//! - A reader with a long transaction delays a writer by [`PATIENCE`] for every [`RESTART_FROM`]
//!   pages that it writes, and no longer. The log grows until that reader ends.

use super::connect;
use crate::Error;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pages by which the log grows between two copies: 4 MB, the default of SQLite.
const COPY_EVERY: i32 = 1000;
/// Pages in the log from which on writers wait until it restarts: 16 MB.
const RESTART_FROM: i32 = 4000;
/// How long writers wait for readers. Most readers end sooner. A longer one (a long export, a data
/// tool with an open result) must not use up the lock timeout of a writer.
const PATIENCE: Duration = Duration::from_millis(200);

/// Watches the size of the log, and starts copies on a separate thread.
pub(super) struct Checkpointer {
    path: PathBuf,
    /// Pages in the log after the last commit of any process.
    pages: Arc<AtomicI32>,
    /// Pages in the log at the last request to copy it.
    reported: i32,
    /// Pages in the log at which it must restart.
    restart_from: i32,
    copier: Option<Copier>,
}

impl Checkpointer {
    /// Replaces SQLite's automatic copying on this connection.
    pub(super) fn attach(connection: &mut Connection, path: &Path) -> Result<Self, Error> {
        let pages = Arc::new(AtomicI32::new(0));
        let seen = pages.clone();
        connection
            .wal_hook(Some(move |_: &mut _, pages| {
                seen.store(pages, Ordering::Relaxed);
                Ok(())
            }))
            .map_err(Error::while_trying("configure the connection"))?;
        let (path, reported, restart_from) = (path.to_owned(), 0, RESTART_FROM);
        Ok(Checkpointer { path, pages, reported, restart_from, copier: None })
    }

    /// Requests a copy if the log has grown enough. The thread starts at the first request.
    pub(super) fn after_commit(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        // A log that is shorter than before has restarted.
        if pages < self.reported {
            (self.reported, self.restart_from) = (0, RESTART_FROM);
        }
        if pages - self.reported < COPY_EVERY {
            return;
        }
        let copier = self.copier.get_or_insert_with(|| Copier::start(&self.path));
        if pages >= self.restart_from {
            // No transaction is open here. A writer that continued at once would hold the write
            // lock nearly all the time, and the log would rarely get a chance to restart.
            let began = copier.restart();
            self.reported = pages;
            self.restart_from = if began { RESTART_FROM } else { pages + RESTART_FROM };
        } else if copier.copy() {
            // If the queue is full, the next commit requests the copy again.
            self.reported = pages;
        }
    }
}

/// A request to the thread.
enum Job {
    Copy,
    Restart,
}

/// A thread that copies the log on its own connection.
struct Copier {
    // Dropped first: the thread ends when the channel closes.
    jobs: Option<SyncSender<Job>>,
    restarted: Receiver<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Copier {
    fn start(path: &Path) -> Self {
        let (jobs, asked) = sync_channel(1);
        let (answer, restarted) = channel();
        let path = path.to_owned();
        let thread = std::thread::spawn(move || work(&path, &asked, &answer));
        Copier { jobs: Some(jobs), restarted, thread: Some(thread) }
    }

    /// Requests a copy and does not wait for it. Returns whether the request was queued.
    fn copy(&self) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.try_send(Job::Copy).is_ok())
    }

    /// Waits until the log is copied and can restart. Returns false if readers prevent it. If the
    /// thread could not open the store, it has ended, and this does not wait.
    fn restart(&self) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(Job::Restart).is_ok())
            && self.restarted.recv().unwrap_or(false)
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked left the log unchanged.
            let _ = thread.join();
        }
    }
}

fn work(path: &Path, asked: &Receiver<Job>, answer: &Sender<bool>) {
    let Ok(connection) = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE) else { return };
    // SQLite blocks writers while it waits for readers.
    if connection.busy_timeout(PATIENCE).is_err() {
        return;
    }
    let checkpoint = |mode| connection.wal_checkpoint_v2(None::<&str>, mode).is_ok();
    while let Ok(job) = asked.recv() {
        let copied = checkpoint(CheckpointMode::PASSIVE);
        if matches!(job, Job::Restart) {
            let began = copied && checkpoint(CheckpointMode::RESTART);
            let _ = answer.send(began);
        }
    }
}
