//! Files that are there whole or not at all.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// The mode of what only its owner may read.
pub(super) const PRIVATE: u32 = 0o600;
/// The mode of what may be handed out; the directory around it is private all the same.
pub(super) const PUBLIC: u32 = 0o644;
const PRIVATE_DIRECTORY: u32 = 0o700;
/// How the names of files begin that are not finished.
const UNFINISHED: &str = ".new-";

/// Writes a file that must not be there yet.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let file = written(path, bytes, mode)?;
    file.persist_noclobber(path)?;
    sync(directory_of(path))
}

/// Writes a file, in place of the one that may be there.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let file = written(path, bytes, mode)?;
    file.persist(path)?;
    sync(directory_of(path))
}

/// A temporary file beside the path, with all bytes on the disk. Whoever dies before it is renamed
/// leaves a file under a name that nobody reads; whoever dies after, the whole file.
fn written(path: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED).permissions(Permissions::from_mode(mode));
    let mut file = builder.tempfile_in(directory_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Removes what was left unfinished in a directory.
pub(super) fn sweep(directory: &Path) {
    let Ok(files) = std::fs::read_dir(directory) else { return };
    for file in files.flatten() {
        if file.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Makes a private directory, unless it is there.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync(directory_of(path)),
    }
}

/// Moves a file or a directory, if it is there.
pub(super) fn move_into(directory: &Path, path: &Path) -> io::Result<()> {
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

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// All bytes of an ordinary file, if there are not too many; `InvalidData` if there are, or if it
/// is something else.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<(File, Vec<u8>)> {
    let bad = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    // Asked before it is opened: opening a pipe would wait for whoever writes to it.
    if !std::fs::metadata(path)?.is_file() {
        return bad("it is not an ordinary file");
    }
    let file = File::open(path)?;
    // All the room at once: what grows leaves copies of a secret behind.
    let mut bytes = Vec::with_capacity(usize::try_from(limit + 1).unwrap_or(0));
    (&file).take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => bad("it is too large"),
        false => Ok((file, bytes)),
    }
}
