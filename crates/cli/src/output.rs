//! Files that commands write. A file is complete or absent, and never replaces a store, a key or an
//! input.
//!
//! **Invariants**
//! - A file is written by [`ipse::files`]: under a random name in the same directory, and renamed
//!   when it is complete and on the disk.
//! - No SQLite file is replaced, also not one of another store.
//! - A command replaces empty files and files of its own kind. A bundle replaces only a bundle of
//!   the same agent. Other files are replaced only with `--force`.
//! - A destination is compared with the files of the store, the key directory and the inputs after
//!   its links are followed, also if the last link is dangling.
//! - A pipe or a device is written to, not replaced.

use crate::context::Context;
use crate::passphrase;
use crate::terminal::shown;
use anyhow::{Context as _, bail};
use ipse::files::{self, Unfinished};
use ipse_bundle::{BLOCK, is_bundle};
use ipse_core::{Identity, sha256};
use ipse_ledger::{SentStatement, dsse};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of the write buffer.
const BUFFER_BYTES: usize = 1 << 16;
/// Links that are followed to a file that does not exist; the kernel has the same limit.
const MAX_LINKS: usize = 40;
/// The suffixes that SQLite adds to the name of a store.
const STORE_SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// Levels of directories in a key directory: revoked/NAME/heads.
const KEY_LEVELS: usize = 3;
/// The first bytes of every SQLite file.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";
/// The size field of a tar header, in octal digits.
const SIZE_FIELD: std::ops::Range<usize> = 124..135;
/// Bytes of a manifest that are read to recognise a bundle: seven fields of at most 1 KiB, escaped.
const MAX_MANIFEST_BYTES: u64 = 64 << 10;
/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o777;

/// The files at the destination that a command may replace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverwriteRule {
    /// Any file: the caller has checked it.
    Anything,
    /// Bundles of this identity.
    Bundles(Identity),
    /// Files of signed events.
    SignedFiles,
    /// Only empty files.
    Empty,
}

impl OverwriteRule {
    /// Returns an error if the file at a path is of another kind. An empty file may be replaced:
    /// no data is lost.
    fn check(self, path: &Path, name: &str) -> anyhow::Result<()> {
        let attempt = || format!("could not read {name}, which would be replaced");
        let (kind, fits) = match self {
            OverwriteRule::Anything => return Ok(()),
            OverwriteRule::Bundles(of) => ("a bundle of this agent", is_bundle_file(path, &of)),
            OverwriteRule::SignedFiles => ("a file of signed events", is_signed_file(path)),
            OverwriteRule::Empty => {
                ("empty", File::open(path).and_then(|it| Ok(it.metadata()?.len() == 0)))
            }
        };
        if !fits.with_context(attempt)? {
            bail!(
                "{name} is not replaced, because it is not {kind}: give another file, or give \
                 --force"
            );
        }
        Ok(())
    }
}

/// Whether a file is empty, or begins with the manifest of an identity, as its bundles do.
fn is_bundle_file(path: &Path, identity: &Identity) -> io::Result<bool> {
    let (mut file, mut beginning) = (File::open(path)?, Vec::new());
    (&mut file).take(BLOCK as u64).read_to_end(&mut beginning)?;
    if beginning.is_empty() || is_bundle(&beginning) != Some(true) {
        return Ok(beginning.is_empty());
    }
    let size = std::str::from_utf8(&beginning[SIZE_FIELD]).ok();
    let size = size.and_then(|digits| u64::from_str_radix(digits, 8).ok()).unwrap_or_default();
    let mut manifest = Vec::new();
    file.take(size.min(MAX_MANIFEST_BYTES)).read_to_end(&mut manifest)?;
    Ok(sha256(&[&manifest]) == identity.0)
}

/// Whether a file is empty, or its last line is an envelope, as in every file of `ipse sign`.
fn is_signed_file(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    // The last line, its line feed, and the line feed before it.
    let tail = SentStatement::MAX_ENVELOPE_BYTES as u64 + 2;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(tail)))?;
    let mut end = Vec::new();
    file.take(tail).read_to_end(&mut end)?;
    let last = end.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    Ok(length == 0 || last.is_some_and(dsse::is_envelope))
}

/// A file that a command is writing.
pub(crate) enum Output {
    /// An ordinary file, and its name for messages.
    File(BufWriter<Unfinished>, String),
    /// A pipe or a device.
    Stream(File),
}

impl Output {
    /// Begins to write to a path. Rejects files of the store, keys and the files in `read`. An
    /// existing file must be one that the command replaces.
    pub(crate) fn create(
        context: &Context,
        path: &Path,
        read: &[&Path],
        replaces: OverwriteRule,
    ) -> anyhow::Result<Self> {
        let name = shown(path);
        let attempt = || format!("could not write {name}");
        let there = match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            there => Some(there.with_context(attempt)?),
        };
        match there {
            Some(there) if there.is_dir() => bail!("could not write {name}: it is a directory"),
            Some(there) if !there.is_file() => stream(path).with_context(attempt),
            there => {
                // The file at the end of a link is replaced, not the link.
                let path = resolve(path).with_context(attempt)?;
                check(context, &path, read, &name)?;
                if there.is_some() {
                    replaces.check(&path, &name)?;
                }
                let mode = there.map(|there| there.mode() & PERMISSIONS);
                let file = begin(&path, mode).with_context(attempt)?;
                Ok(Output::File(BufWriter::with_capacity(BUFFER_BYTES, file), name))
            }
        }
    }

    /// Makes the file durable under its name.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Output::File(file, name) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error);
                let replaced = file.and_then(Unfinished::replace);
                replaced.with_context(|| format!("could not write {name}"))
            }
            Output::Stream(mut file) => {
                file.flush().context("could not write to the pipe or device")
            }
        }
    }
}

