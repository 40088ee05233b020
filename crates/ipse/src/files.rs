//! Atomic file writes, used for every file that ipse writes itself.
//!
//! **Invariants**
//! - A file is written under a random name in the directory of its final name. That name is created
//!   with `O_EXCL`, so no existing file is opened and no link is followed.
//! - A file gets its final name after its bytes are synced. The directory is synced after that. *If
//!   the process dies before the rename:* a file `.new-ipse-*` stays, and the final name is
//!   unchanged. *If it dies after the rename:* the file is complete.
//! - No file is truncated or changed in place.
//!
//! SQLite writes the files of the store. Pipes and devices cannot be replaced; the command line
//! writes to them directly.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The mode of a file that only its owner may read.
pub(crate) const PRIVATE: u32 = 0o600;
/// The mode of a public key; the directory that it is in is private anyway.
pub(crate) const PUBLIC: u32 = 0o644;
/// The mode of a file for users, before the umask is applied.
pub const ORDINARY: u32 = 0o666;
const PRIVATE_DIRECTORY: u32 = 0o700;
/// The prefix of the names of unfinished files.
pub const UNFINISHED: &str = ".new-ipse-";
/// The prefix of unfinished files that any version of ipse wrote.
const UNFINISHED_BEFORE: &str = ".new-";
/// Random characters in the name of an unfinished file, so that processes never collide.
const RANDOM_CHARACTERS: usize = 12;

/// A file that is being written. It is removed if it is dropped before it gets its final name.
#[must_use]
#[derive(Debug)]
pub struct Unfinished {
    file: NamedTempFile,
    path: PathBuf,
    /// Opened first, so that after the rename only the sync itself can fail.
    directory: File,
}

impl Unfinished {
    /// Starts writing the file that will get this path. The umask applies to the mode.
    pub fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        let directory = File::open(directory_of(path))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED).rand_bytes(RANDOM_CHARACTERS);
        builder.permissions(Permissions::from_mode(mode));
        let file = builder.tempfile_in(directory_of(path))?;
        Ok(Unfinished { file, path: path.to_owned(), directory })
    }

    /// Sets the mode, independent of the umask.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.file.as_file().set_permissions(Permissions::from_mode(mode))
    }

    /// Makes the file durable under its final name and replaces an existing one.
    pub fn replace(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path)?;
        self.directory.sync_all()
    }

    /// Makes the file durable under its final name; fails if a file has that name.
    fn put_new(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist_noclobber(&self.path)?;
        self.directory.sync_all()
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

/// Writes a new file; fails if the path exists.
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = Unfinished::begin(path, mode)?;
    file.write_all(bytes)?;
    file.put_new()
}

/// Writes a file and replaces an existing one.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = Unfinished::begin(path, mode)?;
    file.write_all(bytes)?;
    file.replace()
}

/// Removes unfinished files from a directory. No other process may be writing to it.
pub(crate) fn sweep(directory: &Path) {
    let Ok(files) = std::fs::read_dir(directory) else { return };
    for file in files.flatten() {
        if file.file_name().as_encoded_bytes().starts_with(UNFINISHED_BEFORE.as_bytes()) {
            // If this fails, the next sweep tries again.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Creates a private directory if it does not exist.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync(directory_of(path)),
    }
}

/// Moves a file or a directory if it exists.
pub(crate) fn move_into(directory: &Path, path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default();
    match std::fs::rename(path, directory.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        moved => moved?,
    }
    sync(directory)?;
    sync(directory_of(path))
}

/// Makes the names in a directory durable.
fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The directory that a path is in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reads an ordinary file of at most `limit` bytes; `InvalidData` if it is larger or of another
/// kind.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<(File, Vec<u8>)> {
    let bad = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    // Checked before opening, because opening a pipe waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return bad("it is not an ordinary file");
    }
    let file = File::open(path)?;
    // Reserve the full size: a growing buffer leaves copies of a secret in memory.
    let mut bytes = Vec::with_capacity(usize::try_from(limit + 1).unwrap_or(0));
    (&file).take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => bad("it is too large"),
        false => Ok((file, bytes)),
    }
}
