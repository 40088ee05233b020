//! Copying the write-ahead log back into the file, off the writer.
//!
//! **Invariants**
//! - Durability does not depend on this: what is committed is in the write-ahead log, synced. If
//!   the process dies here, or a copy fails, the next one copies again.
//! - The writer never copies. It waits only if the log has grown far beyond what is usual, while
//!   the rest of it is copied and it starts over: so the log's size is bounded under any load.
//! - A reader that keeps one moment open makes a writer wait [`PATIENCE`] for every
//!   [`RESTART_FROM`] pages that it writes, and no longer. The log grows until that reader ends.

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

/// Pages by which the log grows between two copies: 4 MB, as SQLite does by itself.
const COPY_EVERY: i32 = 1000;
/// Pages in the log from which on writers wait until it starts over: 16 MB.
const RESTART_FROM: i32 = 4000;
/// How long they wait for readers. Most readers end sooner. One that stays (a long export, a data
/// tool with an open result) must not use up the time after which a writer gives up.
const PATIENCE: Duration = Duration::from_millis(200);

/// Watches how long the log gets, and has it copied by a thread of its own.
pub(super) struct Checkpointer {
    path: PathBuf,
    /// Pages in the log after the last commit of any process.
    pages: Arc<AtomicI32>,
    /// The same when it was last to be copied.
    told: i32,
    /// Pages in the log at which it is to start over.
    restart_from: i32,
    copier: Option<Copier>,
}

impl Checkpointer {
    /// Takes the place of SQLite's own checkpoints on this connection.
    pub(super) fn attach(connection: &mut Connection, path: &Path) -> Result<Self, Error> {
        let pages = Arc::new(AtomicI32::new(0));
        let seen = pages.clone();
        connection
            .wal_hook(Some(move |_: &mut _, pages| {
                seen.store(pages, Ordering::Relaxed);
                Ok(())
            }))
            .map_err(Error::while_trying("configure the connection"))?;
        let (path, told, restart_from) = (path.to_owned(), 0, RESTART_FROM);
        Ok(Checkpointer { path, pages, told, restart_from, copier: None })
    }

    /// Has the log copied if it has grown enough. The thread starts when it is first needed.
    pub(super) fn after_commit(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        // A log that is shorter than before has started over.
        if pages < self.told {
            (self.told, self.restart_from) = (0, RESTART_FROM);
        }
        if pages - self.told < COPY_EVERY {
            return;
        }
        let copier = self.copier.get_or_insert_with(|| Copier::start(&self.path));
        if pages >= self.restart_from {
            // No transaction is open here. A writer that went on at once would hold the write lock
            // nearly all the time, and the log would start over by luck only.
            let began = copier.restart();
            self.told = pages;
            self.restart_from = if began { RESTART_FROM } else { pages + RESTART_FROM };
        } else if copier.copy() {
            // If it has not begun with the last copy yet, it is asked after the next commit.
            self.told = pages;
        }
    }
}

/// What the thread is asked to do.
enum Job {
    Copy,
    Restart,
}

/// A thread that copies the log on a connection of its own.
struct Copier {
    // Dropped first: the thread ends when it is gone.
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

    /// Asks for a copy and does not wait for it; says whether the thread could be asked.
    fn copy(&self) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.try_send(Job::Copy).is_ok())
    }

    /// Waits until the log was copied and can start over; says whether readers let it. If the
    /// thread could not open the store, it is gone, and this does not wait.
    fn restart(&self) -> bool {
        self.jobs.as_ref().is_some_and(|jobs| jobs.send(Job::Restart).is_ok())
            && self.restarted.recv().unwrap_or(false)
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked left the log as it was.
            let _ = thread.join();
        }
    }
}

fn work(path: &Path, asked: &Receiver<Job>, answer: &Sender<bool>) {
    let Ok(connection) = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE) else { return };
    // SQLite keeps writers out while it waits for readers.
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
