//! Files that commands write: whole under their name or not at all, and never over a store or a
//! key.
//!
//! **Invariants:** what is written stands in `NAME.part` until it is complete and on the disk; who
//! dies before that leaves that file, which the next run replaces. A pipe or a device is written
//! to, not replaced.

use super::context::Context;
use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file on its way.
pub(crate) enum Output {
    /// An ordinary one: where it is written, and where it goes.
    Part { file: BufWriter<File>, part: PathBuf, path: PathBuf },
    /// A pipe or a device.
    There(File),
}

impl Output {
    /// Begins to write to a path, which must be neither the store, nor among the keys, nor one of
    /// the files that are `read`.
    pub(crate) fn create(context: &Context, path: &Path, read: &[&Path]) -> anyhow::Result<Self> {
        let name = shown(path);
        // What a link leads to is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        check(context, &path, read)
            .with_context(|| format!("{name} is not written to; name another file"))?;
        let attempt = || format!("could not write {name}");
        match path.metadata() {
            Ok(there) if there.is_dir() => bail!("could not write {name}: it is a directory"),
            Ok(there) if !there.is_file() => {
                Ok(Output::There(File::options().write(true).open(path).with_context(attempt)?))
            }
            _ => {
                let mut part = OsString::from(&path);
                part.push(".part");
                let part = PathBuf::from(part);
                let file =
                    BufWriter::with_capacity(1 << 16, File::create(&part).with_context(attempt)?);
                Ok(Output::Part { file, part, path })
            }
        }
    }

    /// Makes it durable under its name.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let flushed = self.flush();
        if let Output::Part { path, .. } = &self {
            flushed.with_context(|| format!("could not write {}", shown(path)))?;
        } else {
            flushed.context("could not write to the pipe or device")?;
        }
        if let Output::Part { file, part, path } = &self {
            let renamed = file.get_ref().sync_all().and_then(|()| std::fs::rename(part, path));
            renamed.with_context(|| format!("could not write {}", shown(path)))?;
        }
        Ok(())
    }
}

impl Drop for Output {
    /// What was not finished goes; what was is no longer there under that name.
    fn drop(&mut self) {
        if let Output::Part { part, .. } = self {
            let _ = std::fs::remove_file(part);
        }
    }
}

/// A path for people: no control characters.
pub(crate) fn shown(path: &Path) -> String {
    ipse_door::printable(&path.to_string_lossy())
}

fn check(context: &Context, path: &Path, read: &[&Path]) -> anyhow::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok();
    let keys = context.keys().path().canonicalize().ok();
    if let (Some(parent), Some(keys)) = (parent, keys)
        && parent.starts_with(keys)
    {
        bail!("it lies among the keys");
    }
    let Ok(there) = path.metadata() else { return Ok(()) };
    let same = |other: &Path| other.metadata().is_ok_and(|other| is_same(&there, &other));
    for suffix in ["", "-wal", "-shm"] {
        let mut file = OsString::from(&context.store);
        file.push(suffix);
        if same(Path::new(&file)) {
            bail!("it is the store");
        }
    }
    match read.iter().any(|read| same(read)) {
        true => bail!("it is a file that this command reads"),
        false => Ok(()),
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino()) && one.is_file()
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Part { file, .. } => file.write(bytes),
            Output::There(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Part { file, .. } => file.flush(),
            Output::There(file) => file.flush(),
        }
    }
}
