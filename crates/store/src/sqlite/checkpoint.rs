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

/// Pages in the log from which on it is copied: 4 MB, as SQLite does by itself.
const COPY_FROM: i32 = 1000;
/// Pages in the log from which on writers wait until it begins anew: 64 MB.
const RESTART_FROM: i32 = 16_000;

/// Watches how long the log gets, and has it copied by a thread of its own.
pub(super) struct Checkpointer {
    path: PathBuf,
    /// Pages in the log after the last commit, whoever wrote them.
    pages: Arc<AtomicI32>,
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
        Ok(Checkpointer { path: path.to_owned(), pages, thread: None })
    }

    /// Has the log copied if it is long enough. The thread starts when it is first needed.
    pub(super) fn after_commit(&mut self) {
        if self.pages.load(Ordering::Relaxed) < COPY_FROM {
            return;
        }
        let path = &self.path;
        let (wake, _) = self.thread.get_or_insert_with(|| {
            let (wake, woken) = sync_channel(1);
            let path = path.clone();
            (wake, std::thread::spawn(move || copy_when_woken(&path, &woken)))
        });
        // If it is busy already, it will be told after a later commit.
        let _ = wake.try_send(());
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
