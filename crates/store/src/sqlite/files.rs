//! The files of a store while a handle has it open: the store itself, its write-ahead log and the
//! index of that log (`-shm`).
//!
//! **Invariants**
//! - Before and after every commit a handle fails if one of the files was removed or replaced. Such
//!   a commit is in a file that no other process finds, or a process with another index overwrites
//!   it.
//! - A handle also fails if the store was emptied. A handle that appends also fails if its
//!   write-ahead log was emptied: SQLite continues at the end that it remembers, and a process that
//!   opens the store later does not read beyond the hole.
//! - The names are durable before the first commit of a handle that appends. SQLite syncs the
//!   directory too, but ignores an error.
//! - The store and its `-shm` are never opened here: closing any descriptor of a file drops all
//!   locks of the process on it, and SQLite has its locks on those two. It has none on the `-wal`.

use super::wal;
use crate::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of the file at a path, to detect a replacement.
#[derive(Clone, PartialEq, Eq)]
struct Named {
    path: PathBuf,
    device_and_number: Option<(u64, u64)>,
}

impl Named {
    fn at(path: PathBuf) -> Self {
        let device_and_number = found(&path).map(|found| found.device_and_number);
        Named { path, device_and_number }
    }

    /// The size of the file. Fails if the file was removed or replaced.
    fn check(&self) -> Result<u64, Error> {
        match found(&self.path) {
            Some(found) if Some(found.device_and_number) == self.device_and_number => {
                Ok(found.size)
            }
            _ => Err(self.gone()),
        }
    }

    fn gone(&self) -> Error {
        Error::Gone(self.path.clone())
    }
}

/// Metadata of a file.
struct Found {
    device_and_number: (u64, u64),
    size: u64,
}

/// The metadata of the file at a path, if it exists.
///
/// This does not query the times of the file. After a query Linux sets a finer time at the next
/// write, and ext4 then starts a transaction for each write: a check of the write-ahead log by
/// `stat` made a commit one third slower.
#[cfg(target_os = "linux")]
fn found(path: &Path) -> Option<Found> {
    let asked = rustix::fs::StatxFlags::INO | rustix::fs::StatxFlags::SIZE;
    match rustix::fs::statx(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), asked) {
        Ok(file) => {
            let device = rustix::fs::makedev(file.stx_dev_major, file.stx_dev_minor);
            Some(Found { device_and_number: (device, file.stx_ino), size: file.stx_size })
        }
        Err(rustix::io::Errno::NOSYS) => by_stat(path),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn found(path: &Path) -> Option<Found> {
    by_stat(path)
}

fn by_stat(path: &Path) -> Option<Found> {
    let file = std::fs::metadata(path).ok()?;
    Some(Found { device_and_number: (file.dev(), file.ino()), size: file.len() })
}

/// The size of the file at a path; 0 if it does not exist.
pub(super) fn bytes(path: &Path) -> u64 {
    found(path).map_or(0, |found| found.size)
}

/// The files that hold committed data and its index.
pub(super) struct Files {
    store: Named,
    /// `-wal` and `-shm`, if they existed when the handle was opened.
    beside: Vec<Named>,
    /// Whether this handle has synced the directory.
    named: bool,
    /// Whether the write-ahead log was not empty at the last check.
    filled: bool,
    /// Whether the write-ahead log became empty before the current batch. Another process may have
    /// copied it into the store and restarted it, which is no error.
    emptied: bool,
}

impl Files {
    /// The files of a store that a connection has just opened. While the connection is open, the
    /// write-ahead log stays the same file.
    pub(super) fn at(path: &Path) -> Self {
        let mut beside = Vec::from(BESIDE.map(|suffix| Named::at(beside_of(path, suffix))));
        beside.retain(|file| file.device_and_number.is_some());
        let filled = found(&wal_of(path)).is_some_and(|wal| wal.size > 0);
        let store = Named::at(path.to_owned());
        Files { store, beside, named: false, filled, emptied: false }
    }

    /// The same for a handle that appends. Fails if `-wal` or `-shm` is missing.
    pub(super) fn to_append(path: &Path) -> Result<Self, Error> {
        let files = Self::at(path);
        let has = |suffix: &&str| files.beside.iter().any(|it| it.path == beside_of(path, suffix));
        match BESIDE.iter().find(|suffix| !has(suffix)) {
            Some(missing) => Err(Error::Gone(beside_of(path, missing))),
            None => Ok(files),
        }
    }

    /// Fails if one of the files was removed or replaced, or the store was emptied.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.look().map(drop)
    }

    /// The same. Returns the size of the write-ahead log.
    fn look(&self) -> Result<u64, Error> {
        // A store is never empty: SQLite writes the first page before it creates a write-ahead log.
        if self.store.check()? == 0 {
            return Err(self.store.gone());
        }
        let mut wal_bytes = 0;
        for (file, is_wal) in self.beside.iter().zip([true, false]) {
            let size = file.check()?;
            wal_bytes = if is_wal { size } else { wal_bytes };
        }
        Ok(wal_bytes)
    }

    /// Runs the check before a batch of a handle that appends.
    pub(super) fn check_before(&mut self) -> Result<(), Error> {
        let is_filled = self.look()? > 0;
        self.emptied = self.filled && !is_filled;
        self.filled = is_filled;
        Ok(())
    }

    /// Runs the check after the commit. Also fails if the write-ahead log was emptied and not
    /// restarted: then it has a hole in place of its header.
    pub(super) fn check_after(&mut self) -> Result<(), Error> {
        self.filled = self.look()? > 0;
        match self.emptied && self.filled && !begins_as_wal(&self.beside[0].path) {
            true => Err(self.beside[0].gone()),
            false => Ok(()),
        }
    }

    /// Makes the names durable, once. *If the process dies before this:* nothing was acknowledged.
    pub(super) fn make_names_durable(&mut self) -> Result<(), Error> {
        if !self.named {
            sync_directory(&self.store.path)?;
            self.named = true;
        }
        Ok(())
    }
}

/// Whether a file begins with the magic number of a write-ahead log, in either byte order.
fn begins_as_wal(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && u32::from_be_bytes(magic) & !1 == wal::MAGIC
}

/// Syncs the directory of a store, so that the names of its files are durable.
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    let path = resolved(path);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|source| Error::NotDurable { path: directory.to_owned(), source })
}

/// The same, unless the names are durable already. Every handle syncs the directory before its
/// first commit, so a write-ahead log that is not empty has a durable name.
pub(super) fn sync_new_names(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(wal_of(path)) {
        Ok(wal) if wal.len() > 0 => Ok(()),
        _ => sync_directory(path),
    }
}

/// The write-ahead log of a store.
pub(super) fn wal_of(path: &Path) -> PathBuf {
    beside_of(path, WAL)
}

const WAL: &str = "-wal";
/// The suffixes that SQLite adds to the name of a store for its companion files.
const BESIDE: [&str; 2] = [WAL, "-shm"];

/// The path of a companion file. SQLite creates it next to the target of a symbolic link.
fn beside_of(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(resolved(path));
    name.push(suffix);
    name.into()
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