/// A file that replaces another keeps its mode: a private file stays private.
fn begin(path: &Path, mode: Option<u32>) -> io::Result<Unfinished> {
    let file = Unfinished::begin(path, mode.unwrap_or(files::ORDINARY))?;
    if let Some(mode) = mode {
        file.set_mode(mode)?;
    }
    Ok(file)
}

fn stream(path: &Path) -> io::Result<Output> {
    let file = File::options().write(true).open(path)?;
    match file.metadata()?.is_file() {
        // The path named a pipe or device a moment ago.
        true => Err(io::Error::other("it was replaced meanwhile")),
        false => Ok(Output::Stream(file)),
    }
}

/// Checks that a file may be replaced or removed.
pub(crate) fn check_free(context: &Context, path: &Path, read: &[&Path]) -> anyhow::Result<()> {
    let name = shown(path);
    let path = resolve(path).with_context(|| format!("could not write {name}"))?;
    check(context, &path, read, &name)
}

fn check(context: &Context, path: &Path, read: &[&Path], name: &str) -> anyhow::Result<()> {
    let place = Place::of(path);
    let passphrase = passphrase::file();
    let inputs = read.iter().copied().chain(passphrase.as_deref());
    let why = if place.is_under(context.keys().path()) {
        "it is in the key directory"
    } else if is_store(context, &place) {
        "it is the store"
    } else if inputs.into_iter().any(|input| place.is(input)) {
        "it is a file that this command reads"
    } else if is_database(path) {
        "it is a database"
    } else {
        return Ok(());
    };
    bail!("{name} is not written to: {why}; give another file")
}

/// Whether a file is an SQLite database, such as another store.
fn is_database(path: &Path) -> bool {
    let mut beginning = [0; DATABASE.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning == *DATABASE
}

/// Whether two paths lead to one file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    resolve(one).is_ok_and(|path| Place::of(&path).is(other))
}

/// Whether a path leads to standard output, as `/dev/stdout` does. Results are not printed after a
/// file that is written there.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    let standard = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let standard = standard.and_then(|file| file.metadata());
    standard.is_ok_and(|there| inode_of(path) == Some(inode(&there)))
}

fn is_store(context: &Context, place: &Place) -> bool {
    let Some(store) = context.location.path() else { return false };
    // SQLite puts its other files next to the file that a link leads to.
    let bases = [Some(store.to_owned()), resolve(store).ok()];
    bases.into_iter().flatten().any(|base| {
        STORE_SUFFIXES.iter().any(|suffix| {
            let mut file = OsString::from(&base);
            file.push(suffix);
            place.is(Path::new(&file))
        })
    })
}

/// Follows the links of a path, also if the file does not exist yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        resolved => return resolved,
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let directory = files::directory_of(&path).canonicalize()?;
        let name = path.file_name().ok_or(io::ErrorKind::NotFound)?;
        let place = directory.join(name);
        match place.read_link() {
            Ok(target) => path = directory.join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::other("too many links"))
}

/// Device and inode number, which identify a file under all its names.
type Inode = (u64, u64);

fn inode(metadata: &Metadata) -> Inode {
    (metadata.dev(), metadata.ino())
}

fn inode_of(path: &Path) -> Option<Inode> {
    path.metadata().ok().map(|metadata| inode(&metadata))
}

/// A name in a directory, and the file that has it. A directory may have several paths, so it is
/// compared by its inode.
struct Place {
    path: PathBuf,
    directory: Option<Inode>,
    file: Option<Inode>,
}

impl Place {
    /// The place at a path whose links were followed.
    fn of(path: &Path) -> Self {
        let (directory, file) = (inode_of(files::directory_of(path)), inode_of(path));
        Place { path: path.to_owned(), directory, file }
    }

    /// Whether another path leads to this place, or to another name of the same file.
    fn is(&self, other: &Path) -> bool {
        let Ok(other) = resolve(other) else { return false };
        let other = Place::of(&other);
        let same = |one: Option<Inode>, two: Option<Inode>| one.is_some() && one == two;
        let named_so = self.path.file_name() == other.path.file_name();
        same(self.file, other.file) || named_so && same(self.directory, other.directory)
    }

    /// Whether this place is the directory, is below it, or is another name of a file in it.
    fn is_under(&self, directory: &Path) -> bool {
        let known = inode_of(directory);
        let above = self.path.ancestors().any(|path| known.is_some() && inode_of(path) == known);
        above || self.is(directory) || self.file.is_some_and(|file| holds(directory, file, 0))
    }
}

/// Whether a directory holds a file, under any name.
fn holds(directory: &Path, file: Inode, level: usize) -> bool {
    let Ok(entries) = directory.read_dir() else { return false };
    entries.flatten().map(|entry| entry.path()).any(|path| match path.metadata() {
        Ok(there) if there.is_dir() => level < KEY_LEVELS && holds(&path, file, level + 1),
        Ok(there) => inode(&there) == file,
        Err(_) => false,
    })
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File(file, _) => file.write(bytes),
            Output::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File(file, _) => file.flush(),
            Output::Stream(file) => file.flush(),
        }
    }
}
