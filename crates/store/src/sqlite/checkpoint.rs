//! Copying the write-ahead log back into the file, off the writer.
//!
//! **Invariants**
//! - Durability does not depend on this: what is committed is in the write-ahead log, synced. If
//!   the process dies here, or a copy fails, the next one copies again.
//! - The writer never copies. It waits only if the log has grown far beyond what is usual, while
//!   the rest of it is copied and it begins anew: so the log's size is bounded under any load.

use super::connect;
use crate::Error;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Pages by which the log grows between two copies: 4 MB, as SQLite does by itself.
const COPY_EVERY: i32 = 1000;
/// Pages in the log from which on writers wait until it begins anew: 16 MB.
const RESTART_FROM: i32 = 4000;

/// Watches how long the log gets, and has it copied by a thread of its own.
pub(super) struct Checkpointer {
    path: PathBuf,
    /// Pages in the log after the last commit, whoever wrote them.
    pages: Arc<AtomicI32>,
    /// The same when it was last to be copied.
    told: i32,
    thread: Option<(SyncSender<()>, JoinHandle<()>)>,
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
        Ok(Checkpointer { path: path.to_owned(), pages, told: 0, thread: None })
    }

    /// Has the log copied if it has grown enough. The thread starts when it is first needed.
    pub(super) fn after_commit(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        // A log that is shorter than before has begun anew.
        self.told = if pages < self.told { 0 } else { self.told };
        if pages - self.told < COPY_EVERY {
            return;
        }
        let path = &self.path;
        let (wake, _) = self.thread.get_or_insert_with(|| {
            let (wake, woken) = sync_channel(1);
            let path = path.clone();
            (wake, std::thread::spawn(move || copy_when_woken(&path, &woken)))
        });
        // If it has not begun with the last one yet, it is told after the next commit.
        if wake.try_send(()).is_ok() {
            self.told = pages;
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        if let Some((wake, thread)) = self.thread.take() {
            drop(wake);
            // A thread that panicked left the log as it was.
            let _ = thread.join();
        }
    }
}

fn copy_when_woken(path: &Path, woken: &Receiver<()>) {
    let Ok(connection) = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE) else { return };
    while woken.recv().is_ok() {
        let copied = connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE);
        if copied.is_ok_and(|(pages, _)| pages >= RESTART_FROM) {
            // A reader that stays keeps the log from beginning anew; the next attempt may succeed.
            let _ = connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::RESTART);
        }
    }
}
