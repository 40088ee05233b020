//! The files of a store while a handle has it open: the store itself, its write-ahead log and the
//! index of that log (`-shm`).
//!
//! **Invariants**
//! - A handle that finds another file, or none, under one of their names reports it, before and
//!   after every commit: what is committed then is in a file that no other process finds, or is
//!   overwritten by a process that has another index.
//! - The names are durable before the first commit of a handle that appends. SQLite syncs the
//!   directory too, but takes no notice if that fails.
//! - The store and its `-shm` are never opened here: closing any descriptor of a file drops all of
//!   a process's locks on it, and SQLite's are on those two. It takes none on the `-wal` file.

use crate::Error;
use std::ffi::OsString;
use std::fs::File;
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
        let device_and_number = device_and_number(&path);
        Named { path, device_and_number }
    }

    /// An error, if another file or none stands under the path now.
    fn check(&self) -> Result<(), Error> {
        match Named::at(self.path.clone()) == *self {
            true => Ok(()),
            false => Err(Error::Gone(self.path.clone())),
        }
    }
}

/// The device and the number of the file at a path, if there is one.
///
/// The times of the file are not asked for. Linux gives a file a finer time at its next write once
/// its times were read, and ext4 then starts a transaction for each write: a check of the
/// write-ahead log by `stat` made a commit a third dearer.
#[cfg(target_os = "linux")]
fn device_and_number(path: &Path) -> Option<(u64, u64)> {
    let asked = rustix::fs::StatxFlags::INO;
    match rustix::fs::statx(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), asked) {
        Ok(file) => {
            let device = rustix::fs::makedev(file.stx_dev_major, file.stx_dev_minor);
            Some((device, file.stx_ino))
        }
        Err(rustix::io::Errno::NOSYS) => by_stat(path),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn device_and_number(path: &Path) -> Option<(u64, u64)> {
    by_stat(path)
}

fn by_stat(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The files that hold what was committed, and say where it is.
pub(super) struct Files {
    store: Named,
    /// `-wal` and `-shm`, as far as they were there when the handle was opened.
    beside: Vec<Named>,
    /// Whether this handle has synced the directory.
    named: bool,
}

impl Files {
    /// The files of a store that a connection has just opened: from then on until it is closed its
    /// write-ahead log stays the same file.
    pub(super) fn at(path: &Path) -> Self {
        let mut beside = Vec::from(BESIDE.map(|suffix| Named::at(beside_of(path, suffix))));
        beside.retain(|file| file.device_and_number.is_some());
        Files { store: Named::at(path.to_owned()), beside, named: false }
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

    /// Where the store is.
    pub(super) fn path(&self) -> &Path {
        &self.store.path
    }

    /// An error, if one of the files was removed or replaced.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.store.check()?;
        self.beside.iter().try_for_each(Named::check)
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
