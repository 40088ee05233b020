//! The files of a store while a handle has it open: the store itself and its write-ahead log.
//!
//! **Invariants**
//! - A handle that finds another file, or none, under one of the two names reports it, before and
//!   after every commit: what is committed then is in a file that no other process finds.
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
        let metadata = std::fs::metadata(&path).ok();
        let device_and_number = metadata.map(|file| (file.dev(), file.ino()));
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

/// The two files that hold what was committed.
pub(super) struct Files {
    store: Named,
    /// Nothing if there was none when the handle was opened.
    wal: Option<Named>,
    /// Whether this handle has synced the directory.
    named: bool,
}

impl Files {
    /// The files of a store that a connection has just opened: from then on until it is closed its
    /// write-ahead log stays the same file.
    pub(super) fn at(path: &Path) -> Self {
        let wal = Named::at(wal_of(path));
        let wal = wal.device_and_number.is_some().then_some(wal);
        Files { store: Named::at(path.to_owned()), wal, named: false }
    }

    /// The same for a handle that appends, which has a write-ahead log.
    pub(super) fn to_append(path: &Path) -> Result<Self, Error> {
        let files = Self::at(path);
        if files.wal.is_none() {
            return Err(Error::Gone(wal_of(path)));
        }
        Ok(files)
    }

    /// Where the store is.
    pub(super) fn path(&self) -> &Path {
        &self.store.path
    }

    /// An error, if one of the files was removed or replaced.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.store.check()?;
        self.wal.as_ref().map_or(Ok(()), Named::check)
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

/// The write-ahead log of a store. SQLite puts it beside the file that a link leads to.
pub(super) fn wal_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(resolved(path));
    name.push("-wal");
    name.into()
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
