//! The files of a store while a handle has it open: the store itself, its write-ahead log and the
//! index of that log (`-shm`).
//!
//! **Invariants**
//! - A handle that finds another file, or none, under one of their names reports it, before and
//!   after every commit: what is committed then is in a file that no other process finds, or is
//!   overwritten by a process that has another index.
//! - So does a handle that finds the store emptied, and one that appends if its write-ahead log was
//!   emptied under it: SQLite writes on behind the end that it remembers, and no process that opens
//!   the store later reads what stands behind a hole.
//! - The names are durable before the first commit of a handle that appends. SQLite syncs the
//!   directory too, but takes no notice if that fails.
//! - The store and its `-shm` are never opened here: closing any descriptor of a file drops all of
//!   a process's locks on it, and SQLite's are on those two. It takes none on the `-wal` file.

use super::wal;
use crate::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file behind a path, to tell whether it is still the same one.
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

    /// The size of the file; an error, if another one or none stands under the path now.
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

/// What is known of a file.
struct Found {
    device_and_number: (u64, u64),
    size: u64,
}

/// The file at a path, if there is one.
///
/// The times of the file are not asked for. Linux gives a file a finer time at its next write once
/// its times were read, and ext4 then starts a transaction for each write: a check of the
/// write-ahead log by `stat` made a commit a third dearer.
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

/// The bytes of the file at a path; 0 if there is none.
pub(super) fn bytes(path: &Path) -> u64 {
    found(path).map_or(0, |found| found.size)
}

/// The files that hold what was committed, and say where it is.
pub(super) struct Files {
    store: Named,
    /// `-wal` and `-shm`, as far as they were there when the handle was opened.
    beside: Vec<Named>,
    /// Whether this handle has synced the directory.
    named: bool,
    /// Whether the write-ahead log had anything in it when this handle last looked.
    filled: bool,
    /// Whether it was empty after that when the batch began. Another process may have copied it
    /// into the store and begun it anew.
    emptied: bool,
}

impl Files {
    /// The files of a store that a connection has just opened: from then on until it is closed its
    /// write-ahead log stays the same file.
    pub(super) fn at(path: &Path) -> Self {
        let mut beside = Vec::from(BESIDE.map(|suffix| Named::at(beside_of(path, suffix))));
        beside.retain(|file| file.device_and_number.is_some());
        let filled = found(&wal_of(path)).is_some_and(|wal| wal.size > 0);
        let store = Named::at(path.to_owned());
        Files { store, beside, named: false, filled, emptied: false }
    }

    /// The same for a handle that appends, which has them all.
    pub(super) fn to_append(path: &Path) -> Result<Self, Error> {
        let files = Self::at(path);
        let has = |suffix: &&str| files.beside.iter().any(|it| it.path == beside_of(path, suffix));
        match BESIDE.iter().find(|suffix| !has(suffix)) {
            Some(missing) => Err(Error::Gone(beside_of(path, missing))),
            None => Ok(files),
        }
    }

    /// An error, if one of the files was removed or replaced, or the store was emptied.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.look().map(drop)
    }

    /// The same; how large the write-ahead log is.
    fn look(&self) -> Result<u64, Error> {
        // No store is empty: SQLite writes its first page before it has a write-ahead log.
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

    /// The same before a batch of a handle that appends.
    pub(super) fn check_before(&mut self) -> Result<(), Error> {
        let is_filled = self.look()? > 0;
        self.emptied = self.filled && !is_filled;
        self.filled = is_filled;
        Ok(())
    }

    /// The same after its commit: an error also if the write-ahead log was emptied and not begun
    /// anew. Then it has a hole where its header was.
    pub(super) fn check_after(&mut self) -> Result<(), Error> {
        self.filled = self.look()? > 0;
        match self.emptied && self.filled && !begins_as_wal(&self.beside[0].path) {
            true => Err(self.beside[0].gone()),
            false => Ok(()),
        }
    }

    /// Makes the names durable, once. *If it dies before this:* nothing was acknowledged.
    pub(super) fn make_names_durable(&mut self) -> Result<(), Error> {
        if !self.named {
            sync_directory(&self.store.path)?;
            self.named = true;
        }
        Ok(())
    }
}

/// Whether a file begins as a write-ahead log does, in one byte order or the other.
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

/// The same, unless the names are durable already: every handle syncs the directory before its
/// first commit, so that a write-ahead log that is not empty has a durable name.
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
/// What SQLite adds to the name of a store for the files of a write-ahead log.
const BESIDE: [&str; 2] = [WAL, "-shm"];

/// A file of a store. SQLite puts it beside the file that a link leads to.
fn beside_of(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(resolved(path));
    name.push(suffix);
    name.into()
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
